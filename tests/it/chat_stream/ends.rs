//! How a streamed completion ends: as complete once all of the answer has arrived, whatever a provider does then, and
//! otherwise with an error.

use std::time::{Duration, Instant};

use mk::api::Service;
use serde_json::{Value, json};

use super::{delta, line, with_usage};
use crate::support::chat::{chunks, gateway, gateway_with, hello_stream, text_of};
use crate::support::provider::{
    ModelRequest, Reply, StreamStep, chunk, done, finish_chunk, role_chunk, text_chunk, usage_chunk,
};
use crate::support::{PROMPT, eventually, recorded};

fn fault(error: &str) -> String {
    let choices = r#""choices":[{"index":0,"delta":{},"finish_reason":"error"}]"#;
    line(&format!("{choices},\"error\":{error}")) + "data: [DONE]\n\n"
}

#[tokio::test]
async fn the_error_is_reported_for_an_unfinished_choice() {
    let gateway = gateway(|_| {
        Reply::Stream(vec![
            chunk(&json!([{"index": 0, "delta": {"role": "assistant", "content": "a"}}])),
            chunk(&json!([{"index": 1, "delta": {"role": "assistant", "content": "b"}}])),
            finish_chunk("stop"),
            StreamStep::APART,
            StreamStep::Cut,
        ])
    })
    .await;
    let mut body = hello_stream();
    body["n"] = json!(2);
    let raw = gateway.stream(&body).await;
    assert_eq!(raw.matches(r#"[{"index":1,"delta":{},"finish_reason":"error"}]"#).count(), 1, "{raw}");
}

#[tokio::test]
async fn a_finish_reason_ends_the_stream_whatever_follows() {
    for end in [
        StreamStep::Stall,
        StreamStep::Cut,
        StreamStep::Send("data: {\"error\":{\"message\":\"late\"}}\n\n".into()),
    ] {
        let gateway = gateway(move |_| {
            let pause = StreamStep::APART;
            Reply::Stream(vec![role_chunk(), text_chunk("a"), finish_chunk("stop"), pause, end.clone()])
        })
        .await;
        let began = Instant::now();
        assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "a");
        assert!(began.elapsed() < Duration::from_secs(15));
        assert_eq!(gateway.booked()[0].1, "ok");
        drop(gateway);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_that_is_cut_at_its_limit_ends_although_its_provider_does_not() {
    let whole = chunk(
        &json!([{"index": 0, "delta": {"role": "assistant", "content": "The"}, "finish_reason": "length"}]),
    );
    let gateway = gateway(move |_| Reply::Stream(vec![whole.clone(), StreamStep::Stall])).await;
    let began = Instant::now();
    assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "The");
    assert!(began.elapsed() < Duration::from_secs(15));
    assert_eq!(gateway.booked()[0].1, "ok");
}

/// A chunk of an answer whose every chunk has a finish reason.
fn early_end(text: &str) -> StreamStep {
    chunk(&json!([{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]))
}

#[tokio::test]
async fn content_after_a_finish_reason_belongs_to_the_answer() {
    // Longer than the end of an answer is waited for.
    let pause = StreamStep::Pause(Duration::from_millis(2500));
    let every =
        vec![early_end("The answer"), pause.clone(), early_end(" is forty"), early_end("-two."), done()];
    let mixed = vec![
        role_chunk(),
        text_chunk("The answer"),
        finish_chunk("stop"),
        text_chunk(" is forty"),
        pause,
        text_chunk("-two."),
        done(),
    ];
    let reasoning =
        || chunk(&json!([{"index": 0, "delta": {"role": "assistant", "reasoning_content": "So, 42."}}]));
    let reasoned = [vec![reasoning()], every.clone()].concat();
    for steps in [every, mixed, reasoned] {
        let gateway = gateway(move |_| Reply::Stream(steps.clone())).await;
        let list = chunks(&gateway.stream(&hello_stream()).await);
        assert_eq!(text_of(&list, 0), "The answer is forty-two.");
        let finishes = list.iter().filter(|chunk| chunk["choices"][0]["finish_reason"] == "stop").count();
        assert_eq!((finishes, gateway.booked()[0].1.as_str()), (1, "ok"));
    }
}

#[tokio::test]
async fn a_stream_that_went_on_after_a_finish_reason_is_broken_if_it_is_cut() {
    let hole =
        StreamStep::Send("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" is\"},\"fin\n\n".into());
    let cut = [StreamStep::APART, StreamStep::Cut];
    let plain = || vec![role_chunk(), text_chunk("The answer"), finish_chunk("stop")];
    for (mut steps, end, outcome) in [
        (vec![early_end("The answer")], &cut[..], "cut"),
        (vec![early_end("The answer"), early_end(" is")], &cut[..], "cut"),
        (plain(), &[text_chunk(" is"), StreamStep::APART, StreamStep::Cut][..], "cut"),
        (plain(), &[StreamStep::APART, hole, done()][..], "malformed"),
    ] {
        steps.extend_from_slice(end);
        let gateway = gateway(move |_| Reply::Stream(steps.clone())).await;
        let raw = gateway.stream(&hello_stream()).await;
        assert!(raw.contains("\"finish_reason\":\"error\"") && !raw.contains("\"stop\""), "{raw}");
        assert_eq!(gateway.booked()[0].1, outcome, "{raw}");
    }
}

#[tokio::test]
async fn an_answer_in_one_event_is_complete_once_the_format_has_no_more_of_it() {
    let message = json!({"role": "assistant", "content": "The answer"});
    let whole = chunk(&json!([{"index": 0, "message": message, "finish_reason": "stop"}]));
    let with_usage = vec![early_end("The answer"), StreamStep::APART, usage_chunk()];
    let gone_on = vec![early_end("The"), StreamStep::APART, early_end(" answer"), usage_chunk()];
    for steps in [with_usage, gone_on, vec![whole]] {
        for end in [StreamStep::Stall, StreamStep::Cut] {
            let mut steps = steps.clone();
            steps.extend([StreamStep::APART, end]);
            let gateway = gateway(move |_| Reply::Stream(steps.clone())).await;
            let began = Instant::now();
            let list = chunks(&gateway.stream(&hello_stream()).await);
            assert_eq!(text_of(&list, 0), "The answer");
            assert_eq!(list.last().unwrap()["choices"][0]["finish_reason"], "stop");
            assert!(began.elapsed() < Duration::from_secs(15));
            assert_eq!(gateway.booked()[0].1, "ok");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_of_anthropic_is_complete_with_its_stop_reason() {
    let empty = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":7}}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n";
    let steps = vec![StreamStep::Send(empty.to_owned()), StreamStep::APART, StreamStep::Cut];
    let gateway = recorded::gateway(move |_| Reply::Stream(steps.clone())).await;
    let list = chunks(&gateway.stream(&recorded::hello_to("claude/m", true)).await);
    assert_eq!(list[list.len() - 2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(gateway.booked(), [("claude/m".to_owned(), "ok".to_owned(), 7, 3)]);
}

#[tokio::test]
async fn silence_does_not_complete_an_answer_whose_finish_reason_came_with_its_first_piece() {
    let stalling = |_: &ModelRequest| Reply::Stream(vec![early_end("The answer"), StreamStep::Stall]);
    let gateway = gateway_with("idle_timeout = \"1s\"", "", |setup| setup, stalling).await;
    let raw = gateway.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"provider_timeout\"") && !raw.contains("\"stop\""), "{raw}");
    assert_eq!(gateway.booked()[0].1, "timeout");
}

#[tokio::test]
async fn late_usage_chunks_are_waited_for() {
    let gateway = gateway(|_| {
        let late = StreamStep::Pause(Duration::from_millis(700));
        Reply::Stream(vec![role_chunk(), text_chunk("a"), finish_chunk("stop"), late, usage_chunk(), done()])
    })
    .await;
    let list = chunks(&gateway.stream(&with_usage()).await);
    assert_eq!(list.last().unwrap()["usage"]["total_tokens"], 10);
    assert_eq!((gateway.booked()[0].2, gateway.booked()[0].3), (7, 3));
}

#[tokio::test]
async fn an_error_belongs_to_an_open_choice_even_if_unrequested() {
    let of_choice = |index: u32, rest: Value| {
        let mut choice = json!({"index": index, "delta": {"role": "assistant", "content": "a"}});
        choice.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        chunk(&json!([choice]))
    };
    // The request did not ask for a second choice.
    let gateway = gateway(move |_| {
        let ended = of_choice(0, json!({"finish_reason": "stop"}));
        Reply::Stream(vec![of_choice(1, json!({})), ended, StreamStep::APART, StreamStep::Cut])
    })
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert!(raw.contains(r#"[{"index":1,"delta":{},"finish_reason":"error"}]"#), "{raw}");
}

#[tokio::test]
async fn a_broken_stream_ends_with_an_error() {
    let cut = r#"{"message":"the connection to the provider fake broke during the answer; try again in a moment","type":"Bad Gateway","code":"provider_error"}"#;
    let overloaded = r#"{"message":"the provider fake is overloaded; try again later","type":"Service Unavailable","code":"provider_overloaded"}"#;
    let error = StreamStep::Send("data: {\"error\":{\"message\":\"secret\",\"code\":503}}\n\n".into());
    let starved = finish_chunk("insufficient_system_resource");
    let unreadable = r#"{"message":"the provider fake sent an unreadable answer; try again in a moment","type":"Bad Gateway","code":"provider_invalid_response"}"#;
    // What follows the gap would look like a complete answer.
    let hole = StreamStep::Send(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" not\"},\"fin\n\n".into(),
    );
    let holed = vec![hole, text_chunk(" take it"), finish_chunk("stop"), done()];
    for (ends, error, outcome) in [
        (holed, unreadable, "malformed"),
        (vec![], cut, "cut"),
        (vec![done()], cut, "cut"),
        (vec![StreamStep::Cut], cut, "cut"),
        (vec![error, done()], overloaded, "overloaded"),
        (vec![starved, done()], overloaded, "overloaded"),
    ] {
        let gateway = gateway(move |_| {
            let mut beats = vec![role_chunk(), text_chunk("Hello"), StreamStep::APART];
            beats.extend(ends.clone());
            Reply::Stream(beats)
        })
        .await;
        let raw = gateway.stream(&hello_stream()).await;
        let role = delta(r#"{"role":"assistant","content":""}"#, "null");
        let expected = role + &delta(r#"{"content":"Hello"}"#, "null") + &fault(error);
        assert_eq!(raw, expected);
        assert_eq!(gateway.booked(), [("fake/m".to_owned(), outcome.to_owned(), 6, 2)]);
    }
}

#[tokio::test]
async fn an_endless_line_ends_the_stream_within_bounded_memory() {
    let gateway = gateway(|_| {
        let endless = StreamStep::Repeat("x".repeat(64 * 1024), 1000);
        Reply::Stream(vec![role_chunk(), StreamStep::APART, StreamStep::Send("data: ".into()), endless])
    })
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"provider_invalid_response\"") && raw.ends_with("data: [DONE]\n\n"));
    assert!(gateway.provider.streamed() < 40 * 1024 * 1024, "{}", gateway.provider.streamed());
}

#[tokio::test]
async fn keep_alives_do_not_postpone_the_idle_timeout() {
    let gateway = gateway_with(
        "idle_timeout = \"2s\"",
        "",
        |setup| setup.options(|options| options.keep_alive = Duration::from_millis(100)),
        |_| Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall]),
    )
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    // Our own comments do not reset the provider's idle timeout.
    assert!(raw.matches(": keep-alive\n\n").count() >= 2, "{raw}");
    assert!(raw.contains("\"code\":\"provider_timeout\""), "{raw}");
    assert_eq!(gateway.booked()[0].1, "timeout");
}

#[tokio::test]
async fn an_endless_stream_ends_at_the_total_timeout() {
    let gateway = gateway_with(
        "total_timeout = \"2s\"",
        "",
        |setup| setup,
        |_| {
            let mut beats = vec![role_chunk()];
            for _ in 0..200 {
                beats.extend([text_chunk("a"), StreamStep::Pause(Duration::from_millis(20))]);
            }
            Reply::Stream(beats)
        },
    )
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"provider_timeout\"") && raw.matches("\"a\"").count() < 150, "{raw}");
}

#[tokio::test]
async fn a_revocation_ends_a_stream() {
    let gateway = gateway(|_| Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall])).await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});
    let response = gateway.post_as(&key, hello_stream().to_string()).send().await.unwrap();
    let now = gateway.server.clock.now();
    gateway.server.app.store.revoke_key(&id, now).unwrap();
    let began = Instant::now();
    let raw = response.text().await.unwrap();
    assert!(began.elapsed() < PROMPT);
    let error = r#"{"message":"API key has been revoked","type":"Unauthorized","code":"api_key_revoked"}"#;
    assert!(raw.ends_with(&fault(error)), "{raw}");
    eventually("the provider call is cancelled", || gateway.provider.in_flight() == 0).await;
    eventually("the attempt is booked", || !gateway.rows().is_empty()).await;
    assert_eq!(gateway.booked()[0].1, "cancelled");
}

#[tokio::test]
async fn a_shutdown_ends_and_books_streams() {
    let mut gateway = gateway_with(
        "",
        "",
        |setup| setup.options(|options| options.drain = Duration::from_millis(200)),
        |_| Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall]),
    )
    .await;
    let response = gateway.ask(&hello_stream()).await;
    gateway.server.begin_shutdown();
    let raw = response.text().await.unwrap();
    assert!(raw.contains(r#""code":"shutting_down""#) && raw.ends_with("data: [DONE]\n\n"), "{raw}");
    let dir = gateway.server.dir.clone();
    gateway.server.shutdown().await;
    let store = mk::storage::Store::open(&dir.path().join("data"), crate::support::server::NOON).unwrap();
    assert_eq!(store.attempts_of("req-1").unwrap().len(), 1);
}
