//! Rows are written once and in order, and none is lost within the capacity.

use futures_util::FutureExt;

use super::*;
use crate::api::Service;
use crate::clock::Time;
use crate::usage::Budget;

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

fn row(request_id: &str) -> AttemptRow {
    AttemptRow {
        at: NOW,
        request_id: request_id.into(),
        app_id: "".into(),
        key_id: "".into(),
        service: Service::Verify,
        model: "sandbox/alpha".into(),
        outcome: "ok".into(),
        prompt_tokens: 1,
        completion_tokens: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: false,
        cost: None,
        latency_ms: 1,
        is_first: true,
        is_first_of_model: true,
        labels: None,
        call: None,
    }
}

fn account(budget: NanoUsd) -> Account {
    Account {
        request_id: "req_1".into(),
        app_id: "app_1".into(),
        key_id: "key_1".into(),
        service: Service::Verify,
        budget: Budget { key: Some(budget), ..Budget::default() },
        trace: crate::traces::Parent::default(),
        labels: None,
    }
}

#[test]
fn rows_are_written_once_and_in_order() {
    let store = Store::in_memory(NOW).unwrap();
    let ledger = Ledger::new(store.clone());
    let rows: Vec<AttemptRow> = (1..=3).map(|latency_ms| AttemptRow { latency_ms, ..row("req_1") }).collect();
    for row in &rows {
        ledger.clone().book(row.clone(), None);
    }
    assert_eq!(store.attempts_of("req_1").unwrap(), []);
    ledger.flush().unwrap();
    ledger.flush().unwrap();
    assert_eq!(store.attempts_of("req_1").unwrap(), rows);
}

#[test]
fn a_flush_waits_for_a_write_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let ledger = Ledger::new(store.clone());
    let other = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    ledger.book(row("req_1"), None);
    let (sender, seen) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| ledger.flush().unwrap());
        while !ledger.queue().rows.is_empty() {
            std::thread::yield_now();
        }
        scope.spawn(|| {
            ledger.flush().unwrap();
            sender.send(store.attempts_of("req_1").unwrap().len()).unwrap();
        });
        let early = seen.recv_timeout(std::time::Duration::from_millis(200));
        other.execute_batch("COMMIT").unwrap();
        assert!(early.is_err(), "it did not wait, and saw {early:?} rows");
        assert_eq!(seen.recv(), Ok(1));
    });
}

#[tokio::test]
async fn a_full_batch_does_not_wait_for_the_regular_flush() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    let is_ready = || ledger.batch_ready().now_or_never().is_some();
    for _ in 0..2 {
        (1..WRITE_BATCH).for_each(|_| ledger.book(row("req_1"), None));
        assert!(!is_ready());
        (0..WRITE_BATCH).for_each(|_| ledger.book(row("req_1"), None));
        assert!(is_ready() && !is_ready(), "once");
        ledger.flush().unwrap();
    }
}

#[test]
fn a_store_that_is_down_loses_nothing_within_the_capacity() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let ledger = Ledger::new(store.clone());
    let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    breaker.execute_batch("ALTER TABLE attempts RENAME TO hidden").unwrap();

    ledger.book(row("req_1"), None);
    assert!(ledger.flush().is_err());
    for _ in 0..MAX_QUEUED {
        ledger.book(row("req_2"), None);
    }
    assert_eq!(ledger.lost_rows(), 1);
    assert!(ledger.flush().is_err());

    breaker.execute_batch("ALTER TABLE hidden RENAME TO attempts").unwrap();
    ledger.flush().unwrap();
    assert_eq!(store.attempts_of("req_1").unwrap(), [row("req_1")]);
    assert_eq!(store.attempts_of("req_2").unwrap().len(), MAX_QUEUED - 1);
    assert_eq!(ledger.lost_rows(), 1);
}

#[test]
fn the_cost_of_rows_lost_when_put_back_stays_spent() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    let account = account(NanoUsd(100));
    let load = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ledger.load_spending(&account, NOW)).unwrap();
    };
    let book = |cost| {
        load();
        let mut reservation = ledger.reserve(&account, Some(cost), NOW).unwrap();
        reservation.settle(cost);
        let of_key = AttemptRow { key_id: "key_1".into(), cost: Some(cost), ..row("req_1") };
        ledger.book(of_key, Some(reservation));
    };
    book(NanoUsd(10));
    let mut unwritten = std::mem::take(&mut *ledger.queue());
    unwritten.rows.splice(0..0, vec![row("req_old"); MAX_QUEUED - 2]);
    unwritten.reservations.iter_mut().for_each(|(at, _)| *at += MAX_QUEUED - 2);
    book(NanoUsd(20));
    book(NanoUsd(40));
    ledger.put_back(unwritten);
    assert_eq!(ledger.lost_rows(), 1);
    ledger.flush().unwrap();
    load();
    let spent = |left| ledger.check(&account, Some(NanoUsd(left)), NOW).is_ok();
    assert_eq!((spent(30), spent(31)), (true, false));
}

#[test]
fn written_parts_of_a_backlog_count_once_against_a_budget() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
    let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    let refuse = "CREATE TRIGGER refused BEFORE INSERT ON attempts WHEN NEW.request_id = 'req_bad'
                  BEGIN SELECT RAISE(FAIL, 'no'); END";
    breaker.execute_batch(refuse).unwrap();
    let account = account(NanoUsd(10_000));
    let book = |request_id: &str| {
        let mut reservation = ledger.reserve(&account, Some(NanoUsd(1)), NOW).unwrap();
        reservation.settle(NanoUsd(1));
        let of_key = AttemptRow { key_id: "key_1".into(), cost: Some(NanoUsd(1)), ..row(request_id) };
        ledger.book(of_key, Some(reservation));
    };
    (0..MAX_PER_TRANSACTION + 5).for_each(|_| book("req_1"));
    book("req_bad");
    assert!(ledger.flush().is_err());
    assert_eq!(ledger.queued_rows(), 6, "what was written is not written again");
    let has_left = |left| ledger.check(&account, Some(NanoUsd(left)), NOW).is_ok();
    let left = 10_000 - (MAX_PER_TRANSACTION as u64 + 6);
    assert_eq!((has_left(left), has_left(left + 1)), (true, false));

    breaker.execute_batch("DROP TRIGGER refused").unwrap();
    ledger.flush().unwrap();
    assert_eq!((has_left(left), has_left(left + 1)), (true, false));
    assert_eq!((ledger.queued_rows(), ledger.lost_rows()), (0, 0));
}

#[test]
fn when_rows_are_put_back_the_newest_beyond_the_capacity_are_lost() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    ledger.book(row("req_new"), None);
    ledger.put_back(Queue { rows: vec![row("req_old"); MAX_QUEUED], reservations: Vec::new() });
    assert_eq!(ledger.lost_rows(), 1);
    assert!(ledger.queue().rows.iter().all(|row| &*row.request_id == "req_old"));
}
