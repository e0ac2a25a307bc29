//! How many tokens a text is, roughly, for providers that do not say.
//!
//! Four characters a token is what tokenizers average on English prose; other scripts take more. The figure is
//! for accounting where there is no better one, and is never used to decide whether a prompt fits.

use super::Chat;

const CHARS_PER_TOKEN: u64 = 4;
/// What chat formats add around each message.
pub const TOKENS_PER_MESSAGE: u64 = 4;

/// Tokens of one text.
pub fn text_tokens(text: &str) -> u64 {
    length_tokens(characters(text))
}

/// How many characters a text has. Most prompts are ASCII alone, which is seen many bytes at a time.
pub fn characters(text: &str) -> u64 {
    let count = if text.is_ascii() { text.len() } else { text.chars().count() };
    count as u64
}

/// Tokens of a text of this many characters.
pub const fn length_tokens(characters: u64) -> u64 {
    characters.div_ceil(CHARS_PER_TOKEN)
}

/// Tokens of a whole prompt.
pub fn prompt_tokens(chat: &Chat) -> u64 {
    chat.messages.iter().map(|message| text_tokens(&message.content) + TOKENS_PER_MESSAGE).sum()
}

#[cfg(test)]
mod tests {
    use super::text_tokens;

    #[test]
    fn characters_count_not_bytes() {
        assert_eq!(text_tokens(""), 0);
        assert_eq!(text_tokens("abcde"), 2);
        assert_eq!(text_tokens("ääää"), 1);
    }
}
