//! What requests and models used in total.

use std::sync::Arc;

use super::Purpose;
use crate::money::{NanoUsd, Tokens, Usage};

/// What an attempt used.
#[derive(Clone, Copy)]
pub(super) struct Used {
    pub(super) usage: Usage,
    /// `None` if its price is unknown.
    pub(super) cost: Option<NanoUsd>,
}

/// The usage of a whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTotal {
    /// The number of attempts.
    pub attempts: u32,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of completions.
    pub completion_tokens: u64,
    /// `None` as soon as one attempt that used tokens has no known price.
    pub cost: Option<NanoUsd>,
}

/// The usage of one model for one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTotal {
    /// The model's configured identifier.
    pub model: Arc<str>,
    /// What it was used for.
    pub purpose: Purpose,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of completions.
    pub completion_tokens: u64,
    /// `None` as soon as one attempt that used tokens has no known price, and as long as no attempt has one.
    pub cost: Option<NanoUsd>,
}

impl ModelTotal {
    /// Whether nothing was used, at an unknown price.
    pub const fn is_nothing(&self) -> bool {
        self.prompt_tokens == 0 && self.completion_tokens == 0 && self.cost.is_none()
    }

    /// Adds what an attempt used.
    pub(super) fn add(&mut self, Used { usage: Usage { tokens, .. }, cost }: Used) {
        self.cost = match (self.cost, cost) {
            (None, cost) if self.is_nothing() => cost,
            (Some(sum), None) if tokens == Tokens::default() => Some(sum),
            (sum, more) => sum.zip(more).map(|(sum, more)| sum.plus(more)),
        };
        self.prompt_tokens = self.prompt_tokens.saturating_add(tokens.prompt);
        self.completion_tokens = self.completion_tokens.saturating_add(tokens.completion);
    }
}
