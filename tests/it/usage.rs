//! `/v1/usage`, `/v1/billing` and statements over HTTP, on usage that a real server has recorded.

use std::time::Duration;

use mk::api::Service;
use mk::clock::Time;
use mk::keys::{NewKey, apps};
use mk::money::NanoUsd;
use mk::storage::{AppChange, AttemptRow};
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with, hello};
use crate::support::eventually;
use crate::support::panel::agreeing_panel;
use crate::support::provider::{ModelRequest, Reply};
use crate::support::server::{NOON, Setup, TestServer, client};

/// The cost in dollars of a call to `fake/m` answered with `Reply::Text`: 100 tokens at a dollar per million, and 10 at
/// two.
const COST: f64 = 0.000_12;

fn respond(ask: &ModelRequest) -> Reply {
    match ask.model.as_str() {
        "broken" => Reply::status(400, &json!({"error": {"message": "no"}})),
        _ => Reply::Text("Hi".to_owned()),
    }
}

/// Requests a page of the console API.
async fn get_with(server: &TestServer, path: &str, accept: &str) -> Response {
    let key = server.key(Service::Console);
    let url = format!("{}/v1/{path}", server.base);
    client().get(url).bearer_auth(key).header("accept", accept).send().await.unwrap()
}

async fn get(server: &TestServer, path: &str) -> Value {
    let response = get_with(server, path, "*/*").await;
    assert_eq!(response.status(), 200, "{path}: {}", response.text().await.unwrap());
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.json().await.unwrap()
}

async fn csv(server: &TestServer, path: &str) -> String {
    let response = get_with(server, path, "text/csv").await;
    assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    assert_eq!(response.headers()["vary"], "accept");
    let disposition = response.headers()["content-disposition"].to_str().unwrap();
    assert!(
        disposition.starts_with("attachment; filename=\"") && disposition.ends_with(".csv\""),
        "{disposition}"
    );
    response.text().await.unwrap()
}

async fn ask(gateway: &Gateway, model: &str) {
    let mut body = hello();
    body["model"] = json!(model);
    let _ = gateway.json(&body).await;
}

fn default_app(server: &TestServer) -> String {
    server.app.store.app("default").unwrap().id
}

/// An attempt of the default app.
fn attempt(server: &TestServer, at: &str, cost: u64) -> AttemptRow {
    AttemptRow {
        at: Time::parse(at).unwrap(),
        request_id: "req_old".into(),
        app_id: default_app(server).into(),
        key_id: "key_gone".into(),
        service: Service::Verify,
        model: "fake/m".into(),
        outcome: "ok".into(),
        prompt_tokens: 1,
        completion_tokens: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: false,
        cost: Some(NanoUsd(cost)),
        latency_ms: 1,
        is_first: true,
        is_first_of_model: true,
        labels: None,
        call: None,
    }
}

#[tokio::test]
async fn a_request_is_in_the_report_soon_without_a_flush() {
    let gateway = gateway(respond).await;
    ask(&gateway, "fake/m").await;
    let store = gateway.server.app.store.clone();
    // The test does not flush; the server does it by itself.
    eventually("the usage is summed", || store.first_usage_day().unwrap().is_some()).await;
    let report = get(&gateway.server, "usage").await;
    assert_eq!((&report["from"], &report["to"]), (&json!("2026-10-22"), &json!("2026-11-20")));
    let expected = json!([{
        "day": "2026-11-20", "requests": 1, "attempts": 1, "errors": 0, "prompt_tokens": 100,
        "completion_tokens": 10, "total_tokens": 110, "cost_usd": COST, "unpriced_attempts": 0,
        "cached_tokens": 0, "cache_write_tokens": 0, "estimated_attempts": 0,
    }]);
    assert_eq!((&report["by"], &report["data"]), (&json!(["day"]), &expected));
    assert_eq!(report["totals"]["requests"], 1);
    assert_eq!(report["next_cursor"], Value::Null);
}

#[tokio::test]
async fn unknown_prices_and_failures_are_reported_as_such() {
    let gateway = gateway(respond).await;
    for model in ["fake/m", "fake/n", "fake/n", "fake/broken"] {
        ask(&gateway, model).await;
    }
    gateway.server.app.flush().unwrap();
    let report = get(&gateway.server, "usage?by=model").await;
    let of =
        |model: &str| report["data"].as_array().unwrap().iter().find(|row| row["model"] == model).unwrap();
    assert_eq!(of("fake/m")["cost_usd"], json!(COST));
    assert_eq!((&of("fake/n")["cost_usd"], &of("fake/n")["unpriced_attempts"]), (&Value::Null, &json!(2)));
    let broken = of("fake/broken");
    assert_eq!(
        (&broken["errors"], &broken["total_tokens"], &broken["cost_usd"]),
        (&json!(1), &json!(0), &json!(0.0))
    );
    let totals = &report["totals"];
    assert_eq!(
        (&totals["requests"], &totals["errors"], &totals["cost_usd"]),
        (&json!(4), &json!(1), &json!(COST))
    );

    let csv = csv(&gateway.server, "usage?by=service,model&model=fake/n").await;
    let expected = "service,model,requests,attempts,errors,prompt_tokens,completion_tokens,total_tokens,cost_usd,\
                    unpriced_attempts,cached_tokens,cache_write_tokens,estimated_attempts\r\n\
                    inference,fake/n,2,2,0,200,20,220,,2,0,0,0\r\n";
    assert_eq!(csv, expected);
}

#[tokio::test]
async fn a_verification_is_one_request_in_total_and_one_for_each_model() {
    let (server, _provider) = agreeing_panel().await;
    let (key, key_id) = server.key_with(Service::Verify, |new| new.name = Some("ci".to_owned()));
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let answered = server.verify(&key, &body).header("accept", "application/json").send().await.unwrap();
    assert_eq!(answered.status(), 200);
    server.app.flush().unwrap();
    let report = get(&server, "usage?by=model,key").await;
    let rows = report["data"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{report}");
    assert!(rows.iter().all(|row| row["requests"] == 1 && row["key"] == "ci"), "{report}");
    assert_eq!((&report["totals"]["requests"], &report["totals"]["attempts"]), (&json!(1), &json!(4)));
    let of_key = get(&server, &format!("usage?by=service&key={key_id}")).await;
    assert_eq!(of_key["data"][0]["service"], "verify");
    for other in ["key=key_1", "app=app_1", "service=inference", "model=fake/six", "to=2026-11-19"] {
        assert_eq!(get(&server, &format!("usage?{other}")).await["data"], json!([]), "{other}");
    }
}

#[tokio::test]
async fn errors_name_the_invalid_query_parameter() {
    let gateway = gateway(respond).await;
    for (query, param, code) in [
        ("usage?form=2026-11-01", "form", "unsupported_parameter"),
        ("usage?by=day&by=app", "by", "invalid_parameter"),
        ("usage?by=hour", "by", "invalid_parameter"),
        ("usage?from=2026-11-31", "from", "invalid_parameter"),
        ("usage?from=2026-11-02&to=2026-11-01", "from", "invalid_parameter"),
        ("usage?service=chat", "service", "invalid_parameter"),
        ("usage?limit=5", "limit", "unsupported_parameter"),
        ("billing?month=2026-11", "month", "unsupported_parameter"),
        ("apps/app_1/statement?month=11", "month", "invalid_parameter"),
    ] {
        let response = get_with(&gateway.server, query, "text/csv").await;
        assert_eq!(
            (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
            (400, "application/json")
        );
        let body: Value = response.json().await.unwrap();
        assert_eq!((&body["param"], &body["code"]), (&json!(param), &json!(code)), "{query}");
    }
    let missing = get_with(&gateway.server, "apps/app_1/statement", "*/*").await;
    assert_eq!(missing.status(), 404);
    assert_eq!(missing.json::<Value>().await.unwrap()["code"], "not_found");
    for key in [gateway.server.key(Service::Verify), gateway.key.clone()] {
        for path in ["usage", "billing", "apps/app_1/statement"] {
            let url = format!("{}/v1/{path}", gateway.server.base);
            let refused = client().get(url).bearer_auth(&key).send().await.unwrap();
            assert_eq!(refused.status(), 401);
        }
    }
}

#[tokio::test]
async fn reports_keep_the_names_of_deleted_apps_and_keys() {
    let gateway = gateway(respond).await;
    let store = &gateway.server.app.store;
    let app = apps::create(store, "=shop, old", None, NOON).unwrap();
    let mut new = NewKey::new(Service::Inference, &app.id);
    new.name = Some("till".to_owned());
    let (key, row) = mk::keys::create(store, &new, NOON).unwrap();
    let key = mk::secret::ExposeSecret::expose_secret(&key).to_owned();
    assert_eq!(gateway.post_as(&key, hello().to_string()).send().await.unwrap().status(), 200);
    gateway.server.app.flush().unwrap();
    store.delete_app(&app.id, NOON).unwrap();

    let report = get(&gateway.server, "usage?by=app,key").await;
    let first = &report["data"][0];
    assert_eq!((&first["app_id"], &first["app"]), (&json!(app.id), &json!("=shop, old")));
    assert_eq!((&first["key_id"], &first["key"]), (&json!(&*row.id), &json!("till")));
    let statement = csv(&gateway.server, &format!("apps/{}/statement", app.id)).await;
    let lines: Vec<&str> = statement.split("\r\n").collect();
    let expected = format!(
        "{},\"'=shop, old\",2026-11,inference,{},till,fake/m,1,1,0,100,10,110,0.00012,0,0,0,0",
        app.id, row.id
    );
    assert_eq!(lines[1..], [expected.as_str(), ""]);
}

#[tokio::test]
async fn a_statement_covers_one_month_and_says_whether_it_is_preliminary() {
    let gateway = gateway(respond).await;
    let store = &gateway.server.app.store;
    let rows = [
        attempt(&gateway.server, "2026-09-30T23:59:59.999Z", 1_000_000_000),
        attempt(&gateway.server, "2026-10-01T00:00:00Z", 2_000_000_000),
        attempt(&gateway.server, "2026-10-31T23:59:59.999Z", 4_000_000_000),
        attempt(&gateway.server, "2026-11-01T00:00:00Z", 8_000_000_000),
    ];
    store.add_attempts(&rows).unwrap();
    let path = format!("apps/{}/statement", default_app(&gateway.server));
    let october = get(&gateway.server, &format!("{path}?month=2026-10")).await;
    assert_eq!((&october["totals"]["cost_usd"], &october["is_preliminary"]), (&json!(6.0), &json!(false)));
    let line = &october["lines"][0];
    assert_eq!(
        (&line["key"], &line["model"], &line["requests"]),
        (&json!("key_gone"), &json!("fake/m"), &json!(2))
    );
    let now = get(&gateway.server, &path).await;
    assert_eq!((&now["month"], &now["totals"]["cost_usd"]), (&json!("2026-11"), &json!(8.0)));
    assert_eq!((&now["is_preliminary"], &now["app"]), (&json!(true), &json!("default")));
    let days = get(&gateway.server, "usage?from=2026-09-30&to=2026-10-01&by=day").await;
    let shown: Vec<_> = days["data"].as_array().unwrap().iter().map(|row| row["day"].clone()).collect();
    assert_eq!(shown, [json!("2026-09-30"), json!("2026-10-01")]);
}

#[tokio::test]
async fn billing_reports_the_month_its_forecast_and_the_use_of_budgets() {
    let gateway = gateway(respond).await;
    let store = &gateway.server.app.store;
    let change = AppChange { name: None, budget: Some(Some(NanoUsd(10_000_000_000))) };
    apps::update(store, &store.app("default").unwrap().id, &change, NOON).unwrap();
    store.add_attempts(&[attempt(&gateway.server, "2026-11-14T00:00:00Z", 6_500_000_000)]).unwrap();
    let billing = get(&gateway.server, "billing").await;
    assert_eq!(
        (&billing["month"], &billing["ends_at"]),
        (&json!("2026-11"), &json!("2026-12-01T00:00:00.000Z"))
    );
    assert_eq!(billing["month_to_date"]["cost_usd"], 6.5);
    assert_eq!(billing["forecast"], json!({"cost_usd": 17.0, "per_day_usd": 1.0, "based_on_days": 6.5}));
    let id = default_app(&gateway.server);
    let line = json!({
        "id": id, "name": "default", "app_id": id, "budget_usd": 10.0, "spent_usd": 6.5, "used_percent": 65.0,
        "threshold": 50,
    });
    assert_eq!(billing["budgets"], json!([line]));
}

#[tokio::test]
async fn old_attempts_are_deleted_but_their_sums_are_kept() {
    let at_once = |setup: Setup| setup.options(|options| options.clock_stable_for = Duration::ZERO);
    let gateway = gateway_with("", "[usage]\nretention = \"30d\"", at_once, respond).await;
    let store = gateway.server.app.store.clone();
    let of = |at: &str, id: &str| AttemptRow {
        request_id: id.into(),
        ..attempt(&gateway.server, at, 1_000_000_000)
    };
    let old: Vec<AttemptRow> = (0..1200).map(|_| of("2026-10-01", "req_old")).collect();
    store.add_attempts(&old).unwrap();
    store.add_attempts(&[of("2026-11-01", "req_newer")]).unwrap();
    let report = "usage?from=2026-09-01&by=day";
    let before = get(&gateway.server, report).await;

    eventually("the old attempts are deleted", || store.attempts_of("req_old").unwrap().is_empty()).await;
    assert_eq!(store.attempts_of("req_newer").unwrap().len(), 1, "not old enough");
    gateway.server.clock.advance(Duration::from_hours(24 * 11 + 13));
    eventually("the newer attempt has become too old", || store.attempts_of("req_newer").unwrap().is_empty())
        .await;
    assert_eq!(get(&gateway.server, &format!("{report}&to=2026-11-20")).await, before);
    let october = format!("apps/{}/statement?month=2026-10", default_app(&gateway.server));
    assert_eq!(get(&gateway.server, &october).await["totals"]["cost_usd"], 1200.0);
}
