//! The number of tokens that a message would take, which Anthropic counts without a charge:
//! `POST /messages/count_tokens`.

use bytes::Bytes;

use crate::json::fields::Fields;
use crate::providers::dialects::anthropic::{error_body, version};
use crate::providers::dialects::status;
use crate::providers::native::{NativeRequest, Protocol};
use crate::providers::question::Question;
use crate::providers::{Dialect, FailedCall, Failure, Model, ProviderRequest, ProviderResponse};

/// Asks for the number of tokens of a message.
#[derive(Debug)]
pub struct TokenCount<'a>(pub &'a NativeRequest);

impl Question for TokenCount<'_> {
    /// The provider's answer, as it is.
    type Answer = Bytes;

    const IN_GROUPS: bool = false;

    fn encode(&self, dialect: &dyn Dialect, model: &Model) -> Result<ProviderRequest, Failure> {
        dialect.passage(Protocol::Messages, model).ok_or(Failure::Malformed)?;
        Ok(self.0.for_model(model, "/messages/count_tokens", [version()]))
    }

    fn decode(
        &self,
        _dialect: &dyn Dialect,
        _model: &Model,
        response: &ProviderResponse,
    ) -> Result<Bytes, FailedCall> {
        let read = |response: &ProviderResponse| {
            let text = std::str::from_utf8(&response.body).ok();
            let fields = text.and_then(|text| Fields::parse(text).ok()).ok_or(Failure::Malformed)?;
            let is_count = fields.read::<u64>("input_tokens").is_some();
            is_count.then(|| response.body.clone()).ok_or_else(|| Failure::Malformed.into())
        };
        status::parse(response, read, error_body::failure)
    }

    async fn simulate(&self, _model: &str) -> Result<Bytes, FailedCall> {
        Err(Failure::Malformed.into())
    }

    fn has_own_limit(&self) -> bool {
        false
    }
}
