//! Reports are in order, named, and add up.

use super::*;
use crate::clock::Time;
use crate::storage::{AppRow, AttemptRow};

const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

fn attempt(app_id: &str, model: &str, cost: Option<u64>) -> AttemptRow {
    AttemptRow {
        at: NOON,
        request_id: "req_1".into(),
        app_id: app_id.into(),
        key_id: "key_1".into(),
        service: Service::Verify,
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

fn request(by: &[Dimension]) -> ReportRequest {
    let days = Days::until_today(30, NOON);
    ReportRequest { days, by: by.to_vec(), app_id: None, key_id: None, service: None, model: None }
}

fn store(rows: &[AttemptRow]) -> Store {
    let store = Store::in_memory(NOON).unwrap();
    store.add_attempts(rows).unwrap();
    store
}

#[test]
fn the_most_expensive_comes_first_and_unknown_is_not_zero() {
    let rows = [
        attempt("a", "m/cheap", Some(1)),
        attempt("a", "m/unknown", None),
        attempt("a", "m/dear", Some(7)),
        AttemptRow { prompt_tokens: 0, completion_tokens: 0, ..attempt("a", "m/failed", None) },
    ];
    let report = report(&store(&rows), &request(&[Dimension::Model, Dimension::Model])).unwrap();
    assert_eq!(report.by, [Dimension::Model]);
    let shown: Vec<_> = report.data.iter().map(|row| (row.model.as_deref(), row.sums.cost_usd)).collect();
    let expected = [
        (Some("m/dear"), Some(7e-9)),
        (Some("m/cheap"), Some(1e-9)),
        (Some("m/unknown"), None),
        (Some("m/failed"), Some(0.0)),
    ];
    assert_eq!(shown, expected);
    assert_eq!((report.totals.cost_usd, report.totals.unpriced_attempts), (Some(8e-9), 1));
}

#[test]
fn a_request_counts_once_in_the_totals_and_once_for_each_model() {
    let again = |model: &str| AttemptRow { is_first: false, ..attempt("a", model, Some(1)) };
    let retry = AttemptRow { is_first_of_model: false, ..again("m/two") };
    let store = store(&[attempt("a", "m/one", Some(1)), again("m/two"), retry]);
    let by_model = report(&store, &request(&[Dimension::Model])).unwrap();
    assert!(by_model.data.iter().all(|row| row.sums.requests == 1), "{by_model:?}");
    assert_eq!((by_model.totals.requests, by_model.totals.attempts), (1, 3));
    let of_second = ReportRequest { model: Some("m/two".to_owned()), ..request(&[Dimension::Day]) };
    let of_second = report(&store, &of_second).unwrap();
    assert_eq!((of_second.data[0].sums.requests, of_second.totals.requests), (1, 1));
}

#[test]
fn days_are_in_order_and_requested_dimensions_are_named() {
    let store = Store::in_memory(NOON).unwrap();
    let app = AppRow { id: "app_1".to_owned(), name: "news".to_owned(), budget: None, created_at: NOON };
    store.create_app(&app).unwrap();
    let earlier =
        AttemptRow { at: NOON.minus(std::time::Duration::from_hours(24)), ..attempt("app_1", "m", Some(1)) };
    store
        .add_attempts(&[attempt("app_1", "m", Some(9)), attempt("app_gone", "m", Some(99)), earlier])
        .unwrap();
    store.delete_app("app_1", NOON).unwrap();

    let report = report(&store, &request(&[Dimension::App, Dimension::Day])).unwrap();
    let shown: Vec<_> = report
        .data
        .iter()
        .map(|row| (row.day.as_deref(), row.app_id.as_deref(), row.app.as_deref()))
        .collect();
    let expected = [
        (Some("2026-11-19"), Some("app_1"), Some("news")),
        (Some("2026-11-20"), Some("app_gone"), None),
        (Some("2026-11-20"), Some("app_1"), Some("news")),
    ];
    assert_eq!(shown, expected);
    assert_eq!((report.from.as_str(), report.to.as_str()), ("2026-10-22", "2026-11-20"));
    assert!(report.data.iter().all(|row| row.key_id.is_none() && row.service.is_none()));
}

#[test]
fn nothing_used_is_an_empty_report() {
    let report = report(&store(&[]), &request(&[])).unwrap();
    assert_eq!(
        (report.data, report.totals),
        (Vec::new(), UsageSums { cost_usd: Some(0.0), ..UsageSums::default() })
    );
}

#[test]
fn a_report_that_is_too_long_is_refused() {
    let rows: Vec<_> = (0..=MAX_ROWS).map(|number| attempt(&format!("app_{number}"), "m", None)).collect();
    let store = store(&rows);
    assert!(matches!(report(&store, &request(&[Dimension::App])), Err(ReportError::TooLong)));
    assert_eq!(report(&store, &request(&[])).unwrap().totals.attempts, rows.len() as u64);
}
