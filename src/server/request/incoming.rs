//! The data of a request but for its body: who sent it, its key, what it accepts.
//!
//! An [`Incoming`] is put into the request's extensions before any route is tried.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::uri::Authority;
use http::{HeaderMap, Request, header};
use ipnet::IpNet;

use super::header_names;
use super::local::is_local;
use super::record::Record;
use crate::api::console::csv;
use crate::api::endpoint::{Door, Endpoint};
use crate::app::{AppState, Configured};
use crate::keys;

/// What is known about a request before it is routed.
#[derive(Clone)]
pub(crate) struct Incoming {
    /// The caller's own `X-Request-Id` if it is well formed, else a new one.
    pub(crate) request_id: Arc<str>,
    /// The caller's address, as seen through trusted proxies.
    pub(crate) address: IpAddr,
    /// The address of the connection's peer.
    peer: IpAddr,
    /// Whether a trusted proxy has sent it, whose forwarding headers are believed.
    pub(crate) is_proxied: bool,
    /// The server's name in the request's URI; usually only the `Host` header has one.
    pub(crate) authority: Option<Authority>,
    /// What is served at its path.
    pub(crate) endpoint: Option<Endpoint>,
    /// The door that its path is behind, which decides the form of errors.
    pub(crate) door: Door,
    /// The request's headers.
    pub(crate) headers: Arc<HeaderMap>,
    /// The request's record.
    pub(crate) record: Arc<Record>,
    /// The configuration that it is served with to its end, even if it is reloaded meanwhile.
    pub(crate) configured: Arc<Configured>,
}

impl Incoming {
    /// Reads a request's head, and takes its headers out.
    pub(crate) fn new<B>(request: &mut Request<B>, peer: SocketAddr, app: &AppState) -> Self {
        let headers = std::mem::take(request.headers_mut());
        let request_id = request_id(&headers);
        let configured = app.configured();
        let address = client_address(&headers, peer.ip(), &configured.trusted_proxies);
        let (method, path) = (request.method().clone(), request.uri().path());
        let endpoint = Endpoint::find(path);
        Self {
            record: Record::start(
                app.accounting(),
                request_id.clone(),
                address,
                method,
                (endpoint, path),
                app.begin_trace(&headers),
            ),
            endpoint,
            door: Door::of(path),
            peer: peer.ip(),
            is_proxied: is_trusted(peer.ip(), &configured.trusted_proxies),
            authority: request.uri().authority().cloned(),
            headers: Arc::new(headers),
            request_id,
            address,
            configured,
        }
    }

    /// The key that it was sent with, if there is one: as bearer, and behind Anthropic's door also as `x-api-key`. Of
    /// several that differ, nobody can say which one is meant: they count as none.
    pub(crate) fn key(&self) -> Option<&str> {
        let bearer = bearer(&self.headers);
        if self.door != Door::Anthropic {
            return bearer;
        }
        let mut values = self.headers.get_all(&header_names::API_KEY).iter();
        let (first, second) = (values.next(), values.next());
        let key = first.and_then(|value| value.to_str().ok()).map(str::trim).filter(|key| !key.is_empty());
        match (key, bearer) {
            _ if second.is_some() => None,
            (None, bearer) => bearer,
            (Some(key), None) if self.headers.get_all(header::AUTHORIZATION).iter().count() < 2 => Some(key),
            (Some(key), bearer) => bearer.filter(|bearer| *bearer == key),
        }
    }

    /// Whether it was sent with several keys of which nobody can say which one is meant.
    pub(crate) fn has_several_keys(&self) -> bool {
        self.door == Door::Anthropic
            && self.key().is_none()
            && self.headers.contains_key(&header_names::API_KEY)
            && self.headers.contains_key(header::AUTHORIZATION)
    }

    /// Whether it comes from this machine itself, see [`super::local`].
    pub(crate) fn is_local(&self) -> bool {
        is_local(&self.headers, self.authority.as_ref(), self.peer)
    }
}

/// The id of a request: its own `X-Request-Id` if that is well formed, else a new one. Ids are logged, stored and sent
/// back, so that one with a key in it counts as malformed.
pub(crate) fn request_id(headers: &HeaderMap) -> Arc<str> {
    let well_formed = |text: &str| {
        (1..=128).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
            && !keys::contains_key(text)
    };
    let sent = headers.get(&header_names::REQUEST_ID).and_then(|value| value.to_str().ok());
    match sent {
        Some(id) if well_formed(id) => id.into(),
        _ => crate::id::new("req").into(),
    }
}

/// The rightmost address in `X-Forwarded-For` that is not a trusted proxy: everything to its left could be forged.
fn client_address(headers: &HeaderMap, peer: IpAddr, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    if !is_trusted(client, trusted) {
        return client;
    }
    // As bytes: text that is no ASCII further left, which anyone can send, must not hide what a proxy has added.
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    for hop in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
        let Some(address) = hop_address(hop) else { break };
        client = address.to_canonical();
        if !is_trusted(client, trusted) {
            break;
        }
    }
    client
}

/// The address of a hop, which some proxies (Azure's gateway) write with its port.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim();
    let bracketed = || hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    hop.parse().ok().or_else(with_port).or_else(bracketed)
}

fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address.to_canonical()))
}

/// The bearer key of a request, if there is one. Of several, nobody can say which one a proxy on the way has checked:
/// they count as none.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let value = value.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim()).filter(|key| !key.is_empty())
}

/// Whether the caller asks for a JSON document rather than a stream.
pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json") && !accepts(headers, "text/event-stream")
}

/// Whether the caller asks for events where one document is usual: `Accept` names them.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Whether the caller asks for CSV rather than JSON: `Accept` names the former and not the latter.
pub(crate) fn wants_csv(headers: &HeaderMap) -> bool {
    accepts(headers, csv::MEDIA_TYPE) && !accepts(headers, "application/json")
}

/// Whether `Accept` names this media type.
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value
            .split(',')
            .any(|item| item.split(';').next().is_some_and(|item| item.trim().eq_ignore_ascii_case(kind)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn only_well_formed_request_ids_are_kept() {
        assert_eq!(&*request_id(&headers(&[("x-request-id", "abc-1.2_3")])), "abc-1.2_3");
        for wrong in ["", "a b", "a\"b", "a\tb"] {
            assert!(request_id(&headers(&[("x-request-id", wrong)])).starts_with("req_"), "{wrong:?}");
        }
        let with_key = "trace-mk_inference_00000000000000000000000000abcdef.1";
        assert!(request_id(&headers(&[("x-request-id", with_key)])).starts_with("req_"));
    }

    #[test]
    fn forwarded_addresses_count_only_behind_trusted_proxies() {
        let forged = headers(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2, 10.0.0.9")]);
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        let proxy: IpAddr = "10.0.0.1".parse().unwrap();
        let stranger: IpAddr = "9.9.9.9".parse().unwrap();
        assert_eq!(client_address(&forged, stranger, &trusted), stranger);
        assert_eq!(client_address(&forged, proxy, &[]), proxy);
        assert_eq!(client_address(&forged, proxy, &trusted), "2.2.2.2".parse::<IpAddr>().unwrap());
        let senseless = headers(&[("x-forwarded-for", "1.1.1.1, what")]);
        assert_eq!(client_address(&senseless, proxy, &trusted), proxy);
        let lines = headers(&[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2, 10.0.0.9")]);
        assert_eq!(client_address(&lines, proxy, &trusted), "2.2.2.2".parse::<IpAddr>().unwrap());
        for garbage in [&b"\xff, 2.2.2.2"[..], "caf\u{e9},2.2.2.2".as_bytes(), b"1.1.1.1, \xff , 2.2.2.2"] {
            let behind = HeaderMap::from_iter([(
                http::HeaderName::from_static("x-forwarded-for"),
                HeaderValue::from_bytes(garbage).unwrap(),
            )]);
            assert_eq!(client_address(&behind, proxy, &trusted), "2.2.2.2".parse::<IpAddr>().unwrap());
        }
        for (hop, expected) in [
            ("2.2.2.2:1234", "2.2.2.2"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("2.2.2.2:", "10.0.0.1"),
        ] {
            let behind = headers(&[("x-forwarded-for", hop)]);
            assert_eq!(
                client_address(&behind, proxy, &trusted),
                expected.parse::<IpAddr>().unwrap(),
                "{hop}"
            );
        }
    }

    #[test]
    fn json_is_wanted_only_if_a_stream_is_not_accepted() {
        assert!(wants_json(&headers(&[("accept", "application/json; q=0.9")])));
        assert!(!wants_json(&headers(&[("accept", "application/json, text/event-stream")])));
        assert!(!wants_json(&headers(&[("accept", "*/*")])));
        assert!(wants_events(&headers(&[("accept", "application/json, text/event-stream")])));
        assert!(!wants_events(&headers(&[("accept", "*/*")])));
        assert!(wants_csv(&headers(&[("accept", "Text/CSV; header=present, */*;q=0.1")])));
        assert!(!wants_csv(&headers(&[("accept", "application/json, text/csv")])));
        assert!(!wants_csv(&headers(&[])));
        assert!(!wants_json(&headers(&[])));
    }

    #[test]
    fn bearer_keys_are_found_whatever_the_case_of_the_scheme() {
        assert_eq!(bearer(&headers(&[("authorization", "bearer mk_x")])), Some("mk_x"));
        assert_eq!(bearer(&headers(&[("authorization", "Basic mk_x")])), None);
        assert_eq!(bearer(&headers(&[("authorization", "Bearer ")])), None);
        assert_eq!(bearer(&headers(&[("authorization", "Bearer a"), ("authorization", "Bearer b")])), None);
    }
}
