//! The sixteen faults of providers that the gateway field compares itself by. Of each, both sides are looked at: what
//! the caller gets (the complete answer wherever that is possible, else one clean error, within bounds), and what the
//! provider gets (how often it is asked, how fast, and what), with the books between them.
//!
//! | fault | held by |
//! |---|---|
//! | 429 with `Retry-After` | [`before`]: kept to; too long, it is passed on or a fallback asked; `chat_errors::transient_failures_are_retried_after_the_provider_s_delay` (milliseconds), `providers::retry_after` (dates) |
//! | 429 without | [`before`]; pauses: [`attempts`] |
//! | 500 once | [`before`] |
//! | 503 for ever | [`before`]; pauses and the six attempts: [`attempts`]; `breaker` |
//! | reset before headers | [`before`], also on a connection that is used again; `chat_errors::an_unreachable_provider_is_reported` (no connection at all) |
//! | silence | [`before`]; `chat_traps::wire::a_silent_provider_is_not_retried` |
//! | slow first token | [`before`]; `patience`, `breaker::a_paused_fallback_does_not_shorten_the_first_token_timeout` |
//! | stream cut | [`inside`]; every way to break: `chat_resume`, `chat_resume_ends`; at every event: `chat_traps::a_truncated_stream_is_reported_as_an_error` |
//! | stream stall | [`inside`]; comments meanwhile: `chat_stream::keep_alives_do_not_postpone_the_idle_timeout` |
//! | malformed chunk | [`inside`]; a malformed answer: [`before`]; damage at any place: `providers::chat_scenarios::survives` |
//! | no `[DONE]` | [`inside`]; no finish reason either is a cut: `chat_stream::a_broken_stream_ends_with_an_error` |
//! | context overflow | [`verdicts`] |
//! | content refusal | [`verdicts`]; inside of a stream: `chat_resume_ends::a_content_filter_is_never_resumed` |
//! | fallback that rejects prefill | [`verdicts`] |
//! | flapping provider | [`attempts`]; one that stays down and comes back: `breaker` |
//! | fallback accounting | [`accounts`]; `chat_accounts`, `chat_traps::failed_requests_are_not_billed` |

mod accounts;
mod attempts;
mod before;
mod inside;
mod play;
mod room;
mod table;
mod verdicts;
