//! Breaks an answer at spaces while it arrives, as it goes to a terminal.
//!
//! A terminal breaks lines in the middle of words. Each word is written as it comes; one that turns out not to fit is
//! taken back and begun anew on the next row. Where nothing can be taken back (`TERM=dumb`), a word is held back until
//! it is complete. Code blocks and tables are left as they are: somebody may want to copy them. Continued rows of a
//! list stand below its text. The text must be sanitized.

use unicode_width::UnicodeWidthChar;

/// Joins the character before it to the one behind it.
const JOINER: char = '\u{200d}';

/// How far apart a terminal's tab stops are.
const TAB: usize = 8;

/// An answer as far as it has arrived.
#[derive(Debug)]
pub(super) struct WordWrap {
    width: usize,
    /// Whether what is written can be taken back.
    takes_back: bool,
    /// The cells of the current row before the blanks.
    column: usize,
    /// The blanks before the word.
    blanks: String,
    word: Word,
    line: Line,
    is_in_code: bool,
}

/// What is known about the current line, as the model ends lines.
#[derive(Debug, Default)]
struct Line {
    /// Whether it has a whole word yet.
    is_begun: bool,
    /// Where its continued rows begin.
    indent: usize,
    /// Whether it is left as it is.
    is_kept: bool,
}

/// A word as far as it has arrived.
#[derive(Debug, Default)]
struct Word {
    /// Empty once the word is too long for any row.
    text: String,
    cells: usize,
    /// The bytes of the text that are written.
    written: usize,
    /// Whether it is wider than a row, so that the terminal breaks it.
    is_overlong: bool,
    /// Whether it is a single character, which others may follow on the next row.
    is_wide: bool,
}

impl WordWrap {
    /// For rows of this many cells.
    pub(super) fn new(width: usize, takes_back: bool) -> Self {
        Self {
            width: width.max(1),
            takes_back,
            column: 0,
            blanks: String::new(),
            word: Word::default(),
            line: Line::default(),
            is_in_code: false,
        }
    }

    /// Takes the next piece, and returns what is to be written.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            match c {
                '\n' => {
                    self.end_word(&mut out);
                    out.push('\n');
                    self.blanks.clear();
                    self.column = 0;
                    self.line = Line { is_kept: self.is_in_code, ..Line::default() };
                }
                ' ' | '\t' => {
                    self.end_word(&mut out);
                    self.blanks.push(c);
                }
                other => self.add(other, &mut out),
            }
        }
        if self.takes_back {
            self.write_word(&mut out);
        }
        out
    }

    /// What is still held back.
    pub(super) fn end(&mut self) -> String {
        let mut out = String::new();
        self.end_word(&mut out);
        out
    }

    fn add(&mut self, c: char, out: &mut String) {
        let cells = c.width().unwrap_or(0);
        // Scripts of wide characters have no spaces, and are broken anywhere.
        let is_apart = (cells == 2 || self.word.is_wide && cells > 0) && !self.word.text.ends_with(JOINER);
        if is_apart {
            self.end_word(out);
            self.word.is_wide = cells == 2;
        }
        let word = &mut self.word;
        word.cells += cells;
        if word.is_overlong {
            out.push(c);
            return;
        }
        word.text.push(c);
        if word.cells > self.width {
            self.write_word(out);
            self.word.is_overlong = true;
            self.word.text.clear();
        }
    }

    fn end_word(&mut self, out: &mut String) {
        self.write_word(out);
        let word = std::mem::take(&mut self.word);
        if word.cells == 0 && word.text.is_empty() {
            return;
        }
        let gap = blank_cells(&self.blanks, self.column);
        self.column += gap + word.cells;
        self.blanks.clear();
        if !self.line.is_begun {
            self.line.is_begun = true;
            self.begin_line(&word.text, gap, word.cells);
        }
    }

    /// Writes what is not written of the word, on this row or the next one.
    fn write_word(&mut self, out: &mut String) {
        if self.word.is_overlong || self.word.written == self.word.text.len() {
            return;
        }
        let begin = self.column + blank_cells(&self.blanks, self.column);
        let is_first = begin == self.line.indent || !self.line.is_begun;
        if is_first || self.line.is_kept || begin + self.word.cells <= self.width {
            if self.word.written == 0 {
                out.push_str(&self.blanks);
            }
            out.push_str(&self.word.text[self.word.written..]);
        } else {
            if self.word.written > 0 {
                // Back to where the word began, and clear from there.
                out.push_str(&["\r\u{1b}[", &begin.to_string(), "C\u{1b}[K"].concat());
            }
            out.push('\n');
            out.push_str(&" ".repeat(self.line.indent));
            out.push_str(&self.word.text);
            self.column = self.line.indent;
            self.blanks.clear();
        }
        self.word.written = self.word.text.len();
    }

    /// Looks at the first word of a line, which tells what the line is.
    fn begin_line(&mut self, first: &str, gap: usize, cells: usize) {
        if first.starts_with("```") || first.starts_with("~~~") {
            self.is_in_code = !self.is_in_code;
            self.line.is_kept = true;
        }
        self.line.is_kept |= first.starts_with('|');
        let bullet = if is_bullet(first) { cells + 1 } else { 0 };
        self.line.indent = (gap + bullet).min(self.width / 2);
    }
}

/// Whether a first word begins an item of a list: `-`, `*`, `+`, `•`, `1.` or `1)`.
fn is_bullet(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    matches!(word, "-" | "*" | "+" | "•")
        || !number.is_empty() && number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit())
}

/// The cells of blanks that begin in this column.
fn blank_cells(blanks: &str, column: usize) -> usize {
    let after = blanks.chars().fold(column, |at, c| if c == '\t' { (at / TAB + 1) * TAB } else { at + 1 });
    after - column
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, width: usize) -> String {
        let mut wrap = WordWrap::new(width, false);
        let out = wrap.push(text);
        out + &wrap.end()
    }

    /// What a terminal shows when the text comes a character at a time.
    fn screen(text: &str, width: u16) -> String {
        let mut terminal = vt100::Parser::new(60, width, 0);
        let mut wrap = WordWrap::new(usize::from(width), true);
        for c in text.chars() {
            terminal.process(wrap.push(&c.to_string()).replace('\n', "\r\n").as_bytes());
        }
        terminal.process(wrap.end().as_bytes());
        let rows = terminal.screen().rows(0, width).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrapped("The quick brown fox\njumps", 10), "The quick\nbrown fox\njumps");
        assert_eq!(wrapped("exactly 10", 10), "exactly 10");
        assert_eq!(wrapped("one  two\n\n   three ", 40), "one  two\n\n   three");
    }

    #[test]
    fn words_are_shown_at_once_and_taken_back_where_they_do_not_fit() {
        let mut wrap = WordWrap::new(10, true);
        assert_eq!(wrap.push("The quick b"), "The quick\nb");
        assert_eq!(wrap.push("ro"), "ro");
        assert_eq!(wrap.push("wn fo"), "wn fo");
        assert_eq!(wrap.push("xes"), "\r\u{1b}[6C\u{1b}[K\nfoxes");
        assert_eq!(wrap.end(), "");
        assert_eq!(screen("The quick brown foxes jump", 10), "The quick\nbrown\nfoxes jump");
    }

    #[test]
    fn an_overlong_word_stays_whole_and_is_not_held_back() {
        let mut wrap = WordWrap::new(10, false);
        assert_eq!(wrap.push("see /a/very/long/pa"), "see\n/a/very/long/pa");
        assert_eq!(wrap.push("th and on"), "th\nand");
        assert_eq!(wrap.end(), " on");
    }

    #[test]
    fn wide_characters_are_broken_anywhere_and_joined_ones_nowhere() {
        assert_eq!(wrapped("東京都の人口", 7), "東京都\nの人口");
        assert_eq!(wrapped("abc東京x", 5), "abc東\n京x");
        assert_eq!(wrapped("abcdef 👨\u{200d}👩 cd", 8), "abcdef\n👨\u{200d}👩 cd");
        assert_eq!(wrapped("e\u{301}e\u{301} e\u{301}", 4), "e\u{301}e\u{301} e\u{301}");
    }

    #[test]
    fn continued_lines_of_a_list_stand_below_its_text() {
        let list = "- one two three\n10. four five six";
        assert_eq!(wrapped(list, 11), "- one two\n  three\n10. four\n    five\n    six");
        assert_eq!(wrapped("  - one two", 8), "  - one\n    two");
        assert_eq!(wrapped("1889. A year of", 9), "1889. A\nyear of");
    }

    #[test]
    fn code_and_tables_are_left_alone() {
        let text = "```sh\necho one two three four\n```\n| a | b | c | d | e |\n";
        assert_eq!(wrapped(text, 10), text);
        assert_eq!(wrapped("```\nx y z\n```\nx y z", 3), "```\nx y z\n```\nx y\nz");
    }

    proptest! {
        #[test]
        fn a_screen_shows_the_same_however_the_text_comes(
            text in "([a-z]{1,5}|-)( {1,2}([a-z]{1,5}|-)){0,12}",
            width in 8u16..30,
        ) {
            let whole = wrapped(&text, usize::from(width));
            let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&whole), bare(&text));
            let shown: Vec<&str> = whole.lines().map(str::trim_end).collect();
            prop_assert_eq!(screen(&text, width), shown.join("\n"));
        }
    }
}
