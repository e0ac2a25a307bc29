//! A streamed answer as the typed events of a response, made of the chunks of a chat completion.
//!
//! In order: `response.created`, `response.in_progress`; for each item its beginning, what is added to it and its end;
//! then `response.completed`, `response.incomplete` or `response.failed` with the whole answer. Thoughts and texts end
//! where something else begins; calls, which may arrive mixed, all end with the answer. What is kept of the answer for
//! its end is as long as the answer, which the relay bounds.

use super::frame::Frames;
use super::output::{self, FunctionCall, Item, Kind, Status};
use super::response::{End, Reason, Response};
use super::tools::Names;
use crate::inference::Json;
use crate::json::fields::{write_field, write_number_field};
use crate::json::raw;
use crate::server::endpoints::chat::given::{self, Given, Said};
use crate::server::endpoints::chat::stream::Transcoder;
use crate::server::reply::ApiError;

const CONTENT: Option<&str> = Some("content_index");
const SUMMARY: Option<&str> = Some("summary_index");

/// Writes the events of one answer.
#[derive(Debug)]
pub(super) struct Events {
    response: Response,
    names: Names,
    frames: Frames,
    items: Vec<Item>,
    /// The item that more may be added to, unless it is a call.
    open: Option<usize>,
    /// The items of the calls, by their numbers in the chat-completion format.
    calls: Vec<(u64, usize)>,
    has_begun: bool,
    reason: Reason,
    /// The provider's own word for the end, as JSON.
    word: Option<String>,
    usage: Option<String>,
}

impl Events {
    pub(super) fn new(response: Response, names: Names) -> Self {
        Self {
            response,
            names,
            frames: Frames::default(),
            items: Vec::new(),
            open: None,
            calls: Vec::new(),
            has_begun: false,
            reason: Reason::Done,
            word: None,
            usage: None,
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        for kind in ["response.created", "response.in_progress"] {
            self.frames.event(kind, out, |out| {
                write_field(out, "response", "");
                self.response.write_begun(out);
            });
        }
    }

    fn chunk(&mut self, data: &str, out: &mut Vec<u8>) {
        let Some(Given { usage, choice, .. }) = Given::read(data) else { return };
        if let Some(usage) = usage {
            self.usage = output::usage(usage);
        }
        let Some(choice) = choice else { return };
        if let Some(said) = choice.said {
            self.said(&said, choice.probabilities, out);
        }
        if choice.finish.is_some() {
            self.reason = Reason::of(choice.finish);
            self.word = choice.word.map(|word| word.get().to_owned());
        }
    }

    fn said(&mut self, said: &Said<'_>, probabilities: Option<Json<'_>>, out: &mut Vec<u8>) {
        if let Some(text) = raw::said(said.thoughts) {
            let at = self.open(|kind| matches!(kind, Kind::Reasoning { .. }), Kind::thought, out);
            self.add_text(at, text, "response.reasoning_summary_text.delta", SUMMARY, out);
        }
        if let Some(text) = raw::said(said.content) {
            let at = self.open(|kind| matches!(kind, Kind::Message(_)), Kind::message, out);
            let probabilities = probabilities.map(output::token_probabilities).unwrap_or_default();
            self.add_message(at, text, probabilities, out);
        }
        for annotation in output::elements(said.annotations).into_iter().filter_map(output::annotation) {
            let at = self.open(|kind| matches!(kind, Kind::Message(_)), Kind::message, out);
            self.add_annotation(at, annotation, out);
        }
        if let Some(text) = raw::said(said.refusal) {
            let at = self.open(|kind| matches!(kind, Kind::Refusal { .. }), Kind::refusal, out);
            self.add_text(at, text, "response.refusal.delta", CONTENT, out);
        }
        for image in output::elements(said.images).into_iter().filter_map(output::image) {
            self.end_open(Status::Completed, out);
            let at = self.add(image, out);
            self.end_item(at, Status::Completed, out);
        }
        for call in output::elements(said.calls) {
            self.call(call, out);
        }
    }

    /// Adds to a thought or a refusal.
    fn add_text(
        &mut self,
        at: usize,
        text: &str,
        kind: &str,
        index: Option<&'static str>,
        out: &mut Vec<u8>,
    ) {
        let Some(item) = self.items.get_mut(at) else { return };
        if let Kind::Reasoning { text: all } | Kind::Refusal { text: all } = &mut item.kind {
            all.push_str(text);
        }
        self.frames.of_item(kind, (at, item), index, out, |out| raw::write_quoted(out, "delta", text));
    }

    fn add_message(&mut self, at: usize, text: &str, probabilities: Vec<String>, out: &mut Vec<u8>) {
        let Some(item) = self.items.get_mut(at) else { return };
        let joined = probabilities.join(",");
        if let Kind::Message(message) = &mut item.kind {
            message.text.push_str(text);
            message.probabilities.extend(probabilities);
        }
        self.frames.of_item("response.output_text.delta", (at, item), CONTENT, out, |out| {
            raw::write_quoted(out, "delta", text);
            raw::write_list(out, "logprobs", joined.as_bytes());
        });
    }

    fn add_annotation(&mut self, at: usize, annotation: String, out: &mut Vec<u8>) {
        let Some(item) = self.items.get(at) else { return };
        let Kind::Message(message) = &item.kind else { return };
        let number = message.annotations.len().to_string();
        let kind = "response.output_text.annotation.added";
        self.frames.of_item(kind, (at, item), CONTENT, out, |out| {
            write_field(out, "annotation_index", &number);
            write_field(out, "annotation", &annotation);
        });
        if let Some(Item { kind: Kind::Message(message), .. }) = self.items.get_mut(at) {
            message.annotations.push(annotation);
        }
    }

    /// Adds to a call, or begins one.
    fn call(&mut self, value: Json<'_>, out: &mut Vec<u8>) {
        let number = value.fields(["index"]).and_then(|[index]| index?.read::<u64>()).unwrap_or_default();
        let Some(mut call) = FunctionCall::read(value, &self.names) else { return };
        let arguments = std::mem::take(&mut call.arguments);
        let known = self.calls.iter().find(|(known, _)| *known == number).map(|(_, at)| *at);
        let at = known.unwrap_or_else(|| {
            self.end_open(Status::Completed, out);
            let at = self.add(Kind::Call(call), out);
            self.calls.push((number, at));
            at
        });
        let Some(item) = self.items.get_mut(at) else { return };
        let Kind::Call(call) = &mut item.kind else { return };
        call.arguments.push_str(&arguments);
        // The text of a custom tool is known only once its arguments are.
        if !call.tool.is_custom && !arguments.is_empty() {
            let kind = "response.function_call_arguments.delta";
            let write = |out: &mut Vec<u8>| raw::write_quoted(out, "delta", &arguments);
            self.frames.of_item(kind, (at, item), None, out, write);
        }
    }

    /// The item that is open, if it is of this kind; otherwise a new one, which ends the one that was open.
    fn open(
        &mut self,
        is_meant: impl Fn(&Kind) -> bool,
        new: impl FnOnce() -> Kind,
        out: &mut Vec<u8>,
    ) -> usize {
        let open = self.open.filter(|at| self.items.get(*at).is_some_and(|item| is_meant(&item.kind)));
        open.unwrap_or_else(|| {
            self.end_open(Status::Completed, out);
            let at = self.add(new(), out);
            self.open = Some(at);
            at
        })
    }

    /// Begins an item.
    fn add(&mut self, kind: Kind, out: &mut Vec<u8>) -> usize {
        let (at, item) = (self.items.len(), Item::new(kind));
        self.frames.event("response.output_item.added", out, |out| {
            write_number_field(out, "output_index", at as u64);
            write_field(out, "item", "");
            item.write(out);
        });
        let part = match &item.kind {
            Kind::Reasoning { text } => {
                Some(("response.reasoning_summary_part", SUMMARY, output::summary(text)))
            }
            Kind::Message(message) => Some(("response.content_part", CONTENT, message.part())),
            Kind::Refusal { text } => Some(("response.content_part", CONTENT, output::refusal(text))),
            Kind::Call(_) | Kind::Image { .. } => None,
        };
        if let Some((kind, index, part)) = part {
            let kind = format!("{kind}.added");
            self.frames.of_item(&kind, (at, &item), index, out, |out| write_field(out, "part", &part));
        }
        self.items.push(item);
        at
    }

    fn end_open(&mut self, status: Status, out: &mut Vec<u8>) {
        if let Some(at) = self.open.take() {
            self.end_item(at, status, out);
        }
    }

    fn end_item(&mut self, at: usize, status: Status, out: &mut Vec<u8>) {
        let Some(item) = self.items.get_mut(at) else { return };
        item.status = status;
        let (item, frames) = ((at, &*item), &mut self.frames);
        match &item.1.kind {
            Kind::Reasoning { text } => {
                let done = |out: &mut Vec<u8>| raw::write_quoted(out, "text", text);
                frames.of_item("response.reasoning_summary_text.done", item, SUMMARY, out, done);
                let part = |out: &mut Vec<u8>| write_field(out, "part", &output::summary(text));
                frames.of_item("response.reasoning_summary_part.done", item, SUMMARY, out, part);
            }
            Kind::Message(message) => {
                frames.of_item("response.output_text.done", item, CONTENT, out, |out| {
                    raw::write_quoted(out, "text", &message.text);
                    raw::write_list(out, "logprobs", message.probabilities.join(",").as_bytes());
                });
                let part = |out: &mut Vec<u8>| write_field(out, "part", &message.part());
                frames.of_item("response.content_part.done", item, CONTENT, out, part);
            }
            Kind::Refusal { text } => {
                let done = |out: &mut Vec<u8>| raw::write_quoted(out, "refusal", text);
                frames.of_item("response.refusal.done", item, CONTENT, out, done);
                let part = |out: &mut Vec<u8>| write_field(out, "part", &output::refusal(text));
                frames.of_item("response.content_part.done", item, CONTENT, out, part);
            }
            Kind::Call(call) if call.tool.is_custom => {
                let input = call.input();
                for (kind, name) in [("delta", "delta"), ("done", "input")] {
                    let kind = format!("response.custom_tool_call_input.{kind}");
                    frames.of_item(&kind, item, None, out, |out| write_field(out, name, &input));
                }
            }
            Kind::Call(call) => {
                let done = |out: &mut Vec<u8>| raw::write_quoted(out, "arguments", &call.arguments);
                frames.of_item("response.function_call_arguments.done", item, None, out, done);
            }
            Kind::Image { .. } => {}
        }
        frames.event("response.output_item.done", out, |out| {
            write_number_field(out, "output_index", at as u64);
            write_field(out, "item", "");
            item.1.write(out);
        });
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        // An answer of nothing is an answer as well.
        if self.items.is_empty() {
            self.open(|_| false, Kind::message, out);
        }
        let status = self.reason.status();
        self.end_open(status, out);
        for (_, at) in std::mem::take(&mut self.calls) {
            self.end_item(at, status, out);
        }
        let end = End::Finished { reason: self.reason, word: self.word.take() };
        self.end(&end, out);
    }

    /// Writes the last event.
    fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        let kind = match end.status() {
            Status::Completed => "response.completed",
            Status::Failed => "response.failed",
            Status::Incomplete | Status::InProgress => "response.incomplete",
        };
        self.frames.event(kind, out, |out| {
            write_field(out, "response", "");
            self.response.write_ended(end, &self.items, self.usage.as_deref(), out);
        });
    }
}

impl Transcoder for Events {
    fn chunks(&mut self, sse: &[u8], out: &mut Vec<u8>) {
        for data in given::chunks(sse) {
            if data == "[DONE]" {
                self.finish(out);
            } else {
                self.begin(out);
                self.chunk(data, out);
            }
        }
    }

    fn verified(&mut self, verification: &str) {
        self.response.verification = Some(verification.into());
    }

    fn fail(&mut self, error: ApiError, out: &mut Vec<u8>) {
        self.begin(out);
        // None of them is whole.
        let begun = self.items.iter_mut().filter(|item| item.status == Status::InProgress);
        begun.for_each(|item| item.status = Status::Incomplete);
        let error = error.into_chunk_error();
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        self.end(&End::Failed { code: text("code"), message: text("message") }, out);
    }
}
