//! Counts a receipt's votes again, by the code that counted them first.

use std::collections::HashSet;

use super::payload::{ClaimRecord, Payload, VoteRecord};
use crate::api::verify::{ClaimResult, ModelError};
use crate::inference::Failure;
use crate::verify::claim::Claim;
use crate::verify::voting::answer::read_vote;
use crate::verify::voting::ballot::PanelAnswer;
use crate::verify::voting::count::Count;

/// The code of a model whose answers cannot be read.
pub(super) const MALFORMED: &str = Failure::Malformed.code();

/// The most votes on a claim that make sense: servers ask nine models, and standby models after them.
const MAX_VOTES: usize = 100;

/// Why the votes on a claim cannot be counted again. Names of models are foreign text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncounted {
    /// The question is not one that a server asks.
    #[error("its options are not ones that mk would ask")]
    Question,
    /// There are more votes than any panel has.
    #[error("it has more votes than a panel can have")]
    TooMany,
    /// A model stands twice among the votes.
    #[error("{0} votes twice")]
    Twice(String),
    /// The answer of a model is not there.
    #[error("the answer of {0} is missing")]
    Missing(String),
    /// The answer of a model was too long to be kept.
    #[error("the answer of {0} was too long to be kept")]
    Shortened(String),
    /// The answer of a model cannot be read.
    #[error("the answer of {0} is unreadable")]
    Unreadable(String),
    /// The answer of a model can be read, although it is said to be malformed.
    #[error("the answer of {0} is readable, but was not counted")]
    Readable(String),
}

impl Payload {
    /// The result of a claim as its votes give it where so many models have to agree.
    ///
    /// # Errors
    /// If they cannot be counted.
    pub fn recount(&self, record: &ClaimRecord, min_required: u32) -> Result<ClaimResult, Uncounted> {
        let claim = Claim::reported(&record.result).ok_or(Uncounted::Question)?;
        if record.votes.len() > MAX_VOTES {
            return Err(Uncounted::TooMany);
        }
        let (mut answers, mut errors, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for vote in &record.votes {
            if !seen.insert(&vote.model) {
                return Err(Uncounted::Twice(vote.model.clone()));
            }
            match self.read(vote, &claim)? {
                Ok(answer) => answers.push((vote.model.as_str(), answer)),
                Err(code) => errors.push(ModelError { model: vote.model.clone(), code }),
            }
        }
        let count = Count {
            min_required,
            outstanding: record.outstanding,
            has_context: self.context.is_some(),
            cached: false,
        };
        let answers: Vec<(&str, &PanelAnswer)> =
            answers.iter().map(|(model, answer)| (*model, answer)).collect();
        Ok(count.result(&claim, record.result.quote.clone(), &answers, errors))
    }

    /// What a model has answered, or why it has not.
    fn read(&self, vote: &VoteRecord, claim: &Claim) -> Result<Result<PanelAnswer, String>, Uncounted> {
        let model = || vote.model.clone();
        let order = order(&vote.shown, claim);
        let read = vote.answers.last().filter(|raw| !raw.shortened).and_then(|raw| {
            let order = order.as_deref()?;
            read_vote(&raw.text, raw.cut_off, claim.options(), order, self.request.explain).ok()
        });
        match (&vote.error, read, vote.answers.last()) {
            (Some(code), Some(_), _) if code == MALFORMED => Err(Uncounted::Readable(model())),
            (Some(code), ..) => Ok(Err(code.clone())),
            (None, Some(answer), _) => Ok(Ok(answer)),
            (None, None, None) => Err(Uncounted::Missing(model())),
            (None, None, Some(raw)) if raw.shortened => Err(Uncounted::Shortened(model())),
            (None, None, Some(_)) => Err(Uncounted::Unreadable(model())),
        }
    }
}

/// The positions of the options in the order in which they were shown; each stands there once.
fn order(shown: &str, claim: &Claim) -> Option<Vec<usize>> {
    let options = claim.options().len();
    let positions = shown.bytes().map(|key| usize::from(key.wrapping_sub(b'A')));
    let order: Vec<usize> = positions.filter(|&position| position < options).collect();
    let distinct: HashSet<usize> = order.iter().copied().collect();
    (order.len() == shown.len() && distinct.len() == options && order.len() == options).then_some(order)
}
