//! The verdict cache between verifications and the store; and, in the same place, answers that are kept for callers who
//! ask for it.
//!
//! Entries are written in the background, as usage is: until then they are found here, so that the same request right
//! after the first is a hit. What must hold: no verification waits for a write, or longer than [`READ_TIMEOUT`] for a
//! read; what cannot be written is dropped, as it can be found anew.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use crate::api::cache_time::CacheTime;
use crate::api::verify::Domain;
use crate::cache_entry::CacheKey;
use crate::clock::{Clock, Time};
use crate::lock::Lock;
use crate::log_throttle::LogThrottle;
use crate::metrics::VerdictLookUps;
use crate::storage::{self, ReadPurpose, Store, VerdictRow};
use crate::verify::{CacheEntry, VerdictStore};

/// How long a verification waits for what it looks for.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes that wait to be written; more are dropped.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// How many entries are written in one transaction, for whose end the ledger's other writes wait.
const BATCH: usize = 200;
/// The most entries that are kept, of all apps together; the oldest go first.
const MAX_ENTRIES: u64 = 200_000;
/// The most bytes that they hold.
const MAX_BYTES: u64 = 256 << 20;

/// What the rows of answers have in place of a domain: by how long they are kept, the next longer one of these.
const ANSWERS: [(&str, Duration); 3] = [
    ("answer 1h", Duration::from_hours(1)),
    ("answer 1d", Duration::from_hours(24)),
    ("answer 30d", CacheTime::MAX),
];

/// What is found, and when it was kept.
type Found = (Time, Vec<u8>);

/// The verdict cache of a server.
pub struct VerdictCache {
    store: Store,
    clock: Clock,
    waiting: Mutex<Waiting>,
    /// Held while something is written: what was written once is not written again after its app was deleted.
    writing: Mutex<()>,
    unread: LogThrottle,
    unwritten: LogThrottle,
    texts: LookUps,
    claims: LookUps,
    answers: LookUps,
}

/// Entries that are to be written.
#[derive(Default)]
struct Waiting {
    rows: HashMap<(Arc<str>, CacheKey), Arc<VerdictRow>>,
    bytes: usize,
}

#[derive(Default)]
struct LookUps {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl LookUps {
    fn add(&self, hits: usize, misses: usize) {
        self.hits.fetch_add(hits as u64, Ordering::Relaxed);
        self.misses.fetch_add(misses as u64, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }
}

impl VerdictCache {
    pub(super) fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            clock,
            waiting: Mutex::default(),
            writing: Mutex::default(),
            unread: LogThrottle::new(),
            unwritten: LogThrottle::new(),
            texts: LookUps::default(),
            claims: LookUps::default(),
            answers: LookUps::default(),
        }
    }

    /// How many entries were looked for.
    pub fn look_ups(&self) -> VerdictLookUps {
        VerdictLookUps { texts: self.texts.read(), claims: self.claims.read(), answers: self.answers.read() }
    }

    /// Whether there is something to write.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.locked().rows.is_empty()
    }

    /// Writes what waits. What cannot be written is dropped, and that is logged. Blocking.
    pub(super) fn flush(&self) {
        let _one_at_a_time = self.writing.locked();
        let rows: Vec<Arc<VerdictRow>> = self.waiting.locked().rows.values().cloned().collect();
        if rows.is_empty() {
            return;
        }
        let mut batches = rows.chunks(BATCH);
        let written = batches.try_for_each(|batch| self.store.add_verdicts(batch.iter().map(|row| &**row)));
        match written {
            Ok(()) if self.unwritten.succeeded() => tracing::info!("the verdict cache is written again"),
            Ok(()) => {}
            Err(cause) => {
                if let Some(suppressed) = self.unwritten.failed(&cause) {
                    tracing::error!(%cause, suppressed, "the verdict cache cannot be written; verifications go on without");
                }
            }
        }
        let mut waiting = self.waiting.locked();
        for row in rows {
            let place = (row.app_id.clone(), row.key);
            if waiting.rows.get(&place).is_some_and(|now| Arc::ptr_eq(now, &row)) {
                waiting.rows.remove(&place);
                waiting.bytes = waiting.bytes.saturating_sub(row.content.len());
            }
        }
        waiting.rows.shrink_to_fit();
    }

    /// Deletes entries that are older than the settings of their domain allow (all of a domain without a cache),
    /// answers that are older than they are kept, or than `max_answer_age`, those of apps that are gone, and the oldest
    /// if there are too many. Blocking.
    ///
    /// # Errors
    /// If the store fails; the rest goes the next time.
    pub fn tidy(
        &self,
        max_age: impl Fn(Domain) -> Option<Duration>,
        max_answer_age: Option<Duration>,
    ) -> Result<(), storage::Error> {
        let now = self.clock.now();
        let verdicts = [Domain::General, Domain::Legal].map(|domain| (domain.as_str(), max_age(domain)));
        let answers = ANSWERS.map(|(name, age)| (name, max_answer_age.map(|most| most.min(age))));
        for (name, max_age) in verdicts.into_iter().chain(answers) {
            let before = max_age.map_or(Time::from_unix_ms(i64::MAX), |age| now.minus(age));
            self.store.forget_verdicts(name, before)?;
        }
        self.store.forget_verdicts_of_nobody()?;
        self.store.trim_verdicts(MAX_ENTRIES, MAX_BYTES)
    }

    /// The answer that an app has under this key, and its age, if it is no older than `max_age`.
    pub async fn answer(
        &self,
        app_id: &str,
        key: CacheKey,
        max_age: Duration,
    ) -> Option<(Duration, Vec<u8>)> {
        let (at, content) = self.look_up(app_id, vec![key], max_age).await?.pop().flatten()?;
        Some((self.clock.now().since(at), content))
    }

    /// Keeps an answer, from now on and without waiting.
    pub fn keep_answer(&self, app_id: &Arc<str>, key: CacheKey, content: Vec<u8>, keep_for: Duration) {
        let name = ANSWERS.iter().find(|(_, age)| keep_for <= *age).map(|(name, _)| *name);
        if let Some(name) = name {
            self.keep_rows(app_id, name, [(key, content)]);
        }
    }

    /// Counts an answer that was found and could be used, or one that was not.
    pub fn count_answer(&self, is_hit: bool) {
        self.answers.add(usize::from(is_hit), usize::from(!is_hit));
    }

    /// Keeps rows of a domain, from now on and without waiting.
    fn keep_rows(
        &self,
        app_id: &Arc<str>,
        domain: &'static str,
        entries: impl IntoIterator<Item = (CacheKey, Vec<u8>)>,
    ) {
        let at = self.clock.now();
        let mut waiting = self.waiting.locked();
        for (key, content) in entries {
            let bytes = waiting.bytes.saturating_add(content.len());
            if bytes > MAX_WAITING_BYTES {
                return;
            }
            waiting.bytes = bytes;
            let row = VerdictRow { app_id: app_id.clone(), key, domain, at, content };
            if let Some(replaced) = waiting.rows.insert((app_id.clone(), key), Arc::new(row)) {
                waiting.bytes = waiting.bytes.saturating_sub(replaced.content.len());
            }
        }
    }

    /// What is found, or `None` if that cannot be read, or not soon, which is logged.
    async fn look_up(
        &self,
        app_id: &str,
        keys: Vec<CacheKey>,
        max_age: Duration,
    ) -> Option<Vec<Option<Found>>> {
        let read = self.read(app_id, keys, self.clock.now().minus(max_age)).await;
        match read {
            Ok(found) => {
                if self.unread.succeeded() {
                    tracing::info!("the verdict cache is read again");
                }
                Some(found)
            }
            Err(cause) => {
                if let Some(suppressed) = self.unread.failed(&cause) {
                    tracing::error!(
                        cause,
                        suppressed,
                        "the verdict cache cannot be read; requests go on without"
                    );
                }
                None
            }
        }
    }

    /// The contents, from those that wait and from the store.
    async fn read(
        &self,
        app_id: &str,
        keys: Vec<CacheKey>,
        oldest: Time,
    ) -> Result<Vec<Option<Found>>, String> {
        let app: Arc<str> = app_id.into();
        let now = self.clock.now();
        let is_valid = |at: Time| oldest <= at && at <= now;
        let mut found: Vec<Option<Found>> = {
            let waiting = self.waiting.locked();
            let row = |key: &CacheKey| waiting.rows.get(&(app.clone(), *key));
            keys.iter().map(|key| row(key).map(|row| (row.at, row.content.clone()))).collect()
        };
        let places: Vec<usize> = (0..keys.len()).filter(|at| found[*at].is_none()).collect();
        if places.is_empty() {
            return Ok(found);
        }
        let keys: Vec<CacheKey> = places.iter().map(|at| keys[*at]).collect();
        let read = self.store.read_async(ReadPurpose::Verdicts, move |store| store.verdicts(&app, &keys));
        let read: Result<_, storage::Error> =
            timeout(READ_TIMEOUT, read).await.map_err(|_| "it took too long".to_owned())?;
        for (at, row) in places.into_iter().zip(read.map_err(|cause| cause.to_string())?) {
            found[at] = row.filter(|(at, _)| is_valid(*at));
        }
        Ok(found)
    }
}

impl VerdictStore for VerdictCache {
    fn find<'a>(
        &'a self,
        app_id: &'a str,
        keys: Vec<CacheKey>,
        max_age: Duration,
    ) -> BoxFuture<'a, Option<Vec<Option<Vec<u8>>>>> {
        async move {
            let found = self.look_up(app_id, keys, max_age).await?;
            Some(found.into_iter().map(|found| found.map(|(_, content)| content)).collect())
        }
        .boxed()
    }

    fn keep(&self, app_id: &Arc<str>, domain: Domain, entries: Vec<(CacheKey, Vec<u8>)>) {
        self.keep_rows(app_id, domain.as_str(), entries);
    }

    fn count(&self, entry: CacheEntry, hits: usize, misses: usize) {
        match entry {
            CacheEntry::Text => self.texts.add(hits, misses),
            CacheEntry::Claim => self.claims.add(hits, misses),
        }
    }
}
