//! What a gate makes of a result: what in it fails the gate, and the exit code that follows.
//!
//! By default, every claim that is not TRUE fails it, and so does a part that nobody checked. `--fail-on` restricts
//! that; failures of the command itself always count.

use crate::api::verify::{
    Assessment, ClaimResult, Coverage, ExtractResponse, SkipReason, Skipped, VerifyResponse,
};
use crate::cli::process::exit::{CLAIM_FALSE, NO_CONSENSUS, NOTHING_TO_VERIFY, UNCHECKED};
use crate::config::FailOn;

/// Something in a result that fails the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault<'a> {
    /// A claim that is FALSE.
    False(&'a ClaimResult),
    /// A claim without a consensus.
    NoConsensus(&'a ClaimResult),
    /// A part that was not verified.
    Part(&'a Skipped),
    /// The server says that something was not checked, and names no part.
    Unread,
    /// The server says nothing about how much was checked.
    Untold,
    /// There is no claim at all.
    Nothing,
}

impl Fault<'_> {
    /// What is said of it, where no claim and no part says it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Unread => "the server did not check all of the text, but does not say which part",
            Self::Untold => {
                "the server does not say how much of the text it checked; its version may be too old"
            }
            Self::Nothing => "nothing to verify",
            Self::False(_) | Self::NoConsensus(_) | Self::Part(_) => "",
        }
    }

    /// The exit code that it causes.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::False(_) => CLAIM_FALSE,
            Self::NoConsensus(_) => NO_CONSENSUS,
            Self::Part(_) | Self::Unread | Self::Untold => UNCHECKED,
            Self::Nothing => NOTHING_TO_VERIFY,
        }
    }
}

/// What in a completed verification fails the gate: claims in their order, then parts.
pub(crate) fn faults<'a>(result: &'a VerifyResponse, fail_on: &[FailOn]) -> Vec<Fault<'a>> {
    let counts = |trigger| fail_on.contains(&trigger);
    if counts(FailOn::Never) {
        return Vec::new();
    }
    let of_claim = |claim: &'a ClaimResult| match claim.assessment {
        Assessment::False if counts(FailOn::False) => Some(Fault::False(claim)),
        Assessment::NoConsensus if counts(FailOn::NoConsensus) => Some(Fault::NoConsensus(claim)),
        _ => None,
    };
    let claims = result.results.iter().filter_map(of_claim);
    let parts = of_parts(&result.skipped, result.complete, result.coverage, fail_on);
    or_nothing(claims.chain(parts).collect(), result.results.len())
}

/// What in an extraction fails the gate: no claim was judged, but a part may be in none.
pub(crate) fn faults_of_extraction(found: &ExtractResponse) -> Vec<Fault<'_>> {
    let parts = of_parts(&found.skipped, found.complete, found.coverage, &FailOn::DEFAULT);
    or_nothing(parts.collect(), found.claims.len())
}

fn of_parts<'a>(
    skipped: &'a [Skipped],
    is_complete: bool,
    coverage: Coverage,
    fail_on: &[FailOn],
) -> impl Iterator<Item = Fault<'a>> {
    let (any, unchecked) = (fail_on.contains(&FailOn::Skipped), fail_on.contains(&FailOn::Unchecked));
    let unread = unnamed(skipped, is_complete, coverage).filter(|_| any || unchecked);
    let fails = move |reason: SkipReason| any || reason.is_unchecked() && unchecked;
    skipped.iter().filter(move |part| fails(part.reason)).map(Fault::Part).chain(unread)
}

/// That something was not checked, where no part is named.
pub(crate) fn unnamed<'a>(skipped: &[Skipped], is_complete: bool, coverage: Coverage) -> Option<Fault<'a>> {
    let is_unread = !is_complete || coverage.unchecked > 0;
    let is_named = skipped.iter().any(|part| part.reason.is_unchecked());
    // Servers that count sentences have some, or nothing to say.
    let is_told = coverage != Coverage::default() || !skipped.is_empty();
    (is_unread && !is_named).then_some(if is_told { Fault::Unread } else { Fault::Untold })
}

/// The faults, or that there was no claim to have any.
fn or_nothing(mut faults: Vec<Fault<'_>>, claims: usize) -> Vec<Fault<'_>> {
    if claims == 0 && faults.is_empty() {
        faults.push(Fault::Nothing);
    }
    faults
}

/// The exit code for what fails the gate.
pub(crate) fn exit_code(faults: &[Fault<'_>]) -> u8 {
    faults.iter().map(|fault| fault.code()).fold(0, worse)
}

/// The worse of two exit codes: failures of the command, then FALSE, NO CONSENSUS, parts that were not checked, and
/// nothing to verify.
pub(crate) fn worse(one: u8, other: u8) -> u8 {
    if severity(other) > severity(one) { other } else { one }
}

const fn severity(code: u8) -> u8 {
    match code {
        0 => 0,
        NOTHING_TO_VERIFY => 1,
        UNCHECKED => 2,
        NO_CONSENSUS => 3,
        CLAIM_FALSE => 4,
        // Refused for now, incomplete, unreachable, server: the less a retry would help, the worse.
        7 => 5,
        8 => 6,
        6 => 7,
        5 => 8,
        4 => 9,
        _ => 10,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::commands::verify::output::votes::tests::claim;

    /// A result with claims of these assessments and a skipped part for each of these reasons.
    pub(in crate::cli::commands::verify) fn result(assessments: &[&str], skipped: &[&str]) -> VerifyResponse {
        let claims: Vec<_> = assessments.iter().map(|assessment| claim(assessment, "A", &[])).collect();
        let skipped: Vec<_> = skipped.iter().map(|reason| json!({ "text": "x", "reason": reason })).collect();
        serde_json::from_value(json!({
            "requestId": "ver_1", "original_fact": "x", "results": claims, "timestamp": "t",
            "tokenUsage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 },
            "minRequired": 2, "audited": true, "complete": true, "skipped": skipped,
        }))
        .unwrap()
    }

    #[test]
    fn by_default_every_verdict_but_true_counts_and_so_does_what_was_not_checked() {
        let code = |assessments: &[&str], skipped: &[&str]| {
            exit_code(&faults(&result(assessments, skipped), &FailOn::DEFAULT))
        };
        assert_eq!(code(&["TRUE", "TRUE"], &["opinion", "duplicate"]), 0);
        assert_eq!(code(&["TRUE", "NO CONSENSUS", "FALSE"], &["over_limit"]), 10);
        assert_eq!(code(&["TRUE", "NO CONSENSUS"], &["over_limit"]), 11);
        assert_eq!(code(&["TRUE"], &["opinion", "over_limit"]), 13);
        assert_eq!(code(&[], &["over_limit"]), 13);
        assert_eq!(code(&[], &["opinion"]), 12);
    }

    #[test]
    fn what_the_server_says_was_not_checked_counts_even_if_it_names_no_part() {
        let mut incomplete = result(&["TRUE"], &["opinion"]);
        incomplete.complete = false;
        assert_eq!(exit_code(&faults(&incomplete, &FailOn::DEFAULT)), 13);
        assert_eq!(exit_code(&faults(&incomplete, &[FailOn::False])), 0);
        let mut uncovered = result(&["TRUE"], &[]);
        uncovered.coverage.unchecked = 9;
        assert_eq!(exit_code(&faults(&uncovered, &FailOn::DEFAULT)), 13);
    }

    #[test]
    fn no_figure_of_a_server_is_too_large_to_sum() {
        let mut huge = result(&["TRUE"], &[]);
        huge.coverage.unchecked = usize::MAX;
        let mut totals = crate::cli::commands::verify::output::summary::Totals::of(&huge);
        totals.add(&huge);
        assert_eq!(totals.statements(), 2);
    }

    #[test]
    fn fail_on_narrows_it() {
        let code = |assessments: &[&str], skipped: &[&str], fail_on: &[FailOn]| {
            exit_code(&faults(&result(assessments, skipped), fail_on))
        };
        assert_eq!(code(&["NO CONSENSUS"], &["over_limit"], &[FailOn::False]), 0);
        assert_eq!(code(&["NO CONSENSUS", "FALSE"], &[], &[FailOn::NoConsensus]), 11);
        assert_eq!(code(&["TRUE"], &["opinion"], &[FailOn::Unchecked]), 0);
        for part in ["opinion", "over_limit"] {
            assert_eq!(code(&["TRUE", "FALSE"], &[part], &[FailOn::Skipped]), 13);
        }
    }

    #[test]
    fn nothing_to_verify_fails_whatever_is_chosen_but_never() {
        let code = |skipped: &[&str], fail_on| exit_code(&faults(&result(&[], skipped), &[fail_on]));
        for fail_on in [FailOn::False, FailOn::NoConsensus, FailOn::Unchecked, FailOn::Skipped] {
            assert_eq!(code(&[], fail_on), 12);
        }
        assert_eq!(code(&["over_limit"], FailOn::False), 12);
        assert_eq!(code(&["over_limit"], FailOn::Never), 0);
        assert_eq!(exit_code(&faults(&result(&["FALSE"], &["over_limit"]), &[FailOn::Never])), 0);
    }

    #[test]
    fn the_worst_code_wins() {
        let worse_and_worse = [0, 12, 13, 11, 10, 7, 8, 6, 5, 4, 1];
        for pair in worse_and_worse.windows(2) {
            assert_eq!(worse(pair[0], pair[1]), pair[1]);
            assert_eq!(worse(pair[1], pair[0]), pair[1]);
        }
    }
}
