//! The address of the database. It may contain a password, so it is displayed without one.
//!
//! The library's own parser takes the rest of a password after an `@` for a host, and does not know the modes that
//! verify the server's certificate. This one refuses whatever could be read in two ways.

mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use trust::Trust;

const PORT: u16 = 5432;

/// The default for connecting to each address of a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_CONNECT_TIMEOUT_SECONDS: u64 = 60;

/// A dead peer is noticed after about 45 s on an idle connection, and after these 10 s if sent data stays
/// unacknowledged. The system's defaults are two hours and a quarter of an hour.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);

const NOT_AN_ADDRESS: &str = "must be \"sqlite\", or the address of a PostgreSQL database: postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const UNESCAPED: &str = "contains a character that must be percent-encoded: `@`, `/`, `?`, `#` and `%` in a password are written %40, %2F, %3F, %23 and %25";
const NO_HOST: &str = "has no host and port (postgres://HOST:PORT/DATABASE), and no socket \
    (postgres:///DATABASE?host=/run/postgresql)";
const BAD_SSLMODE: &str = "has an unsupported `sslmode`: use disable, prefer, require or verify-full; with the \
    last two, `sslrootcert` may be the absolute path of a PEM file; a socket is never encrypted";
const BAD_PARAMETER: &str = "has an unknown parameter or value; allowed are `sslmode`, `sslrootcert`, \
    `channel_binding` (disable, prefer, require), `connect_timeout` (1 to 60 seconds), `application_name` and \
    `options`";

/// Where apps, keys, sessions, audit and usage are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// In files in the data directory.
    #[default]
    Sqlite,
    /// In a database that several servers can share.
    Postgres(PostgresAddress),
}

impl DatabaseUrl {
    /// Parses `sqlite`, or an address like [`PostgresAddress::parse`].
    ///
    /// # Errors
    /// What is wrong, to follow the setting's name.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "sqlite" { Ok(Self::Sqlite) } else { PostgresAddress::parse(text).map(Self::Postgres) }
    }
}

/// Without user and password.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => f.write_str("sqlite"),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

/// The address of a PostgreSQL database. Two are equal if they lead to the same place, with the same credentials and
/// options.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress(Arc<AddressParts>);

#[derive(PartialEq, Eq)]
struct AddressParts {
    config: Config,
    trust: Trust,
    shown: String,
}

impl PostgresAddress {
    /// Parses `postgres://[user[:password]@]host[:port][,host[:port]…][/database][?parameters]`; the scheme may also be
    /// `postgresql`. A directory with a Unix socket takes the place of the host, with its slashes as `%2F`, or is given
    /// by the parameter `host`.
    ///
    /// `sslmode` means what it does for every PostgreSQL client, except that `verify-ca` also checks the name. Of
    /// several hosts, the first that accepts writes is used.
    ///
    /// # Errors
    /// What is wrong, without quoting the text: a quote might contain a part of the password.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let scheme = ["postgres://", "postgresql://"].into_iter().find(|scheme| text.starts_with(scheme));
        let rest = &text[scheme.ok_or(NOT_AN_ADDRESS)?.len()..];
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (login, hosts) = match authority.split_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        // An unescaped one of these in a password would make the rest of it look like the host or the database, which
        // are displayed.
        if rest.contains(|c: char| c == '#' || c.is_whitespace() || c.is_control())
            || hosts.contains('@')
            || database.contains(['@', '/'])
            || query.is_some_and(|query| query.contains('@'))
        {
            return Err(UNESCAPED);
        }
        let parameters = query.map_or_else(|| Some(Parameters::new()), parameters);
        let mut parameters = parameters.ok_or(BAD_PARAMETER)?;
        let endpoints = endpoints(hosts, &mut parameters).ok_or(NO_HOST)?;
        let is_socket = endpoints.iter().any(Endpoint::is_socket);
        let mode = tls_mode(&mut parameters, is_socket).ok_or(BAD_SSLMODE)?;

        let mut config = Config::new();
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            config.user(percent_decoded(user).ok_or(UNESCAPED)?);
            if !password.is_empty() {
                config.password(percent_decoded(password).ok_or(UNESCAPED)?);
            }
        }
        if !database.is_empty() {
            config.dbname(percent_decoded(database).ok_or(UNESCAPED)?);
        }
        for Endpoint { host, port } in &endpoints {
            config.host(host).port(*port);
        }
        config
            .ssl_mode(mode.0)
            .application_name("mk")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives(true)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(TCP_USER_TIMEOUT);
        // A standby may lag behind a revocation, so nothing is read from one.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        for (name, value) in parameters {
            set_parameter(&mut config, name, &value).ok_or(BAD_PARAMETER)?;
        }
        let shown = display_form(&endpoints, database);
        Ok(Self(Arc::new(AddressParts { config, trust: mode.1, shown })))
    }

    /// How to connect, without TLS.
    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    /// How to encrypt, if the server supports it. Blocking: reads certificates.
    ///
    /// # Errors
    /// With the reason, if they cannot be read.
    pub(super) fn tls(&self) -> Result<MakeRustlsConnect, String> {
        self.0.trust.client().map(MakeRustlsConnect::new)
    }
}

/// Without user and password.
impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.shown)
    }
}

/// Like [`Display`](fmt::Display), to keep the password out of logs.
impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.shown)
    }
}

type Parameters<'t> = BTreeMap<&'t str, String>;

/// What to connect to: a host, or the directory of a Unix socket.
struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }
}

/// In the notation that [`PostgresAddress::parse`] reads.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The parameters, each at most once and with a value.
fn parameters(query: &str) -> Option<Parameters<'_>> {
    let mut found = Parameters::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=')?;
        if found.insert(name, percent_decoded(value)?).is_some() {
            return None;
        }
    }
    Some(found)
}

/// Either one socket or hosts.
fn endpoints(hosts: &str, parameters: &mut Parameters<'_>) -> Option<Vec<Endpoint>> {
    if hosts.is_empty() {
        let host = parameters.remove("host").filter(|host| is_directory(host))?;
        let port = parameters.remove("port").map_or(Some(PORT), |text| port(&text))?;
        return Some(vec![Endpoint { host, port }]);
    }
    let endpoints: Vec<Endpoint> = hosts.split(',').map(endpoint).collect::<Option<_>>()?;
    (endpoints.len() == 1 || !endpoints.iter().any(Endpoint::is_socket)).then_some(endpoints)
}

fn endpoint(text: &str) -> Option<Endpoint> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let port = if rest.is_empty() { PORT } else { port(rest.strip_prefix(':')?)? };
        return Some(Endpoint { host: host.parse::<Ipv6Addr>().ok()?.to_string(), port });
    }
    let (host, port) = match text.split_once(':') {
        Some((host, text)) => (host, port(text)?),
        None => (text, PORT),
    };
    let host = percent_decoded(host)?;
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    (is_name || is_directory(&host)).then_some(Endpoint { host, port })
}

/// The library takes a comma for a separator of hosts.
fn is_directory(host: &str) -> bool {
    cfg!(unix) && host.starts_with('/') && !host.contains(|c: char| c == ',' || c.is_control())
}

fn port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port != 0)
}

/// Whether to encrypt, and whom to trust then. Naming a certificate authority requires its verification.
fn tls_mode(parameters: &mut Parameters<'_>, is_socket: bool) -> Option<(SslMode, Trust)> {
    let (mode, authority) = (parameters.remove("sslmode"), parameters.remove("sslrootcert"));
    if is_socket {
        let is_plain = authority.is_none() && mode.is_none_or(|mode| mode == "disable");
        return is_plain.then_some((SslMode::Disable, Trust::Anybody));
    }
    let authority = match authority.as_deref() {
        None => None,
        Some("system") => Some(Trust::System),
        Some(path) => Some(Trust::File(PathBuf::from(path)).if_absolute()?),
    };
    match (mode.as_deref(), authority) {
        (Some("disable"), None) => Some((SslMode::Disable, Trust::Anybody)),
        (None | Some("prefer"), None) => Some((SslMode::Prefer, Trust::Anybody)),
        (Some("require"), None) => Some((SslMode::Require, Trust::Anybody)),
        (Some("verify-ca" | "verify-full"), None) => Some((SslMode::Require, Trust::System)),
        (None | Some("require" | "verify-ca" | "verify-full"), Some(authority)) => {
            Some((SslMode::Require, authority))
        }
        _ => None,
    }
}

fn set_parameter(config: &mut Config, name: &str, value: &str) -> Option<()> {
    match (name, value) {
        ("application_name", name) => config.application_name(name),
        ("options", options) => config.options(options),
        ("connect_timeout", seconds) => {
            let seconds = seconds.parse().ok().filter(|s| (1..=MAX_CONNECT_TIMEOUT_SECONDS).contains(s))?;
            config.connect_timeout(Duration::from_secs(seconds))
        }
        ("target_session_attrs", "read-write" | "primary") => config,
        ("channel_binding", "disable") => config.channel_binding(ChannelBinding::Disable),
        ("channel_binding", "prefer") => config.channel_binding(ChannelBinding::Prefer),
        ("channel_binding", "require") => config.channel_binding(ChannelBinding::Require),
        _ => return None,
    };
    Some(())
}

/// The address without credentials, in a form that can be parsed again. The database is shown if it is named; otherwise
/// its name is the user's.
fn display_form(endpoints: &[Endpoint], database: &str) -> String {
    if let [endpoint @ Endpoint { host, port }] = endpoints
        && endpoint.is_socket()
    {
        let port = if *port == PORT { String::new() } else { format!("&port={port}") };
        return format!("postgres:///{database}?host={host}{port}");
    }
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    let slash = if database.is_empty() { "" } else { "/" };
    format!("postgres://{}{slash}{database}", endpoints.join(","))
}

/// The percent-decoded text; `None` if a `%` is not followed by two hexadecimal digits, or if the result is empty, not
/// UTF-8, or contains a NUL.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut is_digit = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        if byte == b'%' && !(is_digit() && is_digit()) {
            return None;
        }
    }
    let plain = percent_decode_str(text).decode_utf8().ok()?;
    (!plain.is_empty() && !plain.contains('\0')).then(|| plain.into_owned())
}

#[cfg(test)]
mod tests;
