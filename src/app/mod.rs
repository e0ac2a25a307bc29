//! The composition root: opens storage, builds the rooms below the server, and provides them as one [`AppState`].
//!
//! Everything that depends on the configuration is a single value in it, [`Configured`], which can be swapped while the
//! server runs; all that is counted, stored or written stays.

mod configured;
mod verdicts;

pub use configured::Configured;
pub use verdicts::VerdictCache;

use std::io;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use http::HeaderMap;
use tokio::sync::{OnceCell, Semaphore};

use crate::clock::{Clock, Time};
use crate::config::ServerConfig;
use crate::keys::setup::Setup;
use crate::limits::{Limiter, LimitsStore};
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::net::workers::PerWorker;
use crate::storage::{self, DatabaseUrl, Store};
use crate::traces::{Span, TraceContext, Tracer};
use crate::usage::{Accounting, Ledger};
use crate::verify::receipt::SigningKey;

/// Everything below HTTP that a request may need. One per server, shared by all connections.
pub struct AppState {
    /// Apps, keys, sessions and usage.
    pub store: Store,
    /// Rate limits, of this server or of all servers that share a limits store.
    pub limiter: Limiter,
    /// Records attempts.
    pub ledger: Ledger,
    /// Counters for Prometheus.
    pub metrics: Arc<Metrics>,
    /// What verifications found before, and answers that are kept.
    pub verdicts: Arc<VerdictCache>,
    /// Creates the first console key, as long as there is none.
    pub setup: Setup,
    /// A single permit for all clients that have failed to authenticate too often.
    pub suspects: Semaphore,
    /// Traces, if somebody is to get them.
    pub traces: Option<Arc<Tracer>>,
    /// The time of day.
    pub clock: Clock,
    /// Signs receipts; made or looked up when the first one is asked for.
    receipt_key: OnceCell<Arc<SigningKey>>,
    accounting: PerWorker<Arc<Accounting>>,
    configured: ArcSwap<Configured>,
    /// Held while the configuration is swapped: the next one is derived from the one in force.
    exchange: Mutex<()>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database cannot be opened.
    #[error("{0}")]
    Storage(#[source] storage::Error),
    /// A provider cannot be set up.
    #[error("provider `{name}`: {message}")]
    Provider {
        /// Its configured name.
        name: String,
        /// What is wrong.
        message: String,
    },
}

impl AppState {
    /// Checks that everything but the database of an app can be set up from `config`. Nothing is connected.
    pub fn check(config: &ServerConfig, clock: &Clock) -> Result<(), StartError> {
        Configured::new(config, clock, None).map(drop)
    }

    /// An app on the database that `config` names. Blocking, and not for a thread that runs futures.
    pub fn open(config: &ServerConfig, clock: Clock) -> Result<Self, StartError> {
        let now = clock.now();
        let store = match &config.database {
            DatabaseUrl::Sqlite => Store::open(&config.data_dir, now),
            DatabaseUrl::Postgres(address) => Store::connect(address, now),
        };
        let store = store.map_err(StartError::Storage)?;
        store.ensure_writable().map_err(StartError::Storage)?;
        Self::assemble(config, store, config.limits_store.clone(), clock)
    }

    /// An app that leaves nothing behind: for the embedded server of one command, and for tests.
    pub fn in_memory(config: &ServerConfig, clock: Clock) -> Result<Self, StartError> {
        let store = Store::in_memory(clock.now()).map_err(StartError::Storage)?;
        // Nobody who runs a command waits for a collector, even if the environment names one for servers.
        Ok(Self { traces: None, ..Self::assemble(config, store, LimitsStore::Memory, clock)? })
    }

    fn assemble(
        config: &ServerConfig,
        store: Store,
        counted: LimitsStore,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let verdicts = Arc::new(VerdictCache::new(store.clone(), clock.clone()));
        let configured = Configured::new(config, &clock, Some(verdicts.clone()))?;
        let now = clock.now();
        let (providers, models) = names(&configured, &clock);
        let metrics = Arc::new(Metrics::new(providers, models, now));
        let ledger = Ledger::new(store.clone()).with_metrics(metrics.clone());
        Ok(Self {
            setup: Setup::default(),
            limiter: Limiter::new(store.clone(), counted),
            accounting: PerWorker::new(|| Accounting::new(ledger.clone(), clock.clone())),
            ledger,
            metrics,
            verdicts,
            suspects: Semaphore::new(1),
            receipt_key: OnceCell::new(),
            traces: Tracer::new(&config.traces),
            clock,
            configured: ArcSwap::from_pointee(configured),
            exchange: Mutex::default(),
            store,
        })
    }

    /// The app, which signs receipts with this key whatever its own store holds: for the embedded server of one
    /// command.
    #[must_use]
    pub fn with_receipt_key(self, key: SigningKey) -> Self {
        Self { receipt_key: OnceCell::new_with(Some(Arc::new(key))), ..self }
    }

    /// The key that signs receipts: the one in the store, made now if there is none.
    ///
    /// # Errors
    /// If the store or the operating system's generator fails.
    pub async fn receipt_key(&self) -> Result<Arc<SigningKey>, storage::Error> {
        let key = self.receipt_key.get_or_try_init(async || {
            let (store, now) = (self.store.clone(), self.clock.now());
            // A write waits for the disk.
            let made = tokio::task::spawn_blocking(move || receipt_key(&store, now)).await;
            made.unwrap_or_else(|cause| Err(io::Error::other(cause).into())).map(Arc::new)
        });
        key.await.cloned()
    }

    /// The span of a request with these headers, which arrives now; nothing without traces.
    pub fn begin_trace(&self, headers: &HeaderMap) -> Span {
        let Some(tracer) = &self.traces else { return Span::default() };
        tracer.begin(TraceContext::of_caller(headers), self.clock.now())
    }

    /// This worker's [`Accounting`], for a new request.
    pub fn accounting(&self) -> Arc<Accounting> {
        self.accounting.here().clone()
    }

    /// The configuration in force. A request takes it once, when it arrives.
    pub fn configured(&self) -> Arc<Configured> {
        self.configured.load_full()
    }

    /// Applies `config` from the next request on, as far as it can change at run time: the place of the data cannot.
    /// Requests under way finish with the configuration they began with. Blocking.
    ///
    /// # Errors
    /// If a provider cannot be set up; then nothing has changed.
    pub fn reconfigure(&self, config: &ServerConfig) -> Result<(), StartError> {
        let _alone = self.exchange.locked();
        let next = self.configured().next(config, &self.clock)?;
        let (providers, models) = names(&next, &self.clock);
        self.metrics.add_models(providers, models);
        next.activate();
        self.configured.store(Arc::new(next));
        Ok(())
    }

    /// Writes what waits to be kept in the verdict cache. Blocking.
    pub fn flush_verdicts(&self) {
        self.verdicts.flush();
    }

    /// Deletes what the verdict cache need not keep any longer. Blocking.
    ///
    /// # Errors
    /// If the store fails.
    pub fn tidy_verdicts(&self) -> Result<(), storage::Error> {
        let configured = self.configured();
        let max_answer_age = configured.gateway.max_cache();
        self.verdicts.tidy(|domain| configured.verifier.settings(domain).cache, max_answer_age)
    }

    /// Writes queued rows and counted requests to the store, one even if the other fails. Blocking: if another process
    /// holds the store, only one timeout is waited for.
    pub fn flush(&self) -> Result<(), storage::Error> {
        let ledger = self.ledger.flush();
        if ledger.as_ref().is_err_and(storage::Error::is_busy) {
            return ledger;
        }
        self.limiter.flush(self.clock.now())?;
        ledger
    }
}

/// The key that signs the receipts of all servers on this store, made now if there is none. Blocking.
///
/// # Errors
/// If the store or the operating system's generator fails.
pub fn receipt_key(store: &Store, now: Time) -> Result<SigningKey, storage::Error> {
    let seed = match store.receipt_seed()? {
        Some(seed) => seed,
        None => store.receipt_seed_or(&SigningKey::fresh_seed().map_err(io::Error::other)?, now)?,
    };
    SigningKey::from_seed(&seed).ok_or_else(|| io::Error::other("the receipt key is unusable").into())
}

/// The providers and models that are counted by name.
fn names(configured: &Configured, clock: &Clock) -> (Vec<String>, Vec<String>) {
    let gateway = &configured.gateway;
    let providers = gateway.provider_names().into_iter().map(str::to_owned).collect();
    (providers, gateway.models(clock.now()))
}
