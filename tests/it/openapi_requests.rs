//! Verification and completion requests: the server accepts exactly what `/openapi.json` describes.

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::chat::{gateway, hello};
use crate::support::description::Description;
use crate::support::provider::Reply;
use crate::support::server::{Setup, sandbox};

/// Copies of `base` with each of these values for a field; `Value::Null` is sent as null.
pub fn each(base: &Value, field: &str, values: &[Value]) -> Vec<Value> {
    let with = |value: &Value| {
        let mut body = base.clone();
        body[field] = value.clone();
        body
    };
    values.iter().map(with).collect()
}

#[tokio::test]
async fn verifications_are_accepted_as_described() {
    let server = Setup::new(sandbox()).start().await;
    let (key, _) = server.key_with(Service::Verify, |new| (new.per_minute, new.per_day) = (Some(0), Some(0)));
    let schema = Description::of(&server).await.named("VerifyRequest");

    let base = json!({"fact": "Is it raining?"});
    let text = |length: usize| json!("é".repeat(length));
    let mut bodies = vec![
        base.clone(),
        json!({}),
        json!([]),
        json!("fact"),
        json!({"fact": "The Eiffel Tower is in Paris.", "facts": 1}),
    ];
    bodies.extend(each(
        &base,
        "fact",
        &[
            json!(""),
            json!(" \n\u{2003}"),
            json!("France\0is Paris"),
            json!("\u{1e}"),
            json!("\u{200b} \u{202e}"),
            json!("a\nb"),
            json!(5),
            Value::Null,
            text(200_000),
            text(200_001),
        ],
    ));
    bodies.extend(each(
        &base,
        "domain",
        &[json!("general"), json!("legal"), json!("medical"), json!(1), Value::Null],
    ));
    let numbers = [
        json!(1),
        json!(2),
        json!(3),
        json!(4),
        json!(10),
        json!(-2),
        json!(2.0),
        json!(2.5),
        json!("2"),
        json!(true),
        Value::Null,
    ];
    bodies.extend(each(&base, "minRequired", &numbers));
    bodies.extend(each(&base, "totalModels", &numbers));
    bodies.extend(each(&json!({"fact": "Is it raining?", "minRequired": 3}), "totalModels", &numbers));
    let dates =
        ["2026-11-20", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00.5+01:00", "2026-13-20", "yesterday", ""];
    bodies.extend(each(&base, "asOf", &dates.map(|date| json!(date))));
    bodies.extend(each(&base, "asOf", &[json!(2026), Value::Null]));
    bodies.extend(each(&base, "explain", &[json!(true), json!(false), json!("yes"), json!(1), Value::Null]));
    bodies.extend(each(
        &base,
        "context",
        &[json!(""), json!("x"), json!("x\0"), json!([]), text(100_000), text(100_001), Value::Null],
    ));

    for body in bodies {
        let response = server.verify(&key, &body).header("accept", "application/json").send().await.unwrap();
        let (status, answer) = (response.status().as_u16(), response.text().await.unwrap());
        assert!(status == 200 || status == 400, "{status}: {answer}");
        assert_eq!(status == 200, schema.is_valid(&body), "{:.200}: {answer}", body.to_string());
    }
}

#[tokio::test]
async fn completions_are_accepted_as_described() {
    let gateway = gateway(|_| Reply::Text("Hello".to_owned())).await;
    let (key, _) =
        gateway.server.key_with(Service::Inference, |new| (new.per_minute, new.per_day) = (Some(0), Some(0)));
    let schema = Description::of(&gateway.server).await.named("ChatCompletionRequest");

    let base = hello();
    let mut bodies = vec![
        base.clone(),
        json!({}),
        json!([]),
        json!({"model": "fake/m"}),
        json!({"messages": base["messages"]}),
    ];
    bodies.extend(each(&base, "something_new", &[json!(1), Value::Null]));
    bodies.extend(each(&base, "model", &[json!(""), json!(5), Value::Null]));
    bodies.extend(each(&base, "messages", &[json!([]), json!("x"), json!({}), json!([5]), Value::Null]));
    bodies.extend(messages().iter().map(|message| {
        let mut body = base.clone();
        body["messages"] = json!([message]);
        body
    }));
    let numbers = [
        json!(-0.1),
        json!(0),
        json!(1),
        json!(2),
        json!(2.1),
        json!(0.5),
        json!("1"),
        json!(true),
        Value::Null,
    ];
    bodies.extend(each(&base, "temperature", &numbers));
    let counts = [
        json!(0),
        json!(1),
        json!(128),
        json!(129),
        json!(4_294_967_295_u64),
        json!(4_294_967_296_u64),
        json!(-1),
        json!(1.5),
        json!("1"),
        Value::Null,
    ];
    for field in ["max_tokens", "max_completion_tokens", "n"] {
        bodies.extend(each(&base, field, &counts));
    }
    bodies.extend(each(&base, "stream", &[json!(false), json!("no"), json!(0), Value::Null]));
    let options = [
        json!({}),
        json!({"include_usage": false}),
        json!({"include_usage": null}),
        json!({"include_usage": 1}),
        json!([]),
        json!(true),
        Value::Null,
    ];
    bodies.extend(each(&base, "stream_options", &options));

    for body in bodies {
        let response = gateway.post_as(&key, body.to_string()).send().await.unwrap();
        let (status, answer) = (response.status().as_u16(), response.text().await.unwrap());
        // To the server an empty name is just an unknown model.
        assert!(status == 200 || status == 400 || body["model"] == "", "{status}: {answer}");
        assert_eq!(status == 200, schema.is_valid(&body), "{body}: {answer}");
    }
}

/// Valid and invalid messages.
fn messages() -> Vec<Value> {
    let user = |content: Value| json!({"role": "user", "content": content});
    let mut all = vec![
        json!({}),
        json!({"role": "user"}),
        json!({"content": "x"}),
        json!({"role": "robot", "content": "x"}),
        json!({"role": 5, "content": "x"}),
        json!({"role": "user", "content": "x", "name": "Ann"}),
        json!({"role": "user", "tool_calls": [{}]}),
        json!({"role": "assistant"}),
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant", "content": null, "tool_calls": null}),
        json!({"role": "assistant", "content": null, "tool_calls": [{}]}),
        json!({"role": "assistant", "content": 5, "tool_calls": [{}]}),
        json!({"role": "assistant", "refusal": "no"}),
        json!({"role": "assistant", "audio": {"id": "a"}}),
        json!({"role": "assistant", "function_call": {"name": "f", "arguments": ""}}),
    ];
    all.extend(
        ["system", "assistant", "developer", "tool"].map(|role| json!({"role": role, "content": "x"})),
    );
    all.extend([json!(""), json!(5), Value::Null, json!([]), json!([5]), json!([{}]), json!({})].map(user));
    let parts = [
        json!({"type": "text", "text": "x"}),
        json!({"type": "text", "text": ""}),
        json!({"type": "text"}),
        json!({"type": "text", "text": 5}),
        json!({"type": "text", "text": null}),
        json!({"type": "image_url", "image_url": {"url": "data:,"}}),
        json!({"type": 5}),
        json!({"text": "x"}),
    ];
    all.extend(parts.map(|part| user(json!([part]))));
    all
}
