//! A statement as it is read once for all its sections: sentences, places and the claims' numbers.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::civil;

use super::review::{MAX_CLAIM_CHARS, Part};
use crate::api::verify::{self, Skipped, Span};
use crate::inference::Chat;
use crate::verify::document::{Document, Finder, Format, Kind, Section, Sentence};
use crate::verify::prompts::{self, Fences, Passage};
use crate::verify::{Job, PanelSettings, text};

/// About how long a section is, in characters: its claims are some 3,000 tokens of an extractor's answer, half a minute
/// of many models' writing. Longer ones lose claims at their end.
const SECTION_CHARS: usize = 2_000;
/// How much of what comes before a section is shown with it, in characters, for its references.
const BEFORE_CHARS: usize = 600;

/// A statement, its sections, and what is found in it.
pub(in crate::verify) struct Statement<'a> {
    pub(super) job: &'a Job,
    pub(super) fences: &'a Fences,
    pub(super) document: Document<'a>,
    /// Made when it is needed first: models begin to read meanwhile.
    finder: OnceLock<Finder>,
    pub(super) sections: Vec<Section>,
    /// The day from which relative times are counted.
    pub(super) as_of: civil::Date,
    claims: AtomicUsize,
    /// Whether random choices about a claim depend on the claim alone, not on the request.
    repeatable: bool,
}

impl<'a> Statement<'a> {
    /// Reads a job's statement.
    pub(in crate::verify) fn read(job: &'a Job, fences: &'a Fences) -> Self {
        let document = document(job);
        Self {
            job,
            fences,
            finder: OnceLock::new(),
            sections: document.sections(SECTION_CHARS),
            document,
            as_of: job.as_of.utc_date().parse().unwrap_or_default(),
            claims: AtomicUsize::new(0),
            repeatable: false,
        }
    }

    /// The same statement; with `yes`, a claim that is found again is put to the panel with the same options, so that
    /// its votes may be known.
    #[must_use]
    pub(in crate::verify) fn repeatable(self, yes: bool) -> Self {
        Self { repeatable: yes, ..self }
    }

    /// Where things stand in the statement.
    pub(super) fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| Finder::new(&self.document))
    }

    /// What random choices about a claim are derived from, so that they can be repeated.
    pub(super) fn seed(&self, number: usize, [claim, question, claimed]: [&str; 3]) -> String {
        if self.repeatable {
            return format!("{claim}\n{question}\n{claimed}");
        }
        format!("{}\n{number}", self.job.id)
    }

    /// The prompt for the first section of a job's statement, to estimate its cost.
    pub(in crate::verify) fn first_prompt(job: &Job) -> Chat {
        let first = document(job).sections(SECTION_CHARS).into_iter().next();
        let section = first.and_then(|section| job.fact.get(section.range)).unwrap_or(&job.fact);
        prompts::extraction_for_estimate(job, Passage { before: "", section })
    }

    /// The most claims that the statement may have.
    pub(in crate::verify) fn max_claims(&self, settings: &PanelSettings) -> usize {
        settings.max_claims(self.span(&(0..self.job.fact.len())).end)
    }

    /// How many sections the statement has.
    pub(in crate::verify) fn section_count(&self) -> usize {
        self.sections.len()
    }

    /// The number of the next claim of the request.
    pub(super) fn next_number(&self) -> usize {
        self.claims.fetch_add(1, Ordering::Relaxed)
    }

    /// The text at a place.
    pub(in crate::verify) fn text(&self, range: &Range<usize>) -> &'a str {
        self.job.fact.get(range.clone()).unwrap_or_default()
    }

    /// Whether a place lies in Markdown's code, front matter or headings alone, which are not statements.
    pub(super) fn states_nothing(&self, place: &Range<usize>) -> bool {
        let sentences = &self.document.sentences()[self.document.sentences_of(place)];
        let is_no_statement = |sentence: &Sentence| matches!(sentence.kind, Kind::Code | Kind::Heading(_));
        !sentences.is_empty() && sentences.iter().all(is_no_statement)
    }

    /// A place in code points.
    pub(in crate::verify) fn span(&self, range: &Range<usize>) -> Span {
        let found = self.document.char_span(range);
        Span { start: found.start, end: found.end }
    }

    /// The passages at these places, in bytes; `None` if one of them is no passage of the statement.
    pub(in crate::verify) fn passages(&self, spans: &[Span]) -> Option<Vec<Range<usize>>> {
        let mut places: Vec<usize> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
        places.sort_unstable();
        places.dedup();
        let fact = &self.job.fact;
        let chars = fact.char_indices().map(|(at, _)| at).chain([fact.len()]).enumerate();
        let mut next = places.iter().peekable();
        let bytes: Vec<usize> =
            chars.filter_map(|(place, at)| next.next_if(|next| **next == place).map(|_| at)).collect();
        let byte = |place: usize| bytes.get(places.binary_search(&place).ok()?).copied();
        let passage = |span: &Span| {
            let range = byte(span.start)?..byte(span.end)?;
            (!range.is_empty()).then_some(range)
        };
        spans.iter().map(passage).collect()
    }

    /// A skipped part as it is reported.
    pub(super) fn reported(&self, part: Part) -> Option<Skipped> {
        let text = part.range.as_ref().map_or(part.shown, |range| text::one_line(self.text(range)));
        let span = part.range.as_ref().map(|range| self.span(range));
        let text = text::shortened(&text, MAX_CLAIM_CHARS);
        (!text.is_empty()).then_some(Skipped { text, reason: part.reason, span })
    }

    /// A section as models see it: with the headings above it and the end of what comes before.
    pub(super) fn passage(&self, section: &Section) -> (String, &'a str) {
        let mut before = String::new();
        for heading in &section.headings {
            before.push_str(self.text(&self.document.sentences()[*heading].range).trim());
            before.push('\n');
        }
        let preceding = self.job.fact.get(..section.range.start).unwrap_or_default();
        let begin = preceding.char_indices().rev().nth(BEFORE_CHARS - 1).map_or(0, |(at, _)| at);
        before.push_str(preceding.get(begin..).unwrap_or_default().trim());
        (before, self.text(&section.range))
    }
}

fn document(job: &Job) -> Document<'_> {
    let format = match job.format {
        verify::Format::Text => Format::Text,
        verify::Format::Markdown => Format::Markdown,
    };
    Document::new(&job.fact, format)
}

/// The prompt's passage for what [`Statement::passage`] gives.
pub(super) fn passage<'p>(parts: &'p (String, &'p str)) -> Passage<'p> {
    Passage { before: &parts.0, section: parts.1 }
}
