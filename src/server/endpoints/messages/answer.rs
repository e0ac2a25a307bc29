//! What an answer of a chat completion is in the Messages API: pieces that the whole answer and the stream share, and
//! the whole answer. Pure.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The tokens that an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Of the prompt, without those of the cache.
    input: u64,
    cache_read: u64,
    cache_written: u64,
    output: u64,
    thinking: Option<u64>,
    is_estimated: bool,
}

impl Usage {
    /// Before the answer: the estimated length of the prompt. It is not marked, as clients would keep the mark beside
    /// the figures that come at the end.
    pub(super) fn before(prompt_tokens: u64) -> Self {
        Self { input: prompt_tokens, ..Self::default() }
    }

    /// That of a chat completion.
    pub(super) fn read(usage: &Value) -> Self {
        let count = |value: &Value| value.as_u64();
        let first = |values: &[&Value]| values.iter().find_map(|value| count(value)).unwrap_or_default();
        let details = &usage["prompt_tokens_details"];
        let cache_read = first(&[
            &details["cached_tokens"],
            &usage["prompt_cache_hit_tokens"],
            &usage["cached_tokens"],
            &usage["cache_read_input_tokens"],
        ]);
        let cache_written = first(&[&details["cache_write_tokens"], &usage["cache_creation_input_tokens"]]);
        let prompt = first(&[&usage["prompt_tokens"]]);
        Self {
            input: prompt.saturating_sub(cache_read).saturating_sub(cache_written),
            cache_read,
            cache_written,
            output: first(&[&usage["completion_tokens"]]),
            thinking: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
            is_estimated: usage["estimated"] == true,
        }
    }

    pub(super) fn to_json(self) -> Value {
        let mut usage = json!({
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.cache_written,
            "cache_read_input_tokens": self.cache_read,
            "output_tokens": self.output,
        });
        if let Some(thinking) = self.thinking {
            usage["output_tokens_details"] = json!({"thinking_tokens": thinking});
        }
        if self.is_estimated {
            usage["estimated"] = true.into();
        }
        usage
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) reason: &'static str,
    /// The text at which it ended, if the provider says so.
    pub(super) sequence: Option<String>,
}

impl Stop {
    /// By a finish reason; `matched` is what some servers (vLLM, `SGLang`) name as the text that ended it.
    pub(super) fn new(finish: &str, has_calls: bool, matched: Option<&str>, sequences: &[String]) -> Self {
        let sequence = sequences.iter().find(|sequence| matched == Some(sequence.as_str())).cloned();
        let reason = match finish {
            "length" => "max_tokens",
            "content_filter" => "refusal",
            "tool_calls" | "function_call" => "tool_use",
            _ if has_calls => "tool_use",
            _ if sequence.is_some() => "stop_sequence",
            _ => "end_turn",
        };
        Self { reason, sequence: sequence.filter(|_| reason == "stop_sequence") }
    }
}

/// The fields in which servers name the text that ended an answer.
pub(super) const MATCHED: [&str; 2] = ["stop_reason", "matched_stop"];

/// An identifier of a message, of that of a completion: its own if it is one. Some servers give all completions the
/// same, and agents take messages of the same identifier for one.
pub(super) fn message_id(id: &str) -> Cow<'_, str> {
    if id.starts_with("msg_") { id.into() } else { crate::id::new("msg").into() }
}

/// A citation for an annotation: one of a page on the web, or that of the Messages API as it was.
pub(super) fn citation(annotation: &Value) -> Option<Value> {
    if annotation["type"].as_str().is_some_and(|kind| kind.ends_with("_location")) {
        return Some(annotation.clone());
    }
    let source = &annotation["url_citation"];
    let url = source["url"].as_str()?;
    Some(json!({
        "type": "web_search_result_location",
        "url": url,
        "title": source["title"].as_str(),
        "encrypted_index": "",
        "cited_text": source["content"].as_str().unwrap_or_default(),
    }))
}

/// A whole answer as a message; `None` if it is no completion, or has a call of a tool that cannot be read.
pub(super) fn message(completion: &[u8], shows_thinking: bool, stop_sequences: &[String]) -> Option<Value> {
    let mut completion: Value = serde_json::from_slice(completion).ok()?;
    let usage = Usage::read(&completion["usage"]).to_json();
    let mut choice = completion["choices"].get_mut(0)?.take();
    let mut message = choice["message"].take();
    let mut content = Vec::new();
    let thoughts = ["reasoning_content", "reasoning"].into_iter().find_map(|name| message[name].as_str());
    if let Some(thoughts) = thoughts.filter(|thoughts| shows_thinking && !thoughts.is_empty()) {
        content.push(json!({"type": "thinking", "thinking": thoughts, "signature": ""}));
    }
    for name in ["content", "refusal"] {
        if let Value::String(text) = message[name].take()
            && !text.is_empty()
        {
            let annotations = message["annotations"].as_array().map(Vec::as_slice).unwrap_or_default();
            let citations: Vec<Value> = annotations.iter().filter_map(citation).collect();
            let mut block = json!({"type": "text", "text": text});
            if !citations.is_empty() && name == "content" {
                block["citations"] = citations.into();
            }
            content.push(block);
        }
    }
    let Value::Array(calls) = message["tool_calls"].take() else {
        return finished(&completion, &choice, &content, &usage, (false, stop_sequences));
    };
    let has_calls = !calls.is_empty();
    for mut call in calls {
        let function = &mut call["function"];
        let input = match function["arguments"].take() {
            Value::String(arguments) if arguments.trim().is_empty() => json!({}),
            Value::String(arguments) => serde_json::from_str(&arguments).ok()?,
            Value::Null => json!({}),
            other => other,
        };
        if !input.is_object() {
            return None;
        }
        let name = function["name"].take();
        content.push(json!({"type": "tool_use", "id": call["id"], "name": name, "input": input}));
    }
    finished(&completion, &choice, &content, &usage, (has_calls, stop_sequences))
}

fn finished(
    completion: &Value,
    choice: &Value,
    content: &[Value],
    usage: &Value,
    (has_calls, stop_sequences): (bool, &[String]),
) -> Option<Value> {
    let finish = choice["finish_reason"].as_str()?;
    let matched = MATCHED.into_iter().find_map(|name| choice[name].as_str());
    let stop = Stop::new(finish, has_calls, matched, stop_sequences);
    Some(json!({
        "id": message_id(completion["id"].as_str()?),
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": content,
        "stop_reason": stop.reason,
        "stop_sequence": stop.sequence,
        "usage": usage,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(message: &Value, finish: &str, shows_thinking: bool) -> Option<Value> {
        let completion = json!({
            "id": "msg_1", "model": "a/b",
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "stop_reason": "END"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}},
        });
        super::message(completion.to_string().as_bytes(), shows_thinking, &["END".to_owned()])
    }

    #[test]
    fn thoughts_texts_and_calls_become_blocks() {
        let call =
            json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
        let source = json!({"type": "url_citation", "url_citation": {"url": "https://a", "title": "A", "content": "said"}});
        let whole = json!({"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [call], "annotations": [source]});
        let answer = message_of(&whole, "tool_calls", true).unwrap();
        let citation = json!({"type": "web_search_result_location", "url": "https://a", "title": "A", "encrypted_index": "", "cited_text": "said"});
        assert_eq!(
            answer,
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "a/b",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "text", "text": "hi", "citations": [citation]},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
                ],
                "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {"input_tokens": 1, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 2},
            })
        );
        let hidden = message_of(&whole, "stop", false).unwrap();
        assert_eq!(
            (&hidden["content"][0]["type"], &hidden["stop_reason"]),
            (&json!("text"), &json!("tool_use"))
        );
    }

    #[test]
    fn every_end_has_its_reason() {
        let text = json!({"content": "x"});
        for (finish, reason) in
            [("stop", "stop_sequence"), ("length", "max_tokens"), ("content_filter", "refusal")]
        {
            assert_eq!(message_of(&text, finish, false).unwrap()["stop_reason"], reason);
        }
        assert_eq!(message_of(&text, "stop", false).unwrap()["stop_sequence"], "END");
        assert_eq!(Stop::new("stop", false, Some("other"), &[]).reason, "end_turn");
    }

    #[test]
    fn a_call_that_cannot_be_read_is_no_answer() {
        for arguments in [json!("{"), json!("7"), json!([1])] {
            let call = json!({"id": "c", "function": {"name": "f", "arguments": arguments}});
            assert_eq!(message_of(&json!({"tool_calls": [call]}), "tool_calls", false), None);
        }
    }
}
