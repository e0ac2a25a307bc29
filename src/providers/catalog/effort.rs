//! How long a model may think before it answers.
//!
//! Models differ in the least that they take: some think always, some can be kept from it, and some take no such
//! parameter at all. What is known of families by name is only where to begin; a model that refuses it is asked with
//! the next higher effort, then without any ([`crate::providers::Model::without`]).

use super::model::{claude_version, is_openai_reasoner};
use crate::providers::Kind;
use crate::providers::dialects::{anthropic, google};

/// An effort, least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// The least that the model takes.
    #[default]
    Lowest,
    /// It does not think.
    None,
    /// A little.
    Minimal,
    /// Less than usual.
    Low,
    /// The usual.
    Medium,
    /// More than usual.
    High,
    /// The most that most models take.
    XHigh,
}

impl Effort {
    /// All efforts.
    pub const ALL: [Self; 7] =
        [Self::Lowest, Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh];

    /// Its name in configuration and, but for the lowest, in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lowest => "lowest",
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }

    /// The effort of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == name)
    }

    /// The least effort to try when a model refuses this one as its least; `None` to send none at all.
    pub(in crate::providers) const fn next_least(self) -> Option<Self> {
        match self {
            Self::Lowest | Self::None => Some(Self::Minimal),
            Self::Minimal => Some(Self::Low),
            _ => None,
        }
    }

    /// The least effort that a model takes, as far as its name tells and `reasons` of the catalogue; `None` if it takes
    /// none, or nobody knows.
    pub(in crate::providers) fn least(kind: Kind, name: &str, reasons: bool) -> Option<Self> {
        match kind {
            Kind::Anthropic => {
                let is_adaptive =
                    claude_version(name).is_some_and(|version| version >= anthropic::FIRST_ADAPTIVE);
                is_adaptive.then_some(Self::None)
            }
            Kind::Google => google::least_effort(name),
            Kind::OpenAi => least_of_openai(name).or(reasons.then_some(Self::None)),
            Kind::Sandbox => None,
        }
    }
}

/// What `OpenAI`'s models take, whoever serves them: since GPT-5.1 they can be kept from thinking (`OpenAI`'s guide to
/// reasoning).
fn least_of_openai(name: &str) -> Option<Effort> {
    let base = name.rsplit('/').next().unwrap_or(name);
    if base.starts_with("gpt-oss") {
        return Some(Effort::Low);
    }
    if !is_openai_reasoner(name) {
        return None;
    }
    match base.strip_prefix("gpt-5") {
        None if base.starts_with('o') => Some(Effort::Low),
        Some(rest) if !rest.starts_with('.') => Some(Effort::Minimal),
        _ => Some(Effort::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for effort in Effort::ALL {
            assert_eq!(Effort::parse(effort.as_str()), Some(effort));
        }
        assert_eq!(Effort::parse("LOW"), None);
        assert!(Effort::ALL.is_sorted());
    }

    #[test]
    fn each_family_begins_with_the_least_that_it_takes() {
        let least = |kind, name| Effort::least(kind, name, false).map(Effort::as_str);
        for (name, expected) in [
            ("o4-mini", Some("low")),
            ("gpt-5-nano-2025-08-07", Some("minimal")),
            ("gpt-5.4-mini", Some("none")),
            ("openai/gpt-6-luna", Some("none")),
            ("openai/gpt-oss-120b", Some("low")),
            ("gpt-4.1-mini", None),
            ("llama3.2", None),
        ] {
            assert_eq!(least(Kind::OpenAi, name), expected, "{name}");
        }
        for (name, expected) in [("claude-haiku-4-5", None), ("claude-sonnet-5", Some("none"))] {
            assert_eq!(least(Kind::Anthropic, name), expected, "{name}");
        }
        for (name, expected) in [
            ("gemini-3.5-flash", Some("minimal")),
            ("gemini-3.1-pro-preview", Some("low")),
            ("gemini-2.5-flash", Some("none")),
            ("gemini-2.5-pro", Some("low")),
            ("gemini-2.0-flash", None),
        ] {
            assert_eq!(least(Kind::Google, name), expected, "{name}");
        }
        assert_eq!(Effort::least(Kind::OpenAi, "mistral-small-latest", true), Some(Effort::None));
    }
}
