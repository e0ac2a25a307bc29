//! Everything that depends on the configuration, as one value.
//!
//! It is swapped as a whole: a request takes it once and uses it to its end, whatever is swapped in meanwhile. What
//! must hold: building the next one changes nothing about the one in force, so that a failure leaves everything as it
//! was; only [`Configured::activate`] changes what the two share, and it cannot fail.

use std::sync::Arc;
use std::time::Duration;

use super::{StartError, VerdictCache};
use crate::api::verify::Domain;
use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::inference::Gateway;
use crate::limits;
use crate::providers::{Kind, SetupError};
use crate::verify::Verifier;

/// Everything that depends on the configuration.
pub struct Configured {
    /// The configured rate limits.
    pub limits: limits::Settings,
    /// Calls models.
    pub gateway: Arc<Gateway>,
    /// Runs verifications.
    pub verifier: Arc<Verifier>,
    /// Whether all answers of a kind are simulated: those of every domain's panel, or of every provider.
    pub is_sandbox: bool,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// The largest body of a request to a model, in bytes.
    pub inference_max_body_bytes: usize,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// How long single attempts stay in the ledger; `None` for good.
    pub usage_retention: Option<Duration>,
}

impl Configured {
    /// The initial value of a server.
    pub(super) fn new(
        config: &ServerConfig,
        clock: &Clock,
        verdicts: Option<Arc<VerdictCache>>,
    ) -> Result<Self, StartError> {
        let gateway = Gateway::new(config.providers.clone(), clock.clone()).map_err(unusable)?;
        Ok(Self::with(config, gateway, |gateway| {
            let verifier = Verifier::new(gateway, config.verify.clone(), clock.clone());
            match verdicts {
                Some(verdicts) => verifier.with_cache(verdicts),
                None => verifier,
            }
        }))
    }

    /// The value that is to replace this one.
    pub(super) fn next(&self, config: &ServerConfig, clock: &Clock) -> Result<Self, StartError> {
        let providers = config.providers.clone();
        let gateway = Gateway::replacing(&self.gateway, providers, clock.clone()).map_err(unusable)?;
        Ok(Self::with(config, gateway, |gateway| {
            Verifier::new(gateway.clone(), config.verify.clone(), clock.clone())
                .replacing(&self.verifier, |model| gateway.has_same_target(&self.gateway, model))
        }))
    }

    /// Applies the limits of this configuration to what is shared with the previous one.
    pub(super) fn activate(&self) {
        self.gateway.activate();
        self.verifier.activate();
    }

    fn with(
        config: &ServerConfig,
        gateway: Gateway,
        verifier: impl FnOnce(Arc<Gateway>) -> Verifier,
    ) -> Self {
        let named = config.verify.models().map(str::to_owned).collect();
        let gateway = Arc::new(gateway.with_settings(config.inference.clone(), named));
        let verifier = Arc::new(verifier(gateway.clone()));
        let domains = [Domain::General, Domain::Legal];
        let simulates = domains.into_iter().all(|domain| verifier.mode(domain).is_some());
        let mut kinds = config.providers.iter().map(|provider| provider.kind);
        Self {
            is_sandbox: simulates
                || (!config.providers.is_empty() && kinds.all(|kind| kind == Kind::Sandbox)),
            limits: config.limits,
            gateway,
            verifier,
            max_body_bytes: config.max_body_bytes,
            inference_max_body_bytes: config.inference_max_body_bytes,
            trusted_proxies: config.trusted_proxies.clone(),
            usage_retention: config.usage_retention,
        }
    }
}

fn unusable(error: SetupError) -> StartError {
    StartError::Provider { name: error.provider, message: error.message }
}
