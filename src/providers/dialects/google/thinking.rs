//! The thinking configuration of Gemini models: a level since Gemini 3, a token budget in 2.5.
//!
//! Generations are recognised by name, because the catalogue does not list them. Levels and budgets are those to which
//! Google's own chat-completion interface maps `reasoning_effort` (its guide to compatibility with `OpenAI`'s
//! libraries).

use serde_json::{Value, json};

use crate::providers::request::unsupported;
use crate::providers::{Effort, Failure};

const LEVELS: [&str; 4] = ["minimal", "low", "medium", "high"];

/// The `thinkingConfig` for an effort, if `model` has one.
pub(super) fn config(effort: &str, model: &str) -> Result<Value, Failure> {
    let refused = |message: &str| Err(unsupported("reasoning_effort", message));
    match version(model) {
        Some(3..) if LEVELS.contains(&effort) => Ok(json!({"thinkingLevel": effort})),
        Some(3..) => refused("this model accepts `minimal`, `low`, `medium` or `high`"),
        Some(2) if model.starts_with("gemini-2.5") => {
            let budget = match effort {
                "none" if model.contains("pro") => {
                    return refused(
                        "reasoning cannot be turned off for this model; `low` is the lowest effort",
                    );
                }
                "none" => 0,
                "minimal" | "low" => 1024,
                "medium" => 8192,
                "high" => 24_576,
                _ => return refused("this model accepts `none`, `minimal`, `low`, `medium` or `high`"),
            };
            Ok(json!({"thinkingBudget": budget}))
        }
        _ => refused("only Gemini 2.5 and later support a reasoning effort; leave it out"),
    }
}

/// The least effort that a model takes; `None` if it is told none.
pub(in crate::providers) fn least_effort(model: &str) -> Option<Effort> {
    let is_pro = model.contains("pro");
    match version(model) {
        Some(3..) => Some(if is_pro { Effort::Low } else { Effort::Minimal }),
        Some(2) if model.starts_with("gemini-2.5") => Some(if is_pro { Effort::Low } else { Effort::None }),
        _ => None,
    }
}

/// Whether a model signs its tool calls, and refuses those without a signature.
pub(super) fn signs_calls(model: &str) -> bool {
    version(model).is_some_and(|major| major >= 3)
}

/// The major version; an alias such as `gemini-flash-latest` stands for the newest.
fn version(model: &str) -> Option<u32> {
    let rest = model.strip_prefix("gemini-")?;
    if rest.ends_with("-latest") && !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(u32::MAX);
    }
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(effort: &str, model: &str) -> Option<Value> {
        config(effort, model).ok()
    }

    #[test]
    fn each_generation_has_its_own_configuration() {
        assert_eq!(accepted("low", "gemini-3.5-flash"), Some(json!({"thinkingLevel": "low"})));
        assert_eq!(accepted("high", "gemini-flash-latest"), Some(json!({"thinkingLevel": "high"})));
        assert_eq!(accepted("medium", "gemini-2.5-pro"), Some(json!({"thinkingBudget": 8192})));
        assert_eq!(accepted("none", "gemini-2.5-flash"), Some(json!({"thinkingBudget": 0})));
    }

    #[test]
    fn what_a_model_cannot_do_is_refused() {
        for (effort, model) in [
            ("none", "gemini-2.5-pro"),
            ("none", "gemini-3.5-flash"),
            ("xhigh", "gemini-3.5-flash"),
            ("xhigh", "gemini-2.5-flash"),
            ("low", "gemini-2.0-flash"),
            ("low", "gemma-3-27b-it"),
        ] {
            assert_eq!(accepted(effort, model), None, "{effort} {model}");
        }
    }

    #[test]
    fn tool_calls_are_signed_since_the_third_generation() {
        assert!(signs_calls("gemini-3.5-flash") && signs_calls("gemini-pro-latest"));
        assert!(!signs_calls("gemini-2.5-flash") && !signs_calls("gemma-3-27b-it"));
    }
}
