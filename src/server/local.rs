//! Whether a request comes from this machine itself, and from nobody behind it.
//!
//! A proxy that runs here passes on requests of others, and says so. A browser that runs here asks for pages of others,
//! whose name may lead to this machine by now (DNS rebinding): it tells the name in `Host`, and no foreign page has an
//! address of this machine, or `localhost`, for its name.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, header};

/// What proxies add to the requests that they pass on.
const FORWARDING: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Whether a request of `peer` with these headers, and perhaps this authority in its address, comes from the machine
/// itself.
pub(super) fn is_local(headers: &HeaderMap, authority: Option<&Authority>, peer: IpAddr) -> bool {
    // One pass over the few headers there are costs less than looking for each of the names.
    peer.to_canonical().is_loopback()
        && !headers.keys().any(|name| FORWARDING.contains(&name.as_str()))
        && is_plainly_addressed(authority, headers)
}

/// Whether the server is called by an address, or as `localhost`, or not at all, which no browser does.
fn is_plainly_addressed(authority: Option<&Authority>, headers: &HeaderMap) -> bool {
    if let Some(authority) = authority {
        return is_plain(authority.host());
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => true,
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
            host.is_some_and(|host| is_plain(host.host()))
        }
        (Some(_), Some(_)) => false,
    }
}

fn is_plain(host: &str) -> bool {
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
    fn only_who_is_here_is_local() {
        for peer in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(local("/", &[], peer), "{peer}");
        }
        assert!(!local("/", &[("host", "127.0.0.1")], "10.0.0.1"));
        for name in FORWARDING {
            assert!(!local("/", &[(name, "127.0.0.1")], "127.0.0.1"), "{name}");
        }
    }

    #[test]
    fn only_who_calls_this_machine_by_its_address_is_local() {
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
