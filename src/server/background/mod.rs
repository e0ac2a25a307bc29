//! What the server does without being asked.

pub(super) mod clock_stability;
pub(super) mod tasks;
