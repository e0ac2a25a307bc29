//! One configured provider: its limit on calls at once, its dialect, its connections.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use futures_util::poll;
use tokio::time::{Instant, timeout_at};

use super::anthropic::Anthropic;
use super::google::Google;
use super::openai::OpenAi;
use super::transport::Transport;
use super::{
    Answer, Chat, Dialect, Failed, Failure, Kind, Model, ModelSettings, Patience, Settings, sandbox,
};
use crate::clock::Clock;
use crate::semaphore::{self, Semaphore};

/// Of so many models at most is kept what is known, and of as many what they refuse. Names come from configuration and,
/// later, from callers.
const MAX_MODELS: usize = 1000;

/// A provider that can be called.
pub struct Provider {
    settings: Settings,
    /// For the calls at once.
    calls: Arc<Semaphore>,
    wire: Wire,
    clock: Clock,
    known: Mutex<Models>,
}

/// What is known of the models of a provider, by name.
#[derive(Default)]
struct Models {
    known: HashMap<String, Arc<Model>>,
    /// Of those that refused something: what they take without it.
    lessons: HashMap<String, Arc<Model>>,
}

enum Wire {
    Http { dialect: Box<dyn Dialect>, transport: Box<Transport> },
    Sandbox,
}

/// Leave to make one call. Given back when the call is over.
#[derive(Debug)]
pub struct Permit {
    _held: semaphore::Permit,
}

/// Why a provider cannot be set up.
#[derive(Debug)]
pub struct SetupError {
    /// The provider's configured name.
    pub provider: String,
    /// What is wrong, for a person.
    pub message: String,
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "provider {}: {}", self.provider, self.message)
    }
}

impl std::error::Error for SetupError {}

impl Provider {
    /// A provider that can be called; nothing is connected yet.
    ///
    /// # Errors
    /// If address, key or limits cannot be used.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SetupError> {
        let wrong = |message: String| SetupError { provider: settings.name.clone(), message };
        if settings.max_concurrent == 0 {
            return Err(wrong(
                "max_concurrent is 0, so it could never be called; give at least 1".to_owned(),
            ));
        }
        let wire = match dialect(settings.kind) {
            None => Wire::Sandbox,
            Some(dialect) => {
                let transport =
                    Transport::new(&settings, settings.key_header(dialect.key_header())).map_err(wrong)?;
                Wire::Http { dialect, transport: Box::new(transport) }
            }
        };
        Ok(Self {
            calls: Arc::new(Semaphore::new(settings.max_concurrent)),
            settings,
            wire,
            clock,
            known: Mutex::default(),
        })
    }

    /// This provider in the place of `before`, whose calls under way count as its own. How many may be made at once
    /// changes with [`Provider::take_effect`].
    #[must_use]
    pub fn in_place_of(self, before: &Self) -> Self {
        Self { calls: before.calls.clone(), ..self }
    }

    /// Holds calls to this provider's own limit, where it took the place of another one.
    pub fn take_effect(&self) {
        self.calls.resize(self.settings.max_concurrent);
    }

    /// What it was set up with.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its configured name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Whether its answers are simulated.
    pub const fn is_sandbox(&self) -> bool {
        matches!(self.wire, Wire::Sandbox)
    }

    /// Whether it can be asked for `model`: any name of a real provider, those of the sandbox only.
    pub fn may_know(&self, model: &str) -> bool {
        !model.is_empty() && (!self.is_sandbox() || sandbox::MODELS.contains(&model))
    }

    /// What an operator has set about `model`.
    pub fn model_settings(&self, model: &str) -> Option<&ModelSettings> {
        self.settings.models.get(model)
    }

    /// How much calls to `model` are borne with.
    pub fn patience(&self, model: &str) -> Patience {
        self.settings.patience(model)
    }

    /// The most tokens that `model` answers with, where that is known.
    pub fn max_output_tokens(&self, model: &str) -> Option<u64> {
        self.model(model).max_output_tokens
    }

    /// What the operator has set about models, by the provider's own names.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelSettings)> {
        self.settings.models.iter().map(|(name, settings)| (name.as_str(), settings))
    }

    /// Waits until one more call may be made, about in the order of asking. Also gives the time: `now`, or what it is
    /// behind a wait.
    ///
    /// # Errors
    /// [`Failure::Timeout`] at `deadline`.
    pub async fn admit(&self, now: Instant, deadline: Instant) -> Result<(Permit, Instant), Failure> {
        if now >= deadline {
            return Err(Failure::Timeout);
        }
        // A permit that is free needs no timer.
        let mut waiting = pin!(self.calls.acquire());
        match poll!(waiting.as_mut()) {
            Poll::Ready(held) => Ok((Permit { _held: held }, now)),
            Poll::Pending => {
                let held = timeout_at(deadline, waiting).await.map_err(|_| Failure::Timeout)?;
                Ok((Permit { _held: held }, Instant::now()))
            }
        }
    }

    /// Asks `model` once.
    ///
    /// A provider that refuses a parameter which can be left out is asked again without it, within the same
    /// attempt: the refusal cost nothing. Once that is answered, it is remembered for the model.
    ///
    /// # Errors
    /// With what kept the model from answering, by `deadline` at the latest.
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep its arguments twice while it waits")]
    pub fn complete<'a>(
        &'a self,
        permit: Permit,
        chat: &'a Chat,
        model: &'a str,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, Failed>> + Send + 'a {
        async move {
            let _held = &permit;
            let (dialect, transport) = match &self.wire {
                Wire::Http { dialect, transport } => (dialect, transport),
                Wire::Sandbox => {
                    let end = deadline.min(Instant::now() + self.patience(model).total_timeout);
                    // In a box, as calls to a real provider need no room for it.
                    let simulated = Box::pin(sandbox::complete(chat, model));
                    return timeout_at(end, simulated).await.unwrap_or(Err(Failure::Timeout.into()));
                }
            };
            let mut target = self.model(model);
            let mut is_reduced = false;
            loop {
                // Thousands of calls may wait for an answer: what is used before must not be kept by then.
                let reply = {
                    let patience = self.patience(model);
                    transport.send(|| dialect.request(chat, &target), &patience, deadline)
                }
                .await?;
                let failed = match dialect.answer(&reply.with(self.clock.clone())) {
                    Ok(answer) => {
                        if is_reduced {
                            self.learn(model, target);
                        }
                        return Ok(answer);
                    }
                    Err(failed) => failed,
                };
                target =
                    self.without_refused(&target, failed, |model| Ok(dialect.request(chat, model).body))?;
                is_reduced = true;
            }
        }
    }

    /// The model to ask next where `target` has refused something: without that, or with it by another name. The same is
    /// not asked twice: the `body` of the request must be another one then.
    ///
    /// # Errors
    /// With what the caller is to be told where nobody is to be asked: mostly what `target` has said.
    fn without_refused(
        &self,
        target: &Model,
        failed: Failed,
        body: impl Fn(&Model) -> Result<Bytes, Failure>,
    ) -> Result<Arc<Model>, Failed> {
        let failed = failed.without(self.settings.api_key.as_ref());
        let Failure::Rejected { message, param, .. } = &failed.failure else { return Err(failed) };
        let named = [param.as_deref().unwrap_or_default(), " ", message].concat();
        let Some(reduced) = target.without(&named) else { return Err(failed) };
        // What the caller has asked for is not left out: then the provider's own words tell best what is wrong.
        let Ok(next) = body(&reduced) else { return Err(failed) };
        if next == body(target)? {
            return Err(failed);
        }
        let (provider, model) = (self.name(), &target.name);
        tracing::debug!(
            provider,
            model,
            message,
            "a parameter was refused; asking without it, or by another name"
        );
        Ok(Arc::new(reduced))
    }

    /// What is known of the model of this name, and was learnt.
    fn model(&self, name: &str) -> Arc<Model> {
        let mut models = self.known();
        if let Some(model) = models.lessons.get(name).or_else(|| models.known.get(name)) {
            return model.clone();
        }
        let model = Arc::new(Model::known(&self.settings.name, self.settings.kind, name));
        if models.known.len() < MAX_MODELS {
            models.known.insert(name.to_owned(), model.clone());
        }
        model
    }

    /// Keeps what a model takes. Only once it has answered: a refusal alone may be about what this caller wrote.
    fn learn(&self, name: &str, lesson: Arc<Model>) {
        let mut models = self.known();
        if models.lessons.len() < MAX_MODELS || models.lessons.contains_key(name) {
            models.lessons.insert(name.to_owned(), lesson);
        }
    }

    /// Also after a panic elsewhere: what is known is added whole.
    fn known(&self) -> MutexGuard<'_, Models> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a format is spoken; `None` for the simulated models, which are asked in-process.
pub fn dialect(kind: Kind) -> Option<Box<dyn Dialect>> {
    match kind {
        Kind::OpenAi => Some(Box::new(OpenAi)),
        Kind::Anthropic => Some(Box::new(Anthropic)),
        Kind::Google => Some(Box::new(Google)),
        Kind::Sandbox => None,
    }
}

mod chat;
mod standing;
#[cfg(test)]
mod tests;
