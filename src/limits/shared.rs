//! Limits that several servers share, in Redis or Valkey: each question is one script there, and so exact over all of
//! them, by one clock.
//!
//! A store that is gone must neither stop requests nor let them pass unlimited. Who asks it in vain decides by what
//! this server has counted, and so do all others from then on, without asking; every half second one attempt finds out
//! whether the store is back. What servers remember of a day they tell it with each question, so that a store that was
//! emptied knows it again; the minute begins anew.
//!
//! What must hold: a question never waits longer than [`PATIENCE`] for an answer; a connection belongs to one worker,
//! which drives it and alone asks by it ([`crate::workers`]).

mod address;
mod examine;

pub use address::{LimitsStore, StoreAddress};
pub use examine::{StoreCondition, examine};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, Script};

use super::addresses::client_of;
use super::window::Counts;
use super::{Decision, Quota, State, Subject};
use crate::clock::Time;
use crate::workers::Each;

/// How long an answer is waited for. They take some 0.1 ms; a store that is this late is no help to anybody.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);
/// Between two attempts at a store that is gone.
const PAUSE: Duration = Duration::from_millis(500);

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("shared/windows.lua")));

/// The limits' store, as this server reaches it.
pub(super) struct Shared {
    address: StoreAddress,
    links: Each<Arc<Link>>,
    /// Whether the log was told that the store is gone.
    is_gone: AtomicBool,
    /// Requests that were decided without it.
    alone: AtomicU64,
}

/// A worker's connection.
#[derive(Default)]
struct Link {
    state: Mutex<LinkState>,
    /// Held by whoever makes a connection for all.
    connecting: tokio::sync::Mutex<()>,
    /// How many there were.
    made: AtomicU64,
}

#[derive(Clone, Default)]
enum LinkState {
    /// There is none, and whoever asks next makes one.
    #[default]
    New,
    /// One, and which one it is of those that there were.
    Up(MultiplexedConnection, u64),
    /// A task is at it to find out whether the store is back.
    Down,
}

/// What the store is asked about a subject.
pub(super) struct Question<'a> {
    pub(super) subject: &'a Subject,
    pub(super) quota: Quota,
    /// Whether the request is to be counted.
    pub(super) takes: bool,
    /// A day, and how many requests are known to have been admitted on it.
    pub(super) known: (i64, u32),
}

/// What it says.
pub(super) struct Answer {
    /// With the store's time for headers, as limits go by it.
    pub(super) decision: Decision,
    /// The day that it counts, and its count.
    pub(super) day: (i64, u32),
}

/// Why there is no answer.
#[derive(Debug)]
enum Fault {
    Redis(RedisError),
    Silent(Duration),
    Senseless,
}

impl Shared {
    pub(super) fn new(address: StoreAddress) -> Arc<Self> {
        Arc::new(Self {
            address,
            links: Each::default(),
            is_gone: AtomicBool::new(false),
            alone: AtomicU64::new(0),
        })
    }

    /// The store's answer; `None` if it is gone, which has been told then.
    pub(super) async fn ask(self: &Arc<Self>, question: &Question<'_>) -> Option<Answer> {
        let answer = self.asked(self.links.here(), question).await;
        if answer.is_none() {
            self.alone.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    async fn asked(self: &Arc<Self>, link: &Arc<Link>, question: &Question<'_>) -> Option<Answer> {
        let (mut connection, mut serial) = self.connection(link).await?;
        let mut answered = ask(&mut connection, question).await;
        // It was closed since it was used last, as stores do with those that rest, or when they start anew. Should the
        // store have been asked by then, it counts this request twice, which is on the safe side.
        if let Err(Fault::Redis(cause)) = &answered
            && cause.is_connection_dropped()
        {
            link.replace(LinkState::New, Some(serial));
            (connection, serial) = self.connection(link).await?;
            answered = ask(&mut connection, question).await;
        }
        answered.inspect_err(|fault| self.lose(link, fault, Some(serial))).ok()
    }

    /// Connects, so that the log tells early of a store that cannot be reached.
    pub(super) async fn greet(self: &Arc<Self>) {
        self.connection(self.links.here()).await;
    }

    /// Whether every worker that has asked reaches the store.
    pub(super) fn is_up(&self) -> bool {
        !self.links.all().any(|link| matches!(*link.lock(), LinkState::Down))
    }

    /// How many requests were decided without it.
    pub(super) fn decided_alone(&self) -> u64 {
        self.alone.load(Ordering::Relaxed)
    }

    /// The link's connection with its number, which the first one to ask makes; `None` while the store is gone.
    async fn connection(self: &Arc<Self>, link: &Arc<Link>) -> Option<(MultiplexedConnection, u64)> {
        let known = link.lock().clone();
        if !matches!(known, LinkState::New) {
            return known.connection();
        }
        let _alone = link.connecting.lock().await;
        let known = link.lock().clone();
        if !matches!(known, LinkState::New) {
            return known.connection();
        }
        match connect(&self.address).await {
            Ok(connection) => Some((connection.clone(), link.use_next(connection))),
            Err(fault) => {
                self.lose(link, &fault, None);
                None
            }
        }
    }

    /// Asks no more by this link until the store is back, if what has failed is how it asks now.
    fn lose(self: &Arc<Self>, link: &Arc<Link>, fault: &Fault, serial: Option<u64>) {
        if !link.replace(LinkState::Down, serial) {
            return;
        }
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                store = %self.address, %fault,
                "the limits store cannot be used; this server limits by what it counts itself until it can"
            );
        }
        tokio::spawn(bring_back(Arc::downgrade(self), link.clone()));
    }

    fn regain(&self, link: &Link, connection: MultiplexedConnection) {
        link.use_next(connection);
        if self.is_up() && self.is_gone.swap(false, Ordering::Relaxed) {
            tracing::info!(store = %self.address, "the limits store is back; limits are shared again");
        }
    }
}

impl LinkState {
    fn connection(self) -> Option<(MultiplexedConnection, u64)> {
        if let Self::Up(connection, serial) = self { Some((connection, serial)) } else { None }
    }
}

impl Link {
    /// Asks by this connection from now on; its number.
    fn use_next(&self, connection: MultiplexedConnection) -> u64 {
        let serial = self.made.fetch_add(1, Ordering::Relaxed);
        *self.lock() = LinkState::Up(connection, serial);
        serial
    }

    /// Puts a state in the place of that of the connection with this number, or of none where none could be made. False
    /// if another one has taken that place already: who asked by the old one has nothing to say of it.
    fn replace(&self, next: LinkState, serial: Option<u64>) -> bool {
        let mut state = self.lock();
        let is_meant = match &*state {
            LinkState::New => serial.is_none(),
            LinkState::Up(_, known) => serial == Some(*known),
            LinkState::Down => false,
        };
        if is_meant {
            *state = next;
        }
        is_meant
    }

    /// Also after a panic elsewhere: a state is set in one step.
    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries until the store answers, or until there is nobody left who would ask it.
async fn bring_back(shared: Weak<Shared>, link: Arc<Link>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(shared) = shared.upgrade() else { return };
        if let Ok(connection) = try_out(&shared.address).await {
            shared.regain(&link, connection);
            return;
        }
    }
}

/// A connection by which requests can be counted: a store that only reads is as good as none.
async fn try_out(address: &StoreAddress) -> Result<MultiplexedConnection, Fault> {
    let mut connection = connect(address).await?;
    let quota = Quota { per_minute: u32::MAX, per_day: 0 };
    let subject = Subject::Session("probe".into());
    ask(&mut connection, &Question { subject: &subject, quota, takes: true, known: (0, 0) }).await?;
    Ok(connection)
}

async fn connect(address: &StoreAddress) -> Result<MultiplexedConnection, Fault> {
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT))
        .set_response_timeout(Some(PATIENCE));
    let connecting = address.client().get_multiplexed_async_connection_with_config(&settings);
    // The library's own limit is for the connection alone, and not for what is said on it first.
    let connected =
        tokio::time::timeout(CONNECT, connecting).await.map_err(|_elapsed| Fault::Silent(CONNECT))?;
    connected.map_err(Fault::Redis)
}

async fn ask(connection: &mut MultiplexedConnection, question: &Question<'_>) -> Result<Answer, Fault> {
    let Question { subject, quota, takes, known: (day, known) } = *question;
    let (name, has_days) = name_of(subject);
    let mut script = SCRIPT.prepare_invoke();
    script.key(format!("mk:limits:{{{name}}}:minute"));
    if has_days {
        script.key(format!("mk:limits:{{{name}}}:days"));
    }
    script
        .arg(if takes { "take" } else { "look" })
        .arg(quota.per_minute)
        .arg(quota.per_day)
        .arg(day)
        .arg(known);
    let asking = tokio::time::timeout(PATIENCE, script.invoke_async(connection));
    let said: (i64, i64, i64, i64, i64) =
        asking.await.map_err(|_elapsed| Fault::Silent(PATIENCE))?.map_err(Fault::Redis)?;
    understood(said, quota, takes).ok_or(Fault::Senseless)
}

/// What a subject is called in the store, and whether its days are counted.
fn name_of(subject: &Subject) -> (String, bool) {
    match subject {
        Subject::Key(id) => (format!("key:{id}"), true),
        Subject::Session(key_id) => (format!("session:{key_id}"), false),
        Subject::OpenPage(address) => (format!("open:{}", client_of(*address)), false),
        Subject::FailedAuth(address) => (format!("auth:{}", client_of(*address)), false),
        Subject::Login(address) => (format!("login:{}", client_of(*address)), false),
    }
}

fn understood(
    (admitted, now, minute, frees_at, day): (i64, i64, i64, i64, i64),
    quota: Quota,
    takes: bool,
) -> Option<Answer> {
    let clock = Time::from_unix_ms(now.div_euclid(1000));
    let counts = Counts {
        minute: u32::try_from(minute).ok()?,
        minute_frees_at: frees_at.checked_add(999)?.div_euclid(1000),
        day: u32::try_from(day).ok()?,
        midnight: clock.next_utc_midnight().unix_ms(),
    };
    let state: State = counts.state(quota, clock);
    let decision = match (takes && admitted == 0, state.used_up()) {
        (false, _) => Decision::Admitted(state),
        (true, Some(window)) => Decision::Refused(state, window),
        (true, None) => return None,
    };
    Some(Answer { decision, day: (clock.utc_day(), counts.day) })
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Redis(cause) => cause.fmt(f),
            Self::Silent(patience) => write!(f, "no answer within {patience:?}"),
            Self::Senseless => f.write_str("its answer makes no sense"),
        }
    }
}
