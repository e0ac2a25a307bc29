//! The panel that a server asked: verdicts depend on it, and no setting of the client's tells it, as a server's own
//! settings may change behind the same address.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::api::verify::VerifyResponse;

/// The models of a verification, and the rule over their votes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Panel {
    /// In the order of the panel, then those that stand by; empty where the server does not tell.
    pub(super) models: Vec<String>,
    pub(super) min_required: u32,
    pub(super) total_models: u32,
}

impl Panel {
    /// That of a result.
    pub(super) fn of(result: &VerifyResponse) -> Self {
        Self {
            models: result.models.clone(),
            min_required: result.min_required,
            total_models: result.total_models,
        }
    }
}

/// The panel of each domain, by the name of the domain.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Panels(BTreeMap<&'static str, Panel>);

impl Panels {
    /// Takes note of the panel of a result, if none is known for its domain.
    ///
    /// # Errors
    /// If it is another one: what differs, in words.
    pub(super) fn add(&mut self, result: &VerifyResponse) -> Result<(), String> {
        let panel = Panel::of(result);
        let known = self.0.entry(result.domain.as_str()).or_insert_with(|| panel.clone());
        if known.models.is_empty() {
            known.models.clone_from(&panel.models);
        }
        for (what, then, now) in [
            ("min_required", known.min_required, panel.min_required),
            ("total_models", known.total_models, panel.total_models),
        ] {
            if then != now {
                return Err(format!("{what} {then}, and the server now uses {now}"));
            }
        }
        self.check(result.domain.as_str(), &panel.models)
    }

    /// Whether these are the models of a domain's panel.
    ///
    /// # Errors
    /// If they are others: which, in words.
    pub(super) fn check(&self, domain: &str, models: &[String]) -> Result<(), String> {
        let known = self.0.get(domain).map_or(&[][..], |panel| &panel.models);
        if known.is_empty() || models.is_empty() || known == models {
            return Ok(());
        }
        Err(format!("the panel {}, and the server now has {}", known.join(", "), models.join(", ")))
    }

    /// What all panels have in common, if they do.
    pub(super) fn common<T: PartialEq>(&self, of: impl Fn(&Panel) -> T) -> Option<T> {
        let mut all = self.0.values().map(of);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}
