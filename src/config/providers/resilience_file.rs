//! Retries, timeouts and the circuit breaker in a file: for a provider, and with the same keys for one of its models.

use std::time::Duration;

use crate::config::ConfigError;
use crate::config::sources::origin::Origins;
use crate::config::sources::reader::{Located, Section};
use crate::config::sources::values;
use crate::providers::{CallPolicyOverrides, MAX_BREAKER_PAUSE, Settings};

/// What `breaker_pause` and `breaker_max_pause` expect.
const BREAKER_PAUSE: &str = "a span of time of at most five minutes, such as \"10s\"";

/// The keys that providers and models have in common.
#[derive(Default)]
pub(in crate::config) struct ResilienceFile {
    first_byte_timeout: Option<Located<Duration>>,
    idle_timeout: Option<Located<Duration>>,
    total_timeout: Option<Located<Duration>>,
    first_token_timeout: Option<Located<Duration>>,
    whole_answer_timeout: Option<Located<Duration>>,
    retries: Option<Located<u32>>,
    breaker_failures: Option<Located<u32>>,
    breaker_pause: Option<Located<Duration>>,
    breaker_max_pause: Option<Located<Duration>>,
}

/// Reads the keys from the table of a provider or model.
pub(in crate::config) fn read(section: &mut Section<'_>) -> Result<ResilienceFile, ConfigError> {
    let pause = |text: &str| values::duration(text).filter(|pause| *pause <= MAX_BREAKER_PAUSE);
    Ok(ResilienceFile {
        first_byte_timeout: section.duration("first_byte_timeout")?,
        idle_timeout: section.duration("idle_timeout")?,
        total_timeout: section.duration("total_timeout")?,
        first_token_timeout: section.duration("first_token_timeout")?,
        whole_answer_timeout: section.duration("whole_answer_timeout")?,
        retries: section.number("retries", 0..=10)?,
        breaker_failures: section.number("breaker_failures", 0..=1000)?,
        breaker_pause: section.parsed("breaker_pause", BREAKER_PAUSE, pause)?,
        breaker_max_pause: section.parsed("breaker_max_pause", BREAKER_PAUSE, pause)?,
    })
}

impl ResilienceFile {
    /// Overrides a provider's settings by these; `table` is the provider's.
    pub(in crate::config) fn apply(&self, settings: &mut Settings, table: &str, origins: &mut Origins) {
        let CallPolicyOverrides {
            retries,
            first_byte_timeout,
            idle_timeout,
            total_timeout,
            first_token_timeout,
            whole_answer_timeout,
            breaker_failures,
            breaker_pause,
            breaker_max_pause,
        } = self.for_model(table, origins);
        settings.retries = retries.unwrap_or(settings.retries);
        settings.first_byte_timeout = first_byte_timeout.unwrap_or(settings.first_byte_timeout);
        settings.idle_timeout = idle_timeout.unwrap_or(settings.idle_timeout);
        settings.total_timeout = total_timeout.unwrap_or(settings.total_timeout);
        settings.first_token_timeout = first_token_timeout.or(settings.first_token_timeout);
        settings.whole_answer_timeout = whole_answer_timeout.or(settings.whole_answer_timeout);
        settings.breaker_failures = breaker_failures.unwrap_or(settings.breaker_failures);
        settings.breaker_pause = breaker_pause.unwrap_or(settings.breaker_pause);
        settings.breaker_max_pause = breaker_max_pause.unwrap_or(settings.breaker_max_pause);
    }

    /// The settings for a model; `table` is the model's.
    pub(in crate::config) fn for_model(&self, table: &str, origins: &mut Origins) -> CallPolicyOverrides {
        CallPolicyOverrides {
            retries: take(table, "retries", self.retries.as_ref(), origins),
            first_byte_timeout: take(table, "first_byte_timeout", self.first_byte_timeout.as_ref(), origins),
            idle_timeout: take(table, "idle_timeout", self.idle_timeout.as_ref(), origins),
            total_timeout: take(table, "total_timeout", self.total_timeout.as_ref(), origins),
            first_token_timeout: take(
                table,
                "first_token_timeout",
                self.first_token_timeout.as_ref(),
                origins,
            ),
            whole_answer_timeout: take(
                table,
                "whole_answer_timeout",
                self.whole_answer_timeout.as_ref(),
                origins,
            ),
            breaker_failures: take(table, "breaker_failures", self.breaker_failures.as_ref(), origins),
            breaker_pause: take(table, "breaker_pause", self.breaker_pause.as_ref(), origins),
            breaker_max_pause: take(table, "breaker_max_pause", self.breaker_max_pause.as_ref(), origins),
        }
    }
}

fn take<T: Copy>(table: &str, key: &str, found: Option<&Located<T>>, origins: &mut Origins) -> Option<T> {
    origins.record(format!("{table}.{key}"), found);
    found.map(|found| found.value)
}
