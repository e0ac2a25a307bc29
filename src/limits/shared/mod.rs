//! Limits that several servers share, in Redis or Valkey: each query is one script there, hence exact over all servers,
//! by a single clock.
//!
//! An unreachable store must neither stop requests nor let them pass unlimited. Whoever queries it in vain decides by
//! what this server has counted, and so do all others from then on, without querying; every half second one attempt
//! checks whether the store is back. Each query carries this server's count of the day, so that a store that was
//! emptied learns it again; the minute starts over.
//!
//! What must hold: a query never takes longer than [`QUERY_TIMEOUT`], connecting included; a connection belongs to one
//! worker, and only that worker drives and uses it ([`crate::net::workers`]); a store is only used again once it has
//! counted a key.

mod address;
mod bounded;
mod examine;

pub use address::{LimitsStore, StoreAddress};
pub use examine::{StoreCondition, examine};

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, Script};

use super::addresses::client_of;
use super::window::Counts;
use super::{Decision, LimitState, Quota, Subject};
use crate::clock::Time;
use crate::lock::Lock;
use crate::net::workers::PerWorker;

/// The timeout of a query in all. Queries take some 0.1 ms; a store that is this late is of no use.
const QUERY_TIMEOUT: Duration = Duration::from_millis(500);
/// A query that timed out after less than this may have had too little time, as it had to wait for a connection first.
const FAIR_TIME: Duration = Duration::from_millis(250);
/// The timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause between attempts to reach a store that is down.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How much of a store's error message is shown.
const MAX_REASON_CHARS: usize = 200;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("windows.lua")));

/// The deadline of a query that begins now.
fn deadline() -> Instant {
    Instant::now() + QUERY_TIMEOUT
}

/// The limits store, as seen from this server.
pub(super) struct SharedStore {
    address: StoreAddress,
    channels: PerWorker<Arc<WorkerConnection>>,
    /// Whether the log has reported that the store is down.
    is_reported_down: AtomicBool,
    /// Requests that were decided without it.
    decided_alone: AtomicU64,
}

/// A worker's connection.
#[derive(Default)]
struct WorkerConnection {
    state: Mutex<ConnectionState>,
    /// Notified when a connection was made or failed.
    settled: Notify,
    /// The number of connections so far.
    connected: AtomicU64,
}

#[derive(Clone, Default)]
enum ConnectionState {
    /// Not connected; the next query starts a connection attempt.
    #[default]
    New,
    /// A task is connecting.
    Connecting,
    /// Connected, with the serial number of the connection.
    Up(MultiplexedConnection, u64),
    /// A task is retrying until the store is back.
    Down,
}

/// A query about a subject.
pub(super) struct Query<'a> {
    pub(super) subject: &'a Subject,
    pub(super) quota: Quota,
    /// Whether the request is to be counted.
    pub(super) is_counted: bool,
    /// A day, and the number of requests known to have been admitted on it.
    pub(super) known: (i64, u32),
    /// Whether that number was just read from the database.
    pub(super) is_day_verified: bool,
}

/// The store's answer.
pub(super) enum Answer {
    Decided {
        /// Its header times are by the store's clock, which the limits go by.
        decision: Decision,
        /// The day that the store counts, and its count.
        day: (i64, u32),
    },
    /// The store has no count of the day and needs one that was read from the database.
    DayUnknown,
}

/// Why a query failed.
#[derive(Debug)]
enum StoreError {
    Redis(RedisError),
    Timeout(Duration),
    /// There was too little time left for the query: this says nothing about the store.
    NoTimeLeft,
    InvalidReply,
}

impl SharedStore {
    pub(super) fn new(address: StoreAddress) -> Arc<Self> {
        Arc::new(Self {
            address,
            channels: PerWorker::default(),
            is_reported_down: AtomicBool::new(false),
            decided_alone: AtomicU64::new(0),
        })
    }

    /// The store's answer, if it arrives in time; `None` if the store is down, which has been logged by then, or if
    /// there was no time left for the query.
    pub(super) async fn query(self: &Arc<Self>, query: &Query<'_>) -> Option<Answer> {
        let answer = self.try_query(self.channels.here(), query, deadline()).await;
        if answer.is_none() && query.is_counted {
            self.decided_alone.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    async fn try_query(
        self: &Arc<Self>,
        channel: &Arc<WorkerConnection>,
        query: &Query<'_>,
        deadline: Instant,
    ) -> Option<Answer> {
        let (mut connection, mut serial) = self.connection(channel, deadline).await?;
        let mut answered = run_query(&mut connection, query, deadline).await;
        // It was closed since its last use, as stores do with idle connections or when they restart. If the query was
        // carried out nevertheless, the retry counts this request twice, which is on the safe side.
        if let Err(StoreError::Redis(cause)) = &answered
            && cause.is_connection_dropped()
        {
            channel.replace(ConnectionState::New, serial);
            (connection, serial) = self.connection(channel, deadline).await?;
            answered = run_query(&mut connection, query, deadline).await;
        }
        if let Err(fault) = &answered
            && !matches!(fault, StoreError::NoTimeLeft)
        {
            self.mark_down(channel, fault, serial);
        }
        answered.ok()
    }

    /// Connects, so that the log reports early if the store is unreachable.
    pub(super) async fn connect_early(self: &Arc<Self>) {
        self.connection(self.channels.here(), Instant::now() + CONNECT_TIMEOUT).await;
    }

    /// Whether the store is up for every worker that has used it.
    pub(super) fn is_up(&self) -> bool {
        !self.channels.all().any(|channel| matches!(*channel.state.locked(), ConnectionState::Down))
    }

    /// The number of requests that were decided without the store.
    pub(super) fn decided_alone(&self) -> u64 {
        self.decided_alone.load(Ordering::Relaxed)
    }

    /// The worker's connection with its serial number, which a task of its own establishes on the first query; `None`
    /// while the store is down, and if there is none in time.
    async fn connection(
        self: &Arc<Self>,
        channel: &Arc<WorkerConnection>,
        deadline: Instant,
    ) -> Option<(MultiplexedConnection, u64)> {
        loop {
            let settled = channel.settled.notified();
            match channel.begin() {
                (ConnectionState::Up(connection, serial), _) => return Some((connection, serial)),
                (ConnectionState::Down, _) => return None,
                (_, true) => drop(tokio::spawn(connect_first(Arc::downgrade(self), channel.clone()))),
                (_, false) => {}
            }
            timeout_at(deadline, settled).await.ok()?;
        }
    }

    /// Stops using this connection until the store is back, unless the failure is that of an earlier connection.
    fn mark_down(self: &Arc<Self>, channel: &Arc<WorkerConnection>, fault: &StoreError, serial: u64) {
        if channel.replace(ConnectionState::Down, serial) {
            self.report_down(fault);
            tokio::spawn(reconnect(Arc::downgrade(self), channel.clone()));
        }
    }

    fn report_down(&self, fault: &StoreError) {
        if !self.is_reported_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                store = %self.address, %fault,
                "the limits store is unavailable; until it is back, this server counts limits on its own"
            );
        }
    }

    fn mark_up(&self, channel: &WorkerConnection, connection: MultiplexedConnection) {
        channel.settle(Some(connection));
        if self.is_up() && self.is_reported_down.swap(false, Ordering::Relaxed) {
            tracing::info!(store = %self.address, "the limits store is back; limits are shared again");
        }
    }
}

impl WorkerConnection {
    /// The state, and whether the caller is to start connecting, being the first to query.
    fn begin(&self) -> (ConnectionState, bool) {
        let mut state = self.state.locked();
        let is_first = matches!(*state, ConnectionState::New);
        if is_first {
            *state = ConnectionState::Connecting;
        }
        (state.clone(), is_first)
    }

    /// Sets the connection, or that there is none, and wakes everybody who waits for it.
    fn settle(&self, connection: Option<MultiplexedConnection>) {
        let serial = self.connected.fetch_add(1, Ordering::Relaxed);
        *self.state.locked() =
            connection.map_or(ConnectionState::Down, |connection| ConnectionState::Up(connection, serial));
        self.settled.notify_waiters();
    }

    /// Replaces the state if the connection with this serial number is still the current one, and returns whether it
    /// is. An error of an old connection says nothing about its successor.
    fn replace(&self, next: ConnectionState, serial: u64) -> bool {
        let mut state = self.state.locked();
        let is_meant = matches!(&*state, ConnectionState::Up(_, known) if *known == serial);
        if is_meant {
            *state = next;
        }
        is_meant
    }
}

/// Establishes the first connection.
async fn connect_first(shared: Weak<SharedStore>, channel: Arc<WorkerConnection>) {
    let Some(strong) = shared.upgrade() else { return };
    match connect(&strong.address).await {
        Ok(connection) => channel.settle(Some(connection)),
        Err(fault) => {
            channel.settle(None);
            strong.report_down(&fault);
            drop(strong);
            reconnect(shared, channel).await;
        }
    }
}

/// Retries until the store answers, or until nobody is left who would use it.
async fn reconnect(shared: Weak<SharedStore>, channel: Arc<WorkerConnection>) {
    loop {
        tokio::time::sleep(RETRY_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        let tried = async {
            let mut connection = connect(&shared.address).await?;
            probe(&mut connection).await?;
            Ok::<_, StoreError>(connection)
        };
        if let Ok(connection) = tried.await {
            shared.mark_up(&channel, connection);
            return;
        }
    }
}

/// The number of keys probed: in a cluster they lie on different nodes, and no single node serves them all.
const PROBES: u32 = 8;

/// Counts requests of keys that do not exist, and returns the last answer. A store that is read-only, or restricts what
/// we may do, is as good as none.
async fn probe(connection: &mut MultiplexedConnection) -> Result<Answer, StoreError> {
    let quota = Quota { per_minute: u32::MAX, per_day: u32::MAX };
    let mut answer = Answer::DayUnknown;
    for number in 0..PROBES {
        let subject = Subject::Key(format!("probe-{number}").into());
        let query =
            Query { subject: &subject, quota, is_counted: true, known: (0, 0), is_day_verified: true };
        answer = run_query(connection, &query, deadline()).await?;
    }
    Ok(answer)
}

async fn connect(address: &StoreAddress) -> Result<MultiplexedConnection, StoreError> {
    let settings = AsyncConnectionConfig::new().set_response_timeout(Some(QUERY_TIMEOUT));
    let info = address.client().get_connection_info();
    let connecting = async {
        let stream = bounded::connect(info.addr()).await.map_err(RedisError::from)?;
        MultiplexedConnection::new_with_config(info.redis_settings(), stream, settings).await
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_elapsed| StoreError::Timeout(CONNECT_TIMEOUT))?;
    let (connection, driver) = connected.map_err(StoreError::Redis)?;
    // It ends with the last clone of the connection.
    tokio::spawn(driver);
    Ok(connection)
}

async fn run_query(
    connection: &mut MultiplexedConnection,
    query: &Query<'_>,
    deadline: Instant,
) -> Result<Answer, StoreError> {
    let Query { subject, quota, is_counted, known: (day, known), is_day_verified } = *query;
    let (name, has_days) = store_name(subject);
    let mut script = SCRIPT.prepare_invoke();
    script.key(format!("mk:limits:{{{name}}}:minute"));
    if has_days {
        script.key(format!("mk:limits:{{{name}}}:days"));
    }
    script
        .arg(if is_counted { "take" } else { "look" })
        .arg(quota.per_minute)
        .arg(quota.per_day)
        .arg(day)
        .arg(known)
        .arg(if is_day_verified { "sure" } else { "" });
    let had_fair_time = deadline.saturating_duration_since(Instant::now()) >= FAIR_TIME;
    let timed_out =
        |_elapsed| if had_fair_time { StoreError::Timeout(QUERY_TIMEOUT) } else { StoreError::NoTimeLeft };
    let asking = timeout_at(deadline, script.invoke_async(connection));
    let said: Reply = asking.await.map_err(timed_out)?.map_err(StoreError::Redis)?;
    parse_reply(said, quota, is_counted).ok_or(StoreError::InvalidReply)
}

/// The name of a subject in the store, and whether its days are counted.
fn store_name(subject: &Subject) -> (String, bool) {
    match subject {
        Subject::Key(id) => (format!("key:{id}"), true),
        Subject::EndUser(id) => (format!("end:{id}"), true),
        Subject::Session(key_id) => (format!("session:{key_id}"), false),
        Subject::OpenPage(address) => (format!("open:{}", client_of(*address)), false),
        Subject::FailedAuth(address) => (format!("auth:{}", client_of(*address)), false),
        Subject::Login(address) => (format!("login:{}", client_of(*address)), false),
    }
}

/// Plausible times of the store's clock: the years from 1970 to 9999.
const PLAUSIBLE_TIMES: Range<Time> = Time::from_unix_ms(0)..Time::from_unix_ms(253_402_300_800_000);

/// The script's reply.
type Reply = (i64, i64, i64, i64, i64);

fn parse_reply(
    (admitted, now, minute, frees_at, day): Reply,
    quota: Quota,
    is_counted: bool,
) -> Option<Answer> {
    if admitted < 0 {
        return Some(Answer::DayUnknown);
    }
    let clock = Time::from_unix_ms(now.div_euclid(1000));
    if !PLAUSIBLE_TIMES.contains(&clock) {
        return None;
    }
    let counts = Counts {
        minute: u32::try_from(minute).ok()?,
        minute_frees_at: frees_at.checked_add(999)?.div_euclid(1000),
        day: u32::try_from(day).ok()?,
        midnight: clock.next_utc_midnight().unix_ms(),
    };
    let state: LimitState = counts.state(quota, clock);
    let decision = match (is_counted && admitted == 0, state.used_up()) {
        (false, _) => Decision::Admitted(state),
        (true, Some(window)) => Decision::Refused(state, window),
        (true, None) => return None,
    };
    Some(Answer::Decided { decision, day: (clock.utc_day(), counts.day) })
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(cause)
                if matches!(cause.code(), Some("MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN")) =>
            {
                f.write_str("it is part of a cluster; limits need a single server")
            }
            // The text is untrusted.
            Self::Redis(cause) => {
                let words = cause.to_string();
                let line = words.lines().next().unwrap_or_default();
                f.write_str(&line.chars().take(MAX_REASON_CHARS).collect::<String>())
            }
            Self::Timeout(patience) => write!(f, "no answer within {patience:?}"),
            Self::NoTimeLeft => f.write_str("there was no time left for an answer"),
            Self::InvalidReply => f.write_str("its answer is invalid"),
        }
    }
}

#[cfg(test)]
mod tests;
