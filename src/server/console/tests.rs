//! The addresses under `/v1`, and what only looks like one.

use super::*;

#[test]
fn the_addresses_are_those_that_are_counted_by_name() {
    let tails: Vec<&str> =
        crate::metrics::ROUTES.iter().filter_map(|route| route.strip_prefix("/v1/")).collect();
    let found: Vec<_> =
        tails.iter().filter_map(|tail| Endpoint::at(tail)).map(|at| std::mem::discriminant(&at)).collect();
    assert_eq!(found.len(), tails.len());
    for endpoint in Endpoint::all() {
        assert!(found.contains(&std::mem::discriminant(&endpoint)), "{}", endpoint.methods());
    }
}

#[test]
fn what_is_almost_an_address_is_none() {
    for tail in ["", "apps/", "apps/a/", "apps/a/keys/", "apps/a/keys/b/rotate/", "key/", "auth", "app"] {
        assert!(Endpoint::at(tail).is_none(), "{tail}");
    }
}
