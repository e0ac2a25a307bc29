//! Guessing and enumeration: what responses reveal about ids and keys, and that filters treat their values as text.

use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::console::{Console, server, text};
use crate::support::panel::agreeing_panel;
use crate::support::raw::{exchange, post};

/// A response without the parts that always differ: its id, its date and the remaining limits.
fn comparable(answer: &str) -> Vec<String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["request_id"] = json!("");
    let differs = ["date: ", "x-request-id: ", "x-ratelimit-", "ratelimit: "];
    let lines = head.lines().filter(|line| !differs.iter().any(|name| line.starts_with(name)));
    lines.map(str::to_owned).chain([body.to_string()]).collect()
}

#[tokio::test]
async fn malformed_and_unknown_keys_get_the_same_response() {
    let (server, _provider) = agreeing_panel().await;
    let (good, id) = server.key_with(Service::Verify, |_| {});
    let unknown = mk::keys::mint(Service::Verify).unwrap();
    let unknown = mk::secret::ExposeSecret::expose_secret(&unknown.key).to_owned();
    let mut answers = Vec::new();
    for key in
        ["x", "mk_verify_", &good[..good.len() - 1], &format!("{good}x"), &good.to_uppercase(), &unknown, &id]
    {
        let request = post(key, &[("connection", "close")], "{}");
        answers.push(comparable(&exchange(server.authority(), request.as_bytes()).await));
    }
    assert!(answers[0][0].starts_with("HTTP/1.1 401 "), "{:?}", answers[0]);
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
}

#[tokio::test]
async fn ids_of_another_app_and_invented_ids_get_the_same_response() {
    let (_server, console) = server().await;
    let (mine, other) = (console.app("mine").await, console.app("other").await);
    let (_, foreign) = console.key(&other, &json!({"service": "verify"})).await;
    let foreign = foreign.rsplit('/').next().unwrap().to_owned();
    let invented = format!("{}0", &foreign[..foreign.len() - 1]);
    for (method, end) in
        [(Method::GET, ""), (Method::DELETE, ""), (Method::PATCH, ""), (Method::POST, "/rotate")]
    {
        let ask = async |id: &str| {
            let path = format!("/v1/apps/{mine}/keys/{id}{end}");
            let (status, mut body) = console.send(method.clone(), &path, &json!({})).await;
            body["request_id"] = json!("");
            (status, body.to_string().replace(id, "ID"))
        };
        let known = ask(&foreign).await;
        assert_eq!(known.0, 404, "{method}{end}: {known:?}");
        assert_eq!(known, ask(&invented).await, "{method}{end}");
    }
}

#[tokio::test]
async fn filters_are_plain_text_and_neither_patterns_nor_sql() {
    let (_server, console) = server().await;
    let app = console.app("100% 'quoted\"; DROP TABLE apps; --").await;
    let count = async |console: &Console, path: String| {
        let (status, list) = console.get(&path).await;
        assert!(status == 200 || status == 400 || status == 404, "{path}: {status} {list}");
        list["data"].as_array().map_or(0, Vec::len)
    };
    for hostile in
        ["%25", "_", "%27%20OR%20%271%27=%271", "%22%20OR%201=1%20--", "*", "app_%25", "%00", "x%27)%3B--"]
    {
        for filter in ["object", "app", "actor"] {
            let found = count(&console, format!("/v1/audit?{filter}={hostile}")).await;
            assert_eq!(found, 0, "{filter}={hostile}");
        }
        for path in [
            format!("/v1/apps/{hostile}"),
            format!("/v1/apps/{hostile}/keys"),
            format!("/v1/audit?cursor={hostile}"),
        ] {
            assert_eq!(count(&console, path).await, 0, "{hostile}");
        }
        count(&console, format!("/v1/usage?app={hostile}")).await;
    }
    assert_eq!(
        count(&console, format!("/v1/audit?object={app}")).await,
        1,
        "the filter finds existing entries"
    );
    let (status, kept) = console.get(&format!("/v1/apps/{app}")).await;
    assert_eq!((status, text(&kept["name"])), (200, "100% 'quoted\"; DROP TABLE apps; --".to_owned()));
}
