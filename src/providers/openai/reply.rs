//! Reading a chat completion that came with a status of success, which does not mean that it is one.

use serde_json::Value;

use super::complaint;
use crate::providers::{Answer, Failed, Failure, Finish, Incoming, Usage, tokens};

/// What a body of success holds: an answer, a refusal, or a failure in disguise.
pub(super) fn read(incoming: &Incoming) -> Result<Answer, Failed> {
    let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
    let usage = usage(&body["usage"]);
    let failed = |failure| Failed { failure, usage };
    let choice = &body["choices"][0];
    // Routers that have begun to answer report an upstream failure inside a 200.
    if [&body["error"], &choice["error"]].iter().any(|error| !error.is_null()) {
        let source = if body["error"].is_null() { choice } else { &body };
        return Err(failed(complaint::inside_success(source, incoming)));
    }
    let message = &choice["message"];
    if refusal(message) {
        return Err(failed(Failure::Refused));
    }
    let finish = match choice["finish_reason"].as_str() {
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        Some("error") => return Err(failed(Failure::Broken { status: incoming.status })),
        // Some local servers leave it out, or have names of their own for an ordinary end.
        _ => Finish::Stop,
    };
    let text = match text(&message["content"]) {
        Some(text) => without_thoughts(&text).to_owned(),
        // A filter, or a limit that reasoning used up, leaves no content; the finish says so.
        None if finish != Finish::Stop => String::new(),
        None => return Err(failed(Failure::Malformed)),
    };
    Ok(Answer { text, finish, usage })
}

/// Whether the model declined, in the field or the content part made for it.
fn refusal(message: &Value) -> bool {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    is_text(&message["refusal"]) || parts.iter().any(|part| is_text(&part["refusal"]))
}

/// The content, a string or an array of parts of which only those of type `text` are the answer.
fn text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let parts = content.as_array()?;
    let texts: Vec<&str> =
        parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// The answer behind the reasoning that local servers without a reasoning parser leave in front of it.
fn without_thoughts(text: &str) -> &str {
    let Some(thoughts) = text.trim_start().strip_prefix("<think>") else {
        return text;
    };
    thoughts.split_once("</think>").map_or(text, |(_, answer)| answer.trim_start())
}

/// The tokens that a usage object tells; `None` if it does not, or tells what cannot be.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let prompt_tokens = tokens::count(&usage["prompt_tokens"])?;
    let completion_tokens = tokens::count(&usage["completion_tokens"])?;
    Some(charged(prompt_tokens, completion_tokens, tokens::count(&usage["total_tokens"])))
}

/// What is charged of these figures: some count reasoning in the total alone, and it is charged as completion.
pub(super) fn charged(prompt_tokens: u64, completion_tokens: u64, total: Option<u64>) -> Usage {
    let beyond_prompt = total.unwrap_or(0).saturating_sub(prompt_tokens);
    Usage { prompt_tokens, completion_tokens: completion_tokens.max(beyond_prompt) }
}
