//! Where the database is. Its text may hold a password, so it shows itself without one.
//!
//! The library has a parser of its own, which takes the rest of a password with an `@` in it for a host, and does not know
//! the modes in which the server's certificate is checked. This one refuses what could be read in two ways.

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

/// To each address of a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const LONGEST_CONNECT_TIMEOUT: u64 = 60;

/// A peer that is gone is noticed after about 45 s on a connection that is idle, and after these 10 s where something
/// was sent that is not acknowledged. The system's own times are two hours and a quarter of an hour.
const IDLE: Duration = Duration::from_secs(30);
const PROBE: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

const NO_ADDRESS: &str = "must be \"sqlite\", or the address of a PostgreSQL database: postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const UNESCAPED: &str = "contains a character that must be percent-encoded: `@`, `/`, `?`, `#` and `%` in a password are written %40, %2F, %3F, %23 and %25";
const NO_HOST: &str = "has no host and port to go to (postgres://HOST:PORT/DATABASE), and no socket (postgres:///DATABASE?host=/run/postgresql)";
const ENCRYPTION: &str = "has an `sslmode` that is not supported: it is disable, prefer, require or verify-full, `sslrootcert` the absolute path of a file in PEM and goes with the last two, and a socket is never encrypted";
const UNKNOWN_PARAMETER: &str = "has a parameter, or a value of one, that is not known: there are `sslmode`, `sslrootcert`, `channel_binding` (disable, prefer, require), `connect_timeout` (1 to 60 seconds), `application_name` and `options`";

/// Where apps, keys, sessions, audit and usage are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// In files of the data directory.
    #[default]
    Sqlite,
    /// In a database that several servers share.
    Postgres(PostgresAddress),
}

impl DatabaseUrl {
    /// Reads `sqlite`, or an address as [`PostgresAddress::parse`] does.
    ///
    /// # Errors
    /// What is wrong, to stand behind the setting's name.
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

/// The address of a PostgreSQL database. Two are the same if they lead to the same place, in the same name and way.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress(Arc<Target>);

#[derive(PartialEq, Eq)]
struct Target {
    config: Config,
    trust: Trust,
    shown: String,
}

impl PostgresAddress {
    /// Reads `postgres://[user[:password]@]host[:port][,host[:port]…][/database][?parameters]`, also with `postgresql`.
    /// A directory with a socket stands in the place of the host with its slashes as `%2F`, or in the parameter `host`.
    ///
    /// `sslmode` means what it does for every PostgreSQL client, but for `verify-ca`, which checks the name too. Of several
    /// hosts, the first that takes writes is used.
    ///
    /// # Errors
    /// What is wrong, without anything of the text: it may be a part of the password.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let scheme = ["postgres://", "postgresql://"].into_iter().find(|scheme| text.starts_with(scheme));
        let rest = &text[scheme.ok_or(NO_ADDRESS)?.len()..];
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (login, hosts) = match authority.split_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        // Where a password has one of these, the rest of it would be taken for what is shown: host or database.
        if rest.contains(|c: char| c == '#' || c.is_whitespace() || c.is_control())
            || hosts.contains('@')
            || database.contains(['@', '/'])
            || query.is_some_and(|query| query.contains('@'))
        {
            return Err(UNESCAPED);
        }
        let parameters = query.map_or_else(|| Some(Parameters::new()), parameters);
        let mut parameters = parameters.ok_or(UNKNOWN_PARAMETER)?;
        let sites = sites(hosts, &mut parameters).ok_or(NO_HOST)?;
        let is_socket = sites.iter().any(Site::is_socket);
        let mode = encryption(&mut parameters, is_socket).ok_or(ENCRYPTION)?;

        let mut config = Config::new();
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            config.user(decoded(user).ok_or(UNESCAPED)?);
            if !password.is_empty() {
                config.password(decoded(password).ok_or(UNESCAPED)?);
            }
        }
        if !database.is_empty() {
            config.dbname(decoded(database).ok_or(UNESCAPED)?);
        }
        for Site { host, port } in &sites {
            config.host(host).port(*port);
        }
        config
            .ssl_mode(mode.0)
            .application_name("mk")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives(true)
            .keepalives_idle(IDLE)
            .keepalives_interval(PROBE)
            .keepalives_retries(PROBES)
            .tcp_user_timeout(UNACKNOWLEDGED);
        // A standby may not have heard of a revocation yet: nothing is read from it.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        for (name, value) in parameters {
            set(&mut config, name, &value).ok_or(UNKNOWN_PARAMETER)?;
        }
        let shown = shown(&sites, database);
        Ok(Self(Arc::new(Target { config, trust: mode.1, shown })))
    }

    /// How to connect, but for TLS.
    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    /// How to encrypt, where the server does. Blocking: reads certificates.
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

/// As [`Display`](fmt::Display).
impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.shown)
    }
}

type Parameters<'t> = BTreeMap<&'t str, String>;

/// What is to be connected to: a host, or the directory of a socket.
struct Site {
    host: String,
    port: u16,
}

impl Site {
    fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }
}

/// As it is shown, and read.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Each of them once, and none without a value.
fn parameters(query: &str) -> Option<Parameters<'_>> {
    let mut found = Parameters::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=')?;
        if found.insert(name, decoded(value)?).is_some() {
            return None;
        }
    }
    Some(found)
}

/// One socket, or hosts.
fn sites(hosts: &str, parameters: &mut Parameters<'_>) -> Option<Vec<Site>> {
    if hosts.is_empty() {
        let host = parameters.remove("host").filter(|host| is_directory(host))?;
        let port = parameters.remove("port").map_or(Some(PORT), |text| port(&text))?;
        return Some(vec![Site { host, port }]);
    }
    let sites: Vec<Site> = hosts.split(',').map(site).collect::<Option<_>>()?;
    (sites.len() == 1 || !sites.iter().any(Site::is_socket)).then_some(sites)
}

fn site(text: &str) -> Option<Site> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let port = if rest.is_empty() { PORT } else { port(rest.strip_prefix(':')?)? };
        return Some(Site { host: host.parse::<Ipv6Addr>().ok()?.to_string(), port });
    }
    let (host, port) = match text.split_once(':') {
        Some((host, text)) => (host, port(text)?),
        None => (text, PORT),
    };
    let host = decoded(host)?;
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    (is_name || is_directory(&host)).then_some(Site { host, port })
}

/// The library takes a comma for the beginning of another host.
fn is_directory(host: &str) -> bool {
    cfg!(unix) && host.starts_with('/') && !host.contains(|c: char| c == ',' || c.is_control())
}

fn port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port != 0)
}

/// Whether to encrypt, and whom to trust then. Whoever names an authority wants it to be asked.
fn encryption(parameters: &mut Parameters<'_>, is_socket: bool) -> Option<(SslMode, Trust)> {
    let (mode, authority) = (parameters.remove("sslmode"), parameters.remove("sslrootcert"));
    if is_socket {
        let is_plain = authority.is_none() && mode.is_none_or(|mode| mode == "disable");
        return is_plain.then_some((SslMode::Disable, Trust::Anybody));
    }
    let authority = match authority.as_deref() {
        None => None,
        Some("system") => Some(Trust::System),
        Some(path) => Some(Trust::File(PathBuf::from(path)).when_absolute()?),
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

fn set(config: &mut Config, name: &str, value: &str) -> Option<()> {
    match (name, value) {
        ("application_name", name) => config.application_name(name),
        ("options", options) => config.options(options),
        ("connect_timeout", seconds) => {
            let seconds = seconds.parse().ok().filter(|s| (1..=LONGEST_CONNECT_TIMEOUT).contains(s))?;
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

/// What can be read again, but for who asks. The database is told where it is named: otherwise it has the name of the user.
fn shown(sites: &[Site], database: &str) -> String {
    if let [site @ Site { host, port }] = sites
        && site.is_socket()
    {
        let port = if *port == PORT { String::new() } else { format!("&port={port}") };
        return format!("postgres:///{database}?host={host}{port}");
    }
    let sites: Vec<String> = sites.iter().map(ToString::to_string).collect();
    let slash = if database.is_empty() { "" } else { "/" };
    format!("postgres://{}{slash}{database}", sites.join(","))
}

/// The text with its percent-encoding undone. `None` where a `%` is followed by no two hexadecimal digits, or what comes
/// out is empty, not UTF-8, or has a NUL.
fn decoded(text: &str) -> Option<String> {
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
