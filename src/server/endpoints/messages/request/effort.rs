//! How long the model is to think, and the form of its answer: `thinking`, `output_config` and the older
//! `output_format`.
//!
//! Chat completions know no budget of thoughts but an effort, so a budget becomes one: up to 4,000 tokens `low`, up to
//! 16,000 `medium`, else `high`. A model that is told no effort decides itself, and the parameter is named as left out.

use super::is_strict;
use super::left_out::LeftOut;
use super::path::Path;
use crate::inference::{Effort, Fields, Json, Takes};
use crate::json::fields::write_field;
use crate::server::reply::ApiError;
use crate::server::request::params::invalid;

/// The largest budget that is a low effort, and the largest that is a medium one, in tokens.
const LOW_BUDGET: u64 = 4_000;
const MEDIUM_BUDGET: u64 = 16_000;

/// The words for an effort.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// What a request asks for.
pub(super) struct Asked<'a> {
    pub(super) effort: Wanted,
    /// The schema of the answer.
    schema: Option<Json<'a>>,
    pub(super) shows_thinking: bool,
}

impl Asked<'_> {
    /// Writes the form of the answer. Of models that have a strict mode, it is asked for where the schema allows it; in
    /// any other mode the form is not certain, but no schema is refused.
    pub(super) fn write_format(&self, out: &mut Vec<u8>) {
        let Some(schema) = self.schema else { return };
        write_field(out, "response_format", "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"output\"");
        write_field(out, "schema", schema.get());
        write_field(out, "strict", if is_strict(schema) { "true" } else { "false" });
        out.extend_from_slice(b"}}");
    }
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
pub(super) fn read<'a>(fields: &Fields<'a>, left_out: &mut LeftOut) -> Result<Asked<'a>, ApiError> {
    let (thinking, shows_thinking) = thinking(fields)?;
    let path = Path::Parameter("output_config");
    let config = fields.non_null("output_config").map(|config| path.object(config));
    let config = config.transpose()?.unwrap_or_default();
    let effort = match config.non_null("effort").map(Json::string) {
        None => None,
        Some(effort) => {
            let known = EFFORTS.into_iter().find(|known| effort.as_deref() == Some(known));
            Some(known.ok_or_else(|| path.field("effort").must_be("low, medium, high, xhigh or max"))?)
        }
    };
    let format =
        config.get("format").or_else(|| fields.get("output_format")).filter(|format| !format.is_null());
    let schema = format.map(|format| schema_of(format, &path.field("format"))).transpose()?;
    for (name, _) in config.iter().filter(|(name, _)| !matches!(*name, "effort" | "format")) {
        // Such as `task_budget`; none changes what the answer is.
        left_out.note(&format!("output_config.{name}"));
    }
    let effort = match (thinking, effort) {
        (Wanted::Off, _) => Wanted::Off,
        (_, Some(effort)) => Wanted::Word(effort),
        (thinking, None) => thinking,
    };
    Ok(Asked { effort, schema, shows_thinking })
}

/// `thinking`, and whether the thoughts are to be shown.
fn thinking(fields: &Fields<'_>) -> Result<(Wanted, bool), ApiError> {
    let path = Path::Parameter("thinking");
    let Some(thinking) = fields.non_null("thinking") else { return Ok((Wanted::Unsaid, false)) };
    let thinking = path.object(thinking)?;
    let word = |name| thinking.get(name).and_then(Json::string);
    let shows = word("display").as_deref() != Some("omitted");
    match word("type").as_deref() {
        Some("disabled") => Ok((Wanted::Off, false)),
        Some("adaptive") => Ok((Wanted::Adaptive, shows)),
        Some("enabled") => {
            let path = path.field("budget_tokens");
            let budget = thinking.get("budget_tokens").ok_or_else(|| path.missing())?;
            let effort = match budget.read() {
                Some(1..=LOW_BUDGET) => "low",
                Some(1..=MEDIUM_BUDGET) => "medium",
                Some(1..) => "high",
                _ => return Err(path.must_be("a whole number from 1")),
            };
            Ok((Wanted::Budget(effort), shows))
        }
        _ => Err(path.field("type").must_be("enabled, adaptive or disabled")),
    }
}

/// The schema of a format of the answer.
fn schema_of<'a>(format: Json<'a>, path: &Path<'_>) -> Result<Json<'a>, ApiError> {
    let [kind, schema] = format.fields(["type", "schema"]).unwrap_or_default();
    if kind.and_then(Json::string).as_deref() != Some("json_schema") {
        let message = "`output_config.format.type` must be json_schema";
        return Err(invalid(&path.to_string(), message));
    }
    let is_schema = |schema: &Json<'_>| schema.is_object();
    let path = path.field("schema");
    schema.filter(is_schema).ok_or_else(|| path.wrong_type("a JSON schema, an object", schema))
}
