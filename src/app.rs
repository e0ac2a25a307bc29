//! The composition root: opens storage, builds the rooms below the server, and hands them on as one [`App`].
//!
//! What configuration decides is a value of its own in it, [`Configured`], which can be exchanged while the server runs;
//! all that is counted, kept or written stays.

mod configured;

pub use configured::Configured;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::keys::setup::Setup;
use crate::limits::{Limiter, LimitsStore};
use crate::metrics::Metrics;
use crate::storage::{self, DatabaseUrl, Store};
use crate::usage::{Books, Ledger};
use crate::workers::Each;

/// Everything a request may need. One per server, shared by all connections.
pub struct App {
    /// Apps, keys, ledger.
    pub store: Store,
    /// Rate limits, of this node or of all that share a store for them.
    pub limiter: Limiter,
    /// Where attempts are booked.
    pub ledger: Ledger,
    /// What is counted for Prometheus.
    pub metrics: Arc<Metrics>,
    /// By which the first console key may be made, while there is none.
    pub setup: Setup,
    /// One turn for all who have failed too often to show who they are.
    pub suspects: Semaphore,
    /// The time of day.
    pub clock: Clock,
    books: Each<Arc<Books>>,
    configured: ArcSwap<Configured>,
    /// Held while the configuration is exchanged: the next one follows on the one in force.
    exchange: Mutex<()>,
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
    /// Whether an app could be made of `config`, but for its database: providers are set up, and nothing is connected.
    pub fn check(config: &ServerConfig, clock: Clock) -> Result<(), StartError> {
        Configured::new(config, &clock).map(drop)
    }

    /// An app on the database that `config` names. Blocking, and not for a thread that runs futures.
    pub fn open(config: &ServerConfig, clock: Clock) -> Result<Self, StartError> {
        let now = clock.now();
        let store = match &config.database {
            DatabaseUrl::Sqlite => Store::open(&config.data_dir, now),
            DatabaseUrl::Postgres(address) => Store::connect(address, now),
        };
        let store = store.map_err(StartError::Storage)?;
        store.must_be_writable().map_err(StartError::Storage)?;
        Self::assemble(config, store, config.limits_store.clone(), clock)
    }

    /// An app that leaves nothing behind: for the embedded server of one command, and for tests.
    pub fn in_memory(config: &ServerConfig, clock: Clock) -> Result<Self, StartError> {
        let store = Store::in_memory(clock.now()).map_err(StartError::Storage)?;
        Self::assemble(config, store, LimitsStore::Memory, clock)
    }

    fn assemble(
        config: &ServerConfig,
        store: Store,
        counted: LimitsStore,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let configured = Configured::new(config, &clock)?;
        let now = clock.now();
        let (providers, models) = names(&configured, &clock);
        let metrics = Arc::new(Metrics::new(providers, models, now));
        let ledger = Ledger::new(store.clone()).counted_in(metrics.clone());
        Ok(Self {
            setup: Setup::default(),
            limiter: Limiter::new(store.clone(), counted),
            books: Each::new(|| Books::new(ledger.clone(), clock.clone())),
            ledger,
            metrics,
            suspects: Semaphore::new(1),
            clock,
            configured: ArcSwap::from_pointee(configured),
            exchange: Mutex::default(),
            store,
        })
    }

    /// Where a request of this worker is put down.
    pub fn books(&self) -> Arc<Books> {
        self.books.here().clone()
    }

    /// What configuration decides, as of now. A request takes it once, when it comes.
    pub fn configured(&self) -> Arc<Configured> {
        self.configured.load_full()
    }

    /// Goes by `config` from the next request on, where it can be changed: where data lies cannot. Requests under way end
    /// by what they began with. Blocking.
    ///
    /// # Errors
    /// If a provider cannot be set up; then nothing has changed.
    pub fn reconfigure(&self, config: &ServerConfig) -> Result<(), StartError> {
        // Nothing is left half done by a panic in here.
        let _alone = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.configured().next(config, &self.clock)?;
        let (providers, models) = names(&next, &self.clock);
        self.metrics.add_models(providers, models);
        next.take_effect();
        self.configured.store(Arc::new(next));
        Ok(())
    }

    /// Writes what has been queued and counted to the store, one even if the other cannot be written. Blocking: where
    /// another process holds the store, as long as it is waited for once.
    pub fn flush(&self) -> Result<(), storage::Error> {
        let ledger = self.ledger.flush();
        if ledger.as_ref().is_err_and(storage::Error::is_busy) {
            return ledger;
        }
        self.limiter.flush(self.clock.now())?;
        ledger
    }
}

/// The providers and models that are counted by name.
fn names(configured: &Configured, clock: &Clock) -> (Vec<String>, Vec<String>) {
    let gateway = &configured.gateway;
    let providers = gateway.provider_names().into_iter().map(str::to_owned).collect();
    (providers, gateway.models(clock.now()))
}
