//! Verifications in each dialect, against recorded and hand-written traffic: each folder of
//! `tests/data/providers/<kind>` is one scenario. Those with a `chat.json` are requests, with the expected body; the
//! others are responses, byte for byte in `answer.json`, with the expected outcome of decoding them.

use std::fs;
use std::path::Path;

use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value, json};

use crate::clock::{Clock, Time};
use crate::money::Tokens;
use crate::providers::{
    Chat, Dialect, Effort, FailedCall, Kind, Message, Model, Prompt, ProviderResponse, Question, Role,
    Schema, Structure,
};

pub(in crate::providers) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/providers");

/// Plays every scenario of a dialect and returns their number.
pub(in crate::providers) fn play(dialect: &dyn Dialect, kind: Kind) -> usize {
    let mut played = 0;
    for entry in fs::read_dir(Path::new(FOLDER).join(kind.name())).unwrap() {
        let scenario = entry.unwrap().path();
        // The others are chat completions; see `chat_scenarios`.
        if !["chat.json", "expected.json"].iter().any(|file| scenario.join(file).exists()) {
            continue;
        }
        let (outcome, expected) = if scenario.join("chat.json").exists() {
            (request(dialect, kind, &scenario), json(&scenario, "request.json"))
        } else {
            let mut expected = json(&scenario, "expected.json");
            for given in ["status", "headers"] {
                expected.as_object_mut().unwrap().shift_remove(given);
            }
            (answer(dialect, &scenario), expected)
        };
        assert_eq!(outcome, expected, "{}", scenario.display());
        played += 1;
    }
    played
}

/// The body of the request; path and headers are compared with those in `chat.json` immediately.
fn request(dialect: &dyn Dialect, kind: Kind, scenario: &Path) -> Value {
    let given = json(scenario, "chat.json");
    let messages = given["messages"].as_array().unwrap().iter().map(|message| Message {
        role: match message["role"].as_str().unwrap() {
            "system" => Role::System,
            "user" => Role::User,
            _ => Role::Assistant,
        },
        content: message["content"].as_str().unwrap().to_owned().into(),
    });
    let chat = Chat {
        temperature: given["temperature"].as_f64(),
        max_tokens: given["max_tokens"].as_u64().map(|limit| u32::try_from(limit).unwrap()),
        schema: given.get("schema").map(|schema| Schema::new("answer", schema.clone())),
        effort: given["effort"].as_str().map(|name| Effort::parse(name).unwrap()).unwrap_or_default(),
        ..question(messages.collect())
    };
    let known = Model::known("nobody", kind, given["model"].as_str().unwrap());
    let structure = match given["structure"].as_str() {
        Some("schema") => Structure::Schema,
        Some("json_mode") => Structure::JsonMode,
        Some(_) => Structure::Plain,
        None => known.structure,
    };
    let outgoing = Prompt::from(chat).encode(dialect, &Model { structure, ..known }).unwrap();
    assert_eq!(outgoing.path, given["path"].as_str().unwrap(), "{}", scenario.display());
    let header = |(name, value): &(HeaderName, _)| {
        (name.to_string(), json!(http::HeaderValue::to_str(value).unwrap()))
    };
    let headers: Map<String, Value> = outgoing.headers.iter().map(header).collect();
    let expected = given.get("headers").cloned().unwrap_or_else(|| json!({}));
    assert_eq!(Value::Object(headers), expected, "{}", scenario.display());
    serde_json::from_slice(&outgoing.body).unwrap()
}

fn question(messages: Vec<Message>) -> Chat {
    Chat { messages, temperature: None, max_tokens: None, schema: None, effort: Effort::Lowest }
}

fn answer(dialect: &dyn Dialect, scenario: &Path) -> Value {
    let given = json(scenario, "expected.json");
    let mut headers = HeaderMap::new();
    for (name, value) in given["headers"].as_object().unwrap() {
        headers.insert(name.parse::<HeaderName>().unwrap(), value.as_str().unwrap().parse().unwrap());
    }
    let response = ProviderResponse {
        status: u16::try_from(given["status"].as_u64().unwrap()).unwrap(),
        headers,
        body: fs::read(scenario.join("answer.json")).unwrap().into(),
        // 2026-11-20T19:26:00Z
        clock: Clock::manual(Time::from_unix_ms(1_795_202_760_000)),
    };
    let tokens = |used: Tokens| json!([used.prompt, used.completion]);
    // Question and model make no difference.
    let model = Model::known("nobody", Kind::OpenAi, "m");
    match Prompt::from(question(Vec::new())).decode(dialect, &model, &response) {
        Ok(answer) => json!({
            "answer": answer.text,
            "finish": format!("{:?}", answer.finish),
            "usage": answer.usage.map(|used| tokens(*used)),
        }),
        Err(FailedCall { failure, usage: None }) => json!({"failure": format!("{failure:?}")}),
        Err(FailedCall { failure, usage: Some(usage) }) => {
            json!({"failure": format!("{failure:?}"), "usage": tokens(usage)})
        }
    }
}

pub(crate) fn json(scenario: &Path, file: &str) -> Value {
    let text = fs::read(scenario.join(file)).unwrap_or_else(|_| panic!("{}: no {file}", scenario.display()));
    serde_json::from_slice(&text).unwrap()
}
