//! Streams that break after the caller received a part, and are resumed if another answer begins with the same text.

use serde_json::{Value, json};

use crate::support::breaks::{
    CUT, FALLBACK, broken, ended_broken, gateway_retrying, outcomes, row, unbroken,
};
use crate::support::chat::{chunks, gateway_with, hello_stream};
use crate::support::eventually;
use crate::support::provider::{
    FakeProvider, Reply, StreamStep, chunk, finish_chunk, role_chunk, stream, text_chunk,
};

fn with_usage() -> Value {
    let mut body = hello_stream();
    body["stream_options"] = json!({"include_usage": true});
    body
}

#[tokio::test]
async fn a_broken_stream_is_resumed_invisibly_by_the_same_model() {
    let gateway = gateway_retrying(1, "", |call, _| match call {
        0 => broken(&["Hel", "lo, wö"], vec![StreamStep::Cut]),
        _ => stream(&["Hello", ", wörld 😀", "!"]),
    })
    .await;
    let raw = gateway.stream(&with_usage()).await;
    assert_eq!(unbroken(&raw), "Hello, wörld 😀!");
    let list = chunks(&raw);
    assert_eq!((&list[0]["id"], &list[0]["model"]), (&json!("chatcmpl-first"), &json!("fake/m")));
    // The reported usage is that of the complete answer; the broken one is booked separately.
    assert_eq!(list.last().unwrap()["usage"]["completion_tokens"], 3);
    let asks = gateway.provider.requests();
    assert_eq!((asks.len(), &asks[0].raw), (2, &asks[1].raw));
    let booked =
        |outcome: &str, prompt, completion| ("fake/m".to_owned(), outcome.to_owned(), prompt, completion);
    assert_eq!(gateway.booked(), [booked("cut", 6, 3), booked("ok", 7, 3)]);
}

#[tokio::test]
async fn a_stream_is_resumed_after_every_kind_of_break() {
    let overloaded = StreamStep::Send("data: {\"error\":{\"message\":\"no\",\"code\":503}}\n\n".into());
    // A chunk that ends after the first byte of a two-byte character.
    let StreamStep::Send(half) = text_chunk("wörld") else { unreachable!() };
    let half = half.as_bytes()[..=half.find('ö').unwrap()].to_vec();
    for (end, outcome) in [
        (vec![], "cut"),
        (vec![StreamStep::Cut], "cut"),
        (vec![overloaded], "overloaded"),
        (vec![StreamStep::Bytes(half.clone()), StreamStep::Cut], "cut"),
        (vec![StreamStep::Bytes(half)], "malformed"),
        (vec![finish_chunk("abort")], "cut"),
    ] {
        let gateway = gateway_retrying(1, FALLBACK, move |call, _| match call {
            0 => broken(&["Hello "], end.clone()),
            _ => stream(&["Hello wörld"]),
        })
        .await;
        assert_eq!(unbroken(&gateway.stream(&hello_stream()).await), "Hello wörld", "{outcome}");
        // Only transient failures are retried with the same model.
        let next = if outcome == "malformed" { "fake/second" } else { "fake/m" };
        assert_eq!(outcomes(&gateway), [row("fake/m", outcome), row(next, "ok")]);
    }
}

#[tokio::test]
async fn a_stream_that_goes_silent_is_resumed_by_a_fallback() {
    let gateway = gateway_with(
        "idle_timeout = \"1s\"",
        FALLBACK,
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 2),
        |ask| match ask.model.as_str() {
            "m" => broken(&["Hello"], vec![StreamStep::Stall]),
            _ => stream(&["Hello!"]),
        },
    )
    .await;
    assert_eq!(unbroken(&gateway.stream(&hello_stream()).await), "Hello!");
    assert_eq!(outcomes(&gateway), [row("fake/m", "timeout"), row("fake/second", "ok")]);
}

#[tokio::test]
async fn a_fallback_in_another_format_resumes_under_the_original_id_and_model() {
    let event = |body: Value| {
        StreamStep::Send(format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap()))
    };
    let says = move |text: &str| {
        event(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        )
    };
    let other = FakeProvider::start(move |ask| {
        assert!(ask.body["stream"] == true && ask.raw.contains("Hello"), "{}", ask.raw);
        let usage = json!({"input_tokens": 11, "output_tokens": 1});
        let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
        let block = json!({"type": "text", "text": ""});
        Reply::Stream(vec![
            event(json!({"type": "message_start", "message": message})),
            event(json!({"type": "content_block_start", "index": 0, "content_block": block})),
            says("He"),
            says("llo there"),
            says("."),
            event(json!({"type": "content_block_stop", "index": 0})),
            event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}})),
            event(json!({"type": "message_stop"})),
        ])
    })
    .await;
    let rest = format!(
        "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{}\"\n[inference.fallbacks]\n\"fake/m\" = [\"claude/c\"]\n",
        other.base_url
    );
    let gateway = gateway_retrying(0, &rest, |_, _| broken(&["Hel", "lo"], vec![StreamStep::Cut])).await;
    let raw = gateway.stream(&with_usage()).await;
    assert_eq!(unbroken(&raw), "Hello there.");
    let list = chunks(&raw);
    assert_eq!((&list[1]["id"], &list[1]["model"]), (&json!("chatcmpl-first"), &json!("fake/m")));
    let usage = &list.last().unwrap()["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(11), &json!(5)));
    assert_eq!(outcomes(&gateway), [row("fake/m", "cut"), row("claude/c", "ok")]);
}

#[tokio::test]
async fn a_second_answer_that_differs_or_is_shorter_ends_the_stream() {
    for (words, ends) in [(vec!["Hel", "p!"], false), (vec!["Hell"], true), (vec![], true)] {
        let gateway = gateway_retrying(2, FALLBACK, move |call, _| {
            if call == 0 {
                return broken(&["Hello"], vec![StreamStep::Cut]);
            }
            let mut beats = vec![role_chunk()];
            beats.extend(words.iter().map(|word| text_chunk(word)));
            beats.push(if ends { finish_chunk("stop") } else { StreamStep::Stall });
            Reply::Stream(beats)
        })
        .await;
        let raw = gateway.stream(&hello_stream()).await;
        assert_eq!(ended_broken(&raw, CUT), "Hello");
        // After a mismatch there is no further retry and no fallback.
        assert_eq!(gateway.provider.requests().len(), 2);
        eventually("the second call is stopped", || gateway.provider.in_flight() == 0).await;
        eventually("both attempts are booked", || gateway.rows().len() == 2).await;
        assert_eq!(outcomes(&gateway)[0], row("fake/m", "cut"));
    }
}

#[tokio::test]
async fn repeated_breaks_are_resumed_until_no_model_is_left() {
    // Two retries of the model, then its fallback with two retries as well.
    let gateway = gateway_retrying(2, FALLBACK, |call, _| {
        broken(&["abcdef"[..=call.min(5)].as_ref()], vec![StreamStep::Cut])
    })
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert_eq!(ended_broken(&raw, CUT), "abcdef");
    assert_eq!(outcomes(&gateway)[..3], [row("fake/m", "cut"), row("fake/m", "cut"), row("fake/m", "cut")]);
    assert_eq!(
        outcomes(&gateway)[3..],
        [row("fake/second", "cut"), row("fake/second", "cut"), row("fake/second", "cut")]
    );
}

#[tokio::test]
async fn a_break_before_the_second_answer_catches_up_counts_as_an_attempt() {
    let gateway = gateway_retrying(1, FALLBACK, |call, _| match call {
        0 => broken(&["Hello"], vec![StreamStep::Cut]),
        1 => broken(&["Hel"], vec![StreamStep::Cut]),
        2 => Reply::status(500, &json!({})),
        _ => stream(&["Hello!"]),
    })
    .await;
    assert_eq!(unbroken(&gateway.stream(&hello_stream()).await), "Hello!");
    let expected = [
        row("fake/m", "cut"),
        row("fake/m", "cut"),
        row("fake/second", "provider_error"),
        row("fake/second", "ok"),
    ];
    assert_eq!(outcomes(&gateway), expected);
}

#[tokio::test]
async fn only_single_choice_text_streams_are_resumed() {
    let delta = |delta: Value| chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let call =
        json!({"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}});
    let logprobs =
        json!([{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": []}, "finish_reason": null}]);
    for said in [
        delta(json!({"tool_calls": [call]})),
        delta(json!({"reasoning_content": "Hm."})),
        delta(json!({"refusal": "I"})),
        delta(json!({"audio": {"data": "AAAA"}})),
        chunk(&logprobs),
    ] {
        let gateway = gateway_retrying(2, FALLBACK, move |_, _| {
            let pause = StreamStep::APART;
            Reply::Stream(vec![role_chunk(), said.clone(), pause, StreamStep::Cut])
        })
        .await;
        ended_broken(&gateway.stream(&hello_stream()).await, CUT);
        assert_eq!(gateway.provider.requests().len(), 1);
    }
    let several = gateway_retrying(2, FALLBACK, |_, _| broken(&["Hello"], vec![StreamStep::Cut])).await;
    let mut body = hello_stream();
    body["n"] = json!(2);
    ended_broken(&several.stream(&body).await, CUT);
    assert_eq!(several.provider.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_with_more_text_than_is_buffered_is_not_resumed() {
    let text = "x".repeat(64 * 1024);
    let StreamStep::Send(line) = text_chunk(&text) else { unreachable!() };
    let gateway = gateway_retrying(2, FALLBACK, move |_, _| {
        let pause = StreamStep::APART;
        Reply::Stream(vec![role_chunk(), StreamStep::Repeat(line.clone(), 17), pause, StreamStep::Cut])
    })
    .await;
    ended_broken(&gateway.stream(&hello_stream()).await, CUT);
    assert_eq!(gateway.provider.requests().len(), 1);
}
