//! Counters of calls to models.
//!
//! Model names come from callers, and every name costs memory here and in whatever reads the page. So a model gets a
//! label of its own only if it is known beforehand or has answered, and the number of the latter is bounded; all other
//! models of a provider are counted together. Counting is a look-up and some additions, without a lock for models known
//! beforehand. The set of known models can grow while the server runs, and never shrinks: counts are not lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::page::{Page, Value};
use super::value::{Count, CountsByName as Outcomes, Histogram, Merge};
use super::{Breaker, BreakerState, table};
use crate::model_id;
use crate::money::NanoUsd;
use crate::net::workers::PerWorker;

/// How many models that are not known beforehand can get a label by answering.
const MAX_LEARNT: usize = 200;

/// The label of all other models. Two series of the same name would make the whole page unreadable, so a model with
/// this very name counts as one of them.
const OTHER: &str = "other";

const OK: &str = "ok";
/// No model was called.
const CACHED: &str = "cached";

/// The outcomes of attempts; a test ensures that the codes of all failures are listed.
const OUTCOMES: [&str; 22] = [
    OK,
    CACHED,
    "cancelled",
    "interrupted",
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
    /// As in the ledger.
    pub outcome: &'a str,
    /// Time from its beginning to its end.
    pub took: Duration,
    /// Time from its beginning to the first event of its stream.
    pub first_token: Option<Duration>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the completion.
    pub completion_tokens: u64,
    /// The part of the prompt that was read from the provider's cache.
    pub cached_tokens: u64,
    /// The part of the prompt that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// `None` where the price is unknown.
    pub cost: Option<NanoUsd>,
}

/// Counts calls to models.
#[derive(Debug, Default)]
pub struct Attempts {
    /// Swapped as a whole, and only while `learnt` is locked for writing: no model is in both.
    known: ArcSwap<Known>,
    /// Models that have answered without being known, by full identifier; at most [`MAX_LEARNT`].
    learnt: RwLock<HashMap<String, Arc<Model>>>,
}

/// The providers and models known beforehand.
#[derive(Clone, Debug, Default)]
struct Known {
    /// By full identifier.
    models: HashMap<String, Arc<Model>>,
    /// All other models, by provider.
    others: BTreeMap<String, Arc<Model>>,
}

/// The counts of a model, by worker.
type Model = PerWorker<Counts>;

#[derive(Debug)]
struct Counts {
    outcomes: Outcomes<{ OUTCOMES.len() }>,
    duration: Histogram,
    first_token: Histogram,
    prompt_tokens: Count,
    completion_tokens: Count,
    cached_tokens: Count,
    cache_write_tokens: Count,
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
            cached_tokens: Count::default(),
            cache_write_tokens: Count::default(),
            cost_nano_usd: Count::default(),
            unpriced: Count::default(),
            retries: Count::default(),
            fallbacks: Count::default(),
        }
    }
}

impl Attempts {
    /// Counters for `providers`, and for `models` by their full identifiers.
    pub(super) fn new(
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
    ) -> Self {
        let attempts = Self::default();
        attempts.add_models(providers, models);
        attempts
    }

    /// Adds counters for these; existing counts stay.
    pub(super) fn add_models(
        &self,
        providers: impl IntoIterator<Item = String>,
        models: impl IntoIterator<Item = String>,
    ) {
        let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
        let mut known = Known::clone(&self.known.load());
        for id in models.into_iter().filter(|id| !is_other(id)) {
            let so_far = learnt.remove(&id);
            known.models.entry(id).or_insert_with(|| so_far.unwrap_or_default());
        }
        for name in providers {
            known.others.entry(name).or_default();
        }
        self.known.store(Arc::new(known));
        drop(learnt);
    }

    /// Counts an attempt. Like all of these, it does nothing for an unknown provider.
    pub fn count(&self, attempt: &Attempt<'_>) {
        self.with_counts(attempt.model, attempt.outcome == OK, |model| model.count(attempt));
    }

    /// Counts a retry of a call to this model.
    pub fn count_retry(&self, id: &str) {
        self.with_counts(id, false, |model| model.retries.add(1));
    }

    /// Counts a call to another model in place of this one.
    pub fn count_fallback(&self, id: &str) {
        self.with_counts(id, false, |model| model.fallbacks.add(1));
    }

    /// Runs `work` on the counts of a model, which gets counts of its own if it has answered.
    fn with_counts(&self, id: &str, has_answered: bool, work: impl FnOnce(&Counts)) {
        let known = self.known.load();
        if let Some(model) = known.models.get(id) {
            return work(model.here());
        }
        let learnt = self.learnt.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(model) = learnt.or_else(|| has_answered.then(|| self.learn(id)).flatten()) {
            work(model.here());
        } else if let Some(others) = known.others.get(model_id::provider(id)) {
            work(others.here());
        }
    }

    fn learn(&self, id: &str) -> Option<Arc<Model>> {
        if is_other(id) {
            return None;
        }
        let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
        let known = self.known.load();
        if let Some(model) = known.models.get(id) {
            return Some(model.clone());
        }
        if !known.others.contains_key(model_id::provider(id)) {
            return None;
        }
        if learnt.len() >= MAX_LEARNT && !learnt.contains_key(id) {
            return None;
        }
        Some(learnt.entry(id.to_owned()).or_default().clone())
    }

    /// The labels of a breaker: its model's, or an empty model for a provider's breaker.
    fn labels_of(&self, breaker: &Breaker) -> Vec<String> {
        let Breaker { provider, model, .. } = breaker;
        let Some(model) = model else { return vec![provider.clone(), String::new()] };
        let id = format!("{provider}/{model}");
        let is_learnt = || self.learnt.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id);
        let has_own = self.known.load().models.contains_key(&id) || is_learnt();
        vec![provider.clone(), if has_own { model.clone() } else { OTHER.to_owned() }]
    }

    pub(super) fn write(&self, page: &mut Page, breakers: &[Breaker]) {
        // A consistent snapshot of both: no model may appear twice.
        let (learnt, known) = {
            let learnt = self.learnt.read().unwrap_or_else(PoisonError::into_inner);
            (learnt.clone(), self.known.load_full())
        };
        let own = known.models.iter().chain(&learnt).map(|(id, model)| (labels(id), model));
        let others = known.others.iter().map(|(name, model)| (vec![name.clone(), OTHER.to_owned()], model));
        let all = own.chain(others).map(|(labels, model)| (labels, Counts::merged(model.all())));
        let mut models: Vec<LabelledCounts> = all.filter(|(_, counts)| counts.is_in_use()).collect();
        models.sort_by(|(one, _), (other, _)| one.cmp(other));

        let outcomes = models.iter().flat_map(|(labels, model)| {
            model.outcomes.seen().map(|(outcome, count)| (append(labels, outcome), Value::Count(count)))
        });
        page.add(&table::ATTEMPTS, outcomes);
        page.add(&table::ATTEMPT_DURATION, durations(&models, |model| &model.duration));
        page.add(&table::FIRST_TOKEN, durations(&models, |model| &model.first_token));
        let tokens = models.iter().flat_map(|(labels, model)| {
            let kinds = [("prompt", &model.prompt_tokens), ("completion", &model.completion_tokens)];
            kinds.map(|(kind, count)| (append(labels, kind), Value::Count(count.get())))
        });
        page.add(&table::TOKENS, tokens);
        let cached = models.iter().flat_map(|(labels, model)| {
            let kinds = [("read", &model.cached_tokens), ("write", &model.cache_write_tokens)];
            kinds.map(|(kind, count)| (append(labels, kind), Value::Count(count.get())))
        });
        page.add(&table::CACHED_TOKENS, cached);
        let costs = models
            .iter()
            .map(|(labels, model)| (labels.clone(), Value::Amount(NanoUsd(model.cost_nano_usd.get()).usd())));
        page.add(&table::COST, costs);
        page.add(&table::UNPRICED, counts(&models, |model| &model.unpriced));
        page.add(&table::RETRIES, counts(&models, |model| &model.retries));
        page.add(&table::FALLBACKS, counts(&models, |model| &model.fallbacks));
        page.add(&table::BREAKER, self.breaker_states(breakers));
    }

    /// The state of each breaker; the worst of those that share labels.
    fn breaker_states(&self, breakers: &[Breaker]) -> impl Iterator<Item = (Vec<String>, Value)> {
        let mut states = BTreeMap::<Vec<String>, BreakerState>::new();
        for breaker in breakers {
            let state = states.entry(self.labels_of(breaker)).or_insert(breaker.state);
            *state = breaker.state.max(*state);
        }
        states.into_iter().map(|(labels, state)| (labels, Value::Count(state as u64)))
    }
}

impl Merge for Counts {
    fn merge(&self, other: &Self) {
        self.outcomes.merge(&other.outcomes);
        self.duration.merge(&other.duration);
        self.first_token.merge(&other.first_token);
        self.prompt_tokens.merge(&other.prompt_tokens);
        self.completion_tokens.merge(&other.completion_tokens);
        self.cached_tokens.merge(&other.cached_tokens);
        self.cache_write_tokens.merge(&other.cache_write_tokens);
        self.cost_nano_usd.merge(&other.cost_nano_usd);
        self.unpriced.merge(&other.unpriced);
        self.retries.merge(&other.retries);
        self.fallbacks.merge(&other.fallbacks);
    }
}

impl Counts {
    fn count(&self, attempt: &Attempt<'_>) {
        self.outcomes.add(attempt.outcome);
        if attempt.outcome != CACHED {
            self.duration.observe(attempt.took);
        }
        if let Some(first_token) = attempt.first_token {
            self.first_token.observe(first_token);
        }
        self.prompt_tokens.add(attempt.prompt_tokens);
        self.completion_tokens.add(attempt.completion_tokens);
        if attempt.cached_tokens > 0 || attempt.cache_write_tokens > 0 {
            self.cached_tokens.add(attempt.cached_tokens);
            self.cache_write_tokens.add(attempt.cache_write_tokens);
        }
        match attempt.cost {
            Some(cost) => self.cost_nano_usd.add(cost.0),
            // Without usage there is no cost, at any price.
            None if attempt.prompt_tokens == 0 && attempt.completion_tokens == 0 => {}
            None => self.unpriced.add(1),
        }
    }

    fn is_in_use(&self) -> bool {
        self.outcomes.seen().next().is_some() || self.retries.get() > 0 || self.fallbacks.get() > 0
    }
}

/// A model's labels and counts.
type LabelledCounts = (Vec<String>, Counts);

fn counts(
    models: &[LabelledCounts],
    of: fn(&Counts) -> &Count,
) -> impl Iterator<Item = (Vec<String>, Value)> {
    models.iter().map(move |(labels, model)| (labels.clone(), Value::Count(of(model).get())))
}

/// The durations of models that have any.
fn durations(
    models: &[LabelledCounts],
    of: fn(&Counts) -> &Histogram,
) -> impl Iterator<Item = (Vec<String>, Value)> {
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

fn append(labels: &[String], last: &str) -> Vec<String> {
    labels.iter().cloned().chain([last.to_owned()]).collect()
}
