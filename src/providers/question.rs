//! What a model is asked: for a verification ([`Prompt`](super::Prompt)), or by a caller. Both are sent as chat
//! completions.

use std::future::Future;

use super::call::open_response::{MAX_BODY_BYTES, MAX_VECTORS_BYTES};
use super::dialects::openai::OpenAi;
use super::native::{NativeRequest, Passage, Protocol};
use super::{
    ChunkWriter, CompletionRequest, CompletionResponse, Dialect, FailedCall, Failure, Model, ProviderRequest,
    ProviderResponse, ResponseMeta, StreamDecoder, sandbox,
};

/// Something that a model is asked, which is encoded anew for each call: what waits for a connection waits unencoded.
pub trait Question: Sync {
    /// A complete answer to it.
    type Answer: Send;

    /// Whether many are asked at once, so that their answers are better read in one go.
    const IN_GROUPS: bool;

    /// Encodes the request that asks `model`, without what that is known to refuse, as far as that may be left out.
    ///
    /// # Errors
    /// As [`Dialect::request`].
    fn encode(&self, dialect: &dyn Dialect, model: &Model) -> Result<ProviderRequest, Failure>;

    /// Decodes a complete response of `model`, or an error response of any kind.
    ///
    /// # Errors
    /// As [`Dialect::response`].
    fn decode(
        &self,
        dialect: &dyn Dialect,
        model: &Model,
        response: &ProviderResponse,
    ) -> Result<Self::Answer, FailedCall>;

    /// The answer of a simulated model.
    ///
    /// # Errors
    /// If it fails, as a real one could.
    fn simulate(&self, model: &str) -> impl Future<Output = Result<Self::Answer, FailedCall>> + Send;

    /// Whether the answer has a limit of ours, which may be left out.
    fn has_own_limit(&self) -> bool;

    /// The model to ask next after a response with this status, if that says that its provider does not have the
    /// protocol of this.
    fn translated(&self, _dialect: &dyn Dialect, _model: &Model, _status: u16) -> Option<Model> {
        None
    }

    /// The most bytes that a complete response may have.
    fn max_response_bytes(&self) -> usize {
        MAX_BODY_BYTES
    }
}

/// A caller's chat completion. None of its parameters is ever left out here; only names are changed.
#[derive(Clone, Copy, Debug)]
pub struct CompletionCall<'a> {
    /// What is asked.
    pub request: &'a CompletionRequest<'a>,
    /// What the response gets that is not the provider's.
    pub meta: &'a ResponseMeta,
}

impl CompletionCall<'_> {
    /// The native request, if `model` speaks its protocol, and how it is passed on.
    fn native(&self, dialect: &dyn Dialect, model: &Model) -> Option<(&'static dyn Passage, &NativeRequest)> {
        let native = self.request.native.as_deref()?;
        Some((dialect.passage(native.protocol, model)?, native))
    }

    /// What a streamed answer of `model` becomes, and what decodes it.
    pub(super) fn stream(
        &self,
        dialect: &dyn Dialect,
        model: &Model,
    ) -> (ChunkWriter, Box<dyn StreamDecoder>) {
        let meta = self.meta.clone();
        match self.native(dialect, model) {
            Some((passage, _)) => {
                let decoder = passage.stream_decoder(self.meta);
                (ChunkWriter::native(self.request, meta), decoder)
            }
            None => (ChunkWriter::new(self.request, meta), dialect.stream_decoder(self.request)),
        }
    }
}

impl Question for CompletionCall<'_> {
    type Answer = CompletionResponse;

    const IN_GROUPS: bool = false;

    fn encode(&self, dialect: &dyn Dialect, model: &Model) -> Result<ProviderRequest, Failure> {
        match self.native(dialect, model) {
            Some((passage, native)) => Ok(passage.request(native, model)),
            None => dialect.request(self.request, model),
        }
    }

    fn decode(
        &self,
        dialect: &dyn Dialect,
        model: &Model,
        response: &ProviderResponse,
    ) -> Result<CompletionResponse, FailedCall> {
        match self.native(dialect, model) {
            Some((passage, _)) => passage.response(response, self.request, self.meta),
            None => dialect.response(response, self.request, self.meta),
        }
    }

    async fn simulate(&self, model: &str) -> Result<CompletionResponse, FailedCall> {
        let response = sandbox::chat::respond(self.request, model).await?;
        OpenAi.response(&response, self.request, self.meta)
    }

    fn translated(&self, dialect: &dyn Dialect, model: &Model, status: u16) -> Option<Model> {
        let (_, native) = self.native(dialect, model)?;
        let is_missing = matches!(status, 404 | 405 | 501) && model.responses.is_none();
        let may_be_translated = native.is_translated() && native.protocol == Protocol::Responses;
        (is_missing && may_be_translated).then(|| Model { responses: Some(false), ..model.clone() })
    }

    fn has_own_limit(&self) -> bool {
        false
    }

    fn max_response_bytes(&self) -> usize {
        if self.request.is_for_embeddings() { MAX_VECTORS_BYTES } else { MAX_BODY_BYTES }
    }
}
