//! Translates a caller's chat completion into a request of the Messages API.
//!
//! What the format cannot express is refused by name. A temperature above 1 is refused rather than lowered, as the
//! caller asked for something else. The API refuses `temperature` together with `top_p`, or with thinking. Checking
//! that here keeps such a refusal from being mistaken for that of a model that accepts no temperature at all.

use serde_json::{Map, Value, json};

use super::{DEFAULT_MAX_TOKENS, MAX_TEMPERATURE, blocks, schema, version};
use crate::json::write::written;
use crate::providers::catalog::model::claude_version;
use crate::providers::completion::CompletionRequest;
use crate::providers::request::{DecodedRequest, Format, Tool, ToolChoice, Tools, unsupported};
use crate::providers::{Failure, Model, ProviderRequest};

/// The first version with adaptive thinking, which is controlled by an effort (Anthropic's guide to adaptive thinking).
pub(in crate::providers) const FIRST_ADAPTIVE: (u32, u32) = (4, 6);

/// The request of the Messages API for a caller's request.
pub(super) fn translate(request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure> {
    let decoded = DecodedRequest::decode(request)?;
    refuse_unsupported(&decoded, request.choices)?;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model.name));
    let limit = decoded.max_tokens.or(model.max_output_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
    body.insert("max_tokens".to_owned(), json!(limit));
    if let Some(system) = blocks::system(&decoded.system, decoded.format == Format::Json)? {
        body.insert("system".to_owned(), system);
    }
    body.insert("messages".to_owned(), blocks::messages(&decoded.turns)?);
    sampling(&decoded, model, &mut body)?;
    if !decoded.stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(decoded.stop));
    }
    tools(&decoded.tools, &mut body)?;
    output(&decoded, model, &mut body)?;
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
    }
    Ok(ProviderRequest { path: "/messages".into(), headers: vec![version()], body: written(&body) })
}

fn refuse_unsupported(decoded: &DecodedRequest, choices: u32) -> Result<(), Failure> {
    let unsupported_fields = [
        ("n", choices > 1),
        ("seed", decoded.seed.is_some()),
        ("frequency_penalty", decoded.frequency_penalty.is_some()),
        ("presence_penalty", decoded.presence_penalty.is_some()),
    ];
    match unsupported_fields.into_iter().find(|(_, is_given)| *is_given) {
        Some(("n", _)) => {
            Err(unsupported("n", "Anthropic returns one answer per call; send several requests"))
        }
        Some((name, _)) => {
            Err(unsupported(name, format!("Anthropic does not support `{name}`; leave it out")))
        }
        None => Ok(()),
    }
}

/// Temperature, `top_p` and `top_k`. Default values are left out, as not every model accepts them.
fn sampling(decoded: &DecodedRequest, model: &Model, body: &mut Map<String, Value>) -> Result<(), Failure> {
    let temperature = decoded.temperature.filter(|temperature| *temperature != MAX_TEMPERATURE);
    let top_p = decoded.top_p.filter(|top_p| *top_p < 1.0);
    if temperature.is_some_and(|temperature| temperature > MAX_TEMPERATURE) {
        return Err(unsupported("temperature", "Anthropic accepts temperatures from 0 to 1"));
    }
    if !model.temperature {
        let given = [
            ("temperature", temperature.is_some()),
            ("top_p", top_p.is_some()),
            ("top_k", decoded.top_k.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(unsupported(
                name,
                format!("this Anthropic model does not support `{name}`; leave it out"),
            ));
        }
    }
    if temperature.is_some() && top_p.is_some() {
        return Err(unsupported(
            "top_p",
            "Anthropic accepts `temperature` or `top_p`, not both; leave one out",
        ));
    }
    if let Some(temperature) = temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(top_k) = decoded.top_k {
        body.insert("top_k".to_owned(), json!(top_k));
    }
    Ok(())
}

/// The output format and the effort.
fn output(decoded: &DecodedRequest, model: &Model, body: &mut Map<String, Value>) -> Result<(), Failure> {
    let mut config = Map::new();
    if let Format::Schema(schema) = &decoded.format {
        let schema = schema::strict(schema, "response_format.json_schema.schema")?;
        config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    if let Some(effort) = decoded.effort.as_deref().filter(|effort| *effort != "none") {
        if claude_version(&model.name).is_none_or(|version| version < FIRST_ADAPTIVE) {
            let message =
                "only Claude 4.6 and later support a reasoning effort; leave it out, or choose a newer model";
            return Err(unsupported("reasoning_effort", message));
        }
        if body.contains_key("temperature") {
            return Err(unsupported(
                "temperature",
                "Anthropic does not accept it together with `reasoning_effort`; leave one out",
            ));
        }
        // The lowest effort that this format has.
        let effort = if effort == "minimal" { "low" } else { effort };
        body.insert("thinking".to_owned(), json!({"type": "adaptive"}));
        config.insert("effort".to_owned(), json!(effort));
    } else if decoded.effort.is_some() {
        body.insert("thinking".to_owned(), json!({"type": "disabled"}));
    }
    if !config.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(config));
    }
    Ok(())
}

fn tools(tools: &Tools, body: &mut Map<String, Value>) -> Result<(), Failure> {
    if tools.list.is_empty() {
        return Ok(());
    }
    let list: Vec<Value> =
        tools.list.iter().enumerate().map(|(index, one)| tool(one, index)).collect::<Result<_, _>>()?;
    body.insert("tools".to_owned(), Value::from(list));
    let mut choice = match &tools.choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    if !tools.are_parallel && tools.choice != ToolChoice::None {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    body.insert("tool_choice".to_owned(), choice);
    Ok(())
}

/// The tool at `index`.
fn tool(tool: &Tool, index: usize) -> Result<Value, Failure> {
    let mut value = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        value["description"] = json!(description);
    }
    value["input_schema"] = input_schema(tool.parameters.as_ref());
    if tool.is_strict {
        let path = format!("tools[{index}].function.parameters");
        value["input_schema"] = schema::strict(&value["input_schema"], &path)?;
        value["strict"] = json!(true);
    }
    if let Some(cache_control) = &tool.cache_control {
        value["cache_control"] = cache_control.clone();
    }
    Ok(value)
}

/// The schema of a tool's arguments. The API requires an explicit `"type": "object"`, which others imply.
fn input_schema(parameters: Option<&Value>) -> Value {
    let Some(parameters) = parameters else { return json!({"type": "object", "properties": {}}) };
    let mut schema = parameters.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("type").or_insert_with(|| json!("object"));
    }
    schema
}
