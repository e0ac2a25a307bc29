//! Oversized input: what is too large is refused, and what is just small enough is processed in time linear in its
//! size. The timeouts are far more than a busy machine needs, and far less than quadratic time would take.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::chat::{gateway, hello};
use crate::support::panel::{agreeing_panel, with_panel};
use crate::support::provider::Reply;
use crate::support::raw::{exchange, request};

/// A little less than the mebibyte that a body may have.
const NEARLY: usize = (1 << 20) - 1_000;

fn repeated(part: &str) -> String {
    part.repeat(NEARLY / part.len() - 1)
}

/// Bodies of almost the largest size, with as many or as long elements as fit.
fn wide() -> Vec<(&'static str, String)> {
    let listed = |part: &str| repeated(&format!("{part},")).trim_end_matches(',').to_owned();
    let names = (0..60_000).map(|n| format!("\"n{n}\":0,")).collect::<Vec<_>>().concat();
    let message = r#"{"role":"user","content":""}"#;
    vec![
        ("messages", format!(r#"{{"model":"fake/m","messages":[{}]}}"#, listed(message))),
        ("names", format!(r#"{{{names}"model":"fake/m","messages":[{message}]}}"#)),
        ("one name again and again", format!(r#"{{{}"model":"fake/m"}}"#, repeated("\"x\":0,"))),
        ("a long name", format!(r#"{{"{}":0}}"#, repeated("x"))),
        ("a long model", format!(r#"{{"model":"{}","messages":[{message}]}}"#, repeated("m"))),
        (
            "escapes",
            format!(
                r#"{{"model":"fake/m","messages":[{{"role":"user","content":"{}"}}]}}"#,
                repeated("\\u0041")
            ),
        ),
        ("stops", format!(r#"{{"model":"fake/m","messages":[{message}],"stop":[{}]}}"#, listed("\"x\""))),
        (
            "parts",
            format!(
                r#"{{"model":"fake/m","messages":[{{"role":"user","content":[{}]}}]}}"#,
                listed(r#"{"type":"text","text":""}"#)
            ),
        ),
        ("digits", format!(r#"{{"model":"fake/m","max_tokens":{},"messages":[{message}]}}"#, repeated("9"))),
        ("spaces", format!("{{{}}}", repeated(" "))),
        ("depth", format!(r#"{{"model":"fake/m","messages":{}"#, repeated("["))),
        ("objects in objects", format!(r#"{{"model":"fake/m","messages":{}"#, repeated("{\"a\":"))),
        ("quotes", repeated("\"")),
        ("backslashes", format!("{{\"a\":\"{}", repeated("\\"))),
    ]
}

#[tokio::test]
async fn the_widest_bodies_are_processed_in_linear_time() {
    let gateway = gateway(|_| Reply::Text("fine".to_owned())).await;
    let verify = gateway.server.key(Service::Verify);
    for (what, body) in wide() {
        assert!(body.len() <= 1 << 20, "{what}: {}", body.len());
        let chat = gateway.post(body.clone()).send();
        let chat =
            tokio::time::timeout(Duration::from_secs(30), chat).await.unwrap_or_else(|_| panic!("{what}"));
        let status = chat.unwrap().status();
        assert!(status == 200 || status == 400 || status == 404, "{what}: {status}");
        let statement =
            gateway.server.verify(&verify, &json!({})).body(body.replacen("model", "fact", 1)).send();
        let answer = tokio::time::timeout(Duration::from_secs(30), statement)
            .await
            .unwrap_or_else(|_| panic!("{what}"));
        assert_eq!(answer.unwrap().status(), 400, "{what}");
    }
    assert_eq!(gateway.json(&hello()).await.0, 200, "the server still responds");
}

#[tokio::test]
async fn model_output_is_parsed_in_linear_time() {
    let hostile = [
        "{".repeat(400_000),
        "[{\"".repeat(200_000),
        "```json\n".repeat(100_000),
        "\\\"".repeat(300_000),
        "{\"answer\":".repeat(60_000),
        "A) ".repeat(200_000),
    ];
    for text in hostile {
        let shown = text[..8].to_owned();
        let (server, _provider) = with_panel(move |_, _| Reply::Text(text.clone())).await;
        let key = server.key(Service::Verify);
        let run = async {
            let answer =
                server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
            answer.text().await.unwrap()
        };
        let answer =
            tokio::time::timeout(Duration::from_secs(30), run).await.unwrap_or_else(|_| panic!("{shown}"));
        assert!(answer.contains("event: completed") || answer.contains("event: error"), "{shown}: {answer}");
    }
}

#[tokio::test]
async fn heads_over_the_limits_are_refused() {
    let (server, _provider) = agreeing_panel().await;
    let many = (0..100).map(|n| format!("x-{n}: y\r\n")).collect::<Vec<_>>().concat();
    let same = "x-same: y\r\n".repeat(100);
    let path = format!("/{}", "a".repeat(70_000));
    let large = "y".repeat(300_000);
    let cases = [
        (format!("GET / HTTP/1.1\r\nhost: localhost\r\n{many}\r\n").into_bytes(), 431, "headers_too_large"),
        (format!("GET / HTTP/1.1\r\nhost: localhost\r\n{same}\r\n").into_bytes(), 431, "headers_too_large"),
        (request("GET", "/", &[("x-large", &large)], ""), 431, "headers_too_large"),
        (request("GET", "/", &[(&large, "x")], ""), 431, "headers_too_large"),
        (request("GET", &path, &[], ""), 414, "uri_too_long"),
    ];
    for (bytes, status, code) in cases {
        let answer = exchange(server.authority(), &bytes).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer:.300}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["code"], code);
        let limit = if status == 414 { "longer than 65534 bytes" } else { "at most 100, of 64 KiB in all" };
        assert!(body["message"].as_str().unwrap().contains(limit), "{body}");
    }
    let within = "x-same: y\r\n".repeat(98);
    let head =
        format!("GET /verify/v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{within}\r\n");
    assert!(exchange(server.authority(), head.as_bytes()).await.starts_with("HTTP/1.1 200 "));
}
