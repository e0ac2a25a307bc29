//! The tools of a request, as functions of the chat-completion format, and their calls as the caller knows them.
//!
//! - Tools inside of a `namespace` become functions with its name before theirs.
//! - A `custom` tool takes free text. It becomes a function with this text as its one argument, since hardly any
//!   provider has such tools in this format; a grammar for the text becomes a part of the description.
//! - Tools that run at the provider are left out beside the caller's own, as agents offer them by default; alone, or
//!   demanded, they are refused by name.

use crate::inference::{Json, Reader};
use crate::json::fields;
use crate::json::raw;
use crate::server::endpoints::chat::{compose, invalid, missing};
use crate::server::reply::{ApiError, ErrorCode};

/// The longest name of a function in the format.
const MAX_NAME_BYTES: usize = 64;
/// Between the name of a namespace and that of a tool in it.
const SEPARATOR: &str = "__";
/// More tools than any model takes.
const MAX_TOOLS: usize = 1024;
/// More types of tools than any client leaves to a provider. They are named in a header.
const MAX_HOSTED: usize = 16;

const TOOL: [&str; 7] = ["type", "name", "description", "parameters", "strict", "format", "tools"];
const FORMAT: [&str; 3] = ["type", "syntax", "definition"];

const CHOICE: [&str; 5] = ["type", "name", "namespace", "mode", "tools"];

/// A tool, as the caller knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// Whether it takes a text instead of arguments.
    pub(super) is_custom: bool,
}

impl Tool {
    /// Its name among the functions. A long one is cut, with a hash of the whole in place of its end.
    pub(super) fn function_name(&self) -> String {
        let Some(namespace) = &self.namespace else { return self.name.clone() };
        let separator = if namespace.ends_with(SEPARATOR) { "" } else { SEPARATOR };
        let name = format!("{namespace}{separator}{}", self.name);
        if name.len() <= MAX_NAME_BYTES {
            return name;
        }
        let hash = format!("_{:08x}", crc32fast::hash(name.as_bytes()));
        let kept = name.floor_char_boundary(MAX_NAME_BYTES - hash.len());
        format!("{}{hash}", &name[..kept])
    }
}

/// The tools of a request.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Each with its name among the functions and its JSON in the format.
    own: Vec<(Tool, String, String)>,
    /// The types of those that run at the provider.
    hosted: Vec<String>,
}

/// The calls of a model's functions as calls of the caller's tools.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(String, Tool)>);

impl Names {
    /// The tool that a function stands for.
    pub(super) fn tool(&self, function: &str) -> Tool {
        let known = self.0.iter().find(|(name, _)| name == function).map(|(_, tool)| tool.clone());
        known.unwrap_or_else(|| Tool { name: function.to_owned(), ..Tool::default() })
    }
}

/// Which of the tools the model may call, and whether it has to: the `tool_choice` of the format, if any, and the names
/// of the functions that may be called, if not all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) json: Option<String>,
    allowed: Option<Vec<String>>,
}

impl Tools {
    /// Reads the `tools` of a request.
    pub(super) fn read(value: Option<Json<'_>>) -> Result<Self, ApiError> {
        let mut tools = Self::default();
        let Some(value) = value else { return Ok(tools) };
        let items = list(value, "tools")?;
        for (index, tool) in items.into_iter().enumerate() {
            tools.add(tool, None, &format!("tools[{index}]"))?;
        }
        Ok(tools)
    }

    fn add(&mut self, tool: Json<'_>, namespace: Option<&str>, path: &str) -> Result<(), ApiError> {
        let read = Reader::new(tool.get()).fields(TOOL);
        let [kind, name, description, parameters, strict, format, tools] =
            read.ok_or_else(|| invalid(path, "an object with each field once", tool))?;
        let kind = kind.ok_or_else(|| missing(format!("{path}.type")))?;
        let word = kind.string().ok_or_else(|| invalid(format!("{path}.type"), "a string", kind))?;
        let is_custom = match &*word {
            "function" => false,
            "custom" => true,
            "namespace" if namespace.is_none() => {
                let name = text(name, &format!("{path}.name"))?;
                let path = format!("{path}.tools");
                let tools = tools.ok_or_else(|| missing(&path))?;
                for (index, tool) in list(tools, &path)?.into_iter().enumerate() {
                    self.add(tool, Some(&name), &format!("{path}[{index}]"))?;
                }
                return Ok(());
            }
            _ => {
                if self.hosted.len() <= MAX_HOSTED && self.hosted.iter().all(|known| *known != word) {
                    self.hosted.push(shown(&word));
                }
                return Ok(());
            }
        };
        let namespace = namespace.map(str::to_owned);
        let tool = Tool { name: text(name, &format!("{path}.name"))?, namespace, is_custom };
        let function_name = tool.function_name();
        if self.own.iter().any(|(_, known, _)| *known == function_name) || self.own.len() == MAX_TOOLS {
            let message =
                format!("`{path}.name` must be unique among the tools, of which at most {MAX_TOOLS}");
            return Err(ApiError::parameter(ErrorCode::InvalidParameter, format!("{path}.name"), message));
        }
        let json = if is_custom {
            custom(&function_name, description, format)
        } else {
            function(&function_name, description, parameters, strict)
        };
        self.own.push((tool, function_name, json));
        Ok(())
    }

    /// Reads the `tool_choice` of a request.
    ///
    /// # Errors
    /// Also if a tool that runs at the provider is demanded, or if there are only such.
    pub(super) fn choose(&self, value: Option<Json<'_>>) -> Result<Choice, ApiError> {
        let word = value.and_then(Json::string);
        if let Some(kind) =
            self.hosted.first().filter(|_| self.own.is_empty() && word.as_deref() != Some("none"))
        {
            return Err(hosted("tools", kind));
        }
        let Some(value) = value else { return Ok(Choice::default()) };
        let allowed_words = "`auto`, `none`, `required`, or an object that names a tool";
        match word.as_deref() {
            Some("auto" | "none" | "required") => {
                return Ok(Choice { json: Some(value.get().to_owned()), allowed: None });
            }
            Some(_) => return Err(invalid("tool_choice", allowed_words, value)),
            None => {}
        }
        let [kind, _, _, mode, tools] =
            value.fields(CHOICE).ok_or_else(|| invalid("tool_choice", allowed_words, value))?;
        let kind = text(kind, "tool_choice.type")?;
        if kind != "allowed_tools" {
            let name = self.chosen(value, "tool_choice")?;
            let mut json = b"{\"type\":\"function\",\"function\":{".to_vec();
            fields::write_string_field(&mut json, "name", &name);
            json.extend_from_slice(b"}}");
            return Ok(Choice { json: String::from_utf8(json).ok(), allowed: None });
        }
        let mode = mode.map_or("\"auto\"", Json::get);
        if !matches!(mode, "\"auto\"" | "\"required\"") {
            let message = "`tool_choice.mode` must be `auto` or `required`";
            return Err(ApiError::parameter(ErrorCode::InvalidParameter, "tool_choice.mode", message));
        }
        let tools = tools.ok_or_else(|| missing("tool_choice.tools"))?;
        let items = list(tools, "tool_choice.tools")?;
        let (mut allowed, mut demanded) = (Vec::with_capacity(items.len()), None);
        for (index, tool) in items.into_iter().enumerate() {
            let named = tool.fields(["type"]).and_then(|[kind]| kind?.string());
            // What is left out of the tools is left out here.
            if let Some(kind) = named.filter(|kind| self.hosted.iter().any(|hosted| *hosted == **kind)) {
                demanded = Some(kind);
                continue;
            }
            allowed.push(self.chosen(tool, &format!("tool_choice.tools[{index}]"))?);
        }
        if let Some(kind) = demanded.filter(|_| allowed.is_empty() && mode == "\"required\"") {
            return Err(hosted("tool_choice.tools", &kind));
        }
        Ok(Choice { json: Some(mode.to_owned()), allowed: Some(allowed) })
    }

    /// The name of the function that a choice names.
    fn chosen(&self, value: Json<'_>, path: &str) -> Result<String, ApiError> {
        let read = value.fields(CHOICE).ok_or_else(|| invalid(path, "an object that names a tool", value))?;
        let [kind, name, namespace, ..] = read;
        let kind = text(kind, &format!("{path}.type"))?;
        let is_custom = match &*kind {
            "function" => false,
            "custom" => true,
            _ => return Err(hosted(&format!("{path}.type"), &kind)),
        };
        let name = text(name, &format!("{path}.name"))?;
        let namespace = namespace.and_then(Json::string);
        let is_meant = |tool: &Tool| {
            tool.name == name
                && tool.is_custom == is_custom
                && (namespace.is_none() || tool.namespace.as_deref() == namespace.as_deref())
        };
        let found = self.own.iter().find(|(tool, ..)| is_meant(tool));
        found.map(|(_, function, _)| function.clone()).ok_or_else(|| {
            let message = format!("`{path}.name` must be the name of one of `tools` of that type");
            ApiError::parameter(ErrorCode::InvalidParameter, format!("{path}.name"), message)
        })
    }

    /// Writes the tools that may be called, and the choice among them, as fields of a chat completion. Returns whether
    /// there are any.
    pub(super) fn write(&self, choice: &Choice, parallel: Option<Json<'_>>, out: &mut Vec<u8>) -> bool {
        let is_allowed = |name: &String| choice.allowed.as_ref().is_none_or(|allowed| allowed.contains(name));
        let tools: Vec<&str> =
            self.own.iter().filter(|(_, name, _)| is_allowed(name)).map(|(.., json)| json.as_str()).collect();
        if tools.is_empty() {
            return false;
        }
        fields::write_field(out, "tools", &format!("[{}]", tools.join(",")));
        if let Some(json) = &choice.json {
            fields::write_field(out, "tool_choice", json);
        }
        if let Some(parallel) = parallel {
            fields::write_field(out, "parallel_tool_calls", parallel.get());
        }
        true
    }

    /// The names of the tools that were left out, and how calls of the others are told to the caller.
    pub(super) fn into_names(self) -> (Vec<String>, Names) {
        let left_out = match self.hosted.len() {
            0..=MAX_HOSTED => self.hosted.iter().map(|kind| format!("tools.{kind}")).collect(),
            _ => vec!["tools".to_owned()],
        };
        let changed = self.own.into_iter().filter(|(tool, ..)| tool.is_custom || tool.namespace.is_some());
        (left_out, Names(changed.map(|(tool, name, _)| (name, tool)).collect()))
    }
}

fn hosted(path: &str, kind: &str) -> ApiError {
    let kind: String =
        kind.chars().take(MAX_NAME_BYTES).map(|c| if c.is_control() { '?' } else { c }).collect();
    let message = format!(
        "`{path}`: tools of type `{kind}` run at a provider, and this model's provider does not have them; use \
         tools of type `function`, which you run yourself"
    );
    ApiError::parameter(ErrorCode::UnsupportedParameter, path.to_owned(), message)
}

/// A type of tools as it can be shown.
fn shown(kind: &str) -> String {
    kind.chars().take(MAX_NAME_BYTES).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The elements of a list of tools.
fn list<'a>(value: Json<'a>, path: &str) -> Result<Vec<Json<'a>>, ApiError> {
    let tools = value.items().filter(|tools| tools.len() <= MAX_TOOLS);
    tools.ok_or_else(|| invalid(path, &format!("an array of at most {MAX_TOOLS} tools"), value))
}

fn text(value: Option<Json<'_>>, path: &str) -> Result<String, ApiError> {
    let value = value.ok_or_else(|| missing(path))?;
    let text = value.string().filter(|text| !text.is_empty());
    text.map(Into::into).ok_or_else(|| invalid(path, "a string that is not empty", value))
}

fn function(
    name: &str,
    description: Option<Json<'_>>,
    parameters: Option<Json<'_>>,
    strict: Option<Json<'_>>,
) -> String {
    let others = [("description", description), ("parameters", parameters), ("strict", strict)];
    let mut json = Vec::new();
    compose::function(&mut json, &raw::string(name), others, None);
    String::from_utf8(json).unwrap_or_default()
}

/// A function whose one argument, `input`, is the text that the tool takes.
fn custom(name: &str, description: Option<Json<'_>>, format: Option<Json<'_>>) -> String {
    let mut told = description.map_or("", raw::inside).to_owned();
    let [_, syntax, definition] = format.and_then(|format| format.fields(FORMAT)).unwrap_or_default();
    if let Some(definition) = definition {
        let syntax = syntax.map_or("", raw::inside);
        let gap = if told.is_empty() { "" } else { raw::EMPTY_LINE };
        told = format!(
            "{told}{gap}`input` must match this grammar ({syntax}):{}{}",
            raw::EMPTY_LINE,
            raw::inside(definition)
        );
    }
    let told = raw::quoted(&told);
    let parameters = "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\
                      \"required\":[\"input\"],\"additionalProperties\":false}";
    function(name, raw::value(&told), raw::value(parameters), None)
}

/// The arguments of a custom tool's call, as a JSON string, of its input as one.
pub(super) fn arguments_of(input: Json<'_>) -> String {
    raw::string(&format!("{{\"input\":{}}}", input.get()))
}

/// The input of a custom tool's call as a JSON string, of its arguments as one. A model that does not keep to the form
/// has written the input itself.
pub(super) fn input_of(arguments: &str) -> String {
    let decoded = raw::value(arguments).and_then(Json::string);
    let input = decoded.as_deref().and_then(|text| Reader::new(text).fields(["input"]));
    match input {
        Some([Some(input)]) if input.is_string() => input.get().to_owned(),
        _ => arguments.to_owned(),
    }
}
