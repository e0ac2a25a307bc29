//! Calls to models.
//!
//! Names of models come from callers, and a name costs memory here and in whatever reads the page. So a model gets a
//! label of its own only if it is known beforehand or has answered, and of the latter only so many do; all others of
//! a provider are counted together. Counting is a look-up and some additions, without a lock for models that are
//! known beforehand. What is known can grow while the server runs, and never shrinks: counts are not lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::page::{Page, Value};
use super::table;
use super::value::{Count, Histogram, Named as Outcomes, Sum};
use super::{Breaker, BreakerState};
use crate::model_id;
use crate::money::NanoUsd;
use crate::workers::Each;

/// How many models that were not known beforehand may get a label by answering.
const MOST_MET: usize = 200;

/// The label of all other models. Two series of one name would make the whole page unreadable, so a model that is
/// called like this counts as one of them.
const OTHER: &str = "other";

const OK: &str = "ok";

/// What attempts end with; that a failure's codes stand here is held by a test.
const OUTCOMES: [&str; 20] = [
    OK,
    "cancelled",
    "auth_failed",
    "quota_exhausted",
    "rate_limited",
    "overloaded",
    "unknown_model",
    "context_overflow",
    "rejected",
    "unsupported",
    "refused",
    "provider_error",
    "malformed",
    "no_answer",
    "too_large",
    "unreachable",
    "no_descriptors",
    "cut",
    "timeout",
    OTHER,
];

/// An attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The model's full identifier.
    pub model: &'a str,
    /// As the ledger has it.
    pub outcome: &'a str,
    /// From its beginning to its end.
    pub took: Duration,
    /// From its beginning to the first event of its stream.
    pub first_token: Option<Duration>,
    /// Of the prompt.
    pub prompt_tokens: u64,
    /// Of the completion.
    pub completion_tokens: u64,
    /// `None` where the price is unknown.
    pub cost: Option<NanoUsd>,
}

/// Counts calls to models.
#[derive(Debug, Default)]
pub struct Attempts {
    /// Swapped whole, and only while `met` is locked for writing: no model is in both.
    named: ArcSwap<Named>,
    /// Models that have answered without being known, by full identifier; at most [`MOST_MET`].
    met: RwLock<HashMap<String, Arc<Model>>>,
}

/// What is known beforehand.
#[derive(Clone, Debug, Default)]
struct Named {
    /// By full identifier.
    known: HashMap<String, Arc<Model>>,
    /// All other models, by provider.
    others: BTreeMap<String, Arc<Model>>,
}

/// By worker.
type Model = Each<Counts>;

#[derive(Debug)]
struct Counts {
    outcomes: Outcomes<{ OUTCOMES.len() }>,
    duration: Histogram,
    first_token: Histogram,
    prompt_tokens: Count,
    completion_tokens: Count,
    cost_nano_usd: Count,
    unpriced: Count,
    retries: Count,
    fallbacks: Count,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            outcomes: Outcomes::new(&OUTCOMES),
            duration: Histogram::default(),
            first_token: Histogram::default(),
            prompt_tokens: Count::default(),
            completion_tokens: Count::default(),
            cost_nano_usd: Count::default(),
            unpriced: Count::default(),
            retries: Count::default(),
            fallbacks: Count::default(),
        }
    }
}

impl Attempts {
    /// Counts for `providers`, and for `models` by their full identifiers.
    pub(super) fn new(
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
    ) -> Self {
        let attempts = Self::default();
        attempts.add_models(providers, models);
        attempts
    }

    /// Counts for these as well from now on; what was counted so far stays.
    pub(super) fn add_models(
        &self,
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
    ) {
        let mut met = self.met.write().unwrap_or_else(PoisonError::into_inner);
        let mut named = Named::clone(&self.named.load());
        for id in models.into_iter().filter(|id| !is_other(id)) {
            let so_far = met.remove(&id);
            named.known.entry(id).or_insert_with(|| so_far.unwrap_or_default());
        }
        for name in providers {
            named.others.entry(name).or_default();
        }
        self.named.store(Arc::new(named));
        drop(met);
    }

    /// Counts an attempt; at a provider that is not among ours it does nothing, as all of these do.
    pub fn count(&self, attempt: &Attempt<'_>) {
        self.on(attempt.model, attempt.outcome == OK, |model| model.count(attempt));
    }

    /// Counts a call that is made again to the same model.
    pub fn count_retry(&self, id: &str) {
        self.on(id, false, |model| model.retries.add(1));
    }

    /// Counts that another model is asked in the place of this one.
    pub fn count_fallback(&self, id: &str) {
        self.on(id, false, |model| model.fallbacks.add(1));
    }

    /// Does something with the counts of a model, which gets some of its own if it has answered.
    fn on(&self, id: &str, has_answered: bool, work: impl FnOnce(&Counts)) {
        let named = self.named.load();
        if let Some(model) = named.known.get(id) {
            return work(model.here());
        }
        let met = self.met.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(model) = met.or_else(|| has_answered.then(|| self.meet(id)).flatten()) {
            work(model.here());
        } else if let Some(others) = named.others.get(model_id::provider(id)) {
            work(others.here());
        }
    }

    fn meet(&self, id: &str) -> Option<Arc<Model>> {
        if is_other(id) {
            return None;
        }
        let mut met = self.met.write().unwrap_or_else(PoisonError::into_inner);
        let named = self.named.load();
        if let Some(model) = named.known.get(id) {
            return Some(model.clone());
        }
        if !named.others.contains_key(model_id::provider(id)) {
            return None;
        }
        if met.len() >= MOST_MET && !met.contains_key(id) {
            return None;
        }
        Some(met.entry(id.to_owned()).or_default().clone())
    }

    /// The labels of a breaker: those of its model, or none for a model where it is its provider's.
    fn labels_of(&self, breaker: &Breaker) -> Vec<String> {
        let Breaker { provider, model, .. } = breaker;
        let Some(model) = model else { return vec![provider.clone(), String::new()] };
        let id = format!("{provider}/{model}");
        let is_met = || self.met.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id);
        let has_own = self.named.load().known.contains_key(&id) || is_met();
        vec![provider.clone(), if has_own { model.clone() } else { OTHER.to_owned() }]
    }

    pub(super) fn write(&self, page: &mut Page, breakers: &[Breaker]) {
        // Both as of one moment: a model must not stand there twice.
        let (met, named) = {
            let met = self.met.read().unwrap_or_else(PoisonError::into_inner);
            (met.clone(), self.named.load_full())
        };
        let own = named.known.iter().chain(&met).map(|(id, model)| (labels(id), model));
        let others = named.others.iter().map(|(name, model)| (vec![name.clone(), OTHER.to_owned()], model));
        let all = own.chain(others).map(|(labels, model)| (labels, Counts::of(model.all())));
        let mut models: Vec<Listed> = all.filter(|(_, counts)| counts.is_in_use()).collect();
        models.sort_by(|(one, _), (other, _)| one.cmp(other));

        let outcomes = models.iter().flat_map(|(labels, model)| {
            model.outcomes.seen().map(|(outcome, count)| (with(labels, outcome), Value::Count(count)))
        });
        page.add(&table::ATTEMPTS, outcomes);
        page.add(&table::ATTEMPT_DURATION, durations(&models, |model| &model.duration));
        page.add(&table::FIRST_TOKEN, durations(&models, |model| &model.first_token));
        let tokens = models.iter().flat_map(|(labels, model)| {
            let kinds = [("prompt", &model.prompt_tokens), ("completion", &model.completion_tokens)];
            kinds.map(|(kind, count)| (with(labels, kind), Value::Count(count.get())))
        });
        page.add(&table::TOKENS, tokens);
        let costs = models
            .iter()
            .map(|(labels, model)| (labels.clone(), Value::Amount(NanoUsd(model.cost_nano_usd.get()).usd())));
        page.add(&table::COST, costs);
        page.add(&table::UNPRICED, counts(&models, |model| &model.unpriced));
        page.add(&table::RETRIES, counts(&models, |model| &model.retries));
        page.add(&table::FALLBACKS, counts(&models, |model| &model.fallbacks));
        page.add(&table::BREAKER, self.worst(breakers));
    }

    /// The state of each breaker; of those under one label the worst.
    fn worst(&self, breakers: &[Breaker]) -> impl Iterator<Item = (Vec<String>, Value)> {
        let mut states = BTreeMap::<Vec<String>, BreakerState>::new();
        for breaker in breakers {
            let state = states.entry(self.labels_of(breaker)).or_insert(breaker.state);
            *state = breaker.state.max(*state);
        }
        states.into_iter().map(|(labels, state)| (labels, Value::Count(state as u64)))
    }
}

impl Sum for Counts {
    fn take_in(&self, other: &Self) {
        self.outcomes.take_in(&other.outcomes);
        self.duration.take_in(&other.duration);
        self.first_token.take_in(&other.first_token);
        self.prompt_tokens.take_in(&other.prompt_tokens);
        self.completion_tokens.take_in(&other.completion_tokens);
        self.cost_nano_usd.take_in(&other.cost_nano_usd);
        self.unpriced.take_in(&other.unpriced);
        self.retries.take_in(&other.retries);
        self.fallbacks.take_in(&other.fallbacks);
    }
}

impl Counts {
    fn count(&self, attempt: &Attempt<'_>) {
        self.outcomes.add(attempt.outcome);
        self.duration.observe(attempt.took);
        if let Some(first_token) = attempt.first_token {
            self.first_token.observe(first_token);
        }
        self.prompt_tokens.add(attempt.prompt_tokens);
        self.completion_tokens.add(attempt.completion_tokens);
        match attempt.cost {
            Some(cost) => self.cost_nano_usd.add(cost.0),
            // What used nothing costs nothing at any price.
            None if attempt.prompt_tokens == 0 && attempt.completion_tokens == 0 => {}
            None => self.unpriced.add(1),
        }
    }

    fn is_in_use(&self) -> bool {
        self.outcomes.seen().next().is_some() || self.retries.get() > 0 || self.fallbacks.get() > 0
    }
}

/// A model's counts behind its labels.
type Listed = (Vec<String>, Counts);

fn counts(models: &[Listed], of: fn(&Counts) -> &Count) -> impl Iterator<Item = (Vec<String>, Value)> {
    models.iter().map(move |(labels, model)| (labels.clone(), Value::Count(of(model).get())))
}

/// Of those that have any.
fn durations(models: &[Listed], of: fn(&Counts) -> &Histogram) -> impl Iterator<Item = (Vec<String>, Value)> {
    let readings = models.iter().map(move |(labels, model)| (labels, of(model).read()));
    let readings = readings.filter(|(_, reading)| reading.count > 0);
    readings.map(|(labels, reading)| (labels.clone(), Value::Histogram(reading)))
}

fn is_other(id: &str) -> bool {
    model_id::split(id).is_some_and(|(_, model)| model == OTHER)
}

fn labels(id: &str) -> Vec<String> {
    let (provider, model) = model_id::split(id).unwrap_or((id, ""));
    vec![provider.to_owned(), model.to_owned()]
}

fn with(labels: &[String], last: &str) -> Vec<String> {
    labels.iter().cloned().chain([last.to_owned()]).collect()
}
