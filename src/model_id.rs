//! Identifiers of models: `<provider>/<model_name>`, such as `groq/openai/gpt-oss-120b`. The first slash divides them, as
//! a model's own name may have slashes.
//!
//! What is configured or asked for keeps to [`parse`]. What databases hold may be anything: [`split`] and [`provider`]
//! take it as it is.

use crate::unsafe_chars;

/// The longest name of a provider.
pub const MAX_PROVIDER_CHARS: usize = 64;
/// The longest name of a model, in bytes; longer than any in use.
pub const MAX_NAME_BYTES: usize = 256;

/// Provider and model, if both may have these names.
pub fn parse(id: &str) -> Option<(&str, &str)> {
    split(id).filter(|(provider, name)| is_provider_name(provider) && is_model_name(name))
}

/// What stands before the first slash and behind it.
pub fn split(id: &str) -> Option<(&str, &str)> {
    id.split_once('/')
}

/// What stands before the first slash; all of it where there is none.
pub fn provider(id: &str) -> &str {
    split(id).map_or(id, |(provider, _)| provider)
}

/// Whether a provider may have this name: it stands in settings, messages and labels.
pub fn is_provider_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_PROVIDER_CHARS && name.chars().all(plain)
}

/// Whether a model may have this name: providers call theirs as they like, in one word. It is shown beside others, which
/// it must not turn about.
pub fn is_model_name(name: &str) -> bool {
    // Nearly all are plain, which is seen at once.
    let is_plain = || name.bytes().all(|byte| byte.is_ascii_graphic());
    let is_one_word = || !name.contains(|c: char| c.is_whitespace() || unsafe_chars::is_hazard(c));
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && (is_plain() || is_one_word())
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
