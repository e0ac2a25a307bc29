//! A caller's chat completion as a request of the Gemini API.
//!
//! What the format has no word for is refused by name. Calls of tools carry a signature of the thought behind them
//! since Gemini 3, which refuses a conversation without it: callers get it beside each call, where Google's own
//! chat-completion interface has it (`extra_content.google.thought_signature`), and are to send it back.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{encoded, thinking};
use crate::providers::asked::{Asked, Choice, Format, Image, Piece, Speaker, Tools, Turn, refusal};
use crate::providers::completion::Completion;
use crate::providers::{Failure, Model, Outgoing};

/// For calls that come without their signature, such as those of another provider's model (Google's guide to
/// thought signatures).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The request for `completion`.
pub(super) fn request(completion: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure> {
    let asked = Asked::read(completion)?;
    if completion.stream && completion.choices > 1 {
        return Err(refusal("n", "Gemini streams one answer a call; ask several times, or without `stream`"));
    }
    let mut body = Map::new();
    if let Some(system) = &asked.system {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
    }
    let signs = thinking::signs_calls(&model.name);
    body.insert("contents".to_owned(), asked.turns.iter().map(|turn| content(turn, signs)).collect());
    tools(&asked.tools, &mut body)?;
    let config = generation_config(&asked, completion.choices, model)?;
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    let method = if completion.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    Ok(Outgoing {
        path: format!("/models/{}:{method}", encoded(&model.name)).into(),
        headers: Vec::new(),
        body: Bytes::from(Value::Object(body).to_string()),
    })
}

fn generation_config(asked: &Asked, choices: u32, model: &Model) -> Result<Map<String, Value>, Failure> {
    if asked.temperature.is_some() && !model.temperature {
        return Err(refusal("temperature", "this model of Google's takes no temperature; leave it out"));
    }
    let seed = match asked.seed.map(i32::try_from) {
        Some(Err(_)) => return Err(refusal("seed", "Gemini takes a seed from -2147483648 to 2147483647")),
        Some(Ok(seed)) => Some(json!(seed)),
        None => None,
    };
    let (mime_type, schema) = match &asked.format {
        Format::Text => (None, None),
        Format::Json => (Some(json!("application/json")), None),
        Format::Schema(schema) => (Some(json!("application/json")), Some(schema.clone())),
    };
    let thinking = match &asked.effort {
        Some(effort) => Some(thinking::config(effort, &model.name)?),
        None => None,
    };
    let number = |value: Option<f64>| value.map(|value| json!(value));
    let fields = [
        ("temperature", number(asked.temperature)),
        ("topP", number(asked.top_p)),
        ("topK", asked.top_k.map(|top_k| json!(top_k))),
        ("maxOutputTokens", asked.limit.map(|limit| json!(limit))),
        ("stopSequences", (!asked.stop.is_empty()).then(|| json!(asked.stop))),
        ("seed", seed),
        ("frequencyPenalty", number(asked.frequency_penalty)),
        ("presencePenalty", number(asked.presence_penalty)),
        ("candidateCount", (choices > 1).then(|| json!(choices))),
        ("responseMimeType", mime_type),
        ("responseJsonSchema", schema),
        ("thinkingConfig", thinking),
    ];
    Ok(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn tools(tools: &Tools, body: &mut Map<String, Value>) -> Result<(), Failure> {
    if tools.list.is_empty() {
        return Ok(());
    }
    if !tools.are_parallel {
        let message = "Gemini cannot be kept from calling several tools at once; leave it out";
        return Err(refusal("parallel_tool_calls", message));
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
    // A call that must be made meets its schema in any case.
    let is_strict = tools.list.iter().any(|tool| tool.is_strict);
    let choice = match &tools.choice {
        Choice::Auto if is_strict => json!({"mode": "VALIDATED"}),
        Choice::Auto => json!({"mode": "AUTO"}),
        Choice::None => json!({"mode": "NONE"}),
        Choice::Required => json!({"mode": "ANY"}),
        Choice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    body.insert("toolConfig".to_owned(), json!({"functionCallingConfig": choice}));
    Ok(())
}

/// Of calls made at once, the first carries the signature.
fn content(turn: &Turn, signs: bool) -> Value {
    let role = match turn.speaker {
        Speaker::Person => "user",
        Speaker::Model => "model",
    };
    let first_call = turn.pieces.iter().position(|piece| matches!(piece, Piece::Call { .. }));
    let parts = turn.pieces.iter().enumerate().map(|(index, piece)| {
        let mut part = part(piece);
        if signs && first_call == Some(index) && part["thoughtSignature"].is_null() {
            part["thoughtSignature"] = json!(NO_SIGNATURE);
        }
        part
    });
    json!({"role": role, "parts": parts.collect::<Value>()})
}

fn part(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Image(Image::Data { media_type, base64 }) => {
            json!({"inlineData": {"mimeType": media_type, "data": base64}})
        }
        Piece::Image(Image::Address(url)) => match media_type(url) {
            Some(media_type) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
            None => json!({"fileData": {"fileUri": url}}),
        },
        Piece::Call { id, name, arguments, signature } => {
            let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
            if let Some(signature) = signature {
                part["thoughtSignature"] = json!(signature);
            }
            part
        }
        Piece::Result { id, name, text } => {
            json!({"functionResponse": {"id": id, "name": name, "response": response(text)}})
        }
    }
}

/// A result must be an object; what is not one stands under the name that the API has for it.
fn response(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(response)) => Value::Object(response),
        _ => json!({"output": text}),
    }
}

/// What an address says about the image behind it; without an opinion the API looks itself.
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
