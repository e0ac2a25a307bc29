//! The exit code for a result.
//!
//! By default, every claim that is not TRUE affects the code. `--fail-on` restricts that to the given verdicts;
//! failures of the command itself always count.

use crate::api::verify::{Assessment, VerifyResponse};
use crate::cli::exit::{CLAIM_FALSE, NO_CONSENSUS, NOTHING_TO_VERIFY};
use crate::config::FailOn;

/// The default of `--fail-on`.
pub(crate) const DEFAULT: [FailOn; 3] = [FailOn::False, FailOn::NoConsensus, FailOn::Nothing];

/// The exit code of a completed verification.
pub(crate) fn exit_code(result: &VerifyResponse, triggers: &[FailOn]) -> u8 {
    let fails_on = |trigger| triggers.contains(&trigger) && !triggers.contains(&FailOn::Never);
    let has = |assessment| result.results.iter().any(|claim| claim.assessment == assessment);
    if has(Assessment::False) && fails_on(FailOn::False) {
        return CLAIM_FALSE;
    }
    if has(Assessment::NoConsensus) && fails_on(FailOn::NoConsensus) {
        return NO_CONSENSUS;
    }
    let has_nothing = result.results.is_empty() && fails_on(FailOn::Nothing);
    let has_skipped = !result.skipped.is_empty() && fails_on(FailOn::Skipped);
    if has_nothing || has_skipped { NOTHING_TO_VERIFY } else { 0 }
}

/// The worse of two exit codes: failures of the command, then FALSE, NO CONSENSUS, and nothing to verify.
pub(crate) fn worse(one: u8, other: u8) -> u8 {
    if severity(other) > severity(one) { other } else { one }
}

const fn severity(code: u8) -> u8 {
    match code {
        0 => 0,
        NOTHING_TO_VERIFY => 1,
        NO_CONSENSUS => 2,
        CLAIM_FALSE => 3,
        // Refused for now, incomplete, unreachable, server: the less a retry would help, the worse.
        7 => 4,
        8 => 5,
        6 => 6,
        5 => 7,
        4 => 8,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::votes::tests::claim;
    use super::*;

    fn result(assessments: &[&str], skipped: bool) -> VerifyResponse {
        let claims: Vec<_> = assessments.iter().map(|assessment| claim(assessment, "A", &[])).collect();
        let skipped = if skipped { json!([{ "text": "x", "reason": "opinion" }]) } else { json!([]) };
        serde_json::from_value(json!({
            "requestId": "ver_1", "original_fact": "x", "results": claims, "timestamp": "t",
            "tokenUsage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 },
            "minRequired": 2, "skipped": skipped,
        }))
        .unwrap()
    }

    #[test]
    fn by_default_every_verdict_but_true_counts() {
        let code = |assessments, skipped| exit_code(&result(assessments, skipped), &DEFAULT);
        assert_eq!(code(&["TRUE", "TRUE"], true), 0);
        assert_eq!(code(&["TRUE", "NO CONSENSUS", "FALSE"], false), 10);
        assert_eq!(code(&["TRUE", "NO CONSENSUS"], false), 11);
        assert_eq!(code(&[], true), 12);
    }

    #[test]
    fn fail_on_narrows_it() {
        let code =
            |assessments, skipped, triggers: &[FailOn]| exit_code(&result(assessments, skipped), triggers);
        assert_eq!(code(&["NO CONSENSUS"], false, &[FailOn::False]), 0);
        assert_eq!(code(&["NO CONSENSUS", "FALSE"], false, &[FailOn::NoConsensus]), 11);
        assert_eq!(code(&[], false, &[FailOn::False]), 0);
        assert_eq!(code(&["TRUE"], true, &[FailOn::Skipped]), 12);
        assert_eq!(code(&["FALSE"], true, &[FailOn::Never]), 0);
    }

    #[test]
    fn the_worst_code_wins() {
        for (one, other, worst) in [(0, 12, 12), (12, 11, 11), (10, 11, 10), (10, 7, 7), (5, 6, 5), (1, 4, 1)]
        {
            assert_eq!(worse(one, other), worst);
            assert_eq!(worse(other, one), worst);
        }
    }
}
