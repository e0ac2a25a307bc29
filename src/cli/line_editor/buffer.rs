//! The text being edited, and the cursor in it.
//!
//! The cursor is always between two characters as people see them (grapheme clusters of Unicode Standard Annex 29),
//! whatever is inserted or deleted beside it, and the text never grows beyond [`MAX_BYTES`].

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::cli::text::MAX_BYTES;

/// A text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer {
    text: String,
    /// The cursor, in bytes from the start.
    cursor: usize,
}

impl Buffer {
    /// A buffer holding `text`, with the cursor at its end.
    pub(crate) fn with_cursor_at_end(text: String) -> Self {
        Self { cursor: text.len(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// The cursor, in bytes from the start.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Inserts a text before the cursor; returns false and changes nothing if the result would be too long.
    #[must_use]
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        if (self.text.len() + text.len()) as u64 > MAX_BYTES {
            return false;
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        self.snap_to_boundary();
        true
    }

    /// Deletes and returns what is between the cursor and `other`.
    pub(crate) fn delete(&mut self, other: usize) -> String {
        let (from, to) = (self.cursor.min(other), self.cursor.max(other));
        let deleted = self.text.drain(from..to).collect();
        self.cursor = from;
        self.snap_to_boundary();
        deleted
    }

    pub(crate) fn move_to(&mut self, at: usize) {
        self.cursor = at.min(self.text.len());
        self.snap_to_boundary();
    }

    /// The position before the character to the left.
    pub(crate) fn left(&self) -> usize {
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    /// The position behind the character to the right.
    pub(crate) fn right(&self) -> usize {
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    /// The start of the line.
    pub(crate) fn line_start(&self) -> usize {
        self.before_cursor().rfind('\n').map_or(0, |at| at + 1)
    }

    /// The end of the line.
    pub(crate) fn line_end(&self) -> usize {
        self.after_cursor().find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The start of the word to the left; words consist of letters and digits.
    pub(crate) fn word_left(&self) -> usize {
        let rest = self.before_cursor().trim_end_matches(|c| !is_of_word(c));
        rest.trim_end_matches(is_of_word).len()
    }

    /// The end of the word to the right.
    pub(crate) fn word_right(&self) -> usize {
        let rest = self.after_cursor().trim_start_matches(|c| !is_of_word(c));
        self.text.len() - rest.trim_start_matches(is_of_word).len()
    }

    /// The start of the whitespace-separated word to the left.
    pub(crate) fn blank_left(&self) -> usize {
        let rest = self.before_cursor().trim_end_matches(char::is_whitespace);
        rest.trim_end_matches(|c: char| !c.is_whitespace()).len()
    }

    /// The same character column in the line above, if there is one.
    pub(crate) fn up(&self) -> Option<usize> {
        let start = self.line_start();
        let above = start.checked_sub(1)?;
        let from = self.text[..above].rfind('\n').map_or(0, |at| at + 1);
        Some(self.at_same_column(from, above, start))
    }

    /// The same character column in the line below, if there is one.
    pub(crate) fn down(&self) -> Option<usize> {
        let from = self.line_end() + 1;
        let below = self.text.get(from..)?;
        let to = below.find('\n').map_or(self.text.len(), |at| from + at);
        Some(self.at_same_column(from, to, self.line_start()))
    }

    /// The position in the line `from..to` with the cursor's character column in its line, which begins at `start`.
    fn at_same_column(&self, from: usize, to: usize, start: usize) -> usize {
        let distance = self.text[start..self.cursor].graphemes(true).count();
        let line = &self.text[from..to];
        line.grapheme_indices(true).nth(distance).map_or(to, |(at, _)| from + at)
    }

    fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    fn after_cursor(&self) -> &str {
        &self.text[self.cursor..]
    }

    /// Moves the cursor right out of the middle of a character: inserted text may have merged with its surroundings.
    fn snap_to_boundary(&mut self) {
        while !self.text.is_char_boundary(self.cursor) {
            self.cursor += 1;
        }
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        if !cursor.is_boundary(&self.text, 0).unwrap_or(true) {
            self.cursor = self.right();
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A buffer whose cursor is marked by `|`.
    fn marked(text: &str) -> Buffer {
        let at = text.find('|').unwrap();
        let mut buffer = Buffer::with_cursor_at_end(text.replace('|', ""));
        buffer.move_to(at);
        buffer
    }

    fn shown(buffer: &Buffer, at: usize) -> String {
        format!("{}|{}", &buffer.text[..at], &buffer.text[at..])
    }

    #[test]
    fn positions_are_between_characters_as_people_see_them() {
        for character in ["e\u{301}", "👨‍👩‍👧", "🇨🇭", "👍🏽", "東", "❤\u{fe0f}"] {
            let buffer = marked(&format!("a{character}|b"));
            assert_eq!(buffer.left(), 1, "{character}");
            assert_eq!(marked(&format!("a|{character}b")).right(), 1 + character.len(), "{character}");
            let mut buffer = marked(&format!("a{character}|b"));
            buffer.delete(buffer.left());
            assert_eq!(shown(&buffer, buffer.cursor), "a|b", "{character}");
        }
        let mut buffer = marked("|\u{301}x");
        assert!(buffer.insert("e"));
        assert_eq!(buffer.cursor, 3, "what has grown together is not parted");
    }

    #[test]
    fn words_consist_of_letters_and_digits_and_blanks_separate_more() {
        let left = |text: &str| shown(&marked(text), marked(text).word_left());
        let right = |text: &str| shown(&marked(text), marked(text).word_right());
        let blank = |text: &str| shown(&marked(text), marked(text).blank_left());
        assert_eq!(left("say foo-bar, |x"), "say foo-|bar, x");
        assert_eq!((left("foo|"), left("|foo"), left("--|")), ("|foo".into(), "|foo".into(), "|--".into()));
        assert_eq!(right("say| «東京 2»"), "say «東京| 2»");
        assert_eq!((right("|é1_x y"), right("x|--")), ("é1_x| y".into(), "x--|".into()));
        assert_eq!(blank("git diff --stat=3  |x"), "git diff |--stat=3  x");
        assert_eq!(blank("one\ntwo|"), "one\n|two");
    }

    #[test]
    fn lines_have_starts_ends_and_neighbours() {
        let buffer = marked("one\ntw|o\nthree");
        assert_eq!((buffer.line_start(), buffer.line_end()), (4, 7));
        assert_eq!(shown(&buffer, buffer.up().unwrap()), "on|e\ntwo\nthree");
        assert_eq!(shown(&buffer, buffer.down().unwrap()), "one\ntwo\nth|ree");
        let buffer = marked("a\n\nlong| one");
        assert_eq!(shown(&buffer, buffer.up().unwrap()), "a\n|\nlong one");
        assert_eq!((buffer.down(), marked("on|e").up(), marked("on|e\n").down()), (None, None, Some(4)));
    }

    #[test]
    fn what_is_too_long_is_refused_entirely() {
        let mut buffer = Buffer::default();
        let half = "x".repeat(usize::try_from(MAX_BYTES / 2).unwrap());
        assert!(buffer.insert(&half) && buffer.insert(&half));
        assert!(!buffer.insert("y"));
        assert_eq!(buffer.text.len() as u64, MAX_BYTES);
    }

    proptest! {
        #[test]
        fn the_cursor_is_always_between_characters(text in "\\PC{0,20}", more in "\\PC{0,4}", at in 0usize..40) {
            let mut buffer = Buffer::with_cursor_at_end(text);
            let holds = |buffer: &Buffer| {
                buffer.cursor == buffer.text.len() || buffer.text.grapheme_indices(true).any(|(at, _)| at == buffer.cursor)
            };
            buffer.move_to(at);
            prop_assert!(holds(&buffer));
            prop_assert!(buffer.insert(&more));
            prop_assert!(holds(&buffer));
            for to in [buffer.left(), buffer.right(), buffer.word_left(), buffer.word_right(), buffer.blank_left()] {
                let mut moved = buffer.clone();
                moved.move_to(to);
                prop_assert!(holds(&moved));
                let mut less = buffer.clone();
                less.delete(to);
                prop_assert!(holds(&less));
            }
        }
    }
}
