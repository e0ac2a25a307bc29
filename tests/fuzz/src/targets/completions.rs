//! Callers' chat completions: what is accepted becomes a request in every dialect, or an unsupported parameter is
//! named.

use crate::input::{is_harmless, is_object, number};
use mk::json::fields::Fields;
use mk::providers::{CompletionRequest, Failure, Kind, Model, Structure, dialect};
use mk::server::fuzz_entry;

fn check(kind: Kind, asked: &CompletionRequest<'_>, model: &Model) {
    let model = &Model { kind, ..model.clone() };
    let spoken = dialect(kind).expect("these are spoken over HTTP");
    let outgoing = match spoken.request(asked, model) {
        Ok(outgoing) => outgoing,
        Err(Failure::Unsupported { param, message }) => {
            assert!(is_harmless(&param) && param.len() < 500, "{param:?}");
            assert!(is_harmless(&message) && message.len() < 2_000, "{message:?}");
            return;
        }
        Err(other) => panic!("refused before it was sent, as {other:?}"),
    };
    assert!(outgoing.path.starts_with('/') && outgoing.path.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(is_object(&outgoing.body), "no object");
    // Providers differ in how they read a name that appears twice.
    let sent = serde_json::from_slice::<Fields<'_>>(&outgoing.body).expect("every name once");
    if kind != Kind::OpenAi {
        return;
    }
    assert_eq!(sent.read::<String>("model").as_ref(), Some(&model.name));
    let ours = ["model", "stream_options", "max_tokens", "max_completion_tokens"];
    for (name, value) in asked.fields.iter().filter(|(name, _)| !ours.contains(name)) {
        assert_eq!(sent.get(name), Some(value), "{name} was changed");
    }
}

/// The fields that are scanned are the same that `serde_json` finds.
fn walk(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match (Fields::parse(text), serde_json::from_str::<Fields<'_>>(text)) {
        (Ok(walked), Ok(read)) => assert!(walked.iter().eq(read.iter()), "{walked:?} instead of {read:?}"),
        (walked, read) => assert!(walked.is_err() && read.is_err(), "{walked:?} instead of {read:?}"),
    }
}

pub(super) fn run(bytes: &[u8]) {
    walk(bytes);
    let (name, asked) = match fuzz_entry::completion(bytes) {
        Ok(read) => read,
        Err(refusal) => {
            assert!(is_harmless(&refusal.message) && refusal.message.len() < 2_000, "{:?}", refusal.message);
            assert!(is_harmless(refusal.param.as_deref().unwrap_or_default()), "{:?}", refusal.param);
            return;
        }
    };
    assert!((1..=128).contains(&asked.choices));
    let model = Model {
        kind: Kind::OpenAi,
        name,
        structure: Structure::Schema,
        temperature: number(bytes, 0).is_multiple_of(2),
        max_completion_tokens: number(bytes, 1).is_multiple_of(2),
        answer_limit: true,
        max_input_tokens: None,
        max_output_tokens: None,
        stream_usage: number(bytes, 2).is_multiple_of(2),
        responses: None,
        least_effort: None,
    };
    for kind in Kind::OF_APIS {
        check(kind, &asked, &model);
    }
}
