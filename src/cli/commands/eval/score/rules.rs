//! What other rules would have said, recounted from the same votes by the code that counts them on the server.

use super::matrix::Matrix;
use super::observation::{Mark, Observation};
use super::statistics::{Pairs, Rate};
use crate::api::verify::MIN_REQUIRED;
use crate::cli::commands::eval::label::Label;

/// A rule over the votes of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// How many models must agree.
    pub(crate) min_required: usize,
    /// How many models are asked.
    pub(crate) of: usize,
    /// The model that is not asked, by number.
    pub(crate) left_out: Option<usize>,
    /// Whether this is what was asked of the server.
    pub(crate) is_own: bool,
}

/// A rule, and what it would have said.
#[derive(Clone, Debug)]
pub(crate) struct Recount {
    pub(crate) rule: Rule,
    pub(crate) matrix: Matrix,
}

/// Every rule over these models: all of them and each left out, with each number of votes that the server accepts.
pub(crate) fn recounts(observations: &[Observation], models: &[usize]) -> Vec<Recount> {
    let left_out = [None].into_iter().chain(models.iter().copied().map(Some));
    let rules = left_out.flat_map(|left_out| {
        let of = models.len() - usize::from(left_out.is_some());
        let accepted = MIN_REQUIRED.filter_map(|min_required| usize::try_from(min_required).ok());
        accepted.filter(move |min_required| *min_required <= of).map(move |min_required| {
            let is_own = left_out.is_none()
                && observations.iter().all(|observation| observation.min_required == min_required);
            Rule { min_required, of, left_out, is_own }
        })
    });
    rules
        .map(|rule| {
            let mut matrix = Matrix::default();
            for observation in observations {
                matrix.add(observation.expected, observation.said_by(rule.min_required, rule.left_out));
            }
            Recount { rule, matrix }
        })
        .collect()
}

impl Recount {
    /// The precision of its verdicts whose lower bound is the lower: that of TRUE or of FALSE.
    pub(crate) fn weaker(&self) -> (Label, Rate) {
        let of = |label| (label, self.matrix.precision(label));
        let (on_true, on_false) = (of(Label::True), of(Label::False));
        if on_false.1.lower() < on_true.1.lower() { on_false } else { on_true }
    }

    /// How many more statements are needed until the lower bounds of both its precisions reach this percentage, if its
    /// shares stay what they are; `None` if they never would.
    pub(crate) fn still_needed(&self, percent: f64) -> Option<usize> {
        let more = |label| {
            let precision = self.matrix.precision(label);
            // A share that is not above it has no lower bound that ever reaches it.
            let needed =
                precision.total_for_bound(percent).filter(|_| precision.percent() > Some(percent))?;
            let missing = needed.saturating_sub(precision.total);
            // As many statements as now for each verdict of this kind.
            Some((missing * self.matrix.total()).div_ceil(precision.total))
        };
        Some(more(Label::True)?.max(more(Label::False)?))
    }
}

/// The rule whose lower bounds reach this percentage with the most verdicts.
pub(crate) fn best_for(recounts: &[Recount], percent: f64) -> Option<&Recount> {
    let reaching = recounts.iter().filter(|recount| recount.weaker().1.lower() >= percent);
    // The first of equals: the whole panel before a part of it.
    reaching.rev().max_by_key(|recount| recount.matrix.decided().hits)
}

/// The panel and one of its models on the same statements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duel {
    /// The model, by number.
    pub(crate) model: usize,
    /// Which of them were right; the panel comes first.
    pub(crate) right: Pairs,
    /// Which of them said the wrong thing, rather than nothing.
    pub(crate) wrong: Pairs,
}

/// The panel against the model with the most right answers.
pub(crate) fn against_best(observations: &[Observation], models: &[usize]) -> Option<Duel> {
    let duel = |model: &usize| {
        let mut duel = Duel { model: *model, right: Pairs::default(), wrong: Pairs::default() };
        for observation in observations.iter().filter(|observation| observation.is_decidable()) {
            let Some(mark) = observation.mark(*model) else { continue };
            let said = observation.said;
            duel.right.add(said == observation.expected, mark == Mark::Right);
            duel.wrong.add(said.is_verdict() && said != observation.expected, mark == Mark::Wrong);
        }
        duel
    };
    let score = |duel: &Duel| duel.right.both + duel.right.only_second;
    models.iter().rev().map(duel).filter(|duel| duel.right.total() > 0).max_by_key(score)
}
