//! All figures of an evaluation, computed once for whatever shows them.

use std::collections::BTreeSet;

use super::score::{CommonErrors, Duel, Group, ModelScore, OpenScore, Rate, Recount, Rule, Score};
use crate::model_id;

/// The figures.
pub(super) struct Figures {
    /// What each model did by itself, by name.
    pub(super) models: Vec<(String, ModelScore)>,
    /// The models that rules are about.
    pub(super) panel: Vec<PanelModel>,
    /// For how many questions the right option is known.
    pub(super) known_options: Rate,
    /// How many answers of the dataset are none of the options.
    pub(super) unmatched_answers: usize,
    /// What models did without options, if they were asked.
    pub(super) open: Option<OpenFigures>,
    pub(super) duel: Option<Duel>,
    pub(super) common: CommonErrors,
    pub(super) recounts: Vec<Recount>,
    pub(super) groups: Vec<Group>,
    /// The domain, if there is only one.
    pub(super) only_domain: Option<String>,
}

/// What was found without options.
pub(super) struct OpenFigures {
    /// By the models' names.
    pub(super) models: Vec<(String, OpenScore)>,
    /// Who said what answers mean.
    pub(super) judges: Vec<String>,
    /// The hashes of the prompts.
    pub(super) prompts: Vec<String>,
    /// How many questions have two options only, and were not asked.
    pub(super) not_asked: usize,
}

/// A model of the panel.
pub(super) struct PanelModel {
    /// What votes know it by.
    pub(super) number: usize,
    pub(super) name: String,
    /// Its name without the provider, unless that is ambiguous.
    pub(super) short: String,
}

impl Figures {
    /// Computes all of them.
    pub(super) fn of(score: &Score) -> Self {
        let panel = score.panel();
        let bare =
            |model: usize| model_id::split(score.name(model)).map_or(score.name(model), |(_, name)| name);
        let name = |number: usize| {
            let is_ambiguous = panel.iter().any(|other| *other != number && bare(*other) == bare(number));
            let short = if is_ambiguous { score.name(number) } else { bare(number) };
            PanelModel { number, name: score.name(number).to_owned(), short: short.to_owned() }
        };
        Self {
            models: score.by_model().into_iter().map(|(name, score)| (name.to_owned(), score)).collect(),
            panel: panel.iter().copied().map(name).collect(),
            known_options: score.known_options(),
            unmatched_answers: score.unmatched_answers(),
            open: open(score),
            duel: score.against_best(),
            common: score.common_errors(),
            recounts: score.recounts(),
            groups: score.groups(),
            only_domain: score.only_domain(),
        }
    }

    /// The short name of a model of the panel.
    pub(super) fn short(&self, number: usize) -> &str {
        self.panel.iter().find(|model| model.number == number).map_or("", |model| &model.short)
    }

    /// The full name of a model of the panel.
    pub(super) fn name(&self, number: usize) -> &str {
        self.panel.iter().find(|model| model.number == number).map_or("", |model| &model.name)
    }

    /// A rule in words: `2 of 3`, `2 of 2 without alpha`.
    pub(super) fn rule(&self, rule: Rule) -> String {
        let votes = format!("{} of {}", rule.min_required, rule.of);
        match rule.left_out {
            Some(model) => format!("{votes} without {}", self.short(model)),
            None => votes,
        }
    }
}

fn open(score: &Score) -> Option<OpenFigures> {
    let models = score.openly().into_iter().map(|(model, open)| (score.name(model).to_owned(), open));
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect();
    (!score.open_prompts.is_empty()).then(|| OpenFigures {
        models: models.collect(),
        judges: list(&score.judges),
        prompts: list(&score.open_prompts),
        not_asked: score.not_opened,
    })
}
