//! What configuration decides, as one value.
//!
//! It is swapped whole: a request takes it once and goes by it to its end, whatever is swapped in meanwhile. What must
//! hold: making the next one changes nothing of the one in force, so that one that cannot be made leaves everything as
//! it is; [`Configured::take_effect`] is all that changes what both share, and cannot fail.

use std::sync::Arc;
use std::time::Duration;

use super::StartError;
use crate::api::verify::Domain;
use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::inference::Gateway;
use crate::limits;
use crate::providers::{Kind, SetupError};
use crate::verify::Verifier;

/// What configuration decides.
pub struct Configured {
    /// The numbers that rate limits go by.
    pub limits: limits::Settings,
    /// Asks models.
    pub gateway: Arc<Gateway>,
    /// Runs verifications.
    pub verifier: Arc<Verifier>,
    /// Whether answers are simulated: those of a panel, or of every provider there is.
    pub is_sandbox: bool,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// How long single attempts stay in the ledger; `None` for ever.
    pub usage_retention: Option<Duration>,
}

impl Configured {
    /// The first one of a server.
    pub(super) fn new(config: &ServerConfig, clock: &Clock) -> Result<Self, StartError> {
        let gateway = Gateway::new(config.providers.clone(), clock.clone()).map_err(unusable)?;
        Ok(Self::with(config, gateway, |gateway| {
            Verifier::new(gateway, config.verify.clone(), clock.clone())
        }))
    }

    /// The one that is to take the place of this one.
    pub(super) fn next(&self, config: &ServerConfig, clock: &Clock) -> Result<Self, StartError> {
        let providers = config.providers.clone();
        let gateway = Gateway::in_place_of(&self.gateway, providers, clock.clone()).map_err(unusable)?;
        Ok(Self::with(config, gateway, |gateway| {
            Verifier::new(gateway, config.verify.clone(), clock.clone()).in_place_of(&self.verifier)
        }))
    }

    /// Holds what goes on to the limits of this one.
    pub(super) fn take_effect(&self) {
        self.gateway.take_effect();
        self.verifier.take_effect();
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
        let simulates = domains.into_iter().any(|domain| verifier.mode(domain).is_some());
        let mut kinds = config.providers.iter().map(|provider| provider.kind);
        Self {
            is_sandbox: simulates
                || (!config.providers.is_empty() && kinds.all(|kind| kind == Kind::Sandbox)),
            limits: config.limits,
            gateway,
            verifier,
            max_body_bytes: config.max_body_bytes,
            trusted_proxies: config.trusted_proxies.clone(),
            usage_retention: config.usage_retention,
        }
    }
}

fn unusable(error: SetupError) -> StartError {
    StartError::Provider { name: error.provider, message: error.message }
}
