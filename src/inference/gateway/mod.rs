//! The gateway: all configured providers behind one interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::{Instant, sleep};

use super::breaker::{BreakerReport, BreakerTable, CallTime, Threshold};
use super::followed::Followed;
use super::pool::Loads;
use super::upstream::{Started, Upstream};
use super::{Settings, max_cost, noted, retry};
use crate::clock::Clock;
use crate::model_id;
use crate::money::{NanoUsd, Price, Tokens, Usage};
use crate::providers::catalog::estimate;
use crate::providers::{self, Answer, CallPermit, Chat, FailedCall, Failure, Prompt, Provider, SetupError};
use crate::usage::{Attempt, BudgetError, Meter, Purpose};

/// A model that can be called.
#[derive(Clone, Debug)]
pub struct Target {
    /// `<provider>/<model_name>`.
    pub id: String,
    /// The configured name of its provider.
    pub provider: String,
    /// Whether its answers are simulated.
    pub sandbox: bool,
    /// `None` where it is unknown.
    pub price: Option<Price>,
}

/// All configured providers.
pub struct Gateway {
    /// By configured name. Entries whose settings did not change are shared with the previous gateway.
    providers: BTreeMap<String, Arc<ProviderEntry>>,
    settings: Settings,
    /// Models to list that the configuration names in other places.
    extra_models: Vec<String>,
    loads: Loads,
}

/// A configured provider and its circuit breakers.
pub(super) struct ProviderEntry {
    pub(super) provider: Provider,
    pub(super) breakers: Arc<BreakerTable>,
}

/// One call for a verification, with all its attempts.
struct Call<'a> {
    id: &'a str,
    upstream: Upstream<'a>,
    prompt: &'a Prompt<'a>,
    purpose: Purpose,
}

impl Gateway {
    /// A gateway to `providers`; opens no connections. Dates in providers' responses are relative to `clock`.
    ///
    /// # Errors
    /// If a provider cannot be set up, for instance because of an invalid address.
    pub fn new(providers: Vec<providers::Settings>, clock: Clock) -> Result<Self, SetupError> {
        Self::replacing(&Self::with_entries(BTreeMap::new()), providers, clock)
    }

    /// Like [`Gateway::new`], to replace `previous`: a provider of the same name keeps its open calls, which count
    /// towards the new limit, and its circuit breakers. If its server or key changed, its breakers start afresh, as
    /// what was learnt about another server or key says nothing about this one. Nothing in `previous` changes before
    /// [`Gateway::activate`].
    #[expect(clippy::needless_pass_by_value, reason = "a clock is handed over, as the settings are")]
    pub fn replacing(
        previous: &Self,
        providers: Vec<providers::Settings>,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let mut by_name = BTreeMap::new();
        for settings in providers {
            let name = settings.name.clone();
            let entry = match previous.providers.get(&name) {
                Some(entry) if entry.provider.settings().is_same_as(&settings) => entry.clone(),
                previous => Arc::new(ProviderEntry::replacing(
                    previous.map(|entry| &**entry),
                    settings,
                    clock.clone(),
                )?),
            };
            if by_name.insert(name.clone(), entry).is_some() {
                let message = "is configured twice; give each provider its own name".to_owned();
                return Err(SetupError { provider: name, message });
            }
        }
        Ok(Self { loads: previous.loads.clone(), ..Self::with_entries(by_name) })
    }

    fn with_entries(providers: BTreeMap<String, Arc<ProviderEntry>>) -> Self {
        let (settings, loads) = (Settings::default(), Loads::default());
        Self { providers, settings, extra_models: Vec::new(), loads }
    }

    /// The gateway with these settings for chat completions. It also lists `extra_models`, those that the configuration
    /// names in other places.
    #[must_use]
    pub fn with_settings(self, settings: Settings, extra_models: Vec<String>) -> Self {
        let loads = self.loads.replacing(settings.pools.values());
        Self { settings, extra_models, loads, ..self }
    }

    /// Applies the concurrency limits and breaker thresholds of providers that replaced those of a previous gateway.
    pub fn activate(&self) {
        for ProviderEntry { provider, breakers } in self.providers.values().map(|entry| &**entry) {
            provider.activate();
            breakers.set_threshold(Threshold::of(&provider.settings().call_policy));
        }
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) const fn loads(&self) -> &Loads {
        &self.loads
    }

    pub(super) fn extra_models(&self) -> &[String] {
        &self.extra_models
    }

    pub(super) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values().map(|entry| &entry.provider)
    }

    /// The model with this identifier, if its provider is configured. Any model name of a configured provider is
    /// accepted, as providers add models faster than catalogues follow; the sandbox accepts only its own.
    pub fn target(&self, id: &str) -> Option<Target> {
        let (provider, model) = self.find(id)?;
        Some(Target {
            id: id.to_owned(),
            provider: provider.name().to_owned(),
            sandbox: provider.is_sandbox(),
            price: provider.price(id, model),
        })
    }

    /// Whether a request for this model can be answered: whether [`Gateway::target`] would find it, or it is a pool.
    pub fn knows(&self, id: &str) -> bool {
        self.pool(id).is_some() || self.find_entry(id).is_some()
    }

    /// The circuit breakers that have recorded failures, by provider and model. All others are closed.
    pub fn breakers(&self) -> Vec<BreakerReport> {
        let now = Instant::now();
        self.providers.values().flat_map(|entry| entry.breakers.report(now)).collect()
    }

    /// Asks a model, with retries while `deadline` allows, and books each attempt on `meter`. A paused model is not
    /// called. A rate limit is left to the caller, who knows what other calls wait for the same model.
    ///
    /// An attempt is booked with the token usage that the provider reports, otherwise with an estimate: prompt and
    /// answer on success, the prompt alone if the model may have done work, and zero if it certainly has not.
    ///
    /// # Errors
    /// The last failure. [`Failure::UnknownModel`] if the identifier names no configured provider.
    // Not an `async fn`, which would store its arguments twice while it waits.
    pub fn ask<'a>(
        &'a self,
        id: &'a str,
        prompt: &'a Prompt<'a>,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send + 'a {
        // The loop takes what it needs from `call`, as every local variable takes up memory in each waiting future.
        let call = self.find_entry(id).map(|(entry, model)| {
            let time = CallTime { requested: Instant::now(), deadline };
            let call_policy = entry.provider.call_policy(model);
            Call { id, upstream: Upstream::new(entry, model, &call_policy, time, meter), prompt, purpose }
        });
        async move {
            let Some(call) = &call else { return Err(Failure::UnknownModel) };
            let mut retries = 0;
            let mut failed: Option<Box<Failure>> = None;
            loop {
                let Started { permit, ticket, attempt, .. } =
                    match call.upstream.start(Instant::now(), None, |now| call.reserve(now)).await {
                        Ok(started) => started,
                        Err(not_started) => return Err(failed.map_or(not_started, |failed| *failed)),
                    };
                if failed.is_some() {
                    call.upstream.meter.count_retry(call.id);
                }
                let failure = match call.attempt(attempt, permit).await {
                    Ok(answer) => {
                        ticket.succeeded();
                        return Ok(answer);
                    }
                    Err(failure) => failure,
                };
                ticket.failed(&failure, Instant::now());
                let pause = match failure {
                    Failure::RateLimited { .. } => None,
                    _ => call.upstream.pause(&failure, retries),
                };
                retry::log_failed_attempt(call.id, &failure, pause);
                let Some(pause) = pause else {
                    return Err(failure);
                };
                sleep(pause).await;
                retries += 1;
                failed = Some(Box::new(failure));
            }
        }
    }

    /// The most that one call to `id` may cost; `None` if its price is unknown.
    pub fn max_cost(&self, id: &str, chat: &Chat) -> Option<NanoUsd> {
        let (provider, model) = self.find(id)?;
        max_cost::for_chat(chat, provider, model, provider.price(id, model))
    }

    /// How many concurrent calls the provider of `id` allows; `None` if `id` names no configured provider.
    pub fn max_concurrent_calls(&self, id: &str) -> Option<usize> {
        self.find(id).map(|(provider, _)| provider.settings().max_concurrent)
    }

    /// Whether this gateway calls the same server as `other` for a model, with the same key, so that what was learnt
    /// about it still holds.
    pub fn has_same_target(&self, other: &Self, id: &str) -> bool {
        let (Some((here, _)), Some((there, _))) = (self.find(id), other.find(id)) else { return false };
        here.settings().has_same_target(there.settings())
    }

    /// Where a model is called: the format and the address of its provider's API, and its name there. It may be another
    /// model once this has changed.
    pub fn place(&self, id: &str) -> Option<String> {
        let (provider, model) = self.find(id)?;
        let settings = provider.settings();
        Some(format!("{} {} {model}", settings.kind.name(), settings.base_url))
    }

    /// The provider that an identifier names, and that provider's name for the model.
    pub(super) fn find<'a>(&self, id: &'a str) -> Option<(&Provider, &'a str)> {
        self.find_entry(id).map(|(entry, model)| (&entry.provider, model))
    }

    pub(super) fn find_entry<'a>(&self, id: &'a str) -> Option<(&Arc<ProviderEntry>, &'a str)> {
        let (provider, model) = model_id::split(id)?;
        let entry = self.providers.get(provider)?;
        entry.provider.may_serve(model).then_some((entry, model))
    }
}

impl ProviderEntry {
    fn replacing(
        previous: Option<&Self>,
        settings: providers::Settings,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let threshold = Threshold::of(&settings.call_policy);
        let fresh = || Arc::new(BreakerTable::new(settings.name.clone(), threshold));
        let unchanged = previous.filter(|entry| entry.provider.settings().has_same_target(&settings));
        let breakers = unchanged.map_or_else(fresh, |entry| entry.breakers.clone());
        let provider = Provider::new(settings, clock)?;
        let provider = match previous {
            Some(entry) => provider.replacing(&entry.provider),
            None => provider,
        };
        Ok(Self { provider, breakers })
    }
}

impl Call<'_> {
    /// Reserves the most that an attempt may cost.
    fn reserve(&self, now: Instant) -> Result<Attempt, BudgetError> {
        let Upstream { entry, model, meter, .. } = self.upstream;
        let provider = &entry.provider;
        let price = provider.price(self.id, model);
        let max_cost = || self.prompt.read(|chat| max_cost::for_chat(chat, provider, model, price));
        meter.attempt(self.id, self.purpose, price, now.into_std(), max_cost)
    }

    /// The call itself, which goes on without whoever asks.
    fn owned(
        &self,
        permit: CallPermit,
    ) -> impl Future<Output = Result<Answer, FailedCall>> + Send + 'static + use<> {
        let up = &self.upstream;
        let (entry, model) = (up.entry.clone(), up.model.to_owned());
        let (prompt, deadline) = (self.prompt.kept(), up.time.deadline);
        async move { entry.provider.complete(permit, &prompt, &model, deadline).await }
    }

    /// Makes an attempt that has been started. Not an `async fn`, which would store its arguments twice while it waits.
    fn attempt(
        &self,
        mut attempt: Attempt,
        permit: CallPermit,
    ) -> impl Future<Output = Result<Answer, Failure>> {
        let prompt = self.prompt.tokens();
        attempt.set_expected(Tokens::of_prompt(prompt));
        async move {
            let up = &self.upstream;
            let (attempt, result) = if attempt.is_paid_by_budget() {
                // Boxed, as only these calls need room for it.
                Box::pin(Followed::new(attempt, self.owned(permit))).await
            } else {
                let call = up.entry.provider.complete(permit, self.prompt, up.model, up.time.deadline);
                let result = call.await;
                (Some(attempt), result)
            };
            let (outcome, usage) = match &result {
                Ok(answer) => {
                    let estimated = || Tokens::new(prompt, estimate::text_tokens(&answer.text));
                    let usage = answer.usage.as_deref().copied().map(Usage::reported);
                    ("ok", usage.unwrap_or_else(|| Usage::estimated(estimated())))
                }
                Err(FailedCall { failure, usage }) => {
                    let estimated = if failure.may_have_cost() { prompt } else { 0 };
                    let estimated = || Usage::estimated(Tokens::of_prompt(estimated));
                    (failure.code(), usage.map_or_else(estimated, Usage::reported))
                }
            };
            if let Some(attempt) = attempt {
                if let Ok(answer) = &result {
                    attempt.note(|span| noted::answer(span, self.prompt, answer));
                }
                attempt.finish(outcome, usage);
            }
            result.map_err(|failed| failed.failure)
        }
    }
}

#[cfg(test)]
mod tests;
