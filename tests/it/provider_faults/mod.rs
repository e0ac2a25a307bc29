//! The sixteen faults of providers that the gateway field compares itself by. Of each, both sides are looked at: what
//! the caller gets (the complete answer wherever that is possible, else one clean error, within bounds), and what the
//! provider gets (how often it is asked, how fast, and what), with the books between them.
//!
//! | fault | held by |
//! |---|---|
//! | 429 with `Retry-After` | [`before`]: kept to; too long, it is passed on or a fallback asked; `chat_errors::what_may_pass_is_tried_again_as_the_provider_asks` (milliseconds), `providers::retry_after` (dates) |
//! | 429 without | [`before`]; pauses: [`attempts`] |
//! | 500 once | [`before`] |
//! | 503 for ever | [`before`]; pauses and the six attempts: [`attempts`]; `breaker` |
//! | reset before headers | [`before`], also on a connection that is used again; `chat_errors::nobody_at_the_address` (no connection at all) |
//! | silence | [`before`]; `chat_traps::wire::a_silent_provider_is_waited_for_once` |
//! | slow first token | [`before`]; `patience`, `breaker::nobody_is_hurried_for_a_fallback_that_is_paused` |
//! | stream cut | [`inside`]; every way to break: `chat_resume`, `chat_resume_ends`; at every event: `chat_traps::a_truncated_stream_is_no_success` |
//! | stream stall | [`inside`]; comments meanwhile: `chat_stream::comments_go_out_while_nothing_comes_and_silence_ends` |
//! | malformed chunk | [`inside`]; a malformed answer: [`before`]; damage at any place: `providers::chat_scenarios::survives` |
//! | no `[DONE]` | [`inside`]; no finish reason either is a cut: `chat_stream::a_stream_that_breaks_says_so` |
//! | context overflow | [`verdicts`] |
//! | content refusal | [`verdicts`]; inside of a stream: `chat_resume_ends::a_refusal_is_never_gone_on_from` |
//! | fallback that rejects prefill | [`verdicts`] |
//! | flapping provider | [`attempts`]; one that stays down and comes back: `breaker` |
//! | fallback accounting | [`accounts`]; `chat_accounts`, `chat_traps::a_failure_is_not_billed` |

mod accounts;
mod attempts;
mod before;
mod inside;
mod play;
mod room;
mod table;
mod verdicts;
