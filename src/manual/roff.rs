//! Topics as manual pages, for `man`, `mandoc` and `groff`.

use clap_mangen::roff::{Inline as Span, Roff, bold, roman};

use super::document::{Block, Inline};
use super::{Topic, linked, plain};

/// Tells `man` that the page has tables, which a preprocessor of `groff` lays out.
const HAS_TABLES: &str = "'\\\" t\n";

/// How many characters a cell may have that is not wrapped.
const SHORT: usize = 28;

/// How many columns a page has on most terminals.
const WIDTH: usize = 72;

/// The space between two columns of a table.
const GAP: usize = 3;

/// The manual page of a topic; `source` is the program with its version. `markdown` is the topic's, with its tables.
pub fn page(topic: &Topic, markdown: &str, source: &str) -> String {
    let mut roff = Roff::new();
    let section = topic.section.to_string();
    // Without a date, as the page would differ each day; two quotes keep its place.
    roff.control("TH", [&*topic.page(), &*section, "\"\"", source, "mk"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{} - {}", topic.page(), topic.summary()))]);
    roff.control("SH", ["DESCRIPTION"]);
    let blocks = super::document::parse(markdown);
    add_all(&mut roff, blocks.get(1..).unwrap_or_default(), true);
    format!("{HAS_TABLES}{}", roff.render())
}

/// Adds blocks. A paragraph begins by itself behind a heading, as the first one does if `has_begun`.
fn add_all(roff: &mut Roff, blocks: &[Block], mut has_begun: bool) {
    for block in blocks {
        let begins_itself = matches!(block, Block::Heading { .. } | Block::List { .. } | Block::Table { .. });
        if !has_begun && !begins_itself {
            roff.control("PP", []);
        }
        add(roff, block);
        has_begun = matches!(block, Block::Heading { .. });
    }
}

fn add(roff: &mut Roff, block: &Block) {
    match block {
        Block::Heading { level: 2, text } => {
            roff.control("SH", [&*plain(text).to_uppercase()]);
        }
        Block::Heading { text, .. } => {
            roff.control("SS", [&*plain(text)]);
        }
        Block::Paragraph(text) => {
            roff.text(spans(text));
        }
        Block::List { is_numbered, items } => add_list(roff, *is_numbered, items),
        Block::Code(code) => {
            roff.control("RS", ["4"]);
            roff.control("nf", []);
            for line in code.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
            roff.control("RE", []);
        }
        Block::Table { head, rows } => add_table(roff, head, rows),
        Block::Unknown => {}
    }
}

fn add_list(roff: &mut Roff, is_numbered: bool, items: &[Vec<Block>]) {
    for (at, blocks) in items.iter().enumerate() {
        let mark = if is_numbered { format!("{}.", at + 1) } else { "\\(bu".to_owned() };
        roff.control("IP", [&*mark, "4"]);
        let (first, rest) = match blocks.as_slice() {
            [Block::Paragraph(text), rest @ ..] => (text.as_slice(), rest),
            all => (&[][..], all),
        };
        roff.text(spans(first));
        if !rest.is_empty() {
            roff.control("RS", ["4"]);
            add_all(roff, rest, false);
            roff.control("RE", []);
        }
    }
}

/// The widest column gets what room there is. Without enough of it, each row is a paragraph of its own.
fn add_table(roff: &mut Roff, head: &[Vec<Inline>], rows: &[Vec<Vec<Inline>>]) {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| plain(cell).chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let widest = widths.iter().copied().max().unwrap_or(0);
    let others: usize = widths.iter().sum::<usize>() - widest + GAP * widths.len();
    if others + widest.min(SHORT) > WIDTH {
        return rows.iter().for_each(|row| add_row(roff, head, row));
    }
    let formats: Vec<&str> = widths.iter().map(|width| if *width == widest { "lx" } else { "l" }).collect();
    roff.control("sp", []);
    roff.control("TS", []);
    roff.text([roman(format!("{}.", formats.join(" ")))]);
    let has_head = head.iter().any(|cell| !cell.is_empty());
    let head = has_head.then_some(head.to_vec());
    for row in head.iter().chain(rows) {
        let mut line = Vec::new();
        for (at, cell) in row.iter().enumerate() {
            if at > 0 {
                line.push(roman("\t"));
            }
            // A block of text, which is wrapped; its content begins on a line of its own.
            let is_long = plain(cell).chars().count() > SHORT;
            if is_long {
                line.push(roman("T{\n"));
            }
            line.extend(spans(cell));
            if is_long {
                line.push(roman("\nT}"));
            }
        }
        roff.text(line);
    }
    roff.control("TE", []);
}

/// A row below its first cell, as options are listed.
fn add_row(roff: &mut Roff, head: &[Vec<Inline>], row: &[Vec<Inline>]) {
    let mut cells = row.iter().zip(head);
    let Some((first, _)) = cells.next() else { return };
    roff.control("TP", []);
    roff.text([bold(plain(first))]);
    let mut is_first = true;
    for (cell, head) in cells.filter(|(cell, _)| !cell.is_empty()) {
        if !is_first {
            roff.control("br", []);
        }
        is_first = false;
        let label = plain(head);
        let label = if label.is_empty() { label } else { format!("{label}: ") };
        roff.text([vec![roman(label)], spans(cell)].concat());
    }
}

fn spans(inlines: &[Inline]) -> Vec<Span> {
    inlines.iter().flat_map(span).collect()
}

fn span(inline: &Inline) -> Vec<Span> {
    match inline {
        Inline::Text(text) => vec![roman(text)],
        Inline::Code(code) => vec![bold(code)],
        Inline::Strong(text) => vec![bold(plain(text))],
        Inline::Link { text, to } => match linked(to) {
            // The words, and behind them the page, unless they are its name.
            Some((topic, _)) => {
                let page = [bold(topic.page()), roman(format!("({})", topic.section))];
                if plain(text) == format!("{}({})", topic.page(), topic.section) {
                    return page.into();
                }
                [vec![roman(format!("{} (", plain(text)))], page.into(), vec![roman(")")]].concat()
            }
            None if to.starts_with("https://") && plain(text) != *to => {
                vec![roman(format!("{} <{to}>", plain(text)))]
            }
            None => vec![roman(plain(text))],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_macro() {
        let topic = Topic { name: "x", section: 7, source: "# mk-x(7): the x\n" };
        let page = page(
            &topic,
            "# mk-x(7): the x\n\nSee [server](mk-server.5.md) and [mk-config(5)](mk-config.5.md).\n\n## Some words\n\n1. `a-b`\n\n| h | i |\n|---|---|\n| j | a cell that is so long that it has to be wrapped |\n\n```\n.k\n```\n\n| `one` | two | three |\n|---|---|---|\n| a cell that takes some room | another cell that takes room | a third that takes some room |\n",
            "mk 1",
        );
        for part in [
            ".TH mk-x 7 \"\" \"mk 1\" mk\n.SH NAME\n",
            "mk\\-x \\- the x\n",
            "See server (\\fBmk\\-server\\fR(5)) and \\fBmk\\-config\\fR(5).\n",
            ".SH \"SOME WORDS\"\n",
            ".IP 1. 4\n\\fBa\\-b\\fR\n",
            ".TS\nl lx.\nh\ti\nj\tT{\na cell that is so long that it has to be wrapped\nT}\n.TE\n",
            ".nf\n\\&.k\n.fi\n",
            ".TP\n\\fBa cell that takes some room\\fR\ntwo: another cell that takes room\n.br\nthree: a third",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
