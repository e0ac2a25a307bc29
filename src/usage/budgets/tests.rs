//! Budgets on a real store, through meters and ledgers as requests use them.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::*;
use crate::api::Service;
use crate::clock::Clock;
use crate::money::{Price, Tokens};
use crate::usage::{Accounting, Attempt, Ledger, Meter, Purpose};

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
const MODEL: &str = "a/x";
/// One nano-dollar per token.
const PRICE: Price = Price::new(NanoUsd(1_000_000), NanoUsd(1_000_000));

fn account(key: Option<u64>, app: Option<u64>) -> Account {
    Account {
        request_id: "req_1".into(),
        app_id: "app_1".into(),
        key_id: "key_1".into(),
        service: Service::Inference,
        budget: Budget { key: key.map(NanoUsd), app: app.map(NanoUsd), ..Budget::default() },
        trace: crate::traces::Parent::default(),
        labels: None,
    }
}

fn begin(meter: &Meter, most: u64) -> Result<Attempt, BudgetError> {
    begin_at(meter, Some(PRICE), most)
}

fn begin_at(meter: &Meter, price: Option<Price>, most: u64) -> Result<Attempt, BudgetError> {
    load_spending(meter);
    meter.attempt(MODEL, Purpose::Chat, price, Instant::now(), || Some(NanoUsd(most)))
}

/// Tokens that cost this much.
const fn worth(cost: u64) -> Tokens {
    Tokens::of_prompt(cost)
}

fn spend(meter: &Meter, cost: u64) {
    begin(meter, cost).unwrap().finish("ok", worth(cost));
}

/// Loads spending as every caller does before an attempt.
fn load_spending(meter: &Meter) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // If it cannot be loaded, the attempt shows it.
    let _ = runtime.block_on(meter.load_spending());
}

fn left(meter: &Meter) -> u64 {
    load_spending(meter);
    match meter.check(Some(NanoUsd(u64::MAX))) {
        Err(BudgetError::Exceeded(shortage)) => shortage.left().0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_together_never_overrun_a_budget() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    let meter =
        Meter::new(account(Some(1_000), Some(1_500)), Accounting::new(ledger.clone(), Clock::manual(NOW)));
    let begun: usize = std::thread::scope(|scope| {
        let flushing = scope.spawn(|| (0..50).for_each(|_| ledger.flush().unwrap()));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let once = || begin(&meter, 20).map(|attempt| attempt.finish("ok", worth(7)));
                    (0..100).filter(|_| once().is_ok()).count()
                })
            })
            .collect();
        let begun = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        flushing.join().unwrap();
        begun
    });
    assert!(begun >= 1_000 / 20 && begun * 7 <= 1_000, "{begun}");
    assert_eq!(left(&meter), 1_000 - 7 * begun as u64);
    ledger.flush().unwrap();
    assert_eq!(left(&meter), 1_000 - 7 * begun as u64, "the same once it is written");
}

#[test]
fn a_dropped_attempt_is_charged_what_was_reserved_and_one_given_up_what_was_seen() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    let meter = Meter::new(account(Some(100), None), Accounting::new(ledger.clone(), Clock::manual(NOW)));
    let mut attempt = begin(&meter, 90).unwrap();
    attempt.set_expected(worth(30));
    assert_eq!(left(&meter), 10);
    attempt.give_up();
    assert_eq!(left(&meter), 70);
    begin(&meter, 70).unwrap().finish("provider_error", worth(0));
    assert_eq!(left(&meter), 70, "what cost nothing gives everything back");
    let mut attempt = begin(&meter, 50).unwrap();
    attempt.set_expected(worth(3));
    drop(attempt);
    assert_eq!(left(&meter), 20);
}

#[test]
fn without_a_budget_nothing_is_estimated_or_reserved() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    let meter = Meter::new(account(None, None), Accounting::new(ledger, Clock::manual(NOW)));
    let attempt = meter.attempt(MODEL, Purpose::Chat, Some(PRICE), Instant::now(), || {
        panic!("nobody asks what it may cost")
    });
    attempt.unwrap().finish("ok", worth(1));
    meter.check(None).unwrap();
}

#[test]
fn an_unknown_price_is_never_zero() {
    let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
    let meter = Meter::new(account(None, Some(100)), Accounting::new(ledger, Clock::manual(NOW)));
    assert_eq!(
        meter.attempt(MODEL, Purpose::Chat, None, Instant::now(), || None).err(),
        Some(BudgetError::PriceUnknown)
    );
}

#[test]
fn spending_survives_a_restart_and_ends_with_the_month() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
    let meter = Meter::new(account(Some(100), None), Accounting::new(ledger.clone(), clock.clone()));
    spend(&meter, 60);
    ledger.flush().unwrap();
    drop((meter, ledger));

    let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
    let meter = Meter::new(account(Some(100), None), Accounting::new(ledger.clone(), clock.clone()));
    assert_eq!(left(&meter), 40);
    let under_way = begin(&meter, 25).unwrap();
    let last_second = Time::from_unix_ms(NOW.next_utc_month().unix_ms() - 1_000);
    clock.advance(last_second.since(NOW));
    assert_eq!(left(&meter), 15);
    clock.advance(Duration::from_secs(1));
    assert_eq!(left(&meter), 75, "what is under way will be booked in the new month");
    under_way.finish("ok", worth(5));
    ledger.flush().unwrap();
    assert_eq!(left(&meter), 95);
}

#[test]
fn two_servers_see_each_other_within_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let server = || {
        let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
        (Meter::new(account(None, Some(100)), Accounting::new(ledger.clone(), clock.clone())), ledger)
    };
    let ((here, here_kept), (there, there_kept)) = (server(), server());
    assert_eq!((left(&here), left(&there)), (100, 100));
    spend(&there, 30);
    there_kept.flush().unwrap();
    here_kept.flush().unwrap();
    assert_eq!((left(&here), left(&there)), (70, 70));
}

#[test]
fn an_unreadable_store_lets_nothing_pass() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
    let meter = Meter::new(account(Some(100), None), Accounting::new(ledger.clone(), Clock::manual(NOW)));
    let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    breaker.execute_batch("ALTER TABLE spend RENAME TO hidden").unwrap();
    assert_eq!(begin(&meter, 1).err(), Some(BudgetError::Unavailable));
    breaker.execute_batch("ALTER TABLE hidden RENAME TO spend").unwrap();
    spend(&meter, 60);

    breaker.execute_batch("ALTER TABLE spend RENAME TO hidden").unwrap();
    assert!(ledger.flush().is_err());
    assert_eq!(begin(&meter, 1).err(), Some(BudgetError::Unavailable), "also when it was known before");
    breaker.execute_batch("ALTER TABLE hidden RENAME TO spend").unwrap();
    assert_eq!(left(&meter), 40, "what could not be written is held");
    ledger.flush().unwrap();
    assert_eq!(left(&meter), 40);
}

#[tokio::test]
async fn requests_of_many_new_keys_need_one_read_each_however_long_they_wait_for_it() {
    const KEYS: usize = 40;
    let store = Store::in_memory(NOW).unwrap();
    let budgets = Budgets::new(store.clone());
    // In use, so that there is something to refresh.
    let in_use = account(Some(100), None);
    budgets.load_spending(&in_use, NOW).await.unwrap();
    let _reservation = budgets.reserve(&in_use, Some(NanoUsd(1)), NOW).unwrap();
    let turns = Semaphore::new(1);
    let reads = AtomicUsize::new(0);
    // Before it is a read's turn, all spending has been refreshed.
    let in_turn = async |load: Load| {
        let _turn = turns.acquire().await.unwrap();
        tokio::task::yield_now().await;
        budgets.refresh([]).unwrap();
        reads.fetch_add(1, Relaxed);
        load(&store)
    };
    let load = async |number: usize| {
        let account = Account { key_id: format!("new_{number}").into(), ..account(Some(100), None) };
        budgets.load_in_turn(&account, NOW, in_turn).await
    };
    let loaded = join_all((0..KEYS).map(load)).await;
    assert!(loaded.iter().all(Result::is_ok), "{loaded:?}");
    assert_eq!(reads.into_inner(), KEYS);
}

#[test]
fn costs_of_dropped_rows_stay_spent_until_the_month_ends() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
    let without_budget = Meter::new(account(None, None), Accounting::new(ledger.clone(), clock.clone()));
    let meter = Meter::new(account(Some(100), Some(1_000)), Accounting::new(ledger.clone(), clock.clone()));
    assert_eq!(left(&meter), 100);
    let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    breaker.execute_batch("ALTER TABLE attempts RENAME TO hidden").unwrap();
    while ledger.queued_rows() < crate::usage::ledger::MAX_QUEUED {
        let attempt = without_budget.attempt(MODEL, Purpose::Chat, None, Instant::now(), || None).unwrap();
        attempt.finish("ok", worth(1));
    }
    spend(&meter, 60);
    let of_unknown_cost = begin_at(&meter, None, 30).unwrap();
    of_unknown_cost.finish("provider_error", worth(0));
    assert_eq!((ledger.lost_rows(), left(&meter)), (2, 40));

    breaker.execute_batch("ALTER TABLE hidden RENAME TO attempts").unwrap();
    for _ in 0..3 {
        ledger.flush().unwrap();
    }
    assert_eq!(left(&meter), 40, "also once nobody has asked for it for a while");
    spend(&meter, 10);
    ledger.flush().unwrap();
    assert_eq!(left(&meter), 30);
    clock.advance(NOW.next_utc_month().since(NOW));
    assert_eq!(left(&meter), 100);
}
