//! Chat with simulated models: they answer from the tables what they recognise, and say what they are otherwise.
//!
//! The question is the last user message: a sum (`What is 6 × 7?`), or a question of the tables (`What is the
//! capital of Australia?`); models differ as they do on a panel. The words of `triggers` in it work here as well:
//!
//! | word | effect |
//! |---|---|
//! | `[sandbox:fail]` | the provider fails, as with a status of 500 |
//! | `[sandbox:stall]` | nothing comes until the time limit, of a stream nothing behind the first words |
//! | `[sandbox:refuse]` | the model declines |
//! | `[sandbox:garbage]` | an answer that breaks off in its middle |
//! | `[sandbox:slow]` | a stream of a word every 200 ms; a whole answer after about a second |
//!
//! What only tunes an answer is ignored; what asks for another answer than a text is refused by name.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::sleep;

pub(in crate::providers) use super::script::Script;

use super::arithmetic::Sum;
use super::script::Beat;
use super::triggers::{self, Act};
use super::{MODELS, answer, knowledge, latency, numbers};
use crate::clock::Clock;
use crate::providers::{Completion, Failure, Incoming, asked, estimate};
use crate::unsafe_chars::name_in_message;

/// Between two words, and between those of `[sandbox:slow]`.
const PACE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];

/// Fields that are honoured or only tune an answer.
const IGNORED: [&str; 24] = [
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

/// A complete answer, as a provider would send it.
///
/// # Errors
/// What trigger words ask for, and what the sandbox cannot do.
pub(in crate::providers) async fn whole(asked: &Completion<'_>, model: &str) -> Result<Incoming, Failure> {
    let Said { text, finish, acts } = prepare(asked, model)?;
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
        "usage": usage(asked, &text),
    });
    let body = Bytes::from(body.to_string());
    Ok(Incoming { status: 200, headers: HeaderMap::new(), body, clock: Clock::system() })
}

/// A streamed answer, a word a chunk, as a provider would send it. One that stalls is waited for as long as `patience`.
///
/// # Errors
/// As [`whole`], as far as they come before the first word.
pub(in crate::providers) fn stream(
    asked: &Completion<'_>,
    model: &str,
    patience: Duration,
) -> Result<Script, Failure> {
    let Said { text, finish, acts } = prepare(asked, model)?;
    let pace = PACE[usize::from(acts.contains(&Act::Slow))];
    let mut beats = VecDeque::new();
    beats.push_back(Beat::Send(Duration::ZERO, chunk(&json!({"role": "assistant", "content": ""}), None)));
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let breaks = acts.contains(&Act::Garbage) || acts.contains(&Act::Stall);
    let sent = if breaks { words.len().div_ceil(2) } else { words.len() };
    for word in &words[..sent] {
        beats.push_back(Beat::Send(pace, chunk(&json!({"content": word}), None)));
    }
    if acts.contains(&Act::Stall) {
        beats.push_back(Beat::Stall);
    } else if acts.contains(&Act::Garbage) {
        beats.push_back(Beat::Send(pace, Bytes::from_static(b"data: {\"choices\": [{\"del\n\n")));
    } else {
        beats.push_back(Beat::Send(pace, chunk(&json!({}), Some(finish))));
        let last = json!({"choices": [], "usage": usage(asked, &text)});
        beats.push_back(Beat::Send(Duration::ZERO, Bytes::from(format!("data: {last}\n\ndata: [DONE]\n\n"))));
    }
    Ok(Script::new(beats, patience))
}

/// What is answered, and why it ends there.
struct Said {
    text: String,
    finish: &'static str,
    acts: Vec<Act>,
}

fn prepare(asked: &Completion<'_>, model: &str) -> Result<Said, Failure> {
    if !MODELS.contains(&model) {
        return Err(Failure::UnknownModel);
    }
    check(asked)?;
    let (question, triggers) = triggers::split(&question(asked)?);
    let acts: Vec<Act> = triggers.iter().filter_map(|trigger| trigger.for_panel(model)).collect();
    if acts.contains(&Act::Fail) {
        return Err(Failure::Broken { status: 500 });
    }
    if acts.contains(&Act::Refuse) {
        return Err(Failure::Refused);
    }
    let (text, finish) = limited(text(model, &question), asked);
    Ok(Said { text, finish, acts })
}

/// As much of a text as the caller wants at most, by the same measure as its tokens are told; and the reason of its end.
fn limited(mut text: String, asked: &Completion<'_>) -> (String, &'static str) {
    let limits = ["max_tokens", "max_completion_tokens"].into_iter();
    let limit = limits.filter_map(|name| asked.fields.read::<u64>(name)).min().unwrap_or(u64::MAX);
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

fn text(model: &str, question: &str) -> String {
    let asked = question.trim_end_matches(['?', '.', '!', ' ']);
    let asked = format!("{asked}?");
    let sum = Sum::asked(&asked).and_then(|sum| sum.value()).map(numbers::show);
    let known = sum.or_else(|| answer::belief(model, knowledge::asked(&asked)?).map(str::to_owned));
    match known {
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

fn usage(asked: &Completion<'_>, text: &str) -> Value {
    let completion_tokens = estimate::text_tokens(text);
    json!({
        "prompt_tokens": asked.prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": asked.prompt_tokens.saturating_add(completion_tokens),
    })
}

/// Refuses what would change the answer and cannot be simulated.
fn check(asked: &Completion<'_>) -> Result<(), Failure> {
    for (name, value) in asked.fields.iter() {
        // Said, but asking for nothing.
        let is_neutral = value.get() == "false"
            || asked::is_neutral(name, value)
            || (name == "n" && value.get() == "1")
            || (name == "tool_choice" && value.get() == "\"none\"")
            || (name == "response_format"
                && asked.fields.read::<Value>(name) == Some(json!({"type": "text"})));
        if !is_neutral && !IGNORED.contains(&name) {
            let param = name_in_message(name);
            let message =
                format!("simulated models know no `{param}`; leave it out, or ask another provider");
            return Err(Failure::Unsupported { param, message });
        }
    }
    Ok(())
}

/// The text of the last user message.
fn question(asked: &Completion<'_>) -> Result<String, Failure> {
    let messages: Vec<Value> = asked.fields.read("messages").unwrap_or_default();
    let last = messages.iter().enumerate().rfind(|(_, message)| message["role"] == "user");
    let Some((place, message)) = last else { return Ok(String::new()) };
    let Some(parts) = message["content"].as_array() else {
        return Ok(message["content"].as_str().unwrap_or_default().to_owned());
    };
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(piece) = part["text"].as_str().filter(|_| part["type"] == "text") else {
            return Err(Failure::Unsupported {
                param: format!("messages[{place}].content[{index}].type"),
                message: "simulated models read only parts of type `text`; ask another provider".to_owned(),
            });
        };
        text.push_str(piece);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Fields;

    #[test]
    fn a_field_that_is_refused_is_named_as_it_was_sent() {
        let name = |name: &str| {
            let body = json!({name: true}).to_string();
            let fields: Fields<'_> = serde_json::from_str(&body).unwrap();
            let asked =
                Completion { fields, stream: false, include_usage: false, choices: 1, prompt_tokens: 0 };
            match check(&asked) {
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
