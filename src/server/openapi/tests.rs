//! Tests that need the server's internals: every path of the console is described, and every parameter.

use std::collections::BTreeSet;

use super::*;
use crate::server::console::Endpoint;
use crate::server::verify::PARAMETERS;

const BOUNDS: Bounds = Bounds { fact_chars: 20_000, panel: 5 };

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
fn the_console_has_the_paths_and_methods_that_are_described() {
    let description = describe(BOUNDS);
    let paths = description["paths"].as_object().unwrap();
    let described: Vec<_> =
        paths.iter().filter_map(|(path, item)| Some((path.strip_prefix("/v1/")?, item))).collect();
    let mut remaining: Vec<_> = Endpoint::all().to_vec();
    for (tail, item) in described {
        let endpoint =
            Endpoint::parse(tail).unwrap_or_else(|| panic!("/v1/{tail} is described and not served"));
        let allowed: BTreeSet<String> = endpoint.methods().split(", ").map(str::to_owned).collect();
        assert_eq!(methods(item), allowed, "/v1/{tail}");
        remaining.retain(|other| *other != endpoint);
    }
    assert!(remaining.is_empty(), "served and not described: {remaining:?}");
}

#[test]
fn every_parameter_of_a_verification_is_described() {
    let description = describe(BOUNDS);
    let properties = description["components"]["schemas"]["VerifyRequest"]["properties"].as_object().unwrap();
    let named: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(named, PARAMETERS);
}

#[test]
fn a_panel_of_two_models_allows_no_more_than_two() {
    let description = describe(Bounds { fact_chars: 1, panel: 2 });
    let request = &description["components"]["schemas"]["VerifyRequest"];
    assert_eq!(request["properties"]["minRequired"]["maximum"], 2);
    assert_eq!(request["properties"]["totalModels"]["maximum"], 2);
    assert_eq!(request["then"], Value::Null);
}

#[test]
fn a_copy_is_recognised_by_any_of_its_tags() {
    let etag = HeaderValue::from_static("\"a1\"");
    for (sent, current) in
        [("\"a1\"", true), ("W/\"a1\"", true), ("\"b\", \"a1\"", true), ("*", true), ("a1", false)]
    {
        let headers = [(header::IF_NONE_MATCH, HeaderValue::from_static(sent))].into_iter().collect();
        assert_eq!(has_current_copy(&headers, &etag), current, "{sent}");
    }
}
