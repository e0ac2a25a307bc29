//! Markdown as a tree of the few things that topics are made of.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading {
        /// 1 for the page's, 2 and 3 below it.
        level: u8,
        /// Its text.
        text: Vec<Inline>,
    },
    /// A paragraph.
    Paragraph(Vec<Inline>),
    /// A list.
    List {
        /// Whether its items are numbered, from 1 on.
        is_numbered: bool,
        /// What is in each item.
        items: Vec<Vec<Block>>,
    },
    /// Lines that stay as they are.
    Code(String),
    /// A table.
    Table {
        /// The headings of the columns.
        head: Vec<Vec<Inline>>,
        /// The cells of each row.
        rows: Vec<Vec<Vec<Inline>>>,
    },
    /// Stands at the end of a page that uses something else, which no topic may.
    Unknown,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inline {
    /// Words.
    Text(String),
    /// What is typed as it stands.
    Code(String),
    /// Words with weight.
    Strong(Vec<Inline>),
    /// Words that lead elsewhere.
    Link {
        /// The words.
        text: Vec<Inline>,
        /// Where they lead: another topic's file, a place on this page (`#…`), or an address.
        to: String,
    },
}

impl Inline {
    /// Its text without any markup.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) | Self::Code(text) => text.clone(),
            Self::Strong(text) | Self::Link { text, .. } => super::plain(text),
        }
    }
}

/// The blocks of a page.
pub fn parse(markdown: &str) -> Vec<Block> {
    let mut reader =
        Reader { events: Parser::new_ext(markdown, Options::ENABLE_TABLES), found_unknown: false };
    let mut blocks = reader.blocks();
    if reader.found_unknown {
        blocks.push(Block::Unknown);
    }
    blocks
}

/// Where all links in these blocks lead.
pub fn links(blocks: &[Block]) -> Vec<String> {
    blocks
        .iter()
        .flat_map(|block| match block {
            Block::Heading { text, .. } | Block::Paragraph(text) => links_in(text),
            Block::List { items, .. } => items.iter().flat_map(|item| links(item)).collect(),
            Block::Table { head, rows } => {
                rows.iter().flatten().chain(head).flat_map(|cell| links_in(cell)).collect()
            }
            Block::Code(_) | Block::Unknown => Vec::new(),
        })
        .collect()
}

fn links_in(inlines: &[Inline]) -> Vec<String> {
    let links = inlines.iter().flat_map(|inline| match inline {
        Inline::Link { to, .. } => vec![to.clone()],
        Inline::Strong(text) => links_in(text),
        Inline::Text(_) | Inline::Code(_) => Vec::new(),
    });
    links.collect()
}

/// Reads events up to the end of what it is in.
struct Reader<'a> {
    events: Parser<'a>,
    found_unknown: bool,
}

impl Reader<'_> {
    fn blocks(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        // An item of a tight list holds its text without a paragraph around it.
        let mut loose = Vec::new();
        while let Some(event) = self.events.next() {
            let block = match event {
                Event::End(_) => break,
                Event::Start(tag) if is_block(&tag) => self.block(&tag),
                // Comments, which hold the markers of tables.
                Event::Html(html) if html.starts_with("<!--") => continue,
                event => {
                    loose.extend(self.inline(event));
                    continue;
                }
            };
            flush(&mut loose, &mut blocks);
            blocks.extend(block);
        }
        flush(&mut loose, &mut blocks);
        blocks
    }

    fn block(&mut self, tag: &Tag<'_>) -> Vec<Block> {
        let block = match tag {
            Tag::Heading { level, .. } => Block::Heading { level: level_of(*level), text: self.inlines() },
            Tag::Paragraph => Block::Paragraph(self.inlines()),
            Tag::List(first) => Block::List { is_numbered: first.is_some(), items: self.items() },
            Tag::CodeBlock(_) => Block::Code(super::plain(&self.inlines())),
            Tag::Table(_) => self.table(),
            Tag::HtmlBlock => return self.blocks(),
            _ => {
                self.found_unknown = true;
                return self.blocks();
            }
        };
        vec![block]
    }

    /// The items of a list, up to its end.
    fn items(&mut self) -> Vec<Vec<Block>> {
        let mut items = Vec::new();
        while let Some(Event::Start(_)) = self.events.next() {
            items.push(self.blocks());
        }
        items
    }

    fn table(&mut self) -> Block {
        let (mut head, mut rows) = (Vec::new(), Vec::new());
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead) => head = self.cells(),
                Event::Start(Tag::TableRow) => rows.push(self.cells()),
                _ => break,
            }
        }
        Block::Table { head, rows }
    }

    /// The cells of a row, up to its end.
    fn cells(&mut self) -> Vec<Vec<Inline>> {
        let mut cells = Vec::new();
        while let Some(Event::Start(Tag::TableCell)) = self.events.next() {
            cells.push(self.inlines());
        }
        cells
    }

    /// All up to the end of what holds it.
    fn inlines(&mut self) -> Vec<Inline> {
        let mut inlines: Vec<Inline> = Vec::new();
        while let Some(event) = self.events.next() {
            if matches!(event, Event::End(_)) {
                break;
            }
            inlines.extend(self.inline(event));
        }
        inlines
    }

    fn inline(&mut self, event: Event<'_>) -> Option<Inline> {
        let inline = match event {
            Event::Text(text) => Inline::Text(text.into_string()),
            Event::Code(code) => Inline::Code(code.into_string()),
            Event::SoftBreak => Inline::Text(" ".to_owned()),
            Event::Start(Tag::Strong | Tag::Emphasis) => Inline::Strong(self.inlines()),
            Event::Start(Tag::Link { dest_url, .. }) => {
                Inline::Link { text: self.inlines(), to: dest_url.into_string() }
            }
            event => {
                self.found_unknown = true;
                if matches!(event, Event::Start(_)) {
                    self.inlines();
                }
                return None;
            }
        };
        Some(inline)
    }
}

const fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(tag, Tag::Strong | Tag::Emphasis | Tag::Link { .. } | Tag::Image { .. } | Tag::Strikethrough)
}

fn flush(loose: &mut Vec<Inline>, blocks: &mut Vec<Block>) {
    if !loose.is_empty() {
        blocks.push(Block::Paragraph(std::mem::take(loose)));
    }
}

const fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Inline {
        Inline::Text(text.to_owned())
    }

    #[test]
    fn a_page_becomes_its_parts() {
        let page = "# T\n\nA **b** [c](d.md).\n\n1. one\n2. `two`\n\n   - in\n\n```sh\nmk  x\n```\n\n<!-- table: t -->\n\n| h |\n|---|\n| i `j` |\n";
        let item = |text: Inline| Block::Paragraph(vec![text]);
        assert_eq!(
            parse(page),
            [
                Block::Heading { level: 1, text: vec![text("T")] },
                Block::Paragraph(vec![
                    text("A "),
                    Inline::Strong(vec![text("b")]),
                    text(" "),
                    Inline::Link { text: vec![text("c")], to: "d.md".to_owned() },
                    text("."),
                ]),
                Block::List {
                    is_numbered: true,
                    items: vec![
                        vec![item(text("one"))],
                        vec![
                            item(Inline::Code("two".to_owned())),
                            Block::List { is_numbered: false, items: vec![vec![item(text("in"))]] },
                        ],
                    ],
                },
                Block::Code("mk  x\n".to_owned()),
                Block::Table {
                    head: vec![vec![text("h")]],
                    rows: vec![vec![vec![text("i "), Inline::Code("j".to_owned())]]],
                },
            ]
        );
        assert_eq!(links(&parse(page)), ["d.md"]);
    }

    #[test]
    fn what_cannot_be_rendered_is_noticed() {
        for page in ["> quoted\n", "a <b>bold</b>\n", "![i](p.png)\n", "a\\\nb\n", "---\n"] {
            assert_eq!(parse(page).last(), Some(&Block::Unknown), "{page}");
        }
    }
}
