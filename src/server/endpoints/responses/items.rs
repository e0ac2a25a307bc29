//! The items of a request's `input`, as messages of the chat-completion format.
//!
//! What a model did in one turn is several items and one message: its text and its calls are joined again. Texts stay
//! the bytes they are. Reasoning is left out: only the model that wrote it can make something of it. What the result of a
//! tool shows besides text comes in a user's message after the results, because in that format the message of a tool
//! holds nothing but text. Items are written one by one as they are read, since a body can have millions of them.

use std::borrow::Cow;

use super::content::{Content, Said, string, unsupported};
use super::tools::{self, Tool};
use crate::inference::{Json, Reader};
use crate::json::fields::{begin_element, write_field};
use crate::json::raw;
use crate::server::endpoints::chat::{compose, invalid, missing};
use crate::server::reply::{ApiError, ErrorCode};

const ITEM: [&str; 8] =
    ["type", "role", "call_id", "name", "namespace", "arguments", "input", compose::EXTRA_CONTENT];

/// An item: the values of [`ITEM`], and of its two fields with a content.
#[derive(Debug, Default)]
struct Item<'a> {
    fields: [Option<Json<'a>>; ITEM.len()],
    content: Option<Result<Content<'a>, ApiError>>,
    output: Option<Result<Content<'a>, ApiError>>,
}

impl<'a> Item<'a> {
    /// Reads an object; `None` if it is something else, or has a field twice.
    fn read(reader: &mut Reader<'a>, index: usize) -> Option<Self> {
        let mut item = Self::default();
        item.fields = reader.fields_with(ITEM, |name, reader| {
            let (content, name) = match name {
                "content" => (&mut item.content, "content"),
                "output" => (&mut item.output, "output"),
                _ => return reader.skip_value(),
            };
            let begin = reader.position();
            let read = Content::read(reader, name == "output", || format!("input[{index}].{name}"))?;
            let is_null = reader.value_since(begin).is_some_and(Json::is_null);
            content.replace(read).is_none().then_some(())?;
            if is_null {
                *content = None;
            }
            Some(())
        })?;
        Some(item)
    }
}

/// Writes the messages of a request.
#[derive(Debug)]
pub(super) struct Messages<'o, 'a> {
    /// Each with the index of the item that it begins with; `None` for the instructions.
    list: compose::Messages<'o, Option<usize>>,
    /// What the model did in the turn that the last items were from.
    turn: Option<Turn<'a>>,
    /// What the results before show besides text, as parts with commas between; and the item that the first is of.
    shown: (usize, Vec<u8>),
    has_reasoning: bool,
}

/// What the model did in one turn.
#[derive(Debug)]
struct Turn<'a> {
    origin: usize,
    /// The inside of its text.
    text: Option<Cow<'a, str>>,
    /// The inside of its refusal.
    refusal: Option<&'a str>,
    /// The calls, with commas between.
    calls: Vec<u8>,
}

/// What there is to know about messages that were written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) origins: Vec<Option<usize>>,
    /// Whether reasoning was left out.
    pub(super) has_reasoning: bool,
}

impl<'o, 'a> Messages<'o, 'a> {
    /// Begins a list of messages.
    pub(super) fn begin(out: &'o mut Vec<u8>) -> Self {
        Self { list: compose::Messages::begin(out), turn: None, shown: (0, Vec::new()), has_reasoning: false }
    }

    /// Adds a message with a text.
    pub(super) fn text(&mut self, role: &'static str, text: Json<'_>, origin: Option<usize>) {
        self.message(role, origin, |out| write_field(out, "content", text.get()));
    }

    /// Adds the items of a list.
    pub(super) fn items(&mut self, list: Json<'a>) -> Result<(), ApiError> {
        if !list.is_array() {
            return Err(invalid("input", "a string or an array of items", list));
        }
        list.each(|index, reader| {
            let mut rest = reader.clone();
            if let Some(item) = Item::read(reader, index) {
                return self.item(index, item);
            }
            let value = rest.value().unwrap_or(list);
            Err(invalid(format!("input[{index}]"), "an object with each field once", value))
        })
    }

    /// Ends the list.
    pub(super) fn end(mut self) -> Written {
        self.end_turn();
        self.show();
        Written { origins: self.list.end(), has_reasoning: self.has_reasoning }
    }

    fn item(&mut self, index: usize, item: Item<'a>) -> Result<(), ApiError> {
        let path = |rest: &str| format!("input[{index}]{rest}");
        let [kind, role, call_id, name, namespace, arguments, input, extra] = item.fields;
        let word = match kind {
            Some(kind) => raw::inside(string(Some(kind), || path(".type"))?),
            None if role.is_some() => "message",
            None => return Err(missing(path(".type"))),
        };
        if !matches!(word, "function_call_output" | "custom_tool_call_output" | "reasoning") {
            self.show();
        }
        match word {
            "message" => {
                let role = role.ok_or_else(|| missing(path(".role")))?;
                let content = item.content.ok_or_else(|| missing(path(".content")))??;
                match raw::inside(role) {
                    "user" => self.content("user", index, content),
                    // The newer word for the same; many servers know the older one alone.
                    "system" | "developer" => self.content("system", index, content),
                    "assistant" => {
                        let said = content.into_said().ok_or_else(|| {
                            let message =
                                format!("`{}`: an assistant message can only contain text", path(".content"));
                            ApiError::parameter(ErrorCode::UnsupportedParameter, path(".content"), message)
                        })?;
                        self.said(index, said);
                    }
                    _ => return Err(invalid(path(".role"), "user, assistant, system or developer", role)),
                }
            }
            "function_call" | "custom_tool_call" => {
                let is_custom = word == "custom_tool_call";
                let arguments = if is_custom {
                    tools::arguments_of(string(input, || path(".input"))?).into()
                } else {
                    Cow::Borrowed(string(arguments, || path(".arguments"))?.get())
                };
                let id = string(call_id, || path(".call_id"))?;
                let name = string(name, || path(".name"))?.string().unwrap_or_default().into_owned();
                let namespace = namespace.and_then(Json::string).map(Into::into);
                let tool = Tool { name, namespace, is_custom };
                self.called(index, (id, &tool, &arguments), extra);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = string(call_id, || path(".call_id"))?;
                let output = item.output.ok_or_else(|| missing(path(".output")))??;
                let (text, others) = output.into_result("\\n");
                self.message("tool", Some(index), |out| {
                    write_field(out, "tool_call_id", id.get());
                    raw::write_quoted(out, "content", &text);
                });
                if !others.is_empty() {
                    let (first, shown) = &mut self.shown;
                    if shown.is_empty() {
                        *first = index;
                    }
                    compose::text_part(shown, &compose::shown_by(raw::inside(id)), None);
                    begin_element(shown);
                    shown.extend_from_slice(&others);
                }
            }
            "reasoning" => self.has_reasoning = true,
            "item_reference" => {
                let message = format!(
                    "`{}`: answers are not stored, so items cannot be referenced; send the items themselves, as \
                     clients do with `store: false`",
                    path("")
                );
                return Err(ApiError::parameter(ErrorCode::UnsupportedParameter, path(".type"), message));
            }
            _ => return Err(unsupported(path(".type"), kind)),
        }
        Ok(())
    }

    /// Writes what results show besides text.
    fn show(&mut self) {
        let (first, shown) = std::mem::take(&mut self.shown);
        if !shown.is_empty() {
            self.message("user", Some(first), |out| raw::write_list(out, "content", &shown));
        }
    }

    /// Adds to what the model said.
    fn said(&mut self, index: usize, said: Said<'a>) {
        // Behind a call, it still belongs to the same turn: the results have to follow the message with the calls.
        if self.turn.as_ref().is_some_and(|turn| turn.calls.is_empty()) {
            self.end_turn();
        }
        let turn = self.turn(index);
        turn.refusal = said.refusal.or(turn.refusal);
        match (&mut turn.text, said.text) {
            (Some(before), Some(text)) => {
                let before = before.to_mut();
                before.push_str(raw::EMPTY_LINE);
                before.push_str(&text);
            }
            (before @ None, text) => *before = text,
            (Some(_), None) => {}
        }
    }

    /// Adds a call by the model: its id, its tool, and its arguments as a JSON string.
    fn called(
        &mut self,
        index: usize,
        (id, tool, arguments): (Json<'_>, &Tool, &str),
        extra: Option<Json<'_>>,
    ) {
        let name = raw::string(&tool.function_name());
        compose::call(&mut self.turn(index).calls, (id, &name, arguments), extra);
    }

    fn turn(&mut self, origin: usize) -> &mut Turn<'a> {
        self.turn.get_or_insert_with(|| Turn { origin, text: None, refusal: None, calls: Vec::new() })
    }

    fn end_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        self.message("assistant", Some(turn.origin), |out| {
            match &turn.text {
                Some(text) => raw::write_quoted(out, "content", text),
                None => write_field(out, "content", "null"),
            }
            if let Some(refusal) = turn.refusal {
                raw::write_quoted(out, "refusal", refusal);
            }
            if !turn.calls.is_empty() {
                raw::write_list(out, "tool_calls", &turn.calls);
            }
        });
    }

    fn content(&mut self, role: &'static str, index: usize, content: Content<'_>) {
        self.message(role, Some(index), |out| content.write(out));
    }

    fn message(&mut self, role: &'static str, origin: Option<usize>, rest: impl FnOnce(&mut Vec<u8>)) {
        self.end_turn();
        self.list.message(role, origin, rest);
    }
}
