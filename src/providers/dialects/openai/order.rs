//! Enforces the order of a streamed answer: the role before content, content before the finish reason, nothing after
//! it. Chunks in order are passed on unchanged; the others are taken apart here. Some servers send a finish reason with
//! every chunk, or content after it: the content is passed on, and the reason comes at the end.

use serde_json::{Map, Value, json};

use super::stream::Choice;
use super::{extra_fields, finish_reason, parts};
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::providers::Failure;
use crate::providers::completion::{EventOutcome, PROVIDER_FINISH_REASON};
use crate::providers::stream::chunk_writer::{ChoiceStage, ChunkWriter};

/// Whether a choice can be passed on unchanged: its delta is in order, and there is no finish reason.
pub(super) fn is_in_order(choice: &Choice<'_>, chunks: &ChunkWriter) -> bool {
    let Some(delta) = &choice.delta else { return false };
    choice.finish_reason.is_none()
        && choice.index.is_some()
        && !delta.content.is_some_and(Json::is_array)
        && delta.has_documented_role()
        && match chunks.stage(choice.index()) {
            ChoiceStage::NotStarted => delta.role.is_some(),
            ChoiceStage::Open => true,
            ChoiceStage::Finished | ChoiceStage::Excess => false,
        }
}

/// Takes a chunk apart and writes its content in order. `numbers` has the tool call numbers of each choice that have to
/// be changed. The provider's extra fields are in every resulting chunk.
pub(super) fn write_in_order(
    fields: &Fields<'_>,
    read: &[Choice<'_>],
    numbers: &[Option<Vec<u32>>],
    chunks: &mut ChunkWriter,
) -> Result<EventOutcome, Failure> {
    let Some(values) = fields.read::<Vec<Map<String, Value>>>("choices") else {
        return Ok(EventOutcome::Unreadable);
    };
    for (position, (mut value, choice)) in values.into_iter().zip(read).enumerate() {
        let index = choice.index();
        let stage = chunks.stage(index);
        if stage == ChoiceStage::Excess {
            continue;
        }
        if chunks.is_flooded() {
            return Err(Failure::Malformed);
        }
        let word = choice.finish_reason.map_or("", Json::get).trim_matches('"');
        let reason = finish_reason::read(word);
        let mut delta = value.shift_remove("delta").unwrap_or_default();
        if delta.is_null() && stage == ChoiceStage::NotStarted {
            delta = value.shift_remove("message").unwrap_or_default();
        }
        value.shift_remove("finish_reason");
        normalize(&mut delta, numbers.get(position).and_then(Option::as_deref).unwrap_or_default());
        let has_content = has_content(&delta);
        let reason = match reason {
            // What comes with the report of an interruption is a part of the answer as well.
            Err(failure) if !has_content => return Err(failure),
            reason => reason,
        };
        choice.record(chunks);
        if stage == ChoiceStage::NotStarted {
            chunks.delta(index, &json!({"role": "assistant", "content": ""}));
            if let (Some(fields), false) = (delta.as_object_mut(), has_content) {
                fields.clear();
            }
        }
        // Fields beside the delta may come without one, such as Azure's content filter results for earlier chunks.
        let is_annotated = value.iter().any(|(name, value)| name != "index" && !value.is_null());
        let has_delta = delta.as_object().is_some_and(|delta| !delta.is_empty());
        let is_open = reason == Ok(None) && stage != ChoiceStage::Finished;
        if has_content || (is_open && (has_delta || is_annotated)) {
            let mut content = value.clone();
            let delta = if delta.is_null() { json!({}) } else { delta };
            content.insert("index".to_owned(), json!(index));
            content.insert("delta".to_owned(), delta);
            content.insert("finish_reason".to_owned(), Value::Null);
            chunks.write(&format!("[{}]", Value::Object(content)), extra_fields(fields));
            value.retain(|name, _| name == "index");
        }
        if let Some(reason) = reason? {
            if let Some(word) = finish_reason::unheard_of(word) {
                value.insert(PROVIDER_FINISH_REASON.to_owned(), json!(word));
            }
            chunks.finish_with_extra(index, reason, value, extra_fields(fields));
        }
    }
    Ok(EventOutcome::More)
}

/// Puts a delta into the documented shape. `numbers` are those of its tool calls, if they have to be changed.
fn normalize(delta: &mut Value, numbers: &[u32]) {
    if let Some(delta) = delta.as_object_mut() {
        parts::flatten(delta);
        if delta.get("role").is_some_and(|role| role != "assistant") {
            delta.shift_remove("role");
        }
    }
    for (place, number) in numbers.iter().enumerate() {
        let call = delta.get_mut("tool_calls").and_then(|list| list.get_mut(place));
        if let Some(call) = call.and_then(Value::as_object_mut) {
            call.insert("index".to_owned(), json!(number));
        }
    }
}

/// Whether a delta contains more than the role and empty values.
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
