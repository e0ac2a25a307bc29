//! Usage reports and statements: what they are asked for, and what is said where there is none.

use std::collections::HashMap;

use super::Admin;
use crate::api::console::{Dimension, Statement, UsageReport, UsageRow};
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::printer::Printer;
use crate::clock::Clock;
use crate::usage::{Days, Month, ReportRequest};

/// How many calls of the current month, by the id of their app or key, were of models without a known price, and so are
/// missing from what it has spent.
#[derive(Debug, Default)]
pub(crate) struct Unpriced(HashMap<String, u64>);

impl Unpriced {
    /// Those of this app or key.
    pub(crate) fn of(&self, id: &str) -> u64 {
        self.0.get(id).copied().unwrap_or(0)
    }
}

/// Number of digits in an id, behind its prefix.
const ID_DIGITS: usize = 32;

impl Admin {
    /// The usage report.
    pub(crate) fn report(&self, request: &ReportRequest) -> Result<UsageReport, Failure> {
        self.records().report(request).map_err(|failure| match failure.kind {
            Kind::Usage => failure.hint("--since, --from and --to choose days, --by what to sum by"),
            _ => failure,
        })
    }

    /// The calls without a known price of all apps, or of the one with this id.
    pub(crate) fn unpriced_of_apps(&self, id: Option<&str>) -> Result<Unpriced, Failure> {
        let app_id = id.map(str::to_owned);
        let request = ReportRequest { app_id, ..this_month(Dimension::App) };
        self.unpriced(&request, |row| row.app_id)
    }

    /// The same of all keys, or of the one with this id.
    pub(crate) fn unpriced_of_keys(&self, id: Option<&str>) -> Result<Unpriced, Failure> {
        let key_id = id.map(str::to_owned);
        let request = ReportRequest { key_id, ..this_month(Dimension::Key) };
        self.unpriced(&request, |row| row.key_id)
    }

    fn unpriced(
        &self,
        request: &ReportRequest,
        id: impl Fn(UsageRow) -> Option<String>,
    ) -> Result<Unpriced, Failure> {
        let report = match self.report(request) {
            Err(failure) if failure.kind.stop_signal().is_some() => return Err(failure),
            // Only a mark is missing then; what was asked for is there.
            Err(_) => return Ok(Unpriced::default()),
            Ok(report) => report,
        };
        let counts = report.data.into_iter().filter_map(|row| {
            let count = row.sums.unpriced_attempts;
            Some((id(row)?, count))
        });
        Ok(Unpriced(counts.filter(|(_, count)| *count > 0).collect()))
    }

    /// What an app (given by name or id, or by the id of a deleted one) used in a month.
    pub(crate) fn statement(&self, app: &str, month: Month) -> Result<Statement, Failure> {
        let id = match self.app(app) {
            Ok(found) => found.id,
            Err(failure) if failure.kind == Kind::NotFound && is_id(app, "app_") => app.to_owned(),
            Err(failure) => return Err(with_deleted_app_hint(failure)),
        };
        let statement = self.records().statement(&id, month, &format!("app `{app}`"));
        statement.map_err(with_deleted_app_hint)
    }

    /// The id of an app given by its name or id, or of a deleted app given by its id.
    pub(crate) fn app_id(&self, app: &str) -> Result<String, Failure> {
        match self.app(app) {
            // Only a statement tells whether such an app ever existed.
            Err(failure) if failure.kind == Kind::NotFound && is_id(app, "app_") => {
                Ok(self.statement(app, Month::of(Clock::system().now()))?.app_id)
            }
            found => found.map(|found| found.id).map_err(with_deleted_app_hint),
        }
    }

    /// The id of a key given by its id, its name or its last four characters; the key of a deleted app is given by its
    /// id, as nothing but its usage is known.
    pub(crate) fn key_id(&self, key: &str, printer: &Printer) -> Result<String, Failure> {
        match self.find_key(key, printer) {
            Err(failure) if failure.kind == Kind::NotFound && is_id(key, "key_") => Ok(key.to_owned()),
            found => found.map(|found| found.id),
        }
    }
}

/// A report on the current month.
fn this_month(by: Dimension) -> ReportRequest {
    let now = Clock::system().now();
    let days = Days { first: Month::of(now).days().first, last: now.utc_day() };
    ReportRequest { days, by: vec![by], app_id: None, key_id: None, service: None, model: None }
}

fn is_id(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix);
    digits.is_some_and(|digits| {
        digits.len() == ID_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Where an app is not found, tells how a deleted one is named.
fn with_deleted_app_hint(failure: Failure) -> Failure {
    if failure.kind != Kind::NotFound {
        return failure;
    }
    failure.with_first_hint(
        "`mk apps list` shows all apps; for a deleted one, use its id from `mk usage --by app --json`",
    )
}
