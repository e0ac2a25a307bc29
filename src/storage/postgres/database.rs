//! A database with its connection pools, and how calls wait for it.
//!
//! A runtime of its own, with one thread, drives the connections: callers come from many runtimes, or from none. Most
//! calls block, as those on files do, and come from threads that may block; the look-up of every request's key is
//! awaited.

use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::types::ToSql;

use super::batches::Batches;
use super::examine::why_unwritable;
use super::session::{Session, first};
use super::{PostgresAddress, PostgresError, migrations, storage_error, to_postgres_sql};
use crate::storage::queries::keys;
use crate::storage::{Error, KeyHash, KeyRow, ReadPurpose, db};

/// Connections for look-ups of keys; further calls wait for a free one.
const LOOK_UP_CONNECTIONS: usize = 8;

/// The number of connections for everything else, which may take longer, that async reads of one purpose may use at
/// once: a locked table delays only those.
const MAX_ASYNC_READS: usize = 2;

/// Connections for everything else: two are left for writes.
const CALL_CONNECTIONS: usize = MAX_ASYNC_READS * ReadPurpose::COUNT + 2;

/// The timeout of a request's key look-up, including getting a connection.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(2);

/// The timeout for getting a connection for other calls.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of other calls in all, including a write that waits for another one.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The setup of each connection, besides its statement timeout. The server ends idle transactions, so that they block
/// nobody else; and a commit waits for the disk even if the cluster's default is not to.
const CONNECTION_SETUP: &str = "
    SET idle_in_transaction_session_timeout = '10s';
    SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off'";

/// The server-side timeout of a look-up, shorter than the one here, so that its error still arrives.
const LOOK_UP_SETUP: &str = "SET statement_timeout = '1900ms';";

/// The server-side timeout of other statements.
const CALL_SETUP: &str = "SET statement_timeout = '9900ms';";

/// The look-ups of requests, translated once.
static BY_HASH: LazyLock<String> = LazyLock::new(|| to_postgres_sql(&keys::BY_HASH));
static LIVE: LazyLock<String> = LazyLock::new(|| to_postgres_sql(keys::LIVE));

/// Writes in the same lane are serialised, whichever server makes them.
#[derive(Clone, Copy)]
pub(in crate::storage) enum WriteLock {
    /// Apps, keys, sessions and the audit log.
    Main,
    /// Usage.
    Ledger,
}

impl WriteLock {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Ledger => "ledger",
        }
    }
}

/// A PostgreSQL database.
pub(in crate::storage) struct Database {
    look_up_pool: Pool,
    call_pool: Pool,
    driver: Driver,
    /// Permits for reads from async tasks, by their purpose.
    read_permits: [Arc<Semaphore>; ReadPurpose::COUNT],
    /// The state of batched writes.
    pub(super) batches: Mutex<Batches>,
}

impl Database {
    /// Connects and applies pending migrations. Blocking.
    pub(in crate::storage) fn open(address: &PostgresAddress) -> Result<Self, Error> {
        let database = Self::connect(address)?;
        migrations::migrate(&database)?;
        Ok(database)
    }

    /// Connects on the first call.
    pub(super) fn connect(address: &PostgresAddress) -> Result<Self, Error> {
        let tls = address.tls().map_err(|why| storage_error(PostgresError::Unusable(why)))?;
        // The task that drives a connection notices when it breaks, so there is no need to test it before use.
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = |own: &'static str, size: usize| {
            let manager = Manager::from_config(address.config().clone(), tls.clone(), manager.clone());
            let prepare = Hook::async_fn(move |client, _| {
                let settings = format!("{own}{CONNECTION_SETUP}");
                Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
            });
            let pool = Pool::builder(manager).max_size(size).post_create(prepare).build();
            pool.map_err(|cause| storage_error(PostgresError::Unusable(cause.to_string())))
        };
        let (look_up_pool, call_pool) =
            (pool(LOOK_UP_SETUP, LOOK_UP_CONNECTIONS)?, pool(CALL_SETUP, CALL_CONNECTIONS)?);
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build()?;
        let driver = Driver { handle: runtime.handle().clone(), runtime: Some(runtime) };
        let read_permits = std::array::from_fn(|_| Arc::new(Semaphore::new(MAX_ASYNC_READS)));
        Ok(Self { look_up_pool, call_pool, driver, read_permits, batches: Mutex::default() })
    }

    /// Reads. Each statement of `query` sees what was committed before it. Blocking.
    pub(in crate::storage) fn read<T>(
        &self,
        query: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        query(&self.session(CALL_TIMEOUT)?)
    }

    /// Writes in one transaction, which is committed if `change` succeeds and rolled back if it fails, after all
    /// earlier writes in its lane. Blocking.
    pub(in crate::storage) fn write<T>(
        &self,
        lane: WriteLock,
        change: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.in_transaction(CALL_TIMEOUT, |session| {
            let begin = "UPDATE writes SET number = number + 1 WHERE lane = ?1";
            if session.execute(begin, &[&lane.name()])? != 1 {
                let why = "its table `writes` lacks a row that servers need to wait for each other";
                return Err(storage_error(PostgresError::Unusable(why.to_owned())));
            }
            change(session)
        })
    }

    /// Like [`Database::write`], without waiting for other writes, nor they for it.
    pub(in crate::storage) fn write_apart<T>(
        &self,
        change: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.in_transaction(CALL_TIMEOUT, change)
    }

    /// Like [`Database::write`], without waiting for other writes, and with a timeout.
    pub(super) fn in_transaction<T>(
        &self,
        limit: Duration,
        change: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let session = self.session(limit)?;
        session.begin()?;
        let outcome = change(&session);
        match outcome {
            Ok(_) => session.commit()?,
            Err(_) => session.rollback(),
        }
        outcome
    }

    /// A number that changes with every write in a lane, by whatever server. Blocking.
    pub(in crate::storage) fn version(&self, lane: WriteLock) -> Result<i64, Error> {
        self.read(|session| {
            let rows = session.query("SELECT number FROM writes WHERE lane = ?1", &[&lane.name()])?;
            Ok(first(&rows)?.unwrap_or(0))
        })
    }

    /// Fails if this user cannot write to the database. Blocking.
    pub(in crate::storage) fn ensure_writable(&self) -> Result<(), Error> {
        match why_unwritable(&self.session(CALL_TIMEOUT)?)? {
            Some(why) => Err(storage_error(PostgresError::Unusable(why))),
            None => Ok(()),
        }
    }

    /// The key with this hash.
    pub(in crate::storage) async fn look_up_key(&self, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
        let row = self.look_up(&BY_HASH, hash.to_vec()).await?;
        Ok(row.as_ref().map(|row| keys::key_row(&db::Row::Postgres(row))).transpose()?)
    }

    /// Whether the key with this id exists and is not revoked.
    pub(in crate::storage) async fn is_key_live(&self, id: &str) -> Result<bool, Error> {
        Ok(self.look_up(&LIVE, id.to_owned()).await?.is_some())
    }

    /// The row that a request's look-up finds, on a connection kept free for such.
    async fn look_up(
        &self,
        sql: &'static str,
        param: impl ToSql + Send + Sync + 'static,
    ) -> Result<Option<tokio_postgres::Row>, Error> {
        let pool = self.look_up_pool.clone();
        let deadline = Instant::now() + LOOK_UP_TIMEOUT;
        let task = self.driver.handle.spawn(async move {
            loop {
                let client = timeout_at(deadline, pool.get()).await.map_err(|_| PostgresError::Timeout)??;
                // It may have died since its last use. That is told by a new one, and these run out.
                let may_be_dead = Object::metrics(&client).recycle_count > 0;
                let work = async {
                    let query = client.prepare_cached(sql).await?;
                    client.query_opt(&query, &[&param]).await
                };
                let outcome = match timeout_at(deadline, work).await {
                    Ok(found) => found.map_err(PostgresError::Client),
                    Err(_) => Err(PostgresError::Timeout),
                };
                let Err(cause) = &outcome else { return outcome };
                let is_dead = may_be_dead && !cause.is_busy() && cause.is_unreachable();
                if is_dead || cause.invalidates_connection() {
                    drop(Object::take(client));
                }
                if !is_dead {
                    return outcome;
                }
            }
        });
        let found = task.await.map_err(|cause| storage_error(PostgresError::Unusable(cause.to_string())))?;
        found.map_err(storage_error)
    }

    /// A permit for a read from an async task, which must not block itself.
    pub(in crate::storage) async fn read_permit(
        &self,
        purpose: ReadPurpose,
    ) -> Result<OwnedSemaphorePermit, Error> {
        let permits = self.read_permits[purpose as usize].clone();
        let permit = timeout(LOOK_UP_TIMEOUT, permits.acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| storage_error(PostgresError::Timeout))
    }

    /// A connection for work with this timeout.
    pub(super) fn session(&self, limit: Duration) -> Result<Session<'_>, Error> {
        let now = Instant::now();
        let got = async { self.call_pool.get().await.map_err(PostgresError::from) };
        let client = self.wait(now + limit.min(CONNECTION_TIMEOUT), got).map_err(storage_error)?;
        Ok(Session::new(self, client, now + limit))
    }

    /// Waits for `work`, blocking this thread.
    pub(super) fn wait<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = Result<T, PostgresError>>,
    ) -> Result<T, PostgresError> {
        let _driven = self.driver.handle.enter();
        block_on(async { timeout_at(deadline, work).await.unwrap_or(Err(PostgresError::Timeout)) })
    }
}

/// The runtime that drives the connections for as long as the database is in use.
struct Driver {
    handle: Handle,
    /// `None` once it is shutting down.
    runtime: Option<Runtime>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last holder may be an async task, which must not block.
            runtime.shutdown_background();
        }
    }
}

/// Blocks the thread on a future. Unlike Tokio's own function, it also works on a runtime's thread, where the wait is
/// known to be short.
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
