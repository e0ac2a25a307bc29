//! The JSON shapes that answers must have, strict: closed objects, every property required, no keyword that a
//! provider's strict mode refuses (lengths and counts are checked when the answer is read).

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::inference::Schema;
use crate::verify::claims::letter;

/// A claim has at most six options of its own, and two stand behind them.
const MOST_OPTIONS: usize = 8;

/// Of an extraction.
pub(super) fn claims() -> Schema {
    static SCHEMA: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(claims_schema()));
    Schema { name: "claims", schema: SCHEMA.clone() }
}

/// Of a panel model's answer to a question with so many options.
pub(super) fn answer(options: usize, explain: bool) -> Schema {
    /// By number of options, for the numbers that questions have; with and without a reason.
    static SCHEMAS: LazyLock<Vec<[Arc<Value>; 2]>> = LazyLock::new(|| {
        (0..=MOST_OPTIONS)
            .map(|options| [false, true].map(|explain| answer_schema(options, explain).into()))
            .collect()
    });
    let known = SCHEMAS.get(options).map(|schemas| schemas[usize::from(explain)].clone());
    Schema { name: "answer", schema: known.unwrap_or_else(|| answer_schema(options, explain).into()) }
}

fn claims_schema() -> Value {
    let text = json!({"type": "string"});
    let reasons = ["opinion", "prediction", "question", "instruction", "ambiguous", "duplicate"];
    let claim = closed(&json!({
        "claim": text,
        "question": text,
        "claimed_answer": text,
        "rivals": {"type": "array", "items": text},
    }));
    let skipped = closed(&json!({"text": text, "reason": {"type": "string", "enum": reasons}}));
    closed(&json!({
        "claims": {"type": "array", "items": claim},
        "skipped": {"type": "array", "items": skipped},
    }))
}

/// The reason stands before the answer, so that the model thinks before it chooses.
fn answer_schema(options: usize, explain: bool) -> Value {
    let letters: Vec<String> = (0..options).map(|position| letter(position).to_string()).collect();
    let answer = json!({"type": "string", "enum": letters});
    let properties = if explain {
        json!({"reason": {"type": "string"}, "answer": answer})
    } else {
        json!({"answer": answer})
    };
    closed(&properties)
}

fn closed(properties: &Value) -> Value {
    let names: Vec<&String> =
        properties.as_object().map(|fields| fields.keys().collect()).unwrap_or_default();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_strict(schema: &Value) {
        if schema["type"] == "object" {
            assert_eq!(schema["additionalProperties"], false);
            let properties = schema["properties"].as_object().unwrap();
            let required: Vec<&str> =
                schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(required, properties.keys().collect::<Vec<_>>());
            properties.values().for_each(assert_strict);
        }
        if schema["type"] == "array" {
            assert_strict(&schema["items"]);
        }
    }

    #[test]
    fn every_object_is_closed_and_requires_all() {
        for schema in [claims(), answer(6, false), answer(4, true)] {
            assert_strict(&schema.schema);
        }
        assert_eq!(answer(3, true).schema["properties"]["answer"]["enum"], json!(["A", "B", "C"]));
        assert_eq!(answer(3, true).schema["required"], json!(["reason", "answer"]));
    }
}
