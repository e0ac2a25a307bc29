//! Trying out verifications and completions through a session of the dashboard, on the account of an app: admitted,
//! limited and booked like any other request, without a key of the app.

use futures_util::StreamExt;
use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::browser::{Browser, refusal};
use crate::support::chat::{Gateway, chunks, gateway, gateway_with, hello, hello_stream};
use crate::support::console::{Console, text};
use crate::support::events::{Events, read_until};
use crate::support::panel::{agreeing_panel, hanging_panel};
use crate::support::provider::{ModelRequest, Reply, stream};
use crate::support::server::{Setup, TestServer, client, header, sandbox};

/// A console key, its id, and a session made from it.
async fn session(server: &TestServer) -> (Browser, String) {
    let (key, id) = server.key_with(Service::Console, |new| new.name = Some("laptop".to_owned()));
    (Browser::log_in(server, &key).await, id)
}

async fn answering() -> (Gateway, Browser, String, Console) {
    let says_hi =
        |ask: &ModelRequest| if ask.stream { stream(&["Hi"]) } else { Reply::Text("Hi".to_owned()) };
    let gateway = gateway(says_hi).await;
    let (browser, id) = session(&gateway.server).await;
    let console = Console::of(&gateway.server);
    (gateway, browser, id, console)
}

#[tokio::test]
async fn a_completion_is_booked_to_the_app_and_the_console_key_and_makes_no_key() {
    let (gateway, browser, key_id, console) = answering().await;
    let app = console.app("shop").await;
    let path = format!("/v1/apps/{app}/try/chat");
    let whole = browser.write(Method::POST, &path, &hello()).await;
    assert_eq!(whole.status(), 200);
    assert_eq!((header(&whole, "x-mk-model"), header(&whole, "cache-control")), ("fake/m", "no-store"));
    let answer: Value = whole.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "Hi");
    let streamed = browser.write(Method::POST, &path, &hello_stream()).await;
    assert_eq!(header(&streamed, "content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(header(&streamed, "cache-control"), "no-cache, no-transform");
    assert!(!chunks(&streamed.text().await.unwrap()).is_empty());

    gateway.server.app.flush().unwrap();
    let (_, report) = console.get(&format!("/v1/usage?by=app,key,service&app={app}")).await;
    let row = &report["data"][0];
    assert_eq!(
        (&row["app"], &row["service"], &row["requests"]),
        (&json!("shop"), &json!("inference"), &json!(2))
    );
    assert_eq!((&row["key_id"], &row["key"]), (&json!(key_id), &json!("laptop (dashboard)")));
    assert_eq!(report["data"].as_array().unwrap().len(), 1);
    let (_, keys) = console.get(&format!("/v1/apps/{app}/keys")).await;
    assert_eq!(keys["data"], json!([]));
}

#[tokio::test]
async fn a_verification_streams_its_events_or_is_one_document() {
    let (server, _provider) = agreeing_panel().await;
    let (browser, _) = session(&server).await;
    let app = server.app.store.app("default").unwrap().id;
    let path = format!("/v1/apps/{app}/try/verify");
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let request = || browser.request(Method::POST, &path).header("origin", &server.base).json(&body);
    let streamed = request().header("accept", "text/event-stream").header("x-mk-progress", "models");
    let events = Events::read(streamed.send().await.unwrap()).await;
    assert_eq!(events.end("completed")["results"][0]["assessment"], "TRUE");
    assert!(events.names().contains(&"model_answered"));
    let document: Value =
        request().header("accept", "application/json").send().await.unwrap().json().await.unwrap();
    assert_eq!(document["results"][0]["assessment"], "TRUE");
}

#[tokio::test]
async fn trying_out_is_limited_and_booked_like_any_other_request() {
    let (gateway, _, _, console) = answering().await;
    let app = console.app("shop").await;
    let path = format!("/v1/apps/{app}/try/chat");
    let server = &gateway.server;
    // The limits of the console key hold for what is tried out, and not for the rest of the dashboard.
    let (key, _) = server.key_with(Service::Console, |new| new.per_minute = Some(2));
    let browser = Browser::log_in(server, &key).await;
    for left in ["1", "0"] {
        let answer = browser.write(Method::POST, &path, &hello()).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "x-ratelimit-remaining")), (200, left));
    }
    let refused = browser.write(Method::POST, &path, &hello()).await;
    assert_eq!(header(&refused, "x-ratelimit-limit"), "2");
    assert_eq!(refusal(refused).await, (429, "rate_limited_minute".to_owned()));
    assert_eq!(browser.get("/v1/apps").await.status(), 200);

    // So does the app's budget, and a model whose price is unknown is refused.
    let (browser, _) = session(server).await;
    server.app.flush().unwrap();
    console.patch(&format!("/v1/apps/{app}"), &json!({"budget_usd": 0.000_3})).await;
    let mut small = hello();
    small["max_tokens"] = json!(100);
    assert_eq!(browser.write(Method::POST, &path, &hello()).await.status(), 402);
    assert_eq!(browser.write(Method::POST, &path, &small).await.status(), 402, "two answers are booked");
    small["model"] = json!("fake/unpriced");
    let unpriced = browser.write(Method::POST, &path, &small).await;
    assert_eq!(refusal(unpriced).await, (403, "price_unknown".to_owned()));
    let other = console.app("other").await;
    let elsewhere = browser.write(Method::POST, &format!("/v1/apps/{other}/try/chat"), &hello()).await;
    assert_eq!(elsewhere.status(), 200, "another app has an account of its own");
    server.app.flush().unwrap();
    let spent = async |app: &str| console.get(&format!("/v1/apps/{app}")).await.1["spent_usd"].as_f64();
    assert_eq!((spent(&app).await, spent(&other).await), (Some(0.000_24), Some(0.000_12)));
}

#[tokio::test]
async fn a_foreign_page_can_try_nothing_out() {
    let (gateway, browser, _, console) = answering().await;
    let app = console.app("shop").await;
    for what in ["chat", "verify"] {
        let path = format!("/v1/apps/{app}/try/{what}");
        let post = || browser.request(Method::POST, &path).json(&hello());
        for forged in [
            post(),
            post().header("origin", "https://evil.example"),
            post().header("origin", "null"),
            post().header("origin", &gateway.server.base).header("sec-fetch-site", "cross-site"),
        ] {
            assert_eq!(refusal(forged.send().await.unwrap()).await, (403, "origin_not_allowed".to_owned()));
        }
        // A form of another site can send this, but not JSON.
        let form = browser.request(Method::POST, &path).header("origin", &gateway.server.base).body("fact=x");
        assert_eq!(form.send().await.unwrap().status(), 415);
    }
    assert!(gateway.provider.requests().is_empty());
}

#[tokio::test]
async fn a_session_opens_no_other_area() {
    let (gateway, browser, _, console) = answering().await;
    let base = &gateway.server.base;
    for (method, path) in [
        (Method::POST, "/inference/v1/chat/completions"),
        (Method::POST, "/verify/v1/stream"),
        (Method::GET, "/inference/v1/models"),
        (Method::GET, "/inference/v1/models/fake/m"),
    ] {
        let request = browser.request(method, path).header("origin", base).json(&hello());
        assert_eq!(
            refusal(request.send().await.unwrap()).await,
            (401, "missing_api_key".to_owned()),
            "{path}"
        );
    }
    // Nor does anything but a session or a console key try something out.
    let path = format!("/v1/apps/{}/try/chat", console.app("shop").await);
    let post = || client().post(format!("{base}{path}")).header("origin", base).json(&hello());
    assert_eq!(refusal(post().send().await.unwrap()).await, (401, "missing_api_key".to_owned()));
    let key = gateway.server.key(Service::Inference);
    let by_key = post().bearer_auth(&key).header("cookie", &browser.cookie);
    assert_eq!(refusal(by_key.send().await.unwrap()).await, (401, "wrong_service".to_owned()));
    assert_eq!(post().bearer_auth(&console.key).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn only_apps_that_exist_pay() {
    let (gateway, browser, _, console) = answering().await;
    let app = console.app("shop").await;
    console.delete(&format!("/v1/apps/{app}")).await;
    for id in [&app, "app_1", "x"] {
        for what in ["/chat", "/verify"] {
            let answer = browser.write(Method::POST, &format!("/v1/apps/{id}/try{what}"), &hello()).await;
            assert_eq!(refusal(answer).await, (404, "not_found".to_owned()), "{id}{what}");
        }
        assert_eq!(browser.get(&format!("/v1/apps/{id}/try")).await.status(), 404);
    }
    let other = console.app("other").await;
    let asked = browser.write(Method::POST, &format!("/v1/apps/{other}/try/chat?x=1"), &hello()).await;
    assert_eq!(refusal(asked).await, (400, "unsupported_parameter".to_owned()));
    assert!(gateway.provider.requests().is_empty());
}

#[tokio::test]
async fn what_is_being_tried_out_ends_when_the_console_key_is_revoked() {
    let (server, _provider) = hanging_panel().await;
    let (browser, key_id) = session(&server).await;
    let app = server.app.store.app("default").unwrap().id;
    let path = format!("/v1/apps/{app}/try/verify");
    let request = browser.request(Method::POST, &path).header("origin", &server.base);
    let response = request
        .header("accept", "text/event-stream")
        .json(&json!({"fact": "The Eiffel Tower is in Paris."}))
        .send();
    let mut events = response.await.unwrap().bytes_stream();
    read_until(&mut events, "verifying_claim").await;
    server.app.store.revoke_key(&key_id, server.clock.now()).unwrap();
    let mut rest = String::new();
    while let Some(piece) = events.next().await {
        rest.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert_eq!(Events::parse(rest).end("error")["code"], "api_key_revoked");
}

#[tokio::test]
async fn the_offer_has_chat_models_only_and_says_whose_answers_are_simulated() {
    let guards = "[providers.fake.models.llama-guard-3]\ninput_usd_per_mtok = 0.01\noutput_usd_per_mtok = 0.01\n\
        [providers.fake.models.text-embedding-3]\n[providers.fake.models.a]\n\
        [verify.domains.legal]\nextractor = \"sandbox/alpha\"\npanel = [\"sandbox/alpha\", \"sandbox/beta\"]\n";
    let gateway = gateway_with("", guards, |setup| setup, |_| Reply::Text("Hi".to_owned())).await;
    let (browser, _) = session(&gateway.server).await;
    let app = gateway.server.app.store.app("default").unwrap().id;
    let offer: Value = browser.get(&format!("/v1/apps/{app}/try")).await.json().await.unwrap();
    let ids: Vec<String> =
        offer["models"].as_array().unwrap().iter().map(|model| text(&model["id"])).collect();
    assert!(ids.contains(&"fake/a".to_owned()) && ids.contains(&"sandbox/alpha".to_owned()), "{ids:?}");
    assert!(!ids.iter().any(|id| id.contains("guard") || id.contains("embed")), "{ids:?}");
    for model in offer["models"].as_array().unwrap() {
        assert_eq!(model["is_simulated"], text(&model["id"]).starts_with("sandbox/"), "{model}");
    }
    assert_eq!(offer["default_model"], "fake/m", "what the operator has chosen for verifications");
    let simulated: Vec<(String, bool)> = offer["domains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|domain| (text(&domain["domain"]), domain["is_simulated"] == true))
        .collect();
    assert_eq!(simulated, [("general".to_owned(), false), ("legal".to_owned(), true)]);

    let session_mode = async |browser: &Browser| {
        let shown: Value = browser.get("/v1/auth/session").await.json().await.unwrap();
        text(&shown["mode"])
    };
    assert_eq!(session_mode(&browser).await, "live", "one domain's panel does not make a sandbox");

    let server = Setup::new(sandbox()).start().await;
    let (browser, _) = session(&server).await;
    assert_eq!(session_mode(&browser).await, "sandbox");
    let app = server.app.store.app("default").unwrap().id;
    let offer: Value = browser.get(&format!("/v1/apps/{app}/try")).await.json().await.unwrap();
    assert_eq!(
        (&offer["default_model"], &offer["domains"][0]["is_simulated"]),
        (&json!("sandbox/alpha"), &json!(true))
    );
}
