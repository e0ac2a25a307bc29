//! What an HTTP status alone says about a failed call, for all formats: RFC 9110, plus 529, which Anthropic introduced
//! and others adopted, and 498, which Groq uses for a tier without capacity. Each dialect reads the rest from the body.

use super::retry_after;
use crate::providers::{FailedCall, Failure, ProviderResponse};

/// Parses a successful response with `read`, or an error response with `failure`.
pub(in crate::providers) fn parse<'a, T>(
    response: &'a ProviderResponse,
    read: impl FnOnce(&'a ProviderResponse) -> Result<T, FailedCall>,
    failure: impl FnOnce(&ProviderResponse) -> Failure,
) -> Result<T, FailedCall> {
    match response.status {
        200..=299 => read(response),
        // The transport follows no redirects: the key would go to an address nobody configured.
        100..=399 => Err(Failure::Malformed.into()),
        _ => Err(failure(response).into()),
    }
}

/// The failure that a status stands for; `None` if only the body can tell. The status is a parameter, as some gateways
/// put the real one into the body of a successful response.
pub(in crate::providers) fn failure(status: u16, response: &ProviderResponse) -> Option<Failure> {
    let wait = || retry_after::read(&response.headers, response.clock.now());
    Some(match status {
        401 | 403 => Failure::Unauthorized,
        402 => Failure::QuotaExhausted,
        404 => Failure::UnknownModel,
        // Larger than the model, or the account's allowance, can ever take in one request.
        413 => Failure::ContextOverflow { words: None },
        429 => Failure::RateLimited { retry_after: wait() },
        498 | 503 | 529 => Failure::Overloaded { retry_after: wait() },
        // The provider timed out, had a conflict, or cancelled the call internally: as transient as a server error.
        408 | 409 | 499 | 500.. => Failure::Broken { status, retry_after: wait() },
        _ => return None,
    })
}
