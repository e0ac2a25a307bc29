//! Verifications under way: one, or several at a time, within the server's limits.

pub(super) mod batch;
pub(in crate::cli) mod observe;
pub(in crate::cli) mod rate_limit;
pub(in crate::cli) mod refusal;
pub(super) mod single;
pub(in crate::cli) mod verifier;
