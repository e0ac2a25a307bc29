//! How long the model is to think, and the form of its answer: `thinking`, `output_config` and the older
//! `output_format`.
//!
//! Chat completions know no budget of thoughts but an effort, so a budget becomes one: up to 4,000 tokens `low`, up to
//! 16,000 `medium`, else `high`. A model that is told no effort decides itself, and the parameter is named as left out.

use serde_json::{Map, Value, json};

use super::left_out::LeftOut;
use super::{is_strict, take};
use crate::inference::{Effort, Takes};
use crate::server::reply::ApiError;
use crate::server::request::params::{invalid, missing, wrong_type};

/// The largest budget that is a low effort, and the largest that is a medium one, in tokens.
const LOW_BUDGET: u64 = 4_000;
const MEDIUM_BUDGET: u64 = 16_000;

/// The words for an effort.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// What a request asks for.
pub(super) struct Asked {
    pub(super) effort: Wanted,
    /// As `response_format`.
    pub(super) format: Option<Value>,
    pub(super) shows_thinking: bool,
}

/// How long the model is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing was said.
    Unsaid,
    /// As little as it can.
    Off,
    /// As long as it finds right.
    Adaptive,
    /// By a budget.
    Budget(&'static str),
    /// By a word of [`EFFORTS`].
    Word(&'static str),
}

impl Wanted {
    /// The parameter that says so.
    pub(super) const fn parameter(self) -> &'static str {
        match self {
            Self::Word(_) => "output_config.effort",
            _ => "thinking",
        }
    }

    /// The effort to tell models that take this, if any.
    pub(super) fn told(self, takes: Takes, has_tools: bool, left_out: &mut LeftOut) -> Option<&'static str> {
        let is_said = matches!(self, Self::Budget(_) | Self::Word(_));
        let Some(least) = takes.least_effort else {
            if is_said {
                left_out.note(self.parameter());
            }
            return None;
        };
        if has_tools && !takes.thinks_with_tools {
            if is_said {
                left_out.note(self.parameter());
            }
            return Some(Effort::None.as_str());
        }
        match self {
            Self::Unsaid => None,
            Self::Off => Some(least.as_str()),
            // What the Messages API itself does without a word.
            Self::Adaptive => takes.highest_efforts.then_some("high"),
            Self::Word("xhigh" | "max") if !takes.highest_efforts => Some("high"),
            Self::Budget(effort) | Self::Word(effort) => Some(effort),
        }
    }
}

/// Reads what a request asks for.
pub(super) fn read(fields: &mut Map<String, Value>, left_out: &mut LeftOut) -> Result<Asked, ApiError> {
    let (thinking, shows_thinking) = thinking(fields)?;
    let mut config = match take(fields, "output_config") {
        None => Map::new(),
        Some(Value::Object(config)) => config,
        Some(other) => return Err(wrong_type("output_config", "an object", &other)),
    };
    let effort = match config.shift_remove("effort").filter(|effort| !effort.is_null()) {
        None => None,
        Some(effort) => {
            let known = EFFORTS.into_iter().find(|known| effort == *known);
            Some(known.ok_or_else(|| {
                let allowed = "`output_config.effort` must be low, medium, high, xhigh or max";
                invalid("output_config.effort", allowed)
            })?)
        }
    };
    let older = take(fields, "output_format");
    let format = config.shift_remove("format").or(older).filter(|format| !format.is_null());
    let format = format.map(format_of).transpose()?.flatten();
    for name in config.keys() {
        // Such as `task_budget`; none changes what the answer is.
        left_out.note(&format!("output_config.{name}"));
    }
    let effort = match (thinking, effort) {
        (Wanted::Off, _) => Wanted::Off,
        (_, Some(effort)) => Wanted::Word(effort),
        (thinking, None) => thinking,
    };
    Ok(Asked { effort, format, shows_thinking })
}

/// `thinking`, and whether the thoughts are to be shown.
fn thinking(fields: &mut Map<String, Value>) -> Result<(Wanted, bool), ApiError> {
    let thinking = match take(fields, "thinking") {
        None => return Ok((Wanted::Unsaid, false)),
        Some(Value::Object(thinking)) => thinking,
        Some(other) => return Err(wrong_type("thinking", "an object", &other)),
    };
    let shows = thinking.get("display").is_none_or(|display| display != "omitted");
    match thinking.get("type").and_then(Value::as_str) {
        Some("disabled") => Ok((Wanted::Off, false)),
        Some("adaptive") => Ok((Wanted::Adaptive, shows)),
        Some("enabled") => {
            let budget = thinking.get("budget_tokens").ok_or_else(|| missing("thinking.budget_tokens"))?;
            let effort = match budget.as_u64() {
                Some(1..=LOW_BUDGET) => "low",
                Some(1..=MEDIUM_BUDGET) => "medium",
                Some(1..) => "high",
                _ => {
                    let message = "`thinking.budget_tokens` must be a whole number from 1";
                    return Err(invalid("thinking.budget_tokens", message));
                }
            };
            Ok((Wanted::Budget(effort), shows))
        }
        _ => Err(invalid("thinking.type", "`thinking.type` must be enabled, adaptive or disabled")),
    }
}

/// A format of the answer as `response_format`. Of models that have a strict mode, it is asked for where the schema
/// allows it; in any other mode the form is not certain, but no schema is refused.
fn format_of(mut format: Value) -> Result<Option<Value>, ApiError> {
    const PATH: &str = "output_config.format";
    if format["type"] != "json_schema" {
        return Err(invalid(PATH, "`output_config.format.type` must be json_schema"));
    }
    let schema = format["schema"].take();
    if !schema.is_object() {
        return Err(wrong_type("output_config.format.schema", "a JSON schema, an object", &schema));
    }
    let strict = is_strict(&schema);
    let schema = json!({"name": "output", "schema": schema, "strict": strict});
    Ok(Some(json!({"type": "json_schema", "json_schema": schema})))
}
