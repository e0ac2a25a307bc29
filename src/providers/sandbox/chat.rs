//! Chat with simulated models: they answer questions that they recognise from the tables, and otherwise say what they
//! are.
//!
//! The question is the last user message: a sum (`What is 6 × 7?`) or a question of the tables (`What is the capital of
//! Australia?`); models differ as they do on a panel. What `mk eval --open` asks stands in fences (`open`). The trigger
//! words of `triggers` work here as well:
//!
//! | word | effect |
//! |---|---|
//! | `[sandbox:fail]` | the provider fails, as with a status of 500 |
//! | `[sandbox:stall]` | no answer until the timeout; a stream stalls after the first words |
//! | `[sandbox:refuse]` | the model declines |
//! | `[sandbox:garbage]` | an answer that breaks off in the middle |
//! | `[sandbox:slow]` | a stream with a word every 200 ms; a complete answer after about a second |
//!
//! Parameters that only tune an answer are ignored; those that ask for anything but a text answer are refused by name.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::sleep;

pub(in crate::providers) use super::script::Script;

use super::reading::arithmetic::Sum;
use super::reading::triggers::{self, Act};
use super::reading::{fences, numbers};
use super::script::ScriptStep;
use super::{MODELS, answer, embeddings, knowledge, latency, open};
use crate::clock::Clock;
use crate::providers::catalog::estimate;
use crate::providers::{CompletionRequest, Failure, ProviderResponse, request};
use crate::unsafe_chars::name_in_message;

/// The pause between two words, normally and with `[sandbox:slow]`.
const PACE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];

/// Fields that are honoured, or that only tune an answer and are ignored.
const ACCEPTED_FIELDS: [&str; 24] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "seed",
    "user",
    "metadata",
    "store",
    "service_tier",
    "reasoning_effort",
    "verbosity",
    "safety_identifier",
    "prompt_cache_key",
    "parallel_tool_calls",
];

/// Checks that a request can be answered.
///
/// # Errors
/// [`Failure::Unsupported`] for what cannot be simulated.
pub(in crate::providers) fn check(request: &CompletionRequest<'_>) -> Result<(), Failure> {
    if request.is_for_embeddings() {
        return embeddings::check(request);
    }
    check_fields(request)?;
    question(request).map(drop)
}

/// A complete response, as a provider would send it.
///
/// # Errors
/// The failures that trigger words ask for, and [`Failure::Unsupported`] for what cannot be simulated.
pub(in crate::providers) async fn respond(
    request: &CompletionRequest<'_>,
    model: &str,
) -> Result<ProviderResponse, Failure> {
    if request.is_for_embeddings() {
        return embeddings::respond(request).await;
    }
    let PlannedAnswer { text, finish, acts } = prepare(request, model)?;
    if acts.contains(&Act::Slow) {
        sleep(latency(model)).await;
    }
    if acts.contains(&Act::Stall) {
        std::future::pending::<()>().await;
    }
    if acts.contains(&Act::Garbage) {
        return Err(Failure::Cut);
    }
    let message = json!({"role": "assistant", "content": text});
    let body = json!({
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "system_fingerprint": "sandbox",
        "mode": "sandbox",
        "usage": usage(request, &text),
    });
    let body = Bytes::from(body.to_string());
    Ok(ProviderResponse { status: 200, headers: HeaderMap::new(), body, clock: Clock::system() })
}

/// A streamed answer, as a provider would send it, with one word per chunk. A stalled stream times out after
/// `idle_timeout`.
///
/// # Errors
/// As [`respond`], if they occur before the first word.
pub(in crate::providers) fn stream(
    request: &CompletionRequest<'_>,
    model: &str,
    idle_timeout: Duration,
) -> Result<Script, Failure> {
    let PlannedAnswer { text, finish, acts } = prepare(request, model)?;
    let pace = PACE[usize::from(acts.contains(&Act::Slow))];
    let mut steps = VecDeque::new();
    steps.push_back(ScriptStep::Send(
        Duration::ZERO,
        chunk(&json!({"role": "assistant", "content": ""}), None),
    ));
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let breaks = acts.contains(&Act::Garbage) || acts.contains(&Act::Stall);
    let sent = if breaks { words.len().div_ceil(2) } else { words.len() };
    for word in &words[..sent] {
        steps.push_back(ScriptStep::Send(pace, chunk(&json!({"content": word}), None)));
    }
    if acts.contains(&Act::Stall) {
        steps.push_back(ScriptStep::Stall);
    } else if acts.contains(&Act::Garbage) {
        steps.push_back(ScriptStep::Send(pace, Bytes::from_static(b"data: {\"choices\": [{\"del\n\n")));
    } else {
        steps.push_back(ScriptStep::Send(pace, chunk(&json!({}), Some(finish))));
        let last = json!({"choices": [], "usage": usage(request, &text)});
        steps.push_back(ScriptStep::Send(
            Duration::ZERO,
            Bytes::from(format!("data: {last}\n\ndata: [DONE]\n\n")),
        ));
    }
    Ok(Script::new(steps, idle_timeout))
}

/// The text of an answer and its finish reason, and the triggered effects that are left to apply.
struct PlannedAnswer {
    text: String,
    finish: &'static str,
    acts: Vec<Act>,
}

fn prepare(request: &CompletionRequest<'_>, model: &str) -> Result<PlannedAnswer, Failure> {
    if !MODELS.contains(&model) {
        return Err(Failure::UnknownModel);
    }
    check_fields(request)?;
    let message = question(request)?;
    let [fenced, given, options] =
        ["QUESTION", "ANSWER", "OPTIONS"].map(|label| fences::block_in(&message, label));
    let (question, triggers) = triggers::split(fenced.as_ref().unwrap_or(&message));
    let acts: Vec<Act> = triggers.iter().filter_map(|trigger| trigger.for_panel(model)).collect();
    if acts.contains(&Act::Fail) {
        return Err(Failure::Broken { status: 500, retry_after: None });
    }
    if acts.contains(&Act::Refuse) {
        return Err(Failure::Refused);
    }
    let text = match (fenced, given.zip(options)) {
        (_, Some((given, options))) => open::judgement(&given, &options),
        (Some(_), None) => open::answer(model, &question),
        (None, None) => text(model, &question),
    };
    let (text, finish) = truncated(text, request);
    Ok(PlannedAnswer { text, finish, acts })
}

/// Truncates a text to the caller's token limit, by the same estimate as the reported usage; also returns the finish
/// reason.
fn truncated(mut text: String, request: &CompletionRequest<'_>) -> (String, &'static str) {
    let limits = ["max_tokens", "max_completion_tokens"].into_iter();
    let limit = limits.filter_map(|name| request.fields.read::<u64>(name)).min().unwrap_or(u64::MAX);
    let kept = text.chars().scan(0, |count, c| {
        *count += 1;
        (estimate::length_tokens(*count) <= limit).then_some(c.len_utf8())
    });
    let kept = kept.sum();
    if kept == text.len() {
        return (text, "stop");
    }
    text.truncate(kept);
    (text, "length")
}

/// What a model knows about a question.
pub(super) fn known(model: &str, question: &str) -> Option<String> {
    let question = question.trim_end_matches(['?', '.', '!', ' ']);
    let question = format!("{question}?");
    let sum = Sum::parse_question(&question).and_then(|sum| sum.value()).map(numbers::show);
    sum.or_else(|| answer::belief(model, knowledge::fact_for_question(&question)?).map(str::to_owned))
}

fn text(model: &str, question: &str) -> String {
    match known(model, question) {
        Some(known) => format!("{known}. (A simulated answer of the sandbox.)"),
        None => "This is a simulated answer: the sandbox knows sums and a small table of facts, and your \
                 message is neither. Try: What is the capital of Australia?"
            .to_owned(),
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Bytes {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"choices": [choice], "system_fingerprint": "sandbox", "mode": "sandbox"});
    Bytes::from(format!("data: {chunk}\n\n"))
}

fn usage(request: &CompletionRequest<'_>, text: &str) -> Value {
    let completion_tokens = estimate::text_tokens(text);
    json!({
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": request.prompt_tokens.saturating_add(completion_tokens),
    })
}

/// Refuses fields that would affect the answer and cannot be simulated.
fn check_fields(request: &CompletionRequest<'_>) -> Result<(), Failure> {
    for (name, value) in request.fields.iter() {
        // Present, but without effect.
        let is_neutral = value.get() == "false"
            || request::is_neutral(name, value)
            || (name == "n" && value.get() == "1")
            || (name == "tool_choice" && value.get() == "\"none\"")
            || (name == "response_format"
                && request.fields.read::<Value>(name) == Some(json!({"type": "text"})));
        if !is_neutral && !ACCEPTED_FIELDS.contains(&name) {
            let param = name_in_message(name);
            let message = format!(
                "simulated models do not support `{param}`; leave it out, or choose another provider"
            );
            return Err(Failure::Unsupported { param, message });
        }
    }
    Ok(())
}

/// The text of the last user message.
fn question(request: &CompletionRequest<'_>) -> Result<String, Failure> {
    let messages: Vec<Value> = request.fields.read("messages").unwrap_or_default();
    let last = messages.iter().enumerate().rfind(|(_, message)| message["role"] == "user");
    let Some((position, message)) = last else { return Ok(String::new()) };
    let Some(parts) = message["content"].as_array() else {
        return Ok(message["content"].as_str().unwrap_or_default().to_owned());
    };
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(piece) = part["text"].as_str().filter(|_| part["type"] == "text") else {
            return Err(Failure::Unsupported {
                param: format!("messages[{position}].content[{index}].type"),
                message: "simulated models accept only parts of type `text`; choose another provider"
                    .to_owned(),
            });
        };
        text.push_str(piece);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::fields::Fields;

    #[test]
    fn a_refused_field_is_named_as_it_was_sent() {
        let name = |name: &str| {
            let body = json!({name: true}).to_string();
            let fields: Fields<'_> = serde_json::from_str(&body).unwrap();
            let request = CompletionRequest {
                fields,
                stream: false,
                include_usage: false,
                choices: 1,
                prompt_tokens: 0,
                native: None,
            };
            match check_fields(&request) {
                Err(Failure::Unsupported { param, .. }) => param,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(name("audio"), "audio");
        assert_eq!(name("größe"), "größe");
        assert_eq!(name("a\u{1b}[31m\u{202e}"), "a\u{fffd}[31m\u{fffd}");
    }

    #[test]
    fn models_answer_what_they_recognise_and_differ() {
        let capital = "What is the capital of Australia";
        assert!(text("alpha", capital).starts_with("Canberra. "));
        assert!(text("beta", capital).starts_with("Sydney. "));
        assert!(text("alpha", "What is 6 × 7?").starts_with("42. "));
        assert!(text("gamma", "What is the chemical symbol of gold?").contains("simulated answer"));
        assert!(text("alpha", "Write me a poem").contains("simulated answer"));
    }
}
