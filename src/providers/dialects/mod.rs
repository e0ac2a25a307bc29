//! The wire formats of model APIs, without I/O, so that each is tested with text files of recorded traffic; and what
//! they share.

pub(super) mod anthropic;
#[cfg(test)]
pub(super) mod chat_scenarios;
pub(super) mod embeddings;
pub(super) mod google;
pub(super) mod openai;
pub(super) mod render;
pub(super) mod retry_after;
#[cfg(test)]
pub(super) mod scenarios;
pub(super) mod status;
pub(super) mod token_count;
