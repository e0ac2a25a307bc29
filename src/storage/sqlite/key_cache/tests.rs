//! Look-ups return what any process has written, whatever is cached.

use super::*;
use crate::api::console::{KeyChange, LimitsChange};
use crate::storage::sqlite::MAIN_FILE;
use crate::storage::sqlite::tests::{NOW, a_key, kept_key, later};
use crate::storage::{Error, Store};

/// Moves the last write to `mk.db` an hour back, as far as file times tell.
fn let_settle(dir: &std::path::Path) {
    let_settle_at(dir, SystemTime::now() - Duration::from_hours(1));
}

fn let_settle_at(dir: &std::path::Path, time: SystemTime) {
    let wal = std::fs::File::options().write(true).open(dir.join("mk.db-wal")).unwrap();
    wal.set_modified(time).unwrap();
}

/// The hash of no key, a different one for each number.
fn hash_of(number: usize) -> KeyHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    hash
}

#[test]
fn a_key_is_read_once_until_anybody_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = (Store::open(dir.path(), NOW).unwrap(), Store::open(dir.path(), NOW).unwrap());
    let (key, hash) = kept_key(&server, 1);
    let look_up = || server.files().look_up_key(&hash).unwrap().unwrap();
    assert!(!Arc::ptr_eq(&look_up(), &look_up()), "kept although something was written just now");

    let_settle(dir.path());
    let kept = look_up();
    assert_eq!(*kept, key);
    assert!(Arc::ptr_eq(&kept, &look_up()));
    assert_eq!(server.files().look_up_key(&[7; 32]).unwrap(), None);

    cli.revoke_key(&key.id, later(1)).unwrap();
    assert_eq!(look_up().revoked_at, Some(later(1)));
    let_settle(dir.path());
    assert_eq!(look_up().revoked_at, Some(later(1)));
    assert!(Arc::ptr_eq(&look_up(), &look_up()));

    std::fs::rename(dir.path().join("mk.db"), dir.path().join("away.db")).unwrap();
    // Unlike a write, a rename does not wait for earlier checks to expire.
    std::thread::sleep(FRESH_FOR);
    assert!(matches!(server.files().look_up_key(&hash), Err(Error::Io(_))));
}

#[test]
fn an_unknown_key_is_found_as_soon_as_it_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = (Store::open(dir.path(), NOW).unwrap(), Store::open(dir.path(), NOW).unwrap());
    let_settle(dir.path());
    let (key, hash) = a_key(&server, 1);
    let keeps = |hash: &KeyHash| {
        let cache = server.files().key_cache.as_ref().unwrap();
        cache.stamp().and_then(|stamp| cache.get(hash, stamp, Instant::now())).is_some()
    };
    assert_eq!(server.files().look_up_key(&hash).unwrap(), None);
    assert!(keeps(&hash));
    assert_eq!(server.files().look_up_key(&hash).unwrap(), None);

    cli.create_key(&key, &hash).unwrap();
    assert_eq!(server.files().look_up_key(&hash).unwrap().as_deref(), Some(&key));
    let_settle(dir.path());
    assert_eq!(server.files().look_up_key(&hash).unwrap().as_deref(), Some(&key));
}

#[test]
fn guesses_evict_no_existing_key() {
    let dir = tempfile::tempdir().unwrap();
    let server = Store::open(dir.path(), NOW).unwrap();
    let (_, known) = kept_key(&server, 1);
    let_settle(dir.path());
    let first = server.files().look_up_key(&known).unwrap().unwrap();
    for number in 0..3 * UNKNOWN_CAPACITY {
        assert_eq!(server.files().look_up_key(&hash_of(number)).unwrap(), None);
    }
    assert!(Arc::ptr_eq(&first, &server.files().look_up_key(&known).unwrap().unwrap()));
    let kept = server.files().key_cache.as_ref().unwrap().entries.locked();
    assert!(kept.unknown.younger.len() + kept.unknown.elder.len() <= 2 * UNKNOWN_CAPACITY);
}

#[test]
fn changes_are_seen_at_once_however_busy_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = (Store::open(dir.path(), NOW).unwrap(), Store::open(dir.path(), NOW).unwrap());
    let (key, hash) = kept_key(&server, 1);
    let limit = || server.files().look_up_key(&hash).unwrap().unwrap().per_minute;
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let first = SystemTime::now() - Duration::from_hours(1);
            for round in 1..=50 {
                let change = KeyChange {
                    limits: LimitsChange { per_minute: Some(Some(round)), per_day: None },
                    ..KeyChange::default()
                };
                cli.update_key(&key.id, &change, NOW).unwrap();
                assert_eq!(limit(), Some(round));
                let_settle_at(dir.path(), first + Duration::from_secs(round.into()));
                assert_eq!(limit(), Some(round));
            }
        });
        while !changes.is_finished() {
            limit();
        }
    });
}

#[test]
fn the_result_of_a_check_is_reused_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyCache::new(&dir.path().join("mk.db"));
    let state = |age| Stamp { modified: SystemTime::UNIX_EPOCH + Duration::from_secs(age), length: 7 };
    let (row, hash) = a_key(&Store::in_memory(NOW).unwrap(), 1);
    let (row, before) = (Arc::new(row), Instant::now());
    let now = before + FRESH_FOR;
    assert!(keys.may_cache(state(1), || true));
    keys.insert(&hash, &Some(row.clone()), state(1));
    assert!(keys.get_if_fresh(&hash, now).is_none(), "nobody has looked");

    assert!(keys.get(&hash, state(1), now).is_some());
    assert!(keys.get(&hash, state(1), before).is_some(), "a look that took long makes nothing older");
    assert!(keys.get_if_fresh(&hash, now + FRESH_FOR / 2).is_some());
    assert!(keys.get_if_fresh(&hash, now + FRESH_FOR).is_none());
    assert!(keys.get_if_fresh(&[2; 32], now).is_none());

    assert!(keys.get(&hash, state(2), now).is_none());
    assert!(keys.may_cache(state(2), || true));
    keys.insert(&hash, &Some(row), state(2));
    assert!(keys.get_if_fresh(&hash, now).is_none(), "found in another state");
}

#[test]
fn values_in_use_stay_and_the_cache_stays_bounded() {
    let (row, _) = a_key(&Store::in_memory(NOW).unwrap(), 1);
    let row = Arc::new(row);
    let mut rows = Generations::<_, ROW_CAPACITY>::default();
    for number in 0..5 * ROW_CAPACITY {
        rows.insert(hash_of(number), row.clone());
        assert!(rows.get(&hash_of(number)).is_some() && rows.get(&hash_of(0)).is_some(), "{number}");
        assert!(rows.younger.len() + rows.elder.len() <= 2 * ROW_CAPACITY);
    }
    assert!(rows.get(&hash_of(4 * ROW_CAPACITY)).is_some(), "one of the last generation");
    assert!(rows.get(&hash_of(1)).is_none(), "the other is kept for ever");
}

#[test]
fn evicted_values_are_handed_over_and_not_freed() {
    let values: Vec<Arc<()>> = std::iter::repeat_with(Arc::default).take(9).collect();
    let mut generations = Generations::<_, 4>::default();
    let mut evicted = Vec::new();
    for (number, value) in values.iter().enumerate() {
        generations.insert(hash_of(number), value.clone());
        evicted.push(generations.evicted.take());
    }
    let counts: Vec<_> = evicted.iter().map(|evicted| evicted.as_ref().map(HashMap::len)).collect();
    let none = None::<usize>;
    assert_eq!(counts, [none, none, none, none, Some(0), none, none, none, Some(4)]);
    assert!(values.iter().all(|value| Arc::strong_count(value) == 2));
}

#[test]
fn evicted_rows_are_freed_eventually() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyCache::new(&dir.path().join("mk.db"));
    let (row, _) = a_key(&Store::in_memory(NOW).unwrap(), 1);
    let state = |age| Stamp { modified: SystemTime::UNIX_EPOCH + Duration::from_secs(age), length: 7 };
    assert!(keys.may_cache(state(1), || true));
    let rows: Vec<_> = (0..3 * ROW_CAPACITY).map(|_| Arc::new(row.clone())).collect();
    for (number, row) in rows.iter().enumerate() {
        keys.insert(&hash_of(number), &Some(row.clone()), state(1));
    }
    let are_free = |rows: &[Arc<KeyRow>]| {
        let late = Instant::now() + Duration::from_mins(1);
        while rows.iter().any(|row| Arc::strong_count(row) > 1) {
            assert!(Instant::now() < late, "they are never freed");
            std::thread::yield_now();
        }
    };
    are_free(&rows[..ROW_CAPACITY]);
    assert!(rows[ROW_CAPACITY..].iter().all(|row| Arc::strong_count(row) == 2));
    assert!(keys.may_cache(state(2), || true));
    are_free(&rows);
}

#[test]
fn no_row_is_cached_while_a_write_waits_for_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let server = Store::open(dir.path(), NOW).unwrap();
    let (key, hash) = kept_key(&server, 1);
    let look_up = || server.files().look_up_key(&hash).unwrap().unwrap();
    let cli = rusqlite::Connection::open(dir.path().join(MAIN_FILE)).unwrap();
    // The next write goes to the beginning of the log, so that its length stays the same.
    cli.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0)).unwrap();
    cli.execute_batch("BEGIN IMMEDIATE").unwrap();

    // A commit is in the log before it is flushed and visible only afterwards, possibly many seconds later: the log
    // file itself does not change at that point.
    let written = SystemTime::now() - Duration::from_hours(1);
    let_settle_at(dir.path(), written);
    assert_eq!(look_up().revoked_at, None);
    assert!(!Arc::ptr_eq(&look_up(), &look_up()), "kept although somebody writes");
    cli.execute("UPDATE keys SET revoked_at = ?1 WHERE id = ?2", rusqlite::params![1, key.id]).unwrap();
    cli.execute_batch("COMMIT").unwrap();
    let_settle_at(dir.path(), written);
    assert!(look_up().revoked_at.is_some());
    assert!(Arc::ptr_eq(&look_up(), &look_up()), "not kept although nobody writes");
}
