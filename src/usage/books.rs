//! Where all that a request does is put down.

use std::sync::Arc;

use super::Ledger;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// The ledger, what is counted of it, and the time that it goes by. Every request holds them to its end, so each worker
/// has its own [`Arc`] of them.
///
/// Alone on its cache lines: otherwise the counts of holders of two workers would lie on one.
#[repr(align(128))]
pub struct Books {
    pub(super) ledger: Ledger,
    pub(super) clock: Clock,
}

impl Books {
    /// Books that are kept in `ledger`.
    pub fn new(ledger: Ledger, clock: Clock) -> Arc<Self> {
        Arc::new(Self { ledger, clock })
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        self.ledger.metrics()
    }
}
