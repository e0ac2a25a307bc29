//! Chat completions in formats of their own, against written-down traffic: further folders of
//! `tests/data/providers/<kind>`. Those with a `completion.json` are requests: `asked` is the caller's, and either
//! `request.json` holds the body expected of it, or `unsupported` names the field that is refused. Those with a
//! `completed.json` are complete answers in `answer.json`, those with a `chunks.json` streams in `stream.txt`, byte for
//! byte, and what is expected to be made of them. Answers that failed another call are played as well: a failure is the
//! same whoever asks.

use std::fs;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::scenarios::{FOLDER, json as load};
use super::{
    Chunks, Completion, Completions, Dialect, Failed, Failure, Fields, Incoming, Kind, Labels, Model, Step,
    sse,
};
use crate::clock::Clock;
use crate::money::Tokens;

/// Plays every scenario of a dialect; how many there were. Failures of other calls are not counted.
pub(super) fn play(dialect: &dyn Dialect, kind: Kind) -> usize {
    let speaker = dialect.completions();
    let mut played = 0;
    for entry in fs::read_dir(Path::new(FOLDER).join(kind.name())).unwrap() {
        let scenario = entry.unwrap().path();
        let (outcome, expected) = if scenario.join("completion.json").exists() {
            request(speaker, kind, &scenario)
        } else if scenario.join("completed.json").exists() {
            (answer(speaker, &scenario), load(&scenario, "completed.json"))
        } else if scenario.join("chunks.json").exists() {
            let stream = fs::read(scenario.join("stream.txt")).unwrap();
            (told(speaker, &[&stream]), load(&scenario, "chunks.json"))
        } else {
            same_failure(dialect, speaker, &scenario);
            continue;
        };
        assert_eq!(outcome, expected, "{}", scenario.display());
        played += 1;
    }
    played
}

/// The streams of a dialect's scenarios.
pub(super) fn streams(kind: Kind) -> Vec<Vec<u8>> {
    let folders = fs::read_dir(Path::new(FOLDER).join(kind.name())).unwrap();
    let streams: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path().join("stream.txt")).collect();
    streams.into_iter().filter(|path| path.exists()).map(|path| fs::read(path).unwrap()).collect()
}

/// A stream cut at these places.
pub(super) fn pieces<'s>(stream: &'s [u8], cuts: &[Index]) -> Vec<&'s [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect()
}

/// Holds that a stream which ends at `place` is never told as a whole one that says less, and that `damage` there is
/// no danger.
pub(super) fn survives(speaker: &dyn Completions, stream: &[u8], place: usize, damage: &[u8]) {
    let (head, tail) = stream.split_at(place);
    let (cut, whole) = (told(speaker, &[head]), told(speaker, &[stream]));
    let said = |lines: &Value| -> Vec<Value> {
        let lines = lines.as_array().unwrap().iter();
        lines.filter(|line| line["choices"][0].is_object()).cloned().collect()
    };
    if cut.as_array().unwrap().iter().any(|line| line == "[DONE]") {
        assert_eq!(said(&cut), said(&whole));
    }
    told(speaker, &[head, damage, tail]);
}

/// What a caller who asks for the usage gets of a stream that comes in these pieces: every line's data, and the
/// failure at the end.
pub(super) fn told(speaker: &dyn Completions, pieces: &[&[u8]]) -> Value {
    let body = json!({"messages": []}).to_string();
    let mut asked = completion(&body);
    (asked.stream, asked.include_usage) = (true, true);
    let mut chunks = Chunks::new(&asked, labels());
    let mut decoder = speaker.decoder();
    let mut events = sse::Decoder::default();
    let mut outcome = Ok(Step::More);
    for piece in pieces.iter().copied().map(Some).chain([None]) {
        match piece {
            Some(piece) => events.feed(piece),
            None => events.end(),
        }
        while !matches!(outcome, Err(_) | Ok(Step::End)) {
            let Some(event) = events.next().unwrap() else { break };
            outcome = decoder.read(&event, &mut chunks);
        }
    }
    let failure = match outcome {
        _ if chunks.is_whole() => {
            chunks.end();
            None
        }
        Ok(_) => Some("the end is missing".to_owned()),
        Err(failure) => Some(format!("{failure:?}")),
    };
    let text = String::from_utf8(chunks.take().to_vec()).unwrap();
    let lines = text.split_terminator("\n\n").map(|line| {
        let data = line.strip_prefix("data: ").unwrap();
        serde_json::from_str(data).unwrap_or_else(|_| json!(data))
    });
    let mut lines: Vec<Value> = lines.collect();
    lines.extend(failure.map(|failure| json!({"failure": failure, "used": tokens(chunks.used())})));
    Value::from(lines)
}

fn request(speaker: &dyn Completions, kind: Kind, scenario: &Path) -> (Value, Value) {
    let given = load(scenario, "completion.json");
    let body = given["asked"].to_string();
    let asked = completion(&body);
    let model = Model::known("nobody", kind, given["model"].as_str().unwrap());
    match speaker.chat_request(&asked, &model) {
        Ok(outgoing) => {
            assert_eq!(outgoing.path, given["path"].as_str().unwrap_or_default(), "{}", scenario.display());
            (serde_json::from_slice(&outgoing.body).unwrap(), load(scenario, "request.json"))
        }
        Err(Failure::Unsupported { param, .. }) => (json!(param), given["unsupported"].clone()),
        Err(failure) => panic!("{}: {failure:?}", scenario.display()),
    }
}

fn answer(speaker: &dyn Completions, scenario: &Path) -> Value {
    let body = json!({"messages": []}).to_string();
    match speaker.chat_answer(&incoming(scenario, 200), &completion(&body), &labels()) {
        Ok(completed) => {
            let body: Value = serde_json::from_slice(&completed.body).unwrap();
            let Tokens { prompt, completion } = completed.usage;
            assert_eq!(body["usage"]["prompt_tokens"], prompt, "{}", scenario.display());
            assert_eq!(body["usage"]["completion_tokens"], completion, "{}", scenario.display());
            body
        }
        Err(Failed { failure, usage }) => {
            json!({"failure": format!("{failure:?}"), "used": usage.map(tokens)})
        }
    }
}

/// An answer of a status of failure means the same to every caller.
fn same_failure(dialect: &dyn Dialect, speaker: &dyn Completions, scenario: &Path) {
    let expected = fs::read(scenario.join("expected.json")).unwrap_or_default();
    let expected: Value = serde_json::from_slice(&expected).unwrap_or_default();
    let status = u16::try_from(expected["status"].as_u64().unwrap_or(200)).unwrap();
    if status == 200 {
        return;
    }
    let incoming = incoming(scenario, status);
    let body = json!({"messages": []}).to_string();
    let chat = speaker.chat_answer(&incoming, &completion(&body), &labels()).unwrap_err();
    assert_eq!(chat, dialect.answer(&incoming).unwrap_err(), "{}", scenario.display());
}

fn incoming(scenario: &Path, status: u16) -> Incoming {
    let body = fs::read(scenario.join("answer.json")).unwrap().into();
    Incoming { status, headers: HeaderMap::new(), body, clock: Clock::system() }
}

/// A request as the server reads it.
fn completion(body: &str) -> Completion<'_> {
    let fields: Fields<'_> = serde_json::from_str(body).unwrap();
    let stream = fields.read("stream").unwrap_or(false);
    let choices = fields.read("n").unwrap_or(1);
    Completion { fields, stream, include_usage: false, choices, prompt_tokens: 7 }
}

fn labels() -> Labels {
    Labels { model: "nobody/model".into(), created: 1_795_202_760 }
}

fn tokens(used: Tokens) -> Value {
    json!([used.prompt, used.completion])
}
