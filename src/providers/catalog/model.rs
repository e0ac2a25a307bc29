//! What a dialect needs to know about a model, and where that knowledge comes from.

use crate::providers::{Effort, Kind, catalog};

/// What providers call the fields for structured output, in lowercase. Anthropic has `output_config`; Gemini has
/// `responseJsonSchema` and `responseMimeType`, and says "JSON mode is not enabled" where it supports neither.
const STRUCTURE_FIELDS: [&str; 12] = [
    "response_format",
    "response format",
    "json_schema",
    "json_object",
    "output_config",
    "output_format",
    "structured output",
    "responsejsonschema",
    "response_schema",
    "responsemimetype",
    "response_mime_type",
    "json mode",
];

/// What providers call the effort of thinking, in lowercase: `reasoning_effort`, `output_config.effort`,
/// `thinkingConfig`, "thinking level".
const EFFORT_FIELDS: [&str; 2] = ["effort", "thinking"];

/// What providers call the limit of an answer, in lowercase.
const LIMIT_FIELDS: [&str; 4] =
    ["max_tokens", "max_completion_tokens", "maxoutputtokens", "max_output_tokens"];
/// How they say that it is more than the model can write.
const TOO_LARGE_PHRASES: [&str; 5] = ["too large", "too high", "at most", " > ", "less than or equal"];

/// A model, and the parameters that it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "parameters that a model accepts or not, each by itself")]
pub struct Model {
    /// The format of its provider.
    pub kind: Kind,
    /// The provider's own name for it.
    pub name: String,
    /// How it can be made to answer with JSON.
    pub structure: Structure,
    /// Whether it accepts a temperature.
    pub temperature: bool,
    /// Whether its token limit is called `max_completion_tokens` rather than `max_tokens`.
    pub max_completion_tokens: bool,
    /// Whether it accepts the limits that we set for the length of answers. If not, they are left out.
    pub answer_limit: bool,
    /// The maximum number of tokens in a prompt, if known.
    pub max_input_tokens: Option<u64>,
    /// The maximum number of tokens in an answer, if known.
    pub max_output_tokens: Option<u64>,
    /// Whether a stream can be asked to report its token usage.
    pub stream_usage: bool,
    /// Whether its provider has the Responses API for it; `None` if nobody knows.
    pub responses: Option<bool>,
    /// The least effort of thinking that it takes; `None` if it is told none.
    pub least_effort: Option<Effort>,
}

/// How a model can be made to answer with JSON, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// With a JSON schema.
    Schema,
    /// With a mode for JSON of any shape.
    JsonMode,
    /// Only by the prompt.
    Plain,
}

impl Structure {
    /// What to try when a provider refuses this one.
    const fn weaker(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::JsonMode),
            Self::JsonMode => Some(Self::Plain),
            Self::Plain => None,
        }
    }
}

impl Model {
    /// What is known about the model `name` of the provider configured as `provider`. If only one company uses the
    /// format, its models are recognised under any configured name.
    ///
    /// Models that are not in the catalogue start with a schema: local servers (Ollama, vLLM, llama.cpp, LM Studio) and
    /// routers accept one for any model, and some of them refuse JSON mode. A refused schema is reported immediately
    /// and free of charge; see [`Model::without`].
    pub fn known(provider: &str, kind: Kind, name: &str) -> Self {
        let facts = catalog::model(&[kind.sole_provider().unwrap_or(provider), "/", name].concat());
        let takes_schema = facts.as_ref().is_none_or(|facts| facts.json_schema);
        let is_reasoner = is_openai_reasoner(name);
        let reasons = facts.as_ref().is_some_and(|facts| facts.reasoning);
        Self {
            kind,
            name: name.to_owned(),
            structure: if takes_schema { Structure::Schema } else { Structure::JsonMode },
            temperature: !is_reasoner && !is_claude_without_temperature(name),
            max_completion_tokens: is_reasoner,
            answer_limit: true,
            max_input_tokens: facts.and_then(|facts| facts.max_input_tokens),
            max_output_tokens: facts.and_then(|facts| facts.max_output_tokens),
            stream_usage: true,
            responses: None,
            least_effort: Effort::least(kind, name, reasons),
        }
    }

    /// The effort that it is told where this one is wanted; `None` if it is told none.
    pub fn effort(&self, wanted: Effort) -> Option<Effort> {
        let effort = self.least_effort.map(|least| wanted.max(least))?;
        match self.kind {
            // Without a word about it, Claude does not think.
            Kind::Anthropic => (effort > Effort::None).then(|| effort.max(Effort::Low)),
            Kind::Google => Some(effort.min(Effort::High)),
            Kind::OpenAi | Kind::Sandbox => Some(effort),
        }
    }

    /// This model without the parameters that a provider has just refused, if its message names any that can be left
    /// out or expressed otherwise: all of them at once, as some providers list everything they do not accept. There are
    /// no common error codes for this, but all providers name the field.
    pub fn without(&self, refusal: &str) -> Option<Self> {
        let refusal = refusal.to_lowercase();
        let names = |fields: &[&str]| fields.iter().any(|field| refusal.contains(field));
        let mut model = self.clone();
        if self.answer_limit && names(&LIMIT_FIELDS) && names(&TOO_LARGE_PHRASES) {
            model.answer_limit = false;
            // For a format that requires a limit.
            model.max_output_tokens = named_maximum(&refusal).or(model.max_output_tokens);
        } else {
            model.max_completion_tokens |= names(&["max_completion_tokens"]);
        }
        model.stream_usage &= !names(&["stream_options", "include_usage"]);
        model.temperature &= !names(&["temperature"]);
        if let Some(least) = self.least_effort.filter(|_| names(&EFFORT_FIELDS)) {
            model.least_effort = least.next_least();
        } else if names(&STRUCTURE_FIELDS) {
            model.structure = self.structure.weaker().unwrap_or(self.structure);
        }
        (model != *self).then_some(model)
    }
}

/// The longest answer that a refused limit may be replaced with, in tokens, as the provider names it in lowercase.
fn named_maximum(refusal: &str) -> Option<u64> {
    let number = |after: &str| {
        let (_, rest) = refusal.split_once(after)?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|&maximum| maximum > 0)
    };
    [" > ", "at most", "less than or equal to"].into_iter().find_map(number)
}

/// Whether the model belongs to one of `OpenAI`'s reasoning families (o-series; GPT-5 and later).
///
/// By name rather than by the catalogue's `reasoning`, because only these families changed the parameters: other
/// providers' reasoning models keep `max_tokens` and a temperature, and some refuse parameters they do not know. The
/// name also works behind routers and gateways of other names.
pub(in crate::providers) fn is_openai_reasoner(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    if let Some(rest) = base.strip_prefix("gpt-") {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return digits.parse::<u32>().is_ok_and(|generation| (5..1000).contains(&generation));
    }
    base.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the model is a Claude model that refuses a temperature, as all versions after 4.6 do (Anthropic's migration
/// guide to Opus 4.7). By name, because the catalogue does not say so.
fn is_claude_without_temperature(name: &str) -> bool {
    const LAST_WITH_TEMPERATURE: (u32, u32) = (4, 6);
    claude_version(name).is_some_and(|version| version > LAST_WITH_TEMPERATURE)
}

/// The version in the name of a Claude model, where it precedes or follows the family: `claude-3-5-haiku`,
/// `claude-opus-4-8`.
pub(in crate::providers) fn claude_version(name: &str) -> Option<(u32, u32)> {
    let rest = name.rsplit('/').next().and_then(|base| base.strip_prefix("claude-"))?;
    // A number with more digits is a date.
    let is_version = |part: &&str| part.len() < 3 && part.chars().all(|c| c.is_ascii_digit());
    let mut numbers = rest
        .split(['-', '.'])
        .skip_while(|part| !is_version(part))
        .take_while(is_version)
        .filter_map(|part| part.parse().ok());
    let major: u32 = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_families_are_recognised_by_name() {
        for name in ["o1", "o4-mini", "gpt-5", "gpt-5.4-mini", "gpt-6-sol", "openai/gpt-5-nano"] {
            assert!(is_openai_reasoner(name), "{name}");
        }
        for name in
            ["gpt-4.1", "gpt-4o", "gpt-oss-120b", "openai/gpt-oss-20b", "olmo-2", "magistral-small-latest"]
        {
            assert!(!is_openai_reasoner(name), "{name}");
        }
    }

    #[test]
    fn unknown_models_are_tried_with_a_schema() {
        assert_eq!(Model::known("local", Kind::OpenAi, "llama3.2").structure, Structure::Schema);
    }

    #[test]
    fn newer_claude_models_are_recognised_by_name() {
        for name in
            ["claude-opus-4-7", "claude-opus-4-8-20260601", "claude-sonnet-5", "anthropic/claude-haiku-5.5"]
        {
            assert!(is_claude_without_temperature(name), "{name}");
        }
        for name in [
            "claude-haiku-4-5-20251001",
            "claude-opus-4-20250514",
            "claude-sonnet-4-6",
            "claude-3-5-haiku-20241022",
            "claude-mythos-preview",
            "claude-",
            "gpt-5",
        ] {
            assert!(!is_claude_without_temperature(name), "{name}");
        }
    }

    #[test]
    fn models_of_a_single_maker_s_format_are_recognised_under_any_provider_name() {
        let facts = |kind| Model::known("work", kind, "claude-haiku-4-5").max_output_tokens;
        assert_eq!(facts(Kind::Anthropic), Some(64_000));
        assert_eq!(facts(Kind::OpenAi), None);
    }

    #[test]
    fn everything_that_one_refusal_names_is_left_out() {
        let refusal = "stream_options.include_usage: Extra inputs are not permitted; temperature: Extra inputs are not permitted";
        let model = Model::known("mistral", Kind::OpenAi, "m").without(refusal).unwrap();
        assert!(!model.stream_usage && !model.temperature);
        assert_eq!(model.without(refusal), None);
    }

    #[test]
    fn a_limit_that_is_too_large_is_left_out_and_the_maximum_remembered() {
        let model = Model::known("local", Kind::OpenAi, "m");
        for (refusal, maximum) in [
            ("max_tokens is too large: 4096. This model supports at most 2048 completion tokens", Some(2048)),
            (
                "max_tokens: 4096 > 2048, which is the maximum allowed number of output tokens for m",
                Some(2048),
            ),
            ("'max_tokens' or 'max_completion_tokens' is too large: 4096.", None),
        ] {
            let reduced = model.without(refusal).unwrap();
            let expected = Model { answer_limit: false, max_output_tokens: maximum, ..model.clone() };
            assert_eq!(reduced, expected, "{refusal}");
        }
        let renamed = model.without("'max_tokens' is not supported. Use 'max_completion_tokens'").unwrap();
        assert!(renamed.answer_limit && renamed.max_completion_tokens);
    }

    #[test]
    fn a_refused_effort_is_raised_and_then_left_out() {
        let mut model = Model::known("openai", Kind::OpenAi, "gpt-5.4-mini");
        for (least, sent) in [
            (Some(Effort::None), Some(Effort::None)),
            (Some(Effort::Minimal), Some(Effort::Minimal)),
            (Some(Effort::Low), Some(Effort::Low)),
            (None, None),
        ] {
            assert_eq!((model.least_effort, model.effort(Effort::Lowest)), (least, sent));
            assert_eq!(model.effort(Effort::High), least.map(|_| Effort::High));
            let refusal = "Unsupported value: 'reasoning_effort' does not support 'none' with this model.";
            model = model.without(refusal).unwrap_or(model);
        }
        let claude = Model::known("anthropic", Kind::Anthropic, "claude-sonnet-5");
        let refused = claude.without("output_config.effort: Extra inputs are not permitted").unwrap();
        assert_eq!(refused.structure, claude.structure);
    }

    #[test]
    fn refused_parameters_are_left_out_until_none_is_left() {
        let mut model = Model::known("azure", Kind::OpenAi, "our-deployment");
        for refusal in [
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "Unsupported value: 'temperature' does not support 0 with this model.",
            "This response_format type is unavailable now",
            "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'.",
        ] {
            assert_eq!(model.without("no such field: tools"), None);
            model = model.without(refusal).unwrap_or_else(|| panic!("{refusal}"));
        }
        let bare = Model {
            structure: Structure::Plain,
            temperature: false,
            max_completion_tokens: true,
            ..model.clone()
        };
        assert_eq!(model, bare);
        for again in ["max_completion_tokens", "temperature", "response_format"] {
            assert_eq!(model.without(again), None);
        }
    }
}
