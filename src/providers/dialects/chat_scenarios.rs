//! Callers' chat completions in each dialect, against recorded and hand-written traffic: further folders of
//! `tests/data/providers/<kind>`. Those with a `completion.json` are requests: `asked` is the caller's, and either
//! `request.json` has the expected body or `unsupported` names the field that is refused. Those with a `completed.json`
//! are complete responses (`answer.json`), and those with a `chunks.json` are streams (`stream.txt`), byte for byte,
//! with the expected outcome.

use std::fs;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::scenarios::{FOLDER, json as load};
use crate::clock::Clock;
use crate::json::fields::Fields;
use crate::money::Tokens;
use crate::providers::{
    ChunkWriter, CompletionRequest, Dialect, EventOutcome, FailedCall, Failure, Kind, Model,
    ProviderResponse, ResponseMeta, sse,
};

/// Plays every such scenario of a dialect and returns their number.
pub(in crate::providers) fn play(dialect: &dyn Dialect, kind: Kind) -> usize {
    let mut played = 0;
    for entry in fs::read_dir(Path::new(FOLDER).join(kind.name())).unwrap() {
        let scenario = entry.unwrap().path();
        let (outcome, expected) = if scenario.join("completion.json").exists() {
            request(dialect, kind, &scenario)
        } else if scenario.join("completed.json").exists() {
            (answer_for(&json!({"messages": []}), dialect, &scenario), load(&scenario, "completed.json"))
        } else if scenario.join("chunks.json").exists() {
            let stream = fs::read(scenario.join("stream.txt")).unwrap();
            (decoded(dialect, &[&stream]), load(&scenario, "chunks.json"))
        } else {
            continue;
        };
        assert_eq!(outcome, expected, "{}", scenario.display());
        played += 1;
    }
    played
}

/// The streams of a dialect's scenarios, without those that give a finish reason before the end: the beginning of one
/// cannot be told from a complete stream.
pub(in crate::providers) fn streams(kind: Kind) -> Vec<Vec<u8>> {
    let folders = fs::read_dir(Path::new(FOLDER).join(kind.name())).unwrap();
    let streams: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path().join("stream.txt")).collect();
    let is_early = |path: &PathBuf| {
        ["-reason-in-every-", "-text-behind-the-reason"]
            .iter()
            .any(|name| path.to_string_lossy().contains(name))
    };
    streams
        .into_iter()
        .filter(|path| !is_early(path))
        .filter(|path| path.exists())
        .map(|path| fs::read(path).unwrap())
        .collect()
}

/// Cuts a stream at these places.
pub(in crate::providers) fn pieces<'s>(stream: &'s [u8], cuts: &[Index]) -> Vec<&'s [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect()
}

/// Asserts that a stream which breaks off at `place` never looks like a complete one with less content, and that
/// `damage` there does not cause a panic.
pub(in crate::providers) fn survives(dialect: &dyn Dialect, stream: &[u8], position: usize, damage: &[u8]) {
    let (head, tail) = stream.split_at(position);
    let (cut, whole) = (decoded(dialect, &[head]), decoded(dialect, &[stream]));
    let content = |lines: &Value| -> Vec<Value> {
        let lines = lines.as_array().unwrap().iter();
        lines.filter(|line| line["choices"][0].is_object()).cloned().collect()
    };
    if cut.as_array().unwrap().iter().any(|line| line == "[DONE]") {
        assert_eq!(content(&cut), content(&whole));
    }
    decoded(dialect, &[head, damage, tail]);
}

/// What a caller who asks for the usage receives for a stream that arrives in these pieces: the data of every line, and
/// the failure at the end.
pub(in crate::providers) fn decoded(dialect: &dyn Dialect, pieces: &[&[u8]]) -> Value {
    decoded_for(&json!({"messages": []}), dialect, pieces)
}

/// The same for a caller who asks this.
pub(in crate::providers) fn decoded_for(asked: &Value, dialect: &dyn Dialect, pieces: &[&[u8]]) -> Value {
    let body = asked.to_string();
    let mut request = completion(&body);
    (request.stream, request.include_usage) = (true, true);
    let mut chunks = ChunkWriter::new(&request, meta());
    let mut decoder = dialect.stream_decoder(&request);
    let mut events = sse::Decoder::default();
    let mut outcome = Ok(EventOutcome::More);
    for piece in pieces.iter().copied().map(Some).chain([None]) {
        match piece {
            Some(piece) => events.feed(piece),
            None => events.end(),
        }
        while !matches!(outcome, Err(_) | Ok(EventOutcome::End)) {
            let Some(event) = events.next().unwrap() else { break };
            outcome = decoder.read(&event, &mut chunks);
        }
    }
    let outcome = outcome.and_then(|_| decoder.end(&mut chunks));
    let failure = match outcome {
        Ok(()) if chunks.is_complete() => {
            chunks.end();
            None
        }
        Ok(()) => Some("the end is missing".to_owned()),
        Err(failure) => Some(format!("{failure:?}")),
    };
    let text = String::from_utf8(chunks.take().to_vec()).unwrap();
    let lines = text.split_terminator("\n\n").map(|line| {
        let data = line.strip_prefix("data: ").unwrap();
        serde_json::from_str(data).unwrap_or_else(|_| json!(data))
    });
    let mut lines: Vec<Value> = lines.collect();
    lines.extend(failure.map(|failure| json!({"failure": failure, "used": tokens(chunks.usage())})));
    Value::from(lines)
}

fn request(dialect: &dyn Dialect, kind: Kind, scenario: &Path) -> (Value, Value) {
    let given = load(scenario, "completion.json");
    let body = given["asked"].to_string();
    let request = completion(&body);
    let model = Model::known("nobody", kind, given["model"].as_str().unwrap());
    match dialect.request(&request, &model) {
        Ok(outgoing) => {
            assert_eq!(outgoing.path, given["path"].as_str().unwrap_or_default(), "{}", scenario.display());
            (serde_json::from_slice(&outgoing.body).unwrap(), load(scenario, "request.json"))
        }
        Err(Failure::Unsupported { param, .. }) => (json!(param), given["unsupported"].clone()),
        Err(failure) => panic!("{}: {failure:?}", scenario.display()),
    }
}

/// What a caller who asks this receives for the complete response of a scenario.
pub(in crate::providers) fn answer_for(asked: &Value, dialect: &dyn Dialect, scenario: &Path) -> Value {
    let body = asked.to_string();
    match dialect.response(&response(scenario), &completion(&body), &meta()) {
        Ok(completed) => {
            let body: Value = serde_json::from_slice(&completed.body).unwrap();
            let Tokens { prompt, completion, .. } = completed.usage.tokens;
            assert_eq!(body["usage"]["prompt_tokens"], prompt, "{}", scenario.display());
            assert_eq!(body["usage"]["completion_tokens"], completion, "{}", scenario.display());
            body
        }
        Err(FailedCall { failure, usage }) => {
            json!({"failure": format!("{failure:?}"), "used": usage.map(tokens)})
        }
    }
}

fn response(scenario: &Path) -> ProviderResponse {
    let body = fs::read(scenario.join("answer.json")).unwrap().into();
    ProviderResponse { status: 200, headers: HeaderMap::new(), body, clock: Clock::system() }
}

/// A request as the server parses it.
fn completion(body: &str) -> CompletionRequest<'_> {
    let fields: Fields<'_> = serde_json::from_str(body).unwrap();
    let stream = fields.read("stream").unwrap_or(false);
    let choices = fields.read("n").unwrap_or(1);
    CompletionRequest { fields, stream, include_usage: false, choices, prompt_tokens: 7, native: None }
}

fn meta() -> ResponseMeta {
    ResponseMeta { model: "nobody/model".into(), created: 1_795_202_760 }
}

fn tokens(used: Tokens) -> Value {
    json!([used.prompt, used.completion])
}
