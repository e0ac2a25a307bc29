//! Sanitizes untrusted text from callers and models before it enters a prompt, an event or a result.
//!
//! Control characters are removed, as are invisible ones that can reorder or hide text: bidirectional controls and
//! those that [`is_smuggled`] names. What separates words or lines is replaced, never just removed: `1990\r5 people`
//! must not become `19905 people`.

use crate::unsafe_chars::{is_bidi_control, is_smuggled};

/// The text on one line: every run of white space becomes one space, and is removed at both ends.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (plain, after) = rest.split_at(plain_words(rest));
        line.push_str(plain);
        let mut characters = after.chars();
        let Some(c) = characters.next() else { break };
        rest = characters.as_str();
        if is_separator(c) {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !is_hidden(c) {
            line.push(c);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// The text with its lines and tabs. Other line and page separators, as written by PDF and word processors, become line
/// feeds.
pub(super) fn block(text: &str) -> String {
    let mut block = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (plain, after) = rest.split_at(plain_length(rest));
        block.push_str(plain);
        let mut characters = after.chars();
        let Some(c) = characters.next() else { return block };
        rest = characters.as_str();
        if c == '\r' && rest.starts_with('\n') {
            continue;
        }
        if ends_line(c) {
            block.push('\n');
        } else if c == '\t' || !is_hidden(c) {
            block.push(c);
        }
    }
}

/// How many bytes at the beginning are visible ASCII, with single spaces between.
fn plain_words(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_visible = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_graphic);
    let mut at = 0;
    while is_visible(at) || at > 0 && bytes.get(at) == Some(&b' ') && is_visible(at + 1) {
        at += 1;
    }
    at
}

/// How many bytes at the beginning are taken over at once: visible ASCII, spaces, tabs and line feeds.
fn plain_length(text: &str) -> usize {
    leading(text.as_bytes(), |byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

/// How many bytes at the beginning are of a kind.
pub(super) fn leading(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    /// So many are looked at together, which takes no longer than a single one.
    const TOGETHER: u8 = 32;
    let are = |chunk: &&[u8]| chunk.iter().map(|byte| u8::from(is(*byte))).sum::<u8>() == TOGETHER;
    let length = usize::from(TOGETHER);
    let together = bytes.chunks(length).take_while(are).count() * length;
    together + bytes[together..].iter().take_while(|byte| is(**byte)).count()
}

/// Whether a text has no visible character.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| is_separator(c) || is_hidden(c))
}

/// The first `max_chars` characters; the last of them is an ellipsis if something was cut off.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    if !is_longer(text, max_chars) {
        return text.to_owned();
    }
    text.chars().take(max_chars.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

/// Whether the text has more than `max_chars` characters.
pub(super) fn is_longer(text: &str, max_chars: usize) -> bool {
    text.chars().nth(max_chars).is_some()
}

/// White space, and the ASCII separators that Unicode does not count as white space.
const fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

fn ends_line(c: char) -> bool {
    is_separator(c) && (c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}'))
}

fn is_hidden(c: char) -> bool {
    c.is_control() || is_bidi_control(c) || is_smuggled(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_white_space_and_drops_invisible_characters() {
        assert_eq!(one_line("  a\r\n\tb \u{2028} c\u{7}\u{1b}[31m\u{202e}d\u{e0041} "), "a b c[31md");
        assert_eq!(block("a\r\nb\u{0}\tc\u{200b}"), "a\nb\tc");
    }

    #[test]
    fn words_and_lines_stay_separate_whatever_separates_them() {
        let text =
            "In 1990\r5 people met.\u{c}Page two\u{b}three\u{85}four\u{2028}five\u{1e}six\r\n\r\nseven";
        assert_eq!(block(text), "In 1990\n5 people met.\nPage two\nthree\nfour\nfive\nsix\n\nseven");
        assert_eq!(one_line(text), "In 1990 5 people met. Page two three four five six seven");
    }

    #[test]
    fn shortens_by_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
        assert!(!is_longer("äöü", 3));
    }

    proptest! {
        #[test]
        fn one_line_is_idempotent_and_has_no_control_characters(text in any::<String>()) {
            let line = one_line(&text);
            prop_assert_eq!(&one_line(&line), &line);
            prop_assert!(!line.contains(char::is_control));
        }
    }
}
