//! What a provider can be asked for, as far as that is known before anything is sent.

use super::{Backend, Provider};
use crate::providers::{CompletionRequest, Failure, ReducedRequest, request, sandbox};

/// What is wrong with a model that does not speak the protocol of a request which only that can express.
const UNTRANSLATED: &str = "`model`: the request has what only models that speak its own protocol know";

impl Provider {
    /// Checks that this provider can be asked for what `request` asks of `model`. To be called before an attempt, as
    /// what is not sent is none.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] for a field that would affect the answer and that the provider's format cannot express.
    pub fn check_chat(&self, request: &CompletionRequest<'_>, model: &str) -> Result<(), Failure> {
        if let Some(native) = &request.native {
            if self.speaks(native.protocol, model).is_some() {
                return Ok(());
            }
            if !native.is_translated() {
                return Err(request::unsupported("model", UNTRANSLATED));
            }
        }
        match &self.backend {
            Backend::Http { dialect, .. } if dialect.expresses_everything() => Ok(()),
            Backend::Http { dialect, .. } => dialect.request(request, &self.model(model)).map(drop),
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
    pub fn ignored_fields(&self, request: &CompletionRequest<'_>, model: &str) -> Vec<String> {
        match &self.backend {
            Backend::Http { dialect, .. } if !dialect.expresses_everything() => match &request.native {
                Some(native) if self.speaks(native.protocol, model).is_some() => Vec::new(),
                _ => request::ignored(request),
            },
            _ => Vec::new(),
        }
    }
}
