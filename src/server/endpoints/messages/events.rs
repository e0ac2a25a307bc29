//! A streamed answer as the events of the Messages API: `message_start`, for each block its start, deltas and stop, then
//! `message_delta` with the reason of the end and the usage, and `message_stop`. Pure.
//!
//! Blocks come one after the other, as clients expect, so a chunk of another kind ends the one that is open. Texts go
//! from the chunk into the event as they are in JSON, without being decoded.

use std::sync::Arc;

use bytes::Bytes;

use super::answer::{Stop, Usage, citation, write_head};
use crate::api::endpoint::Door;
use crate::inference::{Failure, Json};
use crate::json::fields::{write_field, write_number_field};
use crate::json::raw;
use crate::server::endpoints::chat::VERIFICATION as FIELD;
use crate::server::endpoints::chat::given::{self, Given, Said};
use crate::server::endpoints::chat::stream::{Transcoder, write_event};
use crate::server::reply::ApiError;

/// The event that keeps an idle stream alive.
pub(super) const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// The state of one answer.
pub(super) struct Events {
    request_id: Arc<str>,
    /// The full identifier of the model that answers.
    model: Arc<str>,
    shows_thinking: bool,
    stop_sequences: Vec<String>,
    usage: Usage,
    has_begun: bool,
    /// The block that is open.
    open: Option<Block>,
    /// How many blocks have begun.
    blocks: usize,
    /// The number of the last call of a tool that has begun.
    last_call: Option<u64>,
    stop: Option<Stop>,
    /// What was found about the answer, as JSON.
    verification: Option<Box<str>>,
    /// Whether the end has been written, after which nothing follows.
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Thinking,
    Text,
    /// The call of a tool with this number.
    Call(u64),
}

impl Events {
    pub(super) fn new(
        request_id: Arc<str>,
        (model, prompt_tokens): (Arc<str>, u64),
        shows_thinking: bool,
        stop_sequences: Vec<String>,
    ) -> Self {
        Self {
            request_id,
            model,
            shows_thinking,
            stop_sequences,
            usage: Usage::before(prompt_tokens),
            has_begun: false,
            open: None,
            blocks: 0,
            last_call: None,
            stop: None,
            verification: None,
            is_over: false,
        }
    }

    /// Translates a chunk; `None` if it cannot be read.
    fn chunk(&mut self, chunk: &str, out: &mut Vec<u8>) -> Option<()> {
        let Given { id, model, usage, choice, .. } = Given::read(chunk)?;
        if !self.has_begun {
            self.begin(&id?.string()?, model?, out);
        }
        if let Some(usage) = usage {
            self.usage = Usage::read(usage);
        }
        let Some(choice) = choice else { return Some(()) };
        if let Some(said) = &choice.said {
            self.said(said, out)?;
        }
        if choice.finish.is_some() {
            self.stop = Some(Stop::read(&choice, self.last_call.is_some(), &self.stop_sequences)?);
        }
        Some(())
    }

    fn begin(&mut self, id: &str, model: Json<'_>, out: &mut Vec<u8>) {
        self.has_begun = true;
        write_event("message_start", out, |out| {
            write_field(out, "message", "{");
            write_head(id, model.get(), out);
            for (name, value) in [("content", "[]"), ("stop_reason", "null"), ("stop_sequence", "null")] {
                write_field(out, name, value);
            }
            self.usage.write(out);
            out.push(b'}');
        });
    }

    fn said(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> Option<()> {
        let thoughts = said.thoughts.filter(|_| self.shows_thinking);
        if let Some(thoughts) = raw::said(thoughts) {
            self.ensure(Block::Thinking, out);
            self.delta_of("thinking_delta", out, |out| raw::write_quoted(out, "thinking", thoughts));
        }
        for text in [said.content, said.refusal] {
            let Some(text) = raw::said(text) else { continue };
            self.ensure(Block::Text, out);
            self.delta_of("text_delta", out, |out| raw::write_quoted(out, "text", text));
        }
        if let Some(annotations) = said.annotations.filter(|_| self.open == Some(Block::Text)) {
            for annotation in annotations.items()? {
                if let Some(citation) = citation(annotation) {
                    self.delta_of("citations_delta", out, |out| write_field(out, "citation", &citation));
                }
            }
        }
        for call in said.calls.map(Json::items).unwrap_or_default().unwrap_or_default() {
            self.call(call, out)?;
        }
        Some(())
    }

    /// Translates a piece of a call; `None` if it belongs to none, or to one that has ended.
    fn call(&mut self, call: Json<'_>, out: &mut Vec<u8>) -> Option<()> {
        let [number, id, function] = call.fields(["index", "id", "function"])?;
        let number = number.map_or(Some(0), Json::read::<u64>)?;
        let [name, arguments] =
            function.map_or(Some([None; 2]), |function| function.fields(["name", "arguments"]))?;
        if self.open != Some(Block::Call(number)) {
            if self.last_call.is_some_and(|last| number <= last) {
                return None;
            }
            self.close(out);
            self.last_call = Some(number);
            let name = name.filter(|name| name.is_string())?;
            self.start(Block::Call(number), out, |out| {
                out.extend_from_slice(b"{\"type\":\"tool_use\"");
                write_field(out, "id", &given::call_id(id));
                write_field(out, "name", name.get());
                out.extend_from_slice(b",\"input\":{}}");
            });
        }
        let piece = given::arguments(arguments);
        if !piece.is_empty() {
            self.delta_of("input_json_delta", out, |out| raw::write_quoted(out, "partial_json", &piece));
        }
        Some(())
    }

    /// Opens a block, unless it is open.
    fn ensure(&mut self, block: Block, out: &mut Vec<u8>) {
        if self.open == Some(block) {
            return;
        }
        self.close(out);
        let content: &[u8] = match block {
            Block::Thinking => b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
            Block::Text | Block::Call(_) => b"{\"type\":\"text\",\"text\":\"\"}",
        };
        self.start(block, out, |out| out.extend_from_slice(content));
    }

    fn start(&mut self, block: Block, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.open = Some(block);
        self.blocks += 1;
        self.of_block("content_block_start", out, |out| {
            write_field(out, "content_block", "");
            write(out);
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            self.of_block("content_block_stop", out, |_| {});
        }
    }

    /// Writes a delta of the block that is open; `rest` writes its fields beside the type.
    fn delta_of(&self, kind: &str, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>)) {
        self.of_block("content_block_delta", out, |out| {
            for part in [",\"delta\":{\"type\":\"", kind, "\""] {
                out.extend_from_slice(part.as_bytes());
            }
            rest(out);
            out.push(b'}');
        });
    }

    /// Writes an event about the last block; `rest` writes its fields.
    fn of_block(&self, kind: &str, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>)) {
        write_event(kind, out, |out| {
            write_number_field(out, "index", self.blocks.saturating_sub(1) as u64);
            rest(out);
        });
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        let stop = self.stop.take().unwrap_or_else(|| Stop::new("stop", false, None, &[]));
        write_event("message_delta", out, |out| {
            write_field(out, "delta", "{");
            stop.write(out);
            out.push(b'}');
            self.usage.write(out);
        });
        write_event("message_stop", out, |out| {
            if let Some(verification) = &self.verification {
                write_field(out, FIELD, verification);
            }
        });
        self.is_over = true;
    }
}

impl Transcoder for Events {
    fn chunks(&mut self, sse: &[u8], out: &mut Vec<u8>) {
        for chunk in given::chunks(sse) {
            if self.is_over {
                return;
            }
            if chunk == "[DONE]" {
                self.end(out);
            } else if self.chunk(chunk, out).is_none() {
                self.fail(ApiError::broken_stream(&self.model, Failure::Malformed), out);
            }
        }
    }

    fn verified(&mut self, verification: &str) {
        self.verification = Some(verification.into());
    }

    fn fail(&mut self, error: ApiError, out: &mut Vec<u8>) {
        if !self.is_over {
            write_error(error, &self.request_id, out);
            self.is_over = true;
        }
    }

    fn keep_alive(&self) -> Bytes {
        Bytes::from_static(PING)
    }
}

/// Writes the event that ends an answer that broke off.
pub(super) fn write_error(error: ApiError, request_id: &str, out: &mut Vec<u8>) {
    let (body, _) = error.into_parts(Door::Anthropic, request_id);
    out.extend_from_slice(b"event: error\ndata: ");
    out.extend_from_slice(&body);
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn chunk(delta: &Value, finish: &Value) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "chatcmpl-1", "model": "a/b", "choices": [choice]}))
    }

    /// The events of these chunks: name and data.
    fn events(chunks: &[String]) -> Vec<Value> {
        let mut events = Events::new("req-1".into(), ("a/b".into(), 7), true, Vec::new());
        let mut out = Vec::new();
        for chunk in chunks {
            events.chunks(chunk.as_bytes(), &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let event = |frame: &str| {
            let (name, data) = frame.split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
            data
        };
        text.split_terminator("\n\n").map(event).collect()
    }

    fn types(events: &[Value]) -> Vec<&str> {
        events.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn blocks_follow_each_other() {
        let call = |number: u64, piece: &str| json!({"tool_calls": [{"index": number, "id": format!("c{number}"), "function": {"name": "f", "arguments": piece}}]});
        let more = |number: u64, piece: &str| json!({"tool_calls": [{"index": number, "function": {"arguments": piece}}]});
        let null = Value::Null;
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 3});
        let got = events(&[
            chunk(&json!({"role": "assistant", "content": ""}), &null),
            chunk(&json!({"reasoning_content": "hm"}), &null),
            chunk(&json!({"content": "é\n\"x"}), &null),
            chunk(&json!({"content": "y"}), &null),
            chunk(&call(0, ""), &null),
            chunk(&more(0, "{\"a\":"), &null),
            chunk(&more(0, "1}"), &null),
            chunk(&call(1, "{}"), &null),
            chunk(&json!({}), &json!("tool_calls")),
            format!("data: {}\n\n", json!({"id": "c", "model": "a/b", "choices": [], "usage": usage})),
            "data: [DONE]\n\n".to_owned(),
        ]);
        let (start, delta, stop) = ("content_block_start", "content_block_delta", "content_block_stop");
        let expected = [
            "message_start",
            start,
            delta,
            stop,
            start,
            delta,
            delta,
            stop,
            start,
            delta,
            delta,
            stop,
            start,
            delta,
            stop,
            "message_delta",
            "message_stop",
        ];
        assert_eq!(types(&got), expected);
        assert_eq!(got[0]["message"]["usage"]["input_tokens"], 7);
        assert_eq!(got[5]["delta"], json!({"type": "text_delta", "text": "é\n\"x"}));
        assert_eq!(
            got[8]["content_block"],
            json!({"type": "tool_use", "id": "c0", "name": "f", "input": {}})
        );
        assert_eq!((&got[10]["index"], &got[10]["delta"]["partial_json"]), (&json!(2), &json!("1}")));
        assert_eq!(got[15]["delta"], json!({"stop_reason": "tool_use", "stop_sequence": null}));
        assert_eq!(
            (&got[15]["usage"]["input_tokens"], &got[15]["usage"]["output_tokens"]),
            (&json!(9), &json!(3))
        );
    }

    #[test]
    fn a_call_without_an_id_gets_one() {
        for id in [Value::Null, json!("")] {
            let call = |number: u64| json!({"tool_calls": [{"index": number, "id": id, "function": {"name": "f", "arguments": {"a": 1}}}]});
            let got = events(&[chunk(&call(0), &Value::Null), chunk(&call(1), &Value::Null)]);
            let ids = [1, 4].map(|at: usize| got[at]["content_block"]["id"].as_str().unwrap_or_default());
            assert!(ids[0].starts_with("call_") && ids[0] != ids[1], "{got:?}");
            assert_eq!(got[2]["delta"]["partial_json"], "{\"a\":1}");
        }
    }

    #[test]
    fn what_cannot_be_told_ends_with_an_error() {
        let call = |number: u64| json!({"tool_calls": [{"index": number, "id": "c", "function": {"name": "f", "arguments": ""}}]});
        let interleaved =
            [chunk(&call(0), &Value::Null), chunk(&call(1), &Value::Null), chunk(&call(0), &Value::Null)];
        for chunks in
            [&interleaved[..], &["data: {\"id\":7}\n\n".to_owned()], &["data: nonsense\n\n".to_owned()]]
        {
            let mut chunks = chunks.to_vec();
            chunks.push("data: [DONE]\n\n".to_owned());
            let got = events(&chunks);
            let last = got.last().unwrap();
            assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("api_error")));
            assert_eq!(last["request_id"], "req-1");
            let message = last["error"]["message"].as_str().unwrap();
            assert!(message.starts_with("the provider a sent an unreadable answer"), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_chunk_makes_it_panic(
            chunk in r#"data: \{("(id|model|choices|usage)":("x"|null|\[\{("(delta|finish_reason)":("stop"|\{("(content|annotations|tool_calls)":("a"|\[\{\}\]|7),?){0,2}\}),?){0,2}\}\]|\{\}),?){0,4}\}?"#
        ) {
            let mut events = Events::new("".into(), ("a/b".into(), 0), true, Vec::new());
            events.chunks(format!("{chunk}\n\ndata: [DONE]\n\n").as_bytes(), &mut Vec::new());
        }
    }
}
