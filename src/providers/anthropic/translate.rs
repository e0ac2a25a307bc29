//! A caller's chat completion as a request of the Messages API.
//!
//! What the format has no word for is refused by name. A temperature above 1 is not lowered: the caller asked for
//! something else. Temperature and `top_p` are not sent together, nor a temperature beside thinking, as the API
//! refuses both; found here, it does not look as if the model took no temperature at all.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{DEFAULT_MAX_TOKENS, MAX_TEMPERATURE, version};
use crate::providers::asked::{Asked, Choice, Format, Image, Piece, Speaker, Tools, Turn, refusal};
use crate::providers::completion::Completion;
use crate::providers::model::claude_version;
use crate::providers::{Failure, Model, Outgoing};

/// The first version that decides itself how much to think, by an effort (Anthropic's guide to adaptive thinking).
const FIRST_ADAPTIVE: (u32, u32) = (4, 6);

/// The request for `completion`.
pub(super) fn request(completion: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure> {
    let asked = Asked::read(completion)?;
    refuse_foreign(&asked, completion.choices)?;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model.name));
    let limit = asked.limit.or(model.max_output_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
    body.insert("max_tokens".to_owned(), json!(limit));
    if let Some(system) = &asked.system {
        body.insert("system".to_owned(), json!(system));
    }
    body.insert("messages".to_owned(), asked.turns.iter().map(message).collect());
    sampling(&asked, model, &mut body)?;
    if !asked.stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(asked.stop));
    }
    tools(&asked.tools, &mut body);
    output(&asked, model, &mut body)?;
    if completion.stream {
        body.insert("stream".to_owned(), json!(true));
    }
    Ok(Outgoing {
        path: "/messages".into(),
        headers: vec![version()],
        body: Bytes::from(Value::Object(body).to_string()),
    })
}

fn refuse_foreign(asked: &Asked, choices: u32) -> Result<(), Failure> {
    let foreign = [
        ("n", choices > 1),
        ("seed", asked.seed.is_some()),
        ("frequency_penalty", asked.frequency_penalty.is_some()),
        ("presence_penalty", asked.presence_penalty.is_some()),
    ];
    match foreign.into_iter().find(|(_, is_given)| *is_given) {
        Some(("n", _)) => Err(refusal("n", "Anthropic gives one answer a call; ask several times")),
        Some((name, _)) => Err(refusal(name, format!("Anthropic has nothing like `{name}`; leave it out"))),
        None => Ok(()),
    }
}

/// Temperature, `top_p`, `top_k`. A value that holds by default is left out, as not every model takes it.
fn sampling(asked: &Asked, model: &Model, body: &mut Map<String, Value>) -> Result<(), Failure> {
    let temperature = asked.temperature.filter(|temperature| *temperature != MAX_TEMPERATURE);
    let top_p = asked.top_p.filter(|top_p| *top_p < 1.0);
    if temperature.is_some_and(|temperature| temperature > MAX_TEMPERATURE) {
        return Err(refusal("temperature", "Anthropic takes a temperature from 0 to 1"));
    }
    if !model.temperature {
        let given = [
            ("temperature", temperature.is_some()),
            ("top_p", top_p.is_some()),
            ("top_k", asked.top_k.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(refusal(name, format!("this model of Anthropic's takes no `{name}`; leave it out")));
        }
    }
    if temperature.is_some() && top_p.is_some() {
        return Err(refusal("top_p", "Anthropic takes `temperature` or `top_p`, not both; leave one out"));
    }
    if let Some(temperature) = temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(top_k) = asked.top_k {
        body.insert("top_k".to_owned(), json!(top_k));
    }
    Ok(())
}

/// The answer's form and the effort for it.
fn output(asked: &Asked, model: &Model, body: &mut Map<String, Value>) -> Result<(), Failure> {
    let mut config = Map::new();
    match &asked.format {
        Format::Text => {}
        Format::Json => {
            let message = "Anthropic has no JSON mode; give a schema, with the type `json_schema`";
            return Err(refusal("response_format.type", message));
        }
        Format::Schema(schema) => {
            config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
        }
    }
    if let Some(effort) = asked.effort.as_deref().filter(|effort| *effort != "none") {
        if claude_version(&model.name).is_none_or(|version| version < FIRST_ADAPTIVE) {
            let message =
                "only Claude models since 4.6 think by an effort; leave it out, or ask a newer model";
            return Err(refusal("reasoning_effort", message));
        }
        if body.contains_key("temperature") {
            return Err(refusal(
                "temperature",
                "Anthropic takes none beside `reasoning_effort`; leave one out",
            ));
        }
        // The least that this format has a word for.
        let effort = if effort == "minimal" { "low" } else { effort };
        body.insert("thinking".to_owned(), json!({"type": "adaptive"}));
        config.insert("effort".to_owned(), json!(effort));
    } else if asked.effort.is_some() {
        body.insert("thinking".to_owned(), json!({"type": "disabled"}));
    }
    if !config.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(config));
    }
    Ok(())
}

fn tools(tools: &Tools, body: &mut Map<String, Value>) {
    if tools.list.is_empty() {
        return;
    }
    let list = tools.list.iter().map(|tool| {
        let mut value = json!({"name": tool.name});
        if let Some(description) = &tool.description {
            value["description"] = json!(description);
        }
        value["input_schema"] = input_schema(tool.parameters.as_ref());
        if tool.is_strict {
            value["strict"] = json!(true);
        }
        value
    });
    body.insert("tools".to_owned(), list.collect());
    let mut choice = match &tools.choice {
        Choice::Auto => json!({"type": "auto"}),
        Choice::None => json!({"type": "none"}),
        Choice::Required => json!({"type": "any"}),
        Choice::Named(name) => json!({"type": "tool", "name": name}),
    };
    if !tools.are_parallel && tools.choice != Choice::None {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    body.insert("tool_choice".to_owned(), choice);
}

/// What a tool takes. The API wants it said that this is an object, which others take for granted.
fn input_schema(parameters: Option<&Value>) -> Value {
    let Some(parameters) = parameters else { return json!({"type": "object", "properties": {}}) };
    let mut schema = parameters.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("type").or_insert_with(|| json!("object"));
    }
    schema
}

/// Texts of nothing but white space are left out, as the API refuses them; other models write one before a call.
fn message(turn: &Turn) -> Value {
    let role = match turn.speaker {
        Speaker::Person => "user",
        Speaker::Model => "assistant",
    };
    let is_blank = |piece: &&Piece| matches!(piece, Piece::Text(text) if text.trim().is_empty());
    let says_something = !turn.pieces.iter().all(|piece| is_blank(&piece));
    let pieces = turn.pieces.iter().filter(|piece| !says_something || !is_blank(piece));
    json!({"role": role, "content": pieces.map(block).collect::<Value>()})
}

/// The identifier of a call as the API takes it, the same for the call and its result: other providers' may hold dots and
/// colons (`functions.get:0`).
fn call_id(id: &str) -> Cow<'_, str> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(is_taken) {
        return id.into();
    }
    let digest = Sha256::digest(id);
    digest[..12].iter().fold("call_".to_owned(), |id, byte| id + &format!("{byte:02x}")).into()
}

fn block(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Image(Image::Data { media_type, base64 }) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64}})
        }
        Piece::Image(Image::Address(url)) => json!({"type": "image", "source": {"type": "url", "url": url}}),
        Piece::Call { id, name, arguments, .. } => {
            json!({"type": "tool_use", "id": call_id(id), "name": name, "input": arguments})
        }
        Piece::Result { id, text, .. } => {
            json!({"type": "tool_result", "tool_use_id": call_id(id), "content": text})
        }
    }
}
