//! Checks of requests: what callers saw, what the log says, what the metrics count.

use std::collections::BTreeMap;

use mk::api::endpoint::Endpoint;

use super::log::Line;
use super::page::Page;
use crate::book::{Seen, Sent};
use crate::report::Condition;
use crate::token;

/// Each request whose caller saw a status is in the log once, with that status. If the caller left before, it is there
/// at most once, with any status: only the server knows whether it arrived. Malformed requests that were refused are
/// there too, with the id of their response.
pub(super) fn seen_is_logged(sent: &[Sent], mut refused: BTreeMap<String, u16>, lines: &[Line]) -> Condition {
    let unread = refused.len();
    let mut by_token: BTreeMap<u64, Vec<&Line>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in lines {
        match line.token {
            Some(token) => by_token.entry(token).or_default().push(line),
            None if refused.remove(&line.ledger_id) == line.status && line.status.is_some() => {}
            None => wrong.push(format!("a request of nobody: {line:?}")),
        }
    }
    let (mut with_status, mut without) = (0, 0);
    for (token, sent) in (0..).zip(sent) {
        let logged = by_token.remove(&token).unwrap_or_default();
        let statuses: Vec<Option<u16>> = logged.iter().map(|line| line.status).collect();
        let is_right = match sent.seen {
            Seen::Partly(status) | Seen::Whole(status) => {
                with_status += 1;
                statuses == [Some(status)]
            }
            Seen::Nothing => {
                without += 1;
                statuses.len() <= 1
            }
        };
        if !is_right {
            wrong.push(format!("{} saw {:?}, the log has {statuses:?}", token::id(token), sent.seen));
        }
    }
    wrong.extend(by_token.keys().map(|token| format!("{} was never sent", token::id(*token))));
    wrong.extend(refused.keys().map(|id| format!("{id} was refused, which the log does not know")));
    let counts = format!("{with_status} answered, {without} left before, {unread} were none");
    Condition::none("callers saw what the log says", counts, wrong)
}

/// The metrics' counts by route, method and status are those of the log up to the request that read them.
pub(super) fn logged_is_counted(lines: &[Line], last: u64, page: &Page) -> Condition {
    let mut logged: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for line in lines.iter().take_while(|line| line.token != Some(last)) {
        let method = if line.method.is_empty() { "other" } else { &line.method };
        let status = line.status.map_or_else(|| "cancelled".to_owned(), |status| status.to_string());
        *logged.entry([route(&line.path), method.to_owned(), status]).or_default() += 1;
    }
    let counted = page.by("mk_http_requests_total", ["route", "method", "status"]);
    Condition::same("metrics count what the log says", logged, counted)
}

/// The route that the metrics use for a path.
fn route(path: &str) -> String {
    Endpoint::find(path).map_or("other", Endpoint::path).to_owned()
}
