//! The composition root: opens storage, builds the rooms below the server, and hands them on as one [`App`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::verify::Domain;
use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::inference::{self, Gateway};
use crate::keys::setup::Setup;
use crate::limits::{self, Limiter};
use crate::metrics::Metrics;
use crate::providers::Kind;
use crate::storage::{self, Store};
use crate::usage::Ledger;
use crate::verify::Verifier;

/// Everything a request may need. One per server, shared by all connections.
pub struct App {
    /// Apps, keys, ledger.
    pub store: Store,
    /// Rate limits of this node.
    pub limiter: Limiter,
    /// The numbers they go by.
    pub limits: limits::Settings,
    /// Where attempts are booked.
    pub ledger: Ledger,
    /// Asks models.
    pub gateway: Arc<Gateway>,
    /// What is counted for Prometheus.
    pub metrics: Arc<Metrics>,
    /// Runs verifications.
    pub verifier: Arc<Verifier>,
    /// Whether answers are simulated: those of a panel, or of every provider there is.
    pub is_sandbox: bool,
    /// By which the first console key may be made, while there is none.
    pub setup: Setup,
    /// The time of day.
    pub clock: Clock,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// How long single attempts stay in the ledger; `None` for ever.
    pub usage_retention: Option<Duration>,
}

/// Why a server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The database cannot be opened.
    Storage(storage::Error),
    /// A provider cannot be set up.
    Provider {
        /// Its configured name.
        name: String,
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(cause) => cause.fmt(f),
            Self::Provider { name, message } => write!(f, "provider `{name}`: {message}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(cause) => Some(cause),
            Self::Provider { .. } => None,
        }
    }
}

impl App {
    /// An app on the data directory that `config` names.
    pub fn open(config: &ServerConfig, clock: Clock) -> Result<Self, StartError> {
        let store = Store::open(&config.data_dir, clock.now()).map_err(StartError::Storage)?;
        Self::assemble(config, store, clock)
    }

    /// An app that leaves nothing behind: for the embedded server of one command, and for tests.
    pub fn in_memory(config: &ServerConfig, clock: Clock) -> Result<Self, StartError> {
        let store = Store::in_memory(clock.now()).map_err(StartError::Storage)?;
        Self::assemble(config, store, clock)
    }

    fn assemble(config: &ServerConfig, store: Store, clock: Clock) -> Result<Self, StartError> {
        let gateway = Gateway::new(config.providers.clone(), clock.clone())
            .map_err(|error| StartError::Provider { name: error.provider, message: error.message })?;
        let gateway = Arc::new(gateway.with_settings(chat_settings(config)));
        let now = clock.now();
        let providers = gateway.provider_names().into_iter().map(str::to_owned);
        let metrics = Arc::new(Metrics::new(providers, gateway.models(now), now));
        let verifier = Arc::new(Verifier::new(gateway.clone(), config.verify.clone(), clock.clone()));
        let domains = [Domain::General, Domain::Legal];
        let simulates = domains.into_iter().any(|domain| verifier.mode(domain).is_some());
        let mut kinds = config.providers.iter().map(|provider| provider.kind);
        Ok(Self {
            is_sandbox: simulates
                || (!config.providers.is_empty() && kinds.all(|kind| kind == Kind::Sandbox)),
            setup: Setup::default(),
            limiter: Limiter::new(store.clone()),
            limits: config.limits,
            ledger: Ledger::new(store.clone()).counted_in(metrics.clone()),
            metrics,
            verifier,
            gateway,
            clock,
            max_body_bytes: config.max_body_bytes,
            trusted_proxies: config.trusted_proxies.clone(),
            usage_retention: config.usage_retention,
            store,
        })
    }

    /// Writes what has been queued and counted to the store, one even if the other cannot be written. Blocking.
    pub fn flush(&self) -> Result<(), storage::Error> {
        let ledger = self.ledger.flush();
        self.limiter.flush(self.clock.now())?;
        ledger
    }
}

fn chat_settings(config: &ServerConfig) -> inference::Settings {
    let panels = [&config.verify.general, &config.verify.legal].into_iter().flat_map(|domain| {
        let extractors = std::iter::once(&domain.extractor).chain(&domain.extractor_fallbacks);
        extractors.chain(&domain.panel).chain(&domain.standby)
    });
    inference::Settings {
        first_token_timeout_with_fallback: config.inference.first_token_timeout_with_fallback,
        fallbacks: config.inference.fallbacks.clone(),
        named: panels.cloned().collect(),
    }
}
