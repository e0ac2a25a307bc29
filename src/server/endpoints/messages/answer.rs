//! What an answer of a chat completion is in the Messages API: pieces that the whole answer and the stream share, and
//! the whole answer. Pure. Texts stay the bytes they are.

use std::borrow::Cow;

use bytes::Bytes;

use crate::inference::Json;
use crate::json::fields::{begin_element, write_field, write_number_field, write_string_field};
use crate::json::raw;
use crate::server::endpoints::chat::given::{self, Choice, Given, Said};

/// The fields of the usage of a chat completion. Those in the middle have the names that some providers give to tokens
/// that were read from a cache.
const USAGE: [&str; 9] = [
    "prompt_tokens",
    "completion_tokens",
    "estimated",
    "prompt_tokens_details",
    "completion_tokens_details",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
];

/// The finish reasons of an answer that may end within the arguments of a call.
const CUT: [&str; 2] = ["\"length\"", "\"content_filter\""];

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
    pub(super) fn read(usage: Json<'_>) -> Self {
        let count = |value: Option<Json<'_>>| value.and_then(Json::read::<u64>);
        let first =
            |values: &[Option<Json<'_>>]| values.iter().find_map(|value| count(*value)).unwrap_or_default();
        let [prompt, output, estimated, prompt_details, output_details, in_cache @ .., written] =
            usage.fields(USAGE).unwrap_or_default();
        let details =
            prompt_details.and_then(|details| details.fields(["cached_tokens", "cache_write_tokens"]));
        let [cached, cache_written] = details.unwrap_or_default();
        let thinking = output_details.and_then(|details| details.fields(["reasoning_tokens"]));
        let cache_read = count(cached).unwrap_or_else(|| first(&in_cache));
        let cache_written = first(&[cache_written, written]);
        Self {
            input: first(&[prompt]).saturating_sub(cache_read).saturating_sub(cache_written),
            cache_read,
            cache_written,
            output: first(&[output]),
            thinking: thinking.and_then(|[thinking]| count(thinking)),
            is_estimated: estimated.is_some_and(|estimated| estimated.get() == "true"),
        }
    }

    /// Writes it as a field.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        write_field(out, "usage", "{");
        write_number_field(out, "input_tokens", self.input);
        write_number_field(out, "cache_creation_input_tokens", self.cache_written);
        write_number_field(out, "cache_read_input_tokens", self.cache_read);
        write_number_field(out, "output_tokens", self.output);
        if let Some(thinking) = self.thinking {
            write_field(out, "output_tokens_details", "{");
            write_number_field(out, "thinking_tokens", thinking);
            out.push(b'}');
        }
        if self.is_estimated {
            write_field(out, "estimated", "true");
        }
        out.push(b'}');
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
    /// Why a choice ended; `None` if it does not say so.
    pub(super) fn read(choice: &Choice<'_>, has_calls: bool, sequences: &[String]) -> Option<Self> {
        let matched = choice.matched.into_iter().flatten().find_map(Json::string);
        Some(Self::new(&choice.finish?.string()?, has_calls, matched.as_deref(), sequences))
    }

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

    /// Writes it as fields.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_string_field(out, "stop_reason", self.reason);
        match &self.sequence {
            Some(sequence) => write_string_field(out, "stop_sequence", sequence),
            None => write_field(out, "stop_sequence", "null"),
        }
    }
}

/// An identifier of a message, of that of a completion: its own if it is one. Some servers give all completions the
/// same, and agents take messages of the same identifier for one.
fn message_id(id: &str) -> Cow<'_, str> {
    if id.starts_with("msg_") { id.into() } else { crate::id::new("msg").into() }
}

/// A citation for an annotation: one of a page on the web, or that of the Messages API as it was.
pub(super) fn citation(annotation: Json<'_>) -> Option<Cow<'_, str>> {
    let [kind, source] = annotation.fields(["type", "url_citation"])?;
    if kind.and_then(Json::string).is_some_and(|kind| kind.ends_with("_location")) {
        return Some(annotation.get().into());
    }
    let [url, title, content] =
        source?.fields(["url", "title", "content"])?.map(|value| value.filter(is_string));
    let mut out = b"{\"type\":\"web_search_result_location\"".to_vec();
    write_field(&mut out, "url", url?.get());
    write_field(&mut out, "title", title.map_or("null", Json::get));
    write_field(&mut out, "encrypted_index", "\"\"");
    write_field(&mut out, "cited_text", content.map_or("\"\"", Json::get));
    out.push(b'}');
    String::from_utf8(out).ok().map(Cow::Owned)
}

fn is_string(value: &Json<'_>) -> bool {
    value.is_string()
}

/// Writes the fields that every message begins with; `model` is JSON.
pub(super) fn write_head(id: &str, model: &str, out: &mut Vec<u8>) {
    write_string_field(out, "id", &message_id(id));
    write_field(out, "type", "\"message\"");
    write_field(out, "role", "\"assistant\"");
    write_field(out, "model", model);
}

/// A whole answer as a message; `None` if it is no completion, or has a call of a tool that cannot be read.
pub(super) fn message(completion: &[u8], shows_thinking: bool, stop_sequences: &[String]) -> Option<Bytes> {
    let Given { id, model, usage, choice, .. } = Given::read(std::str::from_utf8(completion).ok()?)?;
    let choice = choice?;
    let mut out = Vec::with_capacity(completion.len() + 256);
    out.push(b'{');
    write_head(&id?.string()?, model.map_or("null", Json::get), &mut out);
    let is_cut = choice.finish.is_some_and(|finish| CUT.contains(&finish.get()));
    let has_calls = write_content(choice.said.as_ref()?, (shows_thinking, is_cut), &mut out)?;
    Stop::read(&choice, has_calls, stop_sequences)?.write(&mut out);
    usage.map(Usage::read).unwrap_or_default().write(&mut out);
    out.push(b'}');
    Some(out.into())
}

/// Writes the blocks of a message, which may have been cut off; returns whether tools are called.
fn write_content(said: &Said<'_>, (shows_thinking, is_cut): (bool, bool), out: &mut Vec<u8>) -> Option<bool> {
    write_field(out, "content", "[");
    if let Some(thoughts) = raw::said(said.thoughts).filter(|_| shows_thinking) {
        out.extend_from_slice(b"{\"type\":\"thinking\"");
        raw::write_quoted(out, "thinking", thoughts);
        out.extend_from_slice(b",\"signature\":\"\"}");
    }
    for (text, annotations) in [(said.content, said.annotations), (said.refusal, None)] {
        let Some(text) = raw::said(text) else { continue };
        begin_element(out);
        out.extend_from_slice(b"{\"type\":\"text\"");
        raw::write_quoted(out, "text", text);
        let annotations = annotations.and_then(Json::items).unwrap_or_default();
        let citations: Vec<Cow<'_, str>> = annotations.into_iter().filter_map(citation).collect();
        if !citations.is_empty() {
            raw::write_list(out, "citations", citations.join(",").as_bytes());
        }
        out.push(b'}');
    }
    let calls = said.calls.and_then(Json::items).unwrap_or_default();
    for call in &calls {
        write_call(*call, is_cut, out)?;
    }
    out.push(b']');
    Some(!calls.is_empty())
}

fn write_call(call: Json<'_>, is_cut: bool, out: &mut Vec<u8>) -> Option<()> {
    let [id, function] = call.fields(["id", "function"])?;
    let [name, arguments] =
        function.and_then(|function| function.fields(["name", "arguments"])).unwrap_or_default();
    begin_element(out);
    out.extend_from_slice(b"{\"type\":\"tool_use\"");
    write_field(out, "id", &given::call_id(id));
    write_field(out, "name", name.map_or("null", Json::get));
    // Of half of the arguments nothing is told: who acts on them must not act on what was not meant.
    let input = input(arguments).or_else(|| is_cut.then_some("{}".into()))?;
    write_field(out, "input", &input);
    out.push(b'}');
    Some(())
}

/// The arguments of a call as an object; `None` if they are something else.
fn input(arguments: Option<Json<'_>>) -> Option<Cow<'_, str>> {
    let Some(arguments) = arguments else { return Some("{}".into()) };
    if arguments.is_object() {
        return Some(arguments.get().into());
    }
    let text = arguments.string()?;
    if text.trim().is_empty() {
        return Some("{}".into());
    }
    raw::value(&text)?.is_object().then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message_of(message: &Value, finish: &str, shows_thinking: bool) -> Option<Value> {
        let completion = json!({
            "id": "msg_1", "model": "a/b",
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "stop_reason": "END"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}},
        });
        let message = super::message(completion.to_string().as_bytes(), shows_thinking, &["END".to_owned()]);
        message.map(|message| serde_json::from_slice(&message).unwrap())
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
    fn a_call_without_an_id_gets_one() {
        for id in [json!(null), json!(""), json!(7)] {
            let call = json!({"id": id, "function": {"name": "f", "arguments": "{}"}});
            let answer = message_of(&json!({"tool_calls": [call, call]}), "tool_calls", false).unwrap();
            let ids = [0, 1].map(|at: usize| answer["content"][at]["id"].as_str().unwrap_or_default());
            assert!(ids[0].starts_with("call_") && ids[0] != ids[1], "{answer}");
        }
    }

    #[test]
    fn a_call_that_the_end_cuts_off_has_no_arguments() {
        let calls = json!([
            {"id": "a", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"id": "b", "function": {"name": "f", "arguments": "{\"a\":\"half"}},
        ]);
        for (finish, reason) in [("length", "max_tokens"), ("content_filter", "refusal")] {
            let answer = message_of(&json!({"content": "hi", "tool_calls": calls}), finish, false).unwrap();
            assert_eq!(answer["stop_reason"], reason);
            assert_eq!(answer["content"][1]["input"], json!({"a": 1}));
            assert_eq!(
                answer["content"][2],
                json!({"type": "tool_use", "id": "b", "name": "f", "input": {}})
            );
        }
    }

    #[test]
    fn a_call_that_cannot_be_read_is_no_answer() {
        for arguments in [json!("{"), json!("7"), json!([1])] {
            let call = json!({"id": "c", "function": {"name": "f", "arguments": arguments}});
            assert_eq!(message_of(&json!({"tool_calls": [call]}), "tool_calls", false), None);
        }
    }
}
