//! Estimates token counts, for providers that do not report them.
//!
//! Tokenizers average four characters per token on English prose; other scripts need more tokens. The estimate is for
//! accounting where there is no better figure, and is never used to decide whether a prompt fits, nor for what is
//! reserved of a budget: that takes an upper bound.

use serde_json::Value;

use crate::providers::Chat;

const CHARS_PER_TOKEN: u64 = 4;
/// The overhead of chat formats for each message.
pub const TOKENS_PER_MESSAGE: u64 = 4;

/// About what a large image takes: Anthropic scales images down to 1,600 tokens, others make fewer of them.
pub const TOKENS_PER_IMAGE: u64 = 1_600;

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

/// The fields in which a message, its parts and its tool calls hold text that the model wrote.
const WRITTEN_FIELDS: [&str; 9] = [
    "content",
    "text",
    "thinking",
    "refusal",
    "tool_calls",
    "function_call",
    "function",
    "name",
    "arguments",
];

/// The number of characters that the model wrote of a message, or of a part of one: texts, reasoning and tool calls
/// count, keys and identifiers do not.
pub fn written_characters(value: &Value) -> u64 {
    match value {
        Value::String(text) => characters(text),
        Value::Array(items) => items.iter().map(written_characters).sum(),
        Value::Object(fields) => {
            // Two names for the same thing; some providers send both.
            let reasoning = fields.get("reasoning_content").or_else(|| fields.get("reasoning"));
            let count = |(name, value): (&String, &Value)| match name.as_str() {
                // Some providers send an object instead of a string.
                "arguments" if !value.is_string() => characters(&value.to_string()),
                name if WRITTEN_FIELDS.contains(&name) => written_characters(value),
                _ => 0,
            };
            fields.iter().map(count).sum::<u64>() + reasoning.map_or(0, written_characters)
        }
        _ => 0,
    }
}

/// The estimated number of tokens in an entire prompt.
pub fn prompt_tokens(chat: &Chat) -> u64 {
    chat.messages.iter().map(|message| text_tokens(&message.content) + TOKENS_PER_MESSAGE).sum()
}

/// The most tokens that an entire prompt may have: no tokenizer makes more of a text than it has bytes.
pub fn max_prompt_tokens(chat: &Chat) -> u64 {
    let texts: u64 =
        chat.messages.iter().map(|message| message.content.len() as u64 + TOKENS_PER_MESSAGE).sum();
    let schema = chat.schema.as_ref().map_or(0, |schema| schema.json().get().len() as u64);
    texts + schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{text_tokens, written_characters};

    #[test]
    fn characters_are_counted_rather_than_bytes() {
        assert_eq!(text_tokens(""), 0);
        assert_eq!(text_tokens("abcde"), 2);
        assert_eq!(text_tokens("ääää"), 1);
    }

    #[test]
    fn only_what_the_model_wrote_counts() {
        let call = json!({"id": "call_1", "type": "function", "function": {"name": "get", "arguments": "{\"a\":1}"}});
        for (message, expected) in [
            (json!({"role": "assistant", "content": "ä\"b"}), 3),
            (json!({"content": null, "tool_calls": [call]}), 10),
            (json!({"tool_calls": [{"function": {"name": "get", "arguments": {"a": 1}}}]}), 10),
            (
                json!({"content": [{"type": "text", "text": "ab"}, {"type": "thinking", "thinking": [{"text": "cd"}]}]}),
                4,
            ),
            (json!({"reasoning": "abc", "reasoning_content": "abc", "content": "d"}), 4),
            (json!({"reasoning": "abc", "refusal": "no"}), 5),
            (json!({"audio": {"data": "xxxx"}}), 0),
        ] {
            assert_eq!(written_characters(&message), expected, "{message}");
        }
    }
}
