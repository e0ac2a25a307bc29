//! What a probe of a provider, which costs nothing, has found out.

use crate::clock::Time;

/// The result of probing a provider that is reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    /// What was found out about our key.
    pub key: KeyStatus,
    /// The provider's time, from the `Date` header of its response.
    pub date: Option<Time>,
    /// The models it lists, by its own names and in its order; `None` if the list cannot be read or is incomplete.
    pub models: Option<Vec<String>>,
}

/// What a provider's response says about our key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    /// The provider is simulated, in-process: there is nobody to ask.
    Simulated,
    /// The key was accepted, and a request without it was refused.
    Accepted,
    /// The provider lists its models for everybody, so the key was not tested.
    Untried,
    /// No key is configured, and none was required.
    NotNeeded,
    /// The provider has no list of models at this address, so the key was not tested.
    NoList,
}
