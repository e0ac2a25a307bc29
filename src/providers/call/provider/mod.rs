//! One configured provider: its concurrency limit, its dialect and its connections.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use futures_util::{FutureExt, poll};
use http::{HeaderName, HeaderValue};
use tokio::time::{Instant, timeout_at};

use super::key_ring::{CallKey, KeyRing};
use super::open_response::OpenResponse;
use super::transport::Transport;
use crate::clock::Clock;
use crate::lock::Lock;
use crate::money::Price;
use crate::net::semaphore::{self, Semaphore};
use crate::net::workers::yield_to_ready;
use crate::providers::dialects::anthropic::Anthropic;
use crate::providers::dialects::google::Google;
use crate::providers::dialects::openai::OpenAi;
use crate::providers::native::{Protocol, Speaks};
use crate::providers::question::{CompletionCall, Question};
use crate::providers::{
    CallPolicy, CompletionStream, Dialect, FailedCall, Failure, Kind, Model, ModelSettings, ProviderRequest,
    Settings, Takes, sandbox,
};

/// The maximum number of models whose facts are cached, and of those whose refusals are remembered: model names come
/// from callers as well as from the configuration.
const MAX_MODELS: usize = 1000;

/// A provider that can be called.
pub struct Provider {
    settings: Settings,
    /// Limits concurrent calls, and what each key may take of them.
    calls: Arc<Semaphore>,
    backend: Backend,
    clock: Clock,
    models: Mutex<ModelCache>,
    keys: KeyRing,
}

/// The models of a provider, by name.
#[derive(Default)]
struct ModelCache {
    /// As the catalogue and their names describe them.
    known: HashMap<String, Arc<Model>>,
    /// Models that have refused a parameter, without what they refused.
    learned: HashMap<String, Arc<Model>>,
}

enum Backend {
    Http { dialect: Box<dyn Dialect>, transport: Box<Transport> },
    Sandbox,
}

/// What a provider has responded with.
enum Reply<T> {
    Whole(T),
    Stream(Box<OpenResponse>, Arc<Model>, CallKey, CallPermit),
}

/// Permission to make one call; released on drop. Boxed, as each waiting future holds it several times over.
#[derive(Debug)]
pub struct CallPermit(Box<Permitted>);

#[derive(Debug)]
struct Permitted {
    _held: semaphore::Permit,
    /// What tells the provider which trace the call is part of.
    traceparent: Option<HeaderValue>,
}

impl CallPermit {
    fn new(held: semaphore::Permit) -> Self {
        Self(Box::new(Permitted { _held: held, traceparent: None }))
    }

    /// This permit, of a call that is part of a trace.
    #[must_use]
    pub fn in_trace(mut self, traceparent: Option<HeaderValue>) -> Self {
        self.0.traceparent = traceparent;
        self
    }

    /// A request as it is sent with this permit.
    fn stamped(&self, mut request: ProviderRequest) -> ProviderRequest {
        let header = self.0.traceparent.clone();
        request.headers.extend(header.map(|header| (HeaderName::from_static("traceparent"), header)));
        request
    }
}

/// Why a provider cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("provider {provider}: {message}")]
pub struct SetupError {
    /// The provider's configured name.
    pub provider: String,
    /// What is wrong, for humans.
    pub message: String,
}

impl Provider {
    /// Sets up a provider; nothing is connected yet.
    ///
    /// # Errors
    /// If the address, the key or a limit is unusable.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SetupError> {
        let error = |message: String| SetupError { provider: settings.name.clone(), message };
        if settings.max_concurrent == 0 {
            return Err(error(
                "max_concurrent is 0, so the provider could never be called; set at least 1".to_owned(),
            ));
        }
        let backend = match dialect(settings.kind) {
            None => Backend::Sandbox,
            Some(dialect) => {
                let transport =
                    Transport::new(&settings, settings.key_header(dialect.key_header())).map_err(error)?;
                Backend::Http { dialect, transport: Box::new(transport) }
            }
        };
        Ok(Self {
            calls: Arc::new(Semaphore::new(settings.max_concurrent)),
            keys: KeyRing::new(settings.api_keys().count()),
            settings,
            backend,
            clock,
            models: Mutex::default(),
        })
    }

    /// This provider as the replacement of `before`, whose calls in flight count as its own. The concurrency limit
    /// stays that of `before` until [`Provider::activate`].
    #[must_use]
    pub fn replacing(self, before: &Self) -> Self {
        Self { calls: before.calls.clone(), ..self }
    }

    /// Applies this provider's own concurrency limit after it has replaced another one.
    pub fn activate(&self) {
        self.calls.resize(self.settings.max_concurrent);
    }

    /// The settings it was set up with.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its configured name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Whether its answers are simulated.
    pub const fn is_sandbox(&self) -> bool {
        matches!(self.backend, Backend::Sandbox)
    }

    /// Whether it may serve `model`: a real provider any name, the sandbox only its own models.
    pub fn may_serve(&self, model: &str) -> bool {
        !model.is_empty() && (!self.is_sandbox() || sandbox::MODELS.contains(&model))
    }

    /// The operator's settings for `model`.
    pub fn model_settings(&self, model: &str) -> Option<&ModelSettings> {
        self.settings.models.get(model)
    }

    /// See [`Settings::price`].
    pub fn price(&self, id: &str, model: &str) -> Option<Price> {
        self.settings.price(id, model)
    }

    /// The retries, timeouts and circuit breaker settings for calls to `model`.
    pub fn call_policy(&self, model: &str) -> CallPolicy {
        self.settings.call_policy(model)
    }

    /// The maximum number of tokens in an answer of `model`, if known.
    pub fn max_output_tokens(&self, model: &str) -> Option<u64> {
        self.model(model).max_output_tokens
    }

    /// The maximum number of tokens in a prompt for `model`, if known.
    pub fn max_input_tokens(&self, model: &str) -> Option<u64> {
        self.model(model).max_input_tokens
    }

    /// The operator's settings for single models, by the provider's own names.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelSettings)> {
        self.settings.models.iter().map(|(name, settings)| (name.as_str(), settings))
    }

    /// Waits for a permit to make a call for the holder of a key, who shares the permits with the others (see
    /// [`crate::net::semaphore`]). Also returns the time at which it was granted: `now`, unless it had to wait.
    ///
    /// # Errors
    /// [`Failure::Timeout`] at `deadline`.
    pub async fn admit(
        &self,
        key_id: &Arc<str>,
        now: Instant,
        deadline: Instant,
    ) -> Result<(CallPermit, Instant), Failure> {
        if now >= deadline {
            return Err(Failure::Timeout);
        }
        // No timer is needed if a permit is available.
        let mut waiting = pin!(self.calls.acquire_for(key_id));
        match poll!(waiting.as_mut()) {
            Poll::Ready(held) => Ok((CallPermit::new(held), now)),
            Poll::Pending => {
                let held = timeout_at(deadline, waiting).await.map_err(|_| Failure::Timeout)?;
                Ok((CallPermit::new(held), Instant::now()))
            }
        }
    }

    /// Makes one attempt to have `model` answer a question.
    ///
    /// If the provider refuses a parameter that may be left out or has another name, the request is sent again without
    /// it, or with that name, within the same attempt, as the refusal cost nothing. Once that succeeds, it is
    /// remembered
    /// for the model.
    ///
    /// # Errors
    /// With the reason why the model did not answer, by `deadline` at the latest.
    pub fn complete<'a, Q: Question>(
        &'a self,
        permit: CallPermit,
        question: &'a Q,
        model: &'a str,
        deadline: Instant,
    ) -> impl Future<Output = Result<Q::Answer, FailedCall>> + Send + 'a {
        self.send(permit, question, false, model, deadline).map(|reply| match reply? {
            Reply::Whole(answer) => Ok(answer),
            // Cannot happen unless a stream is asked for.
            Reply::Stream(..) => Err(Failure::Malformed.into()),
        })
    }

    /// Makes one attempt to get a streamed answer from `model`. The permit is released when the stream ends, at
    /// `deadline` at the latest, or when the stream is dropped.
    ///
    /// # Errors
    /// As [`Provider::complete`], until the answer has begun; later errors are the stream's.
    pub async fn stream(
        &self,
        permit: CallPermit,
        question: &CompletionCall<'_>,
        model: &str,
        deadline: Instant,
    ) -> Result<CompletionStream, FailedCall> {
        let Backend::Http { dialect, .. } = &self.backend else {
            let (request, meta) = (question.request, question.meta.clone());
            let script = sandbox::chat::stream(request, model, self.call_policy(model).idle_timeout)?;
            let decoder = OpenAi.stream_decoder(request);
            return Ok(CompletionStream::simulated(script, decoder, request, meta, permit));
        };
        match self.send(permit, question, true, model, deadline).await? {
            Reply::Stream(opened, target, key, permit) => {
                let key = self.settings.api_keys().nth(key.index()).cloned();
                let (chunks, decoder) = question.stream(&**dialect, &target);
                Ok(CompletionStream::new(*opened, decoder, chunks, permit, key))
            }
            // A complete answer instead of a stream cannot be passed on as a stream.
            Reply::Whole(completed) => {
                Err(FailedCall { failure: Failure::Malformed, usage: Some(completed.usage.tokens) })
            }
        }
    }

    /// Sends a question, again without what the model refuses of it, until there is an answer.
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep its arguments twice while it waits")]
    fn send<'a, Q: Question>(
        &'a self,
        permit: CallPermit,
        question: &'a Q,
        stream: bool,
        model: &'a str,
        deadline: Instant,
    ) -> impl Future<Output = Result<Reply<Q::Answer>, FailedCall>> + Send + 'a {
        async move {
            let Backend::Http { dialect, transport } = &self.backend else {
                let end = deadline.min(Instant::now() + self.call_policy(model).total_timeout);
                // Boxed, so that calls to real providers reserve no space for it.
                let simulated = Box::pin(question.simulate(model));
                let answer = timeout_at(end, simulated).await.unwrap_or(Err(Failure::Timeout.into()));
                return answer.map(Reply::Whole);
            };
            let mut target = self.model(model);
            let mut is_reduced = false;
            let mut key = self.keys.first(model, Instant::now());
            loop {
                // Thousands of calls may be waiting for a response, so nothing else may be kept alive meanwhile.
                let opened = {
                    let call_policy = self.call_policy(model);
                    let stamped = || Ok(permit.stamped(question.encode(&**dialect, &target)?));
                    transport.open(stamped, key.index(), &call_policy, deadline)
                }
                .await
                .map(Box::new)?;
                let learn = |target: &Arc<Model>| {
                    self.keys.worked(key, model);
                    if is_reduced {
                        self.learn(target.clone());
                    }
                };
                if stream && opened.is_stream() {
                    learn(&target);
                    return Ok(Reply::Stream(opened, target, key, permit));
                }
                let limit = question.max_response_bytes();
                let reading = async move {
                    if Q::IN_GROUPS {
                        yield_to_ready().await;
                    }
                    opened.read_up_to(limit).await
                };
                let response = Box::pin(reading).await?.with_clock(self.clock.clone());
                let failed = match question.decode(&**dialect, &target, &response) {
                    Ok(answer) => {
                        learn(&target);
                        return Ok(Reply::Whole(answer));
                    }
                    Err(failed) => failed,
                };
                if let Some(next) = self.next_key(key, model, &failed.failure) {
                    key = next;
                    continue;
                }
                let body = |model: &Model| Ok(question.encode(&**dialect, model)?.body);
                target = if let Some(next) = question.translated(&**dialect, &target, response.status) {
                    Arc::new(next)
                } else if question.has_own_limit() && self.may_fit_without_limit(&target, &failed) {
                    Arc::new(Model { answer_limit: false, ..Model::clone(&target) })
                } else {
                    self.without_refused(&target, failed, body)?
                };
                is_reduced = true;
            }
        }
    }

    /// Whether the prompt might fit into the context window without the room reserved for the answer, which servers of
    /// the chat-completion format count with it.
    fn may_fit_without_limit(&self, target: &Model, failed: &FailedCall) -> bool {
        matches!(failed.failure, Failure::ContextOverflow { .. })
            && self.settings.kind == Kind::OpenAi
            && target.answer_limit
    }

    /// What to try next after `target` has refused a parameter: the model without that parameter, or with its other
    /// name. The same request is not sent twice: the `body` must differ.
    ///
    /// # Errors
    /// With the failure to report if there is nothing left to try: usually `failed` itself.
    fn without_refused(
        &self,
        target: &Model,
        failed: FailedCall,
        body: impl Fn(&Model) -> Result<Bytes, Failure>,
    ) -> Result<Arc<Model>, FailedCall> {
        let failed = self.redacted(failed);
        let Failure::Rejected { message, param, .. } = &failed.failure else { return Err(failed) };
        // It is about the model's answer and may quote that.
        if failed.failure.is_malformed_output() {
            return Err(failed);
        }
        let named = [param.as_deref().unwrap_or_default(), " ", message].concat();
        let refused = body(target)?;
        let mut reduced = target.clone();
        loop {
            let Some(next) = reduced.without(&named) else { return Err(failed) };
            reduced = next;
            // What the caller has asked for is never left out; the provider's own message explains best what is wrong.
            let Ok(next) = body(&reduced) else { return Err(failed) };
            if next != refused {
                break;
            }
        }
        let (provider, model) = (self.name(), &target.name);
        tracing::debug!(
            provider,
            model,
            message,
            "a parameter was refused; retrying without it, or under another name"
        );
        Ok(Arc::new(reduced))
    }

    /// How far `model` speaks a protocol; `None` if it does not.
    pub fn speaks(&self, protocol: Protocol, model: &str) -> Option<Speaks> {
        let Backend::Http { dialect, .. } = &self.backend else { return None };
        let model = self.model(model);
        dialect.passage(protocol, &model)?;
        let is_sure = protocol != Protocol::Responses || model.responses == Some(true);
        Some(if is_sure { Speaks::Surely } else { Speaks::Perhaps })
    }

    /// What `model` takes of what tunes an answer.
    pub fn takes(&self, model: &str) -> Takes {
        if self.is_sandbox() { Takes::default() } else { Takes::of(self.settings.kind, &self.model(model)) }
    }

    /// Another key to make a call of `model` with that has failed with `key`, if it may succeed with that: nothing was
    /// done for the one that was refused.
    fn next_key(&self, key: CallKey, model: &str, failure: &Failure) -> Option<CallKey> {
        let next = self.keys.next(key, model, failure, &self.call_policy(model), Instant::now())?;
        let (provider, key, outcome) = (self.name(), key.index() + 1, failure.code());
        tracing::warn!(provider, model, key, outcome, "a key is set aside for a while; using another one");
        Some(next)
    }

    /// The failed call without what its words may repeat of our keys.
    fn redacted(&self, failed: FailedCall) -> FailedCall {
        self.settings.api_keys().fold(failed, |failed, key| failed.redacted(Some(key)))
    }

    /// The model of this name, without what it is known to refuse.
    fn model(&self, name: &str) -> Arc<Model> {
        let mut models = self.models.locked();
        if let Some(model) = models.learned.get(name).or_else(|| models.known.get(name)) {
            return model.clone();
        }
        let known = Model::known(&self.settings.name, self.settings.kind, name);
        let model = Arc::new(Model { responses: self.settings.responses, ..known });
        if models.known.len() < MAX_MODELS {
            models.known.insert(name.to_owned(), model.clone());
        }
        model
    }

    /// Remembers the parameters that a model accepts. Call this only once it has answered: a refusal alone may be about
    /// what this caller wrote.
    fn learn(&self, model: Arc<Model>) {
        let mut models = self.models.locked();
        if models.learned.len() < MAX_MODELS || models.learned.contains_key(&model.name) {
            models.learned.insert(model.name.clone(), model);
        }
    }
}

/// The dialect of a format; `None` for the sandbox, which runs in-process.
pub fn dialect(kind: Kind) -> Option<Box<dyn Dialect>> {
    match kind {
        Kind::OpenAi => Some(Box::new(OpenAi)),
        Kind::Anthropic => Some(Box::new(Anthropic)),
        Kind::Google => Some(Box::new(Google)),
        Kind::Sandbox => None,
    }
}

mod check;
#[cfg(test)]
mod completion_tests;
mod probe;
#[cfg(test)]
mod tests;
