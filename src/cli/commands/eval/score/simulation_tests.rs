//! Simulated panels of known accuracy and correlation: the figures must lie within sampling error of the theory.
//!
//! On each statement, all models share one draw with probability `correlation`, and else each draws for itself. Errors
//! then have exactly that correlation, and all err with probability `c·q + (1 − c)·qᵏ`.

use super::observation::{Observation, Question};
use super::statistics::{effective_votes, ratio};
use super::*;
use crate::cli::commands::eval::label::Label;
use crate::verify::SpecialOptions;

/// Steele, Lea and Flood's `SplitMix64`.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const PANELS: usize = 1_000;
const STATEMENTS: usize = 150;

struct Panel {
    models: usize,
    error: f64,
    correlation: f64,
}

impl Panel {
    fn draw(draws: &mut Draws) -> Self {
        Self {
            models: 3 + usize::try_from(draws.next() % 3).unwrap(),
            error: 0.1 + 0.3 * draws.share(),
            correlation: 0.6 * draws.share(),
        }
    }

    /// Answers to statements of which half are false: a model that errs takes the claimed answer for a rival, or the
    /// other way round.
    fn evaluate(&self, draws: &mut Draws) -> Score {
        let mut score = Score::new();
        score.models = (0..self.models).map(|model| format!("p/{model}")).collect();
        for at in 0..STATEMENTS {
            let expected = if at % 2 == 0 { Label::True } else { Label::False };
            let shared = (draws.share() < self.correlation).then(|| draws.share() < self.error);
            let answers = (0..self.models).map(|model| {
                let errs = shared.unwrap_or_else(|| draws.share() < self.error);
                (model, Some(usize::from((expected == Label::True) == errs)))
            });
            let question = Question {
                options: SpecialOptions { claimed: 0, undetermined: 3 },
                right: Some(usize::from(expected == Label::False)),
                answers: answers.collect(),
                open: Vec::new(),
            };
            let mut observation = Observation {
                expected,
                said: Label::Nothing,
                is_complete: true,
                questions: vec![question],
                min_required: 2,
                is_unmatched: false,
                groups: Vec::new(),
            };
            observation.said = observation.said_by(2, None);
            score.observe(observation);
        }
        score
    }

    fn all_err(&self) -> f64 {
        let power = i32::try_from(self.models).unwrap();
        self.correlation * self.error + (1.0 - self.correlation) * self.error.powi(power)
    }
}

/// How often something held.
#[derive(Default)]
struct Held(Rate);

impl Held {
    fn add(&mut self, holds: bool) {
        self.0.total += 1;
        self.0.hits += usize::from(holds);
    }

    fn share(&self) -> f64 {
        ratio(self.0.hits, self.0.total)
    }
}

fn holds(interval: Option<(f64, f64)>, value: f64) -> bool {
    interval.is_some_and(|(low, high)| (low..=high).contains(&value))
}

#[test]
fn figures_of_simulated_panels_are_within_sampling_error_of_theory() {
    let mut draws = Draws(35);
    let [mut accuracy, mut by_option, mut correlation, mut all_err, mut exact] =
        [const { Held(Rate { hits: 0, total: 0 }) }; 5];
    let (mut excess, mut votes_off) = (0.0, 0.0);
    for _ in 0..PANELS {
        let panel = Panel::draw(&mut draws);
        let score = panel.evaluate(&mut draws);
        for scored in score.by_model().values() {
            accuracy.add(holds(scored.verdict.rate().interval(), 100.0 * (1.0 - panel.error)));
            by_option.add(scored.verdict == scored.option);
        }
        let common = score.common_errors();
        for pair in &common.pairs {
            correlation.add(holds(pair.errors.phi().map(|phi| phi.interval), panel.correlation));
        }
        all_err.add(holds(common.all_err.0.interval(), 100.0 * panel.all_err()));
        exact.add(holds(common.all_err.0.exact_interval(), 100.0 * panel.all_err()));
        excess += common.mean_correlation.unwrap() - panel.correlation;
        let theory = effective_votes(panel.models, panel.correlation);
        votes_off += (common.effective_votes.unwrap() / theory - 1.0).abs();
    }
    let panels = ratio(PANELS, 1);
    assert!((0.94..0.97).contains(&accuracy.share()), "accuracy: {}", accuracy.share());
    assert!(by_option.share() > 0.999, "one rival: by option is by verdict: {}", by_option.share());
    assert!((0.91..0.97).contains(&correlation.share()), "correlation: {}", correlation.share());
    assert!((0.93..0.98).contains(&all_err.share()), "all err: {}", all_err.share());
    assert!(exact.share() >= 0.95, "exact intervals hold at least as often as they say: {}", exact.share());
    assert!((excess / panels).abs() < 0.02, "mean correlation is off by {}", excess / panels);
    assert!(votes_off / panels < 0.15, "effective votes are off by {}", votes_off / panels);
}

#[test]
fn a_panel_no_better_than_its_models_is_seldom_called_better() {
    let mut draws = Draws(7);
    let mut called = Held::default();
    for _ in 0..PANELS {
        // Whoever shares each error has nothing to gain from a vote.
        let panel = Panel { models: 3, error: 0.2, correlation: 1.0 };
        let duel = panel.evaluate(&mut draws).against_best().unwrap();
        called.add(duel.right.mcnemar() < 0.05);
    }
    assert_eq!(called.0.hits, 0);
    let mut called = Held::default();
    for _ in 0..PANELS / 5 {
        let panel = Panel { models: 5, error: 0.3, correlation: 0.0 };
        let duel = panel.evaluate(&mut draws).against_best().unwrap();
        called.add(duel.wrong.mcnemar() < 0.05 && duel.wrong.only_second > duel.wrong.only_first);
    }
    assert!(called.share() > 0.4, "five that err separately are wrong less often: {}", called.share());
}

#[test]
fn recounted_rules_follow_theory() {
    let mut draws = Draws(3);
    let [mut two, mut three] = [const { Held(Rate { hits: 0, total: 0 }) }; 2];
    for _ in 0..PANELS {
        let panel = Panel { models: 3, ..Panel::draw(&mut draws) };
        let recounts = panel.evaluate(&mut draws).recounts();
        let (error, shared) = (panel.error, panel.correlation);
        let right = 1.0 - error;
        let alone = right.powi(3) + 3.0 * right.powi(2) * error;
        let rate = |at: usize| recounts[at].matrix.right().interval();
        two.add(holds(rate(0), 100.0 * (shared * right + (1.0 - shared) * alone)));
        three.add(holds(rate(1), 100.0 * (shared * right + (1.0 - shared) * right.powi(3))));
    }
    assert!((0.93..0.98).contains(&two.share()), "2 of 3: {}", two.share());
    assert!((0.93..0.98).contains(&three.share()), "3 of 3: {}", three.share());
}
