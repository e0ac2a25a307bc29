//! Bugs that users of other gateways reported. Each has a test here, from a caller's request to a provider on a real
//! socket; some are also covered elsewhere:
//!
//! | bug | also covered by |
//! |---|---|
//! | a truncated stream counts as a success | `chat_stream::ends::a_broken_stream_ends_with_an_error`, `providers::chat_scenarios::survives` |
//! | an error after the headers has no frame | `chat_stream`, `shutdown`, `tests/sdk` (a cut stream raises) |
//! | a provider's 401 is passed on to the caller | `chat_errors::every_failure_has_its_status_and_code_streamed_or_not` |
//! | usage is missing or silently estimated | `chat_stream::a_request_is_retried_without_stream_options_if_the_provider_rejects_them` |
//! | failures are billed, disconnects are free | `chat_accounts`, `chat_stream::a_disconnect_stops_the_provider_and_bills_what_was_streamed` |
//! | a provider continues for a caller who disconnected | the same, and `disconnect` |
//! | Anthropic's `finish_reason` is null | scenarios `anthropic/chat-stream-*`, `anthropic/chat-answer-*` |
//! | only the last text block is returned | scenario `anthropic/chat-answer-several-blocks` |
//! | a default `max_tokens` cuts answers | scenarios `*/chat-request-plain` |
//! | a prompt blocked by Gemini is an empty success | scenarios `google/chat-*-blocked-prompt` |
//! | a provider's comments become data | `chat_stream::provider_quirks_are_normalised` |
//! | a provider's rate-limit headers are forwarded | `chat::a_response_has_the_documented_shape_and_keeps_the_provider_s_extra_fields` |
//! | a silent provider is retried again and again | `chat_errors::a_silent_model_is_abandoned_only_if_it_has_a_fallback` |
//! | memory grows with the number of callers | `chat_stream::a_slow_reader_applies_backpressure_to_the_provider` |
//! | an unknown price counts as zero | `chat_accounts::a_model_without_a_price_has_an_unknown_cost`, `cli_models` |

mod wire;

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::chat::{chunks, gateway_with, hello, hello_stream, text_of};
use crate::support::provider::{ModelRequest, Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::recorded::{FORMATS, events, gateway, hello_to, play};
use crate::support::scrape::{scrape, scrape_until};
use crate::support::{PROMPT, eventually};

/// The finish reasons of a stream, in order.
fn reasons(list: &[Value]) -> Vec<String> {
    let reasons = list.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
    reasons.map(str::to_owned).collect()
}

/// Sends a request that may fail; returns status and body.
async fn asked(gateway: &crate::support::chat::Gateway, body: &Value) -> (u16, String) {
    let response = gateway.ask(body).await;
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_truncated_stream_is_reported_as_an_error() {
    let script = |ask: &ModelRequest| {
        let (how, count) = ask.model.split_once('-').unwrap();
        let folder = FORMATS[ask.format as usize].1;
        let scenario = if folder == "openai" { "chat-stream-azure" } else { "chat-stream-text" };
        let mut beats: Vec<StreamStep> = events(folder, scenario).into_iter().map(StreamStep::Send).collect();
        beats.truncate(count.parse().unwrap());
        beats.extend((how == "cut").then_some(StreamStep::Cut));
        Reply::Stream(beats)
    };
    let gateway = gateway(script).await;
    for (provider, _) in FORMATS {
        let whole = gateway.stream(&hello_to(&format!("{provider}/whole-99"), true)).await;
        let (text, reason) = (text_of(&chunks(&whole), 0), reasons(&chunks(&whole)));
        assert!(!text.is_empty() && reason == ["stop"], "{whole}");
        for (how, count) in (0..9).flat_map(|count| [("ended", count), ("cut", count)]) {
            let (status, raw) = asked(&gateway, &hello_to(&format!("{provider}/{how}-{count}"), true)).await;
            if status != 200 {
                assert_eq!((status, raw.contains("[DONE]")), (502, false), "{provider} {how} {count}: {raw}");
                continue;
            }
            let list = chunks(&raw);
            let end = list.last().unwrap();
            if reasons(&list) == ["error"] {
                assert!(end["error"]["code"].is_string(), "{provider} {how} {count}: {raw}");
            } else {
                assert_eq!((text_of(&list, 0), reasons(&list)), (text.clone(), reason.clone()), "{raw}");
            }
        }
    }
}

#[tokio::test]
async fn an_error_after_the_headers_is_sent_as_a_frame() {
    let gateway = gateway(|ask: &ModelRequest| {
        let folder = FORMATS[ask.format as usize].1;
        let told = match folder {
            "openai" => events(folder, "chat-stream-openrouter-error"),
            _ => events(folder, "chat-stream-error"),
        };
        // Without a pause, a failure in the first events would become the status of the response.
        let failing = told.iter().position(|event| event.contains("error")).unwrap();
        let mut beats: Vec<StreamStep> = told.into_iter().map(StreamStep::Send).collect();
        if ask.model == "flood" {
            beats.truncate(failing);
            beats.push(StreamStep::Send("x".repeat(5 << 20)));
        }
        beats.insert(failing, StreamStep::APART);
        Reply::Stream(beats)
    })
    .await;
    for (provider, _) in FORMATS {
        for model in ["told", "flood"] {
            let list = chunks(&gateway.stream(&hello_to(&format!("{provider}/{model}"), true)).await);
            let end = list.last().unwrap();
            assert_eq!(reasons(&list), ["error"], "{provider}/{model}");
            for field in ["message", "type", "code"] {
                assert!(end["error"][field].is_string(), "{provider}/{model}: {end}");
            }
        }
    }
}

#[tokio::test]
async fn a_provider_s_401_becomes_a_502() {
    let error = json!({"error": {"type": "authentication_error", "message": "bad key", "code": 401}});
    let headers = vec![("www-authenticate", "Bearer realm=\"theirs\"".to_owned())];
    let gateway = gateway(move |_| Reply::Raw(401, headers.clone(), error.to_string())).await;
    for (provider, stream) in FORMATS.iter().flat_map(|(provider, _)| [(provider, false), (provider, true)]) {
        let response = gateway.ask(&hello_to(&format!("{provider}/m"), stream)).await;
        assert_eq!((response.status().as_u16(), response.headers().get("www-authenticate")), (502, None));
        assert_eq!(response.json::<Value>().await.unwrap()["code"], "provider_auth_failed");
    }
}

#[tokio::test]
async fn unreported_usage_is_marked_as_estimated_and_booked_as_reported() {
    let gateway = gateway(|ask: &ModelRequest| {
        let folder = FORMATS[ask.format as usize].1;
        play(
            folder,
            match (ask.model.as_str(), folder) {
                ("known", "openai") => "chat-stream-azure",
                ("known", _) => "chat-stream-text",
                (_, "openai") => "chat-stream-ollama-without-usage",
                (_, "google") => "chat-stream-without-usage",
                _ => "chat-stream-without-last-usage",
            },
        )
    })
    .await;
    for (provider, _) in FORMATS {
        for (model, is_estimated) in [("known", None), ("unknown", Some(true))] {
            let list = chunks(&gateway.stream(&hello_to(&format!("{provider}/{model}"), true)).await);
            let usage = &list.last().unwrap()["usage"];
            assert_eq!(usage["estimated"].as_bool(), is_estimated, "{provider}/{model}: {usage}");
            let (prompt, completion) = (usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64());
            let row =
                gateway.booked().into_iter().find(|row| row.0 == format!("{provider}/{model}")).unwrap();
            assert_eq!((Some(row.2), Some(row.3)), (prompt, completion), "{provider}/{model}");
            assert!(row.2 > 0 && row.3 > 0, "{row:?}");
        }
    }
}

#[tokio::test]
async fn failed_requests_are_not_billed() {
    let gateway = gateway_with(
        "breaker_failures = 0",
        "",
        |setup| setup,
        |ask: &ModelRequest| {
            Reply::status(ask.body["max_tokens"].as_u64().unwrap().try_into().unwrap(), &json!({"error": {}}))
        },
    )
    .await;
    for (status, stream) in [400, 401, 403, 404, 429, 500, 503].iter().flat_map(|s| [(s, false), (s, true)]) {
        let mut body = if stream { hello_stream() } else { hello() };
        body["max_tokens"] = json!(status);
        asked(&gateway, &body).await;
    }
    let rows = gateway.rows();
    assert_eq!(rows.len(), 14);
    for row in rows {
        let cost = row.cost.map(|cost| cost.0);
        assert_eq!((row.prompt_tokens, row.completion_tokens, cost), (0, 0, Some(0)), "{}", row.outcome);
    }
}

#[tokio::test]
async fn a_disconnect_at_any_stage_cancels_the_provider_call() {
    let gateway = gateway_with(
        "max_concurrent = 1",
        "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n",
        |setup| setup,
        |ask: &ModelRequest| match (ask.model.as_str(), FORMATS[ask.format as usize].1) {
            ("m", "openai") => Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall]),
            ("m", _) => {
                let first = events("anthropic", "chat-stream-text").into_iter().take(4).map(StreamStep::Send);
                Reply::Stream(first.chain([StreamStep::Stall]).collect())
            }
            _ => Reply::Hang,
        },
    )
    .await;
    let stages = [
        ("fake/m", true),
        ("claude/m", true),
        ("fake/silent", true),
        ("fake/silent", false),
        ("claude/silent", false),
    ];
    for (calls, (model, stream)) in (1..).zip(stages) {
        let running = tokio::spawn(gateway.post(hello_to(model, stream).to_string()).send());
        eventually("the provider is called", || gateway.provider.in_flight() == 1).await;
        let left = if model.ends_with("/m") {
            let mut body = running.await.unwrap().unwrap().bytes_stream();
            body.next().await.unwrap().unwrap();
            Instant::now()
        } else {
            running.abort();
            Instant::now()
        };
        eventually("the call is abandoned", || gateway.provider.abandoned() == calls).await;
        assert!(left.elapsed() < PROMPT, "{model}: {:?}", left.elapsed());
        eventually("the attempt is booked", || gateway.rows().len() == calls).await;
        let row = gateway.rows().pop().unwrap();
        assert_eq!((&*row.outcome, row.prompt_tokens > 0), ("cancelled", true), "{model}");
    }
    // A caller who disconnects while waiting for a slot causes no provider call.
    let first = tokio::spawn(gateway.post(hello_to("fake/silent", false).to_string()).send());
    eventually("the provider is busy", || gateway.provider.in_flight() == 1).await;
    let queued = tokio::spawn(gateway.post(hello_to("fake/queued", false).to_string()).send());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let cancelled =
        r#"mk_http_requests_total{route="/inference/v1/chat/completions",method="POST",status="cancelled"}"#;
    let before = scrape(&gateway.server).await.get(cancelled);
    queued.abort();
    // If both left at once, the server might notice the first one first and give its slot to the queued one.
    scrape_until(&gateway.server, "the queued request is cancelled", |page| page.get(cancelled) > before)
        .await;
    first.abort();
    eventually("the call is abandoned", || gateway.provider.in_flight() == 0).await;
    let (status, _) = asked(&gateway, &hello_to("nobody/m", false)).await;
    assert_eq!((status, gateway.provider.requests_for("queued").len()), (404, 0));
}

#[tokio::test]
async fn anthropic_stop_reasons_become_finish_reasons() {
    let gateway = gateway(|ask: &ModelRequest| play("anthropic", &ask.model)).await;
    for (scenario, reason) in [
        ("chat-stream-text", "stop"),
        ("chat-stream-length", "length"),
        ("chat-stream-parallel-tools", "tool_calls"),
        ("chat-stream-refusal", "content_filter"),
        ("chat-stream-thinking", "stop"),
        ("chat-answer-text", "stop"),
        ("chat-answer-length", "length"),
        ("chat-answer-tools", "tool_calls"),
        ("chat-answer-refusal", "content_filter"),
        ("answer-pause-turn", "stop"),
        ("answer-context-window", "length"),
        ("answer-stop-sequence", "stop"),
    ] {
        let is_stream = scenario.contains("stream");
        let (status, raw) = asked(&gateway, &hello_to(&format!("claude/{scenario}"), is_stream)).await;
        let list = if is_stream { chunks(&raw) } else { vec![serde_json::from_str(&raw).unwrap()] };
        assert_eq!((status, reasons(&list)), (200, vec![reason.to_owned()]), "{scenario}: {raw}");
    }
    let (status, raw) = asked(&gateway, &hello_to("claude/chat-answer-no-reason", false)).await;
    assert_eq!(status, 502, "a response without a stop reason is invalid: {raw}");
}

#[tokio::test]
async fn all_text_blocks_are_joined() {
    let several = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Two \"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"and \"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"thinking\"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":1}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"text\",\"text\":\"two are four.\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let gateway = gateway(|ask: &ModelRequest| match ask.body["stream"].as_bool() {
        Some(true) => Reply::Stream(vec![StreamStep::Send(several.to_owned())]),
        _ => play("anthropic", "chat-answer-several-blocks"),
    })
    .await;
    let streamed = text_of(&chunks(&gateway.stream(&hello_to("claude/m", true)).await), 0);
    let (_, whole) = gateway.json(&hello_to("claude/m", false)).await;
    let expected = "Two and two are four.";
    assert_eq!((streamed.as_str(), &whole["choices"][0]["message"]["content"]), (expected, &json!(expected)));
}

#[tokio::test]
async fn no_token_limit_is_added_unless_the_format_requires_one() {
    let gateway = gateway(|ask: &ModelRequest| match FORMATS[ask.format as usize].1 {
        "openai" => stream(&["x"]),
        folder => play(folder, "chat-stream-text"),
    })
    .await;
    for model in
        ["fake/m", "fake/o4-mini", "claude/claude-haiku-4-5", "claude/unheard-of", "gemini/gemini-3.5-flash"]
    {
        gateway.stream(&hello_to(model, true)).await;
    }
    let limits: Vec<Option<u64>> = gateway
        .provider
        .requests()
        .iter()
        .map(|ask| {
            let names = ["max_tokens", "max_completion_tokens"].map(|name| ask.body[name].as_u64());
            names[0].or(names[1]).or(ask.body["generationConfig"]["maxOutputTokens"].as_u64())
        })
        .collect();
    // Only Anthropic requires a limit: the model's own maximum, or what every current model supports.
    assert_eq!(limits, [None, None, Some(64_000), Some(32_000), None]);
}

#[tokio::test]
async fn blocked_and_empty_responses_are_errors() {
    let gateway = gateway(|ask: &ModelRequest| play("google", &ask.model)).await;
    for scenario in ["chat-answer-blocked-prompt", "chat-stream-blocked-prompt"] {
        let is_stream = scenario.contains("stream");
        let (status, raw) = asked(&gateway, &hello_to(&format!("gemini/{scenario}"), is_stream)).await;
        let error: Value = serde_json::from_str(&raw).unwrap();
        assert_eq!((status, &error["code"]), (400, &json!("content_filter")), "{scenario}");
    }
    for scenario in ["chat-answer-empty-success", "chat-answer-no-candidates", "chat-stream-empty-success"] {
        let (status, raw) =
            asked(&gateway, &hello_to(&format!("gemini/{scenario}"), scenario.contains("stream"))).await;
        assert_eq!(status, 502, "{scenario}: {raw}");
    }
    // The provider's usage is booked even if a stream had no text.
    let booked = gateway.booked();
    let of = |scenario: &str, outcome: &str| -> Vec<(u64, u64)> {
        let row = (format!("gemini/{scenario}"), outcome.to_owned());
        booked
            .iter()
            .filter(|(model, how, ..)| (model, how) == (&row.0, &row.1))
            .map(|row| (row.2, row.3))
            .collect()
    };
    for scenario in ["chat-answer-blocked-prompt", "chat-stream-blocked-prompt"] {
        assert_eq!(of(scenario, "refused"), vec![(20, 0)], "{scenario}");
    }
    for scenario in ["chat-answer-empty-success", "chat-stream-empty-success"] {
        assert_eq!(of(scenario, "no_answer"), vec![(20, 4)], "{scenario}");
    }
    let list = chunks(&gateway.stream(&hello_to("gemini/chat-stream-filtered", true)).await);
    assert_eq!(reasons(&list), ["content_filter"]);
}
