//! Content that comes as a list of parts, as Mistral's reasoning models write it, told in the documented shape: the
//! text as one string, thoughts where other providers of this format have them (`reasoning_content`), and parts of
//! other types beside it (`content_parts`), so that nothing is lost.

use serde_json::{Map, Value};

/// Makes a text of the content of a message or a delta, if it is a list. Without a text there is no content, as in a
/// delta that only thinks.
pub(super) fn flatten(said: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) =
        said.get_mut("content").filter(|content| content.is_array()).map(Value::take)
    else {
        return;
    };
    let (mut text, mut thoughts, mut rest) = (None::<String>, String::new(), Vec::new());
    for part in parts {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(piece)) => text.get_or_insert_default().push_str(piece),
            (Some("thinking"), _) => thoughts.push_str(&thought(&part["thinking"])),
            _ => rest.push(part),
        }
    }
    said.insert("content".to_owned(), text.map_or(Value::Null, Value::from));
    if !thoughts.is_empty() && said.get("reasoning_content").is_none_or(Value::is_null) {
        said.insert("reasoning_content".to_owned(), Value::from(thoughts));
    }
    if !rest.is_empty() {
        said.insert("content_parts".to_owned(), Value::from(rest));
    }
}

/// A thought is a text, or a list of texts.
fn thought(value: &Value) -> String {
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
        let mut said = Map::from_iter([("content".to_owned(), content.clone())]);
        flatten(&mut said);
        Value::Object(said)
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
        assert_eq!(flat(&json!([])), json!({"content": null}));
        for other in [json!("text"), json!(null), json!(7)] {
            assert_eq!(flat(&other), json!({"content": other}));
        }
    }
}
