//! A text in the form in which texts are compared: compatibility forms resolved (NFKC), digits of every script in ASCII,
//! one kind of each quotation mark and dash, runs of white space as one character, what is invisible left out.
//!
//! A run of white space with a line feed in it becomes a line feed, any other a space: values do not reach over lines'
//! ends where a thousand may be grouped by spaces. Superscript digits become `^` and digits before anything else, as
//! NFKC would make 105 of 10⁵.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use crate::unsafe_chars::{is_bidi_control, is_smuggled};
use crate::verify::text::leading;

/// A folded text, and where its parts come from.
#[derive(Debug, Default)]
pub struct Folded {
    text: String,
    /// In order, and together all of the text.
    runs: Vec<Run>,
    /// The length of the source.
    length: usize,
    /// Where what was left out on purpose begins in the source.
    cuts: Vec<usize>,
}

/// A part of a folded text: taken over as it stands, or all from one character with its marks.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it begins in the folded text.
    folded: u32,
    /// Where it begins in the source.
    source: u32,
    /// Whether it was taken over byte by byte.
    verbatim: bool,
}

impl Folded {
    /// Folds a text.
    pub fn new(source: &str) -> Self {
        Self::without(source, &[])
    }

    /// Folds a text without some of its ranges, which are in order and apart; the first 4 GiB of it.
    pub fn without(source: &str, hidden: &[Range<usize>]) -> Self {
        let mut folding = Folding { text: String::with_capacity(source.len()), runs: Vec::new() };
        let mut from = 0;
        for range in hidden {
            folding.push(source, from..range.start);
            from = range.end.max(from);
        }
        folding.push(source, from..source.len());
        let cuts = hidden.iter().map(|range| range.start).collect();
        Self { text: folding.text, runs: folding.runs, length: source.len(), cuts }
    }

    /// The folded text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The source's range that became this range of the folded text.
    pub fn source(&self, folded: Range<usize>) -> Range<usize> {
        let start = self.start_of(folded.start);
        if folded.is_empty() {
            return start..start;
        }
        let last = self.start_of(folded.end - 1);
        let next = match self.run_at(folded.end - 1) {
            Some((run, end)) if !run.verbatim => end,
            _ => self.boundary_from(folded.end),
        };
        let cut = self.cuts.get(self.cuts.partition_point(|cut| *cut <= last)).copied().unwrap_or(usize::MAX);
        start..self.start_of(next).max(last).min(cut)
    }

    /// The folded text's range that comes from this range of the source.
    pub fn folded(&self, source: &Range<usize>) -> Range<usize> {
        self.first_from(source.start)..self.first_from(source.end)
    }

    /// The first place of the folded text that comes from this byte of the source, or one behind it.
    fn first_from(&self, byte: usize) -> usize {
        let next = self.runs.partition_point(|run| (run.source as usize) < byte);
        let end = self.runs.get(next).map_or(self.text.len(), |run| run.folded as usize);
        let before = next.checked_sub(1).map(|before| self.runs[before]).filter(|run| run.verbatim);
        let within = before.map_or(end, |run| run.folded as usize + byte - run.source as usize);
        self.boundary_from(within.min(end))
    }

    /// The first place at a byte of the folded text or behind it where a character begins, or the text's end.
    fn boundary_from(&self, at: usize) -> usize {
        (at..self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(self.text.len())
    }

    /// The run that holds a byte of the folded text, and where it ends.
    fn run_at(&self, at: usize) -> Option<(Run, usize)> {
        let next = self.runs.partition_point(|run| run.folded as usize <= at);
        let end = self.runs.get(next).map_or(self.text.len(), |run| run.folded as usize);
        next.checked_sub(1).map(|run| (self.runs[run], end)).filter(|_| at < end)
    }

    /// Where the character that holds a byte of the folded text comes from.
    fn start_of(&self, at: usize) -> usize {
        let last = at.min(self.text.len());
        let at = (0..=last).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or_default();
        self.run_at(at).map_or(self.length, |(run, _)| {
            run.source as usize + if run.verbatim { at - run.folded as usize } else { 0 }
        })
    }
}

/// A text under work.
struct Folding {
    text: String,
    runs: Vec<Run>,
}

impl Folding {
    fn push(&mut self, source: &str, range: Range<usize>) {
        let Some(part) = source.get(range.clone()) else { return };
        let bytes = part.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let run = plain_run(&part[at..]);
            self.keep(&part[at..at + run], range.start + at);
            at += run;
            if at < bytes.len() {
                at += self.cluster(&part[at..], range.start + at);
            }
        }
    }

    /// Adds the character at the beginning of `rest` with the marks that combine with it, and gives its length.
    fn cluster(&mut self, rest: &str, at: usize) -> usize {
        let mut characters = rest.chars();
        let Some(first) = characters.next() else { return rest.len() };
        let is_alone = || !rest[first.len_utf8()..].starts_with(combines);
        if is_plain(first) && is_alone() {
            self.keep(&rest[..first.len_utf8()], at);
            return first.len_utf8();
        }
        if first.is_whitespace() || matches!(first, '\u{1c}'..='\u{1f}') {
            return self.space(rest, at);
        }
        if first.is_control() || is_bidi_control(first) || is_smuggled(first) || first == '\u{ad}' {
            return first.len_utf8();
        }
        if let Some(digit) = superscript(first) {
            let continues =
                self.text.ends_with(|c: char| c.is_ascii_digit() || c == '-') && self.in_exponent();
            if !continues {
                self.add('^', at);
            }
            self.add(digit, at);
            return first.len_utf8();
        }
        let length =
            first.len_utf8() + characters.take_while(|c| combines(*c)).map(char::len_utf8).sum::<usize>();
        let is_fraction = matches!(first, '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{215f}' | '\u{2189}');
        if is_fraction && self.text.ends_with(|c: char| c.is_ascii_digit()) {
            self.add(' ', at);
        }
        for c in rest[..length].nfkc() {
            if c.is_whitespace() {
                self.blank(' ', at);
            } else {
                self.add(evened(c), at);
            }
        }
        length
    }

    /// Adds a run of white space, and gives its length.
    fn space(&mut self, rest: &str, at: usize) -> usize {
        let is_space = |c: &char| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}');
        let (mut length, mut has_line) = (0, false);
        for c in rest.chars().take_while(is_space) {
            length += c.len_utf8();
            has_line |= ends_line(c);
        }
        if rest[..length] == *" " && !self.text.ends_with([' ', '\n']) {
            self.keep(" ", at);
        } else {
            self.blank(if has_line { '\n' } else { ' ' }, at);
        }
        length
    }

    fn blank(&mut self, blank: char, at: usize) {
        if !self.text.ends_with([' ', '\n']) {
            self.add(blank, at);
        }
    }

    fn in_exponent(&self) -> bool {
        let exponent = |c: char| c.is_ascii_digit() || c == '-';
        // Exponents are short: the search for the mark before them must not take long in a row of digits.
        self.text.bytes().rev().take(8).find(|byte| !exponent(char::from(*byte))) == Some(b'^')
    }

    /// Adds what a character of the source became.
    fn add(&mut self, c: char, at: usize) {
        let is_of_last = |run: &Run| !run.verbatim && run.source as usize == at;
        if !self.runs.last().is_some_and(is_of_last) {
            self.begin(at, false);
        }
        self.text.push(c);
    }

    /// Adds a part of the source as it stands.
    fn keep(&mut self, part: &str, at: usize) {
        let goes_on =
            |run: &Run| run.verbatim && at - run.source as usize == self.text.len() - run.folded as usize;
        if !part.is_empty() && !self.runs.last().is_some_and(goes_on) {
            self.begin(at, true);
        }
        self.text.push_str(part);
    }

    #[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
    fn begin(&mut self, at: usize, verbatim: bool) {
        self.runs.push(Run { folded: self.text.len() as u32, source: at as u32, verbatim });
    }
}

/// How many bytes at the beginning are printable ASCII that folding leaves as it is, with single spaces between: the last
/// may have a mark behind it, and is left out then.
fn plain_run(part: &str) -> usize {
    /// So many are looked at for one run: those behind a space too many are looked at again.
    const MOST: usize = 256;
    let bytes = part.as_bytes();
    let run = leading(&bytes[..bytes.len().min(MOST)], |byte| matches!(byte, b' '..=b'~') && byte != b'`');
    let plain = &part[..run];
    let run = if plain.contains("  ") { plain.find("  ").unwrap_or(run) } else { run };
    // A space neither begins nor ends the run, so that what is left out is visible.
    let run = if plain.starts_with(' ') { 0 } else { run - usize::from(part[..run].ends_with(' ')) };
    if bytes.get(run).is_some_and(|next| !next.is_ascii()) { run.saturating_sub(1) } else { run }
}

/// The first character of a text from a place on that `is` wanted, and where it stands; of ASCII, only those for which
/// `may_be` is true are looked at, as most of most texts is neither.
pub fn find_char(
    text: &str,
    from: usize,
    may_be: impl Fn(u8) -> bool,
    is: impl Fn(char) -> bool,
) -> Option<(usize, char)> {
    let mut at = from;
    loop {
        let rest = text.as_bytes().get(at..)?;
        let is_passed = |byte: u8| byte.is_ascii() && !may_be(byte);
        // In scripts beyond ASCII every character is looked at: none of them pays for a look at those behind it.
        at += if is_passed(*rest.first()?) { leading(rest, is_passed) } else { 0 };
        let c = text.get(at..)?.chars().next()?;
        if is(c) {
            return Some((at, c));
        }
        at += c.len_utf8();
    }
}

/// Whether a character ends a line.
pub const fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}'..='\u{2029}')
}

/// Whether a character may become one with what stands before it.
fn combines(c: char) -> bool {
    match c {
        // Latin, Greek, Cyrillic, CJK and Hangul without any mark: no look-up in the tables.
        '\0'..='\u{2ff}'
        | '\u{370}'..='\u{482}'
        | '\u{3030}'..='\u{3098}'
        | '\u{309b}'..='\u{a66e}'
        | '\u{ac00}'..='\u{d7a3}' => false,
        '\u{1160}'..='\u{11ff}' => true,
        _ => canonical_combining_class(c) != 0 || is_spacing_mark(c),
    }
}

/// Marks of Indic scripts that compose although they do not combine by class.
const fn is_spacing_mark(c: char) -> bool {
    matches!(c, '\u{9be}' | '\u{9d7}' | '\u{b3e}' | '\u{b56}'..='\u{b57}' | '\u{bbe}' | '\u{bd7}' | '\u{cc2}'
        | '\u{cd5}'..='\u{cd6}' | '\u{d3e}' | '\u{d57}' | '\u{dcf}' | '\u{ddf}' | '\u{102e}' | '\u{ff9e}'..='\u{ff9f}')
}

/// Whether folding leaves a character as it is.
const fn is_plain(c: char) -> bool {
    matches!(c, '!'..='_' | 'a'..='~' | '\u{c0}'..='\u{131}' | '\u{386}'..='\u{3ce}' | '\u{400}'..='\u{481}'
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fe}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// The digit or sign that a superscript stands for.
const fn superscript(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴' => '4',
        '⁵' => '5',
        '⁶' => '6',
        '⁷' => '7',
        '⁸' => '8',
        '⁹' => '9',
        '⁻' => '-',
        _ => return None,
    })
}

/// One quotation mark and one dash for all, digits and their separators in ASCII.
fn evened(c: char) -> char {
    match c {
        '“' | '”' | '„' | '‟' | '«' | '»' | '「' | '」' | '『' | '』' | '〝' | '〞' | '〟' => {
            '"'
        }
        '‘' | '’' | '‚' | '‛' | '‹' | '›' | '`' | '´' | '′' | 'ʼ' => '\'',
        '‐'..='―' | '−' | '﹘' | '\u{2e3a}' | '\u{2e3b}' => '-',
        '٫' => '.',
        '٬' => ',',
        _ => digit(c).unwrap_or(c),
    }
}

/// The ASCII digit of a decimal digit in another script.
fn digit(c: char) -> Option<char> {
    const ZEROS: [u32; 20] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
        0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810,
    ];
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&u32::from(c)))?;
    char::from_digit(u32::from(c) - zero, 10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_read_alike_fold_alike() {
        for (source, folded) in [
            ("“Paris”  is\tbig", "\"Paris\" is big"),
            ("a\u{a0}–\u{2009}b\r\n c", "a - b\nc"),
            ("10⁵ and 10⁻¹², m²", "10^5 and 10^-12, m^2"),
            ("８８４９ ٣٫٥ २०२४", "8849 3.5 2024"),
            ("Bogota\u{301} ﬁn", "Bogotá fin"),
            ("3½", "3 1⁄2"),
            ("soft\u{ad}hyphen zero\u{200b}width", "softhyphen zerowidth"),
            ("L’été", "L'été"),
        ] {
            assert_eq!(Folded::new(source).text(), folded, "{source}");
        }
    }

    #[test]
    fn a_range_is_mapped_back_to_whole_characters() {
        let folded = Folded::new("x ﬁne “é” 10⁵.");
        let at = |needle: &str| {
            let start = folded.text().find(needle).unwrap();
            folded.source(start..start + needle.len())
        };
        assert_eq!(at("f"), 2..5);
        assert_eq!(at("\"é\""), 8..16);
        assert_eq!(at("^5"), 19..22);
    }

    proptest! {
        #[test]
        fn every_range_lies_in_the_source(text in any::<String>(), from in 0_usize..40, length in 0_usize..40) {
            let folded = Folded::new(&text);
            let whole = folded.text().len();
            let range = folded.source(from.min(whole)..(from + length).min(whole));
            prop_assert!(text.get(range).is_some());
        }

        #[test]
        fn folding_twice_changes_nothing(text in "[ -~\u{a0}“”–éß²½８ﬁ東ア한]{0,40}") {
            let once = Folded::new(&text).text().to_owned();
            let twice = Folded::new(&once);
            prop_assert_eq!(twice.text(), &once);
        }
    }
}
