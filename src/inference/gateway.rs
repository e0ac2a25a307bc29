//! All configured providers, behind one door.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::{Instant, sleep};

use super::breaker::{BreakerReport, Span, Table, Threshold};
use super::upstream::{Started, Upstream};
use super::{Settings, most, retry};
use crate::clock::Clock;
use crate::money::{NanoUsd, Price, Tokens};
use crate::providers::{
    self, Answer, Chat, FailedCall, Failure, Permit, Provider, SetupError, catalog, estimate,
};
use crate::usage::{Attempt, Meter, Purpose, Unpaid};

/// Simulated answers are free, which is known, not assumed.
const FREE: Price = Price { input_per_mtok: NanoUsd(0), output_per_mtok: NanoUsd(0) };

/// A model that can be asked.
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
    /// By configured name. Shared with the gateway that this one follows, where nothing was changed.
    providers: BTreeMap<String, Arc<Known>>,
    settings: Settings,
    named: Vec<String>,
}

/// A configured provider, and how it fares.
pub(super) struct Known {
    pub(super) provider: Provider,
    pub(super) breakers: Arc<Table>,
}

/// One call to be made, however many attempts it takes.
struct Call<'a> {
    id: &'a str,
    upstream: Upstream<'a>,
    chat: &'a Chat,
    purpose: Purpose,
}

impl Gateway {
    /// A gateway to `providers`; nothing is connected yet. The clock is what dates in providers' answers are
    /// relative to.
    ///
    /// # Errors
    /// If a provider cannot be set up, such as for a senseless address.
    pub fn new(providers: Vec<providers::Settings>, clock: Clock) -> Result<Self, SetupError> {
        Self::following(&Self::of(BTreeMap::new()), providers, clock)
    }

    /// As [`Gateway::new`], in the place of `before`: a provider of the same name goes on as it stands there, with its
    /// calls under way and its circuit breakers. What was found out of another server, or with another key, says nothing
    /// of this one: then its breakers begin anew. Of `before` nothing changes until [`Gateway::take_effect`].
    #[expect(clippy::needless_pass_by_value, reason = "a clock is handed over, as the settings are")]
    pub fn following(
        before: &Self,
        providers: Vec<providers::Settings>,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let mut by_name = BTreeMap::new();
        for settings in providers {
            let name = settings.name.clone();
            let known = match before.providers.get(&name) {
                Some(known) if known.provider.settings().is_same_as(&settings) => known.clone(),
                before => Arc::new(Known::following(before.map(|known| &**known), settings, clock.clone())?),
            };
            if by_name.insert(name.clone(), known).is_some() {
                let message = "is configured twice; give each provider a name of its own".to_owned();
                return Err(SetupError { provider: name, message });
            }
        }
        Ok(Self::of(by_name))
    }

    fn of(providers: BTreeMap<String, Arc<Known>>) -> Self {
        Self { providers, settings: Settings::default(), named: Vec::new() }
    }

    /// The gateway with these settings for chat completions. Models that the configuration names elsewhere are `named`:
    /// they are listed as well.
    #[must_use]
    pub fn with_settings(self, settings: Settings, named: Vec<String>) -> Self {
        Self { settings, named, ..self }
    }

    /// Holds the providers that have taken the places of others to their own limits.
    pub fn take_effect(&self) {
        for Known { provider, breakers } in self.providers.values().map(|known| &**known) {
            provider.take_effect();
            breakers.set_threshold(threshold_of_whole(provider.settings()));
        }
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn named(&self) -> &[String] {
        &self.named
    }

    pub(super) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values().map(|known| &known.provider)
    }

    /// The model with this identifier, if its provider is configured. Any model name of a configured provider is
    /// accepted, as providers add models faster than catalogues follow; the sandbox knows only its own.
    pub fn target(&self, id: &str) -> Option<Target> {
        let (provider, model) = self.find(id)?;
        Some(Target {
            id: id.to_owned(),
            provider: provider.name().to_owned(),
            sandbox: provider.is_sandbox(),
            price: price(id, provider, model),
        })
    }

    /// Whether [`Gateway::target`] would find this model.
    pub fn knows(&self, id: &str) -> bool {
        self.known(id).is_some()
    }

    /// The circuit breakers that have something to remember, by provider and model. All others are closed.
    pub fn breakers(&self) -> Vec<BreakerReport> {
        let now = Instant::now();
        self.providers.values().flat_map(|known| known.breakers.report(now)).collect()
    }

    /// Asks a model, with retries while `deadline` allows, and books each attempt on `meter`. One that is paused is
    /// not asked.
    ///
    /// An attempt is booked with the tokens its provider reports, else with an estimate: of prompt and answer on
    /// success, of the prompt alone where the model may have worked, and zero where it surely did not.
    ///
    /// # Errors
    /// With the last failure. [`Failure::UnknownModel`] for an identifier that names no configured provider.
    // No `async fn`, which would keep its arguments twice while it waits.
    pub fn ask<'a>(
        &'a self,
        id: &'a str,
        chat: &'a Chat,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send + 'a {
        // What each round needs is asked of the call, as whatever has a name here is kept for each call that waits.
        let call = self.known(id).map(|(known, model)| {
            let span = Span { asked: Instant::now(), deadline };
            let call_policy = known.provider.call_policy(model);
            Call { id, upstream: Upstream::new(known, model, &call_policy, span, meter), chat, purpose }
        });
        async move {
            let Some(call) = &call else { return Err(Failure::UnknownModel) };
            let mut retries = 0;
            let mut failed: Option<Box<Failure>> = None;
            loop {
                let Started { permit, ticket, attempt, .. } =
                    match call.upstream.start(Instant::now(), None, |now| call.begin(now)).await {
                        Ok(started) => started,
                        Err(refused) => return Err(failed.map_or(refused, |failed| *failed)),
                    };
                if failed.is_some() {
                    call.upstream.meter.retried(call.id);
                }
                let failure = match call.attempt(attempt, permit).await {
                    Ok(answer) => {
                        ticket.succeeded();
                        return Ok(answer);
                    }
                    Err(failure) => failure,
                };
                ticket.failed(&failure, Instant::now());
                let pause = call.upstream.pause(&failure, retries);
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

    /// The most that asking `id` once may cost. `None` where that cannot be told: its price is not known.
    pub fn most(&self, id: &str, chat: &Chat) -> Option<NanoUsd> {
        let (provider, model) = self.find(id)?;
        most::of_chat(chat, provider, model, price(id, provider, model))
    }

    /// How many calls the provider of `id` takes at once. `None` for an identifier that names no configured provider.
    pub fn concurrency(&self, id: &str) -> Option<usize> {
        self.find(id).map(|(provider, _)| provider.settings().max_concurrent)
    }

    pub(super) fn find<'a>(&self, id: &'a str) -> Option<(&Provider, &'a str)> {
        self.known(id).map(|(known, model)| (&known.provider, model))
    }

    pub(super) fn known<'a>(&self, id: &'a str) -> Option<(&Known, &'a str)> {
        // Three times a request; the general way to look for a character takes four times as long in a short text.
        let at = id.bytes().position(|byte| byte == b'/')?;
        let (provider, model) = (&id[..at], &id[at + 1..]);
        let known = &**self.providers.get(provider)?;
        known.provider.may_serve(model).then_some((known, model))
    }
}

impl Known {
    fn following(
        before: Option<&Self>,
        settings: providers::Settings,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let threshold = threshold_of_whole(&settings);
        let fresh = || Arc::new(Table::new(settings.name.clone(), threshold));
        let known_already = before.filter(|known| known.provider.settings().has_same_target(&settings));
        let breakers = known_already.map_or_else(fresh, |known| known.breakers.clone());
        let provider = Provider::new(settings, clock)?;
        let provider = match before {
            Some(known) => provider.in_place_of(&known.provider),
            None => provider,
        };
        Ok(Self { provider, breakers })
    }
}

/// When a provider is paused as a whole.
const fn threshold_of_whole(settings: &providers::Settings) -> Threshold {
    Threshold { failures: settings.breaker_failures, pause: settings.breaker_pause }
}

impl Call<'_> {
    /// Reserves what an attempt may cost.
    fn begin(&self, now: Instant) -> Result<Attempt, Unpaid> {
        let Upstream { known, model, meter, .. } = self.upstream;
        let provider = &known.provider;
        let price = price(self.id, provider, model);
        let most = || most::of_chat(self.chat, provider, model, price);
        meter.attempt(self.id, self.purpose, price, now.into_std(), most)
    }

    /// Makes an attempt that has begun. No `async fn`, which would keep its arguments twice while it waits.
    fn attempt(&self, mut attempt: Attempt, permit: Permit) -> impl Future<Output = Result<Answer, Failure>> {
        let prompt = estimate::prompt_tokens(self.chat);
        attempt.expect(Tokens::of_prompt(prompt));
        async move {
            let up = &self.upstream;
            let result = up.known.provider.complete(permit, self.chat, up.model, up.span.deadline).await;
            let (outcome, used) = match &result {
                Ok(answer) => {
                    let estimated = || Tokens { prompt, completion: estimate::text_tokens(&answer.text) };
                    ("ok", answer.usage.unwrap_or_else(estimated))
                }
                Err(FailedCall { failure, usage }) => {
                    let estimated = if failure.may_have_cost() { prompt } else { 0 };
                    (failure.code(), usage.unwrap_or(Tokens::of_prompt(estimated)))
                }
            };
            attempt.finish(outcome, used);
            result.map_err(|failed| failed.failure)
        }
    }
}

/// What an operator has set, else what the catalogue says.
pub(super) fn price(id: &str, provider: &Provider, model: &str) -> Option<Price> {
    if provider.is_sandbox() {
        return Some(FREE);
    }
    let set = provider.model_settings(model).and_then(|settings| settings.price);
    set.or_else(|| catalog::model(id).and_then(|facts| facts.price))
}

#[cfg(test)]
mod tests;
