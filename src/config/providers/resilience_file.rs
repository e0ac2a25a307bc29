//! Retries, timeouts and the circuit breaker in a file: for a provider, and with the same keys for one of its models.

use std::time::Duration;

use crate::config::sources::table::settings_table;
use crate::config::sources::values;
use crate::providers::{CallPolicy, CallPolicyOverrides, MAX_BREAKER_PAUSE};

/// What `breaker_pause` and `breaker_max_pause` expect.
const BREAKER_PAUSE: &str = "a duration of at most five minutes, such as \"10s\"";

fn breaker_pause(text: &str) -> Option<Duration> {
    values::duration(text).filter(|pause| *pause <= MAX_BREAKER_PAUSE)
}

/// One table, for a whole provider or for a model.
macro_rules! policy_table {
    ($(#[$meta:meta])* $Table:ident for $Settings:ty) => {
        settings_table! {
            $(#[$meta])*
            struct $Table for $Settings {
                /// until the first byte of an answer
                first_byte_timeout: Duration = duration();
                /// between two pieces of an answer
                idle_timeout: Duration = duration();
                /// Limit for a whole answer; for a chat completion, including all retries.
                total_timeout: Duration = duration();
                /// The first after about 0.5 s, then 1 s and so on; a chat completion makes at most 6 calls.
                retries: u32 = number(0..=10);
                /// After this many failures in a row, a model (or an unreachable provider) is paused; 0: never.
                breaker_failures: u32 = number(0..=1000);
                /// The first pause. It doubles as long as test calls fail, less some random jitter.
                breaker_pause: Duration = parsed(BREAKER_PAUSE, breaker_pause);
                /// The longest pause, after which a recovered model is used again at the latest.
                breaker_max_pause: Duration = parsed(BREAKER_PAUSE, breaker_pause);
                /// Time to the first token of a stream if the model has a fallback; overrides [inference].
                first_token_timeout: Duration = duration(), such as "\"5s\"";
                /// The same for the whole of an answer that is not streamed.
                whole_answer_timeout: Duration = duration(), such as "\"120s\"";
            }
        }
    };
}

policy_table! {
    /// For all models of a provider.
    ProviderPolicy for CallPolicy
}
policy_table! {
    /// For one of them.
    ModelPolicy for CallPolicyOverrides
}
