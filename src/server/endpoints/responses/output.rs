//! The items of an answer: what the model thought and said, and what it calls.
//!
//! A whole answer and a stream make the same items. In a stream they grow, so texts are kept as they arrive: as insides
//! of JSON strings.

use super::tools::{self, Names, Tool};
use crate::inference::{Json, Reader};
use crate::json::fields::{write_field, write_string_field};
use crate::json::raw;
use crate::server::endpoints::chat::compose::EXTRA_CONTENT;
use crate::server::endpoints::chat::given::{self, Said};

/// An item of an answer.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) status: Status,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// What the model thought, as far as it is told.
    Reasoning { text: String },
    /// What it said.
    Message(Message),
    /// What it refused to say.
    Refusal { text: String },
    /// A call of one of the caller's tools.
    Call(FunctionCall),
    /// An image that it made: in base64, as a JSON string.
    Image { base64: String },
}

impl Kind {
    pub(super) const fn thought() -> Self {
        Self::Reasoning { text: String::new() }
    }

    pub(super) fn message() -> Self {
        Self::Message(Message::default())
    }

    pub(super) const fn refusal() -> Self {
        Self::Refusal { text: String::new() }
    }
}

/// A text, which is the inside of a JSON string, with its sources and probabilities, which are elements of arrays.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) annotations: Vec<String>,
    pub(super) probabilities: Vec<String>,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct FunctionCall {
    /// The id, as a JSON string.
    id: String,
    pub(super) tool: Tool,
    /// The inside of the arguments, which are JSON in a string.
    pub(super) arguments: String,
    /// What a provider adds to a call.
    extra: Option<String>,
}

/// How far an item, or an answer, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl Status {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}

impl Item {
    /// One that has begun.
    pub(super) fn new(kind: Kind) -> Self {
        let prefix = match &kind {
            Kind::Reasoning { .. } => "rs",
            Kind::Message(_) | Kind::Refusal { .. } => "msg",
            Kind::Call(call) if call.tool.is_custom => "ctc",
            Kind::Call(_) => "fc",
            Kind::Image { .. } => "ig",
        };
        Self { id: crate::id::new(prefix), status: Status::InProgress, kind }
    }

    /// Writes the item as an object; as one that has only begun, without its content.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let has_begun = self.status == Status::InProgress;
        let content = |text: &str| if has_begun { "[]".to_owned() } else { format!("[{text}]") };
        out.push(b'{');
        write_string_field(out, "id", &self.id);
        match &self.kind {
            Kind::Reasoning { text } => {
                write_field(out, "type", "\"reasoning\"");
                write_field(out, "summary", &content(&summary(text)));
                // There is nothing to encrypt; a client that asks for it expects the field.
                write_field(out, "encrypted_content", "null");
            }
            Kind::Message(message) => {
                write_field(out, "type", "\"message\"");
                write_field(out, "role", "\"assistant\"");
                write_field(out, "content", &content(&message.part()));
            }
            Kind::Refusal { text } => {
                write_field(out, "type", "\"message\"");
                write_field(out, "role", "\"assistant\"");
                write_field(out, "content", &content(&refusal(text)));
            }
            Kind::Call(call) => call.write(has_begun, out),
            Kind::Image { base64 } => {
                write_field(out, "type", "\"image_generation_call\"");
                write_field(out, "result", if has_begun { "null" } else { base64 });
            }
        }
        write_string_field(out, "status", self.status.as_str());
        out.push(b'}');
    }
}

impl Message {
    /// The text as a part.
    pub(super) fn part(&self) -> String {
        format!(
            "{{\"type\":\"output_text\",\"text\":\"{}\",\"annotations\":[{}],\"logprobs\":[{}]}}",
            self.text,
            self.annotations.join(","),
            self.probabilities.join(",")
        )
    }
}

/// A refusal as a part.
pub(super) fn refusal(text: &str) -> String {
    format!("{{\"type\":\"refusal\",\"refusal\":\"{text}\"}}")
}

/// A thought as a part.
pub(super) fn summary(text: &str) -> String {
    format!("{{\"type\":\"summary_text\",\"text\":\"{text}\"}}")
}

impl FunctionCall {
    /// A call, or its beginning, as the chat-completion format has it; `None` if it cannot be read.
    pub(super) fn read(call: Json<'_>, names: &Names) -> Option<Self> {
        let [id, function, extra] = call.fields(["id", "function", EXTRA_CONTENT])?;
        let [name, arguments] = function?.fields(["name", "arguments"])?;
        let tool = names.tool(&name.and_then(Json::string).unwrap_or_default());
        let (id, arguments) = (given::call_id(id).into_owned(), given::arguments(arguments).into_owned());
        Some(Self { id, tool, arguments, extra: extra.map(|extra| extra.get().to_owned()) })
    }

    /// The input of a custom tool, as a JSON string.
    pub(super) fn input(&self) -> String {
        tools::input_of(&raw::quoted(&self.arguments))
    }

    fn write(&self, has_begun: bool, out: &mut Vec<u8>) {
        if self.tool.is_custom {
            write_field(out, "type", "\"custom_tool_call\"");
            let input = if has_begun { "\"\"".to_owned() } else { self.input() };
            write_field(out, "input", &input);
        } else {
            let arguments = if has_begun { "" } else { self.arguments.as_str() };
            write_field(out, "type", "\"function_call\"");
            write_field(out, "arguments", &raw::quoted(arguments));
        }
        write_field(out, "call_id", &self.id);
        write_string_field(out, "name", &self.tool.name);
        if let Some(namespace) = &self.tool.namespace {
            write_string_field(out, "namespace", namespace);
        }
        if let Some(extra) = &self.extra {
            write_field(out, EXTRA_CONTENT, extra);
        }
    }
}

/// The items of a whole answer: of a `message` of the chat-completion format, and the probabilities of its choice. Of an
/// answer that is incomplete, the last is.
pub(super) fn items(
    said: &Said<'_>,
    probabilities: Option<Json<'_>>,
    names: &Names,
    status: Status,
) -> Vec<Item> {
    let mut items = Vec::new();
    if let Some(text) = raw::said(said.thoughts) {
        items.push(Item::new(Kind::Reasoning { text: text.to_owned() }));
    }
    let (text, refused) = (raw::said(said.content), raw::said(said.refusal));
    let images = elements(said.images).into_iter().filter_map(image);
    let calls = elements(said.calls).into_iter().filter_map(|call| FunctionCall::read(call, names));
    let others: Vec<Item> = images.chain(calls.map(Kind::Call)).map(Item::new).collect();
    // An answer of nothing is an answer as well.
    if text.is_some() || (refused.is_none() && others.is_empty()) {
        let text = text.unwrap_or_default().to_owned();
        let annotations = elements(said.annotations).into_iter().filter_map(annotation).collect();
        let probabilities = probabilities.map(token_probabilities).unwrap_or_default();
        items.push(Item::new(Kind::Message(Message { text, annotations, probabilities })));
    }
    if let Some(text) = refused {
        items.push(Item::new(Kind::Refusal { text: text.to_owned() }));
    }
    items.extend(others);
    for item in &mut items {
        item.status = Status::Completed;
    }
    if let Some(last) = items.last_mut() {
        last.status = status;
    }
    items
}

/// The elements of an array, if it is one.
pub(super) fn elements(value: Option<Json<'_>>) -> Vec<Json<'_>> {
    value.and_then(Json::items).unwrap_or_default()
}

/// The elements of a choice's `logprobs`.
pub(super) fn token_probabilities(value: Json<'_>) -> Vec<String> {
    let content = value.fields(["content"]).and_then(|[content]| content);
    elements(content).into_iter().map(|token| token.get().to_owned()).collect()
}

/// A source of the text: what stands inside of its own field there stands beside its type here.
pub(super) fn annotation(value: Json<'_>) -> Option<String> {
    let [kind, citation] = value.fields(["type", "url_citation"])?;
    let kind = kind.filter(|kind| kind.is_string())?;
    let Some(citation) = citation else { return Some(value.get().to_owned()) };
    let inside = citation.get().strip_prefix('{')?.trim_start();
    let comma = if inside == "}" { "" } else { "," };
    Some(format!("{{\"type\":{}{comma}{inside}", kind.get()))
}

/// An image, of an entry of `images`: in base64 if the entry has it, or its address.
pub(super) fn image(value: Json<'_>) -> Option<Kind> {
    let url = value.fields(["image_url"]).and_then(|[image]| image?.fields(["url"])?[0])?;
    let text = url.is_string().then(|| raw::inside(url))?;
    let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
    Some(Kind::Image { base64: raw::quoted(data) })
}

/// The parts of a usage: the whole, and what it is made of.
pub(super) fn usage(usage: Json<'_>) -> Option<String> {
    let known = [
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "estimated",
    ];
    let [input, output, total, input_details, output_details, estimated] = usage.fields(known)?;
    let number = |value: Option<Json<'_>>| value.and_then(Json::read::<u64>).unwrap_or_default();
    let detail = |details: Option<Json<'_>>, name| {
        number(details.and_then(|details| Reader::new(details.get()).fields([name])?[0]))
    };
    let (input, output) = (number(input), number(output));
    let total = total.map_or(input.saturating_add(output), |total| number(Some(total)));
    let estimated =
        if estimated.is_some_and(|estimated| estimated.get() == "true") { ",\"estimated\":true" } else { "" };
    Some(format!(
        "{{\"input_tokens\":{input},\"input_tokens_details\":{{\"cached_tokens\":{},\"cache_write_tokens\":{}}},\
         \"output_tokens\":{output},\"output_tokens_details\":{{\"reasoning_tokens\":{}}},\
         \"total_tokens\":{total}{estimated}}}",
        detail(input_details, "cached_tokens"),
        detail(input_details, "cache_write_tokens"),
        detail(output_details, "reasoning_tokens"),
    ))
}
