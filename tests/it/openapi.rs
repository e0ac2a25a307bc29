//! `/openapi.json` itself: it is valid `OpenAPI`, complete, and describes exactly the routes that exist.

use std::collections::BTreeSet;

use mk::config::ServerConfig;
use serde_json::Value;

use crate::support::description::Description;
use crate::support::server::{Setup, TestServer, client, sandbox};

async fn server() -> TestServer {
    Setup::new(sandbox()).start().await
}

/// Visits all values of a document, each with its path.
fn walk(value: &Value, place: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(place, value);
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                walk(value, &format!("{place}/{name}"), visit);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{place}/{index}"), visit);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn it_is_valid_by_the_official_openapi_schema() {
    let description = Description::of(&server().await).await;
    // As published at spec.openapis.org/oas/3.1/schema/2022-10-07; it does not check schemas, which are JSON Schema.
    let official: Value = serde_json::from_str(include_str!("../data/openapi/schema-3.1.json")).unwrap();
    let validator = jsonschema::validator_for(&official).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&description.0)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    for (name, schema) in description.0["components"]["schemas"].as_object().unwrap() {
        jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(description.0["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(description.0["servers"][0]["url"], ".");
}

#[tokio::test]
async fn all_references_resolve_and_every_component_is_referenced() {
    let description = Description::of(&server().await).await;
    let mut used = BTreeSet::new();
    walk(&description.0, "", &mut |_, value| {
        if let Some(place) = value.get("$ref").and_then(Value::as_str) {
            description.follow(value);
            used.insert(place.trim_start_matches("#/components/").to_owned());
        }
        for name in value.get("security").and_then(Value::as_array).into_iter().flatten() {
            used.extend(name.as_object().unwrap().keys().map(|name| format!("securitySchemes/{name}")));
        }
    });
    let components = description.0["components"].as_object().unwrap();
    let there: BTreeSet<String> = components
        .iter()
        .flat_map(|(kind, all)| all.as_object().unwrap().keys().map(move |name| format!("{kind}/{name}")))
        .collect();
    // Only mentioned in the document's description: it is the response to methods that are not described.
    let expected: BTreeSet<String> =
        ["MethodNotAllowed", "UpgradeRequired"].map(|name| format!("responses/{name}")).into();
    assert_eq!(there.difference(&used).cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(used.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[tokio::test]
async fn every_example_matches_its_schema() {
    let description = Description::of(&server().await).await;
    let mut examples = 0;
    let mut check = |place: &str, kind: &str, media: &Value, example: &Value| {
        examples += 1;
        match (kind, example) {
            ("text/event-stream", Value::String(text)) => description.check_content(kind, media, text, place),
            _ => description.check(&media["schema"], example, place),
        }
    };
    walk(&description.0, "", &mut |place, value| {
        let Some(map) = value.as_object().filter(|map| map.contains_key("schema")) else { return };
        let kind = place.rsplit_once("/content/").map_or("", |(_, kind)| kind);
        let named = map.get("examples").and_then(Value::as_object).into_iter().flatten();
        let all: Vec<&Value> =
            map.get("example").into_iter().chain(named.map(|(_, one)| &one["value"])).collect();
        assert!(!all.is_empty(), "{place} has no example");
        for example in all {
            check(place, kind, value, example);
        }
    });
    assert!(examples > 100, "{examples}");
}

#[tokio::test]
async fn every_operation_is_fully_described() {
    let description = Description::of(&server().await).await;
    let tags: Vec<&Value> =
        description.0["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut ids = BTreeSet::new();
    for (path, method, operation) in description.operations() {
        let of = format!("{method} {path}");
        for text in ["operationId", "summary", "description"] {
            assert!(!operation[text].as_str().unwrap().is_empty(), "{of}: {text}");
        }
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{of}: its id is taken");
        assert!(tags.contains(&&operation["tags"][0]), "{of}");
        assert!(operation["security"].is_array(), "{of}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(["429", "500"].iter().all(|status| responses.contains_key(*status)), "{of}");
        assert_eq!(operation.get("requestBody").is_some(), responses.contains_key("415"), "{of}");
        let named = operation["parameters"].as_array().unwrap().iter();
        let in_path = named.map(|one| description.follow(one)).filter(|one| one["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{of}");
    }
    walk(&description.0, "", &mut |place, value| {
        let text = value.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(!text.contains("[`") && !text.contains("::"), "{place} speaks Rust: {text}");
    });
}

#[tokio::test]
async fn every_described_path_exists_and_allows_exactly_the_described_methods() {
    let server = server().await;
    let description = Description::of(&server).await;
    for (path, item) in description.0["paths"].as_object().unwrap() {
        let response = client()
            .request("TRACE".parse().unwrap(), format!("{}{path}", server.base))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 405, "{path}");
        let allowed = response.headers()["allow"].to_str().unwrap().to_ascii_lowercase();
        let methods: Vec<&str> = allowed.split(", ").filter(|method| *method != "head").collect();
        assert_eq!(methods, item.as_object().unwrap().keys().collect::<Vec<_>>(), "{path}");
    }
}

#[tokio::test]
async fn a_cached_copy_is_not_sent_again() {
    let server = server().await;
    let ask = |tag: Option<&str>| {
        let request = client().get(format!("{}/openapi.json", server.base));
        tag.iter().fold(request, |request, tag| request.header("if-none-match", *tag))
    };
    let first = ask(None).send().await.unwrap();
    assert_eq!(first.headers()["content-type"], "application/json");
    assert_eq!(first.headers()["x-ratelimit-limit"], "600");
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let again = ask(Some(&tag)).send().await.unwrap();
    assert_eq!(
        (again.status().as_u16(), &again.headers()["etag"]),
        (304, first.headers().get("etag").unwrap())
    );
    assert_eq!(again.headers()["x-ratelimit-remaining"], "598");
    assert_eq!(again.text().await.unwrap(), "");
    assert_eq!(ask(Some("\"another\"")).send().await.unwrap().status(), 200);
    let head = client().head(format!("{}/openapi.json", server.base)).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["etag"]),
        (200, first.headers().get("etag").unwrap())
    );
}

#[tokio::test]
async fn it_states_the_limits_of_this_server() {
    let narrow = |config: &mut ServerConfig| {
        (config.verify.general.max_fact_chars, config.verify.legal.max_fact_chars) = (50, 70);
        config.verify.legal.panel.truncate(2);
    };
    let server = Setup::new(sandbox()).config(narrow).start().await;
    let request =
        Description::of(&server).await.0["components"]["schemas"]["VerifyRequest"]["properties"].clone();
    // The larger value of the two domains.
    assert_eq!(request["fact"]["maxLength"], 70);
    assert_eq!(request["totalModels"]["maximum"], 3);
}
