//! The blocks of a Markdown text, and what of it is not said: marks, link targets, comments.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::blocks::Block;
use super::sentences::asserts;
use super::text::Kind;

/// The blocks of a text in order, and the ranges of it that are hidden, in order and apart.
pub(super) fn blocks(text: &str) -> (Vec<Block>, Vec<Range<usize>>) {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut reader = Reader { text, blocks: Vec::new(), shown: Vec::new(), open: None, html: Html::Text };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.read(&event, range);
    }
    reader.close();
    reader.finish()
}

/// The kind that an element gives to what stands in it.
const fn kind_of(tag: &Tag<'_>) -> Option<Kind> {
    Some(match tag {
        Tag::Heading { level, .. } => Kind::Heading(level_of(*level)),
        Tag::CodeBlock(_) | Tag::HtmlBlock | Tag::MetadataBlock(_) => Kind::Code,
        Tag::TableHead => Kind::TableHeader,
        Tag::TableRow => Kind::TableRow,
        Tag::Paragraph => Kind::Prose,
        _ => return None,
    })
}

const fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

struct Reader<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    /// What is said, in order and apart.
    shown: Vec<Range<usize>>,
    /// The block under way, and whether its range is known (not that of an item without a paragraph).
    open: Option<(Block, bool)>,
    html: Html,
}

/// Where in HTML a reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Html {
    Text,
    Tag,
    Comment,
}

impl Reader<'_> {
    fn read(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => match kind_of(tag) {
                Some(kind) => {
                    let is_prose = match tag {
                        Tag::MetadataBlock(_) => !self.is_front_matter(&range),
                        // A paragraph that was indented for its looks.
                        Tag::CodeBlock(CodeBlockKind::Indented) => {
                            self.text.get(range.clone()).is_some_and(asserts)
                        }
                        _ => false,
                    };
                    let kind = if is_prose { Kind::Prose } else { kind };
                    self.close();
                    self.html = Html::Text;
                    self.open = Some((Block { range, kind }, true));
                }
                None if is_inline(tag) => {}
                None => self.close(),
            },
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::TableHead
                | TagEnd::TableRow
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock
                | TagEnd::MetadataBlock(_),
            )
            | Event::Rule => self.close(),
            Event::Text(_) | Event::SoftBreak | Event::HardBreak => self.say(range),
            Event::Html(_) => self.say_html(range),
            // The ticks around code are no part of it.
            Event::Code(_) => {
                let ticks = self.text[range.clone()].bytes().take_while(|byte| *byte == b'`').count();
                self.say(range.start + ticks..range.end.saturating_sub(ticks).max(range.start + ticks));
            }
            _ => {}
        }
    }

    /// Text that is said, which opens a block where none is open: in an item of a tight list.
    fn say(&mut self, range: Range<usize>) {
        match &mut self.open {
            Some((_, true)) => {}
            Some((block, false)) => block.range.end = block.range.end.max(range.end),
            None => self.open = Some((Block { range: range.clone(), kind: Kind::Prose }, false)),
        }
        if self.shown.last().is_none_or(|last| last.end <= range.start) {
            self.shown.push(range);
        }
    }

    /// A line of a block of HTML, which is prose if it says anything outside of tags and comments.
    fn say_html(&mut self, range: Range<usize>) {
        let mut from = range.start;
        let bytes = self.text.as_bytes();
        for at in range.clone() {
            let next = match (self.html, bytes[at]) {
                (Html::Text, b'<') if self.text[at..].starts_with("<!--") => Html::Comment,
                (Html::Text, b'<') if opens_tag(bytes.get(at + 1)) => Html::Tag,
                (Html::Comment, b'>') if ends_comment(&self.text[..at]) => Html::Text,
                (Html::Tag, b'>') => Html::Text,
                (state, _) => state,
            };
            if next != self.html {
                if self.html == Html::Text {
                    self.say_prose(from..at);
                }
                from = at + 1;
                self.html = next;
            }
        }
        if self.html == Html::Text {
            self.say_prose(from..range.end);
        }
    }

    fn say_prose(&mut self, range: Range<usize>) {
        if self.text.get(range.clone()).is_none_or(|text| !text.contains(char::is_alphanumeric)) {
            return;
        }
        self.say(range);
        if let Some((block, _)) = &mut self.open {
            block.kind = Kind::Prose;
        }
    }

    /// Whether a block between rulers is front matter: at the very beginning, and made of settings. Anywhere else, and of
    /// sentences, it is what it looks like on the page.
    fn is_front_matter(&self, range: &Range<usize>) -> bool {
        let is_setting = |line: &str| {
            line.is_empty()
                || line.starts_with([' ', '\t', '-', '+', '#', '[', ']', '{', '}'])
                || line.contains([':', '='])
        };
        range.start == 0 && self.text.get(range.clone()).is_some_and(|text| text.lines().all(is_setting))
    }

    fn close(&mut self) {
        self.blocks.extend(self.open.take().map(|(block, _)| block));
    }

    fn finish(self) -> (Vec<Block>, Vec<Range<usize>>) {
        let mut hidden = Vec::new();
        let mut from = 0;
        for shown in &self.shown {
            if shown.start > from {
                push_hidden(self.text, from..shown.start, &mut hidden);
            }
            from = from.max(shown.end);
        }
        push_hidden(self.text, from..self.text.len(), &mut hidden);
        (self.blocks, hidden)
    }
}

/// Whether a comment ends with the bracket behind this, as browsers read it.
fn ends_comment(before: &str) -> bool {
    before.ends_with("--") || before.ends_with("--!")
}

/// Whether what follows a `<` makes it a tag, and not the sign for less.
fn opens_tag(next: Option<&u8>) -> bool {
    next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?'))
}

const fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::TableCell
            | Tag::Superscript
            | Tag::Subscript
    )
}

/// Hides a range but for the white space in it, which still separates what stands around it.
fn push_hidden(text: &str, range: Range<usize>, hidden: &mut Vec<Range<usize>>) {
    let mut from = range.start;
    for (at, c) in text.get(range.clone()).unwrap_or_default().char_indices() {
        if c.is_whitespace() {
            if from < range.start + at {
                hidden.push(from..range.start + at);
            }
            from = range.start + at + c.len_utf8();
        }
    }
    if from < range.end {
        hidden.push(from..range.end);
    }
}

#[cfg(test)]
mod tests {
    use crate::verify::document::{Document, Finder, Format, Kind};

    const TEXT: &str = "\
---
title: Towers 1887
---
# The Eiffel *Tower*

It is **330 metres** tall, see [its page](https://example.com/1925.html \"Page 7\").
It was built
by `Eiffel`. <!-- not 1999 -->

<!-- a comment of 2001 -->
<div>It is <b>older</b> than the bridge.</div>

- Height: **330 m**, without the mast on its top
- Paint:
  60 tonnes

```text
code 42.
```

| Year | Visitors |
|------|----------|
| 2019 | 6.2 million |

## Visitors

> Many come.
";

    fn sentences(document: &Document<'_>) -> Vec<(Kind, String)> {
        document
            .sentences()
            .iter()
            .map(|sentence| (sentence.kind, document.text()[sentence.range.clone()].to_owned()))
            .collect()
    }

    #[test]
    fn only_what_markdown_says_is_a_statement() {
        let document = Document::new(TEXT, Format::Markdown);
        let said: Vec<(Kind, String)> =
            sentences(&document).into_iter().filter(|(kind, _)| !kind.is_exempt()).collect();
        let said: Vec<&str> = said.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            said,
            [
                "It is **330 metres** tall, see [its page](https://example.com/1925.html \"Page 7\").",
                "It was built\nby `Eiffel`.",
                "<div>It is <b>older</b> than the bridge.</div>",
                "Height: **330 m**, without the mast on its top",
                "Paint:\n  60 tonnes",
                "| 2019 | 6.2 million |",
                "Many come.",
            ]
        );
        let headings: Vec<usize> = document.headings(document.sentences().len() - 1).collect();
        let shown: Vec<&str> =
            headings.iter().map(|at| TEXT[document.sentences()[*at].range.clone()].trim()).collect();
        assert_eq!(shown, ["## Visitors", "# The Eiffel *Tower*"]);
    }

    #[test]
    fn nothing_said_hides_behind_marks() {
        for text in [
            "Towers.\n\n---\nThe Tower is in Berlin. It is new.\n---\n",
            "---\nThe Tower is in Berlin. It is new.\n---\n",
            "Towers.\n\n+++\nThe Tower is in Berlin. It is new.\n+++\n",
            "<p>\n< The Tower is in Berlin. It is new.\n</p>\n",
            "The Tower is in Berlin. It is new.\n---\n",
            "| The Tower is in Berlin and new. | It is new |\n|---|---|\n| a | b |\n",
            "Towers.\n\n    The Tower is in Berlin.\n",
            "# The Tower is in Berlin.\n",
            "The Tower is in Berlin.\n---\n",
            "<!-- a --!> <p>The Tower is in Berlin.</p> <!-- b -->\n",
        ] {
            let document = Document::new(text, Format::Markdown);
            let said = sentences(&document).into_iter().filter(|(kind, _)| !kind.is_exempt());
            assert!(said.map(|(_, text)| text).any(|text| text.contains("Berlin")), "{text:?}");
        }
    }

    #[test]
    fn quotes_are_found_with_marks_and_without() {
        let document = Document::new(TEXT, Format::Markdown);
        let finder = Finder::new(&document);
        let found = |quote: &str, occurrence: usize| {
            finder.find(quote, 0..TEXT.len(), occurrence).map(|range| &TEXT[range])
        };
        assert_eq!(found("It is 330 metres tall", 0), Some("It is **330 metres** tall"));
        assert_eq!(found("It is **330 metres** tall", 0), Some("It is **330 metres** tall"));
        assert_eq!(found("see its page", 0), Some("see [its page"));
        assert_eq!(found("built by Eiffel", 0), Some("built\nby `Eiffel"));
        assert_eq!(found("330", 1), Some("330"));
        assert_eq!(found("2030", 0), None);
        let years: Vec<i32> =
            finder.reading().values().iter().filter_map(crate::verify::values::Found::year).collect();
        assert_eq!(years, [1887, 2019], "not of link targets and comments");
    }
}
