//! Connections that are parked while their verification waits for models: requests sent on them meanwhile, and how they
//! end.

use std::time::Duration;

use mk::api::Service;
use serde_json::json;

use crate::support::panel::with_panel;
use crate::support::raw::{exchange, head, post};

const LAST: &str = "GET /nowhere HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n";

/// The ids of the requests that got a response, in order.
fn answered(received: &str) -> Vec<&str> {
    received.lines().filter_map(|line| line.strip_prefix("x-request-id: ")).collect()
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (server, _provider) = with_panel(|_, ask| ask.choose("Paris").after(Duration::from_millis(20))).await;
    let key = server.key(Service::Verify);
    // The first request makes hyper's read buffer grow, so that it then reads several of the later ones at once.
    let long = format!("The Eiffel Tower is in Paris.{}", " ".repeat(9_000));
    let mut sent = post(&key, &[("x-request-id", "long")], &json!({"fact": long}).to_string());
    let mut ids = vec!["long".to_owned()];
    let (padding, body) = ("p".repeat(3_000), json!({"fact": "The Eiffel Tower is in Paris."}).to_string());
    for number in 0..12 {
        ids.push(format!("short-{number}"));
        sent += &post(&key, &[("x-request-id", &ids[number + 1]), ("x-padding", &padding)], &body);
    }
    ids.push("last".to_owned());
    let received = exchange(server.authority(), (sent + LAST).as_bytes()).await;
    assert_eq!(answered(&received), ids);
    assert_eq!(received.matches("\nevent: completed\n").count(), 13);
}

#[tokio::test]
async fn a_request_with_both_a_length_and_chunks_ends_its_connection() {
    let (server, _provider) = with_panel(|_, ask| ask.choose("Paris").after(Duration::from_millis(20))).await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "The Eiffel Tower is in Paris."}).to_string();
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = chunks.len().to_string();
    let (length, coding) = (("content-length", length.as_str()), ("transfer-encoding", "chunked"));
    for framing in [[length, coding], [coding, length]] {
        let sent = head(&key, &[("x-request-id", "doubtful"), framing[0], framing[1]]) + &chunks + LAST;
        let received = exchange(server.authority(), sent.as_bytes()).await;
        assert!(received.contains("\r\nconnection: close\r\n"), "{received}");
        assert!(
            received.contains("\nevent: completed\n") && received.ends_with("\r\n0\r\n\r\n"),
            "{received}"
        );
        assert_eq!(answered(&received), ["doubtful"]);
    }
}
