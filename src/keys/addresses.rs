//! The networks a key may be used from, in CIDR notation or as single addresses.
//!
//! An IPv4 client of a dual-stack listener arrives as `::ffff:192.0.2.1`. Both sides of the comparison are converted to
//! IPv4 first, so that it does not matter how either was written.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

/// Parses a network, or a single address as a network of its own; bits beyond the prefix are cleared.
pub(super) fn parse(text: &str) -> Option<IpNet> {
    let text = text.trim();
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse::<IpNet>().ok()?,
    };
    Some(canonical(network.trunc()))
}

/// Whether `address` lies in one of `networks`; an empty list allows all. An unparsable entry allows none.
pub(super) fn allow(networks: &[String], address: IpAddr) -> bool {
    if networks.is_empty() {
        return true;
    }
    let address = address.to_canonical();
    networks.iter().filter_map(|text| parse(text)).any(|network| network.contains(&address))
}

/// Converts `::ffff:0:0/96` and networks within it to IPv4.
fn canonical(network: IpNet) -> IpNet {
    const MAPPED_PREFIX: u8 = 96;
    let mapped: Option<Ipv4Addr> = match network {
        IpNet::V6(v6) => v6.addr().to_ipv4_mapped(),
        IpNet::V4(_) => None,
    };
    let as_v4 = mapped.and_then(|address| {
        let prefix = network.prefix_len().checked_sub(MAPPED_PREFIX)?;
        Ipv4Net::new(address, prefix).ok()
    });
    as_v4.map_or(network, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(networks: &[&str], address: &str) -> bool {
        let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
        allow(&networks, address.parse().unwrap())
    }

    #[test]
    fn networks_and_single_addresses() {
        assert!(allowed(&[], "203.0.113.9"));
        assert!(allowed(&["10.0.0.0/8", "192.0.2.7"], "192.0.2.7"));
        assert!(!allowed(&["10.0.0.0/8", "192.0.2.7"], "192.0.2.8"));
        assert!(allowed(&["2001:db8::/32"], "2001:db8:1::5"));
        assert!(!allowed(&["2001:db8::/32"], "10.0.0.1"));
    }

    #[test]
    fn mapped_ipv4_addresses_count_as_ipv4() {
        assert!(allowed(&["192.0.2.0/24"], "::ffff:192.0.2.7"));
        assert!(allowed(&["::ffff:192.0.2.0/120"], "192.0.2.7"));
        assert!(allowed(&["::ffff:192.0.2.7"], "::ffff:192.0.2.7"));
        assert!(!allowed(&["0.0.0.0/0"], "2001:db8::1"));
    }

    #[test]
    fn unparsable_networks_allow_nothing() {
        for wrong in ["", "10.0.0.0/33", "localhost", "10.0.0", "10.0.0.1-10.0.0.9"] {
            assert_eq!(parse(wrong), None, "{wrong}");
            assert!(!allowed(&[wrong], "10.0.0.1"));
        }
    }

    #[test]
    fn bits_beyond_the_prefix_are_cleared() {
        assert_eq!(parse("10.1.2.3/8").unwrap().to_string(), "10.0.0.0/8");
    }
}
