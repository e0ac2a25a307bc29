//! What a request's usage is recorded in.

use std::sync::Arc;

use super::Ledger;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// The ledger, its metrics, and the clock that dates its rows. Every request holds an [`Arc`] of this to its end, so
/// each worker has its own.
///
/// It is aligned to cache lines of its own: otherwise the reference counts of two workers could share one.
#[repr(align(128))]
pub struct Accounting {
    pub(super) ledger: Ledger,
    pub(super) clock: Clock,
}

impl Accounting {
    /// Records in `ledger`.
    pub fn new(ledger: Ledger, clock: Clock) -> Arc<Self> {
        Arc::new(Self { ledger, clock })
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        self.ledger.metrics()
    }
}
