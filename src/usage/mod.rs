//! What requests cost: a [`Meter`] per request sums it, the [`Ledger`] keeps a row per attempt.
//!
//! Every attempt at a model is accounted exactly once, also when it fails or the caller leaves: an [`Attempt`] that
//! is dropped unfinished is booked as cancelled. Nothing on a request's path waits for the disk: rows are queued
//! and written by [`Ledger::flush`], which the server calls every half second and once at its end.
//!
//! Reports, billing and statements are made from what the store sums by day; a request appears there when it has been
//! flushed.
//!
//! Where key or app have a [`Budget`], an attempt reserves the most it may cost before it begins, retries and
//! fallbacks like any other, so that requests that run side by side cannot overrun it together.

mod billing;
mod books;
mod budgets;
mod days;
mod forecast;
mod ledger;
mod meter;
mod report;
mod tallies;

#[cfg(test)]
pub use crate::storage::Store;
pub use billing::{billing, statement};
pub use books::Books;
pub use budgets::{Budget, Unpaid};
pub use days::{Days, Month, parse_date};
pub use ledger::Ledger;
pub use meter::{Attempt, Meter, Sum, Total};
pub use report::{ReportError, ReportRequest, report};

use std::sync::Arc;

use crate::api::Service;

/// On whose account a request runs.
#[derive(Clone, Debug)]
pub struct Account {
    /// The request's identifier.
    pub request_id: Arc<str>,
    /// The app, empty for none.
    pub app_id: Arc<str>,
    /// The key, empty for none.
    pub key_id: Arc<str>,
    /// The area of the request.
    pub service: Service,
    /// What key and app may spend.
    pub budget: Budget,
}

/// What an attempt was made for, so that a request can say what each stage took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Extraction of claims.
    Extraction,
    /// An answer of the panel.
    Verification,
    /// A chat completion.
    Chat,
}
