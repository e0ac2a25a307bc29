//! How much of a statement was checked, in sentences, for summaries. Counted here, from what the server lists as
//! unchecked; the bounds of sentences are those of Unicode (UAX 29).

use unicode_segmentation::UnicodeSegmentation;

use crate::api::verify::{Skipped, VerifyResponse};

/// The sentences of a statement of which a part was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Those before the first part that was not checked.
    pub(crate) checked: usize,
    /// All of them.
    pub(crate) sentences: usize,
}

/// The parts of a statement that were not checked.
fn unchecked(result: &VerifyResponse) -> impl Iterator<Item = &Skipped> {
    result.skipped.iter().filter(|part| part.reason.is_unchecked())
}

impl Coverage {
    /// Counts; `None` where the whole statement was checked.
    pub(crate) fn of(result: &VerifyResponse) -> Option<Self> {
        let parts = unchecked(result).count();
        if parts == 0 {
            return None;
        }
        let text = &result.original_fact;
        let ends: Vec<usize> = text
            .split_sentence_bound_indices()
            .filter(|(_, sentence)| sentence.contains(char::is_alphanumeric))
            .map(|(start, sentence)| start + sentence.len())
            .collect();
        let first = unchecked(result).filter_map(|part| text.find(part.text.trim())).min();
        let checked = match first {
            Some(first) => ends.iter().filter(|end| **end <= first).count(),
            // The part is described in words that do not stand in the text: each claim and each other part counts as
            // a sentence.
            None => result.results.len() + result.skipped.len() - parts,
        };
        Some(Self { checked: checked.min(ends.len().saturating_sub(1)), sentences: ends.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::result;
    use super::*;

    fn coverage(text: &str, claims: &[&str], unchecked: &[&str]) -> Option<Coverage> {
        let mut result = result(claims, &vec!["over_limit"; unchecked.len()]);
        text.clone_into(&mut result.original_fact);
        for (part, text) in result.skipped.iter_mut().zip(unchecked) {
            (*text).clone_into(&mut part.text);
        }
        Coverage::of(&result)
    }

    #[test]
    fn what_is_over_the_limit_is_counted_from_its_first_sentence() {
        let text = "One is one. Two is two. Three is three.\n\nFour is four.";
        let count = |unchecked: &[&str]| {
            coverage(text, &["TRUE"], unchecked).map(|found| (found.checked, found.sentences))
        };
        assert_eq!(count(&[]), None);
        assert_eq!(count(&["Three is three."]), Some((2, 4)));
        assert_eq!(count(&["Four is four.", "Three is three."]), Some((2, 4)));
        assert_eq!(count(&["is two"]), Some((1, 4)), "a sentence of which a part was not checked");
        assert_eq!(count(&["(the rest of the statement)"]), Some((1, 4)));
    }

    #[test]
    fn not_everything_was_checked_even_where_claims_are_more_than_sentences() {
        let found = coverage("One, two and three are numbers.", &["TRUE", "TRUE"], &["the rest"]);
        assert_eq!(found, Some(Coverage { checked: 0, sentences: 1 }));
        assert_eq!(coverage("…", &[], &["the rest"]), Some(Coverage { checked: 0, sentences: 0 }));
    }
}
