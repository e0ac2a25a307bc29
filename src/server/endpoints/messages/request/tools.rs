//! The tools that the model may call. Those of a type that only Anthropic's models know, whether they run there
//! (`web_search_20250305`) or at the caller (`bash_20250124`), are left out where a request has tools of its own as
//! well, as agents offer them by default; alone or demanded, they are what the request is about, and refused.

use std::borrow::Cow;

use super::blocks::is_true;
use super::is_strict;
use super::left_out::LeftOut;
use super::path::Path;
use crate::inference::{Fields, Json};
use crate::json::fields::{write_field, write_string_field};
use crate::server::endpoints::chat::compose::{CACHE_MARK, function};
use crate::server::reply::ApiError;
use crate::server::request::params::invalid;
use crate::unsafe_chars::name_in_message;

/// The fields of a tool that are read.
const READ: [&str; 7] =
    ["type", "name", "description", "input_schema", "strict", CACHE_MARK, "allowed_callers"];

/// The fields of a tool that only tune how it is offered and called.
const TUNING: [&str; 3] = ["input_examples", "eager_input_streaming", "defer_loading"];

/// The tools of a request.
#[derive(Default)]
struct Tools<'a> {
    /// The names of those of the caller.
    names: Vec<Cow<'a, str>>,
    /// For each of them, its place in the list.
    places: Vec<usize>,
    foreign: Vec<Foreign<'a>>,
}

/// Writes `tools` and what was chosen of them; `marks` is whether marks for caches are kept. Returns for each tool its
/// place in the caller's list.
pub(super) fn translate(
    fields: &Fields<'_>,
    marks: bool,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<Vec<usize>, ApiError> {
    let begin = out.len();
    write_field(out, "tools", "[");
    let path = Path::Parameter("tools");
    let mut tools = Tools::default();
    let given = fields.non_null("tools");
    if given.is_some_and(|given| !given.is_array()) {
        return Err(path.wrong_type("an array of tools", given));
    }
    if let Some(given) = given {
        given.each(|place, reader| {
            let path = path.item(place);
            tools.add(&path.next_object(reader)?, (place, &path), marks, left_out, out)
        })?;
    }
    out.push(b']');
    for tool in &tools.foreign {
        if tools.names.is_empty() {
            tool.refuse(&path.item(tool.place).field("type"), left_out)?;
        } else {
            left_out.note(&tool.kind);
        }
    }
    tools.choose(fields, left_out, out)?;
    if tools.names.is_empty() {
        out.truncate(begin);
    }
    Ok(tools.places)
}

/// A tool that only Anthropic's models know.
struct Foreign<'a> {
    place: usize,
    kind: Cow<'a, str>,
    name: Cow<'a, str>,
}

impl Foreign<'_> {
    fn refuse(&self, path: &Path<'_>, left_out: &mut LeftOut) -> Result<(), ApiError> {
        let kind = name_in_message(&self.kind);
        let why =
            format!("only Anthropic's own models support tools of type {kind}; define your own tool instead");
        left_out.refuse(path, &self.kind, &why)
    }
}

impl<'a> Tools<'a> {
    /// Adds a tool; writes it as a function, if it is the caller's own and the model may call it itself.
    fn add(
        &mut self,
        tool: &Fields<'a>,
        (place, path): (usize, &Path<'_>),
        marks: bool,
        left_out: &mut LeftOut,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let word = |name| tool.get(name).and_then(Json::string);
        if let Some(kind) = word("type").filter(|kind| kind != "custom") {
            self.foreign.push(Foreign { place, kind, name: word("name").unwrap_or_default() });
            return Ok(());
        }
        let name = path.field("name").string(tool.get("name"))?;
        let path_of_schema = path.field("input_schema");
        let schema = tool.non_null("input_schema").ok_or_else(|| path_of_schema.missing())?;
        if !schema.is_object() {
            return Err(path_of_schema.wrong_type("a JSON schema, an object", Some(schema)));
        }
        let is_wanted = is_true(tool.get("strict"));
        let strict = tool.get("strict").filter(|_| is_wanted && is_strict(schema));
        if is_wanted && strict.is_none() {
            left_out.note("strict");
        }
        let mark = tool.non_null(CACHE_MARK);
        if mark.is_some() && !marks {
            left_out.note(CACHE_MARK);
        }
        let callers = tool.get("allowed_callers").and_then(Json::items);
        if callers.is_some_and(|callers| callers.iter().all(|caller| caller.get() != "\"direct\"")) {
            left_out.note("allowed_callers");
            return Ok(());
        }
        for (name, _) in tool.iter().filter(|(name, value)| !READ.contains(name) && !value.is_null()) {
            if TUNING.contains(&name) {
                left_out.note(name);
            } else {
                left_out.refuse(&path.field(name), name, "other models do not support it; leave it out")?;
            }
        }
        let description = tool.non_null("description");
        let others = [("description", description), ("strict", strict), ("parameters", Some(schema))];
        function(out, name.get(), others, mark.filter(|_| marks));
        self.names.push(name.string().unwrap_or_default());
        self.places.push(place);
        Ok(())
    }

    /// Writes whether and which tool is to be called, and whether several may be at once.
    fn choose(&self, fields: &Fields<'_>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), ApiError> {
        let Some(choice) = fields.non_null("tool_choice") else { return Ok(()) };
        let path = Path::Parameter("tool_choice");
        let choice = path.object(choice)?;
        let kind = choice.get("type").and_then(Json::string);
        let demands = matches!(kind.as_deref(), Some("any" | "tool"));
        if demands && self.names.is_empty() && self.foreign.is_empty() {
            return Err(invalid("tool_choice", "`tool_choice` requires a call, but there are no `tools`"));
        }
        match kind.as_deref() {
            Some(word @ ("auto" | "none")) => write_string_field(out, "tool_choice", word),
            Some("any") => write_field(out, "tool_choice", "\"required\""),
            Some("tool") => {
                let name = choice.get("name").and_then(Json::string).unwrap_or_default();
                if self.names.contains(&name) {
                    write_field(out, "tool_choice", "{\"type\":\"function\",\"function\":{");
                    write_string_field(out, "name", &name);
                    out.extend_from_slice(b"}}");
                } else if let Some(tool) = self.foreign.iter().find(|tool| tool.name == name) {
                    tool.refuse(&path.field("name"), left_out)?;
                    write_field(out, "tool_choice", "\"auto\"");
                } else {
                    return Err(path.field("name").must_be("the name of one of `tools`"));
                }
            }
            _ => return Err(path.field("type").must_be("auto, any, tool or none")),
        }
        if is_true(choice.get("disable_parallel_tool_use")) {
            write_field(out, "parallel_tool_calls", "false");
        }
        Ok(())
    }
}
