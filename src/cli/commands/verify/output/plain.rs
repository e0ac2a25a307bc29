//! One tab-separated line per claim, for pipes: number, verdict, votes, text.
//!
//! `NO_CONSENSUS` has an underscore here, so that `awk` and `cut` see one word. Parts that were not verified are lines
//! too, with `-` for the number. With several statements, the first column names the source.

use super::votes;
use crate::api::verify::{Assessment, ClaimResult, Skipped};
use crate::cli::terminal::sanitize;

/// `1<TAB>TRUE<TAB>TTT<TAB>text`
pub(crate) fn claim(source: Option<&str>, index: usize, claim: &ClaimResult) -> String {
    let verdict = match claim.assessment {
        Assessment::NoConsensus => "NO_CONSENSUS",
        decided => decided.as_str(),
    };
    line(source, &(index + 1).to_string(), verdict, &votes::letters(claim, ""), &claim.claim)
}

/// `-<TAB>SKIPPED<TAB>opinion<TAB>text`; `UNCHECKED` where the part may hold claims that nobody checked.
pub(crate) fn skipped(source: Option<&str>, part: &Skipped) -> String {
    let word = if part.reason.is_unchecked() { "UNCHECKED" } else { "SKIPPED" };
    line(source, "-", word, part.reason.as_str(), &part.text)
}

/// `7<TAB>-<TAB>ERROR<TAB>busy<TAB>message`: one of several statements that could not be verified.
pub(crate) fn failed(source: Option<&str>, kind: &str, message: &str) -> String {
    line(source, "-", "ERROR", kind, message)
}

/// `7<TAB>-<TAB>NOTHING<TAB>-<TAB>`: one of several statements with nothing to verify.
pub(crate) fn nothing(source: Option<&str>) -> String {
    line(source, "-", "NOTHING", "-", "")
}

/// A line of fields, of which the last is text from elsewhere.
pub(crate) fn line(source: Option<&str>, number: &str, verdict: &str, votes: &str, text: &str) -> String {
    let fields = format!("{number}\t{verdict}\t{votes}\t{}", sanitize::line(text));
    match source {
        Some(source) => format!("{}\t{fields}", sanitize::line(source)),
        None => fields,
    }
}

#[cfg(test)]
mod tests {
    use super::super::votes::tests::claim as sample;
    use super::*;
    use crate::api::verify::SkipReason;

    #[test]
    fn fields_are_separated_by_tabs() {
        let found = sample("TRUE", "A", &[("p/a", "A"), ("p/b", "A"), ("p/c", "E")]);
        assert_eq!(claim(None, 0, &found), "1\tTRUE\tTTU\tIt was completed in 1925.");
        assert_eq!(claim(Some("3"), 1, &found), "3\t2\tTRUE\tTTU\tIt was completed in 1925.");
    }

    #[test]
    fn no_consensus_is_one_word() {
        let open = sample("NO CONSENSUS", "", &[("p/a", "A"), ("p/b", "B"), ("p/c", "!timeout")]);
        assert_eq!(claim(None, 2, &open), "3\tNO_CONSENSUS\tTF-\tIt was completed in 1925.");
    }

    #[test]
    fn foreign_text_can_neither_add_fields_nor_lines() {
        let mut hostile = sample("TRUE", "A", &[("p/a", "A")]);
        hostile.claim = "a\tb\nc\u{1b}[0m".to_owned();
        assert_eq!(claim(None, 0, &hostile), "1\tTRUE\tT\ta b c\u{fffd}[0m");
    }

    #[test]
    fn every_statement_produces_a_line() {
        let part = |reason| Skipped { text: "So nice!".to_owned(), reason, span: None };
        assert_eq!(skipped(None, &part(SkipReason::Opinion)), "-\tSKIPPED\topinion\tSo nice!");
        for reason in [SkipReason::OverLimit, SkipReason::NotExtracted, SkipReason::Unfaithful] {
            let line = format!("-\tUNCHECKED\t{}\tSo nice!", reason.as_str());
            assert_eq!(skipped(None, &part(reason)), line);
        }
        assert_eq!(failed(Some("2"), "busy", "later"), "2\t-\tERROR\tbusy\tlater");
        assert_eq!(nothing(Some("2")), "2\t-\tNOTHING\t-\t");
    }
}
