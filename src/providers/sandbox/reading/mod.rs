//! What the simulated models read of a prompt: its blocks, sentences, numbers, sums, and words that set them off.

pub(super) mod arithmetic;
pub(super) mod fences;
pub(super) mod numbers;
pub(super) mod sentences;
pub(super) mod triggers;
