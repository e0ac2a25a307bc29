//! Verdicts that change from one run to the next, though nothing else did.

use std::collections::BTreeMap;

use super::observation::{Mark, Observation};
use super::statistics::Rate;
use crate::cli::commands::eval::label::Label;

/// What each run said about each statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flips {
    runs: BTreeMap<usize, Vec<Run>>,
}

#[derive(Clone, Debug)]
struct Run {
    number: u32,
    said: Label,
    /// What each model made of it, by number.
    marks: Vec<Option<Mark>>,
}

impl Flips {
    /// Notes what a run said about a statement.
    pub(super) fn add(&mut self, statement: usize, number: u32, observation: &Observation, models: usize) {
        let marks = (0..models).map(|model| observation.mark(model).filter(|_| observation.is_decidable()));
        let run = Run { number, said: observation.said, marks: marks.collect() };
        self.runs.entry(statement).or_default().push(run);
    }

    /// What the first run said about a statement.
    pub(crate) fn first(&self, statement: usize) -> Option<Label> {
        self.runs.get(&statement)?.iter().find(|run| run.number == 0).map(|run| run.said)
    }

    /// The share of statements with more than one verdict, of those verified more than once.
    pub(crate) fn verdicts(&self) -> Rate {
        changed(self.runs.values().map(|runs| runs.iter().map(|run| run.said).collect()))
    }

    /// The same for a model's own vote on statements that are true or false.
    pub(crate) fn model(&self, model: usize) -> Rate {
        let marks = |runs: &Vec<Run>| runs.iter().filter_map(|run| *run.marks.get(model)?).collect();
        changed(self.runs.values().map(marks))
    }
}

/// How many of these lists have different items, of those with several.
fn changed<T: PartialEq>(lists: impl Iterator<Item = Vec<T>>) -> Rate {
    let mut rate = Rate::default();
    for list in lists.filter(|list| list.len() > 1) {
        rate.total += 1;
        rate.hits += usize::from(list.iter().any(|item| *item != list[0]));
    }
    rate
}
