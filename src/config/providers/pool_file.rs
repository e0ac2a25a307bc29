//! `[models.NAME]`: names of the operator's own for models.

use super::models::Providers;
use crate::api::guard::Guard;
use crate::config::ConfigError;
use crate::config::sources::origin::Origins;
use crate::config::sources::reader::{Located, Location, Section, quoted_unless_bare};
use crate::config::sources::table::{Table, settings_table};
use crate::config::sources::values;
use crate::inference::{Balance, Pool};
use crate::model_id;

settings_table! {
    /// One `[models.NAME]`.
    struct PoolTable for Pool {
        /// The models behind the name.
        targets: Vec<String> = texts(), such as "[\"openai/gpt-5.4-mini\", \"openai/gpt-5.4\"]";
        /// Which target is asked: "first" (in this order), "weighted" (at random) or "least_busy". Paused targets come
        /// last.
        balance: Balance = parsed(BALANCES, balance);
        /// For "weighted": the shares of the targets, in their order; 0: only when all others fail. Default: equal
        /// shares.
        weights: Vec<u32> = numbers(0..=1_000_000), such as "[3, 1]";
        /// If true, all requests of a conversation go to the same target unless it is paused, so that the provider's
        /// prompt cache helps.
        affinity: bool = flag();
        /// Asked, in order, when all targets fail.
        fallbacks: Vec<String> = texts();
        /// Like `verify` in [inference]; the stricter of the two applies.
        verify: Option<Guard> = parsed(values::GUARD, values::guard);
    }
}

/// One `[models.NAME]`, with its name.
pub(in crate::config) struct PoolFile {
    name: Located<String>,
    table: PoolTable,
}

/// What `balance` expects.
const BALANCES: &str = "\"first\", \"weighted\" or \"least_busy\"";

fn balance(text: &str) -> Option<Balance> {
    Balance::NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, balance)| balance)
}

impl values::Written for Balance {
    fn written(&self) -> String {
        let name = Self::NAMES.into_iter().find(|(_, balance)| balance == self);
        name.map(|(name, _)| values::quoted(name)).unwrap_or_default()
    }
}

/// Reads `[models]`.
pub(in crate::config) fn read_all(section: &Section<'_>) -> Result<Vec<PoolFile>, ConfigError> {
    section.named_sections()?.into_iter().map(|(name, section)| pool(name, section)).collect()
}

fn pool(name: Located<String>, mut section: Section<'_>) -> Result<PoolFile, ConfigError> {
    if name.value.contains('/') {
        let error = name.place.error("is a name for models and must not contain `/`");
        return Err(error.hint("settings of one model are in [providers.NAME.models.\"MODEL\"]"));
    }
    if !model_id::is_pool_name(&name.value) {
        let max = model_id::MAX_NAME_BYTES;
        let complaint = format!("must be a name for models: one word of at most {max} bytes without `*`");
        return Err(name.place.error(&complaint));
    }
    let table = PoolTable::read(&mut section)?;
    section.finish()?;
    Ok(PoolFile { name, table })
}

/// The name of a pool's table, as listings show it.
pub(in crate::config) fn table(name: &str) -> String {
    format!("models.{}", quoted_unless_bare(name))
}

impl PoolFile {
    /// Its name and settings, if its models are those of `providers`.
    pub(in crate::config) fn settings(
        &self,
        providers: &Providers<'_>,
        origins: &mut Origins,
    ) -> Result<(String, Pool), ConfigError> {
        let Self { name, table: file } = self;
        let Some(targets) = file.targets.as_ref().filter(|found| !found.value.is_empty()) else {
            let error = name.place.error("needs `targets`, one model or more");
            return Err(error.hint("targets = [\"openai/gpt-5.4-mini\"]"));
        };
        let mut pool = Pool::default();
        file.apply(&table(&name.value), &mut pool, origins);
        providers.check_list(targets)?;
        if let Some(fallbacks) = &file.fallbacks {
            providers.check_list(fallbacks)?;
            if let Some(id) = fallbacks.value.iter().find(|id| targets.value.contains(id)) {
                let complaint = format!("names `{}`, which is a target already", id.escape_debug());
                return Err(fallbacks.place.error(&complaint));
            }
        }
        if let Some(weights) = &file.weights {
            check_weights(&pool, &weights.place)?;
        }
        Ok((name.value.clone(), pool))
    }
}

fn check_weights(pool: &Pool, place: &Location) -> Result<(), ConfigError> {
    let (weights, targets) = (pool.weights.len(), pool.targets.len());
    if weights != targets {
        return Err(
            place.error(&format!("has {weights} numbers for {targets} targets; set one for each target"))
        );
    }
    if pool.weights.iter().all(|weight| *weight == 0) {
        return Err(place.error("has no number above 0"));
    }
    if pool.balance != Balance::Weighted {
        return Err(place.error("needs balance = \"weighted\""));
    }
    Ok(())
}
