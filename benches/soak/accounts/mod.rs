//! The conditions on counts: what callers saw, the log, the metrics, the ledger and the provider's list are compared
//! with each other.

mod calls;
mod ledger;
mod log;
mod matching;
mod page;
mod requests;

use std::path::Path;

use crate::book::Book;
use crate::provider::Called;
use crate::report::Condition;
use ledger::Row;
use log::Log;
use page::Page;

/// The metrics at a time without other requests, and the ledger at the same time.
pub(crate) struct Rest {
    /// The request that read the page; it does not count itself.
    token: u64,
    page: Page,
    rows: Vec<Row>,
}

impl Rest {
    /// Takes the page that the request `token` has read.
    ///
    /// # Errors
    /// If the page or the ledger cannot be read.
    pub(crate) fn new(token: u64, page: &str, data: &Path) -> anyhow::Result<Self> {
        Ok(Self { token, page: Page::read(page)?, rows: ledger::rows(data)? })
    }
}

/// All conditions, once the server has ended.
///
/// # Errors
/// If log or ledger cannot be read.
pub(crate) fn conditions(
    book: &Book,
    calls: &[Called],
    rest: &Rest,
    log: &Path,
    data: &Path,
) -> anyhow::Result<Vec<Condition>> {
    let (log, rows, sent) = (Log::read(log)?, ledger::rows(data)?, book.sent());
    let integrity = ledger::integrity(data)?;
    let reported = ledger::reported(data)?;
    let waiting = rest.page.sum("mk_ledger_queue") + rest.page.sum("mk_ledger_rows_lost_total");
    let strange = log.strange.iter().chain(&log.errors).cloned().collect();
    Ok(vec![
        Condition::none("answers are as documented", format!("{} requests", sent.len()), book.wrong()),
        requests::seen_is_logged(&sent, book.all_refused(), &log.requests),
        requests::logged_is_counted(&log.requests, rest.token, &rest.page),
        Condition::equal("streams open at rest", &0, &page::whole(rest.page.sum("mk_streams_open"))),
        Condition::equal("rows that wait or were lost", &0, &page::whole(waiting)),
        calls::called_is_booked(&sent, calls, &log.requests, &rows),
        calls::booked_is_logged(&log.requests, &rows),
        calls::booked_is_counted(&rest.rows, &rest.page),
        calls::booked_is_priced(&rows),
        calls::booked_is_reported(&rows, reported),
        Condition::equal("integrity of the databases", &"ok", &integrity.as_str()),
        Condition::none("the log has no errors", format!("{} requests", log.requests.len()), strange),
    ])
}
