//! Limits that several servers share, in Redis or Valkey: each question is one script there, and so exact over all of
//! them, by one clock.
//!
//! A store that is gone must neither stop requests nor let them pass unlimited. Who asks it in vain decides by what
//! this server has counted, and so do all others from then on, without asking; every half second one attempt finds out
//! whether the store is back. What servers remember of a day they tell it with each question, so that a store that was
//! emptied knows it again; the minute begins anew.
//!
//! What must hold: a question never takes longer than [`PATIENCE`], connection included; a connection belongs to one
//! worker, and only that worker drives and uses it ([`crate::workers`]); a store is only used again when it has counted
//! a key.

mod address;
mod examine;

pub use address::{LimitsStore, StoreAddress};
pub use examine::{StoreCondition, examine};

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, Script};

use super::addresses::client_of;
use super::window::Counts;
use super::{Decision, Quota, State, Subject};
use crate::clock::Time;
use crate::workers::Each;

/// How long a question may take in all. They take some 0.1 ms; a store that is this late is no help to anybody.
const PATIENCE: Duration = Duration::from_millis(500);
/// Who is silent for less than this may have had too little time, as a connection had to be waited for first.
const FAIR: Duration = Duration::from_millis(250);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);
/// Between two attempts at a store that is gone.
const PAUSE: Duration = Duration::from_millis(500);

/// Characters of what a store says of itself.
const LONGEST_REASON: usize = 200;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("shared/windows.lua")));

/// Until when a question that is asked now waits for the store.
fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// The limits' store, as this server reaches it.
pub(super) struct Shared {
    address: StoreAddress,
    channels: Each<Arc<Channel>>,
    /// Whether the log was told that the store is gone.
    is_gone: AtomicBool,
    /// Requests that were decided without it.
    alone: AtomicU64,
}

/// A worker's connection.
#[derive(Default)]
struct Channel {
    state: Mutex<ChannelState>,
    /// Tells that a connection was made, or could not be.
    settled: Notify,
    /// How many there were.
    made: AtomicU64,
}

#[derive(Clone, Default)]
enum ChannelState {
    /// There is none, and whoever asks next has one made.
    #[default]
    New,
    /// A task makes one.
    Begun,
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
    /// Whether that was looked up just now, wherever it is kept.
    pub(super) is_sure: bool,
}

/// What it says.
pub(super) enum Answer {
    Decided {
        /// With the store's time for headers, as limits go by it.
        decision: Decision,
        /// The day that it counts, and its count.
        day: (i64, u32),
    },
    /// It knows nothing of the day, and wants to be asked by somebody who is sure of it.
    Unsure,
}

/// Why there is no answer.
#[derive(Debug)]
enum Fault {
    Redis(RedisError),
    Silent(Duration),
    /// There was too little time left to ask: nothing is known of the store.
    Hurried,
    Senseless,
}

impl Shared {
    pub(super) fn new(address: StoreAddress) -> Arc<Self> {
        Arc::new(Self {
            address,
            channels: Each::default(),
            is_gone: AtomicBool::new(false),
            alone: AtomicU64::new(0),
        })
    }

    /// The store's answer, if it comes in time; `None` if it is gone, which has been told then, or if there was no time
    /// left to ask it.
    pub(super) async fn ask(self: &Arc<Self>, question: &Question<'_>) -> Option<Answer> {
        let answer = self.asked(self.channels.here(), question, deadline()).await;
        if answer.is_none() && question.takes {
            self.alone.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    async fn asked(
        self: &Arc<Self>,
        channel: &Arc<Channel>,
        question: &Question<'_>,
        deadline: Instant,
    ) -> Option<Answer> {
        let (mut connection, mut serial) = self.connection(channel, deadline).await?;
        let mut answered = ask(&mut connection, question, deadline).await;
        // It was closed since it was used last, as stores do with those that rest, or when they start anew. Should the
        // store have been asked by then, it counts this request twice, which is on the safe side.
        if let Err(Fault::Redis(cause)) = &answered
            && cause.is_connection_dropped()
        {
            channel.replace(ChannelState::New, serial);
            (connection, serial) = self.connection(channel, deadline).await?;
            answered = ask(&mut connection, question, deadline).await;
        }
        if let Err(fault) = &answered
            && !matches!(fault, Fault::Hurried)
        {
            self.lose(channel, fault, serial);
        }
        answered.ok()
    }

    /// Connects, so that the log tells early of a store that cannot be reached.
    pub(super) async fn greet(self: &Arc<Self>) {
        self.connection(self.channels.here(), Instant::now() + CONNECT).await;
    }

    /// Whether every worker that has asked reaches the store.
    pub(super) fn is_up(&self) -> bool {
        !self.channels.all().any(|channel| matches!(*channel.lock(), ChannelState::Down))
    }

    /// How many requests were decided without it.
    pub(super) fn decided_alone(&self) -> u64 {
        self.alone.load(Ordering::Relaxed)
    }

    /// The channel's connection with its number, which a task of its own makes when the first one asks; `None` while the
    /// store is gone, and where there is none in time.
    async fn connection(
        self: &Arc<Self>,
        channel: &Arc<Channel>,
        deadline: Instant,
    ) -> Option<(MultiplexedConnection, u64)> {
        loop {
            let settled = channel.settled.notified();
            match channel.begin() {
                (ChannelState::Up(connection, serial), _) => return Some((connection, serial)),
                (ChannelState::Down, _) => return None,
                (_, true) => drop(tokio::spawn(make(Arc::downgrade(self), channel.clone()))),
                (_, false) => {}
            }
            timeout_at(deadline, settled).await.ok()?;
        }
    }

    /// Asks no more by this channel until the store is back, if what has failed is how it asks now.
    fn lose(self: &Arc<Self>, channel: &Arc<Channel>, fault: &Fault, serial: u64) {
        if channel.replace(ChannelState::Down, serial) {
            self.tell_gone(fault);
            tokio::spawn(bring_back(Arc::downgrade(self), channel.clone()));
        }
    }

    fn tell_gone(&self, fault: &Fault) {
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                store = %self.address, %fault,
                "the limits store cannot be used; this server limits by what it counts itself until it can"
            );
        }
    }

    fn regain(&self, channel: &Channel, connection: MultiplexedConnection) {
        channel.settle(Some(connection));
        if self.is_up() && self.is_gone.swap(false, Ordering::Relaxed) {
            tracing::info!(store = %self.address, "the limits store is back; limits are shared again");
        }
    }
}

impl Channel {
    /// The state, and whether a connection is to be made by who asks: the first one who does.
    fn begin(&self) -> (ChannelState, bool) {
        let mut state = self.lock();
        let is_first = matches!(*state, ChannelState::New);
        if is_first {
            *state = ChannelState::Begun;
        }
        (state.clone(), is_first)
    }

    /// Asks by this connection from now on, or by none; whoever waits for that learns of it.
    fn settle(&self, connection: Option<MultiplexedConnection>) {
        let serial = self.made.fetch_add(1, Ordering::Relaxed);
        *self.lock() =
            connection.map_or(ChannelState::Down, |connection| ChannelState::Up(connection, serial));
        self.settled.notify_waiters();
    }

    /// Replaces the state if the connection with this number is still the present one; whether it is. An error of an old
    /// connection says nothing about the next.
    fn replace(&self, next: ChannelState, serial: u64) -> bool {
        let mut state = self.lock();
        let is_meant = matches!(&*state, ChannelState::Up(_, known) if *known == serial);
        if is_meant {
            *state = next;
        }
        is_meant
    }

    /// Also after a panic elsewhere: a state is set in one step.
    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the first connection.
async fn make(shared: Weak<Shared>, channel: Arc<Channel>) {
    let Some(strong) = shared.upgrade() else { return };
    match connect(&strong.address).await {
        Ok(connection) => channel.settle(Some(connection)),
        Err(fault) => {
            channel.settle(None);
            strong.tell_gone(&fault);
            drop(strong);
            bring_back(shared, channel).await;
        }
    }
}

/// Tries until the store answers, or until there is nobody left who would ask it.
async fn bring_back(shared: Weak<Shared>, channel: Arc<Channel>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(shared) = shared.upgrade() else { return };
        let tried = async {
            let mut connection = connect(&shared.address).await?;
            probe(&mut connection).await?;
            Ok::<_, Fault>(connection)
        };
        if let Ok(connection) = tried.await {
            shared.regain(&channel, connection);
            return;
        }
    }
}

/// How many keys are tried out: of a cluster, which has each at another server, no server has them all.
const PROBES: u32 = 8;

/// Has keys counted that nobody has; the last answer. A store that can only be read, or lets us do a part of it, is as good
/// as none.
async fn probe(connection: &mut MultiplexedConnection) -> Result<Answer, Fault> {
    let quota = Quota { per_minute: u32::MAX, per_day: u32::MAX };
    let mut answer = Answer::Unsure;
    for number in 0..PROBES {
        let subject = Subject::Key(format!("probe-{number}").into());
        let question = Question { subject: &subject, quota, takes: true, known: (0, 0), is_sure: true };
        answer = ask(connection, &question, deadline()).await?;
    }
    Ok(answer)
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

async fn ask(
    connection: &mut MultiplexedConnection,
    question: &Question<'_>,
    deadline: Instant,
) -> Result<Answer, Fault> {
    let Question { subject, quota, takes, known: (day, known), is_sure } = *question;
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
        .arg(known)
        .arg(if is_sure { "sure" } else { "" });
    let is_fair = deadline.saturating_duration_since(Instant::now()) >= FAIR;
    let silent = |_elapsed| if is_fair { Fault::Silent(PATIENCE) } else { Fault::Hurried };
    let asking = timeout_at(deadline, script.invoke_async(connection));
    let said: Said = asking.await.map_err(silent)?.map_err(Fault::Redis)?;
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

/// Times that a clock may show: the years from 1970 to 9999.
const SENSIBLE: Range<Time> = Time::from_unix_ms(0)..Time::from_unix_ms(253_402_300_800_000);

/// What the script returns.
type Said = (i64, i64, i64, i64, i64);

fn understood((admitted, now, minute, frees_at, day): Said, quota: Quota, takes: bool) -> Option<Answer> {
    if admitted < 0 {
        return Some(Answer::Unsure);
    }
    let clock = Time::from_unix_ms(now.div_euclid(1000));
    if !SENSIBLE.contains(&clock) {
        return None;
    }
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
    Some(Answer::Decided { decision, day: (clock.utc_day(), counts.day) })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(cause)
                if matches!(cause.code(), Some("MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN")) =>
            {
                f.write_str("it is a part of a cluster, and limits need a single server")
            }
            // Its words may be a stranger's.
            Self::Redis(cause) => {
                let words = cause.to_string();
                let line = words.lines().next().unwrap_or_default();
                f.write_str(&line.chars().take(LONGEST_REASON).collect::<String>())
            }
            Self::Silent(patience) => write!(f, "no answer within {patience:?}"),
            Self::Hurried => f.write_str("there was no time left for an answer"),
            Self::Senseless => f.write_str("its answer makes no sense"),
        }
    }
}

#[cfg(test)]
mod tests;
