//! `GET /inference/v1/models/{id}`: a single model, as SDKs request it.

use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with};
use crate::support::provider::Reply;
use crate::support::raw::{exchange, request};
use crate::support::server::client;

/// A server that also has a model whose name contains slashes, and characters that are percent-encoded in URLs.
async fn gateway() -> Gateway {
    let slashed = "[providers.fake.models.\"maker/deep/m:1+2\"]\n";
    gateway_with("", slashed, |setup| setup, |_| Reply::Text("Hi".to_owned())).await
}

async fn fetch(gateway: &Gateway, method: Method, key: &str, tail: &str) -> (u16, Value) {
    let request = client().request(method, format!("{}/inference/v1/models/{tail}", gateway.server.base));
    let response = request.bearer_auth(key).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or_default())
}

#[tokio::test]
async fn a_single_model_is_the_same_as_in_the_list() {
    let gateway = gateway().await;
    let list = client().get(format!("{}/inference/v1/models", gateway.server.base)).bearer_auth(&gateway.key);
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    let listed = list["data"].as_array().unwrap();
    assert!(listed.iter().any(|model| model["id"] == "fake/maker/deep/m:1+2"), "{list}");
    for model in listed {
        let id = model["id"].as_str().unwrap();
        for tail in [
            id.to_owned(),
            id.replace('/', "%2F"),
            id.replace('/', "%2f").replace(':', "%3A").replace('+', "%2B"),
        ] {
            let found = fetch(&gateway, Method::GET, &gateway.key, &tail).await;
            assert_eq!(found, (200, model.clone()), "{tail}");
        }
    }
    assert_eq!(fetch(&gateway, Method::HEAD, &gateway.key, "fake/m").await, (200, Value::Null));
}

#[tokio::test]
async fn an_unknown_model_is_not_found_and_its_name_is_not_echoed() {
    let gateway = gateway().await;
    for tail in
        ["fake/nothing", "nobody/m", "fake", "fake%2Fm%00", "%", "%ff", "fake/m/", "a%0d%0ab/c", "fake//m"]
    {
        let (status, error) = fetch(&gateway, Method::GET, &gateway.key, tail).await;
        assert_eq!((status, &error["error"]), (404, &json!("Not Found")), "{tail}: {error}");
        assert_eq!((&error["code"], &error["param"]), (&json!("model_not_found"), &json!("model")), "{tail}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("GET /inference/v1/models"), "{message}");
        assert!(!message.contains("nothing") && !message.contains("nobody"), "{message}");
    }
    let (narrow, _) =
        gateway.server.key_with(Service::Inference, |new| new.models = vec!["fake/n".to_owned()]);
    assert_eq!(fetch(&gateway, Method::GET, &narrow, "fake/n").await.0, 200);
    let (status, error) = fetch(&gateway, Method::GET, &narrow, "fake/m").await;
    assert_eq!((status, &error["code"]), (403, &json!("model_not_allowed")), "{error}");
    let (status, error) = fetch(&gateway, Method::GET, &narrow, "fake/nothing").await;
    assert_eq!((status, &error["code"]), (404, &json!("model_not_found")), "{error}");
}

#[tokio::test]
async fn the_route_checks_method_key_and_service_like_others() {
    let gateway = gateway().await;
    let (status, error) = fetch(&gateway, Method::DELETE, &gateway.key, "fake/m").await;
    assert_eq!((status, &error["code"]), (405, &json!("method_not_allowed")));
    let without = client().get(format!("{}/inference/v1/models/fake/m", gateway.server.base));
    assert_eq!(without.send().await.unwrap().status(), 401);
    let other = gateway.server.key(Service::Verify);
    assert_eq!(fetch(&gateway, Method::GET, &other, "fake/m").await.1["code"], "wrong_service");
    // Dot segments are not resolved: the rest of the path is the name of a model, which does not exist.
    let bearer = format!("Bearer {}", gateway.key);
    let traversal = request("GET", "/inference/v1/models/../models", &[("authorization", &bearer)], "");
    let answer = exchange(gateway.server.authority(), &traversal).await;
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("model_not_found"), "{answer}");
}
