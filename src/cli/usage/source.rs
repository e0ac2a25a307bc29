//! Where the figures come from: the local database, as the records of the API.

use crate::api::console::{Billing, Statement, UsageReport};
use crate::cli::exit::{Failure, Kind};
use crate::cli::keys;
use crate::cli::local::{Local, stored};
use crate::storage::Error;
use crate::usage::{self, Month, ReportError, ReportRequest};

/// What was used.
pub(super) fn report(local: &Local, asked: &ReportRequest) -> Result<UsageReport, Failure> {
    usage::report(&local.store, asked).map_err(|cause| failure(cause, "usage"))
}

/// The month so far, and the budgets.
pub(super) fn billing(local: &Local) -> Result<Billing, Failure> {
    usage::billing(&local.store, local.now).map_err(|cause| stored(cause, "billing"))
}

/// What an app (its name or id, or the id of a deleted one) has used in a month.
pub(super) fn statement(local: &Local, app: &str, month: Month) -> Result<Statement, Failure> {
    let id = app_id(local, app)?;
    usage::statement(&local.store, &id, month, local.now).map_err(|cause| failure(cause, "statement"))
}

/// The id of an app that is meant by its name or id, or of a deleted one by its id.
pub(super) fn app_id(local: &Local, app: &str) -> Result<String, Failure> {
    let what = format!("app `{app}`");
    match local.store.app(app) {
        Err(Error::NotFound) => {}
        found => return found.map(|found| found.id).map_err(|cause| stored(cause, &what)),
    }
    match local.store.app_once_made(app) {
        Err(cause @ Error::NotFound) => {
            let hint = "`mk apps list` shows all; one that was deleted is named by its id, which \
                        `mk usage --by app --json` shows";
            Err(stored(cause, &what).hint(hint))
        }
        found => found.map(|found| found.id).map_err(|cause| stored(cause, &what)),
    }
}

/// The id of a key that is meant by its id, its name or its last four characters.
pub(super) fn key_id(local: &Local, key: &str) -> Result<String, Failure> {
    Ok(keys::named(local, key)?.id)
}

fn failure(cause: ReportError, what: &str) -> Failure {
    match cause {
        ReportError::TooLong => Failure::new(Kind::Usage, cause.to_string())
            .hint("--since, --from and --to choose days, --by what to sum by"),
        ReportError::Storage(cause) => stored(cause, what),
    }
}
