//! A row for each statement, for spreadsheets: quoted, and never a formula.

use serde_json::Value;

use super::{list, words};
use crate::api::console::csv::{row, text};
use crate::api::verify::ClaimResult;
use crate::cli::commands::verify::output::votes;
use crate::cli::terminal::sanitize;

const HEADINGS: [&str; 15] = [
    "file",
    "line",
    "run",
    "id",
    "tags",
    "expected",
    "said",
    "right",
    "error",
    "votes",
    "open",
    "elapsed_ms",
    "tokens",
    "request",
    "fact",
];

/// What models meant without options, as `claim model key`, where a key is missing if it was none.
fn open(entry: &Value) -> String {
    let one = |one: &Value| {
        let parts = ["claim", "model", "option"].map(|field| words(&one[field]));
        parts.join(" ").trim_end().to_owned()
    };
    list(&entry["open"]["answers"]).iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A heading, and a row for each statement.
pub(super) fn rows(document: &Value) -> String {
    let mut csv = row(HEADINGS.iter());
    for entry in list(&document["results"]) {
        let votes = list(&entry["claims"]).iter().filter_map(|claim| {
            let claim: ClaimResult = serde_json::from_value(claim.clone()).ok()?;
            Some(votes::letters(&claim, ""))
        });
        let cells = HEADINGS.map(|heading| match heading {
            "error" => words(&entry["error"]["kind"]),
            "votes" => votes.clone().collect::<Vec<_>>().join(" "),
            "open" => open(entry),
            "tokens" => words(&entry["tokenUsage"]["totalTokens"]),
            "request" => words(&entry["requestId"]),
            name => words(&entry[name]),
        });
        csv.push_str(&row(cells.iter().map(|cell| text(sanitize::line(cell).trim_start()))));
    }
    csv
}
