//! A claim that can be put to the panel: a question with options, and where the statement makes the claim.

use std::ops::Range;

use serde_json::{Map, Value};

use super::document::{Account, AccountKind};
use crate::api::verify::{ClaimDetails, ClaimResult, ExtractedClaim, Options, Span};

/// The option that means: another answer is right.
pub(super) const NONE_OF_THESE: &str = "None of these";
/// The option that means: I do not know.
pub(super) const CANNOT_BE_DETERMINED: &str = "Cannot be determined";

/// The fewest options of a question: the claimed answer, a rival, and the two fixed ones.
const MIN_OPTIONS: usize = 4;
/// The most (see [`super::extraction`]).
const MAX_OPTIONS: usize = 8;

/// A claim that can be put to the panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Unique within the request.
    pub id: String,
    /// The claim itself.
    pub text: String,
    /// The question for the panel.
    pub question: String,
    /// The passage of the statement that makes the claim, in bytes.
    pub quote: Range<usize>,
    /// The same in code points.
    pub span: Span,
    /// Whether a model doubted that the claim says what its quote says, and another did not confirm that.
    pub contested: bool,
    /// The claimed answer, then its rivals, then the two fixed options.
    options: Vec<String>,
}

impl Claim {
    /// The position of the claimed answer among the options.
    pub(super) const CLAIMED: usize = 0;

    /// A claim by its number in the request, which nobody contests.
    pub(super) fn new(
        number: usize,
        text: String,
        question: String,
        claimed: String,
        rivals: Vec<String>,
        (quote, span): (Range<usize>, Span),
    ) -> Self {
        let mut options = vec![claimed];
        options.extend(rivals);
        options.extend([NONE_OF_THESE.to_owned(), CANNOT_BE_DETERMINED.to_owned()]);
        Self { id: format!("claim_{}", number + 1), text, question, quote, span, contested: false, options }
    }

    /// The claim that a result is about, without its place in the statement. `None` if its options are not such as are
    /// asked for: two or more, and then the two fixed ones, by keys in order, of which the claimed one is the first.
    pub(super) fn reported(result: &ClaimResult) -> Option<Self> {
        let keyed = result.original_options.iter().enumerate();
        let options: Vec<String> = keyed
            .map(|(at, (name, text))| text.as_str().filter(|_| *name == key(at)).map(str::to_owned))
            .collect::<Option<_>>()?;
        let has_fixed = options.ends_with(&[NONE_OF_THESE.to_owned(), CANNOT_BE_DETERMINED.to_owned()]);
        let is_asked = has_fixed && (MIN_OPTIONS..=MAX_OPTIONS).contains(&options.len());
        (is_asked && result.claimed_answer == key(Self::CLAIMED)).then(|| Self {
            id: result.id.clone(),
            text: result.claim.clone(),
            question: result.original_question.clone(),
            quote: 0..0,
            span: result.span,
            contested: result.contested,
            options,
        })
    }

    /// The same claim by another number: votes on it before do not count.
    pub(super) fn renumbered(self, number: usize) -> Self {
        Self { id: format!("claim_{}", number + 1), ..self }
    }

    /// The claim without the options at these positions, of which none is a fixed one or the claimed answer.
    pub(super) fn without_rivals(mut self, dropped: &[usize]) -> Self {
        let fixed = self.none_of_these();
        let mut at = 0;
        self.options.retain(|_| {
            let is_kept = at == Self::CLAIMED || at >= fixed || !dropped.contains(&at);
            at += 1;
            is_kept
        });
        self
    }

    /// The claimed answer.
    pub(super) fn claimed(&self) -> &str {
        &self.options[Self::CLAIMED]
    }

    /// What of the statement it accounts for.
    pub(super) fn account(&self) -> Account<'_> {
        let (says, asks) = (&*self.text, self.claimed());
        Account { quote: self.quote.clone(), says, asks, kind: AccountKind::Claim }
    }

    /// The answers other than the claimed one that were drafted.
    pub(super) fn rivals(&self) -> &[String] {
        &self.options[Self::CLAIMED + 1..self.options.len() - 2]
    }

    /// The position of "None of these": the last but one.
    pub(super) fn none_of_these(&self) -> usize {
        self.options.len() - 2
    }

    /// The options in their original order.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// The position of "Cannot be determined": the last.
    pub(super) fn undetermined(&self) -> usize {
        self.options.len() - 1
    }

    /// What is asked about it, with its quote of `fact`.
    pub(super) fn details(&self, fact: &str) -> ClaimDetails {
        ClaimDetails {
            id: self.id.clone(),
            quote: fact.get(self.quote.clone()).unwrap_or_default().to_owned(),
            span: self.span,
            question: self.question.clone(),
            options: self.keyed_options(),
        }
    }

    /// The claim as an extraction reports it.
    pub(super) fn extracted(&self, fact: &str) -> ExtractedClaim {
        ExtractedClaim {
            claim: self.text.clone(),
            details: self.details(fact),
            claimed_answer: key(Self::CLAIMED),
            contested: self.contested,
        }
    }

    /// The options by key.
    pub(super) fn keyed_options(&self) -> Options {
        let keyed = |(at, text): (usize, &String)| (key(at), Value::String(text.clone()));
        self.options.iter().enumerate().map(keyed).collect::<Map<_, _>>()
    }
}

/// The key of the option at a position: `A`, `B`, …; there are never more than eight (see [`super::extraction`]).
pub(super) fn key(position: usize) -> String {
    letter(position).to_string()
}

/// Like [`key`], as a character.
pub(super) fn letter(position: usize) -> char {
    ('A'..='Z').nth(position).unwrap_or('Z')
}
