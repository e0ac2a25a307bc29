//! What a fallback costs: each attempt at its own model's price, the answer's usage that of the model that gave it.

use mk::config::ServerConfig;
use mk::money::{NanoUsd, Price, Tokens};
use mk::storage::{AttemptRow, UsageCounts, UsageQuery};
use serde_json::Value;

use super::play::play;
use super::room::{Room, Seen};
use crate::support::chat::chunks;
use crate::support::scrape::scrape;
use crate::support::server::NOON;

const CHEAP: Price =
    Price { input_per_mtok: NanoUsd(1_000_000_000), output_per_mtok: NanoUsd(2_000_000_000) };
const DEAR: Price =
    Price { input_per_mtok: NanoUsd(10_000_000_000), output_per_mtok: NanoUsd(30_000_000_000) };

const FAULTS: [&str; 4] = ["503-for-ever", "context-overflow", "silence", "stream-cut-for-ever"];

/// A room where the faulty models of `gemini` are cheap, and their fallback is `claude/whole`, which is dear.
async fn room() -> Room {
    let priced = |config: &mut ServerConfig| {
        let mut models = config.providers.iter_mut().flat_map(|provider| {
            let name = provider.name.clone();
            provider.models.iter_mut().map(move |(model, settings)| (name.clone(), model.clone(), settings))
        });
        for (provider, model, settings) in &mut models {
            if provider == "gemini" && FAULTS.contains(&model.as_str()) {
                (settings.price, settings.fallbacks) = (Some(CHEAP), vec!["claude/whole".to_owned()]);
            } else if provider == "claude" && model == "whole" {
                settings.price = Some(DEAR);
            }
        }
    };
    let faults = [FAULTS.as_slice(), &["whole"]].concat();
    Room::open_with(&faults, priced, play).await
}

/// Prompt and completion as the answer tells them.
fn told(seen: &Seen) -> (u64, u64) {
    let is_stream = seen.raw.starts_with("data: ");
    let last = || chunks(&seen.raw).pop().unwrap();
    let usage: Value = if is_stream { last() } else { serde_json::from_str(&seen.raw).unwrap() };
    let usage = &usage["usage"];
    (usage["prompt_tokens"].as_u64().unwrap(), usage["completion_tokens"].as_u64().unwrap())
}

fn tokens(row: &AttemptRow) -> Tokens {
    Tokens { prompt: row.prompt_tokens, completion: row.completion_tokens }
}

fn cost(row: &AttemptRow) -> u64 {
    row.cost.unwrap().0
}

#[tokio::test]
async fn each_attempt_is_paid_at_its_own_price_and_the_sums_are_those_of_the_attempts() {
    let room = room().await;
    let mut expected = UsageCounts::default();
    for (fault, is_free) in FAULTS.into_iter().zip([true, true, false, false]) {
        for stream in [false, true] {
            if fault == "stream-cut-for-ever" && !stream {
                continue;
            }
            let seen = room.ask(&format!("gemini/{fault}"), stream).await;
            assert_eq!((seen.status, seen.code.as_str()), (200, ""), "{fault}: {}", seen.raw);
            let rows = room.rows(&seen.id);
            // Only what was given up as silent may not have been read by then.
            let silent = rows.iter().filter(|row| row.outcome == "timeout").count();
            let calls = rows.len() - silent..=rows.len();
            assert!(calls.contains(&seen.asks.len()), "{fault}: a row for each call");
            let (last, failed) = rows.split_last().unwrap();
            assert_eq!((&*last.model, &*last.outcome), ("claude/whole", "ok"));
            assert_eq!((last.prompt_tokens, last.completion_tokens), told(&seen), "{fault}");
            assert_eq!(cost(last), DEAR.of(tokens(last)).0);
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
        }
    }
    let today = NOON.unix_ms().div_euclid(86_400_000);
    let sums = room.desk.server.app.store.usage(&UsageQuery::days(today, today)).unwrap();
    assert_eq!(sums.iter().map(|sum| sum.counts).collect::<Vec<_>>(), [expected]);

    // Three failures of the first, of which two are retries; of the others each is left at once, but for the cut.
    scrape(&room.desk.server).await.assert(&[
        (r#"mk_retries_total{provider="gemini",model="503-for-ever"}"#, 4.0),
        (r#"mk_fallbacks_total{provider="gemini",model="503-for-ever"}"#, 2.0),
        (r#"mk_fallbacks_total{provider="gemini",model="context-overflow"}"#, 2.0),
        (r#"mk_fallbacks_total{provider="gemini",model="silence"}"#, 2.0),
        (r#"mk_retries_total{provider="gemini",model="stream-cut-for-ever"}"#, 2.0),
        (r#"mk_fallbacks_total{provider="gemini",model="stream-cut-for-ever"}"#, 1.0),
        (r#"mk_attempts_total{provider="claude",model="whole",outcome="ok"}"#, 7.0),
    ]);
}
