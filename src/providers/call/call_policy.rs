//! Retries, timeouts and circuit breaker settings of a call: the model's own where set, else its provider's.
//!
//! They are resolved when a call begins and passed along with it, so that no later code has to know where a setting
//! came from.

use std::time::Duration;

use crate::providers::Settings;

/// The longest pause that can be set for a circuit breaker: nobody would notice that a model has recovered.
pub const MAX_BREAKER_PAUSE: Duration = Duration::from_mins(5);

/// The settings that apply to calls to one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPolicy {
    /// The maximum number of retries of a call.
    pub retries: u32,
    /// From sending the request to the first byte of the response body.
    pub first_byte_timeout: Duration,
    /// Between two pieces of the response body.
    pub idle_timeout: Duration,
    /// For an entire call; for a caller's chat completion, for all calls to the model together.
    pub total_timeout: Duration,
    /// To the first token of a stream, if there is a fallback model; `None` for the global setting.
    pub first_token_timeout: Option<Duration>,
    /// To the end of an answer that is not streamed, if there is a fallback model; `None` for the global setting.
    pub whole_answer_timeout: Option<Duration>,
    /// The number of consecutive failures after which the model is paused; 0 for never.
    pub breaker_failures: u32,
    /// The duration of the first pause.
    pub breaker_pause: Duration,
    /// The duration that no later pause exceeds, unless the first one does.
    pub breaker_max_pause: Duration,
}

/// What is documented (`mk-server(5)`).
impl Default for CallPolicy {
    fn default() -> Self {
        Self {
            retries: 2,
            first_byte_timeout: Duration::from_mins(1),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_mins(10),
            first_token_timeout: None,
            whole_answer_timeout: None,
            breaker_failures: 5,
            breaker_pause: Duration::from_secs(10),
            breaker_max_pause: Duration::from_secs(20),
        }
    }
}

/// The settings of one model; `None` for the provider's setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPolicyOverrides {
    /// See [`CallPolicy::retries`].
    pub retries: Option<u32>,
    /// See [`CallPolicy::first_byte_timeout`].
    pub first_byte_timeout: Option<Duration>,
    /// See [`CallPolicy::idle_timeout`].
    pub idle_timeout: Option<Duration>,
    /// See [`CallPolicy::total_timeout`].
    pub total_timeout: Option<Duration>,
    /// See [`CallPolicy::first_token_timeout`].
    pub first_token_timeout: Option<Duration>,
    /// See [`CallPolicy::whole_answer_timeout`].
    pub whole_answer_timeout: Option<Duration>,
    /// See [`CallPolicy::breaker_failures`].
    pub breaker_failures: Option<u32>,
    /// See [`CallPolicy::breaker_pause`].
    pub breaker_pause: Option<Duration>,
    /// See [`CallPolicy::breaker_max_pause`].
    pub breaker_max_pause: Option<Duration>,
}

impl Settings {
    /// The settings that apply to calls to `model`, by the provider's own name.
    pub fn call_policy(&self, model: &str) -> CallPolicy {
        let general = self.call_policy;
        self.models.get(model).map_or(general, |settings| settings.call_policy.or(general))
    }
}

impl CallPolicyOverrides {
    fn or(&self, general: CallPolicy) -> CallPolicy {
        CallPolicy {
            retries: self.retries.unwrap_or(general.retries),
            first_byte_timeout: self.first_byte_timeout.unwrap_or(general.first_byte_timeout),
            idle_timeout: self.idle_timeout.unwrap_or(general.idle_timeout),
            total_timeout: self.total_timeout.unwrap_or(general.total_timeout),
            first_token_timeout: self.first_token_timeout.or(general.first_token_timeout),
            whole_answer_timeout: self.whole_answer_timeout.or(general.whole_answer_timeout),
            breaker_failures: self.breaker_failures.unwrap_or(general.breaker_failures),
            breaker_pause: self.breaker_pause.unwrap_or(general.breaker_pause),
            breaker_max_pause: self.breaker_max_pause.unwrap_or(general.breaker_max_pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Kind, ModelSettings};

    #[test]
    fn a_model_s_settings_take_precedence_over_its_provider_s() {
        let mut settings = Settings::new("acme", Kind::OpenAi, "https://api.example.com/v1");
        settings.call_policy.first_token_timeout = Some(Duration::from_secs(7));
        let call_policy = CallPolicyOverrides {
            retries: Some(0),
            total_timeout: Some(Duration::from_secs(3)),
            breaker_failures: Some(0),
            ..CallPolicyOverrides::default()
        };
        settings.models.insert("m".to_owned(), ModelSettings { call_policy, ..ModelSettings::default() });
        let general = settings.call_policy("other");
        assert_eq!((general.retries, general.breaker_failures), (2, 5));
        assert_eq!(general.breaker_pause, Duration::from_secs(10));
        let expected =
            CallPolicy { retries: 0, total_timeout: Duration::from_secs(3), breaker_failures: 0, ..general };
        assert_eq!(settings.call_policy("m"), expected);
    }
}
