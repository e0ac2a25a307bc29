//! The order of a streamed answer: roles before content, content before finish reasons, nothing behind them. Chunks that
//! keep to it pass as they are; the others are taken apart here.

use serde_json::{Map, Value, json};

use super::stream::Choice;
use super::{finish, further, parts};
use crate::providers::Failure;
use crate::providers::chunks::{Chunks, Stage};
use crate::providers::completion::Step;
use crate::providers::fields::Fields;
use crate::providers::json::Json;

/// Whether a choice may pass as it is: a delta at its place, and no finish reason.
pub(super) fn holds(choice: &Choice<'_>, chunks: &Chunks) -> bool {
    let Some(delta) = &choice.delta else { return false };
    choice.finish_reason.is_none()
        && choice.index.is_some()
        && !delta.content.is_some_and(Json::is_array)
        && match chunks.stage(choice.place()) {
            Stage::First => delta.role.is_some(),
            Stage::Inside => true,
            Stage::Behind => false,
        }
}

/// Takes a chunk apart. `numbers` are those of the calls in each choice, where they have to be changed. What the
/// provider adds beside the choices is in every chunk that comes of it.
pub(super) fn put(
    fields: &Fields<'_>,
    read: &[Choice<'_>],
    numbers: &[Option<Vec<u32>>],
    chunks: &mut Chunks,
) -> Result<Step, Failure> {
    let Some(values) = fields.read::<Vec<Map<String, Value>>>("choices") else { return Ok(Step::Unreadable) };
    for (place, (mut value, choice)) in values.into_iter().zip(read).enumerate() {
        let index = choice.place();
        if chunks.stage(index) == Stage::Behind {
            continue;
        }
        if chunks.is_flooded() {
            return Err(Failure::Malformed);
        }
        let reason = choice.finish_reason.map_or("", Json::get).trim_matches('"');
        let reason = finish::read(reason)?;
        let mut delta = value.shift_remove("delta").unwrap_or_default();
        if delta.is_null() && chunks.stage(index) == Stage::First {
            delta = value.shift_remove("message").unwrap_or_default();
        }
        value.shift_remove("finish_reason");
        tidy(&mut delta, numbers.get(place).and_then(Option::as_deref).unwrap_or_default());
        let has_content = has_content(&delta);
        choice.note(chunks);
        if chunks.stage(index) == Stage::First {
            chunks.delta(index, &json!({"role": "assistant", "content": ""}));
            if let (Some(fields), false) = (delta.as_object_mut(), has_content) {
                fields.clear();
            }
        }
        // What stands beside the delta may come without one, as Azure's opinions about what went before.
        let is_annotated = value.iter().any(|(name, value)| name != "index" && !value.is_null());
        let has_delta = delta.as_object().is_some_and(|delta| !delta.is_empty());
        if has_content || (reason.is_none() && (has_delta || is_annotated)) {
            let mut content = value.clone();
            let delta = if delta.is_null() { json!({}) } else { delta };
            content.insert("index".to_owned(), json!(index));
            content.insert("delta".to_owned(), delta);
            content.insert("finish_reason".to_owned(), Value::Null);
            chunks.write(&format!("[{}]", Value::Object(content)), further(fields));
            value.retain(|name, _| name == "index");
        }
        if let Some(reason) = reason {
            chunks.finish_beside(index, reason, value, further(fields));
        }
    }
    Ok(Step::More)
}

/// Puts a delta into the documented shape. `numbers` are those of its calls, if they have to be changed.
fn tidy(delta: &mut Value, numbers: &[u32]) {
    if let Some(delta) = delta.as_object_mut() {
        parts::flatten(delta);
    }
    for (place, number) in numbers.iter().enumerate() {
        let call = delta.get_mut("tool_calls").and_then(|list| list.get_mut(place));
        if let Some(call) = call.and_then(Value::as_object_mut) {
            call.insert("index".to_owned(), json!(number));
        }
    }
}

/// Whether a delta holds more than the role and empty texts.
fn has_content(delta: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    delta
        .as_object()
        .is_some_and(|delta| delta.iter().any(|(name, value)| name != "role" && !is_empty(value)))
}
