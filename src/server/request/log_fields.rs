//! What is logged of a request's head: its path without the secrets in it, its method and address, all of bounded
//! length.
//!
//! Secrets are in a path because people and programs put them there: some take the key itself for its id, and the link
//! that makes the first key has its token behind `#`, where no browser sends it, until somebody leaves the `#` out.

use std::borrow::Cow;
use std::net::IpAddr;

use http::Method;

use crate::api::Service;
use crate::api::endpoint::Endpoint;
use crate::keys::setup;

/// The most characters of a path.
const MAX_PATH: usize = 200;
/// The most characters of a method; the longest standard one has 7.
const MAX_METHOD: usize = 20;

/// A path as it is logged.
pub(in crate::server) fn path(endpoint: Option<Endpoint>, path: &str) -> Cow<'static, str> {
    match endpoint.map(Endpoint::path) {
        Some(known) if known == path => Cow::Borrowed(known),
        _ => Cow::Owned(without_secrets(path)),
    }
}

fn without_secrets(path: &str) -> String {
    let is_harmless = |part: &str| part != "setup" && !setup::looks_like_a_token(part);
    if path.len() <= MAX_PATH && !path.contains("mk_") && path.split('/').all(is_harmless) {
        return path.to_owned();
    }
    let mut output = String::with_capacity(path.len().min(MAX_PATH));
    let mut is_after_setup = false;
    for (at, part) in path.split('/').enumerate() {
        if at > 0 {
            output.push('/');
        }
        if (is_after_setup && !part.is_empty()) || setup::looks_like_a_token(part) {
            output.push('…');
        } else {
            push_without_keys(&mut output, part);
        }
        is_after_setup = part == "setup";
        if output.len() > 4 * MAX_PATH {
            break;
        }
    }
    output.chars().take(MAX_PATH).collect()
}

/// A method as it is logged.
pub(in crate::server) fn method(method: &Method) -> &str {
    let method = method.as_str();
    method.get(..MAX_METHOD).unwrap_or(method)
}

/// A caller's address as it is logged. IPv4 addresses are formatted by hand: by the standard library, a refusal or a health
/// page takes 3 to 4 % more instructions (28 November 2026).
pub(in crate::server) fn address(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else { return address.to_string() };
    let mut output = String::with_capacity("255.255.255.255".len());
    for (at, octet) in address.octets().into_iter().enumerate() {
        if at > 0 {
            output.push('.');
        }
        output.push_str(itoa::Buffer::new().format(octet));
    }
    output
}

/// Appends a text with the secret part of every key replaced by `…`.
fn push_without_keys(output: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find("mk_") {
        let (before, from) = rest.split_at(at);
        let secret_of = |service: &Service| from.strip_prefix(format!("mk_{service}_").as_str());
        let Some(secret) = Service::ALL.iter().find_map(secret_of) else {
            output.push_str(&rest[..at + 3]);
            rest = &from[3..];
            continue;
        };
        output.push_str(before);
        output.push_str(&from[..from.len() - secret.len()]);
        output.push('…');
        rest = secret.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    }
    output.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "abcdefghijklmnopqrstuvwxyz";

    #[test]
    fn a_path_is_logged_without_its_secrets() {
        for (given, expected) in [
            ("/verify/v1/stream".to_owned(), "/verify/v1/stream"),
            (
                "/v1/apps/app_01a1fd278e80700080c796080596f6bd".to_owned(),
                "/v1/apps/app_01a1fd278e80700080c796080596f6bd",
            ),
            ("/v1/keys/mk_verify_abc".to_owned(), "/v1/keys/mk_verify_…"),
            ("/k=mk_console_abc;mk_x/mk_inference_a.b".to_owned(), "/k=mk_console_…;mk_x/mk_inference_….b"),
            (format!("/setup/{TOKEN}"), "/setup/…"),
            (format!("/%23/setup/x{TOKEN}."), "/%23/setup/…"),
            (format!("/{TOKEN}/{TOKEN}a"), "/…/abcdefghijklmnopqrstuvwxyza"),
            ("/v1/auth/setup".to_owned(), "/v1/auth/setup"),
            ("/setup/".to_owned(), "/setup/"),
            ("/".to_owned(), "/"),
            ("*".to_owned(), "*"),
        ] {
            assert_eq!(path(Endpoint::find(&given), &given), expected);
        }
        assert_eq!(without_secrets(&"/a".repeat(40_000)), "/a".repeat(100));
        assert_eq!(without_secrets(&format!("/{}", "é".repeat(40_000))).chars().count(), 200);
    }

    #[test]
    fn addresses_are_formatted_like_those_of_the_standard_library() {
        for text in ["0.0.0.0", "127.0.0.1", "255.249.10.99", "::1", "2001:db8::7", "::ffff:10.0.0.1"] {
            assert_eq!(address(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn methods_are_cut_short() {
        assert_eq!(method(&Method::OPTIONS), "OPTIONS");
        assert_eq!(method(&Method::from_bytes(&vec![b'M'; 60_000]).unwrap()), "M".repeat(20));
    }
}
