//! What providers add to an answer, leave out of it or send instead of it, and what callers ask for that a provider
//! does not have.

use serde_json::{Value, json};

use crate::support::chat::{Gateway, chunks, gateway, gateway_with, hello_stream, text_of};
use crate::support::provider::{Reply, StreamStep, done, role_chunk, stream, text_chunk, usage_chunk};
use crate::support::recorded::{self, hello_to};

/// A provider that is retried, and another format at the same address.
const OTHERS: &str = "[providers.patient]\nkind = \"openai\"\nbase_url = \"{base_url}\"\nretries = 2\n\
                      [providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\nretries = 0\n";

async fn with_others(
    inference: &str,
    script: impl Fn(&crate::support::provider::ModelRequest) -> Reply + Send + Sync + 'static,
) -> Gateway {
    gateway_with("", &format!("{OTHERS}{inference}"), |setup| setup, script).await
}

#[tokio::test]
async fn an_end_marker_after_the_usage_completes_an_answer_without_a_finish_reason() {
    let steps = vec![role_chunk(), text_chunk("Four."), StreamStep::APART, usage_chunk(), done()];
    let gateway = with_others("", move |_| Reply::Stream(steps.clone())).await;
    let list = chunks(&gateway.stream(&hello_to("patient/m", true)).await);
    assert_eq!(text_of(&list, 0), "Four.");
    assert!(list.iter().any(|chunk| chunk["choices"][0]["finish_reason"] == "stop"), "{list:?}");
    let booked = gateway.booked();
    assert_eq!((booked.len(), booked[0].1.as_str(), booked[0].3), (1, "ok", 3));
}

#[tokio::test]
async fn a_page_instead_of_a_stream_cannot_be_read_and_goes_to_the_fallback_at_once() {
    let page = "<!doctype html>\n<html><body>\n<h1>Welcome to our portal</h1>\n</body></html>\n";
    let announced =
        Reply::Raw(200, vec![("content-type", "text/html; charset=utf-8".to_owned())], page.to_owned());
    let disguised = Reply::Stream(vec![StreamStep::Send(page.to_owned())]);
    for reply in [announced, disguised] {
        for fallback in ["", "[inference.fallbacks]\n\"patient/m\" = [\"fake/n\"]\n"] {
            let reply = reply.clone();
            let gateway = with_others(fallback, move |ask| match ask.model.as_str() {
                "m" => reply.clone(),
                _ => stream(&["hello"]),
            })
            .await;
            if fallback.is_empty() {
                let (status, body) = gateway.json(&hello_to("patient/m", true)).await;
                assert_eq!((status, body["code"].as_str()), (502, Some("provider_invalid_response")));
                assert!(body["message"].as_str().unwrap().contains("unreadable answer"), "{body}");
                assert_eq!(gateway.provider.requests().len(), 1);
            } else {
                let list = chunks(&gateway.stream(&hello_to("patient/m", true)).await);
                assert_eq!(text_of(&list, 0), "hello");
                assert_eq!(gateway.provider.requests().len(), 2);
            }
        }
    }
}

#[tokio::test]
async fn what_comes_without_a_choice_goes_out_with_the_last_chunk() {
    let events = recorded::events("openai", "chat-stream-moderation").concat();
    let gateway = gateway(move |_| Reply::Stream(vec![StreamStep::Send(events.clone())])).await;
    let list = chunks(&gateway.stream(&hello_stream()).await);
    assert!(list.iter().all(|chunk| chunk["choices"][0].is_object()), "{list:?}");
    let end = list.last().unwrap();
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert_eq!(end["moderation"]["input"][0]["flagged"], false);
    let list = chunks(&gateway.stream(&hello_to("fake/m", true)).await);
    let end = list.last().unwrap();
    assert_eq!((&end["choices"], &end["usage"]["total_tokens"]), (&json!([]), &json!(14)));
    assert_eq!(end["moderation"]["input"][0]["flagged"], false);
}

#[tokio::test]
async fn thoughts_and_sources_reach_the_caller_in_both_forms() {
    for (folder, model) in [("anthropic", "claude/m"), ("google", "gemini/m")] {
        let gateway = recorded::gateway(move |ask| {
            recorded::play(folder, if ask.stream { "chat-stream-citations" } else { "chat-answer-citations" })
        })
        .await;
        let (status, whole) = gateway.json(&hello_to(model, false)).await;
        assert_eq!(status, 200, "{whole}");
        let message = &whole["choices"][0]["message"];
        assert!(message["annotations"].as_array().unwrap().len() == 2, "{message}");
        assert_eq!(message["reasoning_content"], "I look it up.");
        let list = chunks(&gateway.stream(&hello_to(model, true)).await);
        let of_deltas = |name: &str| -> Vec<Value> {
            list.iter()
                .map(|chunk| chunk["choices"][0]["delta"][name].clone())
                .filter(|v| !v.is_null())
                .collect()
        };
        let annotations: Vec<Value> =
            of_deltas("annotations").iter().flat_map(|list| list.as_array().unwrap().clone()).collect();
        assert_eq!(json!(annotations), message["annotations"]);
    }
}

fn with_extras(model: &str) -> Value {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}});
    let content = json!([{"type": "text", "text": "What is this?"}, image, image]);
    json!({
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "seed": 7,
        "verbosity": "low",
        "user": "u-1",
    })
}

#[tokio::test]
async fn what_a_model_does_not_have_is_left_out_and_named_if_the_operator_says_so() {
    let gateway =
        with_others("[inference]\ndrop_unsupported = true\n", |_| Reply::Text("hello".to_owned())).await;
    let response = gateway.ask(&with_extras("claude/m")).await;
    let dropped = response.headers()["x-mk-dropped"].to_str().unwrap().to_owned();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    let mut names: Vec<&str> = dropped.split(", ").collect();
    names.sort_unstable();
    assert_eq!(names, ["image_url.detail", "seed", "user", "verbosity"]);
    let asked = gateway.provider.requests();
    assert_eq!(asked.len(), 1);
    assert!(!asked[0].raw.contains("seed") && asked[0].raw.matches("iVBORw0KGgo=").count() == 2);

    // What an answer is made of is never left out.
    let mut body = with_extras("claude/m");
    body["n"] = json!(2);
    let (status, error) = gateway.json(&body).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("n")), "{error}");
    // A provider of the same format gets everything.
    let response = gateway.ask(&with_extras("fake/m")).await;
    assert_eq!((response.status().as_u16(), response.headers().get("x-mk-dropped")), (200, None));
    assert!(gateway.provider.requests()[1].raw.contains("\"verbosity\":\"low\""));
}

#[tokio::test]
async fn without_that_setting_it_is_refused_by_name() {
    let gateway = with_others("", |_| Reply::Text("hello".to_owned())).await;
    for (name, value) in [("seed", json!(7)), ("verbosity", json!("low"))] {
        let mut body = hello_to("claude/m", false);
        body[name] = value;
        let (status, error) = gateway.json(&body).await;
        assert_eq!((status, error["code"].as_str()), (400, Some("unsupported_parameter")), "{error}");
        assert_eq!(error["param"], name);
    }
    let (status, error) =
        gateway.json(&json!({"model": "claude/m", "messages": with_extras("")["messages"]})).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("messages[0].content[1].image_url.detail")));
    assert_eq!(gateway.provider.requests().len(), 0);
    // What has no effect on the answer is left out all the same, and named.
    let mut body = hello_to("claude/m", false);
    body["prompt_cache_key"] = json!("k");
    assert_eq!(gateway.ask(&body).await.headers()["x-mk-dropped"], "prompt_cache_key");
}

#[tokio::test]
async fn a_content_without_parts_stands_for_no_text_beside_calls_and_of_tools() {
    let gateway = with_others("", |_| Reply::Text("hello".to_owned())).await;
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let conversation = json!([
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": []},
    ]);
    for model in ["fake/m", "claude/m"] {
        let (status, body) = gateway.json(&json!({"model": model, "messages": conversation})).await;
        assert_eq!(status, 200, "{body}");
    }
    for message in [json!({"role": "user", "content": []}), json!({"role": "assistant", "content": []})] {
        let (status, body) = gateway.json(&json!({"model": "fake/m", "messages": [message]})).await;
        assert_eq!((status, body["param"].as_str()), (400, Some("messages[0].content")), "{body}");
    }
}
