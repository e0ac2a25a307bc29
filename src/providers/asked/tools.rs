//! The tools that a model may call.

use serde_json::Value;

use super::{only, refusal, typed};
use crate::providers::{Failure, Fields};

/// What may be called, and whether it must be.
#[derive(Debug)]
pub(in crate::providers) struct Tools {
    /// Empty without tools; then the rest says nothing.
    pub(in crate::providers) list: Vec<Tool>,
    pub(in crate::providers) choice: Choice,
    /// Whether one answer may hold several calls.
    pub(in crate::providers) are_parallel: bool,
}

/// One tool: a function of the caller's.
#[derive(Debug)]
pub(in crate::providers) struct Tool {
    pub(in crate::providers) name: String,
    pub(in crate::providers) description: Option<String>,
    /// A JSON schema, an object.
    pub(in crate::providers) parameters: Option<Value>,
    /// Whether the arguments must meet the schema.
    pub(in crate::providers) is_strict: bool,
}

/// Whether the model calls a tool.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) enum Choice {
    /// As it likes.
    Auto,
    /// Never.
    None,
    /// At least one.
    Required,
    /// The one of this name.
    Named(String),
}

impl Tools {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, Failure> {
        let values: Vec<Value> = typed(fields, "tools", "an array of tools")?.unwrap_or_default();
        let mut list = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            list.push(tool(value, &format!("tools[{index}]"))?);
        }
        let choice = choice(fields)?;
        if list.is_empty() && matches!(choice, Choice::Required | Choice::Named(_)) {
            return Err(refusal("tool_choice", "asks for a call, but there are no `tools`"));
        }
        let are_parallel = typed(fields, "parallel_tool_calls", "true or false")?.unwrap_or(true);
        Ok(Self { list, choice, are_parallel })
    }
}

fn tool(value: &Value, path: &str) -> Result<Tool, Failure> {
    if value["type"] != "function" {
        return Err(refusal(format!("{path}.type"), "this provider knows only tools of type `function`"));
    }
    let function = &value["function"];
    only(value, &["type", "function"], path)?;
    only(function, &["name", "description", "parameters", "strict"], &format!("{path}.function"))?;
    let Some(name) = function["name"].as_str() else {
        return Err(refusal(format!("{path}.function.name"), "must be a string"));
    };
    let parameters = match &function["parameters"] {
        Value::Null => None,
        Value::Object(schema) => Some(Value::Object(schema.clone())),
        _ => return Err(refusal(format!("{path}.function.parameters"), "must be a JSON schema, an object")),
    };
    Ok(Tool {
        name: name.to_owned(),
        description: function["description"].as_str().map(str::to_owned),
        parameters,
        is_strict: function["strict"] == true,
    })
}

fn choice(fields: &Fields<'_>) -> Result<Choice, Failure> {
    let Some(value) = typed::<Value>(fields, "tool_choice", "a string or an object")? else {
        return Ok(Choice::Auto);
    };
    only(&value, &["type", "function"], "tool_choice")?;
    let named = value["function"]["name"].as_str().filter(|_| value["type"] == "function");
    match (value.as_str(), named) {
        (Some("auto"), _) => Ok(Choice::Auto),
        (Some("none"), _) => Ok(Choice::None),
        (Some("required"), _) => Ok(Choice::Required),
        (_, Some(name)) => Ok(Choice::Named(name.to_owned())),
        _ => Err(refusal("tool_choice", "must be `auto`, `none`, `required`, or name one function")),
    }
}
