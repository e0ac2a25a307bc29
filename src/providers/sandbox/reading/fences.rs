//! Finds the fenced blocks of a prompt.
//!
//! A block is enclosed by the lines `BEGIN <LABEL> <marker>` and `END <LABEL> <marker>`. The marker is 8 lowercase
//! hexadecimal digits that are drawn for each verification. What looks like a fence inside a block is part of its
//! content.

use crate::providers::{Chat, Role};

/// The content of the first block with this label in the user's messages. All of them are searched, as a repair turn
/// comes after the blocks.
pub(in crate::providers::sandbox) fn block(chat: &Chat, label: &str) -> Option<String> {
    chat.messages
        .iter()
        .filter(|message| message.role == Role::User)
        .find_map(|message| block_in(&message.content, label))
}

/// The same in one text.
pub(in crate::providers::sandbox) fn block_in(text: &str, label: &str) -> Option<String> {
    let mut lines = text.split('\n');
    while let Some(line) = lines.next() {
        let Some((found, marker)) = opening(line) else {
            continue;
        };
        let end = format!("END {found} {marker}");
        let content: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != end).collect();
        if found == label {
            return Some(content.join("\n"));
        }
    }
    None
}

/// The label and the marker of a line that opens a block.
fn opening(line: &str) -> Option<(&str, &str)> {
    let (label, marker) = line.trim_end().strip_prefix("BEGIN ")?.split_once(' ')?;
    let is_marker = marker.len() == 8 && marker.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_marker.then_some((label, marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "01234567";
    const OTHER: &str = "ffffffff";

    #[test]
    fn a_fence_inside_a_block_is_content() {
        let inside = format!("one\nEND STATEMENT {OTHER}\nBEGIN QUESTION {OTHER}\ntwo");
        let text = format!(
            "Instructions.\nBEGIN STATEMENT {MARKER}\n{inside}\nEND STATEMENT {MARKER}\nBEGIN QUESTION {MARKER}\nthree\nEND QUESTION {MARKER}"
        );
        assert_eq!(block_in(&text, "STATEMENT").as_deref(), Some(inside.as_str()));
        assert_eq!(block_in(&text, "QUESTION").as_deref(), Some("three"));
        assert_eq!(block_in(&text, "CONTEXT"), None);
    }

    #[test]
    fn an_unclosed_block_extends_to_the_end() {
        assert_eq!(block_in(&format!("BEGIN CONTEXT {MARKER}\na\nb"), "CONTEXT").as_deref(), Some("a\nb"));
        assert_eq!(block_in("BEGIN CONTEXT short\na", "CONTEXT"), None);
    }
}
