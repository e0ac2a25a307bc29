//! One call to a provider for a caller's chat completion: whole, or as a stream that has begun.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::gateway::ProviderEntry;
use crate::providers::{
    CallPermit, CompletionCall, CompletionRequest, CompletionResponse, CompletionStream, FailedCall, Failure,
    NativeRequest, ResponseMeta,
};

/// A call, apart from what is asked.
pub(super) struct Call<'a> {
    pub(super) entry: &'a Arc<ProviderEntry>,
    /// The provider's name for the model.
    pub(super) model: &'a str,
    pub(super) meta: ResponseMeta,
    pub(super) deadline: Instant,
    /// Of a stream, the most tokens that all choices may have, if known.
    pub(super) max_completion_tokens: Option<u64>,
    /// The head of each chunk of the broken stream that this call is to continue.
    pub(super) head: Option<&'a [u8]>,
}

impl Call<'_> {
    /// Gets a whole answer.
    pub(super) async fn complete(
        &self,
        permit: CallPermit,
        request: &CompletionRequest<'_>,
    ) -> Result<CompletionResponse, FailedCall> {
        let question = CompletionCall { request, meta: &self.meta };
        self.entry.provider.complete(permit, &question, self.model, self.deadline).await
    }

    /// Opens a stream and waits for its first event. If it fails before that or directly after it, the caller has seen
    /// nothing of it.
    pub(super) async fn open(
        &self,
        permit: CallPermit,
        request: &CompletionRequest<'_>,
    ) -> Result<(CompletionStream, Bytes), FailedCall> {
        let provider = &self.entry.provider;
        let question = CompletionCall { request, meta: &self.meta };
        let mut stream = provider.stream(permit, &question, self.model, self.deadline).await?;
        if let Some(head) = self.head {
            stream.continue_from(head);
        }
        if let Some(tokens) = self.max_completion_tokens {
            stream.limit_tokens(tokens);
        }
        match stream.next().await {
            Some(Ok(first)) => match stream.pending_failure() {
                Some(failure) => Err(FailedCall { failure: failure.clone(), usage: Some(stream.tokens()) }),
                None => Ok((stream, first)),
            },
            Some(Err(failure)) => Err(FailedCall { usage: stream.usage_before_chunks(&failure), failure }),
            None => Err(Failure::Cut.into()),
        }
    }
}

/// A call with all that it needs, so that it can go on without its caller.
pub(super) struct OwnedCall {
    entry: Arc<ProviderEntry>,
    model: String,
    meta: ResponseMeta,
    deadline: Instant,
    max_completion_tokens: Option<u64>,
    head: Option<Vec<u8>>,
    /// The request, to be parsed again.
    body: Bytes,
    include_usage: bool,
    choices: u32,
    prompt_tokens: u64,
    native: Option<Arc<NativeRequest>>,
}

impl OwnedCall {
    pub(super) fn new(call: &Call<'_>, request: &CompletionRequest<'_>, body: &Bytes) -> Self {
        Self {
            entry: call.entry.clone(),
            model: call.model.to_owned(),
            meta: call.meta.clone(),
            deadline: call.deadline,
            max_completion_tokens: call.max_completion_tokens,
            head: call.head.map(<[u8]>::to_vec),
            body: body.clone(),
            include_usage: request.include_usage,
            choices: request.choices,
            prompt_tokens: request.prompt_tokens,
            native: request.native.clone(),
        }
    }

    /// As [`Call::complete`].
    pub(super) async fn complete(self, permit: CallPermit) -> Result<CompletionResponse, FailedCall> {
        self.call().complete(permit, &self.request(false)?).await
    }

    /// As [`Call::open`].
    pub(super) async fn open(self, permit: CallPermit) -> Result<(CompletionStream, Bytes), FailedCall> {
        self.call().open(permit, &self.request(true)?).await
    }

    fn call(&self) -> Call<'_> {
        Call {
            entry: &self.entry,
            model: &self.model,
            meta: self.meta.clone(),
            deadline: self.deadline,
            max_completion_tokens: self.max_completion_tokens,
            head: self.head.as_deref(),
        }
    }

    fn request(&self, stream: bool) -> Result<CompletionRequest<'_>, Failure> {
        let &Self { include_usage, choices, prompt_tokens, .. } = self;
        // It was parsed before, so this cannot fail.
        let fields = serde_json::from_slice(&self.body).map_err(|_| Failure::Malformed)?;
        let native = self.native.clone();
        Ok(CompletionRequest { fields, stream, include_usage, choices, prompt_tokens, native })
    }
}
