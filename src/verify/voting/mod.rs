//! The vote on a claim: who is asked, what they answered, and what that makes of it.

pub(super) mod answer;
pub(super) mod ballot;
pub(super) mod count;
pub(super) mod panel;
pub(super) mod vote;
