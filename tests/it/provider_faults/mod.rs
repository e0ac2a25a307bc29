//! The sixteen provider faults by which gateways are commonly compared. Each is checked from both sides: what the caller
//! gets (the complete response wherever possible, otherwise one clean error, within bounds), and what the provider gets
//! (how many requests, how fast, and with which content), along with the ledger in between.
//!
//! | fault | checked by |
//! |---|---|
//! | 429 with `Retry-After` | [`before_stream`]: respected; one that is too long is passed on or a fallback called; `chat_errors::what_may_pass_is_tried_again_as_the_provider_asks` (milliseconds), `providers::retry_after` (dates) |
//! | 429 without | [`before_stream`]; pauses: [`attempts`] |
//! | 500 once | [`before_stream`] |
//! | 503 every time | [`before_stream`]; pauses and the six attempts: [`attempts`]; `breaker` |
//! | reset before headers | [`before_stream`], also on a reused connection; `chat_errors::nobody_at_the_address` (no connection at all) |
//! | silence | [`before_stream`]; `chat_traps::wire::a_silent_provider_is_waited_for_once` |
//! | slow first token | [`before_stream`]; `patience`, `breaker::nobody_is_hurried_for_a_fallback_that_is_paused` |
//! | stream cut | [`in_stream`]; every way of breaking: `chat_resume`, `chat_resume_ends`; at every event: `chat_traps::a_truncated_stream_is_no_success` |
//! | stream stall | [`in_stream`]; comments meanwhile: `chat_stream::comments_go_out_while_nothing_comes_and_silence_ends` |
//! | malformed chunk | [`in_stream`]; a malformed answer: [`before_stream`]; damage at any place: `providers::chat_scenarios::survives` |
//! | no `[DONE]` | [`in_stream`]; without a finish reason either, the stream is broken: `chat_stream::a_stream_that_breaks_says_so` |
//! | context overflow | [`verdicts`] |
//! | content refusal | [`verdicts`]; within a stream: `chat_resume_ends::a_refusal_is_never_gone_on_from` |
//! | fallback that rejects prefill | [`verdicts`] |
//! | flapping provider | [`attempts`]; one that stays down and comes back: `breaker` |
//! | fallback accounting | [`accounts`]; `chat_accounts`, `chat_traps::a_failure_is_not_billed` |

mod accounts;
mod attempts;
mod before_stream;
mod fixture;
mod in_stream;
mod play;
mod table;
mod verdicts;
