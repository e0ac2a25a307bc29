//! Tests that need the server's internals: every path is described, and every parameter.

use std::collections::BTreeSet;

use super::*;
use crate::api::endpoint::Endpoint;
use crate::server::endpoints::verify::PARAMETERS;

const BOUNDS: Bounds = Bounds { fact_chars: 20_000, panel: 5 };

fn described(bounds: Bounds) -> Value {
    describe(bounds).unwrap()
}

/// The methods that the description has for a path, as `Allow` would list them.
fn methods(item: &Value) -> BTreeSet<String> {
    let mut methods: BTreeSet<String> =
        item.as_object().unwrap().keys().map(|method| method.to_ascii_uppercase()).collect();
    if methods.contains("GET") {
        methods.insert("HEAD".to_owned());
    }
    methods
}

#[test]
fn every_endpoint_but_the_pages_for_people_is_described_with_its_methods() {
    let description = described(BOUNDS);
    let mut described = description["paths"].as_object().unwrap().clone();
    for endpoint in Endpoint::all() {
        let for_people = matches!(
            endpoint,
            Endpoint::Dashboard | Endpoint::Asset | Endpoint::Docs | Endpoint::Topic | Endpoint::Llms
        );
        let Some(item) = described.remove(endpoint.path()) else {
            assert!(for_people, "{} is served and not described", endpoint.path());
            continue;
        };
        let allowed: BTreeSet<String> = endpoint.methods().split(", ").map(str::to_owned).collect();
        assert_eq!(methods(&item), allowed, "{}", endpoint.path());
    }
    assert!(described.is_empty(), "described and not served: {described:?}");
}

#[test]
fn every_parameter_of_a_verification_is_described() {
    let description = described(BOUNDS);
    let properties = description["components"]["schemas"]["VerifyRequest"]["properties"].as_object().unwrap();
    let named: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(named, PARAMETERS);
}

#[test]
fn a_panel_of_two_models_allows_no_more_than_two() {
    let description = described(Bounds { fact_chars: 1, panel: 2 });
    let request = &description["components"]["schemas"]["VerifyRequest"];
    assert_eq!(request["properties"]["minRequired"]["maximum"], 2);
    assert_eq!(request["properties"]["totalModels"]["maximum"], 2);
    assert_eq!(request["then"], Value::Null);
}

/// All names of values that are left in a part of the description.
fn unknown_names(part: &Value) -> Vec<&str> {
    match part {
        Value::String(text) => text.starts_with('$').then_some(text.as_str()).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(unknown_names).collect(),
        Value::Object(map) => map.values().flat_map(unknown_names).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_value_that_is_named_is_known() {
    let description = described(BOUNDS);
    assert_eq!(unknown_names(&description), [""; 0]);
}

/// All schemas in a part of the description that are arrays, or may be.
fn arrays<'d>(part: &'d Value, found: &mut Vec<&'d Value>) {
    match part {
        Value::Object(map) => {
            let is_array = |kind: &Value| kind == "array";
            let kind = map.get("type");
            if kind.is_some_and(|kind| {
                is_array(kind) || kind.as_array().is_some_and(|list| list.iter().any(is_array))
            }) {
                found.push(part);
            }
            map.values().for_each(|value| arrays(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| arrays(value, found)),
        _ => {}
    }
}

#[test]
fn every_array_says_what_it_holds() {
    let description = described(BOUNDS);
    let mut found = Vec::new();
    arrays(&description, &mut found);
    assert!(found.len() > 20);
    for array in found {
        assert!(array["items"].is_object() || array["prefixItems"].is_array(), "{array}");
    }
}

#[test]
fn json_comes_before_other_media_types() {
    let description = described(BOUNDS);
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let content = operation["responses"]["200"]["content"].as_object();
            let kinds: Vec<&String> = content.into_iter().flat_map(|content| content.keys()).collect();
            let json = kinds.iter().position(|kind| *kind == "application/json");
            assert!(json.is_none_or(|position| position == 0), "{method} {path}: {kinds:?}");
        }
    }
}

#[test]
fn every_code_is_listed_once() {
    let description = described(BOUNDS);
    let listed = description["components"]["schemas"]["ErrorCode"]["enum"].as_array().unwrap().clone();
    for code in ["invalid_json", "price_unknown", "headers_too_large", "provider_timeout"] {
        assert_eq!(listed.iter().filter(|known| *known == code).count(), 1, "{code}");
    }
    let body = &description["components"]["schemas"]["ErrorBody"]["properties"]["code"];
    assert_eq!(body["anyOf"][0]["$ref"], "#/components/schemas/ErrorCode");
}
