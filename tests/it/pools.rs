//! Names of the operator's own for models: which target answers, what the caller sees of it, and who may ask.

use std::time::Duration;

use mk::api::Service;
use mk::config::{Env, ServerArgs};
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with, hello, hello_stream};
use crate::support::eventually;
use crate::support::log::{Log, on_this_thread};
use crate::support::mk::Mk;
use crate::support::provider::{FakeProvider, ModelRequest, Reply, stream};
use crate::support::server::{NOON, Setup, client};

const PAIR: &str = "[models.fast]\ntargets = [\"fake/m\", \"fake/n\"]\n";

/// A server with the pool `fast`, whose models answer with their names.
async fn named(rest: &str) -> Gateway {
    let rest = format!("[limits]\nper_minute = 0\n{rest}");
    gateway_with(
        "",
        &rest,
        |setup| setup,
        |ask| {
            if ask.stream { stream(&[&ask.model]) } else { Reply::Text(ask.model.clone()) }
        },
    )
    .await
}

fn fast() -> Value {
    json!({"model": "fast", "messages": [{"role": "user", "content": "Hello"}]})
}

fn of_user(user: &str) -> Value {
    json!({"model": "fast", "user": user, "messages": [{"role": "user", "content": "Hello"}]})
}

async fn list(gateway: &Gateway, key: &str) -> Vec<Value> {
    let list = client().get(format!("{}/inference/v1/models", gateway.server.base)).bearer_auth(key);
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    list["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_answer_names_the_target_and_the_log_names_both() {
    let log = Log::default();
    let _guard = log.capture("info");
    let change = |setup: Setup| setup.options(on_this_thread);
    let gateway = gateway_with("", PAIR, change, |ask| Reply::Text(ask.model.clone())).await;
    let response = gateway.ask(&fast()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-mk-model"]),
        (200, &"fake/m".parse().unwrap())
    );
    let body: Value = response.json().await.unwrap();
    assert_eq!((&body["model"], &body["choices"][0]["message"]["content"]), (&json!("fake/m"), &json!("m")));
    eventually("the request is logged", || !log.requests().is_empty()).await;
    let line = &log.requests()[0];
    assert_eq!((&line["model"], &line["answered_by"]), (&json!("fast"), &json!("fake/m")), "{line}");
    let (status, error) = gateway.json(&json!({"model": "slow", "messages": hello()["messages"]})).await;
    assert_eq!((status, &error["code"]), (404, &json!("model_not_found")));
    assert!(error["message"].as_str().unwrap().contains("nor the name of a pool"), "{error}");
}

#[tokio::test]
async fn pools_are_listed_with_their_targets_and_what_these_have_in_common() {
    let gateway = named(PAIR).await;
    let listed = list(&gateway, &gateway.key).await;
    let pool = listed.iter().find(|model| model["id"] == "fast").unwrap();
    assert_eq!((&pool["owned_by"], &pool["targets"]), (&json!("pool"), &json!(["fake/m", "fake/n"])));
    // Only one of the two has a price.
    assert!(pool.get("input_usd_per_mtok").is_none(), "{pool}");
    assert!(listed.iter().all(|model| model["id"] == "fast" || model.get("targets").is_none()));
    let one = client().get(format!("{}/inference/v1/models/fast", gateway.server.base));
    assert_eq!(one.bearer_auth(&gateway.key).send().await.unwrap().json::<Value>().await.unwrap(), *pool);
    let mk = Mk::new().args(["models"]).env("MK_SERVER", &gateway.server.base);
    let shown = mk.env("MK_INFERENCE_KEY", &gateway.key).run_beside().await;
    let line = shown.stdout.lines().find(|line| line.starts_with("fast\t")).unwrap();
    assert!(line.ends_with("\tfake/m,fake/n"), "{line}");
    let asked = gateway.mk_chat(&["-m", "fast", "x"]).run_beside().await;
    assert_eq!(asked.stdout.trim(), "m", "{}", asked.stderr);
}

#[tokio::test]
async fn the_other_targets_come_before_the_fallbacks_and_a_paused_one_comes_last() {
    let rest = concat!(
        "[models.fast]\ntargets = [\"fake/m\", \"fake/n\"]\nfallbacks = [\"fake/last\"]\n",
        "[inference.fallbacks]\n\"fake/m\" = [\"fake/general\"]\n"
    );
    let policy = "breaker_failures = 2\nbreaker_pause = \"5m\"";
    let gateway = gateway_with(
        policy,
        rest,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "last" if ask.stream => stream(&["last"]),
            "last" => Reply::Text("last".to_owned()),
            _ => Reply::status(500, &json!({})),
        },
    )
    .await;
    let order = |requests: &[ModelRequest]| {
        requests.iter().map(|ask| ask.model.clone()).collect::<Vec<_>>().join(" ")
    };
    for body in [fast(), json!({"model": "fast", "messages": fast()["messages"], "stream": true})] {
        assert_eq!(gateway.ask(&body).await.status(), 200);
    }
    assert_eq!(order(&gateway.provider.requests()), "m n last m n last");
    // Both are paused now; the fallback is not.
    let response = gateway.ask(&fast()).await;
    assert_eq!(response.headers()["x-mk-attempts"], "1");
    assert_eq!(gateway.provider.requests().len(), 7);
}

#[tokio::test]
async fn a_paused_target_is_left_out_until_it_is_well_again() {
    let policy = "breaker_failures = 1\nbreaker_pause = \"5m\"";
    let gateway = gateway_with(
        policy,
        PAIR,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" => Reply::status(500, &json!({})),
            name => Reply::Text(name.to_owned()),
        },
    )
    .await;
    for _ in 0..4 {
        assert_eq!(gateway.json(&fast()).await.1["model"], "fake/n");
    }
    assert_eq!(gateway.provider.requests_for("m").len(), 1);
}

#[tokio::test]
async fn a_key_for_a_pool_may_use_its_targets_through_it_and_one_for_a_target_that_one() {
    let gateway = named(PAIR).await;
    let limited = |models: &[&str]| {
        let models: Vec<String> = models.iter().map(|&model| model.to_owned()).collect();
        gateway.server.key_with(Service::Inference, |new| new.models = models).0
    };
    let ask = async |key: &str, body: Value| {
        let response = gateway.post_as(key, body.to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let ids = async |key: &str| {
        list(&gateway, key)
            .await
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let of_pool = limited(&["fast"]);
    assert_eq!(ask(&of_pool, fast()).await.1["model"], "fake/m");
    assert_eq!(ask(&of_pool, hello()).await.0, 403);
    assert_eq!(ids(&of_pool).await, ["fast"]);

    let of_target = limited(&["fake/n"]);
    assert_eq!(ask(&of_target, fast()).await.1["model"], "fake/n");
    assert_eq!(ids(&of_target).await, ["fake/n", "fast"]);

    let of_neither = limited(&["sandbox/*"]);
    let (status, error) = ask(&of_neither, fast()).await;
    assert_eq!((status, &error["code"]), (403, &json!("model_not_allowed")), "{error}");
    assert!(!ids(&of_neither).await.contains(&"fast".to_owned()));
}

#[tokio::test]
async fn with_a_budget_only_targets_with_a_price_are_asked() {
    let gateway =
        named("[models.fast]\ntargets = [\"fake/n\", \"fake/m\"]\n[models.dear]\ntargets = [\"fake/n\"]\n")
            .await;
    let (key, _) = gateway
        .server
        .key_with(Service::Inference, |new| new.budget = Some(mk::money::NanoUsd(10_000_000_000)));
    let mut body = fast();
    body["max_tokens"] = json!(10);
    let response = gateway.post_as(&key, body.to_string()).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["model"], "fake/m");
    body["model"] = json!("dear");
    let response = gateway.post_as(&key, body.to_string()).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "price_unknown");
    assert!(gateway.provider.requests_for("n").is_empty());
}

#[tokio::test]
async fn what_the_format_of_one_target_lacks_is_asked_of_the_next() {
    let rest = concat!(
        "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n",
        "[models.fast]\ntargets = [\"claude/c\", \"fake/m\"]\n"
    );
    let gateway = named(rest).await;
    let mut body = fast();
    body["logprobs"] = json!(true);
    assert_eq!(gateway.json(&body).await.1["model"], "fake/m");
    assert!(gateway.provider.requests_for("c").is_empty());
    body["model"] = json!("claude/c");
    assert_eq!(gateway.json(&body).await.1["code"], "unsupported_parameter");
}

#[tokio::test]
async fn weights_share_out_the_requests() {
    let rest = "[models.fast]\ntargets = [\"fake/m\", \"fake/n\", \"fake/o\"]\nbalance = \"weighted\"\nweights = [3, 1, 0]\n";
    let gateway = named(rest).await;
    for _ in 0..200 {
        assert_eq!(gateway.ask(&fast()).await.status(), 200);
    }
    let [m, n, o] = ["m", "n", "o"].map(|model| gateway.provider.requests_for(model).len());
    // Far beyond five standard deviations (6 each) of 150 and 50.
    assert!((115..=185).contains(&m) && n == 200 - m && o == 0, "{m} {n} {o}");
}

#[tokio::test]
async fn the_least_busy_target_is_asked_while_others_answer() {
    let rest = "[models.fast]\ntargets = [\"fake/m\", \"fake/n\", \"fake/o\"]\nbalance = \"least_busy\"\n";
    let gateway = gateway_with(
        "",
        rest,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" if ask.stream => Reply::Stream(vec![
                crate::support::provider::role_chunk(),
                crate::support::provider::text_chunk("x"),
                crate::support::provider::StreamStep::Stall,
            ]),
            "n" => Reply::Hang,
            name => Reply::Text(name.to_owned()),
        },
    )
    .await;
    // A stream that goes on at `m`, and a call that waits at `n`, both asked for by name.
    let mut streamed = gateway.ask(&hello_stream()).await;
    streamed.chunk().await.unwrap();
    let mut waiting = hello();
    waiting["model"] = json!("fake/n");
    let waiting = tokio::spawn(gateway.post(waiting.to_string()).timeout(Duration::from_secs(50)).send());
    eventually("the call has arrived", || gateway.provider.requests_for("n").len() == 1).await;
    for _ in 0..8 {
        assert_eq!(gateway.json(&fast()).await.1["model"], "fake/o");
    }
    drop(streamed);
    waiting.abort();
    eventually("the calls have ended", || gateway.provider.in_flight() == 0).await;
    // Now any may come first, and `m` answers what is not streamed.
    for _ in 0..100 {
        let request = gateway.post(fast().to_string()).timeout(Duration::from_millis(200)).send();
        let _ = request.await;
        if gateway.provider.requests_for("m").len() > 1 {
            return;
        }
    }
    panic!("`m` was never asked again");
}

#[tokio::test]
async fn a_conversation_stays_on_its_target_and_moves_as_a_whole() {
    let rest = concat!(
        "[models.fast]\ntargets = [\"fake/a\", \"fake/b\", \"fake/c\", \"fake/d\"]\n",
        "balance = \"least_busy\"\naffinity = true\n"
    );
    let gateway = gateway_with(
        "breaker_failures = 1\nbreaker_pause = \"5m\"",
        rest,
        |setup| setup,
        |ask| match ask.body["messages"][0]["content"].as_str() {
            Some("fail") => Reply::status(500, &json!({})),
            _ => Reply::Text(ask.model.clone()),
        },
    )
    .await;
    let target = async |body: Value| gateway.json(&body).await.1["model"].as_str().unwrap().to_owned();
    let mut homes = Vec::new();
    for user in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        let home = target(of_user(user)).await;
        assert_eq!(target(of_user(user)).await, home);
        homes.push(home);
    }
    homes.sort();
    homes.dedup();
    assert!(homes.len() > 1, "{homes:?}");

    // By the session that a client names, whatever is said.
    let mut sessions = Vec::new();
    for content in ["a", "b", "c", "d", "e", "f"] {
        let body = json!({"model": "fast", "messages": [{"role": "user", "content": content}]});
        let request = gateway.post(body.to_string()).header("X-Claude-Code-Session-Id", "s-1");
        sessions.push(request.send().await.unwrap().json::<Value>().await.unwrap()["model"].clone());
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "{sessions:?}");

    let home = target(of_user("1")).await;
    let failing = json!({"model": home, "messages": [{"role": "user", "content": "fail"}]});
    assert_eq!(gateway.json(&failing).await.0, 502);
    let other = target(of_user("1")).await;
    assert_ne!(other, home);
    assert_eq!(target(of_user("1")).await, other);
}

/// A deployment's prompt cache: it has the longest beginning of each conversation that it has seen. Providers keep
/// prompts from 1,024 tokens on.
fn cached(seen: &mut Vec<Vec<String>>, messages: Vec<String>) -> usize {
    let tokens = |messages: &[String]| messages.iter().map(|text| text.len() / 4).sum::<usize>();
    let shared =
        |known: &Vec<String>| known.iter().zip(&messages).take_while(|(one, other)| one == other).count();
    let longest = seen.iter().map(shared).max().unwrap_or_default();
    let hit = tokens(&messages[..longest]);
    seen.push(messages);
    if hit < 1024 { 0 } else { hit }
}

/// Plays 4 agents of 20 turns each at a time on 4 deployments. Returns the share of all prompt tokens that came from a
/// cache.
async fn agents(settings: &str) -> f64 {
    let rest = format!(
        "[limits]\nper_minute = 0\n[models.fast]\ntargets = [\"fake/a\", \"fake/b\", \"fake/c\", \"fake/d\"]\n{settings}\n"
    );
    let caches: [std::sync::Mutex<Vec<Vec<String>>>; 4] = Default::default();
    let gateway = gateway_with("", &rest, |setup| setup, move |ask| {
        let messages = ask.body["messages"].as_array().unwrap();
        let messages: Vec<String> = messages.iter().map(ToString::to_string).collect();
        let tokens: usize = messages.iter().map(|text| text.len() / 4).sum();
        let at = ["a", "b", "c", "d"].iter().position(|name| *name == ask.model).unwrap();
        let hits = cached(&mut caches[at].lock().unwrap(), messages);
        let reply = json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "x",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1,
                "prompt_tokens_details": {"cached_tokens": hits}},
        });
        Reply::Raw(200, Vec::new(), reply.to_string())
    })
    .await;
    let mut conversations: Vec<Vec<Value>> = (0..4)
        .map(|agent| {
            let task = format!("task {agent} {}", "detail ".repeat(200));
            vec![
                json!({"role": "system", "content": "You edit files. ".repeat(500)}),
                json!({"role": "user", "content": task}),
            ]
        })
        .collect();
    let (mut prompt, mut from_cache) = (0.0, 0.0);
    for turn in 0..20 {
        for messages in &mut conversations {
            let (status, answer) = gateway.json(&json!({"model": "fast", "messages": messages})).await;
            assert_eq!(status, 200, "{answer}");
            let usage = &answer["usage"];
            prompt += usage["prompt_tokens"].as_f64().unwrap();
            from_cache += usage["prompt_tokens_details"]["cached_tokens"].as_f64().unwrap();
            messages
                .push(json!({"role": "assistant", "content": format!("step {turn} {}", "call ".repeat(80))}));
            messages
                .push(json!({"role": "user", "content": format!("result {turn} {}", "line ".repeat(400))}));
        }
    }
    from_cache / prompt
}

/// The figure of the manual's topic on the gateway.
#[tokio::test]
async fn affinity_makes_providers_caches_hit() {
    let (without, with) = tokio::join!(agents("balance = \"weighted\""), agents("affinity = true"));
    println!(
        "prompt tokens from a cache, 4 agents of 20 turns on 4 deployments: {:.0} % without affinity, {:.0} % with",
        without * 100.0,
        with * 100.0
    );
    assert!(with > 0.9 && with > without + 0.1, "{without} {with}");
}

#[test]
fn mistakes_in_a_pool_are_named() {
    let error = |pool: &str| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server.toml");
        let text =
            format!("data_dir = \"/d\"\n[providers.fake]\nbase_url = \"http://127.0.0.1:1/v1\"\n{pool}");
        std::fs::write(&file, text).unwrap();
        let args = ServerArgs { config: Some(file), ..ServerArgs::default() };
        mk::config::load_server(&args, &Env::bare([], NOON)).map(drop).unwrap_err().to_string()
    };
    for (pool, expected) in [
        ("[models.a]", "`models.a` in"),
        ("[models.a]", "needs `targets`"),
        ("[models.a]\ntargets = []", "needs `targets`"),
        ("[models.a]\ntargets = [\"nobody/m\"]", "no provider nobody is configured"),
        (
            "[models.a]\ntargets = [\"b\"]\n[models.b]\ntargets = [\"fake/m\"]",
            "written as provider/model_name",
        ),
        ("[models.a]\ntargets = [\"fake/m\", \"fake/m\"]", "names `fake/m` twice"),
        ("[models.a]\ntargets = [\"fake/m\"]\nfallbacks = [\"fake/m\"]", "a target already"),
        ("[models.\"fake/m\"]\ntargets = [\"fake/m\"]", "must not contain `/`"),
        ("[models.\"a*\"]\ntargets = [\"fake/m\"]", "without `*`"),
        (
            "[models.a]\ntargets = [\"fake/m\"]\nbalance = \"random\"",
            "\"first\", \"weighted\" or \"least_busy\"",
        ),
        ("[models.a]\ntargets = [\"fake/m\"]\nweights = [1]", "needs balance = \"weighted\""),
        (
            "[models.a]\ntargets = [\"fake/m\"]\nbalance = \"weighted\"\nweights = [1, 2]",
            "has 2 numbers for 1 targets",
        ),
        ("[models.a]\ntargets = [\"fake/m\"]\nbalance = \"weighted\"\nweights = [0]", "no number above 0"),
        (
            "[models.a]\ntargets = [\"fake/m\"]\nbalance = \"weighted\"\nweights = [\"1\"]",
            "a list of whole numbers",
        ),
        ("[models.a]\ntargets = [\"fake/m\"]\ntarget = 1", "unknown key `models.a.target`"),
    ] {
        let error = error(pool);
        assert!(error.contains(expected), "{pool}: {error}");
    }
}

#[tokio::test]
async fn a_pool_can_be_reloaded_and_is_listed_with_its_origin() {
    let provider = FakeProvider::start(|ask| Reply::Text(ask.model.clone())).await;
    let config = crate::support::chat::config(&provider.base_url, "", PAIR);
    let listing = mk::config::server_listing(&config);
    let entry = listing.iter().find(|entry| entry.key == "models.fast.targets").unwrap();
    assert_eq!(entry.value, "[\"fake/m\", \"fake/n\"]");
    assert!(entry.origin.to_string().contains("server.toml:"), "{}", entry.origin);
    let other = crate::support::chat::config(&provider.base_url, "", &PAIR.replace("\"fake/m\", ", ""));
    assert_eq!(mk::config::changes(&config, &other), ["models.fast.targets"]);
}
