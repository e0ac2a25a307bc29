//! How a provider stands towards us, found out without a call that costs anything.

use std::collections::BTreeSet;

use crate::clock::Time;

/// How a provider that answers stands towards us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What is known of our key.
    pub key: KeyStanding,
    /// The time of day there, from the head of its answer.
    pub date: Option<Time>,
    /// The models it lists, by its own names; `None` where it does not give a list that can be read, or only a part.
    pub models: Option<BTreeSet<String>>,
}

/// What a provider's answer tells of our key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStanding {
    /// Simulated, in-process: there is nobody to ask.
    Simulated,
    /// Taken, where a request without it was refused.
    Accepted,
    /// It lists its models for everybody, so the key was not tried.
    Untried,
    /// None is configured, and none was asked for.
    NotNeeded,
    /// It has no list of models at this address, so the key was not tried.
    NoList,
}
