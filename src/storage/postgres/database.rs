//! A database with its connections, and how it is waited for.
//!
//! A runtime of its own, of one thread, drives the connections: callers come from many runtimes, and from none. Most
//! calls block, as those of files do, and come from threads on which that is allowed; the look-up of every request's key
//! is awaited.

use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::batches::Batches;
use super::examine::why_unwritable;
use super::session::{Session, first};
use super::{Failure, PostgresAddress, migrations, remote, translated};
use crate::storage::queries::keys;
use crate::storage::{Error, KeyHash, KeyRow, db};

/// Connections at once for look-ups of keys, and as many for everything else, which may take longer; further calls wait
/// for a free one.
const MOST_CONNECTIONS: usize = 8;

/// Of those for everything else, so many serve requests at once: the others are for what is written.
const MOST_QUESTIONS: usize = 6;

/// How long the look-up of a request's key may take, getting a connection included.
const LOOK_UP: Duration = Duration::from_secs(2);

/// How long a connection for other calls may take.
const CONNECTION: Duration = Duration::from_secs(5);

/// How long those may take in all, also a write that waits for another one.
const CALL: Duration = Duration::from_secs(10);

/// What each connection begins with, beside its own time for a statement. The server ends transactions that nobody goes
/// on with, so that they block nobody else; and a commit waits for the disk even where the cluster's default is not to.
const ON_CONNECTION: &str = "
    SET idle_in_transaction_session_timeout = '10s';
    SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off'";

/// A look-up's time at the database, less than it is waited for here: so its end is heard of.
const LOOK_UP_THERE: &str = "SET statement_timeout = '1900ms';";

/// The same of other statements.
const CALL_THERE: &str = "SET statement_timeout = '9900ms';";

/// The look-up of every request, put together once.
static BY_HASH: LazyLock<String> = LazyLock::new(|| translated(&keys::BY_HASH));

/// What is written one after the other, whichever server does.
#[derive(Clone, Copy)]
pub(in crate::storage) enum Lane {
    /// Apps, keys, sessions and their audit.
    Main,
    /// Usage.
    Ledger,
}

impl Lane {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Ledger => "ledger",
        }
    }
}

/// A database.
pub(in crate::storage) struct Database {
    look_ups: Pool,
    calls: Pool,
    driver: Driver,
    /// Questions of tasks that may be open.
    turns: Arc<Semaphore>,
    /// What is known of batches that were begun.
    pub(super) batches: Mutex<Batches>,
}

impl Database {
    /// Connects, and brings the tables up to date. Blocking.
    pub(in crate::storage) fn open(address: &PostgresAddress) -> Result<Self, Error> {
        let database = Self::connect(address)?;
        migrations::migrate(&database)?;
        Ok(database)
    }

    /// Connects when it is first asked.
    pub(super) fn connect(address: &PostgresAddress) -> Result<Self, Error> {
        let tls = address.tls().map_err(|why| remote(Failure::Unusable(why)))?;
        // A connection that broke is noticed where it is driven, so none has to be tried before it is used.
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = |own: &'static str| {
            let manager = Manager::from_config(address.config().clone(), tls.clone(), manager.clone());
            let prepare = Hook::async_fn(move |client, _| {
                let settings = format!("{own}{ON_CONNECTION}");
                Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
            });
            let pool = Pool::builder(manager).max_size(MOST_CONNECTIONS).post_create(prepare).build();
            pool.map_err(|cause| remote(Failure::Unusable(cause.to_string())))
        };
        let (look_ups, calls) = (pool(LOOK_UP_THERE)?, pool(CALL_THERE)?);
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build()?;
        let driver = Driver { handle: runtime.handle().clone(), runtime: Some(runtime) };
        let turns = Arc::new(Semaphore::new(MOST_QUESTIONS));
        Ok(Self { look_ups, calls, driver, turns, batches: Mutex::default() })
    }

    /// Reads. Each statement of `query` sees what was committed before it. Blocking.
    pub(in crate::storage) fn read<T>(
        &self,
        query: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        query(&self.session(CALL)?)
    }

    /// Writes in one transaction, kept if `change` succeeds and undone if it fails, behind all others of its lane.
    /// Blocking.
    pub(in crate::storage) fn write<T>(
        &self,
        lane: Lane,
        change: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.in_transaction(CALL, |session| {
            let begin = "UPDATE writes SET number = number + 1 WHERE lane = ?1";
            if session.execute(begin, &[&lane.name()])? != 1 {
                let why = "its table `writes` lacks a row, without which servers do not wait for each other";
                return Err(remote(Failure::Unusable(why.to_owned())));
            }
            change(session)
        })
    }

    /// The same without waiting for anybody, for so long at most.
    pub(super) fn in_transaction<T>(
        &self,
        patience: Duration,
        change: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let session = self.session(patience)?;
        session.begin()?;
        let outcome = change(&session);
        match outcome {
            Ok(_) => session.commit()?,
            Err(_) => session.undo(),
        }
        outcome
    }

    /// A number that changes with every write of a lane, by whatever server. Blocking.
    pub(in crate::storage) fn version(&self, lane: Lane) -> Result<i64, Error> {
        self.read(|session| {
            let rows = session.query("SELECT number FROM writes WHERE lane = ?1", &[&lane.name()])?;
            Ok(first(&rows)?.unwrap_or(0))
        })
    }

    /// Fails if this user cannot write to it. Blocking.
    pub(in crate::storage) fn must_be_writable(&self) -> Result<(), Error> {
        match why_unwritable(&self.session(CALL)?)? {
            Some(why) => Err(remote(Failure::Unusable(why))),
            None => Ok(()),
        }
    }

    /// The key with this hash.
    pub(in crate::storage) async fn look_up_key(&self, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
        let (pool, hash) = (self.look_ups.clone(), *hash);
        let by = Instant::now() + LOOK_UP;
        let asked = self.driver.handle.spawn(async move {
            let client = timeout_at(by, pool.get()).await.map_err(|_| Failure::TooLong)??;
            let work = async {
                let query = client.prepare_cached(&BY_HASH).await?;
                client.query_opt(&query, &[&hash.as_slice()]).await
            };
            let outcome = match timeout_at(by, work).await {
                Ok(found) => found.map_err(Failure::Refused),
                Err(_) => Err(Failure::TooLong),
            };
            if outcome.as_ref().is_err_and(Failure::spoils_connection) {
                drop(Object::take(client));
            }
            outcome
        });
        let found = asked.await.map_err(|cause| remote(Failure::Unusable(cause.to_string())))?;
        let row = found.map_err(remote)?;
        Ok(row.as_ref().map(|row| keys::key_row(&db::Row::Postgres(row))).transpose()?)
    }

    /// A turn to ask something from a task that must not wait itself.
    pub(in crate::storage) async fn turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        let turn = timeout(LOOK_UP, self.turns.clone().acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| remote(Failure::TooLong))
    }

    /// A connection for what takes so long at most.
    pub(super) fn session(&self, patience: Duration) -> Result<Session<'_>, Error> {
        let now = Instant::now();
        let got = async { self.calls.get().await.map_err(Failure::from) };
        let client = self.wait(now + patience.min(CONNECTION), got).map_err(remote)?;
        Ok(Session::new(self, client, now + patience))
    }

    /// Waits for `work`, on this thread.
    pub(super) fn wait<T>(
        &self,
        by: Instant,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let _driven = self.driver.handle.enter();
        block_on(async { timeout_at(by, work).await.unwrap_or(Err(Failure::TooLong)) })
    }
}

/// What drives the connections, for as long as the database is there.
struct Driver {
    handle: Handle,
    /// `None` once it is to end.
    runtime: Option<Runtime>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last holder may be a task, which must not wait.
            runtime.shutdown_background();
        }
    }
}

/// Waits for a future on a thread that may wait. Tokio's own way refuses to on one of a runtime's, also where the wait is
/// short and known to be.
fn block_on<F: Future>(work: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}
