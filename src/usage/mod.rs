//! Token usage, costs and budgets: a [`Meter`] per request adds up what it uses, and the [`Ledger`] keeps a row per
//! attempt.
//!
//! Every attempt at a model is recorded exactly once, even if it fails or the caller leaves: an [`Attempt`] that is
//! dropped unfinished is recorded as cancelled. One that a budget pays for goes on until its usage is known (`late`). Nothing in a request's path waits for the disk: rows are queued and
//! written by [`Ledger::flush`], which the server calls every 0.4 s and once at shutdown. Calls that take longer are
//! written down while they are under way (`journal`), and booked by another server if this one dies ([`Ledger::adopt`]).
//!
//! Reports, billing and statements are built from the store's daily sums; a request appears there once it has been
//! flushed.
//!
//! If a key or an app has a [`Budget`], every attempt, retries and fallbacks included, reserves the most it may cost
//! before it begins, so that concurrent requests cannot overrun the budget together.

mod accounting;
mod billing;
mod budgets;
mod days;
mod forecast;
mod journal;
mod late;
mod ledger;
mod meter;
mod report;
mod request;
mod spans;
mod spending;
mod totals;

#[cfg(test)]
pub use crate::storage::Store;
pub use accounting::Accounting;
pub use billing::{billing, statement};
pub use budgets::{Budget, BudgetError};
pub use days::{Days, Month, parse_date};
pub use ledger::Ledger;
pub use meter::{Attempt, Meter};
pub use report::{ReportError, ReportRequest, month_of_key, report};
pub use totals::{ModelTotal, RequestTotal};

use std::sync::Arc;

use crate::api::Service;
use crate::storage::{EndUser, Labels};
use crate::traces::Parent;

/// On whose account a request runs.
#[derive(Clone, Debug)]
pub struct Account {
    /// The request's identifier.
    pub request_id: Arc<str>,
    /// The app's id; empty for none.
    pub app_id: Arc<str>,
    /// The key's id; empty for none.
    pub key_id: Arc<str>,
    /// The service that the request uses.
    pub service: Service,
    /// What the key, the app and the end user may spend.
    pub budget: Budget,
    /// Whom the request is for and what it is marked with, if anything.
    pub labels: Option<Arc<Labels>>,
    /// The span of the request.
    pub trace: Parent,
}

impl Account {
    /// Whom the request is for, if its caller said so.
    pub fn end_user(&self) -> Option<&EndUser> {
        self.labels.as_deref()?.end_user.as_ref()
    }
}

/// What an attempt is made for, so that a request can report the usage of each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Extraction of claims.
    Extraction,
    /// A vote of the panel.
    Verification,
    /// A chat completion.
    Chat,
    /// The vectors of texts.
    Embeddings,
}
