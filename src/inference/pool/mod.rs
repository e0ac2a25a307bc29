//! Pools: names of the operator's own for models, `[models.NAME]`, each with one or more targets behind it.
//!
//! A request for such a name becomes a chain of models like any other request: one target is chosen, the other targets
//! come after it, then fallbacks (see `chain`). So retries, breakers, budgets and the ledger know targets only, and what
//! a pool adds is the order. A target that is paused comes after those that are not.
//!
//! With `affinity`, the target follows from the conversation: a hash of the conversation and each target says who comes
//! first (rendezvous hashing), so that nothing has to be remembered, all nodes of a cluster agree, and when a target is
//! paused or removed only its own conversations move. Providers' prompt caches then hit.

mod chain;
mod conversation;
mod load;
mod order;

use crate::api::guard::Guard;
pub use conversation::Conversation;
pub(super) use load::{Load, Loads};

/// A name for models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// The models behind the name, by their full identifiers; at least one.
    pub targets: Vec<String>,
    /// How one of them is chosen.
    pub balance: Balance,
    /// The share of each target, for [`Balance::Weighted`]; empty if all have the same. A target of weight 0 is only
    /// asked when all others fail.
    pub weights: Vec<u32>,
    /// Whether the requests of a conversation go to the same target, whatever `balance` says.
    pub affinity: bool,
    /// The models to call, in order, when all targets fail.
    pub fallbacks: Vec<String>,
    /// What is done with the verdicts on its answers; `None` if they are verified for other reasons only.
    pub verify: Option<Guard>,
}

/// How the target of a request is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// The first that is not paused.
    #[default]
    First,
    /// By chance, according to their weights.
    Weighted,
    /// The one with the fewest calls of callers under way here.
    LeastBusy,
}

impl Balance {
    /// All, with their names in configuration files.
    pub const NAMES: [(&'static str, Self); 3] =
        [("first", Self::First), ("weighted", Self::Weighted), ("least_busy", Self::LeastBusy)];
}

impl Pool {
    /// Whether this model is one of its targets.
    pub fn is_target(&self, id: &str) -> bool {
        self.targets.iter().any(|target| target == id)
    }

    /// Whether it names this model, as a target or as a fallback.
    pub fn names(&self, id: &str) -> bool {
        self.is_target(id) || self.fallbacks.iter().any(|fallback| fallback == id)
    }
}
