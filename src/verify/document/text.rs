//! A document: the sentences of a text, with what kind each is.

use std::ops::Range;

use super::blocks::{self, Block};
use super::chars::{CharSpan, CharTable};
use super::{markdown, sections, sentences};

/// How a text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Plain text: all of it may be stated, but for what its lines say of themselves.
    #[default]
    Text,
    /// Markdown: headings, code, link targets, comments and front matter are no statements.
    Markdown,
}

/// What a sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sentence, or an item of a list.
    Prose,
    /// The heading of what follows; its level, from 1.
    Heading(u8),
    /// The first row of a table, which names its columns, or a ruler.
    TableHeader,
    /// Another row of a table.
    TableRow,
    /// A block of code, a comment, front matter: no statement.
    Code,
    /// A line that ends in a colon, and so announces what follows.
    ColonLine,
    /// At most four words without a stop.
    Fragment,
}

impl Kind {
    /// Whether nothing has to account for such a sentence (CONTRACT 4.6).
    pub const fn is_exempt(self) -> bool {
        !matches!(self, Self::Prose | Self::TableRow)
    }
}

/// A sentence of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Its place in the text, in bytes, without white space around it.
    pub range: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// Whether nothing has to account for it.
    pub exempt: bool,
    /// Which paragraph, item, table or heading of the text it belongs to, from 0.
    pub block: usize,
}

/// A text with its sentences.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    sentences: Vec<Sentence>,
    /// For each sentence the nearest heading above it, of a higher level if it is one itself.
    above: Vec<Option<usize>>,
    hidden: Vec<Range<usize>>,
    chars: CharTable,
}

impl<'a> Document<'a> {
    /// Reads a text in time of its length.
    pub fn new(text: &'a str, format: Format) -> Self {
        let (blocks, hidden) = match format {
            Format::Text => (blocks::plain(text), Vec::new()),
            Format::Markdown => markdown::blocks(text),
        };
        let mut all = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            add_block(text, block, at, &mut all);
        }
        let above = headings_above(&all);
        Self { text, sentences: all, above, hidden, chars: CharTable::new(text) }
    }

    /// The text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// All sentences, in order.
    pub fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// Which sentences touch a range of the text.
    pub fn sentences_of(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.sentences.partition_point(|sentence| sentence.range.end <= range.start);
        let end =
            self.sentences.partition_point(|sentence| sentence.range.start < range.end.max(range.start + 1));
        first..end.max(first)
    }

    /// The headings above a sentence, the innermost first.
    pub fn headings(&self, sentence: usize) -> impl Iterator<Item = usize> {
        let above = |at: usize| self.above.get(at).copied().flatten();
        std::iter::successors(above(sentence), move |at| above(*at))
    }

    /// Sections of about `target_chars` characters each, which hold all sentences in order.
    pub fn sections(&self, target_chars: usize) -> Vec<sections::Section> {
        sections::cut(self, target_chars)
    }

    /// A range of bytes in characters.
    pub fn char_span(&self, range: &Range<usize>) -> CharSpan {
        self.chars.span(self.text, range)
    }

    /// What the text holds but does not say: marks of Markdown, link targets, comments. In order and apart.
    pub fn hidden(&self) -> &[Range<usize>] {
        &self.hidden
    }
}

fn headings_above(sentences: &[Sentence]) -> Vec<Option<usize>> {
    let mut path: Vec<(u8, usize)> = Vec::new();
    let above = sentences.iter().enumerate().map(|(at, sentence)| {
        if let Kind::Heading(level) = sentence.kind {
            path.retain(|(above, _)| *above < level);
            let above = path.last().map(|(_, above)| *above);
            path.push((level, at));
            return above;
        }
        path.last().map(|(_, above)| *above)
    });
    above.collect()
}

/// Adds the sentences of a block.
fn add_block(text: &str, block: &Block, at: usize, all: &mut Vec<Sentence>) {
    let mut add = |range: Range<usize>, kind: Kind| {
        if !range.is_empty() {
            let has_words = text.get(range.clone()).is_some_and(|text| text.contains(char::is_alphanumeric));
            let exempt = kind.is_exempt() || !has_words;
            all.push(Sentence { range, kind, exempt, block: at });
        }
    };
    let parts = sentences::split(text, block.range.clone());
    let shown = || text.get(block.range.clone()).unwrap_or_default();
    match block.kind {
        Kind::Prose => {}
        // Sentences are no heading, whatever marks stand around them.
        Kind::Heading(_) if parts.len() > 1 || sentences::asserts(shown()) => {}
        // A column's name is no sentence.
        Kind::TableHeader if blocks::states(shown()) => {
            return add(blocks::trimmed(text, block.range.clone()), Kind::TableRow);
        }
        kind => return add(blocks::trimmed(text, block.range.clone()), kind),
    }
    let count = parts.len();
    for (nth, range) in parts.into_iter().enumerate() {
        let is_last = nth + 1 == count;
        let kind = sentences::kind(text.get(range.clone()).unwrap_or_default(), is_last);
        add(range, kind);
    }
}
