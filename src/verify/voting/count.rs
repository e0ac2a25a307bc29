//! What answers make of a claim: for a verification, and again for its receipt.

use super::ballot::PanelAnswer;
use super::vote::{self, SpecialOptions, Verdict};
use crate::api::verify::{Assessment, ClaimResult, ModelAnswer, ModelError, ReasonCode};
use crate::verify::claim::{Claim, key};

/// How answers are counted.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) struct Count {
    /// How many models must agree.
    pub(in crate::verify) min_required: u32,
    /// How many had not answered when the deadline passed.
    pub(in crate::verify) outstanding: usize,
    /// Whether they answered from a text.
    pub(in crate::verify) has_context: bool,
    /// Whether the answers are from the verdict cache.
    pub(in crate::verify) cached: bool,
}

impl Count {
    /// What the `answers` of models make of a claim; the `errors` are those of models that gave none.
    pub(in crate::verify) fn result(
        self,
        claim: &Claim,
        quote: String,
        answers: &[(&str, &PanelAnswer)],
        errors: Vec<ModelError>,
    ) -> ClaimResult {
        let chosen: Vec<usize> = answers.iter().map(|(_, answer)| answer.option).collect();
        let verdict = self.verdict(claim, &chosen);
        let is_false = verdict.assessment == Assessment::False;
        let correction = verdict
            .consensus
            .filter(|_| is_false)
            .map(|winner| claim.options().get(winner).filter(|_| winner != claim.none_of_these()).cloned());
        ClaimResult {
            id: claim.id.clone(),
            claim: claim.text.clone(),
            assessment: verdict.assessment,
            original_question: claim.question.clone(),
            original_options: claim.keyed_options(),
            claimed_answer: key(Claim::CLAIMED),
            model_answers: answers.iter().map(model_answer).collect(),
            consensus_answer: verdict.consensus.map(key).unwrap_or_default(),
            reason_code: Some(verdict.reason),
            model_errors: errors,
            quote,
            span: claim.span,
            correction,
            contested: claim.contested,
            cached: self.cached,
            seats: Vec::new(),
        }
    }

    fn verdict(self, claim: &Claim, answers: &[usize]) -> Verdict {
        let (special, min_required) = (special_options(claim), number(self.min_required));
        if vote::is_open(answers, special, min_required, self.outstanding) {
            return Verdict::none(ReasonCode::InsufficientAnswers);
        }
        let verdict = vote::decide(answers, special, min_required);
        match verdict.reason {
            ReasonCode::Unconfirmed if self.has_context => Verdict::none(ReasonCode::NotInContext),
            _ => verdict,
        }
    }
}

/// The options of a claim that have a special meaning.
pub(in crate::verify) fn special_options(claim: &Claim) -> SpecialOptions {
    SpecialOptions { claimed: Claim::CLAIMED, undetermined: claim.undetermined() }
}

/// How many models must agree, as a number of answers.
pub(in crate::verify) fn number(min_required: u32) -> usize {
    usize::try_from(min_required).unwrap_or(usize::MAX)
}

fn model_answer((model, answer): &(&str, &PanelAnswer)) -> ModelAnswer {
    ModelAnswer {
        model: (*model).to_owned(),
        answer: key(answer.option),
        found: answer.found.clone(),
        reason: answer.reason.clone(),
    }
}
