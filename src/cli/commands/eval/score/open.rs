//! What models say without options, against what they chose with them: on the same questions, so that it is paired.
//!
//! An answer counts as right if it means the option that is known to be right, and else as wrong, also where it means
//! none; "unknown" is neither a vote there nor here. What failed counts nowhere.

use std::collections::BTreeMap;

use super::observation::{Mark, Observation};
use super::statistics::Pairs;
use crate::cli::commands::eval::open::Mapping;

/// An answer without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Openly {
    /// The model, by number.
    pub(crate) model: usize,
    /// The position of the option that it means.
    pub(crate) option: Option<usize>,
    pub(crate) mapped_by: Mapping,
}

/// What a model did without options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenScore {
    /// Right with options, and right without, of questions whose right option is known.
    pub(crate) right: Pairs,
    /// Of all answers: mapped by code, by the judge, to no option; the model did not know; it or the judge failed.
    pub(crate) by_code: usize,
    pub(crate) by_judge: usize,
    pub(crate) by_nobody: usize,
    pub(crate) unknown: usize,
    pub(crate) failed: usize,
}

/// What each model did without options, by number; empty if none was asked.
pub(super) fn by_model(observations: &[Observation]) -> BTreeMap<usize, OpenScore> {
    let mut scores: BTreeMap<usize, OpenScore> = BTreeMap::new();
    for observation in observations {
        for question in &observation.questions {
            for open in &question.open {
                let score = scores.entry(open.model).or_default();
                *match open.mapped_by {
                    Mapping::Code => &mut score.by_code,
                    Mapping::Judge => &mut score.by_judge,
                    Mapping::Nobody => &mut score.by_nobody,
                    Mapping::Unknown => &mut score.unknown,
                    Mapping::Failed => &mut score.failed,
                } += 1;
                let Some(right) = question.right.filter(|_| observation.is_decidable()) else { continue };
                let chosen = question.asked(open.model).map(|(_, answer)| question.mark(right, answer));
                if let Some(chosen) = chosen.filter(|_| open.mapped_by != Mapping::Failed) {
                    score.right.add(chosen == Mark::Right, open.option == Some(right));
                }
            }
        }
    }
    scores
}
