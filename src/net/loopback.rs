//! Recognises the hosts that are this machine: what is sent there never leaves it, and they share its clock.

use std::net::IpAddr;

/// Whether a host, as written in a URL, is this machine: `localhost`, a name within it (RFC 6761, section 6.3), or a
/// loopback address, in brackets or not.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_named = bare == "localhost" || bare.ends_with(".localhost");
    is_named || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_recognised_in_all_spellings() {
        for host in ["localhost", "mk.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "localhost.example.com", "notlocalhost", "10.0.0.1", "0.0.0.0", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
