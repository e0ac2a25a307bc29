//! The conversation: system texts and turns as messages of a chat completion.
//!
//! A turn may become several messages: each result of a tool is one of its own and comes first, as what a model asked
//! for has to follow at once. What a result shows besides text comes with the user's own words, because in many
//! formats the message of a tool holds nothing but text.

use std::borrow::Cow;

use super::blocks::{self, Part, is_true, write_content};
use super::left_out::LeftOut;
use super::path::Path;
use crate::inference::{Fields, Json};
use crate::json::fields::write_field;
use crate::json::raw;
use crate::server::endpoints::chat::compose::{CACHE_MARK, Messages, call, shown_by};
use crate::server::reply::ApiError;

/// How the text begins that Claude Code sends to account for a request: it is nothing for a model, and as it differs
/// from request to request, no prompt behind it could be read from a cache.
const BILLING_HEADER: &str = "x-anthropic-billing-header";

/// What a content may be.
const CONTENT: &str = "a string or an array of content blocks";

/// Blocks of an answer with what ran at the provider. Only the models there can read them; what came of it stands in
/// the texts beside them.
const RAN_THERE: [&str; 11] = [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "advisor_tool_result",
    "compaction",
];

/// Writes the messages, each with the path of what it was made of.
pub(super) struct Conversation<'o> {
    messages: Messages<'o, String>,
    /// Whether marks for caches are kept.
    marks: bool,
    left_out: &'o mut LeftOut,
}

impl<'o> Conversation<'o> {
    /// Begins the messages of a request.
    pub(super) fn begin(out: &'o mut Vec<u8>, marks: bool, left_out: &'o mut LeftOut) -> Self {
        Self { messages: Messages::begin(out), marks, left_out }
    }

    /// Ends them. Returns for each the path of what it was made of.
    pub(super) fn end(self) -> Vec<String> {
        self.messages.end()
    }

    /// Adds system text at `path`, a string or blocks of text.
    pub(super) fn system(
        &mut self,
        content: Json<'_>,
        path: &Path<'_>,
        origin: &Path<'_>,
    ) -> Result<(), ApiError> {
        let mut texts = Vec::new();
        each_block(Some(content), path, |path, block| {
            if block.get("type").is_some_and(|kind| kind.string().as_deref() != Some("text")) {
                return Err(path.field("type").must_be("text"));
            }
            if path.text_of(&block, "text")?.starts_with(BILLING_HEADER) {
                self.left_out.note(BILLING_HEADER);
                return Ok(());
            }
            self.add_text(&block, path, &mut texts)
        })?;
        if !texts.is_empty() {
            let write = |out: &mut Vec<u8>| write_content(out, &texts, Some(raw::EMPTY_LINE));
            self.messages.message("system", origin.to_string(), write);
        }
        Ok(())
    }

    /// Adds the turns.
    pub(super) fn turns(&mut self, turns: Json<'_>) -> Result<(), ApiError> {
        turns.each(|index, reader| {
            let path = Path::Item(&Path::Parameter("messages"), index);
            let turn = path.next_object(reader)?;
            let given = |name| turn.get(name).ok_or_else(|| path.field(name).missing());
            let (role, content) = (given("role")?, given("content")?);
            match role.string().as_deref() {
                Some("user") if content.is_string() => self.text("user", content, &path),
                Some("assistant") if content.is_string() => self.text("assistant", content, &path),
                Some("user") => self.user(content, &path)?,
                Some("assistant") => self.assistant(content, &path)?,
                Some("system") => self.system(content, &path.field("content"), &path)?,
                _ => return Err(path.field("role").must_be("user, assistant or system")),
            }
            Ok(())
        })
    }

    fn text(&mut self, role: &'static str, text: Json<'_>, origin: &Path<'_>) {
        let write = |out: &mut Vec<u8>| write_field(out, "content", text.get());
        self.messages.message(role, origin.to_string(), write);
    }

    fn user(&mut self, content: Json<'_>, origin: &Path<'_>) -> Result<(), ApiError> {
        let (mut shown, mut parts, mut has_results) = (Vec::new(), Vec::new(), false);
        each_block(Some(content), &origin.field("content"), |path, block| {
            if block.get("type").is_some_and(|kind| kind.string().as_deref() == Some("tool_result")) {
                has_results = true;
                return self.tool_result(&block, path, &mut shown);
            }
            let mark = self.mark(&block);
            let before = parts.len();
            blocks::parts(&block, path, self.left_out, &mut parts)?;
            if let Some(last) = parts.get_mut(before..).and_then(<[Part<'_>]>::last_mut) {
                last.mark = mark;
            }
            Ok(())
        })?;
        shown.append(&mut parts);
        if !shown.is_empty() || !has_results {
            let write = |out: &mut Vec<u8>| write_content(out, &shown, None);
            self.messages.message("user", origin.to_string(), write);
        }
        Ok(())
    }

    /// Adds the result of a tool. What it has besides text goes to `shown`.
    fn tool_result<'a>(
        &mut self,
        block: &Fields<'a>,
        path: &Path<'_>,
        shown: &mut Vec<Part<'a>>,
    ) -> Result<(), ApiError> {
        let id = path.text_of(block, "tool_use_id")?;
        let mark = self.mark(block);
        let mut parts = Vec::new();
        each_block(block.get("content"), &path.field("content"), |path, block| {
            blocks::parts(&block, path, self.left_out, &mut parts)
        })?;
        let (texts, others): (Vec<Part<'_>>, Vec<Part<'_>>) =
            parts.into_iter().partition(|part| part.text().is_some());
        let texts: Vec<&str> = texts.iter().filter_map(Part::text).collect();
        let mut text = raw::joined(&texts, raw::EMPTY_LINE);
        if is_true(block.get("is_error")) && !says_error(&text) {
            let mark = if text.is_empty() { "Error" } else { "Error: " };
            text.to_mut().insert_str(0, mark);
        }
        if !others.is_empty() {
            shown.push(Part::of_text(shown_by(id), None));
            shown.extend(others);
        }
        self.messages.message("tool", path.to_string(), |out| {
            raw::write_quoted(out, "tool_call_id", id);
            write_content(out, &[Part::of_text(text, mark)], None);
        });
        Ok(())
    }

    fn assistant(&mut self, content: Json<'_>, origin: &Path<'_>) -> Result<(), ApiError> {
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        each_block(Some(content), &origin.field("content"), |path, block| {
            let kind = path.word_of(&block, "type")?;
            match &*kind {
                "text" => self.add_text(&block, path, &mut texts)?,
                "tool_use" => self.tool_use(&block, path, &mut calls)?,
                // The thoughts of a model are signed for that model.
                "thinking" | "redacted_thinking" => self.left_out.note(&kind),
                kind if RAN_THERE.contains(&kind) => self.left_out.note(kind),
                _ => {
                    let allowed = "text, tool_use, thinking or redacted_thinking";
                    return Err(path.field("type").must_be(allowed));
                }
            }
            Ok(())
        })?;
        self.messages.message("assistant", origin.to_string(), |out| {
            if texts.is_empty() && !calls.is_empty() {
                write_field(out, "content", "null");
            } else {
                write_content(out, &texts, Some(""));
            }
            if !calls.is_empty() {
                raw::write_list(out, "tool_calls", &calls);
            }
        });
        Ok(())
    }

    fn tool_use(&mut self, block: &Fields<'_>, path: &Path<'_>, calls: &mut Vec<u8>) -> Result<(), ApiError> {
        let id = path.field("id").string(block.get("id"))?;
        let name = path.field("name").string(block.get("name"))?;
        // A call has no place for a mark.
        if block.get(CACHE_MARK).is_some() {
            self.left_out.note(CACHE_MARK);
        }
        let input = block.non_null("input");
        if input.is_some_and(|input| !input.is_object()) {
            return Err(path.field("input").wrong_type("an object", input));
        }
        let arguments = raw::string(input.map_or("{}", Json::get));
        call(calls, (id, name.get(), &arguments), None);
        Ok(())
    }

    /// Appends the text of a block, unless it is empty.
    fn add_text<'a>(
        &mut self,
        block: &Fields<'a>,
        path: &Path<'_>,
        texts: &mut Vec<Part<'a>>,
    ) -> Result<(), ApiError> {
        let text = path.text_of(block, "text")?;
        if !text.is_empty() {
            texts.push(Part::of_text(text, self.mark(block)));
        }
        Ok(())
    }

    /// The mark of a block, if it has one and marks are kept.
    fn mark<'a>(&mut self, block: &Fields<'a>) -> Option<Json<'a>> {
        let mark = block.non_null(CACHE_MARK)?;
        if !self.marks {
            self.left_out.note(CACHE_MARK);
        }
        self.marks.then_some(mark)
    }
}

/// Reads the blocks of a content one by one, each with its path; a string is one of text.
fn each_block<'a>(
    content: Option<Json<'a>>,
    path: &Path<'_>,
    mut read: impl FnMut(&Path<'_>, Fields<'a>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let Some(content) = content.filter(|content| !content.is_null()) else { return Ok(()) };
    if content.is_string() {
        return read(path, text_block(content));
    }
    if !content.is_array() {
        return Err(path.wrong_type(CONTENT, Some(content)));
    }
    content.each(|index, reader| {
        let path = path.item(index);
        match reader.peek() {
            Some(b'"') => read(&path, reader.value().map(text_block).unwrap_or_default()),
            _ => read(&path, path.next_object(reader)?),
        }
    })
}

/// A text as a block.
fn text_block(text: Json<'_>) -> Fields<'_> {
    let kind = raw::value("\"text\"").map(|kind| ("type", kind));
    kind.into_iter().chain([("text", text)]).collect()
}

/// Whether a text, of which this is the inside, says by itself that something went wrong.
fn says_error(inside: &str) -> bool {
    let text =
        raw::value(&raw::quoted(inside)).and_then(Json::string).map(Cow::into_owned).unwrap_or_default();
    let start: String = text.trim_start().chars().take(24).collect();
    start.to_ascii_lowercase().contains("error")
}
