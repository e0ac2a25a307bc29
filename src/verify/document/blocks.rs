//! The paragraphs of a plain text, and the lines of it that stand for themselves.
//!
//! A line is a paragraph of its own if a blank line, an item of a list or a table begins after it, or if it is too short
//! to have been wrapped: lines of a wrapped paragraph are long, and the next one goes on in small letters.

use std::ops::Range;

use super::text::Kind;
use crate::verify::words::{ends_line, find_char};

/// A part of a text that no sentence crosses.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    /// Prose is cut into sentences; anything else is one.
    pub(super) kind: Kind,
}

/// The most words of a column's name.
const MAX_NAME_WORDS: usize = 4;

/// A line of at least so many columns may have been wrapped before a capital as well.
const WRAPPED_COLUMNS: usize = 56;

/// The blocks of a plain text.
pub(super) fn plain(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut table_rows = 0;
    // A single row is no table.
    let end_table = |blocks: &mut Vec<Block>, rows: &mut usize| {
        if std::mem::take(rows) == 1
            && let Some(Block { kind: kind @ Kind::TableHeader, range }) = blocks.last_mut()
            && text.get(range.clone()).is_some_and(|row| row.contains(char::is_alphanumeric))
        {
            *kind = Kind::Prose;
        }
    };
    let lines = lines(text).map(|line| {
        let range = trimmed(text, line);
        let shown = text.get(range.clone()).unwrap_or_default();
        (range, shown, separators(shown))
    });
    let (mut lines, mut before) = (lines.peekable(), None);
    while let Some((range, shown, values)) = lines.next() {
        // A row of values has as many as one beside it.
        let is_row =
            values.is_some() && (values == before || lines.peek().is_some_and(|next| values == next.2));
        before = values;
        if shown.is_empty() {
            blocks.extend(open.take().map(prose));
            end_table(&mut blocks, &mut table_rows);
            continue;
        }
        if let Some(kind) =
            row(shown, table_rows).or_else(|| is_row.then(|| row_of_values(shown, table_rows)))
        {
            blocks.extend(open.take().map(prose));
            table_rows += 1;
            blocks.push(Block { range, kind });
            continue;
        }
        end_table(&mut blocks, &mut table_rows);
        open = Some(match open.take() {
            Some(before) if continues(last_line(text, &before), shown) => before.start..range.end,
            before => {
                blocks.extend(before.map(prose));
                range
            }
        });
    }
    end_table(&mut blocks, &mut table_rows);
    blocks.extend(open.map(prose));
    blocks
}

/// Whether a cell of a row is a sentence.
pub(super) fn states(row: &str) -> bool {
    let is_sentence =
        |cell: &str| ends_statement(cell.trim_end()) && cell.split_whitespace().nth(MAX_NAME_WORDS).is_some();
    row.split(['|', '\t']).any(is_sentence)
}

/// The range without white space at its ends.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.get(range.clone()).unwrap_or_default();
    let start = range.start + (part.len() - part.trim_start().len());
    start..(start + part.trim().len())
}

fn prose(range: Range<usize>) -> Block {
    Block { range, kind: Kind::Prose }
}

/// The lines of a text, whatever ends them.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut rest = Some(0);
    std::iter::from_fn(move || {
        let start = rest?;
        let end = find_char(text, start, |byte| matches!(byte, b'\n'..=b'\r'), ends_line);
        rest = end.map(|(at, mark)| at + mark.len_utf8());
        Some(start..end.map_or(text.len(), |(at, _)| at))
    })
}

fn last_line<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    let part = text.get(range.clone()).unwrap_or_default();
    part.rsplit(ends_line).next().unwrap_or(part)
}

/// What a line of a table is: bars or tabs between cells.
fn row(line: &str, rows_before: usize) -> Option<Kind> {
    let is_ruler =
        line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '=' | '|' | '+' | ':' | ' ' | '_' | '*'));
    if is_ruler {
        return Some(Kind::TableHeader);
    }
    let bars = line.matches('|').count();
    // An item of a list has a tab behind its mark where it was copied from an office document.
    if begins_item(line) && bars < 2 && line.matches('\t').count() == 1 {
        return None;
    }
    let is_row = bars >= 2 || line.contains('\t') || (bars == 1 && rows_before > 0);
    is_row.then_some(if rows_before == 0 { Kind::TableHeader } else { Kind::TableRow })
}

/// What a row of a file of values is, such as CSV. The first, of bare words, names the columns; anything else may be a
/// statement.
fn row_of_values(line: &str, rows_before: usize) -> Kind {
    let is_no_name = |c: char| c.is_numeric() || c.is_whitespace() || c >= '\u{1100}';
    if rows_before == 0 && !line.contains(is_no_name) { Kind::TableHeader } else { Kind::TableRow }
}

/// How many marks separate the values of a line; `None` if it is prose: a space stands behind one of them, or all are
/// those of numbers.
pub(super) fn separators(line: &str) -> Option<usize> {
    let (mut count, mut of_numbers, mut is_quoted, mut before) = (0, 0, false, b' ');
    let bytes = line.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        is_quoted ^= *byte == b'"';
        if !is_quoted && matches!(byte, b',' | b';') {
            let next = bytes.get(at + 1).copied().unwrap_or(*byte);
            if next == b' ' {
                return None;
            }
            count += 1;
            of_numbers += usize::from(before.is_ascii_digit() && next.is_ascii_digit());
        }
        before = *byte;
    }
    (count > of_numbers).then_some(count)
}

/// Whether a line goes on where the one before it was wrapped.
fn continues(before: &str, line: &str) -> bool {
    if begins_item(line) {
        return false;
    }
    let Some(first) = line.chars().find(|c| c.is_alphanumeric()) else { return true };
    if ends_statement(before) {
        // A sentence that fills its line may be followed by the next of the same paragraph: both are cut there anyway.
        return false;
    }
    let columns = before.chars().map(|c| if c >= '\u{1100}' { 2 } else { 1 }).sum::<usize>();
    first.is_lowercase() || columns >= WRAPPED_COLUMNS
}

fn ends_statement(line: &str) -> bool {
    let line = line.trim_end_matches(['"', '\'', '”', '’', '»', ')', ']', '」', '』', '）', '*', '_']);
    line.ends_with(['.', '!', '?', '。', '！', '？', '؟', '۔', '।', '…', ':', '：'])
}

/// Whether a line begins with the mark of a list's item.
pub(super) fn begins_item(line: &str) -> bool {
    if line.starts_with(['•', '‣', '◦', '▪', '–', '—', '·', '#', '>']) {
        return true;
    }
    if let Some(rest) = line.strip_prefix(['-', '*', '+']) {
        return rest.starts_with([' ', '\t']);
    }
    item_number(line) > 0
}

/// The length of a number or letter that numbers an item, with what ends it: `3.`, `(b)`, `12)`; 0 if there is none.
pub(super) fn item_number(line: &str) -> usize {
    let inner = line.strip_prefix('(').unwrap_or(line);
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let length =
        if digits > 0 { digits } else { usize::from(inner.starts_with(|c: char| c.is_ascii_alphabetic())) };
    let ends = inner.get(length..).is_some_and(|rest| {
        let mut rest = rest.chars();
        let is_end = matches!(rest.next(), Some(')'))
            || (inner.len() == line.len() && digits > 0 && inner[length..].starts_with('.'));
        is_end && rest.next().is_none_or(|c| matches!(c, ' ' | '\t'))
    });
    if (1..=3).contains(&length) && ends { length + 1 + (line.len() - inner.len()) } else { 0 }
}

#[cfg(test)]
mod tests {
    use crate::verify::document::{Document, Format, Kind};

    #[test]
    fn a_line_with_tabs_or_bars_is_no_header_unless_a_table_follows() {
        for text in [
            "1.\tThe Tower is in Berlin.\n2.\tIt is old.",
            "•\tThe Tower is in Berlin.\n•\tIt is old.",
            "The Tower\tis in Berlin today.",
            "It | is | in Berlin.\n\nMore.",
            "The Tower is in Berlin, they say.\tYes\nA\tB",
        ] {
            let document = Document::new(text, Format::Text);
            let said = document.sentences().iter().filter(|sentence| !sentence.exempt);
            assert!(
                said.map(|sentence| &text[sentence.range.clone()]).any(|said| said.contains("Berlin")),
                "{text:?}"
            );
        }
        for text in [
            "name,claim\n\"Gold\",\"is lighter than water\"\n\"Iron\",\"is soft\"",
            "land;capital\nFrance;Paris\nSpain;Rome",
            "land,capital,people,founded\nFrance,Paris,1000,1\nSpain,Rome,2000,2",
        ] {
            let document = Document::new(text, Format::Text);
            let exempt: Vec<bool> = document.sentences().iter().map(|sentence| sentence.exempt).collect();
            assert_eq!(exempt, [true, false, false], "{text:?}");
        }
        for text in ["Gold, silver", "The price is 1,000", "A;B"] {
            let document = Document::new(text, Format::Text);
            assert!(document.sentences().iter().all(|sentence| sentence.kind != Kind::TableRow), "{text}");
        }
        let table = Document::new("City\tCountry\nBerlin\tGermany\nRome\tItaly", Format::Text);
        assert_eq!(
            table.sentences().iter().map(|sentence| sentence.exempt).collect::<Vec<_>>(),
            [true, false, false]
        );
    }
}
