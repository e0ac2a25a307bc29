//! Connections whose verifications are silent in between: what is sent on them meanwhile, and how they end.

use std::time::Duration;

use mk::api::Service;
use serde_json::json;

use crate::support::panel::with_panel;
use crate::support::raw::{exchange, head, post};

const LAST: &str = "GET /nowhere HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n";

/// The ids of the requests that were answered, in order.
fn answered(given: &str) -> Vec<&str> {
    given.lines().filter_map(|line| line.strip_prefix("x-request-id: ")).collect()
}

#[tokio::test]
async fn all_that_is_sent_at_once_is_answered_in_order() {
    let (server, _provider) = with_panel(|_, ask| ask.choose("Paris").after(Duration::from_millis(20))).await;
    let key = server.key(Service::Verify);
    // The first makes hyper read much at once, of which it takes less at a time behind it.
    let long = format!("The Eiffel Tower is in Paris.{}", " ".repeat(9_000));
    let mut asked = post(&key, &[("x-request-id", "long")], &json!({"fact": long}).to_string());
    let mut ids = vec!["long".to_owned()];
    let (padding, body) = ("p".repeat(3_000), json!({"fact": "The Eiffel Tower is in Paris."}).to_string());
    for number in 0..12 {
        ids.push(format!("short-{number}"));
        asked += &post(&key, &[("x-request-id", &ids[number + 1]), ("x-padding", &padding)], &body);
    }
    ids.push("last".to_owned());
    let given = exchange(server.authority(), (asked + LAST).as_bytes()).await;
    assert_eq!(answered(&given), ids);
    assert_eq!(given.matches("\nevent: completed\n").count(), 13);
}

#[tokio::test]
async fn nothing_follows_a_length_that_came_with_chunks() {
    let (server, _provider) = with_panel(|_, ask| ask.choose("Paris").after(Duration::from_millis(20))).await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "The Eiffel Tower is in Paris."}).to_string();
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = chunks.len().to_string();
    let (length, coding) = (("content-length", length.as_str()), ("transfer-encoding", "chunked"));
    for framing in [[length, coding], [coding, length]] {
        let asked = head(&key, &[("x-request-id", "doubtful"), framing[0], framing[1]]) + &chunks + LAST;
        let given = exchange(server.authority(), asked.as_bytes()).await;
        assert!(given.contains("\r\nconnection: close\r\n"), "{given}");
        assert!(given.contains("\nevent: completed\n") && given.ends_with("\r\n0\r\n\r\n"), "{given}");
        assert_eq!(answered(&given), ["doubtful"]);
    }
}
