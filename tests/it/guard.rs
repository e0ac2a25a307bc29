//! Verification as a guard: answers carry what a panel found about them, or are not given, behind every door.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mk::api::Service;
use mk::api::cache_time::CacheTime;
use mk::api::guard::{BlockOn, Guard};
use mk::config::ServerConfig;
use mk::inference::Pool;
use mk::money::NanoUsd;
use mk::providers::{Kind, Settings};
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::chat::{chunks, text_of};
use crate::support::console::Console;
use crate::support::mk::Mk;
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, ModelRequest, Reply, claim, stream};
use crate::support::server::{Setup, TestServer, client, sandbox};

const TRUE: &str = "Nice is a port.";
const FALSE: &str = "The Eiffel Tower is in Rome.";
const OPEN: &str = "The Louvre opened in 1793.";

/// A model `chat` that says what it is told to, and a panel that knows three claims.
fn script(ask: &ModelRequest) -> Reply {
    if ask.model == "chat" {
        let text = ask.text();
        if text == "call" {
            let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
            let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
            return Reply::status(
                200,
                &json!({"id": "c", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
            );
        }
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        return if ask.stream { stream(&words) } else { Reply::Text(text.clone()) };
    }
    if ask.task == "claims" {
        let section = ask.block("SECTION");
        let known = [
            claim(TRUE, "What is Nice?", "a port", &["a lake", "a hill", "a moor"]),
            claim(FALSE, "In which city is the Eiffel Tower?", "Rome", &["London", "Paris", "Berlin"]),
            claim(OPEN, "In which year did the Louvre open?", "1793", &["1780", "1785", "1789"]),
        ];
        let said = known.into_iter().filter(|claim| section.contains(claim["quote"].as_str().unwrap()));
        return Reply::json(&json!({"claims": said.collect::<Vec<_>>(), "skipped": []}));
    }
    let options = ask.options();
    let has = |text: &str| options.values().any(|option| option == text);
    match ask.model.as_str() {
        _ if has("a port") => ask.choose("a port"),
        _ if has("Paris") => ask.choose("Paris"),
        "one" => ask.choose("1793"),
        "two" => ask.choose("1780"),
        _ => ask.choose("1785"),
    }
}

struct Guarded {
    server: TestServer,
    provider: FakeProvider,
    key: String,
}

async fn guarded_by(
    script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(&mut ServerConfig),
) -> Guarded {
    let provider = FakeProvider::start(script).await;
    let setup = Setup::new(config(&provider.base_url)).config(|config| {
        config.limits.keys.per_minute = 0;
        change(config);
    });
    let server = setup.start().await;
    let key = server.key(Service::Inference);
    Guarded { server, provider, key }
}

async fn guarded(guard: Guard) -> Guarded {
    guarded_by(script, |config| config.inference.verify = Some(guard)).await
}

fn says(text: &str) -> Value {
    json!({"model": "fake/chat", "messages": [{"role": "user", "content": text}]})
}

fn streams(text: &str) -> Value {
    json!({"model": "fake/chat", "stream": true, "messages": [{"role": "user", "content": text}]})
}

impl Guarded {
    async fn post(&self, path: &str, key: &str, body: &Value) -> Response {
        let request = client().post(format!("{}{path}", self.server.base)).bearer_auth(key).json(body);
        request.header("x-request-id", "req-1").send().await.unwrap()
    }

    async fn ask(&self, body: &Value) -> Response {
        self.post("/inference/v1/chat/completions", &self.key, body).await
    }

    async fn json(&self, body: &Value) -> (u16, Value) {
        let response = self.ask(body).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

fn counts(verification: &Value) -> [u64; 4] {
    ["true", "false", "no_consensus", "unchecked"].map(|name| verification["counts"][name].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_says_what_was_found() {
    let guarded = guarded(Guard::Flag).await;
    let chat = async |arguments: &[&str]| {
        let mk = Mk::new().args(["chat", "-m", "fake/chat"]).args(arguments.iter().copied());
        let mk = mk.env("MK_SERVER", &guarded.server.base).env("MK_INFERENCE_KEY", &guarded.key);
        mk.run_beside().await
    };
    let text = format!("{TRUE} {FALSE} {OPEN}");
    for way in [&["--no-stream"][..], &[]] {
        let ran = chat(&[way, &[&text]].concat()).await;
        assert_eq!((ran.code(), ran.stdout.trim_end()), (0, &*text), "{ran:?}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        let expected = [
            format!("warning: FALSE: {FALSE}; the models say: Paris"),
            format!("warning: NO CONSENSUS: {OPEN}"),
            "verified: 1 TRUE, 1 FALSE, 1 NO CONSENSUS".to_owned(),
        ];
        assert_eq!(lines[..3], expected, "{ran:?}");
    }
    let json = chat(&["--json", &text]).await.json();
    assert_eq!(counts(&json["mk_verification"]), [1, 1, 1, 0], "{json}");
    let plain = chat(&["Well, well."]).await;
    assert!(plain.stderr.contains("verified: "), "{plain:?}");
}

#[tokio::test]
async fn a_flagged_answer_carries_what_was_found_about_it() {
    let guarded = guarded(Guard::Flag).await;
    // Nobody says anything about the first word.
    let text = format!("Hé. {TRUE} {FALSE}");
    let (status, answer) = guarded.json(&says(&text)).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!(text)));
    let found = &answer["mk_verification"];
    assert_eq!(
        (&found["guard"], &found["status"], counts(found)),
        (&json!("flag"), &json!("verified"), [1, 1, 0, 1]),
        "{found}"
    );
    let claim = &found["claims"][1];
    assert_eq!(
        (&claim["assessment"], &claim["correction"], &claim["choice"]),
        (&json!("FALSE"), &json!("Paris"), &json!(0))
    );
    let place = |name: &str| usize::try_from(claim["span"][name].as_u64().unwrap()).unwrap();
    let quoted: String = text.chars().skip(place("start")).take(place("end") - place("start")).collect();
    assert_eq!((quoted.as_str(), &claim["quote"]), (FALSE, &json!(FALSE)));
    assert!(found.get("mode").is_none() && found.get("error").is_none(), "{found}");
    // One request, to which all of it is booked.
    guarded.server.app.flush().unwrap();
    let rows = guarded.server.app.store.attempts_of("req-1").unwrap();
    assert!(rows.len() >= 1 + 1 + 2 * 3);
    assert_eq!(rows.len(), guarded.provider.requests().len());
    assert_eq!(rows.iter().filter(|row| row.is_first).count(), 1);
    assert!(rows.iter().all(|row| row.service == Service::Inference));
    let console = Console::of(&guarded.server);
    let (_, usage) = console.get("/v1/usage?by=app").await;
    assert_eq!(usage["data"][0]["requests"], 1, "{usage}");
}

#[tokio::test]
async fn what_was_found_about_a_stream_stands_before_its_end() {
    for guard in Guard::ALL {
        let guarded = guarded(guard).await;
        let response = guarded.ask(&streams(TRUE)).await;
        assert_eq!(response.status(), 200);
        let chunks = chunks(&response.text().await.unwrap());
        assert_eq!(text_of(&chunks, 0), TRUE);
        let last = chunks.last().unwrap();
        assert_eq!(
            (&last["choices"], counts(&last["mk_verification"])),
            (&json!([]), [1, 0, 0, 0]),
            "{last}"
        );
        assert_eq!((&last["id"], &last["model"]), (&chunks[0]["id"], &chunks[0]["model"]));
        assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk.get("mk_verification").is_none()));
        assert_eq!(last["mk_verification"]["guard"], guard.as_str());
    }
}

#[tokio::test]
async fn a_false_answer_is_not_given_behind_any_door_whole_or_streamed() {
    let guarded = guarded(Guard::Block).await;
    let text = format!("{TRUE} {FALSE}");
    let messages = json!([{"role": "user", "content": text}]);
    for stream in [false, true] {
        let chat = json!({"model": "fake/chat", "messages": messages, "stream": stream});
        let message = json!({"model": "fake/chat", "max_tokens": 99, "messages": messages, "stream": stream});
        let response = json!({"model": "fake/chat", "input": text, "stream": stream});
        for (path, body) in [
            ("/inference/v1/chat/completions", &chat),
            ("/openai/v1/chat/completions", &chat),
            ("/anthropic/v1/messages", &message),
            ("/openai/v1/responses", &response),
        ] {
            let refused = guarded.post(path, &guarded.key, body).await;
            let status = refused.status().as_u16();
            let error: Value = refused.json().await.unwrap();
            assert_eq!(status, 422, "{path} {error}");
            let fields = if path.starts_with("/inference") { &error } else { &error["error"] };
            assert_eq!(
                (&fields["code"], counts(&fields["mk_verification"])),
                (&json!("answer_blocked"), [1, 1, 0, 0]),
                "{path}: {error}"
            );
            assert!(fields["message"].as_str().unwrap().contains("1 FALSE"), "{error}");
        }
    }
}

#[tokio::test]
async fn every_door_gives_what_was_found_in_its_own_form() {
    let guarded = guarded(Guard::Flag).await;
    let messages = json!([{"role": "user", "content": TRUE}]);
    let whole = async |path: &str, body: Value| {
        guarded.post(path, &guarded.key, &body).await.json::<Value>().await.unwrap()
    };
    let message = json!({"model": "fake/chat", "max_tokens": 99, "messages": messages});
    let answer = whole("/anthropic/v1/messages", message.clone()).await;
    assert_eq!(
        (&answer["content"][0]["text"], counts(&answer["mk_verification"])),
        (&json!(TRUE), [1, 0, 0, 0]),
        "{answer}"
    );
    let response = json!({"model": "fake/chat", "input": TRUE});
    let answer = whole("/openai/v1/responses", response.clone()).await;
    assert_eq!(
        (&answer["status"], counts(&answer["mk_verification"])),
        (&json!("completed"), [1, 0, 0, 0]),
        "{answer}"
    );
    for (path, mut body, kind, field) in [
        ("/anthropic/v1/messages", message, "message_stop", None),
        ("/openai/v1/responses", response, "response.completed", Some("response")),
    ] {
        body["stream"] = true.into();
        let text = guarded.post(path, &guarded.key, &body).await.text().await.unwrap();
        let last = text.split_terminator("\n\n").last().unwrap();
        let (name, data) = last.split_once("\ndata: ").unwrap();
        assert_eq!(name, format!("event: {kind}"));
        let data: Value = serde_json::from_str(data).unwrap();
        let place = field.map_or(&data, |field| &data[field]);
        assert_eq!(counts(&place["mk_verification"]), [1, 0, 0, 0], "{data}");
    }
}

#[tokio::test]
async fn the_operator_says_what_blocks() {
    for (reasons, text, is_given) in [
        (&[BlockOn::False][..], OPEN, true),
        (&[BlockOn::NoConsensus], OPEN, false),
        (&[BlockOn::NoConsensus], FALSE, true),
        (&[BlockOn::Unchecked], "Nobody knows the depth of Lake 7.", false),
        (&[BlockOn::False], "Nobody knows the depth of Lake 7.", true),
    ] {
        let guarded = guarded_by(script, |config| {
            config.inference.verify = Some(Guard::Block);
            config.inference.block_on = reasons.to_vec();
        });
        let (status, answer) = guarded.await.json(&says(text)).await;
        assert_eq!(status, if is_given { 200 } else { 422 }, "{reasons:?} {text}: {answer}");
    }
}

#[tokio::test]
async fn what_could_not_be_verified_is_told_and_blocked_unless_the_operator_lets_it_pass() {
    let broken = |ask: &ModelRequest| {
        if ask.model == "chat" { script(ask) } else { Reply::status(500, &json!({})) }
    };
    let with = async |guard, reasons: &[BlockOn]| {
        guarded_by(broken, |config| {
            config.inference.verify = Some(guard);
            config.inference.block_on = reasons.to_vec();
        })
        .await
    };
    let flagged = with(Guard::Flag, &BlockOn::DEFAULT).await;
    let (status, answer) = flagged.json(&says(TRUE)).await;
    let found = &answer["mk_verification"];
    assert_eq!(
        (status, &found["status"], &found["error"]["code"]),
        (200, &json!("failed"), &json!("provider_error")),
        "{answer}"
    );
    let closed = with(Guard::Block, &BlockOn::DEFAULT).await;
    for body in [says(TRUE), streams(TRUE)] {
        let (status, error) = closed.json(&body).await;
        assert_eq!((status, &error["code"]), (502, &json!("provider_error")), "{error}");
        assert!(
            error["message"].as_str().unwrap().starts_with("the answer could not be verified"),
            "{error}"
        );
        assert_eq!(error["mk_verification"]["status"], "failed");
    }
    let open = with(Guard::Block, &[BlockOn::False]).await;
    assert_eq!(open.json(&says(TRUE)).await.0, 200);
    let text = open.ask(&streams(TRUE)).await.text().await.unwrap();
    assert_eq!(chunks(&text).last().unwrap()["mk_verification"]["status"], "failed");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_verified_in_part() {
    let with = async |reasons: &[BlockOn]| {
        guarded_by(script, |config| {
            config.inference.verify = Some(Guard::Block);
            config.inference.block_on = reasons.to_vec();
            config.verify.general.max_fact_chars = 20;
        })
        .await
    };
    let long = [TRUE; 20].join(" ");
    let closed = with(&BlockOn::DEFAULT).await;
    for body in [says(&long), streams(&long)] {
        let (status, error) = closed.json(&body).await;
        assert_eq!((status, &error["code"]), (422, &json!("answer_blocked")), "{error}");
    }
    let open = with(&[BlockOn::False]).await;
    let text = open.ask(&streams(&long)).await.text().await.unwrap();
    let chunks = chunks(&text);
    assert_eq!(text_of(&chunks, 0), long);
    assert_eq!(chunks.last().unwrap()["mk_verification"]["status"], "failed");
}

#[tokio::test]
async fn the_strictest_of_server_name_and_key_holds() {
    let guarded = guarded_by(script, |config| {
        let pool =
            Pool { targets: vec!["fake/chat".to_owned()], verify: Some(Guard::Flag), ..Pool::default() };
        config.inference.pools.insert("checked".to_owned(), pool);
    })
    .await;
    let (strict, _) = guarded.server.key_with(Service::Inference, |new| new.verify = Some(Guard::Block));
    let path = "/inference/v1/chat/completions";
    let checked = json!({"model": "checked", "messages": [{"role": "user", "content": FALSE}]});
    let (_, answer) = guarded.json(&says(FALSE)).await;
    assert!(answer.get("mk_verification").is_none(), "{answer}");
    let (status, answer) = guarded.json(&checked).await;
    assert_eq!((status, counts(&answer["mk_verification"])), (200, [0, 1, 0, 0]));
    for body in [&says(FALSE), &checked] {
        assert_eq!(guarded.post(path, &strict, body).await.status(), 422);
    }
    // Nothing is said in calls of tools.
    let before = guarded.provider.requests().len();
    let called = guarded.post(path, &strict, &says("call")).await;
    let called: Value = called.json().await.unwrap();
    assert_eq!(
        (&called["mk_verification"]["status"], counts(&called["mk_verification"])),
        (&json!("verified"), [0; 4]),
        "{called}"
    );
    assert_eq!(guarded.provider.requests().len(), before + 1);
}

#[tokio::test]
async fn a_budget_bounds_verifications_and_an_unknown_price_is_no_verdict() {
    let guarded = guarded_by(script, |config| {
        let price = mk::money::Price::new(NanoUsd(1_000_000_000), NanoUsd(1_000_000_000));
        let priced = mk::providers::ModelSettings { price: Some(price), ..Default::default() };
        config.providers[0].models.insert("chat".to_owned(), priced);
    })
    .await;
    for (guard, status) in [(Guard::Flag, 200), (Guard::Block, 403)] {
        let (key, _) = guarded.server.key_with(Service::Inference, |new| {
            new.verify = Some(guard);
            new.budget = Some(NanoUsd(10_000_000_000));
        });
        let body = json!({"model": "fake/chat", "max_tokens": 9, "messages": says(TRUE)["messages"]});
        let response = guarded.post("/inference/v1/chat/completions", &key, &body).await;
        assert_eq!(response.status(), status);
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["mk_verification"]["error"]["code"], "price_unknown", "{answer}");
    }
    // No model of the panel was asked, and none for an answer that could not be given.
    let asked: Vec<String> = guarded.provider.requests().into_iter().map(|ask| ask.model).collect();
    assert_eq!(asked, ["chat"]);
}

#[tokio::test]
async fn a_kept_answer_is_verified_as_well() {
    let guarded = guarded_by(script, |_| {}).await;
    let (strict, _) = guarded.server.key_with(Service::Inference, |new| {
        (new.verify, new.cache) = (Some(Guard::Block), CacheTime::parse("1h"));
    });
    let (plain, _) = guarded.server.key_with(Service::Inference, |new| new.cache = CacheTime::parse("1h"));
    let path = "/inference/v1/chat/completions";
    assert_eq!(guarded.post(path, &plain, &says(FALSE)).await.status(), 200);
    assert_eq!(guarded.post(path, &strict, &says(FALSE)).await.status(), 422);
    assert_eq!(guarded.provider.requests_for("chat").len(), 1);
    let hit = guarded.post(path, &plain, &says(FALSE)).await;
    assert_eq!(hit.headers()["x-mk-cache"], "hit");
    assert!(hit.json::<Value>().await.unwrap().get("mk_verification").is_none());
}

#[tokio::test]
async fn a_revoked_key_ends_the_verification_of_its_answer() {
    let verifying = Arc::new(AtomicBool::new(false));
    let seen = verifying.clone();
    let hanging = move |ask: &ModelRequest| {
        if ask.model == "chat" {
            return script(ask);
        }
        seen.store(true, Ordering::SeqCst);
        Reply::Hang
    };
    let guarded = guarded_by(hanging, |config| config.inference.verify = Some(Guard::Flag)).await;
    let (key, id) = guarded.server.key_with(Service::Inference, |_| {});
    let revoke = async {
        crate::support::eventually("the answer is verified", || verifying.load(Ordering::SeqCst)).await;
        guarded.server.app.store.revoke_key(&id, guarded.server.clock.now()).unwrap();
    };
    let body = says(TRUE);
    let (answer, ()) = tokio::join!(guarded.post("/inference/v1/chat/completions", &key, &body), revoke);
    assert_eq!(answer.status(), 401);
    crate::support::eventually("the call has ended", || guarded.provider.in_flight() == 0).await;
}

#[tokio::test]
async fn what_simulated_models_say_is_marked() {
    let server = Setup::new(sandbox()).start().await;
    let (key, _) = server.key_with(Service::Inference, |new| new.verify = Some(Guard::Flag));
    let body = json!({"model": "sandbox/alpha", "messages": [{"role": "user", "content": "What is the capital of Australia?"}]});
    let request =
        client().post(format!("{}/inference/v1/chat/completions", server.base)).bearer_auth(key).json(&body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["mk_verification"]["mode"], "sandbox", "{answer}");
}

#[tokio::test]
async fn a_request_under_guard_is_not_passed_on_in_a_protocol_of_its_own() {
    let guarded = guarded_by(script, |config| {
        let address = config.providers[0].base_url.clone();
        config.providers.push(Settings::new("claude", Kind::Anthropic, &address));
    })
    .await;
    let (strict, _) = guarded.server.key_with(Service::Inference, |new| new.verify = Some(Guard::Block));
    let says = |text: &str| json!({"model": "claude/chat", "max_tokens": 99, "messages": [{"role": "user", "content": text}]});
    let given = guarded.post("/anthropic/v1/messages", &strict, &says(TRUE)).await;
    let message: Value = given.json().await.unwrap();
    assert_eq!(
        (&message["content"][0]["text"], counts(&message["mk_verification"])),
        (&json!(TRUE), [1, 0, 0, 0]),
        "{message}"
    );
    assert_eq!(guarded.post("/anthropic/v1/messages", &strict, &says(FALSE)).await.status(), 422);
    let native = guarded.post("/anthropic/v1/messages", &guarded.key, &says(FALSE)).await;
    assert!(native.json::<Value>().await.unwrap().get("mk_verification").is_none());
}
