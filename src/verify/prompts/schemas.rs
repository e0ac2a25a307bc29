//! The JSON schemas of answers, strict: closed objects, every property required, and no keyword that a provider's
//! strict mode rejects (lengths and counts are checked when the answer is parsed).

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::inference::Schema;
use crate::verify::claim::letter;

/// A claim has at most six options of its own, and the two fixed ones.
const MAX_OPTIONS: usize = 8;

/// The schema of an extraction.
pub(super) fn claims() -> Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new("claims", claims_schema()));
    SCHEMA.clone()
}

/// The schema of an audit.
pub(super) fn audit() -> Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new("audit", audit_schema()));
    SCHEMA.clone()
}

/// The schema of a panel model's answer to a question with this many options.
pub(super) fn answer(options: usize, explain: bool) -> Schema {
    /// By number of options; without and with a reason.
    static SCHEMAS: LazyLock<Vec<[Schema; 2]>> = LazyLock::new(|| {
        (0..=MAX_OPTIONS).map(|options| [false, true].map(|explain| built(options, explain))).collect()
    });
    fn built(options: usize, explain: bool) -> Schema {
        Schema::new("answer", answer_schema(options, explain))
    }
    let prebuilt = SCHEMAS.get(options).map(|schemas| schemas[usize::from(explain)].clone());
    prebuilt.unwrap_or_else(|| built(options, explain))
}

fn claims_schema() -> Value {
    let text = json!({"type": "string"});
    let reasons =
        ["opinion", "prediction", "question", "instruction", "ambiguous", "private", "no_claim", "duplicate"];
    let claim = closed_object(&json!({
        "quote": text,
        "claim": text,
        "question": text,
        "claimed_answer": text,
        "rivals": {"type": "array", "items": text},
        "best": text,
    }));
    let skipped = closed_object(&json!({"quote": text, "reason": {"type": "string", "enum": reasons}}));
    closed_object(&json!({
        "claims": {"type": "array", "items": claim},
        "skipped": {"type": "array", "items": skipped},
    }))
}

fn audit_schema() -> Value {
    let text = json!({"type": "string"});
    let faults = ["meaning", "reference", "quote", "answer", "same", "overlap", "leak"];
    let claim = closed_object(&json!({
        "id": text,
        "fault": {"type": "string", "enum": faults},
        "options": {"type": "array", "items": text},
        "text": text,
    }));
    let missing = closed_object(&json!({"quote": text}));
    closed_object(&json!({
        "claims": {"type": "array", "items": claim},
        "missing": {"type": "array", "items": missing},
    }))
}

/// What the model found comes before the reason, and both before the answer, so that it thinks before it chooses.
fn answer_schema(options: usize, explain: bool) -> Value {
    let letters: Vec<String> = (0..options).map(|position| letter(position).to_string()).collect();
    let answer = json!({"type": "string", "enum": letters});
    let text = json!({"type": "string"});
    let properties = if explain {
        json!({"found": text, "reason": text, "answer": answer})
    } else {
        json!({"found": text, "answer": answer})
    };
    closed_object(&properties)
}

fn closed_object(properties: &Value) -> Value {
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
    fn every_object_is_closed_and_requires_all_properties() {
        for schema in [claims(), audit(), answer(6, false), answer(4, true)] {
            assert_strict(schema.value());
        }
        assert_eq!(answer(3, true).value()["properties"]["answer"]["enum"], json!(["A", "B", "C"]));
        assert_eq!(answer(3, true).value()["required"], json!(["found", "reason", "answer"]));
    }
}
