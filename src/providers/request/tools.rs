//! Decodes the tools that a model may call.

use serde_json::Value;

use super::{parts, read_field, refuse_unknown_fields, unsupported};
use crate::json::fields::Fields;
use crate::providers::Failure;

/// The tools, and whether they must be called.
#[derive(Debug)]
pub(in crate::providers) struct Tools {
    /// If empty, the other fields have no meaning.
    pub(in crate::providers) list: Vec<Tool>,
    pub(in crate::providers) choice: ToolChoice,
    /// Whether one answer may contain several calls.
    pub(in crate::providers) are_parallel: bool,
}

/// A tool: a function of the caller.
#[derive(Debug)]
pub(in crate::providers) struct Tool {
    pub(in crate::providers) name: String,
    pub(in crate::providers) description: Option<String>,
    /// A JSON schema, an object.
    pub(in crate::providers) parameters: Option<Value>,
    /// Whether the arguments must conform to the schema.
    pub(in crate::providers) is_strict: bool,
    /// Asks the provider to cache the tools up to this one; an object.
    pub(in crate::providers) cache_control: Option<Value>,
}

/// Whether the model is to call a tool.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) enum ToolChoice {
    /// The model decides.
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
        let values: Vec<Value> = read_field(fields, "tools", "an array of tools")?.unwrap_or_default();
        let mut list = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            list.push(tool(value, &format!("tools[{index}]"))?);
        }
        let choice = choice(fields)?;
        if list.is_empty() && matches!(choice, ToolChoice::Required | ToolChoice::Named(_)) {
            return Err(unsupported("tool_choice", "requires a call, but there are no `tools`"));
        }
        let are_parallel = read_field(fields, "parallel_tool_calls", "true or false")?.unwrap_or(true);
        Ok(Self { list, choice, are_parallel })
    }
}

fn tool(value: &Value, path: &str) -> Result<Tool, Failure> {
    if value["type"] != "function" {
        return Err(unsupported(
            format!("{path}.type"),
            "this provider supports only tools of type `function`",
        ));
    }
    let function = &value["function"];
    refuse_unknown_fields(value, &["type", "function", "cache_control"], path)?;
    refuse_unknown_fields(
        function,
        &["name", "description", "parameters", "strict", "cache_control"],
        &format!("{path}.function"),
    )?;
    let Some(name) = function["name"].as_str() else {
        return Err(unsupported(format!("{path}.function.name"), "must be a string"));
    };
    let parameters = match &function["parameters"] {
        Value::Null => None,
        Value::Object(schema) => Some(Value::Object(schema.clone())),
        _ => {
            return Err(unsupported(
                format!("{path}.function.parameters"),
                "must be a JSON schema, an object",
            ));
        }
    };
    Ok(Tool {
        name: name.to_owned(),
        description: function["description"].as_str().map(str::to_owned),
        parameters,
        is_strict: function["strict"] == true,
        // SDKs write it in either place.
        cache_control: parts::cache_control(value).or_else(|| parts::cache_control(function)),
    })
}

fn choice(fields: &Fields<'_>) -> Result<ToolChoice, Failure> {
    let Some(value) = read_field::<Value>(fields, "tool_choice", "a string or an object")? else {
        return Ok(ToolChoice::Auto);
    };
    refuse_unknown_fields(&value, &["type", "function"], "tool_choice")?;
    let named = value["function"]["name"].as_str().filter(|_| value["type"] == "function");
    match (value.as_str(), named) {
        (Some("auto"), _) => Ok(ToolChoice::Auto),
        (Some("none"), _) => Ok(ToolChoice::None),
        (Some("required"), _) => Ok(ToolChoice::Required),
        (_, Some(name)) => Ok(ToolChoice::Named(name.to_owned())),
        _ => Err(unsupported("tool_choice", "must be `auto`, `none`, `required`, or name one function")),
    }
}
