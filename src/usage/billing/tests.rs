//! What a month has cost, how much of budgets is used, and what a statement says about an app.

use std::time::Duration;

use super::*;
use crate::api::Service;
use crate::api::console::KeySettings;
use crate::storage::{AppRow, AttemptRow, KeyRow};

const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

fn attempt(key_id: &str, model: &str, at: &str, cost: Option<u64>) -> AttemptRow {
    AttemptRow {
        at: Time::parse(at).unwrap(),
        request_id: "req_1".into(),
        app_id: "app_1".into(),
        key_id: key_id.into(),
        service: Service::Inference,
        model: model.into(),
        outcome: "ok".into(),
        prompt_tokens: 2,
        completion_tokens: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: false,
        cost: cost.map(NanoUsd),
        latency_ms: 1,
        is_first: true,
        is_first_of_model: true,
        labels: None,
        call: None,
    }
}

fn store_with_app(budget: Option<u64>) -> Store {
    let store = Store::in_memory(NOON).unwrap();
    let budget = budget.map(NanoUsd);
    store.create_app(&AppRow { id: "app_1".into(), name: "news".into(), budget, created_at: NOON }).unwrap();
    store
}

fn add_key(store: &Store, number: u8, change: impl FnOnce(&mut KeyRow)) {
    let mut key = KeyRow {
        id: format!("key_{number}").into(),
        app_id: "app_1".into(),
        app_name: String::new(),
        service: Service::Inference,
        last4: "wxyz".to_owned(),
        created_at: NOON,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
        settings: KeySettings { budget: Some(NanoUsd(100)), ..KeySettings::default() },
        app_budget: None,
    };
    change(&mut key);
    store.create_key(&key, &[number; 32]).unwrap();
}

#[test]
fn thresholds_are_exact() {
    let budget = NanoUsd(3_000_000_001);
    for (spent, expected) in [
        (0, None),
        (1_500_000_000, None),
        (1_500_000_001, Some(50)),
        (2_400_000_000, Some(50)),
        (2_400_000_001, Some(80)),
        (3_000_000_000, Some(80)),
        (3_000_000_001, Some(100)),
        (u64::MAX, Some(100)),
    ] {
        assert_eq!(threshold(NanoUsd(spent), budget), expected, "{spent}");
    }
    assert_eq!(threshold(NanoUsd(0), NanoUsd(0)), Some(100));
    assert_eq!(threshold(NanoUsd(u64::MAX - 1), NanoUsd(u64::MAX)), Some(80));
}

#[test]
fn budgets_in_force_are_listed_the_most_used_first() {
    let store = store_with_app(Some(1000));
    add_key(&store, 1, |_| {});
    add_key(&store, 2, |key| key.revoked_at = Some(NOON));
    add_key(&store, 3, |key| key.expires_at = Some(NOON));
    add_key(&store, 4, |key| key.budget = None);
    add_key(&store, 5, |key| (key.name, key.budget) = (Some("ci".to_owned()), Some(NanoUsd(0))));
    let last_month = attempt("key_1", "m", "2026-10-31T23:59:59.999Z", Some(500));
    store.add_attempts(&[attempt("key_1", "m", "2026-11-01", Some(81)), last_month]).unwrap();

    let lines = billing(&store, NOON).unwrap().budgets;
    let shown: Vec<_> =
        lines.iter().map(|line| (line.name.as_str(), line.used_percent, line.threshold)).collect();
    let expected = [("ci", 100.0, Some(100)), ("inference …wxyz", 81.0, Some(80)), ("news", 8.1, None)];
    for ((name, percent, threshold), (expected_name, expected_percent, expected_threshold)) in
        shown.iter().zip(expected)
    {
        assert_eq!((*name, *threshold), (expected_name, expected_threshold));
        assert!((percent - expected_percent).abs() < 1e-9, "{percent}");
    }
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!(lines[1].app_id, "app_1");
}

#[test]
fn the_month_begins_and_ends_at_midnight() {
    let store = store_with_app(None);
    let rows = [
        attempt("key_1", "m", "2026-10-31T23:59:59.999Z", Some(1)),
        attempt("key_1", "m", "2026-11-01T00:00:00Z", Some(20)),
        attempt("key_1", "m", "2026-11-30T23:59:59.999Z", Some(300)),
        attempt("key_1", "m", "2026-12-01T00:00:00Z", Some(4000)),
    ];
    store.add_attempts(&rows).unwrap();
    let billing = billing(&store, Time::parse("2026-11-30T23:59:59.999Z").unwrap()).unwrap();
    assert_eq!((billing.month.as_str(), billing.ends_at.as_str()), ("2026-11", "2026-12-01T00:00:00.000Z"));
    assert_eq!(billing.month_to_date.cost_usd, Some(320e-9));
    let november = statement(&store, "app_1", Month::parse("2026-11").unwrap(), NOON).unwrap();
    assert_eq!(november.totals.cost_usd, Some(320e-9));
}

#[test]
fn there_is_no_forecast_without_data() {
    let store = store_with_app(None);
    assert_eq!(billing(&store, NOON).unwrap().forecast, None);
    store.add_attempts(&[attempt("key_1", "m", "2026-11-19", None)]).unwrap();
    assert_eq!(billing(&store, NOON).unwrap().forecast, None, "only at unknown prices");
    store.add_attempts(&[attempt("key_1", "m", "2026-11-20", Some(1_500_000_000))]).unwrap();
    let forecast = billing(&store, NOON).unwrap().forecast.unwrap();
    assert_eq!((forecast.per_day_usd, forecast.based_on_days, forecast.cost_usd), (1.0, 1.5, 12.0));
}

#[test]
fn a_statement_has_a_line_for_each_key_and_model_and_outlives_its_app() {
    let store = store_with_app(Some(1000));
    add_key(&store, 1, |_| {});
    add_key(&store, 2, |key| key.name = Some("ci".to_owned()));
    let again = AttemptRow { is_first: false, ..attempt("key_1", "n", "2026-11-02", None) };
    let rows = [
        attempt("key_1", "m", "2026-11-02", Some(5)),
        again,
        attempt("key_2", "m", "2026-11-03", Some(7)),
        AttemptRow { app_id: "app_2".into(), ..attempt("key_9", "m", "2026-11-03", Some(1)) },
    ];
    store.add_attempts(&rows).unwrap();
    store.delete_app("app_1", NOON).unwrap();

    let month = Month::parse("2026-11").unwrap();
    let made = statement(&store, "app_1", month, NOON).unwrap();
    let lines: Vec<_> = made
        .lines
        .iter()
        .map(|line| (line.key.as_str(), line.model.as_str(), line.sums.requests, line.sums.cost_usd))
        .collect();
    let expected = [
        ("ci", "m", 1, Some(7e-9)),
        ("inference …wxyz", "m", 1, Some(5e-9)),
        ("inference …wxyz", "n", 1, None),
    ];
    assert_eq!(lines, expected);
    assert_eq!((made.totals.requests, made.totals.cost_usd), (2, Some(12e-9)));
    assert_eq!((made.app.as_str(), made.budget_usd, made.is_preliminary), ("news", Some(1e-6), true));
    let over = statement(&store, "app_1", month, NOON.plus(Duration::from_hours(24 * 30))).unwrap();
    assert!(!over.is_preliminary);
    let missing = statement(&store, "news", month, NOON);
    assert!(matches!(missing, Err(ReportError::Storage(Error::NotFound))), "by id only: {missing:?}");
}
