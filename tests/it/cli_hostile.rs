//! `mk verify` against broken or malicious servers: a clear error, the right exit code, in time, and never a panic.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk, VERIFY_KEY};
use crate::support::scripted::{COMPLETED, Scripted, Step, answer, stream};

fn call(server: &str, arguments: &[&str]) -> Mk {
    Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .args(arguments.iter().copied())
        .env("MK_SERVER", server)
        .env("MK_API_KEY", VERIFY_KEY)
}

/// Asserts that an error is short and shows no internals.
fn assert_clear_error(ran: &CommandOutput) {
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    assert!(ran.stderr.len() < 2000, "{} bytes: {:.300}", ran.stderr.len(), ran.stderr);
    for word in ["panicked", ".rs:", "RUST_BACKTRACE"] {
        assert!(!ran.stderr.contains(word), "{ran:?}");
    }
}

async fn expect_exit(answer: Vec<u8>, code: i32) -> CommandOutput {
    let server = Scripted::answering(answer).await;
    let ran = call(&server.base, &["--timeout", "20s"]).run_beside().await;
    assert_eq!(ran.code(), code, "{:.1000}", format!("{ran:?}"));
    assert_clear_error(&ran);
    assert_eq!(server.requests().len(), 1, "the request was sent again");
    ran
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_no_event_stream_exits_with_5() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>Welcome</html>";
    expect_exit(html.as_bytes().to_vec(), 5).await;
    expect_exit(answer("200 OK", "", "{}"), 5).await;
    expect_exit(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec(), 5).await;
    expect_exit(b"220 mail.example.org ESMTP\r\n".to_vec(), 5).await;
    let gzip = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03";
    expect_exit(gzip.to_vec(), 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_events_exit_with_5_and_a_short_message() {
    for data in ["{", "[]", "\"x\"", "{\"status\":7}", &"[".repeat(50_000)] {
        expect_exit(stream(&format!("event: starting\ndata: {data}\n\n")), 5).await;
    }
    let long = "x".repeat(100_000);
    expect_exit(
        stream(&format!("event: claim_verified\ndata: {{\"claim_index\":0,\"assessment\":\"{long}\"}}\n\n")),
        5,
    )
    .await;
    let error = json!({"error": long, "message": long, "code": "x", "requestId": "r"});
    expect_exit(stream(&format!("event: error\ndata: {error}\n\n")), 5).await;
    expect_exit(
        answer(
            "500 Internal Server Error",
            "",
            &json!({"error": "x", "message": "x".repeat(50_000)}).to_string(),
        ),
        5,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_frame_exits_with_5() {
    let line = format!("data: {}\n", "x".repeat(8000));
    for frames in [line.repeat(600) + "\n", (line + "\n").repeat(2200)] {
        let ran = expect_exit(stream(&frames), 5).await;
        assert!(ran.stderr.contains("too large"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_content_length_is_tolerated() {
    let lie = |length: usize, body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    expect_exit(lie(1_000_000, "event: starting\ndata: {\"status\":\"starting\"}\n\n"), 8).await;
    expect_exit(lie(20, COMPLETED), 8).await;
    let server = Scripted::answering(lie(1_000_000, COMPLETED)).await;
    let ran = call(&server.base, &[]).run_beside().await;
    assert_eq!(ran.code(), 12, "the terminal event had arrived: {ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed_with_the_key() {
    let other = Scripted::answering(stream(COMPLETED)).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("location: {}/verify/v1/stream\r\n", other.base);
        let ran = expect_exit(answer(status, &location, ""), 5).await;
        assert!(ran.stderr.contains(&other.base), "the error names the target: {ran:?}");
    }
    assert_eq!(other.requests(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_error_body_is_read() {
    let body = json!({"error": "Rate Limit Exceeded", "message": "Too many requests per minute",
        "code": "rate_limited_minute", "request_id": "r"});
    let whole =
        String::from_utf8(answer("429 Too Many Requests", "retry-after: 9\r\n", &body.to_string())).unwrap();
    let (head, rest) = whole.split_once("\r\n\r\n").unwrap();
    let (head, rest) = (format!("{head}\r\n\r\n").into_bytes(), rest.as_bytes().to_vec());
    let server = Scripted::start(move |_| {
        vec![Step::Send(head.clone()), Step::Wait(Duration::from_millis(350)), Step::Send(rest.clone())]
    })
    .await;
    let ran = call(&server.base, &[]).run_beside().await;
    assert_eq!(ran.code(), 7, "{ran:?}");
    assert!(ran.stderr.contains("too many requests per minute; free again in 9 s"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_wait_exceeds_the_timeout() {
    let head = || Step::Send(stream("event: starting\ndata: {\"status\":\"starting\"}\n\n"));
    for end in [
        vec![Step::Hang],
        vec![head(), Step::Hang],
        vec![Step::Send(b"HTTP/1.1 500 Oh\r\n\r\n".to_vec()), Step::Hang],
    ] {
        let shown = format!("{:.100}", format!("{end:?}"));
        let server = Scripted::start(move |_| end.clone()).await;
        let started = Instant::now();
        let ran = call(&server.base, &["--timeout", "700ms"]).run_beside().await;
        assert_eq!(ran.code(), 6, "{shown}: {ran:?}");
        assert_clear_error(&ran);
        assert!(started.elapsed() < Duration::from_secs(6), "{shown}: {:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_s_text_cannot_control_the_terminal() {
    let message = "Too\u{1b}[2J many\u{9b}31m\u{202e}\nerror: forged";
    let refusal = json!({"error": message, "message": message, "code": message, "request_id": message, "param": message});
    let server = Scripted::start(move |n| {
        let headers = if n % 2 == 0 { "retry-after: 1\r\n" } else { "" };
        vec![Step::Send(answer("429 Too Many Requests", headers, &refusal.to_string()))]
    })
    .await;
    let event = json!({"error": message, "message": message, "code": message, "requestId": message});
    let failing = Scripted::answering(stream(&format!("event: error\ndata: {event}\n\n"))).await;
    for (server, code) in [(&server.base, 7), (&failing.base, 5)] {
        for form in [&["-v"][..], &["-v", "--json"], &["--progress", "lines"]] {
            let ran = call(server, &["--max-wait", "1s"]).args(form.iter().copied()).run_beside().await;
            assert_eq!(ran.code(), code, "{ran:?}");
            for output in [&ran.stdout, &ran.stderr] {
                assert!(!output.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{form:?}: {ran:?}");
                assert!(!output.lines().any(|line| line.starts_with("error: forged")), "{form:?}: {ran:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absurd_retry_after_ends_the_command() {
    let server = Scripted::start(|n| {
        let wait = if n == 0 { 1 } else { u64::MAX };
        vec![Step::Send(answer("429 Too Many Requests", &format!("retry-after: {wait}\r\n"), "{}"))]
    })
    .await;
    let ran = call(&server.base, &["--max-wait", "1h"]).run_beside().await;
    assert_eq!(ran.code(), 7, "{ran:?}");
    assert_eq!(server.requests().len(), 2);
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

/// Events with only the fields that the API reference lists: they do not tell whether all of the text was checked.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_only_the_documented_fields_is_understood_and_does_not_pass() {
    let claim = json!({"id": "1", "claim": "Paris is in France.", "assessment": "TRUE", "original_question": "Where is Paris?",
        "original_options": {"A": "France", "B": "Spain"}, "claimed_answer": "A", "consensus_answer": "A",
        "model_answers": [{"model": "one", "answer": "A"}, {"model": "two", "answer": "A"}]});
    let done = json!({"requestId": "r", "original_fact": "x", "results": [claim], "timestamp": "2026-11-20T12:00:00Z",
        "tokenUsage": {"promptTokens": 1, "completionTokens": 1, "totalTokens": 2}});
    let answer = claim["model_answers"].clone();
    let body = format!(
        "event: starting\ndata: {{\"status\":\"starting\"}}\n\n\
         event: extracting_claims\ndata: {{\"status\":\"extracting_claims\"}}\n\n\
         event: claims_extracted\ndata: {{\"claims\":[\"Paris is in France.\"],\"count\":1}}\n\n\
         event: verifying_claims\ndata: {{\"totalClaims\":1}}\n\n\
         event: verifying_claim\ndata: {{\"claimIndex\":0,\"claim\":\"Paris is in France.\"}}\n\n\
         event: claim_verified\ndata: {{\"claimIndex\":0,\"assessment\":\"TRUE\",\"consensus_answer\":\"A\",\"model_answers\":{answer}}}\n\n\
         event: completed\ndata: {done}\n\n"
    );
    let server = Scripted::answering(stream(&body)).await;
    for form in [&[][..], &["--json"], &["--jsonl"], &["--view", "list"]] {
        let ran = call(&server.base, form).run_beside().await;
        assert_eq!(ran.code(), 13, "{form:?}: {ran:?}");
    }
    let plain = call(&server.base, &["-q"]).run_beside().await;
    assert_eq!(plain.stdout, "");
    assert!(plain.stderr.contains("the server does not say how much of the text it checked"), "{plain:?}");
    let trusted = call(&server.base, &["--fail-on", "false,no-consensus"]).run_beside().await;
    assert_eq!((trusted.code(), trusted.stdout.as_str()), (0, "1\tTRUE\tTT\tParis is in France.\n"));
    assert!(trusted.stderr.contains("warning: not all of the text was checked"), "{trusted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_that_its_votes_do_not_give_is_no_verdict() {
    let claim = |assessment: &str, consensus: &str, answers: &[(&str, &str)]| {
        let answers: Vec<Value> =
            answers.iter().map(|(model, answer)| json!({"model": model, "answer": answer})).collect();
        json!({"id": "1", "claim": "Paris is in Spain.", "assessment": assessment, "original_question": "Where is Paris?",
            "original_options": {"A": "Spain", "B": "France", "C": "None of these", "D": "Cannot be determined"},
            "claimed_answer": "A", "consensus_answer": consensus, "model_answers": answers})
    };
    let completed = |claim: &Value, fact: &str| {
        let done = json!({"requestId": "r", "original_fact": fact, "results": [claim], "timestamp": "t", "minRequired": 2,
            "skipped": [], "complete": true, "audited": true, "auditor": "m",
            "coverage": {"sentences": 1, "checked": 1, "skipped": 0, "unchecked": 0},
            "tokenUsage": {"promptTokens": 1, "completionTokens": 1, "totalTokens": 2}});
        format!("event: completed\ndata: {done}\n\n")
    };
    let agreed = claim("TRUE", "A", &[("one", "A"), ("two", "A")]);
    let fine = Scripted::answering(stream(&completed(&agreed, "x"))).await;
    assert_eq!(call(&fine.base, &[]).run_beside().await.code(), 0);
    let early = json!({"claimIndex": 0, "assessment": "TRUE", "consensus_answer": "A", "model_answers": [],
        "result": claim("TRUE", "A", &[])});
    for (body, why) in [
        (completed(&claim("TRUE", "A", &[]), "x"), "calls claim 1 TRUE"),
        (completed(&claim("TRUE", "B", &[("one", "B"), ("two", "B")]), "x"), "calls claim 1 TRUE"),
        (completed(&claim("FALSE", "A", &[("one", "A"), ("two", "A")]), "x"), "calls claim 1 FALSE"),
        (completed(&agreed, "Another text."), "for another text"),
        (format!("event: claim_verified\ndata: {early}\n\n"), "calls claim 1 TRUE"),
    ] {
        let ran = expect_exit(stream(&body), 5).await;
        assert!(ran.stderr.contains(why) && ran.stdout.is_empty(), "{why}: {ran:?}");
    }
}

/// A result with strange parts and the largest possible numbers; its first claim has this verdict.
fn absurd(verdict: &str) -> Value {
    let claim = |verdict: &str, options: Value, claimed: &str, answers: Value| {
        json!({"id": "", "claim": "", "assessment": verdict, "original_question": "", "original_options": options,
            "claimed_answer": claimed, "model_answers": answers, "consensus_answer": "Z",
            "reason_code": "consensus", "model_errors": [{"model": "", "code": "\u{1b}[2J"}]})
    };
    let open = "NO CONSENSUS";
    let agreeing = json!([{"model": "", "answer": "Z"}, {"model": "\u{1b}[2J", "answer": "Z"}]);
    let max = u64::MAX;
    let usage = json!({"model": "m", "promptTokens": max, "completionTokens": max, "totalTokens": max, "cost_usd": 1e308});
    json!({"requestId": "", "original_fact": "x", "timestamp": "", "minRequired": 0, "skipped": [],
        "results": [
            claim(verdict, json!({}), "", json!([])),
            claim(open, json!({"Z": 7, "": null, "A": {"x": []}}), "Q", json!([{"model": "m", "answer": "nowhere"}])),
            claim(open, json!({"A": "\u{202e}x", "B": "y".repeat(5000)}), "A", json!(vec![json!({"model": "m".repeat(500), "answer": "B"}); 40])),
            claim("FALSE", json!({"Z": 7, "A": {"x": []}, "": null}), "A", agreeing),
        ],
        "tokenUsage": {"promptTokens": max, "completionTokens": max, "totalTokens": max, "extractionTokens": max,
            "verificationTokens": max, "modelUsage": [usage, usage]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_results_are_shown_in_every_format_and_contradictory_ones_in_none() {
    let body = |verdict: &str| {
        format!(
            "event: claims_extracted\ndata: {{\"claims\":[\"\",\"\",\"\",\"\"],\"count\":{max}}}\n\nevent: verifying_claim\n\
             data: {{\"claim\":\"\",\"claimIndex\":{max}}}\n\nevent: completed\ndata: {}\n\n",
            absurd(verdict),
            max = u64::MAX,
        )
    };
    let server = Scripted::answering(stream(&body("NO CONSENSUS"))).await;
    let contradictory = Scripted::answering(stream(&body("FALSE"))).await;
    for form in [
        &["--json"][..],
        &["--jsonl"],
        &["--view", "list", "--explain"],
        &["--view", "table"],
        &["-v"],
        &["--progress", "lines"],
    ] {
        let ran = call(&server.base, form).run_beside().await;
        assert_eq!(ran.code(), 10, "{form:?}: {:.2000}", format!("{ran:?}"));
        assert!(!ran.stderr.contains("panicked"), "{form:?}: {ran:?}");
        assert!(!ran.stdout.contains(['\u{1b}', '\u{202e}']), "{form:?}: {ran:?}");
        let refused = call(&contradictory.base, form).run_beside().await;
        assert_eq!(refused.code(), 5, "{form:?}: {:.2000}", format!("{refused:?}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn costly_texts_and_endless_votes_exit_with_5() {
    // Characters without a width fit into any number of cells.
    let zero_width = "\u{301}".repeat(300_000) + &"x".repeat(500);
    let error = json!({"error": "x", "message": zero_width, "code": "x", "requestId": "r"});
    expect_exit(stream(&format!("event: error\ndata: {error}\n\n")), 5).await;

    let answers: Vec<Value> =
        (0..10_000).map(|n| json!({"model": format!("p/{n}"), "answer": "A"})).collect();
    let claim = json!({
        "id": "claim_1", "claim": "x", "assessment": "TRUE", "original_question": "x?",
        "original_options": {"A": "x", "B": "y", "C": "None of these", "D": "Cannot be determined"},
        "claimed_answer": "A", "model_answers": answers, "consensus_answer": "A",
    });
    let completed = json!({
        "requestId": "ver_1", "original_fact": "x", "results": [claim], "timestamp": "t",
        "tokenUsage": {"promptTokens": 0, "completionTokens": 0, "totalTokens": 0}, "minRequired": 2,
    });
    let verifying = json!({"totalClaims": 1, "models": vec!["p/a"; 10_000]});
    for frame in [
        format!("event: completed\ndata: {completed}\n\n"),
        format!("event: verifying_claims\ndata: {verifying}\n\n"),
    ] {
        let ran = expect_exit(stream(&frame), 5).await;
        assert!(ran.stderr.contains("too many models, answers or options"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_many_requests_has_a_time_limit_over_all_of_them() {
    let app = |number: usize| {
        json!({"id": format!("app_{number:032x}"), "name": number.to_string(), "budget_usd": null,
            "spent_usd": 0.0, "created_at": "2026-11-20T12:00:00.000Z", "active_keys": 0})
    };
    let apps = json!({"data": (0..200).map(app).collect::<Vec<_>>(), "next_cursor": null}).to_string();
    let server = Scripted::start(move |number| match number {
        0 => vec![Step::Send(answer("200 OK", "", &apps))],
        _ => vec![
            Step::Wait(Duration::from_millis(900)),
            Step::Send(answer("200 OK", "", r#"{"data": [], "next_cursor": null}"#)),
        ],
    })
    .await;
    let begun = Instant::now();
    let key = mk::keys::mint(mk::api::Service::Console).unwrap().key;
    let ran = Mk::new()
        .args(["usage", "--key", "website", "--server", &server.base])
        .env("MK_TIMEOUT", "2s")
        .env("MK_API_KEY", mk::secret::ExposeSecret::expose_secret(&key))
        .run_beside()
        .await;
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert_clear_error(&ran);
    // Each app alone would be in time.
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    assert!(server.requests().len() < 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_becomes_a_frame_exits_with_5_long_before_the_timeout() {
    let head = || Step::Send(stream("event: starting\ndata: {\"status\":\"starting\"}\n\n"));
    for flood in [vec![b'x'; 65_536], b": keep-alive\n\n".repeat(1000), b"data: x\n".repeat(1000)] {
        let shown = format!("{:.40}", String::from_utf8_lossy(&flood));
        let server = Scripted::start(move |_| vec![head(), Step::Flood(flood.clone())]).await;
        let started = Instant::now();
        let ran = call(&server.base, &["--timeout", "10m"]).run_beside().await;
        assert_eq!(ran.code(), 5, "{shown}: {ran:?}");
        assert_clear_error(&ran);
        assert!(ran.stderr.contains("too large"), "{shown}: {ran:?}");
        assert!(started.elapsed() < Duration::from_mins(1), "{shown}: {:?}", started.elapsed());
    }
}
