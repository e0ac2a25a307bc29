//! Prompts that providers read from their caches, or write to them: booked at prices of their own, in all formats.

use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::chat::{gateway_with, hello, hello_stream};
use crate::support::provider::{ModelRequest, Reply, StreamStep};
use crate::support::scrape::scrape;

/// Models of all formats, one of which has no price of its own for what is cached. Dollars for a million tokens.
const MODELS: &str = "
[providers.fake.models.c]
input_usd_per_mtok = 10
output_usd_per_mtok = 50
cached_input_usd_per_mtok = 1
cache_write_usd_per_mtok = 12.5
[providers.claude]
kind = \"anthropic\"
base_url = \"{base_url}\"
models.c = { input_usd_per_mtok = 10, output_usd_per_mtok = 50, cached_input_usd_per_mtok = 1, cache_write_usd_per_mtok = 12.5 }
[providers.gemini]
kind = \"google\"
base_url = \"{base_url}\"
models.c = { input_usd_per_mtok = 10, output_usd_per_mtok = 50, cached_input_usd_per_mtok = 1 }
";

/// 100 tokens of prompt, of which 70 are read from the cache and, where the format says so, 20 written to it.
fn answer(ask: &ModelRequest) -> Reply {
    use crate::support::formats::Format;
    let (whole, events) = match ask.format {
        Format::Chat => {
            let usage = json!({
                "prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
                "prompt_tokens_details": {"cached_tokens": 70},
            });
            let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
            let message = json!({"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"});
            (
                json!({"choices": [message], "usage": usage}),
                vec![delta, json!({"choices": [], "usage": usage})],
            )
        }
        Format::Anthropic => {
            let prompt = json!({"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1});
            let mut usage = prompt.clone();
            usage["output_tokens"] = json!(5);
            let block = json!({"type": "text", "text": "hi"});
            (
                json!({"type": "message", "id": "m", "content": [block], "stop_reason": "end_turn", "usage": usage}),
                vec![
                    json!({"type": "message_start", "message": {"id": "m", "usage": prompt}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    json!({"type": "content_block_stop", "index": 0}),
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
                    json!({"type": "message_stop"}),
                ],
            )
        }
        Format::Google => {
            let usage =
                json!({"promptTokenCount": 100, "cachedContentTokenCount": 70, "candidatesTokenCount": 5});
            let whole = json!({
                "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
                "usageMetadata": usage,
            });
            (whole.clone(), vec![whole])
        }
    };
    if !ask.stream {
        return Reply::status(200, &whole);
    }
    let events: Vec<String> = events.iter().map(|event: &Value| format!("data: {event}\n\n")).collect();
    Reply::Stream(vec![StreamStep::Send(events.concat())])
}

#[tokio::test]
async fn cached_prompts_are_booked_at_their_own_prices_in_all_formats() {
    for (model, cached, cost) in [
        ("fake/c", (70, 0), 30 * 10 + 70 + 5 * 50),
        ("claude/c", (70, 20), 10 * 10 + 70 + 250 + 5 * 50),
        ("gemini/c", (70, 0), 30 * 10 + 70 + 5 * 50),
        // Without a price of their own, as any prompt: at a dollar, and two for the answer.
        ("fake/m", (70, 0), 100 + 5 * 2),
    ] {
        for mut body in [hello(), hello_stream()] {
            body["model"] = json!(model);
            let gateway = gateway_with("", MODELS, |setup| setup, answer).await;
            let _ = gateway.ask(&body).await.text().await.unwrap();
            let row = gateway.rows().remove(0);
            assert_eq!((&*row.outcome, row.prompt_tokens, row.completion_tokens), ("ok", 100, 5), "{body}");
            assert_eq!((row.cached_tokens, row.cache_write_tokens), cached, "{body}");
            assert_eq!((row.cost, row.is_estimated), (Some(NanoUsd(cost * 1_000)), false), "{body}");
            let (provider, name) = model.split_once('/').unwrap();
            let series = |kind: &str| {
                format!(r#"mk_cached_tokens_total{{provider="{provider}",model="{name}",kind="{kind}"}}"#)
            };
            let page = scrape(&gateway.server).await;
            for (kind, tokens) in [("read", cached.0), ("write", cached.1)] {
                assert_eq!(page.series.get(&series(kind)), Some(&f64::from(u32::try_from(tokens).unwrap())));
            }
        }
    }
}
