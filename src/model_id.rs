//! Model identifiers: `<provider>/<model_name>`, such as `groq/openai/gpt-oss-120b`. The first slash divides them, as a
//! model's own name may contain slashes. A name without a slash may be that of a pool of models.
//!
//! Whatever is configured or requested must satisfy [`parse`]. Databases may hold anything: [`split`] and [`provider`]
//! accept it as it is.

use crate::unsafe_chars;

/// The maximum length of a provider's name.
pub const MAX_PROVIDER_CHARS: usize = 64;
/// The maximum length of a model's name in bytes; longer than any in use.
pub const MAX_NAME_BYTES: usize = 256;

/// Provider and model, if both names are valid.
pub fn parse(id: &str) -> Option<(&str, &str)> {
    split(id).filter(|(provider, name)| is_provider_name(provider) && is_model_name(name))
}

/// The parts before and after the first slash.
pub fn split(id: &str) -> Option<(&str, &str)> {
    id.split_once('/')
}

/// The part before the first slash; all of it if there is none.
pub fn provider(id: &str) -> &str {
    split(id).map_or(id, |(provider, _)| provider)
}

/// Whether this is a valid name for a provider: it appears in settings, messages and labels.
pub fn is_provider_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_PROVIDER_CHARS && name.chars().all(plain)
}

/// Whether this is a valid name for a model: whatever the provider calls it, in one word. It is displayed beside other
/// text, which it must not be able to garble.
pub fn is_model_name(name: &str) -> bool {
    let is_one_word = !name.contains(|c: char| c.is_whitespace() || unsafe_chars::is_hazard(c));
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && is_one_word
}

/// Whether this is a valid name for a pool of models: a model's name that is no identifier and no pattern.
pub fn is_pool_name(name: &str) -> bool {
    is_model_name(name) && !name.contains(['/', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_divides_provider_and_model() {
        assert_eq!(parse("groq/openai/gpt-oss-120b"), Some(("groq", "openai/gpt-oss-120b")));
        for wrong in
            ["gpt", "/gpt", "openai/", "Open AI/gpt", "openai/\u{1b}[2J", "openai/\u{202e}x", "openai/b c"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse("a/größer"), Some(("a", "größer")));
        assert_eq!((provider("groq/openai/x"), provider("gpt"), provider("/gpt")), ("groq", "gpt", ""));
    }
}
