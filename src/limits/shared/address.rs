//! The address of the limits store. It may contain a password, so it is displayed without one.

use std::fmt;
use std::sync::Arc;

use redis::{Client, ConnectionAddr, IntoConnectionInfo, parse_redis_url};

/// Where limits are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LimitsStore {
    /// In this server's memory, for this server alone.
    #[default]
    Memory,
    /// In a store, together with all servers that use it.
    Shared(StoreAddress),
}

impl LimitsStore {
    /// Parses `memory`, or an address like [`StoreAddress::parse`].
    pub fn parse(text: &str) -> Option<Self> {
        if text == "memory" { Some(Self::Memory) } else { StoreAddress::parse(text).map(Self::Shared) }
    }
}

/// Without user and password.
impl fmt::Display for LimitsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Shared(address) => address.fmt(f),
        }
    }
}

/// The address of a Redis or Valkey server.
#[derive(Clone)]
pub struct StoreAddress {
    client: Arc<Client>,
    shown: Arc<str>,
}

impl StoreAddress {
    /// Parses `redis://[[user]:password@]host[:port][/database]`, the same with `rediss` for TLS, or
    /// `redis+unix:///path[?db=…&user=…&pass=…]`; `valkey` may replace `redis` in each. `None` if it is none of these.
    pub fn parse(text: &str) -> Option<Self> {
        let url = parse_redis_url(text)?;
        // Refuses what does not mean what it seems to: a fragment turns off TLS verification, a query is ignored if
        // there is a host, and a password with an unescaped `?` ends up as one.
        let is_path = url.host().is_none();
        let is_known = |name: &str| is_path && ["db", "user", "pass"].contains(&name);
        if url.fragment().is_some()
            || url.port() == Some(0)
            || url.query().is_some_and(str::is_empty)
            || !url.query_pairs().all(|(name, _)| is_known(&name))
            || url.host_str().is_some_and(|host| host.contains(','))
        {
            return None;
        }
        let scheme = url.scheme().to_owned();
        let info = url.into_connection_info().ok()?;
        let database = info.redis_settings().db();
        if !info.addr().is_supported() || database < 0 {
            return None;
        }
        let place = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }
                if host.contains(':') =>
            {
                format!("[{host}]:{port}")
            }
            other => other.to_string(),
        };
        let database = if database == 0 { String::new() } else { format!("/{database}") };
        let client = Client::open(info).ok()?;
        Some(Self { client: client.into(), shown: format!("{scheme}://{place}{database}").into() })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

/// Equal if it is the same server with the same credentials.
impl PartialEq for StoreAddress {
    fn eq(&self, other: &Self) -> bool {
        let [ours, theirs] =
            [self, other].map(|address| address.client.get_connection_info().redis_settings());
        self.shown == other.shown
            && ours.username() == theirs.username()
            && ours.password() == theirs.password()
    }
}

impl Eq for StoreAddress {}

/// Without user and password.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Like [`Display`](fmt::Display), to keep the password out of logs.
impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (text, shown) in [
            ("redis://db.example", "redis://db.example:6379"),
            ("redis://:hunter2@db.example:7000/3", "redis://db.example:7000/3"),
            ("rediss://mk:hunter2@db.example", "rediss://db.example:6379"),
            ("valkey://[::1]:7000", "valkey://[::1]:7000"),
            ("redis+unix:///run/redis.sock?pass=hunter2", "redis+unix:///run/redis.sock"),
        ] {
            let address = StoreAddress::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((address.to_string(), format!("{address:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for text in [
            "",
            "memory",
            "db.example",
            "http://db.example",
            "redis://",
            "redis://db.example/first",
            "redis://db.example/-1",
            "redis://db.example:99999",
            "rediss://db.example#insecure",
            "redis://db.example?db=3",
            "redis://hunter2?secret@127.0.0.1",
            "redis+unix:///run/redis.sock?password=hunter2",
            "redis://one.example,two.example",
            "redis://db.example:0",
        ] {
            assert!(StoreAddress::parse(text).is_none(), "{text}");
        }
    }
}
