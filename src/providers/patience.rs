//! How much a call to a model is borne with: what is set for the model, else what is set for its provider.
//!
//! It is settled when a call begins and goes with it, so that nothing behind it has to know where a limit was set.

use std::time::Duration;

use super::Settings;

/// No pause of a circuit breaker is longer, however often the model fails and whatever its provider asks for: nobody
/// would know that it is well again.
pub const LONGEST_BREAKER_PAUSE: Duration = Duration::from_mins(5);

/// What holds for the calls to one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often a call is tried again, at most.
    pub retries: u32,
    /// From the request to the first byte of the answer.
    pub first_byte_timeout: Duration,
    /// Between two pieces of the answer.
    pub idle_timeout: Duration,
    /// For a whole call; for a caller's completion, all calls to the model included.
    pub total_timeout: Duration,
    /// To the first token, where another model could be asked; `None` leaves it to what is set for all models.
    pub first_token_timeout: Option<Duration>,
    /// After how many failures in a row the model is paused; 0 for never.
    pub breaker_failures: u32,
    /// For how long at first.
    pub breaker_pause: Duration,
}

/// What is set about it for one model; `None` leaves it to the provider's setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPatience {
    /// See [`Patience::retries`].
    pub retries: Option<u32>,
    /// See [`Patience::first_byte_timeout`].
    pub first_byte_timeout: Option<Duration>,
    /// See [`Patience::idle_timeout`].
    pub idle_timeout: Option<Duration>,
    /// See [`Patience::total_timeout`].
    pub total_timeout: Option<Duration>,
    /// See [`Patience::first_token_timeout`].
    pub first_token_timeout: Option<Duration>,
    /// See [`Patience::breaker_failures`].
    pub breaker_failures: Option<u32>,
    /// See [`Patience::breaker_pause`].
    pub breaker_pause: Option<Duration>,
}

impl Settings {
    /// What holds for calls to `model`, by the provider's own name.
    pub fn patience(&self, model: &str) -> Patience {
        let general = Patience {
            retries: self.retries,
            first_byte_timeout: self.first_byte_timeout,
            idle_timeout: self.idle_timeout,
            total_timeout: self.total_timeout,
            first_token_timeout: self.first_token_timeout,
            breaker_failures: self.breaker_failures,
            breaker_pause: self.breaker_pause,
        };
        self.models.get(model).map_or(general, |settings| settings.patience.over(general))
    }
}

impl ModelPatience {
    fn over(&self, general: Patience) -> Patience {
        Patience {
            retries: self.retries.unwrap_or(general.retries),
            first_byte_timeout: self.first_byte_timeout.unwrap_or(general.first_byte_timeout),
            idle_timeout: self.idle_timeout.unwrap_or(general.idle_timeout),
            total_timeout: self.total_timeout.unwrap_or(general.total_timeout),
            first_token_timeout: self.first_token_timeout.or(general.first_token_timeout),
            breaker_failures: self.breaker_failures.unwrap_or(general.breaker_failures),
            breaker_pause: self.breaker_pause.unwrap_or(general.breaker_pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Kind, ModelSettings};

    #[test]
    fn a_model_s_settings_come_before_its_provider_s() {
        let mut settings = Settings::new("acme", Kind::OpenAi, "https://api.example.com/v1");
        settings.first_token_timeout = Some(Duration::from_secs(7));
        let patience = ModelPatience {
            retries: Some(0),
            total_timeout: Some(Duration::from_secs(3)),
            breaker_failures: Some(0),
            ..ModelPatience::default()
        };
        settings.models.insert("m".to_owned(), ModelSettings { patience, ..ModelSettings::default() });
        let general = settings.patience("other");
        assert_eq!((general.retries, general.breaker_failures), (2, 5));
        assert_eq!(general.breaker_pause, Duration::from_secs(10));
        let expected =
            Patience { retries: 0, total_timeout: Duration::from_secs(3), breaker_failures: 0, ..general };
        assert_eq!(settings.patience("m"), expected);
    }
}
