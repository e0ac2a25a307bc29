//! The documents of `--json` and the lines of `--jsonl`. Fields are only ever added.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::summary::Totals;
use crate::api::verify::{ClaimResult, ClaimVerified, VerifyResponse};
use crate::cli::commands::verify::input::place::Places;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::run::single::Found;
use crate::cli::process::exit::Failure;

const SCHEMA: &str = "mk.verify/1";
const BATCH_SCHEMA: &str = "mk.verify.batch/1";

/// A statement: our own fields, and then those of the API's result.
#[derive(Serialize)]
pub(crate) struct Document<'a, R> {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    #[serde(flatten)]
    source: Option<&'a Source>,
    exit: u8,
    elapsed_ms: u64,
    #[serde(flatten)]
    result: &'a R,
}

impl<'a, R: Serialize> Document<'a, R> {
    /// The document for one statement has a schema, the entry for one of several a source.
    pub(crate) fn new(
        schema: Option<&'static str>,
        source: Option<&'a Source>,
        exit: u8,
        elapsed: Duration,
        result: &'a R,
    ) -> Self {
        Self { schema, source, exit, elapsed_ms: milliseconds(elapsed), result }
    }

    /// The document, in which claims and parts say where in the file they stand.
    pub(crate) fn located(&self, places: &Places) -> Value {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        places.add_to(&mut document);
        document
    }
}

/// A completed verification.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// What the server found.
    pub(crate) result: VerifyResponse,
    /// From the request to the end.
    pub(crate) elapsed: Duration,
    /// The resulting exit code.
    pub(crate) exit: u8,
    /// To find places in the statement.
    pub(crate) places: Places,
}

/// The `--json` document for one statement.
pub(crate) fn document(finished: &Finished) -> Value {
    located(Some(SCHEMA), None, finished)
}

/// A verification in which claims and parts say where in the file they stand.
fn located(schema: Option<&'static str>, source: Option<&Source>, finished: &Finished) -> Value {
    let (exit, elapsed) = (finished.exit, finished.elapsed);
    Document::new(schema, source, exit, elapsed, &finished.result).located(&finished.places)
}

/// The document of what was found before a verification broke off: the claims that are verified, and how many there
/// are.
pub(crate) fn partial(found: &Found, exit: u8) -> Value {
    json!({ "schema": SCHEMA, "exit": exit, "claims": found.total, "results": found.claims })
}

/// A verified claim with its place.
pub(crate) fn located_claim(result: &ClaimResult, places: &Places) -> Value {
    let mut claim = claim_fields(result);
    places.add_to_part(&mut claim);
    claim
}

/// The `--json` document for several statements, with totals unless it broke off.
pub(crate) fn batch(entries: &[Value], totals: Option<&Totals>, exit: u8) -> Value {
    several(BATCH_SCHEMA, entries, totals, exit)
}

/// The document of several statements.
pub(crate) fn several(schema: &str, entries: &[Value], totals: Option<&impl Serialize>, exit: u8) -> Value {
    let mut document = json!({ "schema": schema, "exit": exit, "statements": entries });
    if let Some(totals) = totals {
        document["totals"] = json!(totals);
    }
    document
}

/// The entry for one of several statements.
pub(crate) fn entry(source: &Source, outcome: &Result<Finished, Failure>) -> Value {
    match outcome {
        Ok(finished) => located(None, Some(source), finished),
        Err(failure) => failed(source, failure),
    }
}

/// A claim in `--jsonl`, as it arrives. From servers that do not send the full result early, it contains what is known.
pub(crate) fn claim_line(
    source: Option<&Source>,
    places: &Places,
    text: &str,
    verified: &ClaimVerified,
) -> Value {
    let mut line = head(SCHEMA, source, "claim");
    line["index"] = json!(verified.claim_index);
    let known = match &verified.result {
        Some(result) => claim_fields(result),
        None => json!({
            "claim": text,
            "assessment": verified.assessment,
            "consensus_answer": verified.consensus_answer,
            "model_answers": verified.model_answers,
        }),
    };
    append(&mut line, known);
    places.add_to_part(&mut line);
    line
}

fn claim_fields(result: &ClaimResult) -> Value {
    serde_json::to_value(result).unwrap_or(Value::Null)
}

/// The last line of a verification in `--jsonl`: everything but the text and the claims, and how many there were.
pub(crate) fn summary_line(source: Option<&Source>, finished: &Finished) -> Value {
    let mut line = head(SCHEMA, source, "summary");
    let mut rest = located(None, None, finished);
    if let Some(fields) = rest.as_object_mut() {
        fields.retain(|name, _| name != "original_fact" && name != "results");
    }
    append(&mut line, rest);
    line["claims"] = json!(finished.result.results.len());
    line
}

/// The last line of `--jsonl` with several statements.
pub(crate) fn total_line(totals: &Totals, exit: u8) -> Value {
    let mut line = json!({ "schema": BATCH_SCHEMA, "type": "total", "exit": exit });
    line["totals"] = json!(totals);
    for count in ["verified", "failed"] {
        line[count] = line["totals"][count].clone();
    }
    line
}

/// A failed verification among several, in `--jsonl` and among the entries of `--json`.
pub(crate) fn failed(source: &Source, failure: &Failure) -> Value {
    let mut line = json!({ "type": "error" });
    append(&mut line, serde_json::to_value(source).unwrap_or(Value::Null));
    append(&mut line, failure.document());
    line
}

/// What begins a line of `--jsonl`.
pub(crate) fn head(schema: &str, source: Option<&Source>, kind: &str) -> Value {
    let mut line = json!({ "schema": schema, "type": kind });
    if let Some(source) = source {
        append(&mut line, serde_json::to_value(source).unwrap_or(Value::Null));
    }
    line
}

/// Adds fields to an object.
pub(crate) fn append(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(more)) = (line, more) {
        line.extend(more);
    }
}

/// A duration as documents state it.
pub(crate) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
