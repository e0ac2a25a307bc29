//! Retries, timeouts and the circuit breaker in a file: for a provider, and with the same keys for one of its models.

use std::time::Duration;

use crate::config::sources::table::settings_table;
use crate::config::sources::values;
use crate::providers::{CallPolicy, CallPolicyOverrides, MAX_BREAKER_PAUSE};

/// What `breaker_pause` and `breaker_max_pause` expect.
const BREAKER_PAUSE: &str = "a span of time of at most five minutes, such as \"10s\"";

fn breaker_pause(text: &str) -> Option<Duration> {
    values::duration(text).filter(|pause| *pause <= MAX_BREAKER_PAUSE)
}

/// One table, for a whole provider or for a model.
macro_rules! policy_table {
    ($(#[$meta:meta])* $Table:ident for $Settings:ty) => {
        settings_table! {
            $(#[$meta])*
            struct $Table for $Settings {
                /// to the first byte of an answer
                first_byte_timeout: Duration = duration();
                /// between pieces of an answer
                idle_timeout: Duration = duration();
                /// For a whole answer; of a chat completion with all retries.
                total_timeout: Duration = duration();
                /// After about 0.5 s, then 1 s …; a chat completion makes at most 6 calls in all.
                retries: u32 = number(0..=10);
                /// After so many in a row a model, or a provider that cannot be reached, is paused; 0: never.
                breaker_failures: u32 = number(0..=1000);
                /// Doubles while a call in between fails, a little less by chance each time.
                breaker_pause: Duration = parsed(BREAKER_PAUSE, breaker_pause);
                /// No later pause is longer; what has recovered is used again after that at most.
                breaker_max_pause: Duration = parsed(BREAKER_PAUSE, breaker_pause);
                /// How long a model that has a fallback may take to the first token of a
                /// stream, if not what [inference] says.
                first_token_timeout: Duration = duration(), such as "\"5s\"";
                /// The same for an answer that is not streamed.
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
