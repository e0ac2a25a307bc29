//! Translates a caller's chat completion into a request of the Gemini API.
//!
//! What the format cannot express is refused by name. Since Gemini 3, tool calls carry a signature of the thought
//! behind them, and conversations without it are refused. Callers receive it with each call, where Google's own
//! chat-completion interface has it (`extra_content.google.thought_signature`), and are expected to send it back.

use serde_json::{Map, Value, json};

use super::{encoded, thinking};
use crate::json::write::written;
use crate::providers::completion::CompletionRequest;
use crate::providers::request::{
    ContentPart, Data, DecodedRequest, Format, Image, Part, Speaker, ToolChoice, Tools, Turn, unsupported,
};
use crate::providers::{Failure, Model, ProviderRequest};

/// Stands in for the signature of calls that have none, such as those of another provider's model (Google's guide to
/// thought signatures).
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// Separates the texts of the operator.
const SEPARATOR: &str = "\n\n";

/// The request of the Gemini API for a caller's request.
pub(super) fn translate(request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure> {
    let decoded = DecodedRequest::decode(request)?;
    if request.stream && request.choices > 1 {
        return Err(unsupported(
            "n",
            "Gemini streams one answer per call; send several requests, or leave out `stream`",
        ));
    }
    let mut body = Map::new();
    if !decoded.system.is_empty() {
        let texts: Vec<&str> = decoded.system.iter().filter_map(Part::as_text).collect();
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": texts.join(SEPARATOR)}]}));
    }
    let signs_calls = thinking::signs_calls(&model.name);
    let contents = decoded.turns.iter().map(|turn| content(turn, signs_calls));
    body.insert("contents".to_owned(), Value::Array(contents.collect()));
    tools(&decoded.tools, &mut body);
    let config = generation_config(&decoded, request.choices, model)?;
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    let method = if request.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    Ok(ProviderRequest {
        path: format!("/models/{}:{method}", encoded(&model.name)).into(),
        headers: Vec::new(),
        body: written(&body),
    })
}

fn generation_config(
    decoded: &DecodedRequest,
    choices: u32,
    model: &Model,
) -> Result<Map<String, Value>, Failure> {
    if decoded.temperature.is_some() && !model.temperature {
        return Err(unsupported(
            "temperature",
            "this Google model does not support `temperature`; leave it out",
        ));
    }
    let seed = match decoded.seed.map(i32::try_from) {
        Some(Err(_)) => {
            return Err(unsupported("seed", "Gemini accepts seeds from -2147483648 to 2147483647"));
        }
        Some(Ok(seed)) => Some(json!(seed)),
        None => None,
    };
    let (mime_type, schema) = match &decoded.format {
        Format::Text => (None, None),
        Format::Json => (Some(json!("application/json")), None),
        Format::Schema(schema) => (Some(json!("application/json")), Some(schema.clone())),
    };
    let thinking = match &decoded.effort {
        Some(effort) => Some(thinking::config(effort, &model.name)?),
        None => None,
    };
    let number = |value: Option<f64>| value.map(|value| json!(value));
    let fields = [
        ("temperature", number(decoded.temperature)),
        ("topP", number(decoded.top_p)),
        ("topK", decoded.top_k.map(|top_k| json!(top_k))),
        ("maxOutputTokens", decoded.max_tokens.map(|limit| json!(limit))),
        ("stopSequences", (!decoded.stop.is_empty()).then(|| json!(decoded.stop))),
        ("seed", seed),
        ("frequencyPenalty", number(decoded.frequency_penalty)),
        ("presencePenalty", number(decoded.presence_penalty)),
        ("candidateCount", (choices > 1).then(|| json!(choices))),
        ("responseMimeType", mime_type),
        ("responseJsonSchema", schema),
        ("thinkingConfig", thinking),
    ];
    Ok(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// The tools. Gemini cannot be kept from calling several at once, so `parallel_tool_calls` is a matter of the response:
/// only the first call reaches the caller.
fn tools(tools: &Tools, body: &mut Map<String, Value>) {
    if tools.list.is_empty() {
        return;
    }
    let list = tools.list.iter().map(|tool| {
        let mut value = json!({"name": tool.name});
        if let Some(description) = &tool.description {
            value["description"] = json!(description);
        }
        if let Some(parameters) = &tool.parameters {
            value["parametersJsonSchema"] = parameters.clone();
        }
        value
    });
    body.insert("tools".to_owned(), json!([{"functionDeclarations": list.collect::<Value>()}]));
    // A mandatory call conforms to its schema in any case.
    let is_strict = tools.list.iter().any(|tool| tool.is_strict);
    let choice = match &tools.choice {
        ToolChoice::Auto if is_strict => json!({"mode": "VALIDATED"}),
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    body.insert("toolConfig".to_owned(), json!({"functionCallingConfig": choice}));
}

/// The content of a turn. Of parallel calls, only the first carries the signature.
fn content(turn: &Turn, signs_calls: bool) -> Value {
    let role = match turn.speaker {
        Speaker::User => "user",
        Speaker::Model => "model",
    };
    let is_call = |part: &&Part| matches!(part.content, ContentPart::ToolCall { .. });
    // Another provider's thoughts say nothing to this one.
    let own = turn.parts.iter().filter(|part| !matches!(part.content, ContentPart::SignedThought(_)));
    let first_call = own.clone().position(|part| is_call(&part));
    // The results of tools are texts alone; what else there is of them follows.
    let results = turn.parts.iter().filter_map(|part| match &part.content {
        ContentPart::ToolResult { parts, .. } => Some(parts),
        _ => None,
    });
    let media = results.flatten().filter(|part| part.as_text().is_none());
    let mut parts: Vec<Value> = own.chain(media).filter_map(part).collect();
    let called = first_call.and_then(|index| parts.get_mut(index)).filter(|_| signs_calls);
    if let Some(called) = called
        && called["thoughtSignature"].is_null()
    {
        called["thoughtSignature"] = json!(SKIP_SIGNATURE);
    }
    json!({"role": role, "parts": parts})
}

/// `None` for what the format does not have.
fn part(part: &Part) -> Option<Value> {
    Some(match &part.content {
        ContentPart::SignedThought(_) => return None,
        ContentPart::Text(text) => json!({"text": text}),
        ContentPart::Image(Image::Data(data)) | ContentPart::File { data, .. } | ContentPart::Audio(data) => {
            inline_data(data)
        }
        ContentPart::Image(Image::Url(url)) => match media_type(url) {
            Some(media_type) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
            None => json!({"fileData": {"fileUri": url}}),
        },
        ContentPart::ToolCall { id, name, arguments, signature } => {
            let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
            if let Some(signature) = signature {
                part["thoughtSignature"] = json!(signature);
            }
            part
        }
        ContentPart::ToolResult { id, name, parts } => {
            let response = function_response(&tool_text(parts));
            json!({"functionResponse": {"id": id, "name": name, "response": response}})
        }
    })
}

fn inline_data(Data { media_type, base64 }: &Data) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": base64}})
}

/// The text of a tool's result, one part a line.
fn tool_text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
}

/// A tool's result, which must be an object; anything else goes into the field that the API provides for it.
fn function_response(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(response)) => Value::Object(response),
        _ => json!({"output": text}),
    }
}

/// The media type suggested by an image's URL; without one, the API detects it.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let extension = path.rsplit('/').next()?.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        _ => return None,
    })
}
