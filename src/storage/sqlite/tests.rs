//! What the store guarantees across connections, processes and restarts.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::api::Service;
use crate::api::console::{KeyChange, KeySettings};
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::{
    AppChange, AppDeletion, AppRow, AttemptRow, DayCount, KeyFilter, KeyHash, KeyRow, Store,
};

pub(super) const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
/// Names the directory for [`a_process_opens_and_closes_all_the_time`].
const DIR_VARIABLE: &str = "MK_TEST_STORE_DIR";

pub(super) fn later(ms: i64) -> Time {
    Time::from_unix_ms(NOW.unix_ms() + ms)
}

fn default_app(store: &Store) -> AppRow {
    store.app("default").unwrap()
}

pub(in crate::storage) fn a_key(store: &Store, number: u64) -> (KeyRow, KeyHash) {
    let app = default_app(store);
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_be_bytes());
    let row = KeyRow {
        id: crate::id::new("key").into(),
        app_id: app.id.into(),
        app_name: app.name,
        service: Service::Verify,
        last4: "wxyz".to_owned(),
        created_at: NOW,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
        settings: KeySettings {
            name: Some(format!("number {number}")),
            expires_at: Some(later(1000)),
            per_minute: Some(5),
            models: vec!["openai/*".to_owned(), "say \"hi\"".to_owned()],
            budget: Some(NanoUsd(7)),
            ..KeySettings::default()
        },
        app_budget: None,
    };
    (row, hash)
}

pub(super) fn kept_key(store: &Store, number: u64) -> (KeyRow, KeyHash) {
    let (row, hash) = a_key(store, number);
    store.create_key(&row, &hash).unwrap();
    (row, hash)
}

fn an_attempt(request_id: &str, cost: Option<NanoUsd>) -> AttemptRow {
    AttemptRow {
        at: NOW,
        request_id: request_id.into(),
        app_id: "app_1".into(),
        key_id: "".into(),
        service: Service::Verify,
        model: "sandbox/alpha".into(),
        outcome: "ok".into(),
        prompt_tokens: 10,
        completion_tokens: 2,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: false,
        cost,
        latency_ms: 3,
        is_first: true,
        is_first_of_model: true,
        labels: None,
        call: None,
    }
}

#[test]
fn everything_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let app =
        AppRow { id: "app_1".to_owned(), name: "news".to_owned(), budget: Some(NanoUsd(5)), created_at: NOW };
    store.create_app(&app).unwrap();
    let (key, hash) = kept_key(&store, 1);
    let attempts = [an_attempt("req_1", None), an_attempt("req_1", Some(NanoUsd(3)))];
    store.add_attempts(&attempts).unwrap();
    let count = DayCount { key_id: key.id.to_string(), day: NOW.utc_day(), used: 4 };
    store.keep_counts(std::slice::from_ref(&count), &[(key.id.to_string(), later(5))]).unwrap();
    drop(store);

    let store = Store::open(dir.path(), later(1)).unwrap();
    assert_eq!(store.app("news").unwrap(), app);
    assert_eq!(store.app("app_1").unwrap(), app);
    assert_eq!(store.apps().unwrap().len(), 2);
    assert_eq!(store.key_by_hash(&hash).unwrap(), Some(key.clone()));
    let with_last_use = KeyRow { last_used_at: Some(later(5)), ..key.clone() };
    assert_eq!(store.key(&key.id).unwrap(), with_last_use);
    assert_eq!(store.keys(&KeyFilter::default()).unwrap(), [with_last_use]);
    assert_eq!(store.attempts_of("req_1").unwrap(), attempts);
    assert_eq!(store.day_counts(NOW.utc_day()).unwrap(), [count]);
}

#[cfg(unix)]
#[test]
fn files_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("made").join("data");
    let store = Store::open(&dir, NOW).unwrap();
    store.add_attempts(&[an_attempt("req_1", None)]).unwrap();
    kept_key(&store, 1);

    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["ledger.db", "ledger.db-shm", "ledger.db-wal", "mk.db", "mk.db-shm", "mk.db-wal"]);
    for name in names {
        assert_eq!(mode(&dir.join(&name)), 0o600, "{name}");
    }
}

#[test]
fn older_databases_are_migrated() {
    let begun = (0..migrations::MAIN.len()).map(|main| (main, 0));
    // There is never usage without a file for the keys.
    let used = (0..=migrations::LEDGER.len()).map(|ledger| (migrations::MAIN.len(), ledger));
    for (main, ledger) in begun.chain(used) {
        let dir = tempfile::tempdir().unwrap();
        older_database(&dir.path().join(MAIN_FILE), &migrations::MAIN[..main]);
        if ledger > 0 {
            older_database(&dir.path().join(LEDGER_FILE), &migrations::LEDGER[..ledger]);
        }

        let store = Store::open(dir.path(), NOW).unwrap();
        kept_key(&store, 1);
        store.add_attempts(&[an_attempt("req_1", None)]).unwrap();
    }
}

fn older_database(path: &Path, steps: &[&str]) -> rusqlite::Connection {
    let mut older = rusqlite::Connection::open(path).unwrap();
    migrations::migrate(&mut older, steps).unwrap();
    older
}

/// The ledger in `dir` as an older version with this many migrations left it, beside a file for the keys.
pub(in crate::storage) fn older_ledger(dir: &Path, taken: usize) -> rusqlite::Connection {
    older_database(&dir.join(MAIN_FILE), migrations::MAIN);
    older_database(&dir.join(LEDGER_FILE), &migrations::LEDGER[..taken])
}

#[test]
fn a_key_look_up_returns_the_current_budget_of_its_app() {
    let store = Store::in_memory(NOW).unwrap();
    let (key, hash) = kept_key(&store, 1);
    let change = AppChange { name: None, budget: Some(Some(NanoUsd(9))) };
    store.update_app(&key.app_id, &change, NOW).unwrap();
    let found = store.key_by_hash(&hash).unwrap().unwrap();
    assert_eq!((found.app_budget, found.budget), (Some(NanoUsd(9)), key.budget));
}

#[test]
fn a_database_of_a_later_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path(), NOW).unwrap());
    let later_version = rusqlite::Connection::open(dir.path().join(MAIN_FILE)).unwrap();
    later_version.pragma_update(None, "user_version", 99).unwrap();
    drop(later_version);
    assert!(matches!(Store::open(dir.path(), NOW), Err(Error::TooNew { found: 99, .. })));
}

#[test]
fn an_unusable_file_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(MAIN_FILE), "not a database, and long enough to be looked at").unwrap();
    let Err(refused) = Store::open(dir.path(), NOW) else { panic!("opened what is no database") };
    assert_eq!(refused.to_string(), "mk.db: file is not a database");
    assert!(refused.is_corrupt());

    let in_the_way = dir.path().join(MAIN_FILE).join("data");
    let Err(refused) = Store::open(&in_the_way, NOW) else { panic!("opened a directory under a file") };
    assert_eq!(refused.to_string(), "not a directory");
}

#[test]
fn a_revocation_holds_at_once_for_another_store_and_is_idempotent() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = (Store::open(dir.path(), NOW).unwrap(), Store::open(dir.path(), NOW).unwrap());
    let (key, hash) = kept_key(&server, 1);
    assert_eq!(server.key_by_hash(&hash).unwrap().unwrap().revoked_at, None);

    assert_eq!(cli.revoke_key(&key.id, later(1)).unwrap(), later(1));

    assert_eq!(server.key_by_hash(&hash).unwrap().unwrap().revoked_at, Some(later(1)));
    assert_eq!(server.revoke_key(&key.id, later(9)).unwrap(), later(1));
    assert!(matches!(server.revoke_key("key_none", NOW), Err(Error::NotFound)));
    assert!(server.keys(&KeyFilter::default()).unwrap().is_empty());
    let all = KeyFilter { revoked_too: true, ..KeyFilter::default() };
    assert_eq!(server.keys(&all).unwrap().len(), 1);
}

/// By default a growing ledger would fill SQLite's cache of 2 MB in every connection.
#[test]
fn the_page_cache_of_a_growing_file_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let bound_kb = |db: &rusqlite::Connection| -> i64 {
        db.query_row("PRAGMA cache_size", [], |row| row.get(0)).unwrap()
    };
    for (database, writer_kb) in [(store.main(), 512), (store.ledger(), 2048)] {
        // Readers open at the same time are separate connections.
        let outer = database.read(|outer| {
            let inner = database.read(|inner| Ok(bound_kb(inner.file())))?;
            Ok([bound_kb(outer.file()), inner])
        });
        assert_eq!(outer.unwrap(), [-256; 2]);
        assert_eq!(database.write(|writer| Ok(bound_kb(writer.file()))).unwrap(), -writer_kb);
    }
}

/// Creates the store's first key; returns the version after it.
fn version_after_a_key(store: &Store) -> i64 {
    let before = store.version().unwrap();
    store.add_attempts(&[an_attempt("req_1", None)]).unwrap();
    store.keep_counts(&[], &[("key_1".to_owned(), NOW)]).unwrap();
    assert_eq!(store.version().unwrap(), before, "the ledger does not count");
    kept_key(store, 1);
    let after = store.version().unwrap();
    assert_ne!(after, before);
    assert_eq!(store.version().unwrap(), after, "asking changes nothing");
    after
}

#[test]
fn the_version_follows_own_and_foreign_writes_of_keys_but_not_the_ledger() {
    version_after_a_key(&Store::in_memory(NOW).unwrap());

    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = (Store::open(dir.path(), NOW).unwrap(), Store::open(dir.path(), NOW).unwrap());
    let before = version_after_a_key(&server);
    let key = server.keys(&KeyFilter::default()).unwrap().remove(0);
    cli.revoke_key(&key.id, NOW).unwrap();
    assert_ne!(server.version().unwrap(), before);
}

#[test]
fn names_of_apps_are_unique_until_they_are_deleted() {
    let store = Store::in_memory(NOW).unwrap();
    let app = |id: &str| AppRow { id: id.into(), name: "news".into(), budget: None, created_at: NOW };
    store.create_app(&app("app_1")).unwrap();
    assert!(matches!(store.create_app(&app("app_2")), Err(Error::Conflict(_))));
    let taken = AppChange { name: Some("default".to_owned()), budget: None };
    assert!(matches!(store.update_app("app_1", &taken, NOW), Err(Error::Conflict(_))));

    store.delete_app("app_1", NOW).unwrap();
    assert_eq!(store.delete_app("app_1", later(1)).unwrap(), AppDeletion { at: NOW, revoked_keys: 0 });
    assert!(matches!(store.delete_app("app_2", NOW), Err(Error::NotFound)));
    assert!(matches!(store.update_app("app_1", &AppChange::default(), NOW), Err(Error::NotFound)));
    store.create_app(&app("app_2")).unwrap();
}

#[test]
fn a_change_touches_only_what_it_names() {
    let store = Store::in_memory(NOW).unwrap();
    let id = default_app(&store).id;
    let budget = AppChange { name: None, budget: Some(Some(NanoUsd(9))) };
    assert_eq!(store.update_app(&id, &budget, NOW).unwrap().budget, Some(NanoUsd(9)));
    let renamed = AppChange { name: Some("main".to_owned()), budget: None };
    let row = store.update_app(&id, &renamed, NOW).unwrap();
    assert_eq!((row.name.as_str(), row.budget), ("main", Some(NanoUsd(9))));
    let without = AppChange { name: None, budget: Some(None) };
    assert_eq!(store.update_app(&id, &without, NOW).unwrap().budget, None);
}

#[test]
fn deleting_an_app_revokes_its_keys_and_the_last_app_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let (key, hash) = kept_key(&store, 1);
    let first = default_app(&store);
    assert!(matches!(store.delete_app(&first.id, NOW), Err(Error::Conflict(_))));
    assert_eq!(store.key(&key.id).unwrap().revoked_at, None, "a refused deletion revokes nothing");

    let other = AppRow { id: "app_1".into(), name: "other".into(), budget: None, created_at: NOW };
    store.create_app(&other).unwrap();
    assert_eq!(store.delete_app(&first.id, later(2)).unwrap().revoked_keys, 1);

    assert_eq!(store.key_by_hash(&hash).unwrap().unwrap().revoked_at, Some(later(2)));
    let (mut orphan, orphan_hash) = (key, [9; 32]);
    orphan.id = "key_orphan".into();
    assert!(matches!(store.create_key(&orphan, &orphan_hash), Err(Error::NotFound)));
    drop(store);
    let reopened = Store::open(dir.path(), later(3)).unwrap();
    assert_eq!(reopened.apps().unwrap(), [other], "a deleted default app does not come back");
}

#[test]
fn rotation_shortens_a_life_and_never_prolongs_it() {
    let store = Store::in_memory(NOW).unwrap();
    let (old, _) = kept_key(&store, 1);
    let (new, hash) = a_key(&store, 2);
    assert_eq!(store.rotate_key(&old.id, later(5000), &hash, |_| new.clone()).unwrap(), new);
    assert_eq!(store.key(&old.id).unwrap().expires_at, Some(later(1000)));
    assert_eq!(store.key_by_hash(&hash).unwrap(), Some(new.clone()));

    let (third, third_hash) = a_key(&store, 3);
    store.rotate_key(&new.id, NOW, &third_hash, |_| third.clone()).unwrap();
    assert_eq!(store.key(&new.id).unwrap().expires_at, Some(NOW));

    let (fourth, fourth_hash) = a_key(&store, 4);
    let refused = |id: &str, why: &str| {
        let refused = store.rotate_key(id, NOW, &fourth_hash, |_| fourth.clone()).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    };
    refused(&old.id, "already rotated");
    let (mut late, late_hash) = a_key(&store, 5);
    late.expires_at = Some(NOW);
    store.create_key(&late, &late_hash).unwrap();
    refused(&late.id, "expired");
    store.revoke_key(&third.id, NOW).unwrap();
    refused(&third.id, "revoked");
    refused("key_none", "not found");
    assert_eq!(store.key_by_hash(&fourth_hash).unwrap(), None);
}

#[test]
fn a_replacement_is_made_of_the_key_as_it_is_at_that_time() {
    let store = Store::in_memory(NOW).unwrap();
    let (old, _) = kept_key(&store, 1);
    let change = KeyChange { addresses: Some(vec!["10.0.0.0/8".to_owned()]), ..KeyChange::default() };
    store.update_key(&old.id, &change, NOW).unwrap();
    let renew = |found: &KeyRow| KeyRow { id: "key_2".into(), ..found.clone() };
    let new = store.rotate_key(&old.id, NOW, &[2; 32], renew).unwrap();
    assert_eq!(new.addresses, ["10.0.0.0/8"]);
    assert_eq!(store.key("key_2").unwrap(), new);
}

#[test]
fn counts_never_go_back_and_those_of_earlier_days_can_be_dropped() {
    let store = Store::in_memory(NOW).unwrap();
    let count = |day, used| DayCount { key_id: "key_1".to_owned(), day, used };
    store.keep_counts(&[count(1, 5)], &[("key_1".to_owned(), later(9))]).unwrap();
    store.keep_counts(&[count(1, 3)], &[("key_1".to_owned(), later(1))]).unwrap();
    assert_eq!(store.day_count("key_1", 1).unwrap(), 5);
    store.keep_counts(&[count(2, 1)], &[]).unwrap();
    assert_eq!(store.day_count("key_1", 1).unwrap(), 5, "the clock may come back");
    store.forget_counts(2).unwrap();
    assert_eq!(store.day_counts(1).unwrap(), []);
    assert_eq!((store.day_count("key_1", 1).unwrap(), store.day_count("key_1", 2).unwrap()), (0, 1));
}

#[test]
fn threads_of_two_stores_write_and_read_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [Store::open(dir.path(), NOW).unwrap(), Store::open(dir.path(), NOW).unwrap()];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &stores[thread % 2];
            scope.spawn(move || work(store, thread as u64 * 1000, 20));
        }
    });
    assert_eq!(stores[0].keys(&KeyFilter::default()).unwrap().len(), 8 * 20);
    assert_eq!(stores[1].attempts_of("req_work").unwrap().len(), 8 * 20);
}

#[test]
fn processes_open_and_write_side_by_side() {
    for _ in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let children: Vec<Child> = (0..4).map(|_| spawn_another_process(dir.path())).collect();
        for child in children {
            let outcome = child.wait_with_output().unwrap();
            assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
        }
        let store = Store::open(dir.path(), NOW).unwrap();
        assert_eq!(store.apps().unwrap().len(), 1);
        assert_eq!(store.keys(&KeyFilter::default()).unwrap().len(), 4 * 10);
        assert_eq!(store.attempts_of("req_work").unwrap().len(), 4 * 10);
    }
}

fn spawn_another_process(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "storage::sqlite::tests::a_process_opens_and_closes_all_the_time"])
        .env(DIR_VARIABLE, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Command lines keep opening and closing the store. Runs alone in a directory of its own, or beside others in the one
/// that [`processes_open_and_write_side_by_side`] names.
#[test]
fn a_process_opens_and_closes_all_the_time() {
    let own = tempfile::tempdir().unwrap();
    let shared = std::env::var_os(DIR_VARIABLE);
    let dir = shared.as_deref().map_or(own.path(), Path::new);
    let first_number = u64::from(std::process::id()) * 1000;
    for round in 0..10 {
        work(&Store::open(dir, NOW).unwrap(), first_number + round, 1);
    }
    let store = Store::open(dir, NOW).unwrap();
    let kept = store.keys(&KeyFilter::default()).unwrap().len();
    assert!(if shared.is_some() { kept >= 10 } else { kept == 10 }, "{kept}");
}

fn work(store: &Store, first_number: u64, rounds: u64) {
    for number in first_number..first_number + rounds {
        let (key, hash) = kept_key(store, number);
        store.add_attempts(&[an_attempt("req_work", None)]).unwrap();
        store.keep_counts(&[], &[(key.id.to_string(), NOW)]).unwrap();
        assert_eq!(store.key_by_hash(&hash).unwrap(), Some(key));
        store.version().unwrap();
    }
}

#[test]
fn a_revocation_that_the_database_drops_fails() {
    let (dir, now) = (tempfile::tempdir().unwrap(), Time::from_unix_ms(1_795_176_000_000));
    let ignore = "CREATE TRIGGER kept BEFORE UPDATE OF revoked_at ON keys BEGIN SELECT RAISE(IGNORE); END";
    let undo = "CREATE TRIGGER kept AFTER INSERT ON audit BEGIN UPDATE keys SET revoked_at = NULL; END";
    for (number, trigger) in (0..).zip([ignore, undo]) {
        let store = Store::open(&dir.path().join(number.to_string()), now).unwrap();
        let (key, hash) = a_key(&store, number);
        store.create_key(&key, &hash).unwrap();
        let another =
            AppRow { id: "app_2".to_owned(), name: "b".to_owned(), ..store.app("default").unwrap() };
        store.create_app(&another).unwrap();
        store.main().write(|db| db.execute(trigger, &[]).map(drop)).unwrap();
        for failed in [store.revoke_key(&key.id, now).err(), store.delete_app(&key.app_id, now).err()] {
            assert!(failed.unwrap().to_string().contains("the key is still valid"));
        }
        store.main().write(|db| db.execute("DROP TRIGGER kept", &[]).map(drop)).unwrap();
        store.revoke_key(&key.id, now).unwrap();
    }
}
