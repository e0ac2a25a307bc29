//! What models take of what tunes an answer, for requests that were written for another protocol: their callers could
//! not know which model they ask.

use super::model::is_openai_reasoner;
use crate::providers::{Effort, Kind, Model};

/// What a model, or each of several, takes. By default, nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "what a model takes or not, each by itself")]
pub struct Takes {
    /// Whether it is told what of a prompt to cache (`cache_control`).
    pub cache_marks: bool,
    /// The least effort of thinking that it can be told; `None` if it is told none.
    pub least_effort: Option<Effort>,
    /// Whether it takes the highest efforts, `xhigh` and `max`.
    pub highest_efforts: bool,
    /// Whether it may think when it has tools. `OpenAI`'s own models since GPT-5.2 may not in chat completions: they
    /// refuse tools with any effort but `none`, the newest even where none is given.
    pub thinks_with_tools: bool,
    /// Whether chat completions are its provider's own format, so that it gets what is unknown here as well.
    pub own_format: bool,
    /// The most tokens of an answer, if known.
    pub max_output_tokens: Option<u64>,
}

impl Takes {
    /// What a model of a provider of this kind takes.
    pub(in crate::providers) fn of(kind: Kind, model: &Model) -> Self {
        let can_keep_from_thinking = model.least_effort == Some(Effort::None);
        // Routers have other rules; their names have a slash.
        let is_of_openai =
            kind == Kind::OpenAi && !model.name.contains('/') && is_openai_reasoner(&model.name);
        Self {
            cache_marks: kind == Kind::Anthropic,
            least_effort: model.least_effort,
            highest_efforts: kind == Kind::Anthropic,
            thinks_with_tools: !(is_of_openai && can_keep_from_thinking),
            own_format: kind == Kind::OpenAi,
            max_output_tokens: model.max_output_tokens,
        }
    }

    /// The effort to tell it where a caller asks for this one; `None` to tell it none.
    pub fn effort(self, wanted: &str, has_tools: bool) -> Option<&str> {
        let Some(least) = self.least_effort else { return self.own_format.then_some(wanted) };
        if has_tools && !self.thinks_with_tools {
            return Some(Effort::None.as_str());
        }
        Some(match Effort::parse(wanted) {
            Some(effort) if effort < least => least.as_str(),
            Some(Effort::XHigh) if !self.own_format && !self.highest_efforts => Effort::High.as_str(),
            _ => wanted,
        })
    }

    /// What each of two takes.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        let limits = [self.max_output_tokens, other.max_output_tokens];
        Self {
            cache_marks: self.cache_marks && other.cache_marks,
            least_effort: self.least_effort.zip(other.least_effort).map(|(one, other)| one.max(other)),
            highest_efforts: self.highest_efforts && other.highest_efforts,
            thinks_with_tools: self.thinks_with_tools && other.thinks_with_tools,
            own_format: self.own_format && other.own_format,
            max_output_tokens: limits.into_iter().flatten().min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, name: &str) -> Takes {
        Takes::of(kind, &Model::known("nobody", kind, name))
    }

    #[test]
    fn only_openai_s_newer_models_cannot_think_with_tools() {
        for (name, thinks) in
            [("gpt-5.6-luna", false), ("gpt-5.4-mini", false), ("o4-mini", true), ("openai/gpt-5.6", true)]
        {
            assert_eq!(of(Kind::OpenAi, name).thinks_with_tools, thinks, "{name}");
        }
        assert!(of(Kind::Anthropic, "claude-sonnet-5").thinks_with_tools);
    }

    #[test]
    fn several_models_take_what_each_of_them_takes() {
        let (claude, gpt) = (of(Kind::Anthropic, "claude-sonnet-5"), of(Kind::OpenAi, "o4-mini"));
        assert!(claude.cache_marks && claude.highest_efforts);
        let both = claude.both(gpt);
        assert_eq!((both.cache_marks, both.highest_efforts), (false, false));
        assert_eq!(both.least_effort, Some(Effort::Low));
        assert_eq!(both.both(of(Kind::OpenAi, "llama3.2")).least_effort, None);
    }
}
