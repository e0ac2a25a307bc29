//! Checks of responses. The provider fails often, so many responses may be failures; but each has to be documented and
//! complete.

use serde_json::Value;

use super::exchange::Answer;
use super::requests::Wanted;
use crate::book::Book;

/// Statuses for a provider's failures.
const FAILED: [u16; 4] = [200, 502, 503, 504];
const DONE: &str = "data: [DONE]\n\n";
/// How much of a wrong response is shown.
const SHOWN: usize = 300;

/// Reports a response that is not as expected.
pub(super) fn check(book: &Book, token: u64, wanted: Wanted, answer: &Answer) {
    let statuses: &[u16] = match wanted {
        Wanted::VerifyDocument | Wanted::Chat | Wanted::ChatStream => &FAILED,
        Wanted::BadVerify | Wanted::BadChat => &[400, 415],
        Wanted::WrongKey | Wanted::NoKey => &[401],
        Wanted::Scarce => &[200, 429, 502, 503, 504],
        Wanted::Verify | Wanted::Page | Wanted::Console => &[200],
        Wanted::Nowhere => &[404],
    };
    let shown = || {
        let end = answer.body.floor_char_boundary(SHOWN);
        format!("{} {}", answer.status, &answer.body[..end])
    };
    if !statuses.contains(&answer.status) {
        let what = format!("{wanted:?} was answered with {}", answer.status);
        return book.report_wrong(token, &what, shown);
    }
    if let Err(what) = check_body(wanted, answer) {
        book.report_wrong(token, &format!("{wanted:?}: {what}"), shown);
    }
}

fn check_body(wanted: Wanted, answer: &Answer) -> Result<(), &'static str> {
    let body = answer.body.as_str();
    let is_stream = body.starts_with("data: ") || body.starts_with("event: ");
    match wanted {
        Wanted::Page => Ok(()),
        Wanted::Verify => {
            let is_end = |line: &&str| matches!(*line, "event: completed" | "event: error");
            let last = body.lines().rfind(|line| line.starts_with("event: "));
            let ends = body.lines().filter(is_end).count();
            let is_whole = ends == 1 && last.is_some_and(|last| is_end(&last)) && body.ends_with("\n\n");
            is_whole.then_some(()).ok_or("a stream has not exactly one end")
        }
        Wanted::ChatStream | Wanted::Scarce if answer.status == 200 && is_stream => {
            let is_whole = body.ends_with(DONE) && body.matches(DONE).count() == 1;
            let finishes = body.matches("\"finish_reason\":\"").count();
            (is_whole && finishes == 1).then_some(()).ok_or("a stream has not exactly one end")
        }
        _ if answer.status == 200 => object(body).map(drop),
        _ => {
            let error = object(body)?;
            let is_documented = error["error"].is_string() && error["message"].is_string();
            is_documented.then_some(()).ok_or("an error without its fields")
        }
    }
}

fn object(body: &str) -> Result<Value, &'static str> {
    serde_json::from_str(body).ok().filter(Value::is_object).ok_or("what is no JSON object")
}
