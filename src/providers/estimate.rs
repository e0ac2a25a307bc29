//! Estimates token counts, for providers that do not report them.
//!
//! Tokenizers average four characters per token on English prose; other scripts need more tokens. The estimate is for
//! accounting where there is no better figure, and is never used to decide whether a prompt fits.

use super::Chat;

const CHARS_PER_TOKEN: u64 = 4;
/// The overhead of chat formats for each message.
pub const TOKENS_PER_MESSAGE: u64 = 4;

/// The estimated number of tokens in a text.
pub fn text_tokens(text: &str) -> u64 {
    length_tokens(characters(text))
}

/// The number of characters in a text. Most prompts are pure ASCII, which is detected many bytes at a time.
pub fn characters(text: &str) -> u64 {
    let count = if text.is_ascii() { text.len() } else { text.chars().count() };
    count as u64
}

/// The estimated number of tokens in a text of this many characters.
pub const fn length_tokens(characters: u64) -> u64 {
    characters.div_ceil(CHARS_PER_TOKEN)
}

/// The estimated number of tokens in an entire prompt.
pub fn prompt_tokens(chat: &Chat) -> u64 {
    chat.messages.iter().map(|message| text_tokens(&message.content) + TOKENS_PER_MESSAGE).sum()
}

#[cfg(test)]
mod tests {
    use super::text_tokens;

    #[test]
    fn characters_are_counted_rather_than_bytes() {
        assert_eq!(text_tokens(""), 0);
        assert_eq!(text_tokens("abcde"), 2);
        assert_eq!(text_tokens("ääää"), 1);
    }
}
