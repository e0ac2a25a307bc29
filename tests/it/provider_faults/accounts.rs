//! The cost of a fallback: each attempt is charged at its own model's price, and the reported usage is that of the
//! model that answered.

use mk::config::ServerConfig;
use mk::money::{NanoUsd, Price, Tokens};
use mk::storage::{AttemptRow, UsageCounts, UsageQuery};
use serde_json::Value;

use super::fixture::{Fixture, Seen};
use super::play::play;
use crate::support::chat::chunks;
use crate::support::scrape::scrape;
use crate::support::server::NOON;

const CHEAP: Price = Price::new(NanoUsd(1_000_000_000), NanoUsd(2_000_000_000));
const EXPENSIVE: Price = Price::new(NanoUsd(10_000_000_000), NanoUsd(30_000_000_000));

const FAULTS: [&str; 4] = ["503-always", "context-overflow", "silence", "stream-cut-always"];

/// A fixture where the faulty models of `gemini` are cheap, and their fallback `claude/whole` is expensive.
async fn fixture() -> Fixture {
    let priced = |config: &mut ServerConfig| {
        let mut models = config.providers.iter_mut().flat_map(|provider| {
            let name = provider.name.clone();
            provider.models.iter_mut().map(move |(model, settings)| (name.clone(), model.clone(), settings))
        });
        for (provider, model, settings) in &mut models {
            if provider == "gemini" && FAULTS.contains(&model.as_str()) {
                (settings.price, settings.fallbacks) = (Some(CHEAP), vec!["claude/whole".to_owned()]);
            } else if provider == "claude" && model == "whole" {
                settings.price = Some(EXPENSIVE);
            }
        }
    };
    let faults = [FAULTS.as_slice(), &["whole"]].concat();
    Fixture::open_with(&faults, priced, play).await
}

/// The prompt and completion tokens that the response reports.
fn reported_tokens(seen: &Seen) -> (u64, u64) {
    let is_stream = seen.raw.starts_with("data: ");
    let last = || chunks(&seen.raw).pop().unwrap();
    let usage: Value = if is_stream { last() } else { serde_json::from_str(&seen.raw).unwrap() };
    let usage = &usage["usage"];
    (usage["prompt_tokens"].as_u64().unwrap(), usage["completion_tokens"].as_u64().unwrap())
}

fn tokens(row: &AttemptRow) -> Tokens {
    Tokens::new(row.prompt_tokens, row.completion_tokens)
}

fn cost(row: &AttemptRow) -> u64 {
    row.cost.unwrap().0
}

#[tokio::test]
async fn each_attempt_is_charged_at_its_own_price_and_the_sums_match_the_attempts() {
    let fixture = fixture().await;
    let mut expected = UsageCounts::default();
    for (fault, is_free) in FAULTS.into_iter().zip([true, true, false, false]) {
        for stream in [false, true] {
            if fault == "stream-cut-always" && !stream {
                continue;
            }
            let seen = fixture.ask(&format!("gemini/{fault}"), stream).await;
            assert_eq!((seen.status, seen.code.as_str()), (200, ""), "{fault}: {}", seen.raw);
            let rows = fixture.rows(&seen.id);
            // A call that timed out may not have been read by the provider yet.
            let silent = rows.iter().filter(|row| row.outcome == "timeout").count();
            let calls = rows.len() - silent..=rows.len();
            assert!(calls.contains(&seen.asks.len()), "{fault}: a row for each call");
            let (last, failed) = rows.split_last().unwrap();
            assert_eq!((&*last.model, &*last.outcome), ("claude/whole", "ok"));
            assert_eq!((last.prompt_tokens, last.completion_tokens), reported_tokens(&seen), "{fault}");
            assert_eq!(cost(last), EXPENSIVE.of(tokens(last)).0);
            for row in failed {
                assert_eq!(*row.model, format!("gemini/{fault}"));
                assert_eq!(cost(row), CHEAP.of(tokens(row)).0, "{fault}");
                assert_eq!(row.prompt_tokens == 0, is_free, "{fault}: {row:?}");
            }
            expected.requests += 1;
            expected.model_requests += 2;
            expected.attempts += rows.len() as u64;
            expected.errors += failed.len() as u64;
            expected.prompt_tokens += rows.iter().map(|row| row.prompt_tokens).sum::<u64>();
            expected.completion_tokens += rows.iter().map(|row| row.completion_tokens).sum::<u64>();
            expected.cost = NanoUsd(expected.cost.0 + rows.iter().map(cost).sum::<u64>());
            expected.priced_attempts += rows.len() as u64;
            expected.cached_tokens += rows.iter().map(|row| row.cached_tokens).sum::<u64>();
            expected.estimated_attempts += rows.iter().filter(|row| row.is_estimated).count() as u64;
        }
    }
    let today = NOON.unix_ms().div_euclid(86_400_000);
    let sums = fixture.gateway.server.app.store.usage(&UsageQuery::days(today, today)).unwrap();
    assert_eq!(sums.iter().map(|sum| sum.counts).collect::<Vec<_>>(), [expected]);

    // The 503 is retried twice per request; the others lead to the fallback at once, except the cut stream.
    scrape(&fixture.gateway.server).await.assert(&[
        (r#"mk_retries_total{provider="gemini",model="503-always"}"#, 4.0),
        (r#"mk_fallbacks_total{provider="gemini",model="503-always"}"#, 2.0),
        (r#"mk_fallbacks_total{provider="gemini",model="context-overflow"}"#, 2.0),
        (r#"mk_fallbacks_total{provider="gemini",model="silence"}"#, 2.0),
        (r#"mk_retries_total{provider="gemini",model="stream-cut-always"}"#, 2.0),
        (r#"mk_fallbacks_total{provider="gemini",model="stream-cut-always"}"#, 1.0),
        (r#"mk_attempts_total{provider="claude",model="whole",outcome="ok"}"#, 7.0),
    ]);
}
