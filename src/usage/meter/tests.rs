//! Attempts are recorded once and summed up, however they end.

use super::*;
use crate::api::Service;
use crate::clock::Clock;
use crate::storage::{AttemptRow, Store};
use crate::usage::{Budget, Ledger};

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

struct Desk {
    store: Store,
    ledger: Ledger,
    meter: Meter,
}

fn desk() -> Desk {
    let store = Store::in_memory(NOW).unwrap();
    let ledger = Ledger::new(store.clone());
    let account = Account {
        request_id: "req_1".into(),
        app_id: "app_1".into(),
        key_id: "key_1".into(),
        service: Service::Verify,
        budget: Budget::default(),
        trace: crate::traces::Parent::default(),
        labels: None,
    };
    let meter = Meter::new(account, Accounting::new(ledger.clone(), Clock::manual(NOW)));
    Desk { store, ledger, meter }
}

/// At one nano-dollar per token.
fn begin(desk: &Desk, model: &str, purpose: Purpose) -> Attempt {
    let each = NanoUsd(1_000_000);
    begin_at(desk, model, purpose, Some(Price::new(each, each)))
}

fn begin_at(desk: &Desk, model: &str, purpose: Purpose, price: Option<Price>) -> Attempt {
    desk.meter.attempt(model, purpose, price, Instant::now(), || None).unwrap()
}

const fn tokens(prompt: u64, completion: u64) -> Tokens {
    Tokens::new(prompt, completion)
}

fn booked(desk: &Desk) -> Vec<AttemptRow> {
    desk.ledger.flush().unwrap();
    desk.store.attempts_of("req_1").unwrap()
}

#[test]
fn a_finished_attempt_is_recorded_once_and_summed() {
    let desk = desk();
    begin(&desk, "a/x", Purpose::Extraction).finish("ok", tokens(10, 5));
    begin_at(&desk, "b/y", Purpose::Verification, None).finish("provider_timeout", tokens(0, 0));
    begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
    begin(&desk, "a/x", Purpose::Extraction).finish("ok", tokens(1, 2));

    let rows = booked(&desk);
    assert_eq!(rows.len(), 4);
    assert_eq!((&*rows[0].model, &*rows[0].outcome, rows[0].at), ("a/x", "ok", NOW));
    assert_eq!((&*rows[0].app_id, &*rows[0].key_id), ("app_1", "key_1"));
    assert_eq!((&*rows[1].outcome, rows[1].cost), ("provider_timeout", None));
    let places: Vec<_> = rows.iter().map(|row| (row.is_first, row.is_first_of_model)).collect();
    assert_eq!(places, [(true, true), (false, true), (false, false), (false, false)]);

    let total = |model: &str, purpose, prompt_tokens, completion_tokens, cost| ModelTotal {
        model: model.into(),
        purpose,
        prompt_tokens,
        completion_tokens,
        cost,
    };
    let expected = [
        total("a/x", Purpose::Extraction, 11, 7, Some(NanoUsd(18))),
        total("b/y", Purpose::Verification, 0, 0, None),
        total("a/x", Purpose::Verification, 1, 1, Some(NanoUsd(2))),
    ];
    assert_eq!(desk.meter.totals(), expected);
    let sum = RequestTotal { attempts: 4, prompt_tokens: 12, completion_tokens: 8, cost: Some(NanoUsd(20)) };
    assert_eq!(desk.meter.sum(), sum);
}

#[test]
fn a_dropped_attempt_is_recorded_as_cancelled() {
    let desk = desk();
    let mut attempt = begin(&desk, "a/x", Purpose::Verification);
    attempt.set_expected(tokens(120, 0));
    drop(attempt);
    let rows = booked(&desk);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&*rows[0].outcome, rows[0].prompt_tokens, rows[0].cost),
        ("cancelled", 120, Some(NanoUsd(120)))
    );
    assert_eq!(desk.meter.totals()[0].cost, Some(NanoUsd(120)));
}

#[test]
fn an_attempt_cut_off_by_a_deadline_is_recorded_as_such() {
    let desk = desk();
    let attempt = begin(&desk, "a/x", Purpose::Verification);
    desk.meter.abort_with("timeout");
    drop(attempt);
    assert_eq!(booked(&desk)[0].outcome, "timeout");
}

#[test]
fn an_unpriced_attempt_without_usage_leaves_the_sum_known() {
    let desk = desk();
    let failed = |model| {
        begin_at(&desk, model, Purpose::Verification, None).finish("overloaded", tokens(0, 0));
    };
    failed("a/x");
    assert_eq!((desk.meter.totals()[0].cost, desk.meter.sum().cost), (None, Some(NanoUsd(0))));
    begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 3));
    failed("a/x");
    failed("a/y");
    let costs: Vec<_> = desk.meter.totals().iter().map(|total| total.cost).collect();
    assert_eq!((costs, desk.meter.sum().cost), (vec![Some(NanoUsd(4)), None], Some(NanoUsd(4))));
}

#[test]
fn one_unknown_price_makes_the_sum_unknown() {
    let desk = desk();
    begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
    let mut attempt = begin_at(&desk, "a/x", Purpose::Verification, None);
    attempt.set_expected(tokens(7, 0));
    drop(attempt);
    begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
    let totals = desk.meter.totals();
    assert_eq!((totals.len(), totals[0].prompt_tokens, totals[0].cost), (1, 9, None));
    assert_eq!(desk.meter.sum().cost, None);
}

#[test]
fn concurrent_attempts_are_all_counted() {
    let desk = desk();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(2, 1));
                }
            });
        }
    });
    assert_eq!(desk.meter.totals()[0].prompt_tokens, 1600);
    let rows = booked(&desk);
    assert_eq!(rows.len(), 800);
    assert_eq!(rows.iter().filter(|row| row.is_first).count(), 1);
    assert_eq!(rows.iter().filter(|row| row.is_first_of_model).count(), 1);
}
