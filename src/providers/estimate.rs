//! How many tokens a text is, roughly, for providers that do not say.
//!
//! Four characters a token is what tokenizers average on English prose; other scripts take more. The figure is
//! for accounting where there is no better one, and is never used to decide whether a prompt fits.

use serde_json::Value;

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

/// The fields of a message, its parts and its calls of tools in which the model's own words stand.
const SAID: [&str; 9] = [
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

/// Characters that a model has written, where they are not one text: parts, thoughts and calls of tools included, names
/// and marks of the format not.
pub fn said_characters(value: &Value) -> u64 {
    match value {
        Value::String(text) => characters(text),
        Value::Array(items) => items.iter().map(said_characters).sum(),
        Value::Object(fields) => {
            // Two names for one thing; some send both.
            let thoughts = fields.get("reasoning_content").or_else(|| fields.get("reasoning"));
            let said = |(name, value): (&String, &Value)| match name.as_str() {
                // Some send them as they are, not as a text.
                "arguments" if !value.is_string() => characters(&value.to_string()),
                name if SAID.contains(&name) => said_characters(value),
                _ => 0,
            };
            fields.iter().map(said).sum::<u64>() + thoughts.map_or(0, said_characters)
        }
        _ => 0,
    }
}

/// Tokens of a whole prompt.
pub fn prompt_tokens(chat: &Chat) -> u64 {
    chat.messages.iter().map(|message| text_tokens(&message.content) + TOKENS_PER_MESSAGE).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{said_characters, text_tokens};

    #[test]
    fn characters_count_not_bytes() {
        assert_eq!(text_tokens(""), 0);
        assert_eq!(text_tokens("abcde"), 2);
        assert_eq!(text_tokens("ääää"), 1);
    }

    #[test]
    fn only_the_models_own_words_count() {
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
            assert_eq!(said_characters(&message), expected, "{message}");
        }
    }
}
