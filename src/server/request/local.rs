//! Whether a request comes from this machine itself, and not through a proxy or a rebound page.
//!
//! A proxy on this machine forwards requests of others, and says so. A browser on this machine may show a foreign page
//! whose name resolves to this machine by now (DNS rebinding): it sends the name in `Host`, and no foreign page is
//! named by an IP address of this machine or `localhost`.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, header};

/// Headers that proxies add to the requests they forward.
const FORWARDING: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Whether a request from `peer` with these headers, and this authority in its URI if any, comes from this machine
/// itself.
pub(in crate::server) fn is_local(headers: &HeaderMap, authority: Option<&Authority>, peer: IpAddr) -> bool {
    // One pass over the few headers is cheaper than looking up each of the names.
    peer.to_canonical().is_loopback()
        && !headers.keys().any(|name| FORWARDING.contains(&name.as_str()))
        && has_local_host(authority, headers)
}

/// Whether the request names the server by an IP address, as `localhost`, or not at all, which no browser does.
fn has_local_host(authority: Option<&Authority>, headers: &HeaderMap) -> bool {
    if let Some(authority) = authority {
        return is_local_name(authority.host());
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => true,
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
            host.is_some_and(|host| is_local_name(host.host()))
        }
        (Some(_), Some(_)) => false,
    }
}

fn is_local_name(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    address.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn local(address: &str, headers: &[(&str, &str)], peer: &str) -> bool {
        let request = headers
            .iter()
            .fold(Request::get(address), |request, (name, value)| request.header(*name, *value));
        let request = request.body(()).unwrap();
        is_local(request.headers(), request.uri().authority(), peer.parse().unwrap())
    }

    #[test]
    fn only_direct_requests_from_this_machine_are_local() {
        for peer in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(local("/", &[], peer), "{peer}");
        }
        assert!(!local("/", &[("host", "127.0.0.1")], "10.0.0.1"));
        for name in FORWARDING {
            assert!(!local("/", &[(name, "127.0.0.1")], "127.0.0.1"), "{name}");
        }
    }

    #[test]
    fn only_requests_that_name_an_address_or_localhost_are_local() {
        for host in
            ["127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80", "10.1.2.3", "localhost:80", "a.LocalHost"]
        {
            assert!(local("/", &[("host", host)], "127.0.0.1"), "{host}");
            assert!(local(&format!("http://{host}/"), &[("host", "evil.example")], "127.0.0.1"), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "xlocalhost", "127.0.0.1@evil.example", "", "a b"]
        {
            assert!(!local("/", &[("host", host)], "127.0.0.1"), "{host}");
        }
        assert!(!local("http://evil.example/", &[("host", "localhost")], "127.0.0.1"));
        assert!(!local("/", &[("host", "localhost"), ("host", "localhost")], "127.0.0.1"));
    }
}
