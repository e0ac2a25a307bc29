//! Short-lived keys: each is created, used, and revoked while it is in use; then it must be refused.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::exchange::{Answer, exchange};
use super::requests::{self, CHAT, VERIFY};
use super::{Place, TIMEOUT};
use crate::dice::Dice;

/// The longest that a stream may run until its key is revoked.
const BEFORE_REVOCATION: Duration = Duration::from_millis(300);

/// The life of one key.
pub(super) async fn churn(place: &Place, dice: &mut Dice) {
    let is_verify = dice.chance(500);
    let service = if is_verify { "verify" } else { "inference" };
    let Some(app) = console(place, Method::GET, "/v1/apps", &Value::Null, 200).await else { return };
    let keys = format!("/v1/apps/{}/keys", app["data"][0]["id"].as_str().unwrap_or_default());
    let Some(made) = console(place, Method::POST, &keys, &json!({"service": service}), 201).await else {
        return;
    };
    let (key, id) = (text(&made["key"]), text(&made["id"]));

    let use_it = async |token: u64, dice: &mut Dice| {
        let (path, body) = if is_verify {
            (VERIFY, requests::fact(token))
        } else {
            (CHAT, requests::hello(token, true, dice))
        };
        let request = place.request(Method::POST, path).bearer_auth(&key).json(&body);
        exchange(place, token, request, TIMEOUT).await
    };
    let token = place.book.open();
    place.book.revoke(token);
    let revoke = async |wait: Duration| {
        tokio::time::sleep(wait).await;
        let key = format!("{keys}/{id}");
        console(place, Method::DELETE, &key, &Value::Null, 200).await
    };
    let wait = dice.span(BEFORE_REVOCATION);
    let (used, _) = tokio::join!(use_it(token, dice), revoke(wait));
    if used.is_none() {
        place.book.report_wrong(token, "a stream whose key was revoked has no end", || service.to_owned());
    }

    let token = place.book.open();
    match use_it(token, dice).await {
        Some(Answer { status: 401, .. }) => {}
        other => place.book.report_wrong(token, "a revoked key was not refused", || format!("{other:?}")),
    }
}

/// Sends a console request; returns the response if it has the expected status.
async fn console(place: &Place, method: Method, path: &str, body: &Value, status: u16) -> Option<Value> {
    let token = place.book.open();
    let mut request = place.request(method, path).bearer_auth(&place.keys.console);
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = exchange(place, token, request, TIMEOUT).await;
    match answer {
        Some(answer) if answer.status == status => serde_json::from_str(&answer.body).ok(),
        other => {
            place
                .book
                .report_wrong(token, "the console did not do what it was asked", || format!("{other:?}"));
            None
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
