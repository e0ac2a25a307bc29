//! Tests of paths under `/v1`.

use super::*;

#[test]
fn the_endpoints_are_those_that_are_counted_by_name() {
    let tails: Vec<&str> =
        crate::metrics::ROUTES.iter().filter_map(|route| route.strip_prefix("/v1/")).collect();
    let found: Vec<_> = tails
        .iter()
        .filter_map(|tail| Endpoint::parse(tail))
        .map(|endpoint| std::mem::discriminant(&endpoint))
        .collect();
    assert_eq!(found.len(), tails.len());
    for endpoint in Endpoint::all() {
        assert!(found.contains(&std::mem::discriminant(&endpoint)), "{}", endpoint.methods());
    }
}

#[test]
fn what_is_almost_a_path_is_none() {
    for tail in ["", "apps/", "apps/a/", "apps/a/keys/", "apps/a/keys/b/rotate/", "key/", "auth", "app"] {
        assert!(Endpoint::parse(tail).is_none(), "{tail}");
    }
}
