//! Panels, extractors and fallbacks: checks identifiers against the configured providers, and fills in what was left
//! open.

use std::time::Duration;

use super::panel::{self, Chosen};
use super::provider_file::ProviderFile;
use crate::api::verify::MAX_MODELS;
use crate::clock::Time;
use crate::config::server::server_file::{NO_AUDITOR, PanelTable, ServerFile, VerifyFile};
use crate::config::sources::origin::{Origin, Origins};
use crate::config::sources::reader::{Located, Location};
use crate::config::sources::table::{Table, dotted};
use crate::config::sources::values;
use crate::config::{ConfigError, suggest};
use crate::providers::{self, Kind, catalog};
use crate::verify::{PanelSettings, Settings};
use crate::{inference, model_id};

/// How many models serve as fallbacks for an extractor that was not set.
const EXTRACTOR_FALLBACKS: usize = 2;

/// The configured providers, against which identifiers are checked.
pub(in crate::config) struct Providers<'a>(pub(in crate::config) &'a [providers::Settings]);

impl Providers<'_> {
    /// Checks that an identifier names a configured provider and, for the sandbox, an existing model.
    fn check(&self, id: &str, place: &Location) -> Result<(), ConfigError> {
        let shown = id.escape_debug();
        let Some((provider, model)) = model_id::parse(id) else {
            let complaint = format!("names the model `{shown}`; models are written as provider/model_name");
            return Err(place.error(&complaint));
        };
        let names = || self.0.iter().map(|settings| settings.name.as_str());
        if let Some(settings) = self.0.iter().find(|settings| settings.name == provider) {
            if settings.kind != Kind::Sandbox || providers::sandbox::MODELS.contains(&model) {
                return Ok(());
            }
            let question = suggest::did_you_mean(model, providers::sandbox::MODELS);
            let complaint = format!("names the model `{shown}`, which is not in the sandbox");
            return Err(place
                .error(&complaint)
                .hint_if_any(question)
                .hint(format!("models of the sandbox: {}", providers::sandbox::MODELS.join(", "))));
        }
        let question = suggest::did_you_mean(provider, names());
        let complaint = format!("names the model `{shown}`, but no provider {provider} is configured");
        let configured = names().collect::<Vec<_>>().join(", ");
        let configured = if configured.is_empty() { "none".to_owned() } else { configured };
        let error = place.error(&complaint).hint_if_any(question);
        Err(error.hint(format!("configured providers: {configured}")))
    }

    fn check_all(&self, found: &Located<Vec<String>>) -> Result<(), ConfigError> {
        found.value.iter().try_for_each(|id| self.check(id, &found.place))
    }

    /// Checks an identifier that may be a pattern.
    fn check_pattern(&self, id: &str, place: &Location) -> Result<(), ConfigError> {
        let mut parts = id.splitn(3, inference::WILDCARD);
        let (Some(before), Some(_)) = (parts.next(), parts.next()) else { return self.check(id, place) };
        if parts.next().is_some() {
            return Err(
                place.error(&format!("names `{}`; a pattern must have exactly one `*`", id.escape_debug()))
            );
        }
        let is_simulated = |settings: &providers::Settings| {
            settings.kind == Kind::Sandbox && settings.name == model_id::provider(before)
        };
        if self.0.iter().any(is_simulated) { Ok(()) } else { self.check(id, place) }
    }

    /// Checks the fallbacks that are set for individual models.
    pub(in crate::config) fn check_fallbacks(&self, files: &[ProviderFile]) -> Result<(), ConfigError> {
        files.iter().flat_map(ProviderFile::fallbacks).try_for_each(|(model, found)| {
            self.check_all(found)?;
            refuse_itself(&model, &found.value, &found.place)
        })
    }

    /// The settings of `[verify]`; `chosen` supplies panel and extractor where the file leaves them open.
    pub(in crate::config) fn verify(
        &self,
        file: &VerifyFile,
        chosen: &Chosen,
        origins: &mut Origins,
    ) -> Result<Settings, ConfigError> {
        let general = self.domain(&file.general.completed_by(&file.base), chosen, "verify", origins)?;
        let legal = self.domain(&file.legal.completed_by(&file.base), chosen, LEGAL, origins)?;
        let mut settings = Settings { general, legal, ..Settings::default() };
        file.all.apply("verify", &mut settings, origins);
        Ok(settings)
    }

    fn domain(
        &self,
        file: &PanelTable,
        chosen: &Chosen,
        table: &str,
        origins: &mut Origins,
    ) -> Result<PanelSettings, ConfigError> {
        for field in ["panel", "standby", "extractor", "extractor_fallbacks", "auditor"] {
            origins.set(dotted(table, field), Origin::Chosen);
        }
        let mut settings = PanelSettings::default();
        file.apply(table, &mut settings, origins);
        match &file.panel {
            Some(found) => self.check_panel(found)?,
            None => settings.panel.clone_from(&chosen.panel),
        }
        match &file.standby {
            Some(found) => self.check_list(found)?,
            None if file.panel.is_some() => {}
            None => settings.standby.clone_from(&chosen.standby),
        }
        match &file.extractor_fallbacks {
            Some(found) => self.check_list(found)?,
            None if file.extractor.is_some() || chosen.extractor.is_some() => {}
            None => {
                let others = settings.panel.iter().skip(1).take(EXTRACTOR_FALLBACKS);
                settings.extractor_fallbacks = others.cloned().collect();
            }
        }
        if let Some(found) = &file.extractor {
            self.check(&found.value, &found.place)?;
        } else {
            let extractor = chosen.extractor.as_ref().or(settings.panel.first());
            settings.extractor = extractor.cloned().unwrap_or_default();
        }
        match &file.auditor {
            Some(found) if found.value == NO_AUDITOR => settings.auditor = None,
            Some(found) => self.check(&found.value, &found.place)?,
            None => {
                let others = settings.panel.iter().chain(&settings.standby);
                let auditor = chosen.auditor.clone();
                settings.auditor = auditor.or_else(|| other_provider(&settings.extractor, others));
            }
        }
        // A model cannot replace itself: it has just failed, or has already answered.
        settings.standby.retain(|id| !settings.panel.contains(id));
        settings.extractor_fallbacks.retain(|id| *id != settings.extractor);
        Ok(settings)
    }

    /// Checks a list of different models.
    pub(super) fn check_list(&self, found: &Located<Vec<String>>) -> Result<(), ConfigError> {
        self.check_all(found)?;
        refuse_duplicates(found)
    }

    fn check_panel(&self, found: &Located<Vec<String>>) -> Result<(), ConfigError> {
        self.check_list(found)?;
        let size = found.value.len();
        if u32::try_from(size).is_ok_and(|size| size <= MAX_MODELS) {
            return Ok(());
        }
        Err(found.place.error(&format!("names {size} models; a panel has at most {MAX_MODELS}")))
    }

    /// The settings of `[inference]`.
    pub(in crate::config) fn inference(
        &self,
        file: &ServerFile,
        origins: &mut Origins,
    ) -> Result<inference::Settings, ConfigError> {
        let mut settings = inference::Settings::default();
        file.inference.apply("inference", &mut settings, origins);
        for (model, list) in &file.fallbacks {
            self.check_pattern(&model.value, &model.place)?;
            for id in list {
                self.check_pattern(id, &model.place)?;
                if inference::is_pattern(id) && !inference::is_pattern(&model.value) {
                    let complaint = format!("has no `*` to match the one in `{}`", id.escape_debug());
                    return Err(model.place.error(&complaint));
                }
            }
            refuse_itself(&model.value, list, &model.place)?;
            origins
                .set(format!("inference.fallbacks.{}", values::quoted(&model.value)), model.place.origin());
            settings.fallbacks.insert(model.value.clone(), list.clone());
        }
        for pool in &file.pools {
            settings.pools.extend([pool.settings(self, origins)?]);
        }
        Ok(settings)
    }
}

/// The first of these models that another provider serves than `extractor`'s, else the first other model: it does not
/// share the extractor's blind spots.
fn other_provider<'a>(extractor: &str, models: impl Iterator<Item = &'a String> + Clone) -> Option<String> {
    let mut others = models.filter(|id| *id != extractor);
    let is_foreign = |id: &&String| model_id::provider(id) != model_id::provider(extractor);
    others.clone().find(is_foreign).or_else(|| others.next()).cloned()
}

/// The table of the legal domain.
pub(in crate::config) const LEGAL: &str = "verify.domains.legal";

/// A model cannot replace itself: it has just failed, and was asked again as often as `retries` allows.
fn refuse_itself(model: &str, fallbacks: &[String], place: &Location) -> Result<(), ConfigError> {
    if !fallbacks.iter().any(|id| id == model) {
        return Ok(());
    }
    let complaint = format!("names the model `{}` as its own fallback", model.escape_debug());
    Err(place.error(&complaint).hint("remove it; `retries` sets how often a model is asked again"))
}

fn refuse_duplicates(found: &Located<Vec<String>>) -> Result<(), ConfigError> {
    let list = &found.value;
    match list.iter().enumerate().find(|(index, id)| list[..*index].contains(id)) {
        Some((_, id)) => Err(found.place.error(&format!("names `{}` twice", id.escape_debug()))),
        None => Ok(()),
    }
}

/// The simulated panel for both domains, with the limits set in the file.
pub(in crate::config) fn sandbox(file: &VerifyFile, origins: &mut Origins) -> Result<Settings, ConfigError> {
    let open = |file: &PanelTable| PanelTable {
        extractor: None,
        extractor_fallbacks: None,
        auditor: None,
        panel: None,
        standby: None,
        ..file.clone()
    };
    let file = VerifyFile {
        all: file.all.clone(),
        base: open(&file.base),
        general: open(&file.general),
        legal: open(&file.legal),
    };
    Providers(&[]).verify(&file, &panel::sandbox(), origins)
}

/// Which models have no price of those that every verification asks: extractor, auditor and panel. With a budget, none
/// begins before all of them have one.
pub(in crate::config) fn unpriced(verify: &Settings, providers: &[providers::Settings]) -> Option<String> {
    let asked = |settings: &'_ PanelSettings| {
        let extractor = Some(settings.extractor.as_str()).filter(|id| !id.is_empty());
        let audit = extractor.into_iter().chain(settings.acting_auditor());
        audit.chain(settings.panel.iter().map(String::as_str)).map(str::to_owned).collect::<Vec<_>>()
    };
    let has_price = |id: &str| {
        let (provider, model) = model_id::split(id)?;
        providers.iter().find(|settings| settings.name == provider)?.price(id, model)
    };
    let mut unpriced: Vec<String> = Vec::new();
    for id in [&verify.general, &verify.legal].into_iter().flat_map(asked) {
        if has_price(&id).is_none() && !unpriced.contains(&id) {
            unpriced.push(id);
        }
    }
    (!unpriced.is_empty()).then(|| {
        format!(
            "the price of {} is unknown: keys and apps with a budget cannot verify until `input_usd_per_mtok` \
             and `output_usd_per_mtok` are set",
            unpriced.join(", ")
        )
    })
}

/// A warning where answers are to be verified, and there is no panel for it.
pub(in crate::config) fn unverifiable(verify: &Settings, inference: &inference::Settings) -> Option<String> {
    let is_wanted = inference.verify.is_some() || inference.pools.values().any(|pool| pool.verify.is_some());
    (is_wanted && !verify.general.is_usable()).then(|| {
        "answers are to be verified, but [verify] has no panel: with \"flag\" all are marked as failed, with \"block\" \
         none is given"
            .to_owned()
    })
}

/// Warnings on models in use, including fallbacks, that their provider retires soon or has retired.
pub(in crate::config) fn retirements(
    verify: &Settings,
    inference: &inference::Settings,
    providers: &[providers::Settings],
    now: Time,
) -> Vec<String> {
    const SOON: Duration = Duration::from_hours(60 * 24);
    let of_models =
        providers.iter().flat_map(|provider| provider.models.values()).flat_map(|model| &model.fallbacks);
    let of_pools = inference.pools.values().flat_map(|pool| pool.targets.iter().chain(&pool.fallbacks));
    let fallbacks = inference.fallbacks.values().flatten().chain(of_models).chain(of_pools);
    let mut used: Vec<&str> = verify.models().chain(fallbacks.map(String::as_str)).collect();
    used.sort_unstable();
    used.dedup();
    let today = now.utc_date();
    let soon = now.plus(SOON).utc_date();
    used.into_iter()
        .filter_map(|id| {
            let date = catalog::model(id)?.deprecation?;
            match date {
                _ if date <= today.as_str() => {
                    Some(format!("{id} was retired by its provider on {date}; choose another model"))
                }
                _ if date <= soon.as_str() => Some(format!("{id} will be retired by its provider on {date}")),
                _ => None,
            }
        })
        .collect()
}
