//! Whether a result agrees with what was asked, and with itself.
//!
//! A gate passes a text because a server says TRUE, so that word is not taken where the votes that come with it can be
//! counted. What does not fit is the answer of a broken server, and no verdict.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api::verify::{Assessment, ClaimResult, Event, VerifyRequest, VerifyResponse};

/// How many models agree where nobody said how many must.
const USUAL_MIN_REQUIRED: u32 = 2;

/// What was asked, and what the server said so far.
pub(super) struct Account {
    fact: String,
    min_required: u32,
    /// The verdicts that came early, by the position of their claim.
    early: HashMap<usize, Assessment>,
}

impl Account {
    /// Of a request that is sent now.
    pub(super) fn new(request: &VerifyRequest) -> Self {
        Self {
            fact: request.fact.clone(),
            min_required: request.min_required.unwrap_or(USUAL_MIN_REQUIRED),
            early: HashMap::new(),
        }
    }

    /// What is wrong with an event, if anything is.
    pub(super) fn flaw(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ClaimVerified(verified) => {
                self.early.insert(verified.claim_index, verified.assessment);
                let result = verified.result.as_deref()?;
                if result.assessment != verified.assessment {
                    return Some(changed(verified.claim_index));
                }
                flaw_of_claim(verified.claim_index, result, self.min_required)
            }
            Event::Completed(result) => self.flaw_of_result(result),
            Event::Extracted(result) => self.is_other_text(&result.original_fact),
            _ => None,
        }
    }

    fn flaw_of_result(&self, result: &VerifyResponse) -> Option<String> {
        let min_required = self.min_required.max(result.min_required);
        let mut claims = result.results.iter().enumerate();
        self.is_other_text(&result.original_fact).or_else(|| {
            claims.find_map(|(at, claim)| {
                let early = self.early.get(&at);
                match early.filter(|early| **early != claim.assessment) {
                    Some(_) => Some(changed(at)),
                    None => flaw_of_claim(at, claim, min_required),
                }
            })
        })
    }

    fn is_other_text(&self, fact: &str) -> Option<String> {
        (fact != self.fact).then(|| "its result is for another text".to_owned())
    }
}

fn changed(at: usize) -> String {
    format!("it gives claim {} two verdicts", at.saturating_add(1))
}

/// TRUE and FALSE must be what enough models chose, more than chose anything else.
fn flaw_of_claim(at: usize, claim: &ClaimResult, min_required: u32) -> Option<String> {
    let fits = match claim.assessment {
        Assessment::NoConsensus => return None,
        Assessment::True => claim.consensus_answer == claim.claimed_answer,
        Assessment::False => claim.consensus_answer != claim.claimed_answer,
    };
    if fits && is_chosen(claim, min_required) {
        return None;
    }
    let number = at.saturating_add(1);
    Some(format!("it calls claim {number} {}, but its votes do not agree", claim.assessment))
}

/// Whether the consensus is an option with at least so many votes, and more than any other.
fn is_chosen(claim: &ClaimResult, min_required: u32) -> bool {
    let answers = &claim.model_answers;
    let models: HashSet<&str> = answers.iter().map(|given| given.model.as_str()).collect();
    // The last option of every question is that it cannot be determined, which is no vote.
    let undetermined = claim.original_options.keys().next_back();
    let votes = |option: &str| answers.iter().filter(|given| given.answer == option).count();
    let consensus = &claim.consensus_answer;
    let most = votes(consensus);
    models.len() == answers.len()
        && claim.original_options.contains_key(consensus)
        && Some(consensus) != undetermined
        && most >= usize::try_from(min_required).unwrap_or(usize::MAX)
        && answers
            .iter()
            .map(|given| &given.answer)
            .filter(|answer| *answer != consensus && Some(*answer) != undetermined)
            .all(|answer| votes(answer) < most)
}

/// Takes a result for incomplete whose server does not tell how much of the text it checked.
pub(super) fn doubt_untold(result: &mut VerifyResponse, data: &str) {
    #[derive(Deserialize)]
    struct Told {
        coverage: Option<IgnoredAny>,
        skipped: Option<IgnoredAny>,
    }
    let is_told =
        serde_json::from_str(data).is_ok_and(|told: Told| told.coverage.is_some() && told.skipped.is_some());
    result.complete &= is_told;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request() -> VerifyRequest {
        VerifyRequest { fact: "x".to_owned(), ..VerifyRequest::default() }
    }

    fn result(assessment: &str, consensus: &str, answers: &[(&str, &str)]) -> Value {
        let answers: Vec<Value> =
            answers.iter().map(|(model, answer)| json!({ "model": model, "answer": answer })).collect();
        json!({
            "requestId": "ver_1", "original_fact": "x", "timestamp": "t", "minRequired": 2,
            "tokenUsage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 },
            "results": [{
                "id": "1", "claim": "x", "assessment": assessment, "original_question": "x?",
                "original_options": { "A": "a", "B": "b", "C": "None of these", "D": "Cannot be determined" },
                "claimed_answer": "A", "consensus_answer": consensus, "model_answers": answers,
            }],
        })
    }

    fn flaw(request: &VerifyRequest, result: Value) -> Option<String> {
        Account::new(request).flaw(&Event::Completed(serde_json::from_value(result).unwrap()))
    }

    #[test]
    fn a_verdict_is_what_enough_models_chose() {
        let agreeing = [("p/a", "A"), ("p/b", "A"), ("p/c", "B")];
        for (assessment, consensus, answers) in [
            ("TRUE", "A", &agreeing[..]),
            ("FALSE", "B", &[("p/a", "B"), ("p/b", "B")]),
            ("FALSE", "C", &[("p/a", "C"), ("p/b", "C"), ("p/c", "A")]),
            ("TRUE", "A", &[("p/a", "A"), ("p/b", "A"), ("p/c", "D"), ("p/d", "D")]),
            ("NO CONSENSUS", "", &[("p/a", "A"), ("p/b", "B")]),
        ] {
            let found = flaw(&request(), result(assessment, consensus, answers));
            assert_eq!(found, None, "{assessment} {consensus} {answers:?}");
        }
        for (assessment, consensus, answers) in [
            ("TRUE", "A", &[][..]),
            ("TRUE", "A", &[("p/a", "A")]),
            ("TRUE", "A", &[("p/a", "A"), ("p/a", "A")]),
            ("TRUE", "A", &[("p/a", "A"), ("p/b", "A"), ("p/c", "B"), ("p/d", "B")]),
            ("TRUE", "A", &[("p/a", "B"), ("p/b", "B")]),
            ("TRUE", "B", &[("p/a", "B"), ("p/b", "B")]),
            ("TRUE", "", &agreeing),
            ("FALSE", "A", &agreeing),
            ("FALSE", "", &agreeing),
            ("FALSE", "D", &[("p/a", "D"), ("p/b", "D")]),
            ("FALSE", "Z", &[("p/a", "Z"), ("p/b", "Z")]),
        ] {
            let found = flaw(&request(), result(assessment, consensus, answers));
            let expected = format!("it calls claim 1 {assessment}, but its votes do not agree");
            assert_eq!(found, Some(expected), "{assessment} {consensus} {answers:?}");
        }
    }

    #[test]
    fn a_verdict_needs_as_many_votes_as_were_asked_for_and_as_the_server_says() {
        let two = || result("TRUE", "A", &[("p/a", "A"), ("p/b", "A"), ("p/c", "B")]);
        let strict = VerifyRequest { min_required: Some(3), ..request() };
        assert!(flaw(&strict, two()).is_some());
        let mut three = two();
        three["minRequired"] = json!(3);
        assert!(flaw(&request(), three).is_some());
        let mut one = result("TRUE", "A", &[("p/a", "A")]);
        one["minRequired"] = json!(1);
        assert!(flaw(&request(), one).is_some());
    }

    #[test]
    fn a_result_is_about_the_text_that_was_sent_and_says_what_was_said_before() {
        let fine = || result("TRUE", "A", &[("p/a", "A"), ("p/b", "A")]);
        let other = VerifyRequest { fact: "y".to_owned(), ..request() };
        assert_eq!(flaw(&other, fine()).unwrap(), "its result is for another text");
        let mut account = Account::new(&request());
        let early =
            json!({ "claimIndex": 0, "assessment": "FALSE", "consensus_answer": "B", "model_answers": [] });
        assert_eq!(account.flaw(&Event::ClaimVerified(serde_json::from_value(early).unwrap())), None);
        let completed = Event::Completed(serde_json::from_value(fine()).unwrap());
        assert_eq!(account.flaw(&completed).unwrap(), "it gives claim 1 two verdicts");
    }

    #[test]
    fn a_server_that_tells_nothing_about_the_whole_text_has_not_checked_it() {
        for (complete, coverage, skipped, expected) in [
            (true, true, true, true),
            (false, true, true, false),
            (true, false, true, false),
            (true, true, false, false),
        ] {
            let mut data = result("TRUE", "A", &[("p/a", "A"), ("p/b", "A")]);
            if complete {
                data["complete"] = json!(true);
            }
            if coverage {
                data["coverage"] = json!({ "sentences": 1, "checked": 1, "skipped": 0, "unchecked": 0 });
            }
            if skipped {
                data["skipped"] = json!([]);
            }
            let mut read: VerifyResponse = serde_json::from_value(data.clone()).unwrap();
            doubt_untold(&mut read, &data.to_string());
            assert_eq!(read.complete, expected, "{complete} {coverage} {skipped}");
        }
    }
}
