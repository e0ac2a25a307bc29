//! How a verification uses models: within the limits of concurrency and pace, and counted.

pub(super) mod call_queue;
pub(super) mod calls;
pub(super) mod outbox;
pub(super) mod pacing;
pub(super) mod token_usage;
