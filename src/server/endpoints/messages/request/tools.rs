//! The tools that the model may call. Those of a type that only Anthropic's models know, whether they run there
//! (`web_search_20250305`) or at the caller (`bash_20250124`), are left out where a request has tools of its own as
//! well, as agents offer them by default; alone or demanded, they are what the request is about, and refused.

use serde_json::{Map, Value, json};

use super::left_out::LeftOut;
use super::{is_strict, take};
use crate::server::reply::ApiError;
use crate::server::request::params::{invalid, missing, wrong_type};
use crate::unsafe_chars::name_in_message;

/// The fields of a tool that only tune how it is offered and called.
const TUNING: [&str; 3] = ["input_examples", "eager_input_streaming", "defer_loading"];

/// The tools of a chat completion.
pub(super) struct Tools {
    list: Vec<Value>,
    choice: Option<Value>,
    are_parallel: bool,
    /// For each tool, its place in the caller's list.
    pub(super) origins: Vec<usize>,
}

impl Tools {
    pub(super) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds them to the request; returns the places that they had in the caller's list.
    pub(super) fn write(self, chat: &mut Map<String, Value>) -> Vec<usize> {
        if self.list.is_empty() {
            return self.origins;
        }
        chat.insert("tools".to_owned(), Value::from(self.list));
        if let Some(choice) = self.choice {
            chat.insert("tool_choice".to_owned(), choice);
        }
        if !self.are_parallel {
            chat.insert("parallel_tool_calls".to_owned(), false.into());
        }
        self.origins
    }
}

/// Reads `tools` and `tool_choice`; `marks` is whether marks for caches are kept.
pub(super) fn translate(
    fields: &mut Map<String, Value>,
    marks: bool,
    left_out: &mut LeftOut,
) -> Result<Tools, ApiError> {
    let given = match take(fields, "tools") {
        None => Vec::new(),
        Some(Value::Array(tools)) => tools,
        Some(other) => return Err(wrong_type("tools", "an array of tools", &other)),
    };
    let (mut list, mut origins, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
    for (place, value) in given.into_iter().enumerate() {
        let path = format!("tools[{place}]");
        let Value::Object(tool) = value else { return Err(wrong_type(&path, "an object", &value)) };
        match tool.get("type").and_then(Value::as_str) {
            None | Some("custom") => {
                if let Some(function) = own(tool, &path, marks, left_out)? {
                    list.push(function);
                    origins.push(place);
                }
            }
            Some(kind) => foreign.push(Foreign {
                path,
                kind: kind.to_owned(),
                name: tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            }),
        }
    }
    for tool in &foreign {
        if list.is_empty() {
            tool.refuse(&format!("{}.type", tool.path), left_out)?;
        } else {
            left_out.note(&tool.kind);
        }
    }
    let names: Vec<&str> = list.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    let (choice, are_parallel) = choice(fields, &names, &foreign, left_out)?;
    Ok(Tools { list, choice, are_parallel, origins })
}

/// A tool that only Anthropic's models know.
struct Foreign {
    path: String,
    kind: String,
    name: String,
}

impl Foreign {
    fn refuse(&self, path: &str, left_out: &mut LeftOut) -> Result<(), ApiError> {
        let kind = name_in_message(&self.kind);
        let why =
            format!("only Anthropic's own models support tools of type {kind}; define your own tool instead");
        left_out.refuse(path, &self.kind, &why)
    }
}

/// A tool of the caller as a function; `None` if the model could not call it itself.
fn own(
    mut tool: Map<String, Value>,
    path: &str,
    marks: bool,
    left_out: &mut LeftOut,
) -> Result<Option<Value>, ApiError> {
    tool.retain(|_, value| !value.is_null());
    tool.shift_remove("type");
    let name = match tool.shift_remove("name") {
        Some(Value::String(name)) => name,
        Some(other) => return Err(wrong_type(&format!("{path}.name"), "a string", &other)),
        None => return Err(missing(&format!("{path}.name"))),
    };
    let schema = match tool.shift_remove("input_schema") {
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => {
            return Err(wrong_type(&format!("{path}.input_schema"), "a JSON schema, an object", &other));
        }
        None => return Err(missing(&format!("{path}.input_schema"))),
    };
    let mut function = json!({"name": name});
    if let Some(description) = tool.shift_remove("description") {
        function["description"] = description;
    }
    match tool.shift_remove("strict") {
        Some(Value::Bool(true)) if is_strict(&schema) => function["strict"] = true.into(),
        Some(Value::Bool(true)) => left_out.note("strict"),
        _ => {}
    }
    function["parameters"] = schema;
    let mut value = json!({"type": "function", "function": function});
    match tool.shift_remove("cache_control") {
        Some(mark) if marks => value["cache_control"] = mark,
        Some(_) => left_out.note("cache_control"),
        None => {}
    }
    if let Some(callers) = tool.shift_remove("allowed_callers")
        && callers.as_array().is_some_and(|callers| callers.iter().all(|caller| caller != "direct"))
    {
        left_out.note("allowed_callers");
        return Ok(None);
    }
    for (name, _) in tool {
        if TUNING.contains(&name.as_str()) {
            left_out.note(&name);
        } else {
            left_out.refuse(
                &format!("{path}.{name}"),
                &name,
                "other models do not support it; leave it out",
            )?;
        }
    }
    Ok(Some(value))
}

/// Whether and which tool is to be called, and whether several may be at once.
fn choice(
    fields: &mut Map<String, Value>,
    names: &[&str],
    foreign: &[Foreign],
    left_out: &mut LeftOut,
) -> Result<(Option<Value>, bool), ApiError> {
    let choice = match take(fields, "tool_choice") {
        None => return Ok((None, true)),
        Some(Value::Object(choice)) => choice,
        Some(other) => return Err(wrong_type("tool_choice", "an object", &other)),
    };
    let are_parallel = choice.get("disable_parallel_tool_use") != Some(&Value::Bool(true));
    let kind = choice.get("type").and_then(Value::as_str);
    let demands = matches!(kind, Some("any" | "tool"));
    if demands && names.is_empty() && foreign.is_empty() {
        return Err(invalid("tool_choice", "`tool_choice` requires a call, but there are no `tools`"));
    }
    let choice = match kind {
        Some("auto") => json!("auto"),
        Some("none") => json!("none"),
        Some("any") => json!("required"),
        Some("tool") => {
            let name = choice.get("name").and_then(Value::as_str).unwrap_or_default();
            if names.contains(&name) {
                json!({"type": "function", "function": {"name": name}})
            } else if let Some(tool) = foreign.iter().find(|tool| tool.name == name) {
                tool.refuse("tool_choice.name", left_out)?;
                json!("auto")
            } else {
                return Err(invalid(
                    "tool_choice.name",
                    "`tool_choice.name` must be the name of one of `tools`",
                ));
            }
        }
        _ => return Err(invalid("tool_choice.type", "`tool_choice.type` must be auto, any, tool or none")),
    };
    Ok((Some(choice), are_parallel))
}
