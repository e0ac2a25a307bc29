//! What an HTTP status alone says about a failed call, for all formats; RFC 9110, 529, which Anthropic made up and
//! others took over, and 498, Groq's word for a tier without capacity. Bodies say more, and each dialect reads its own.

use super::{Failed, Failure, Incoming, retry_after};

/// What `read` finds in an answer of success, or the failure that `complaint` finds in another one.
pub(super) fn outcome<'a, T>(
    incoming: &'a Incoming,
    read: impl FnOnce(&'a Incoming) -> Result<T, Failed>,
    complaint: impl FnOnce(&Incoming) -> Failure,
) -> Result<T, Failed> {
    match incoming.status {
        200..=299 => read(incoming),
        // The transport follows no redirect: the key would go to an address nobody configured.
        100..=399 => Err(Failure::Malformed.into()),
        _ => Err(complaint(incoming).into()),
    }
}

/// The failure behind a status; `None` where only the body can tell. The status is a parameter, as some gateways
/// write the true one into a body of success.
pub(super) fn failure(status: u16, incoming: &Incoming) -> Option<Failure> {
    let wait = || retry_after::read(&incoming.headers, incoming.clock.now());
    Some(match status {
        401 | 403 => Failure::Unauthorized,
        402 => Failure::QuotaExhausted,
        404 => Failure::UnknownModel,
        // Larger than the model, or the account's allowance, can ever take at once.
        413 => Failure::ContextOverflow,
        429 => Failure::RateLimited { retry_after: wait() },
        498 | 503 | 529 => Failure::Overloaded { retry_after: wait() },
        // The provider gave up waiting, two calls met, or it was cancelled inside: these pass as faults do.
        408 | 409 | 499 | 500.. => Failure::Broken { status },
        _ => return None,
    })
}
