//! Entries as they are kept. What is read is held against the statement and the claim at hand; what is wrong anywhere is
//! no entry.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::CacheKey;
use crate::api::verify::{ClaimResult, Coverage, Skipped, Span, VerifyResponse};
use crate::cache_entry::{sealed, unsealed};
use crate::verify::claim::{CANNOT_BE_DETERMINED, Claim, NONE_OF_THESE, letter};
use crate::verify::extraction::{Found, Statement};
use crate::verify::voting::ballot::PanelAnswer;
use crate::verify::{PanelSettings, values};

/// The most options of a claim: `A` to `H`.
const MAX_OPTIONS: usize = 8;

/// What a text says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    claims: Vec<StoredClaim>,
    skipped: Vec<Skipped>,
    coverage: Coverage,
    audited: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredClaim {
    claim: String,
    question: String,
    options: Vec<String>,
    span: Span,
    contested: bool,
}

/// How a panel voted, in its order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Votes {
    options: Vec<String>,
    votes: Vec<Vote>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vote {
    /// The position of the chosen option.
    option: usize,
    found: Option<String>,
    reason: Option<String>,
}

/// The entry for what a response's text says; `None` if it cannot be kept.
pub(super) fn text(key: &CacheKey, response: &VerifyResponse) -> Option<Vec<u8>> {
    let claims = response.results.iter().map(|result| {
        Some(StoredClaim {
            claim: result.claim.clone(),
            question: result.original_question.clone(),
            options: options(result)?,
            span: result.span,
            contested: result.contested,
        })
    });
    let text = Text {
        claims: claims.collect::<Option<_>>()?,
        skipped: response.skipped.clone(),
        coverage: response.coverage,
        audited: response.audited,
    };
    sealed(key, &text)
}

/// What an entry says that a statement says.
pub(super) fn read_text(
    key: &CacheKey,
    content: &[u8],
    statement: &Statement<'_>,
    settings: &PanelSettings,
) -> Option<Found> {
    let text: Text = unsealed(key, content)?;
    let Coverage { sentences, checked, skipped, unchecked } = text.coverage;
    let is_whole = unchecked == 0
        && sentences == checked.checked_add(skipped)?
        && !text.skipped.iter().any(|part| part.reason.is_unchecked())
        && (text.audited || settings.auditor.is_none())
        && text.claims.len() <= statement.max_claims(settings);
    if !is_whole {
        return None;
    }
    let spans: Vec<Span> = text.claims.iter().map(|claim| claim.span).collect();
    let quotes = statement.passages(&spans)?;
    let aside: Vec<Span> = text.skipped.iter().filter_map(|part| part.span).collect();
    statement.passages(&aside)?;
    let claims = text.claims.into_iter().zip(quotes).enumerate();
    Some(Found {
        claims: claims.map(|(number, (claim, quote))| claim.read(number, quote)).collect::<Option<_>>()?,
        skipped: text.skipped,
        audited: text.audited,
        coverage: text.coverage,
        cached: true,
    })
}

impl StoredClaim {
    fn read(self, number: usize, quote: Range<usize>) -> Option<Claim> {
        let Self { claim, question, mut options, span, contested } = self;
        if !(4..=MAX_OPTIONS).contains(&options.len()) || claim.is_empty() || question.is_empty() {
            return None;
        }
        let fixed = options.split_off(options.len() - 2);
        if fixed != [NONE_OF_THESE, CANNOT_BE_DETERMINED] {
            return None;
        }
        let rivals = options.split_off(1);
        let claimed = options.pop()?;
        let mut read = Claim::new(number, claim, question, claimed, rivals, (quote, span));
        read.contested = contested;
        Some(read)
    }
}

/// The entry for a claim's votes; `None` if they are not those of a whole panel.
pub(super) fn votes(key: &CacheKey, result: &ClaimResult, panel_size: usize) -> Option<Vec<u8>> {
    if !result.model_errors.is_empty() || result.model_answers.len() != panel_size {
        return None;
    }
    let options = options(result)?;
    let votes = result.model_answers.iter().map(|answer| {
        let mut letters = answer.answer.chars();
        let (chosen, None) = (letters.next()?, letters.next()) else { return None };
        let option = (0..options.len()).find(|option| letter(*option) == chosen)?;
        Some(Vote { option, found: answer.found.clone(), reason: answer.reason.clone() })
    });
    let votes = votes.collect::<Option<_>>()?;
    sealed(key, &Votes { options, votes })
}

/// The votes of an entry on a claim as it is asked about now: its options may be in another order, and written
/// otherwise, but have to mean the same, one by one.
pub(super) fn read_votes(
    key: &CacheKey,
    content: &[u8],
    claim: &Claim,
    panel_size: usize,
) -> Option<Vec<PanelAnswer>> {
    let Votes { options, votes } = unsealed(key, content)?;
    if votes.len() != panel_size || options.len() != claim.options().len() {
        return None;
    }
    let mut taken = vec![false; options.len()];
    let mut now = Vec::new();
    for (at, option) in options.iter().enumerate() {
        let is_same = |other: usize| {
            let text = &claim.options()[other];
            text == option || (other < claim.none_of_these() && values::same(text, option))
        };
        let same = (0..options.len()).find(|other| !taken[*other] && is_same(*other))?;
        // The claimed answer and the two fixed ones have their places.
        if same != at && (at == Claim::CLAIMED || at >= claim.none_of_these()) {
            return None;
        }
        taken[same] = true;
        now.push(same);
    }
    let read = |vote: Vote| {
        Some(PanelAnswer { option: *now.get(vote.option)?, found: vote.found, reason: vote.reason })
    };
    votes.into_iter().map(read).collect()
}

fn options(result: &ClaimResult) -> Option<Vec<String>> {
    result.original_options.values().map(|option| option.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verify::Job;
    use crate::verify::prompts::Fences;

    const KEY: CacheKey = [7; 32];

    fn claim(rivals: &[&str]) -> Claim {
        let rivals = rivals.iter().map(|&rival| rival.to_owned()).collect();
        let text = |text: &str| text.to_owned();
        Claim::new(0, text("c"), text("q"), text("16"), rivals, (0..0, Span::default()))
    }

    fn kept(options: &[&str], votes: &[usize]) -> Vec<u8> {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let vote = |&option: &usize| Vote { option, found: None, reason: None };
        sealed(&KEY, &Votes { options, votes: votes.iter().map(vote).collect() }).unwrap()
    }

    fn read(content: &[u8], claim: &Claim) -> Option<Vec<usize>> {
        let read = read_votes(&KEY, content, claim, 3)?;
        Some(read.into_iter().map(|vote| vote.option).collect())
    }

    #[test]
    fn votes_follow_their_options_and_fit_no_others() {
        let (none, unsure) = (NONE_OF_THESE, CANNOT_BE_DETERMINED);
        let content = kept(&["16", "17", "18", none, unsure], &[1, 2, 3]);
        assert_eq!(read(&content, &claim(&["17", "18"])), Some(vec![1, 2, 3]));
        assert_eq!(read(&content, &claim(&["eighteen", "17"])), Some(vec![2, 1, 3]));
        for other in [&["17"][..], &["17", "19"], &["17", "18", "19"], &["17", "17"]] {
            assert_eq!(read(&content, &claim(other)), None, "{other:?}");
        }
        // What is claimed is another option now.
        assert_eq!(read(&kept(&["17", "16", "18", none, unsure], &[1, 2, 3]), &claim(&["17", "18"])), None);
        assert_eq!(read(&kept(&["16", "17", "18", unsure, none], &[1, 2, 3]), &claim(&["17", "18"])), None);
        assert_eq!(read(&kept(&["16", "17", "18", none, unsure], &[1, 2, 5]), &claim(&["17", "18"])), None);
        assert_eq!(read(&kept(&["16", "17", "18", none, unsure], &[1, 2]), &claim(&["17", "18"])), None);
        assert_eq!(read_votes(&[8; 32], &content, &claim(&["17", "18"]), 3), None, "another key's");
    }

    proptest! {
        /// Whatever is in the store, an entry that is read fits the statement.
        #[test]
        fn foreign_texts_never_panic_and_stand_in_the_statement(
            fact in "[aé. ]{1,30}",
            spans in prop::collection::vec((0_usize..40, 0_usize..40), 0..4),
            options in 0_usize..10,
            aside in prop::option::of((0_usize..40, 0_usize..40)),
            junk in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let job = Job { fact, ..Job::blank() };
            let fences = Fences::new(&[]).unwrap();
            let statement = Statement::read(&job, &fences);
            let settings = PanelSettings::default();
            let span = |(start, end): (usize, usize)| Span { start, end };
            let mut list: Vec<String> = (0..options).map(|at| at.to_string()).collect();
            list.extend([NONE_OF_THESE.to_owned(), CANNOT_BE_DETERMINED.to_owned()]);
            let claims = spans.iter().map(|found| StoredClaim {
                claim: "c".to_owned(),
                question: "q".to_owned(),
                options: list.clone(),
                span: span(*found),
                contested: true,
            });
            let skipped = aside.map(|found| Skipped {
                text: "s".to_owned(),
                reason: crate::api::verify::SkipReason::Opinion,
                span: Some(span(found)),
            });
            let text = Text {
                claims: claims.collect(),
                skipped: skipped.into_iter().collect(),
                coverage: Coverage::default(),
                audited: false,
            };
            let content = sealed(&KEY, &text).unwrap();
            let length = job.fact.chars().count();
            let fits = |(start, end): (usize, usize)| start < end && end <= length;
            let is_right = spans.iter().chain(&aside).all(|found| fits(*found))
                && (spans.is_empty() || (2..=6).contains(&options));
            let found = read_text(&KEY, &content, &statement, &settings);
            prop_assert_eq!(found.is_some(), is_right);
            for (claim, (start, end)) in found.iter().flat_map(|found| &found.claims).zip(&spans) {
                let quoted: String = job.fact.chars().skip(*start).take(end - start).collect();
                prop_assert_eq!(&job.fact[claim.quote.clone()], quoted);
            }
            prop_assert!(read_text(&KEY, &junk, &statement, &settings).is_none());
            prop_assert!(read_votes(&KEY, &junk, &claim(&["17"]), 3).is_none());
        }
    }
}
