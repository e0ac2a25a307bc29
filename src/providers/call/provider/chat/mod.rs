//! A caller's chat completion: one attempt at one provider.

use tokio::time::{Instant, timeout_at};

use super::{Backend, Permit, Provider};
use crate::providers::call::open_response::OpenResponse;
use crate::providers::dialects::openai;
use crate::providers::{
    CompletionDialect, CompletionRequest, CompletionResponse, CompletionStream, FailedCall, Failure, Model,
    ReducedRequest, ResponseMeta, request, sandbox,
};

/// What a provider has responded with.
enum ChatOutcome {
    Complete(CompletionResponse),
    Streaming(Box<OpenResponse>),
}

impl Provider {
    /// Checks that this provider can be asked for what `request` asks of `model`. To be called before an attempt, as
    /// what is not sent is none.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] for a field that would affect the answer and that the provider's format cannot express.
    pub fn check_chat(&self, request: &CompletionRequest<'_>, model: &str) -> Result<(), Failure> {
        match &self.backend {
            Backend::Http { dialect, .. } if dialect.completions().expresses_everything() => Ok(()),
            Backend::Http { dialect, .. } => {
                dialect.completions().chat_request(request, &self.model(model)).map(drop)
            }
            Backend::Sandbox => sandbox::chat::check(request),
        }
    }

    /// The request without what [`Provider::check_chat`] refuses in it, `refused` first.
    ///
    /// # Errors
    /// With the refusal of something that must not be left out.
    pub fn reduce_chat(
        &self,
        request: &CompletionRequest<'_>,
        model: &str,
        refused: Failure,
    ) -> Result<ReducedRequest, Failure> {
        ReducedRequest::of(request, refused, |reduced| self.check_chat(reduced, model))
    }

    /// The fields of a request that this provider is not sent, as they have no effect on the answer.
    pub fn ignored_fields(&self, request: &CompletionRequest<'_>) -> Vec<String> {
        match &self.backend {
            Backend::Http { dialect, .. } if !dialect.completions().expresses_everything() => {
                request::ignored(request)
            }
            _ => Vec::new(),
        }
    }

    /// Makes one attempt to get a complete answer from `model`. Parameters that the provider knows by another name are
    /// renamed within the same attempt; none is left out.
    ///
    /// # Errors
    /// With the reason why the model did not answer, by `deadline` at the latest.
    pub async fn chat(
        &self,
        _permit: Permit,
        request: &CompletionRequest<'_>,
        model: &str,
        meta: &ResponseMeta,
        deadline: Instant,
    ) -> Result<CompletionResponse, FailedCall> {
        if self.is_sandbox() {
            let end = deadline.min(Instant::now() + self.call_policy(model).total_timeout);
            let simulated = timeout_at(end, sandbox::chat::respond(request, model));
            let response = simulated.await.unwrap_or(Err(Failure::Timeout))?;
            return openai::OpenAi.chat_response(&response, request, meta);
        }
        match self.send_chat(request, model, meta, deadline).await? {
            ChatOutcome::Complete(completed) => Ok(completed),
            // Cannot happen unless the caller streams.
            ChatOutcome::Streaming(_) => Err(Failure::Malformed.into()),
        }
    }

    /// Makes one attempt to get a streamed answer from `model`. The permit is released when the stream ends, at
    /// `deadline` at the latest, or when the stream is dropped.
    ///
    /// # Errors
    /// As [`Provider::chat`], until the answer has begun; later errors are the stream's.
    pub async fn chat_stream(
        &self,
        permit: Permit,
        request: &CompletionRequest<'_>,
        model: &str,
        meta: &ResponseMeta,
        deadline: Instant,
    ) -> Result<CompletionStream, FailedCall> {
        let Backend::Http { dialect, .. } = &self.backend else {
            let script = sandbox::chat::stream(request, model, self.call_policy(model).idle_timeout)?;
            let decoder = openai::OpenAi.stream_decoder(request);
            return Ok(CompletionStream::simulated(script, decoder, request, meta.clone(), permit));
        };
        let decoder = dialect.completions().stream_decoder(request);
        match self.send_chat(request, model, meta, deadline).await? {
            ChatOutcome::Streaming(opened) => Ok(CompletionStream::new(
                *opened,
                decoder,
                request,
                meta.clone(),
                permit,
                self.settings.api_key.clone(),
            )),
            // A complete answer instead of a stream cannot be passed on as a stream.
            ChatOutcome::Complete(completed) => {
                Err(FailedCall { failure: Failure::Malformed, usage: Some(completed.usage.tokens) })
            }
        }
    }

    async fn send_chat(
        &self,
        request: &CompletionRequest<'_>,
        model: &str,
        meta: &ResponseMeta,
        deadline: Instant,
    ) -> Result<ChatOutcome, FailedCall> {
        let Backend::Http { dialect, transport } = &self.backend else {
            return Err(Failure::UnknownModel.into());
        };
        let dialect = dialect.completions();
        let call_policy = self.call_policy(model);
        let mut target = self.model(model);
        let mut outgoing = dialect.chat_request(request, &target)?;
        let mut is_reduced = false;
        loop {
            let opened = transport.open(&outgoing, &call_policy, deadline).await;
            let opened = opened.map_err(FailedCall::before_answer)?;
            if request.stream && opened.is_stream() {
                if is_reduced {
                    self.learn(model, target);
                }
                return Ok(ChatOutcome::Streaming(Box::new(opened)));
            }
            let response = opened.read_all().await?.with_clock(self.clock.clone());
            let failed = match dialect.chat_response(&response, request, meta) {
                Ok(completed) => {
                    if is_reduced {
                        self.learn(model, target);
                    }
                    return Ok(ChatOutcome::Complete(completed));
                }
                Err(failed) => failed,
            };
            let encode = |model: &Model| dialect.chat_request(request, model);
            target = self.without_refused(&target, failed, |model| Ok(encode(model)?.body))?;
            outgoing = encode(&target)?;
            is_reduced = true;
        }
    }
}

#[cfg(test)]
mod tests;
