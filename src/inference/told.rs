//! What the log tells of attempts that failed: a line each, as each is a call that a provider has seen, and may have
//! charged. For want of descriptors nothing was called; that has its one line where it is found.

use std::time::Duration;

use super::retry;
use crate::providers::Failure;

/// An attempt at this model has failed; the next one is made after `pause`, if there is one.
pub(super) fn failed(model: &str, failure: &Failure, pause: Option<Duration>) {
    if *failure == Failure::NoDescriptors {
        return;
    }
    tracing::warn!(
        model,
        outcome = failure.code(),
        detail = failure.detail(),
        retry_in_ms = pause.map(retry::whole_ms),
        "a model call failed"
    );
}
