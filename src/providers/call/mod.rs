//! A call to a provider: its policy, the only sender, and the response as it arrives.

pub(super) mod call_policy;
pub(super) mod key_ring;
pub(super) mod open_response;
pub(super) mod probe;
pub(super) mod provider;
pub(super) mod timed_response;
pub(super) mod transport;
