//! How often the panel was right, and each of its models: sums as results come in, and figures at the end.
//!
//! ```text
//! result ─ observation ─┬─ matrix: what is against what was said
//!                       ├─ marks of each model, by statement and by question
//!                       ├─ errors in common
//!                       ├─ what models say without options
//!                       └─ rules, recounted from the votes
//! ```
//!
//! Two levels are told apart. By *verdict*, a model is right about a false statement with any answer but the claimed
//! one. By *option*, it is right only with the right one, where that is known.

mod errors;
mod flips;
mod matrix;
mod observation;
mod open;
mod rules;
#[cfg(test)]
mod simulation_tests;
mod statistics;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::dataset::Item;
use super::open::Opened;
use super::panel::Panels;
use crate::api::verify::VerifyResponse;
pub(crate) use errors::{CommonErrors, PairErrors};
use flips::Flips;
pub(crate) use matrix::Matrix;
use observation::Observation;
pub(crate) use observation::{Marks, said};
pub(crate) use open::OpenScore;
pub(crate) use rules::{Duel, Recount, Rule, best_for};
pub(crate) use statistics::{Exact, Pairs, Rate};

/// The sums over all verified statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    /// What statements are against what the panel said.
    pub(crate) matrix: Matrix,
    /// The names of models, by their numbers.
    pub(crate) models: Vec<String>,
    observations: Vec<Observation>,
    /// What changed between runs.
    pub(crate) flips: Flips,
    /// Tokens used in all.
    pub(crate) tokens: u64,
    /// The cost in US dollars; `None` if any price is unknown.
    pub(crate) cost_usd: Option<f64>,
    /// Whether simulated models took part.
    pub(crate) is_sandbox: bool,
    /// The hashes of the prompts that were used.
    pub(crate) prompts: BTreeSet<String>,
    /// The panels that were asked.
    pub(crate) panels: Panels,
    /// The hashes of the prompts without options, and who said what answers to them mean.
    pub(crate) open_prompts: BTreeSet<String>,
    pub(crate) judges: BTreeSet<String>,
    /// How many questions were not asked without options.
    pub(crate) not_opened: usize,
}

/// What a model did by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelScore {
    /// By verdict, of statements that are true or false.
    pub(crate) verdict: Marks,
    /// By option, of questions whose right option is known.
    pub(crate) option: Marks,
}

/// A part of the dataset.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// `domain` or `tag`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) matrix: Matrix,
}

impl Score {
    /// An empty score, with a cost of zero.
    pub(crate) fn new() -> Self {
        Self { cost_usd: Some(0.0), ..Self::default() }
    }

    /// Adds what a run says about a statement. The figures are those of the first run, as another one on the same
    /// statements is no further evidence.
    pub(crate) fn add(&mut self, item: &Item, run: u32, result: &VerifyResponse, opened: Option<&Opened>) {
        self.spend(result);
        // One that changes on the way does not matter here: each verdict counts by its own votes.
        let _ = self.panels.add(result);
        if let Some(opened) = opened {
            self.spend_openly(opened);
        }
        let models = &mut self.models;
        let observation = Observation::of(item, result, opened, |name| {
            models.iter().position(|known| known == name).unwrap_or_else(|| {
                models.push(name.to_owned());
                models.len() - 1
            })
        });
        self.flips.add(item.number, run, &observation, self.models.len());
        if run == 0 {
            self.observe(observation);
        }
    }

    /// Adds what a verification took.
    pub(crate) fn spend(&mut self, result: &VerifyResponse) {
        let usage = &result.token_usage;
        self.tokens = self.tokens.saturating_add(usage.total_tokens);
        self.is_sandbox |= result.mode.as_deref() == Some("sandbox");
        self.prompts.extend(result.prompts.clone());
        self.pay(usage.cost_usd());
    }

    /// Adds what asking without options took.
    pub(crate) fn spend_openly(&mut self, opened: &Opened) {
        self.tokens = self.tokens.saturating_add(opened.tokens);
        self.open_prompts.insert(opened.prompts.clone());
        self.judges.extend(opened.judge.clone());
        self.not_opened += opened.not_asked;
        self.pay(opened.cost_usd);
    }

    /// Adds a cost. The server's numbers are not trusted.
    fn pay(&mut self, cost: Option<f64>) {
        let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        self.cost_usd = self.cost_usd.zip(cost).map(|(sum, cost)| sum + cost).filter(|sum| sum.is_finite());
    }

    fn observe(&mut self, observation: Observation) {
        self.matrix.add(observation.expected, observation.said);
        self.observations.push(observation);
    }

    /// How many statements were verified.
    pub(crate) fn verified(&self) -> usize {
        self.matrix.total()
    }

    /// The name of a model.
    pub(crate) fn name(&self, model: usize) -> &str {
        self.models.get(model).map_or("", String::as_str)
    }

    fn decidable(&self) -> impl Iterator<Item = &Observation> + Clone {
        self.observations.iter().filter(|observation| observation.is_decidable())
    }

    /// What each model did by itself on statements that are true or false, by name.
    pub(crate) fn by_model(&self) -> BTreeMap<&str, ModelScore> {
        let mut scores: BTreeMap<&str, ModelScore> = BTreeMap::new();
        for observation in self.decidable() {
            for (model, name) in self.models.iter().enumerate() {
                if let Some(mark) = observation.mark(model) {
                    scores.entry(name).or_default().verdict.add(mark);
                }
            }
            for question in &observation.questions {
                let Some(right) = question.right else { continue };
                for (model, answer) in &question.answers {
                    let score = scores.entry(self.name(*model)).or_default();
                    score.option.add(question.mark(right, *answer));
                }
            }
        }
        scores
    }

    /// For how many questions of statements that are true or false the right option is known.
    pub(crate) fn known_options(&self) -> Rate {
        let questions = self.decidable().flat_map(|observation| &observation.questions);
        let hits = questions.clone().filter(|question| question.right.is_some()).count();
        Rate { hits, total: questions.count() }
    }

    /// How many statements have an answer in the dataset that is none of the options.
    pub(crate) fn unmatched_answers(&self) -> usize {
        self.decidable().filter(|observation| observation.is_unmatched).count()
    }

    /// The models that were asked about most of what was asked, by number: without standbys that filled in.
    pub(crate) fn panel(&self) -> Vec<usize> {
        let asked = |model: usize| {
            let questions = self.observations.iter().flat_map(|observation| &observation.questions);
            questions.flat_map(|question| &question.answers).filter(|(one, _)| *one == model).count()
        };
        let asked: Vec<usize> = (0..self.models.len()).map(asked).collect();
        let most = asked.iter().max().copied().unwrap_or(0);
        (0..self.models.len()).filter(|model| 2 * asked[*model] > most).collect()
    }

    /// The panel against its best model.
    pub(crate) fn against_best(&self) -> Option<Duel> {
        rules::against_best(&self.observations, &self.panel())
    }

    /// Errors that the panel's models have in common.
    pub(crate) fn common_errors(&self) -> CommonErrors {
        CommonErrors::of(&self.observations, &self.panel())
    }

    /// What each model did without options, by number; empty if none was asked.
    pub(crate) fn openly(&self) -> BTreeMap<usize, OpenScore> {
        open::by_model(&self.observations)
    }

    /// What other rules would have said.
    pub(crate) fn recounts(&self) -> Vec<Recount> {
        rules::recounts(&self.observations, &self.panel())
    }

    /// The domain of all statements, if there is only one.
    pub(crate) fn only_domain(&self) -> Option<String> {
        let groups = self.observations.iter().flat_map(|observation| &observation.groups);
        let domains: BTreeSet<&String> =
            groups.filter(|(kind, _)| *kind == "domain").map(|(_, name)| name).collect();
        domains.first().filter(|_| domains.len() == 1).map(|name| (*name).clone())
    }

    /// The panel's verdicts by domain, if there are several, and by tag.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let has_one_domain = self.only_domain().is_some();
        let mut groups: BTreeMap<(&'static str, &str), Matrix> = BTreeMap::new();
        for observation in &self.observations {
            for (kind, name) in &observation.groups {
                if *kind != "domain" || !has_one_domain {
                    groups.entry((*kind, name)).or_default().add(observation.expected, observation.said);
                }
            }
        }
        groups
            .into_iter()
            .map(|((kind, name), matrix)| Group { kind, name: name.to_owned(), matrix })
            .collect()
    }
}
