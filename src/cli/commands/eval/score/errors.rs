//! Errors that models have in common: what no rule over their votes can mend.
//!
//! A model errs on a statement if it voted and is wrong. Correlations are over statements on which both voted; whoever
//! could not tell does no harm. "The same wrong answer" is counted by question, where a wrong option is one that is
//! known to be wrong: by the right option, or because the claimed one of a false statement with a single claim is.

use super::observation::{Mark, Observation, Question};
use super::statistics::{Estimate, Exact, Pairs, Rate, effective_votes, ratio};
use crate::cli::commands::eval::label::Label;

/// The errors that two models have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairErrors {
    /// The models, by number.
    pub(crate) models: (usize, usize),
    /// Their errors on statements on which both voted.
    pub(crate) errors: Pairs,
    /// How often they gave the same answer where both were wrong, of questions.
    pub(crate) same_wrong: Rate,
}

/// The least number of statements on which one of two models or both err for their correlation to mean anything.
const LEAST_ERRORS: usize = 5;

impl PairErrors {
    /// The correlation of their errors, if there are enough of them.
    pub(crate) fn correlation(&self) -> Option<Estimate> {
        let Pairs { both, only_first, only_second, .. } = self.errors;
        self.errors.phi().filter(|_| both + only_first + only_second >= LEAST_ERRORS)
    }
}

/// The errors that the models of a panel have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonErrors {
    /// Each pair of models.
    pub(crate) pairs: Vec<PairErrors>,
    /// The mean correlation, over pairs that have one.
    pub(crate) mean_correlation: Option<f64>,
    /// Of how many models with uncorrelated errors the votes are worth.
    pub(crate) effective_votes: Option<f64>,
    /// On how many statements all votes were wrong, of those on which at least two models voted.
    pub(crate) all_err: Exact,
    /// To how many questions two or more models gave the same wrong answer, of those to which at least two voted and
    /// for which it is known.
    pub(crate) same_wrong: Rate,
}

impl CommonErrors {
    /// Counts the errors of these models.
    pub(crate) fn of(observations: &[Observation], models: &[usize]) -> Self {
        let decidable = || observations.iter().filter(|observation| observation.is_decidable());
        let mut pairs = Vec::new();
        for (at, first) in models.iter().enumerate() {
            for second in &models[at + 1..] {
                pairs.push(pair(decidable(), (*first, *second)));
            }
        }
        let found: Vec<f64> = pairs.iter().filter_map(PairErrors::correlation).map(|phi| phi.value).collect();
        let mean_correlation = (!found.is_empty()).then(|| found.iter().sum::<f64>() / ratio(found.len(), 1));
        let mut common = Self {
            pairs,
            mean_correlation,
            effective_votes: mean_correlation.map(|mean| effective_votes(models.len(), mean)),
            ..Self::default()
        };
        for observation in decidable() {
            let marks =
                models.iter().filter_map(|model| observation.mark(*model)).filter(|mark| mark.is_vote());
            let marks: Vec<Mark> = marks.collect();
            if marks.len() > 1 {
                common.all_err.0.total += 1;
                common.all_err.0.hits += usize::from(marks.iter().all(|mark| *mark == Mark::Wrong));
            }
            for question in known(observation) {
                common.add_same_wrong(observation, question, models);
            }
        }
        common
    }

    fn add_same_wrong(&mut self, observation: &Observation, question: &Question, models: &[usize]) {
        let votes: Vec<usize> =
            votes(question).filter(|(model, _)| models.contains(model)).map(|(_, vote)| vote).collect();
        if votes.len() > 1 {
            let is_shared = |vote: &usize| {
                is_wrong(observation, question, *vote)
                    && votes.iter().filter(|other| *other == vote).count() > 1
            };
            self.same_wrong.total += 1;
            self.same_wrong.hits += usize::from(votes.iter().any(is_shared));
        }
    }
}

fn pair<'a>(observations: impl Iterator<Item = &'a Observation>, models: (usize, usize)) -> PairErrors {
    let mut found = PairErrors { models, errors: Pairs::default(), same_wrong: Rate::default() };
    for observation in observations {
        let marks = observation.mark(models.0).zip(observation.mark(models.1));
        if let Some((first, second)) = marks.filter(|(first, second)| first.is_vote() && second.is_vote()) {
            found.errors.add(first == Mark::Wrong, second == Mark::Wrong);
        }
        for question in known(observation) {
            let vote = |model| votes(question).find(|(voter, _)| *voter == model).map(|(_, vote)| vote);
            if let Some((first, second)) = vote(models.0).zip(vote(models.1))
                && is_wrong(observation, question, first)
                && is_wrong(observation, question, second)
            {
                found.same_wrong.total += 1;
                found.same_wrong.hits += usize::from(first == second);
            }
        }
    }
    found
}

/// The questions for which it is known which votes are wrong, at least in part.
fn known(observation: &Observation) -> impl Iterator<Item = &Question> {
    let is_claim_wrong = observation.expected == Label::False && observation.questions.len() == 1;
    observation.questions.iter().filter(move |question| question.right.is_some() || is_claim_wrong)
}

/// The votes of models, by number and option.
fn votes(question: &Question) -> impl Iterator<Item = (usize, usize)> {
    let answers = question.answers.iter().filter_map(|(model, answer)| Some((*model, (*answer)?)));
    answers.filter(|(_, vote)| *vote != question.options.undetermined)
}

fn is_wrong(observation: &Observation, question: &Question, vote: usize) -> bool {
    match question.right {
        Some(right) => vote != right,
        None => observation.expected == Label::False && vote == question.options.claimed,
    }
}
