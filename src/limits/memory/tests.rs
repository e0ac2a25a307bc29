//! Limits with their database: restarts, idle entries, many threads.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::*;
use crate::api::console::KeySettings;
use crate::limits::Window;
use crate::storage::DayCount;

/// Noon of some day.
const NOON: Time = Time::from_unix_ms(20_000 * 86_400_000 + 43_200_000);
const QUOTA: Quota = Quota { per_minute: 60, per_day: 100 };

fn key(id: &str) -> Subject {
    Subject::Key(id.into())
}

fn left_today(limiter: &Memory, id: &str, now: Time) -> u32 {
    limiter.peek(&key(id), QUOTA, now).day.unwrap().remaining
}

fn entries(limiter: &Memory) -> usize {
    limiter.shards.iter().map(|shard| shard.locked().keys.len()).sum()
}

#[test]
fn an_uncounted_use_is_stored_and_leaves_no_entry_behind() {
    let store = Store::in_memory(NOON).unwrap();
    let limiter = Memory::new(store.clone());
    limiter.record_use("key_1", NOON);
    assert_eq!(left_today(&limiter, "key_1", NOON), 100);
    limiter.flush(NOON).unwrap();
    limiter.flush(NOON).unwrap();
    assert_eq!(entries(&limiter), 0);
}

#[test]
fn day_counters_and_last_uses_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOON).unwrap();
    let limiter = Memory::new(store.clone());
    for _ in 0..3 {
        limiter.take(&key("key_1"), QUOTA, NOON);
    }
    limiter.take(&key("key_2"), QUOTA, NOON);
    limiter.flush(NOON).unwrap();
    limiter.take(&key("key_2"), QUOTA, NOON);
    drop((limiter, store));

    let store = Store::open(dir.path(), NOON).unwrap();
    let limiter = Memory::new(store.clone());
    assert_eq!(left_today(&limiter, "key_1", NOON), 97);
    assert_eq!(left_today(&limiter, "key_2", NOON), 99, "what was not flushed may be lost");
    limiter.take(&key("key_1"), QUOTA, NOON);
    limiter.flush(NOON).unwrap();
    assert_eq!(store.day_count("key_1", NOON.utc_day()).unwrap(), 4);

    let tomorrow = NOON.plus(Duration::from_hours(24));
    assert_eq!(left_today(&Memory::new(store), "key_1", tomorrow), 100);
}

#[test]
fn idle_entries_are_dropped_and_lose_nothing() {
    let limiter = Memory::new(Store::in_memory(NOON).unwrap());
    for number in 0..500 {
        limiter.take(&key(&format!("key_{number}")), QUOTA, NOON);
    }
    limiter.flush(NOON).unwrap();
    assert_eq!(entries(&limiter), 500, "their minute is not over");

    let later = NOON.plus(Duration::from_mins(1));
    limiter.take(&key("key_7"), QUOTA, later);
    limiter.flush(later).unwrap();
    assert_eq!(entries(&limiter), 1);
    assert_eq!(left_today(&limiter, "key_7", later), 98);
    assert_eq!(left_today(&limiter, "key_8", later), 99);
    assert_eq!(entries(&limiter), 1, "looking adds no entry");
}

#[tokio::test]
async fn an_entry_being_loaded_is_not_dropped_until_it_is_counted() {
    let (limiter, id) = (Arc::new(Memory::new(Store::in_memory(NOON).unwrap())), "key_1".into());
    let quota = Quota { per_minute: 60, per_day: 99 };
    let flushed = limiter.clone();
    let slow = |_| {
        let read = async move {
            (0..3).for_each(|_| flushed.flush(NOON).unwrap());
            Some(99)
        };
        read.boxed()
    };
    let guard = limiter.load_day_with(&id, NOON, slow).await;
    limiter.flush(NOON).unwrap();
    // An entry whose count is known is not dropped either.
    let known = limiter.load_day(&id, NOON).await;
    drop(guard);
    limiter.flush(NOON).unwrap();
    assert!(matches!(
        limiter.take(&Subject::Key(id.clone()), quota, NOON),
        Decision::Refused(_, Window::Day)
    ));
    drop(known);
    limiter.flush(NOON).unwrap();
    limiter.flush(NOON).unwrap();
    assert_eq!(entries(&limiter), 0);
}

#[tokio::test]
async fn requests_at_the_same_time_read_a_day_once_and_a_failure_concerns_only_them() {
    let (limiter, id) = (Memory::new(Store::in_memory(NOON).unwrap()), "key_1".into());
    let reads = AtomicUsize::new(0);
    // The day's count after 20 requests, whose reads end once all of them have begun.
    let load_all = async |stored: Option<u32>| {
        let gate = Arc::new(Semaphore::new(0));
        let read = |_| {
            reads.fetch_add(1, Relaxed);
            let gate = gate.clone();
            async move { gate.acquire().await.map_or(stored, |_| None) }.boxed()
        };
        let loads = join_all((0..20).map(|_| limiter.load_day_with(&id, NOON, read)));
        let (guards, ()) = futures_util::join!(loads, async { gate.close() });
        let used = limiter.shard_of(&*id).keys[&id].windows.day_count().1;
        drop(guards);
        used
    };
    assert_eq!((load_all(None).await, reads.load(Relaxed)), (0, 1));
    assert_eq!((load_all(Some(40)).await, reads.load(Relaxed)), (40, 2));
}

#[tokio::test]
async fn a_read_goes_on_for_the_others_if_the_request_that_began_it_is_gone() {
    let (limiter, id) = (Memory::new(Store::in_memory(NOON).unwrap()), "key_1".into());
    let (answer, answered) = tokio::sync::oneshot::channel::<u32>();
    let mut first = Box::pin(limiter.load_day_with(&id, NOON, |_| answered.map(Result::ok).boxed()));
    let mut other = Box::pin(limiter.load_day_with(&id, NOON, |_| panic!("it is being read")));
    assert!(futures_util::poll!(&mut first).is_pending());
    assert!(futures_util::poll!(&mut other).is_pending());
    drop(first);
    answer.send(40).unwrap();
    drop(other.await);
    assert_eq!(limiter.shard_of("key_1").keys[&id].windows.day_count().1, 40);
}

#[test]
fn an_entry_that_was_never_written_is_not_dropped() {
    let limiter = Memory::new(Store::in_memory(NOON).unwrap());
    limiter.take(&key("key_1"), QUOTA, NOON);
    let later = NOON.plus(Duration::from_mins(2));
    limiter.flush(later).unwrap();
    assert_eq!(entries(&limiter), 1);
    limiter.flush(later).unwrap();
    assert_eq!(entries(&limiter), 0);
    assert_eq!(left_today(&limiter, "key_1", later), 99);
}

#[test]
fn while_the_counters_are_unreadable_requests_pass_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOON).unwrap();
    let count = DayCount { key_id: "key_1".to_owned(), day: NOON.utc_day(), used: 40 };
    store.keep_counts(&[count], &[]).unwrap();
    let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    breaker.execute_batch("ALTER TABLE day_counts RENAME TO hidden").unwrap();

    let limiter = Memory::new(store);
    limiter.take(&key("key_1"), QUOTA, NOON);
    assert_eq!(left_today(&limiter, "key_1", NOON), 99);
    let later = NOON.plus(Duration::from_mins(2));
    limiter.flush(later).unwrap();
    limiter.flush(later).unwrap();
    assert_eq!(entries(&limiter), 1, "idle, but its count is not written");

    breaker.execute_batch("ALTER TABLE hidden RENAME TO day_counts").unwrap();
    assert_eq!(left_today(&limiter, "key_1", later), 59);
    limiter.flush(later).unwrap();
    limiter.flush(later).unwrap();
    assert_eq!((entries(&limiter), left_today(&limiter, "key_1", later)), (0, 59));
}

#[test]
fn every_request_of_a_key_records_its_last_use() {
    let store = Store::in_memory(NOON).unwrap();
    let id = a_key(&store);
    let limiter = Memory::new(store.clone());
    let one = Quota { per_minute: 1, per_day: 0 };
    let later = NOON.plus(Duration::from_secs(1));
    limiter.take(&key(&id), one, NOON);
    assert!(matches!(limiter.take(&key(&id), one, later), Decision::Refused(..)));
    limiter.flush(later).unwrap();
    assert_eq!(store.key(&id).unwrap().last_used_at, Some(later));
}

/// The id of a stored key.
fn a_key(store: &Store) -> String {
    let app = store.app("default").unwrap();
    let row = crate::storage::KeyRow {
        id: "key_1".into(),
        app_id: app.id.into(),
        app_name: app.name,
        service: crate::api::Service::Verify,
        last4: "wxyz".to_owned(),
        created_at: NOON,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
        settings: KeySettings::default(),
        app_budget: None,
    };
    store.create_key(&row, &[1; 32]).unwrap();
    row.id.to_string()
}

#[test]
fn addresses_of_each_kind_have_their_own_buckets_and_no_day() {
    let limiter = Memory::new(Store::in_memory(NOON).unwrap());
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let quota = Quota { per_minute: 1, per_day: 1 };
    let (page, auth) = (Subject::OpenPage(address), Subject::FailedAuth(address));
    let decision = limiter.take(&page, quota, NOON);
    assert!(matches!(decision, Decision::Admitted(LimitState { day: None, .. })));
    assert!(matches!(limiter.take(&page, quota, NOON), Decision::Refused(..)));
    assert!(matches!(limiter.take(&auth, quota, NOON), Decision::Admitted(_)));
    let next_minute = NOON.plus(Duration::from_mins(1));
    assert!(matches!(limiter.take(&page, quota, next_minute), Decision::Admitted(_)));
}

#[test]
fn neighbours_in_an_ipv6_network_share_a_bucket() {
    let limiter = Memory::new(Store::in_memory(NOON).unwrap());
    let quota = Quota { per_minute: 1, per_day: 0 };
    let take = |text: &str| limiter.take(&Subject::FailedAuth(text.parse().unwrap()), quota, NOON);
    assert!(matches!(take("2001:db8:0:1::1"), Decision::Admitted(_)));
    assert!(matches!(take("2001:db8:0:1::2"), Decision::Refused(..)));
    assert!(matches!(take("2001:db8:0:2::1"), Decision::Admitted(_)));
}

#[test]
fn many_threads_together_get_exactly_the_limit() {
    let limiter = Memory::new(Store::in_memory(NOON).unwrap());
    let admitted: usize = std::thread::scope(|scope| {
        let worker = || {
            let takes = (0..50).map(|_| limiter.take(&key("key_1"), QUOTA, NOON));
            takes.filter(|decision| matches!(decision, Decision::Admitted(_))).count()
        };
        let flusher = scope.spawn(|| (0..20).for_each(|_| limiter.flush(NOON).unwrap()));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(worker)).collect();
        flusher.join().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 60);
    limiter.flush(NOON).unwrap();
    assert_eq!(left_today(&limiter, "key_1", NOON), 40);
}

#[test]
fn each_kind_of_subject_has_its_own_buckets_which_are_cleaned_up() {
    let limiter = Memory::new(Store::in_memory(NOON).unwrap());
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let once = Quota { per_minute: 1, per_day: 1 };
    let subjects = [
        Subject::Session("key_1".into()),
        Subject::OpenPage(address),
        Subject::Login(address),
        Subject::FailedAuth(address),
        key("key_1"),
    ];
    for subject in &subjects {
        assert!(matches!(limiter.take(subject, once, NOON), Decision::Admitted(_)), "{subject:?}");
        assert!(matches!(limiter.take(subject, once, NOON), Decision::Refused(..)), "{subject:?}");
        assert_eq!(limiter.peek(subject, once, NOON).minute.unwrap().remaining, 0, "{subject:?}");
    }
    let later = NOON.plus(Duration::from_mins(1));
    for subject in &subjects[..4] {
        assert!(
            matches!(limiter.take(subject, once, later), Decision::Admitted(_)),
            "{subject:?} has no day"
        );
    }
    let sessions = || limiter.shards.iter().map(|shard| shard.locked().sessions.len()).sum::<usize>();
    limiter.flush(later).unwrap();
    assert_eq!(sessions(), 1);
    limiter.flush(later.plus(Duration::from_mins(1))).unwrap();
    assert_eq!(sessions(), 0);
}
