//! Converts content that is a list of parts, as sent by Mistral's reasoning models, to the documented shape: the text
//! as one string, reasoning, refusals and images where other providers of this format have them (`reasoning_content`,
//! `refusal`, `images`), and parts of other types beside it (`content_parts`), so that nothing is lost.

use serde_json::{Map, Value};

use crate::providers::dialects::render::image;

/// Turns the content of a message or a delta into a string if it is a list; without text parts it becomes null, as in a
/// delta of reasoning only.
pub(super) fn flatten(message: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) =
        message.get_mut("content").filter(|content| content.is_array()).map(Value::take)
    else {
        return;
    };
    let (mut text, mut reasoning, mut refusal) = (None::<String>, String::new(), String::new());
    let (mut images, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(piece)) => text.get_or_insert_default().push_str(piece),
            (Some("refusal"), _) => refusal.push_str(part["refusal"].as_str().unwrap_or_default()),
            (Some("thinking"), _) => reasoning.push_str(&thinking_text(&part["thinking"])),
            (Some("image_url"), _) => match &part["image_url"] {
                Value::String(url) => images.push(image(url)),
                _ => images.push(part),
            },
            _ => rest.push(part),
        }
    }
    message.insert("content".to_owned(), text.map_or(Value::Null, Value::from));
    for (name, text) in [("reasoning_content", reasoning), ("refusal", refusal)] {
        if !text.is_empty() && message.get(name).is_none_or(Value::is_null) {
            message.insert(name.to_owned(), Value::from(text));
        }
    }
    if !images.is_empty() {
        match message.get_mut("images").and_then(Value::as_array_mut) {
            Some(list) => list.append(&mut images),
            None => drop(message.insert("images".to_owned(), Value::from(images))),
        }
    }
    if !rest.is_empty() {
        message.insert("content_parts".to_owned(), Value::from(rest));
    }
}

/// The text of a `thinking` part, which has a string or a list of texts.
fn thinking_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(content: &Value) -> Value {
        let mut message = Map::from_iter([("content".to_owned(), content.clone())]);
        flatten(&mut message);
        Value::Object(message)
    }

    #[test]
    fn texts_are_joined_and_the_rest_is_kept_beside_them() {
        let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]});
        let reference = json!({"type": "reference", "reference_ids": [1]});
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            flat(&json!([thought, text("a"), reference, text("b")])),
            json!({"content": "ab", "reasoning_content": "hm", "content_parts": [reference]})
        );
        let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
        let plain = json!({"type": "image_url", "image_url": "data:image/png;base64,aGk="});
        assert_eq!(flat(&json!([text("a"), url, plain])), json!({"content": "a", "images": [url, url]}));
        assert_eq!(flat(&json!([])), json!({"content": null}));
        for other in [json!("text"), json!(null), json!(7)] {
            assert_eq!(flat(&other), json!({"content": other}));
        }
    }
}
