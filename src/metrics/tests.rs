//! What is counted, with which labels, and that the page is in the format that scrapers read.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::api::endpoint::Endpoint;
use crate::money::NanoUsd;
use crate::net::workers::Workers;

const NOW: Time = Time::from_unix_ms(1_795_202_760_500);

fn metrics() -> Metrics {
    Metrics::new(["fake".to_owned()], ["fake/m".to_owned()], NOW)
}

fn attempt(model: &str) -> Attempt<'_> {
    Attempt {
        model,
        outcome: "ok",
        took: Duration::from_millis(3),
        first_token: None,
        prompt_tokens: 10,
        completion_tokens: 5,
        cached_tokens: 4,
        cache_write_tokens: 0,
        cost: Some(NanoUsd(20_000)),
    }
}

fn page(metrics: &Metrics) -> String {
    metrics.page(&Readings::default()).unwrap()
}

/// Whether the page has this line.
fn has(page: &str, line: &str) -> bool {
    page.lines().any(|found| found == line)
}

fn assert_has(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(has(page, line), "no {line} in\n{page}");
    }
}

#[test]
fn the_page_has_every_metric_of_the_table_once_and_in_its_order() {
    assert_eq!(metrics().collect(&Readings::default()).metrics(), table::ALL);
}

#[tokio::test]
async fn the_counts_of_all_workers_are_added_up() {
    let metrics = Arc::new(metrics());
    let count = |metrics: &Metrics| {
        metrics.http.count(Some(Endpoint::OwnKey), "GET", Some("200"), Duration::from_millis(3));
        metrics.attempts.count(&attempt("fake/m"));
    };
    count(&metrics);
    let workers = Workers::start(2).unwrap();
    for _ in 0..2 {
        let metrics = metrics.clone();
        workers.next().spawn(async move { count(&metrics) }).await.unwrap();
    }
    assert_has(
        &page(&metrics),
        &[
            r#"mk_http_requests_total{route="/v1/key",method="GET",status="200"} 3"#,
            r#"mk_attempts_total{provider="fake",model="m",outcome="ok"} 3"#,
            r#"mk_attempt_duration_seconds_count{provider="fake",model="m"} 3"#,
            r#"mk_tokens_total{provider="fake",model="m",kind="prompt"} 30"#,
        ],
    );
}

#[test]
fn an_attempt_is_counted_with_all_its_figures() {
    let metrics = metrics();
    metrics.attempts.count(&Attempt { first_token: Some(Duration::from_millis(2)), ..attempt("fake/m") });
    metrics.attempts.count(&Attempt { outcome: "timeout", ..attempt("fake/m") });
    metrics.attempts.count_retry("fake/m");
    metrics.attempts.count_fallback("fake/m");
    assert_has(
        &page(&metrics),
        &[
            r#"mk_attempts_total{provider="fake",model="m",outcome="ok"} 1"#,
            r#"mk_attempts_total{provider="fake",model="m",outcome="timeout"} 1"#,
            r#"mk_attempt_duration_seconds_bucket{le="0.001",provider="fake",model="m"} 0"#,
            r#"mk_attempt_duration_seconds_bucket{le="0.005",provider="fake",model="m"} 2"#,
            r#"mk_attempt_duration_seconds_bucket{le="+Inf",provider="fake",model="m"} 2"#,
            r#"mk_attempt_duration_seconds_sum{provider="fake",model="m"} 0.006"#,
            r#"mk_first_token_seconds_count{provider="fake",model="m"} 1"#,
            r#"mk_tokens_total{provider="fake",model="m",kind="prompt"} 20"#,
            r#"mk_tokens_total{provider="fake",model="m",kind="completion"} 10"#,
            r#"mk_cost_usd_total{provider="fake",model="m"} 0.00004"#,
            r#"mk_attempts_unpriced_total{provider="fake",model="m"} 0"#,
            r#"mk_retries_total{provider="fake",model="m"} 1"#,
            r#"mk_fallbacks_total{provider="fake",model="m"} 1"#,
            "process_start_time_seconds 1795202760.5",
            "# TYPE mk_cost_usd counter",
            "# UNIT mk_cost_usd usd",
            "# UNIT mk_first_token_seconds seconds",
            "# EOF",
        ],
    );
}

#[test]
fn an_unknown_price_is_not_zero() {
    let metrics = metrics();
    metrics.attempts.count(&Attempt { cost: None, ..attempt("fake/m") });
    let failed = Attempt { outcome: "rejected", prompt_tokens: 0, completion_tokens: 0, ..attempt("fake/m") };
    metrics.attempts.count(&Attempt { cost: None, ..failed });
    let unpriced = r#"mk_attempts_unpriced_total{provider="fake",model="m"} 1"#;
    assert_has(&page(&metrics), &[unpriced, r#"mk_cost_usd_total{provider="fake",model="m"} 0.0"#]);
}

#[test]
fn models_that_callers_make_up_share_one_label() {
    let metrics = metrics();
    for number in 0..10_000 {
        let id = format!("fake/made-up-{number}");
        metrics.attempts.count(&Attempt { outcome: "unknown_model", ..attempt(&id) });
        metrics.attempts.count_retry(&id);
    }
    let page = page(&metrics);
    assert!(!page.contains("made-up"), "{page}");
    assert_has(&page, &[r#"mk_attempts_total{provider="fake",model="other",outcome="unknown_model"} 10000"#]);
}

#[test]
fn only_a_limited_number_of_answering_models_get_a_label() {
    let metrics = metrics();
    for number in 0..10_000 {
        metrics.attempts.count(&attempt(&format!("fake/made-up-{number}")));
    }
    metrics.attempts.count(&attempt("fake/m"));
    metrics.attempts.count(&attempt("fake/made-up-7"));
    metrics.attempts.count(&attempt("nobody/m"));
    metrics.attempts.count(&attempt("fake/other"));
    let page = page(&metrics);
    assert!(page.lines().count() < 12_000, "{} lines", page.lines().count());
    assert_has(
        &page,
        &[
            r#"mk_attempts_total{provider="fake",model="m",outcome="ok"} 1"#,
            r#"mk_attempts_total{provider="fake",model="made-up-7",outcome="ok"} 2"#,
            r#"mk_attempts_total{provider="fake",model="other",outcome="ok"} 9801"#,
        ],
    );
    assert!(!page.contains("nobody"), "it is not among our providers");
}

#[test]
fn no_model_name_duplicates_a_series() {
    let metrics = Metrics::new(["fake".to_owned()], ["fake/m".to_owned(), "fake/other".to_owned()], NOW);
    for model in ["fake/other", "fake/nobody-knows", "fake/m"] {
        metrics.attempts.count(&attempt(model));
        metrics.attempts.count(&Attempt { outcome: "refused", ..attempt(model) });
    }
    let page = page(&metrics);
    let mut series: Vec<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|it| it.0)
        .collect();
    let all = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), all);
}

#[test]
fn a_name_cannot_break_out_of_its_label() {
    let metrics = metrics();
    metrics.attempts.count(&attempt("fake/a\"} 1\\\nb"));
    let expected = r#"mk_attempts_total{provider="fake",model="a\"} 1\\\nb",outcome="ok"} 1"#;
    assert_has(&page(&metrics), &[expected]);
}

#[test]
fn labels_of_breakers_are_bounded_too() {
    let breaker = |model: Option<&str>, state| Breaker {
        provider: "fake".to_owned(),
        model: model.map(str::to_owned),
        state,
    };
    let readings = Readings {
        breakers: vec![
            breaker(None, BreakerState::Closed),
            breaker(Some("m"), BreakerState::HalfOpen),
            breaker(Some("made-up-1"), BreakerState::Open),
            breaker(Some("made-up-2"), BreakerState::Closed),
        ],
        is_database_up: true,
        ledger_queue: 3,
        ledger_rows_lost: 2,
        limits_store: Some(LimitsStore { is_up: false, decided_alone: 7 }),
        verdicts: VerdictLookUps { texts: (1, 2), claims: (3, 4), answers: (5, 6) },
        spans: Some(Spans { sent: 5, dropped: 1, failed: 0 }),
    };
    let page = metrics().page(&readings).unwrap();
    assert_has(
        &page,
        &[
            r#"mk_breaker_state{provider="fake",model=""} 0"#,
            r#"mk_breaker_state{provider="fake",model="m"} 1"#,
            r#"mk_breaker_state{provider="fake",model="other"} 2"#,
            "mk_database_up 1",
            "mk_ledger_queue 3",
            "mk_ledger_rows_lost_total 2",
            "mk_limits_store_up 0",
            "mk_limits_alone_total 7",
            r#"mk_verdict_cache_total{entry="text",outcome="miss"} 2"#,
            r#"mk_verdict_cache_total{entry="claim",outcome="hit"} 3"#,
            r#"mk_verdict_cache_total{entry="answer",outcome="hit"} 5"#,
            r#"mk_trace_spans_total{outcome="sent"} 5"#,
            r#"mk_trace_spans_total{outcome="dropped"} 1"#,
        ],
    );
    assert!(!page.contains("made-up"), "{page}");
}

#[test]
fn requests_are_counted_by_route_not_by_path() {
    let metrics = metrics();
    let took = Duration::from_millis(30);
    metrics.http.count(Some(Endpoint::Verify), "POST", Some("200"), took);
    metrics.http.count(Some(Endpoint::Verify), "POST", None, took);
    metrics.http.count(None, "BREW", Some("418"), took);
    let page = page(&metrics);
    assert_has(
        &page,
        &[
            r#"mk_http_requests_total{route="/verify/v1/stream",method="POST",status="200"} 1"#,
            r#"mk_http_requests_total{route="/verify/v1/stream",method="POST",status="cancelled"} 1"#,
            r#"mk_http_requests_total{route="other",method="other",status="other"} 1"#,
            r#"mk_http_request_duration_seconds_bucket{le="0.05",route="/verify/v1/stream"} 2"#,
        ],
    );
    assert!(!page.contains("secret"), "{page}");
}

#[test]
fn every_code_of_a_failure_is_an_outcome() {
    use crate::providers::Failure;
    let failures = [
        Failure::Unauthorized,
        Failure::QuotaExhausted,
        Failure::RateLimited { retry_after: None },
        Failure::Overloaded { retry_after: None },
        Failure::UnknownModel,
        Failure::ContextOverflow { words: None },
        Failure::rejected(None, ""),
        Failure::Unsupported { param: String::new(), message: String::new() },
        Failure::Refused,
        Failure::Broken { status: 500, retry_after: None },
        Failure::Malformed,
        Failure::NoAnswer,
        Failure::TooLarge { bytes: 9_000_000 },
        Failure::Unreachable,
        Failure::NoDescriptors,
        Failure::Cut,
        Failure::Timeout,
    ];
    let metrics = metrics();
    for failure in &failures {
        metrics.attempts.count(&Attempt { outcome: failure.code(), ..attempt("fake/m") });
    }
    let page = page(&metrics);
    for failure in &failures {
        let line =
            format!(r#"mk_attempts_total{{provider="fake",model="m",outcome="{}"}} 1"#, failure.code());
        assert_has(&page, &[&line]);
    }
}

#[test]
fn models_added_later_keep_their_counts() {
    let metrics = metrics();
    for model in ["fake/m", "fake/met", "new/x", "fake/unmet"] {
        let outcome = if model == "fake/unmet" { "timeout" } else { "ok" };
        metrics.attempts.count(&Attempt { outcome, ..attempt(model) });
    }
    let models = ["fake/met", "fake/unmet", "new/x", "new/other"].map(str::to_owned);
    metrics.add_models(["new".to_owned()], models);
    for model in ["fake/m", "fake/met", "new/x", "new/other", "fake/unmet"] {
        metrics.attempts.count(&attempt(model));
    }
    let page = page(&metrics);
    assert_has(
        &page,
        &[
            r#"mk_attempts_total{provider="fake",model="m",outcome="ok"} 2"#,
            r#"mk_attempts_total{provider="fake",model="met",outcome="ok"} 2"#,
            r#"mk_attempts_total{provider="fake",model="other",outcome="timeout"} 1"#,
            r#"mk_attempts_total{provider="fake",model="unmet",outcome="ok"} 1"#,
            r#"mk_attempts_total{provider="new",model="x",outcome="ok"} 1"#,
            r#"mk_attempts_total{provider="new",model="other",outcome="ok"} 1"#,
        ],
    );
    let series: Vec<&str> = page.lines().filter_map(|line| line.rsplit_once(' ')).map(|it| it.0).collect();
    let mut once = series.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), series.len(), "{page}");
}
