//! Wraps and truncates text by terminal cells, not by characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most bytes of text per cell: twice what the longest emoji take. Characters without a width would otherwise make
/// a text of any length that fits into any space.
const MAX_BYTES_PER_CELL: usize = 32;

/// The number of cells that `text` takes.
pub(crate) fn cells(text: &str) -> usize {
    text.width()
}

/// Truncates text that contains our own colours to at most `width` cells.
pub(crate) fn cut_visible(painted: &str, width: usize) -> String {
    if visible_cells(painted) <= width {
        return painted.to_owned();
    }
    let (mut kept, mut room, mut rest) = (String::new(), width, painted);
    while let Some(c) = rest.chars().next() {
        let colour = rest.strip_prefix("\u{1b}[").and_then(|behind| behind.find('m'));
        let length = colour.map_or(c.len_utf8(), |end| end + "\u{1b}[m".len());
        let (piece, behind) = rest.split_at(length);
        let needed = if colour.is_some() { 0 } else { c.width().unwrap_or(0) };
        if needed > room {
            // What follows may be what ends a colour.
            room = 0;
        } else {
            room -= needed;
            kept.push_str(piece);
        }
        rest = behind;
    }
    kept
}

/// The width in cells of text that contains our own colours.
pub(crate) fn visible_cells(painted: &str) -> usize {
    if !painted.contains("\u{1b}[") {
        return cells(painted);
    }
    let mut visible = String::with_capacity(painted.len());
    let mut rest = painted;
    while let Some(start) = rest.find("\u{1b}[") {
        visible.push_str(&rest[..start]);
        let after = &rest[start..];
        rest = after.find('m').map_or("", |end| &after[end + 1..]);
    }
    visible.push_str(rest);
    cells(&visible)
}

/// Breaks `text` (sanitized) at spaces into lines of at most `width` cells. A wider word, such as an address, path or
/// identifier on a narrow terminal, gets a line to itself and stays whole so that it can be copied; the terminal breaks
/// it. Scripts of wide characters have no spaces and are broken anywhere.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        for piece in pieces(word, width) {
            let gap = usize::from(!line.is_empty());
            if visible_cells(&line) + gap + visible_cells(&piece) > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&piece);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Lines behind `first`: those after the first one stand below it, `indent` cells from the margin.
pub(crate) fn hanging(first: &str, indent: usize, lines: &[String]) -> Vec<String> {
    let behind = |(at, line): (usize, &String)| match at {
        0 => format!("{first}{line}"),
        _ => format!("{:indent$}{line}", ""),
    };
    lines.iter().enumerate().map(behind).collect()
}

/// The word itself, or its pieces where it is wider than a line and may be broken.
fn pieces(word: &str, width: usize) -> Vec<String> {
    if visible_cells(word) <= width || !word.chars().any(|c| c.width() == Some(2)) {
        return vec![word.to_owned()];
    }
    let mut pieces = Vec::new();
    let (mut piece, mut used) = (String::new(), 0);
    for c in word.chars() {
        let more = c.width().unwrap_or(0);
        if used + more > width && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += more;
    }
    pieces.push(piece);
    pieces
}

const fn max_bytes(width: usize) -> usize {
    width.saturating_mul(MAX_BYTES_PER_CELL)
}

/// Truncates `text` to at most `width` cells; `mark` stands for what was cut.
pub(crate) fn cut(text: &str, width: usize, mark: &str) -> String {
    if text.len() <= max_bytes(width) && cells(text) <= width {
        return text.to_owned();
    }
    let text = &text[..text.floor_char_boundary(max_bytes(width))];
    let room = width.saturating_sub(cells(mark));
    let mut kept = String::new();
    for c in text.chars() {
        if cells(&kept) + c.width().unwrap_or(0) > room {
            break;
        }
        kept.push(c);
    }
    if cells(mark) <= width {
        kept.push_str(mark);
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn breaks_at_spaces() {
        assert_eq!(wrap("The quick brown fox", 10), ["The quick", "brown fox"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn counts_cells_of_wide_characters() {
        assert_eq!(wrap("東京 大阪 京都", 9), ["東京 大阪", "京都"]);
        assert_eq!(cut("東京大阪", 5, "…"), "東京…");
    }

    #[test]
    fn a_word_wider_than_the_line_stays_whole_unless_its_script_has_no_spaces() {
        assert_eq!(wrap("see /var/lib/mk or so", 5), ["see", "/var/lib/mk", "or so"]);
        assert_eq!(wrap("a 東京大阪", 4), ["a", "東京", "大阪"]);
    }

    #[test]
    fn text_without_a_width_is_cut_as_well() {
        let flood = "\u{301}".repeat(2_000_000);
        for text in [format!("{flood}{}", "x".repeat(500)), flood.clone()] {
            let short = cut(&text, 400, "...");
            assert!(short.len() <= 400 * MAX_BYTES_PER_CELL + 3 && short.ends_with("..."), "{}", short.len());
        }
        for wide in ["東", &"東".repeat(100)] {
            assert_eq!(wrap(&format!("{wide}{flood}"), 40).concat().len(), wide.len() + flood.len());
        }
        let family = "👨‍👩‍👧‍👦";
        assert_eq!(cut(family, 2, "…"), family);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_is_lost(text in "[a-z東 ]{0,80}", width in 2usize..40) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| cells(line) <= width || line.chars().all(|c| c.is_ascii_lowercase())));
            let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&lines.concat()), bare(&text));
        }
    }
}
