//! The sixteen provider faults by which gateways are commonly compared. Each is checked from both sides: what the caller
//! gets (the complete response wherever possible, otherwise one clean error, within bounds), and what the provider gets
//! (how many requests, how fast, and with which content), along with the ledger in between.
//!
//! | fault | checked by |
//! |---|---|
//! | 429 with `Retry-After` | [`before_stream`]: respected; one that is too long is passed on or a fallback called; `chat_errors::transient_failures_are_retried_after_the_provider_s_delay` (milliseconds), `providers::retry_after` (dates) |
//! | 429 without | [`before_stream`]; pauses: [`attempts`] |
//! | 500 once | [`before_stream`] |
//! | 503 every time | [`before_stream`]; pauses and the six attempts: [`attempts`]; `breaker` |
//! | reset before headers | [`before_stream`], also on a reused connection; `chat_errors::an_unreachable_provider_is_reported` (no connection at all) |
//! | silence | [`before_stream`]; `chat_traps::wire::a_silent_provider_is_not_retried` |
//! | slow first token | [`before_stream`]; `patience`, `breaker::a_paused_fallback_does_not_shorten_the_first_token_timeout` |
//! | stream cut | [`in_stream`]; every way of breaking: `chat_resume`, `chat_resume_ends`; at every event: `chat_traps::a_truncated_stream_is_reported_as_an_error` |
//! | stream stall | [`in_stream`]; comments meanwhile: `chat_stream::ends::keep_alives_do_not_postpone_the_idle_timeout` |
//! | malformed chunk | [`in_stream`]; a malformed answer: [`before_stream`]; damage at any place: `providers::chat_scenarios::survives` |
//! | no `[DONE]` | [`in_stream`]; without a finish reason either, the stream is broken: `chat_stream::ends::a_broken_stream_ends_with_an_error` |
//! | context overflow | [`verdicts`] |
//! | content refusal | [`verdicts`]; within a stream: `chat_resume_ends::a_content_filter_is_never_resumed` |
//! | fallback that rejects prefill | [`verdicts`] |
//! | flapping provider | [`attempts`]; one that stays down and comes back: `breaker` |
//! | fallback accounting | [`accounts`]; `chat_accounts`, `chat_traps::failed_requests_are_not_billed` |

mod accounts;
mod attempts;
mod before_stream;
mod fixture;
mod in_stream;
mod play;
mod table;
mod verdicts;
