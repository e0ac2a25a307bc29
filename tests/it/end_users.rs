//! Whom requests are for and what they are marked with: what the ledger sums by them, what limits hold for them, and
//! that they are forgotten. Here with SQLite and limits in memory; `postgres::end_users` has PostgreSQL and Redis.

use std::time::Duration;

use mk::api::Service;
use mk::storage::{AuditFilter, KeyFilter, PageRequest};
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with, hello};
use crate::support::log::{Log, on_this_thread};
use crate::support::mk::Mk;
use crate::support::provider::{ModelRequest, Reply};
use crate::support::server::client;

fn says_hi(_: &ModelRequest) -> Reply {
    Reply::Text("Hi".to_owned())
}

fn with(mut body: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn chat(changes: &Value) -> Value {
    with(hello(), changes)
}

async fn post(gateway: &Gateway, path: &str, body: &Value) -> reqwest::Response {
    let request = client().post(format!("{}{path}", gateway.server.base)).bearer_auth(&gateway.key);
    request.json(body).send().await.unwrap()
}

async fn ask(gateway: &Gateway, path: &str, body: &Value) -> (u16, Value) {
    let response = post(gateway, path, body).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

/// The console's answer to a request.
async fn console(gateway: &Gateway, path: &str, body: Option<&Value>) -> (u16, Value) {
    gateway.server.app.flush().unwrap();
    let url = format!("{}/v1/{path}", gateway.server.base);
    let request = match body {
        Some(body) => client().post(url).json(body),
        None => client().get(url),
    };
    let response = request.bearer_auth(gateway.server.key(Service::Console)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Changes the limits that the gateway's key sets for end users.
async fn set_end_users(gateway: &Gateway, limits: &Value) -> (u16, Value) {
    let keys = gateway.server.app.store.keys(&KeyFilter::default()).unwrap();
    let key = keys.iter().find(|key| gateway.key.ends_with(&key.last4)).unwrap();
    let url = format!("{}/v1/apps/{}/keys/{}", gateway.server.base, key.app_id, key.id);
    let request = client().patch(url).json(&json!({"end_users": limits}));
    let response = request.bearer_auth(gateway.server.key(Service::Console)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// The rows of a report, as what they are by and their requests, and the requests in total.
async fn report(gateway: &Gateway, by: &str) -> (Vec<(String, u64)>, u64) {
    let (status, report) = console(gateway, &format!("usage?by={by}"), None).await;
    assert_eq!(status, 200, "{report}");
    let text = |row: &Value| {
        let texts = by.split(',').map(|name| row[name].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>().join(" ")
    };
    let rows = report["data"].as_array().unwrap().iter();
    let mut rows: Vec<_> = rows.map(|row| (text(row), row["requests"].as_u64().unwrap())).collect();
    rows.sort();
    (rows, report["totals"]["requests"].as_u64().unwrap())
}

fn rows(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(text, requests)| ((*text).to_owned(), *requests)).collect()
}

#[tokio::test]
async fn requests_of_every_door_are_summed_by_whom_they_are_for() {
    let gateway = gateway_with(
        "responses = false",
        "",
        |setup| setup,
        |asked| match asked.body.get("input") {
            Some(_) => Reply::status(
                200,
                &json!({
                    "object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1},
                    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                }),
            ),
            None => Reply::Text("Hi".to_owned()),
        },
    )
    .await;
    let metadata = json!({"team": "search", "n": 7});
    let message = json!({"model": "fake/m", "max_tokens": 9, "messages": hello()["messages"]});
    for (path, body) in [
        ("/inference/v1/chat/completions", chat(&json!({"user": "ann", "metadata": metadata}))),
        ("/openai/v1/chat/completions", chat(&json!({"safety_identifier": "bob"}))),
        (
            "/openai/v1/responses",
            json!({"model": "fake/m", "input": "Hi", "user": "ann", "metadata": metadata}),
        ),
        ("/openai/v1/embeddings", json!({"model": "fake/m", "input": "Hi", "user": "ann"})),
        ("/anthropic/v1/messages", with(message, &json!({"metadata": {"user_id": "cleo"}}))),
        ("/inference/v1/chat/completions", hello()),
    ] {
        let (status, answer) = ask(&gateway, path, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    let seen = gateway.provider.requests()[0].body.clone();
    assert_eq!((&seen["user"], &seen["metadata"]), (&json!("ann"), &metadata), "passed on as ever");

    assert_eq!(report(&gateway, "user").await, (rows(&[("", 1), ("ann", 3), ("bob", 1), ("cleo", 1)]), 6));
    assert_eq!(report(&gateway, "tag").await, (rows(&[("team=search", 2)]), 6));
    let by_model = rows(&[(" fake/m", 1), ("ann fake/m", 3), ("bob fake/m", 1), ("cleo fake/m", 1)]);
    assert_eq!(report(&gateway, "user,model").await.0, by_model);
    let (status, refused) = console(&gateway, "usage?by=user,tag", None).await;
    assert_eq!((status, &refused["param"]), (400, &json!("by")));
}

#[tokio::test]
async fn what_is_long_or_harmful_is_known_by_its_hash_and_nothing_is_refused() {
    let gateway = gateway(says_hi).await;
    let long = "x".repeat(200);
    for user in [json!(long), json!("a\u{1b}[31mb"), json!(7), json!({"a": "b"}), json!("")] {
        let (status, answer) =
            ask(&gateway, "/inference/v1/chat/completions", &chat(&json!({"user": user}))).await;
        assert_eq!(status, 200, "{user}: {answer}");
    }
    let message = json!({"model": "fake/m", "max_tokens": 9, "messages": hello()["messages"]});
    let same = with(message, &json!({"metadata": {"user_id": long}}));
    assert_eq!(ask(&gateway, "/anthropic/v1/messages", &same).await.0, 200);
    let (by_user, _) = report(&gateway, "user").await;
    assert_eq!(by_user.iter().map(|(_, requests)| *requests).sum::<u64>(), 6);
    let hashes: Vec<_> = by_user.iter().filter(|(user, _)| user.len() == 64).collect();
    assert_eq!((by_user.len(), hashes.len()), (3, 2), "{by_user:?}");
    let known = mk::storage::kept(&long);
    assert!(hashes.contains(&&(known, 2)), "the same behind every door: {hashes:?}");
    assert_eq!(by_user[0], (String::new(), 3), "who cannot be read is nobody");
}

#[tokio::test]
async fn each_end_user_has_limits_of_their_own_at_every_door() {
    let rest = "[limits.end_users]\nper_minute = 2\nper_day = 3";
    let gateway = gateway_with("", rest, |setup| setup, says_hi).await;
    let of = |user: &str| chat(&json!({"user": user}));
    let path = "/inference/v1/chat/completions";
    for _ in 0..2 {
        assert_eq!(ask(&gateway, path, &of("ann")).await.0, 200);
    }
    let refused = post(&gateway, path, &of("ann")).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "60");
    assert_eq!(
        (&refused.headers()["x-ratelimit-limit"], &refused.headers()["x-ratelimit-remaining"]),
        (&"2".parse().unwrap(), &"0".parse().unwrap())
    );
    let body: Value = refused.json().await.unwrap();
    assert_eq!(
        (&body["code"], &body["message"]),
        (
            &json!("rate_limited_minute"),
            &json!("Too many requests per minute for this end user (`limits.end_users`)")
        )
    );
    // Others, nobody, and another app's.
    assert_eq!(ask(&gateway, path, &of("bob")).await.0, 200);
    assert_eq!(ask(&gateway, path, &hello()).await.0, 200);
    // In the form of each door.
    let response = json!({"model": "fake/m", "input": "Hi", "user": "ann"});
    let (status, body) = ask(&gateway, "/openai/v1/responses", &response).await;
    assert_eq!((status, &body["error"]["code"]), (429, &json!("rate_limited_minute")));
    let message = json!({"model": "fake/m", "max_tokens": 9, "messages": hello()["messages"]});
    let message = with(message, &json!({"metadata": {"user_id": "ann"}}));
    let (status, body) = ask(&gateway, "/anthropic/v1/messages", &message).await;
    assert_eq!((status, &body["error"]["type"]), (429, &json!("rate_limit_error")));

    gateway.server.clock.advance(Duration::from_secs(61));
    assert_eq!(ask(&gateway, path, &of("ann")).await.0, 200, "the third of the day");
    let (status, body) = ask(&gateway, path, &of("ann")).await;
    assert_eq!((status, &body["code"]), (429, &json!("rate_limited_day")));
    assert_eq!(body["message"], "Too many requests per day for this end user (`limits.end_users`)");
    gateway.server.clock.advance(Duration::from_hours(12));
    assert_eq!(ask(&gateway, path, &of("ann")).await.0, 200);
}

#[tokio::test]
async fn each_end_user_has_a_budget_for_the_day_and_the_month() {
    // Twice what a request costs for the day, three times for the month.
    let rest = "[limits.end_users]\nbudget_usd_per_day = 0.000242\nbudget_usd_per_month = 0.000362";
    let gateway = gateway_with("", rest, |setup| setup, says_hi).await;
    let path = "/inference/v1/chat/completions";
    let of = |user: &str| chat(&json!({"user": user, "max_tokens": 1}));
    for _ in 0..2 {
        let (status, body) = ask(&gateway, path, &of("ann")).await;
        assert_eq!(status, 200, "{body}");
    }
    let (status, body) = ask(&gateway, path, &of("ann")).await;
    assert_eq!((status, &body["code"]), (402, &json!("budget_exceeded")));
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("daily budget of this end user ($0.000242)"), "{message}");
    assert!(message.ends_with("it resets on 2026-11-21 (UTC)"), "{message}");
    assert_eq!(ask(&gateway, path, &of("bob")).await.0, 200);
    assert_eq!(ask(&gateway, path, &hello()).await.0, 200, "nobody's is not limited");
    let unpriced = chat(&json!({"user": "bob", "model": "fake/n"}));
    assert_eq!(ask(&gateway, path, &unpriced).await.0, 403, "what costs nobody knows what");

    gateway.server.app.flush().unwrap();
    gateway.server.clock.advance(Duration::from_hours(24));
    assert_eq!(ask(&gateway, path, &of("ann")).await.0, 200);
    let (status, body) = ask(&gateway, path, &of("ann")).await;
    let message = body["message"].as_str().unwrap();
    assert!(status == 402 && message.contains("monthly budget of this end user ($0.000362)"), "{message}");
}

#[tokio::test]
async fn a_key_has_limits_of_its_own_for_each_end_user() {
    let rest = "[limits.end_users]\nper_minute = 1\nbudget_usd_per_day = 0.000242";
    let gateway = gateway_with("", rest, |setup| setup, says_hi).await;
    let path = "/inference/v1/chat/completions";
    let of = |user: &str| chat(&json!({"user": user, "max_tokens": 1}));
    let own = json!({"per_minute": 0, "per_day": 3, "budget_usd_per_day": 1.5, "budget_usd_per_month": null});
    let given = json!({"per_minute": 0, "per_day": 3, "budget_usd_per_day": 1.5});
    let (status, key) = set_end_users(&gateway, &given).await;
    assert_eq!((status, &key["end_users"]), (200, &own), "{key}");
    for _ in 0..3 {
        let (status, body) = ask(&gateway, path, &of("ann")).await;
        assert_eq!(status, 200, "{body}");
    }
    let (status, body) = ask(&gateway, path, &of("ann")).await;
    assert_eq!(status, 429);
    assert_eq!(body["message"], "Too many requests per day for this end user (`end_users` of the key)");
    assert_eq!(ask(&gateway, path, &of("bob")).await.0, 200);

    for (wrong, at) in [
        (json!({"per_minute": -1}), "end_users.per_minute"),
        (json!({"budget_usd_per_day": "1"}), "end_users.budget_usd_per_day"),
        (json!({"per_hour": 1}), "end_users.per_hour"),
        (json!([]), "end_users"),
    ] {
        let (status, body) = set_end_users(&gateway, &wrong).await;
        assert_eq!((status, &body["param"]), (400, &json!(at)), "{body}");
    }

    let (status, key) = set_end_users(&gateway, &json!(null)).await;
    assert_eq!((status, &key["end_users"]), (200, &json!(null)), "{key}");
    gateway.server.clock.advance(Duration::from_secs(61));
    let (status, body) = ask(&gateway, path, &of("ann")).await;
    assert_eq!((status, &body["code"]), (402, &json!("budget_exceeded")), "what was used counts: {body}");
}

#[tokio::test]
async fn a_forgotten_end_user_is_in_no_sum_and_what_they_used_in_all() {
    let rest = "[limits.end_users]\nper_day = 2\nbudget_usd_per_day = 1.0";
    let gateway = gateway_with("", rest, |setup| setup, says_hi).await;
    let path = "/inference/v1/chat/completions";
    let of_ann = chat(&json!({"user": "ann@example.org", "max_tokens": 1, "metadata": {"team": "search"}}));
    for _ in 0..2 {
        assert_eq!(ask(&gateway, path, &of_ann).await.0, 200);
    }
    let (_, before) = console(&gateway, "usage?by=model", None).await;
    let (status, answer) = console(&gateway, "usage/forget", Some(&json!({"user": "ann@example.org"}))).await;
    assert_eq!((status, &answer["forgotten_sums"]), (200, &json!(1)));
    assert_eq!(report(&gateway, "user").await, (rows(&[("", 2)]), 2));
    assert_eq!(report(&gateway, "tag").await.0, rows(&[("team=search", 2)]));
    assert_eq!(console(&gateway, "usage?by=model", None).await.1, before);
    let (status, again) = console(&gateway, "usage/forget", Some(&json!({"user": "ann@example.org"}))).await;
    assert_eq!((status, &again["forgotten_sums"]), (200, &json!(0)));
    let elsewhere = json!({"user": "x", "app_id": format!("app_{}", "0".repeat(32))});
    assert_eq!(console(&gateway, "usage/forget", Some(&elsewhere)).await.0, 404);

    let page = PageRequest { after: String::new(), limit: 9 };
    let entries = gateway.server.app.store.audit(&AuditFilter::default(), &page).unwrap();
    let entry = entries.iter().find(|entry| entry.action == "user.forgotten").unwrap();
    assert_eq!(entry.object, "usage");
    assert!(!format!("{entries:?}").contains("ann@"), "the log of it does not name them");
}

#[tokio::test]
async fn names_reach_neither_logs_nor_metrics() {
    let log = Log::default();
    let _capturing = log.capture("trace");
    let rest = "[limits.end_users]\nper_minute = 1";
    let gateway = gateway_with("", rest, |setup| setup.options(on_this_thread), says_hi).await;
    let path = "/inference/v1/chat/completions";
    let of_ann = chat(&json!({"user": "ann-zebra", "metadata": {"team": "sea-zebra"}}));
    assert_eq!(ask(&gateway, path, &of_ann).await.0, 200);
    assert_eq!(ask(&gateway, path, &of_ann).await.0, 429);
    gateway.server.app.flush().unwrap();
    let metrics = client().get(format!("{}/metrics", gateway.server.base)).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("end_user") && !metrics.contains("zebra"), "{metrics}");
    let log = log.text();
    assert!(log.contains("rate_limited_minute") && !log.contains("zebra"), "{log}");
}

#[tokio::test]
async fn the_command_line_sums_and_forgets_here_and_on_a_server() {
    let gateway = gateway(says_hi).await;
    let path = "/inference/v1/chat/completions";
    for user in ["ann", "bob"] {
        let body = chat(&json!({"user": user, "metadata": {"team": "search"}}));
        assert_eq!(ask(&gateway, path, &body).await.0, 200);
    }
    assert_eq!(ask(&gateway, path, &hello()).await.0, 200);
    gateway.server.app.flush().unwrap();
    let data = gateway.server.dir.path().join("data");
    let here = |arguments: &[&str]| {
        Mk::new().args(arguments.iter().copied()).env("MK_DATA_DIR", data.to_str().unwrap())
    };
    let console = gateway.server.key(Service::Console);
    let there = |arguments: &[&str]| {
        let mk = Mk::new().args(arguments.iter().copied());
        mk.env("MK_SERVER", &gateway.server.base).env("MK_CONSOLE_KEY", &console)
    };
    let days = ["--from", "2026-11-20", "--to", "2026-11-20"];
    let users = [&["usage", "--by", "user"][..], &days].concat();
    let shown = |text: &str| -> Vec<String> {
        let cells = |line: &str| line.split('\t').take(2).collect::<Vec<_>>().join(" ");
        let mut lines: Vec<_> = text.lines().map(cells).collect();
        lines.sort();
        lines
    };
    for ran in [here(&users).run_beside().await, there(&users).run_beside().await] {
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert_eq!(shown(&ran.stdout), [" 1", "ann 1", "bob 1"]);
    }
    let tags = here(&[&["usage", "--by", "tag", "--csv"][..], &days].concat()).run_beside().await;
    assert!(
        tags.stdout.starts_with("tag,requests") && tags.stdout.contains("\r\nteam=search,2,"),
        "{tags:?}"
    );
    let both = here(&["usage", "--by", "user,tag"]).run_beside().await;
    assert!(both.code() == 2 && both.stderr.contains("not by both"), "{both:?}");

    let unasked = here(&["usage", "forget", "ann"]).run_beside().await;
    assert!(unasked.code() == 2 && unasked.stderr.contains("--yes"), "{unasked:?}");
    let forgotten = here(&["usage", "forget", "ann", "--yes", "--json"]).run_beside().await;
    assert_eq!(forgotten.code(), 0, "{forgotten:?}");
    let document = forgotten.json();
    assert_eq!(
        (&document["schema"], &document["forgotten_sums"]),
        (&json!("mk.usage.forgotten/1"), &json!(1))
    );
    let forgotten = there(&["usage", "forget", "bob", "--app", "default", "--yes"]).run_beside().await;
    assert!(forgotten.code() == 0 && forgotten.stderr.contains("forgotten: 1 sum"), "{forgotten:?}");
    let ran = here(&users).run_beside().await;
    assert_eq!(shown(&ran.stdout), [" 3"]);
    let audit = here(&["audit", "--json"]).run_beside().await;
    assert!(audit.stdout.contains("user.forgotten") && !audit.stdout.contains("bob"), "{audit:?}");
}
