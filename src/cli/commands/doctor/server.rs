//! Is the server reachable and healthy?

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time;

use super::check::Check;
use super::clock::{self, ClockReading};
use crate::api::Service;
use crate::cli::process::exit::Kind;
use crate::cli::target::remote;
use crate::clock::Clock;
use crate::config::{ClientConfig, Origin};
use crate::secret::ExposeSecret;
use crate::{client, keys};

const NAME: &str = "server";

/// How long a healthy server may take by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// If nobody named a server, selects the one configured on this machine, wherever it listens; returns a note if
/// commands would use another one.
pub(super) fn prefer_own_server(
    client: &mut ClientConfig,
    listen: SocketAddr,
    has_tls: bool,
) -> Option<Check> {
    let own = own_address(listen, has_tls);
    if client.server_origin.is_set() || client.server == own {
        return None;
    }
    let usual = std::mem::replace(&mut client.server, own);
    let message =
        format!("this machine's server is configured for {}, but commands call {usual}", client.server);
    Some(Check::note(NAME, message).hint(format!("to use it, set MK_SERVER={}", client.server)))
}

/// The address of a server from its own machine.
fn own_address(listen: SocketAddr, has_tls: bool) -> String {
    let host = match listen {
        SocketAddr::V4(at) if at.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(at) if at.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other.ip(),
    };
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(host, listen.port()))
}

/// Asks the server for its health, and if `owns_keys`, whether it accepts the keys: another server must not see
/// them. A server that nobody named need not be running.
pub(super) async fn ask(config: &ClientConfig, owns_keys: bool) -> (Vec<Check>, Option<ClockReading>) {
    let client = match remote::client(config, None) {
        Ok(client) => client,
        Err(failure) => {
            return (vec![Check { hints: failure.hints, ..Check::failed(NAME, failure.message) }], None);
        }
    };
    let limit = config.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let about = remote::within(limit, client.about()).await;
    match about {
        Ok(about) => {
            let ours = Clock::system().now();
            let who = config.server.clone();
            let reference = about.date.map(|theirs| ClockReading {
                is_on_this_machine: clock::is_on_this_machine(&who),
                who,
                theirs,
                ours,
            });
            let mut checks = vec![healthy(&config.server, about.version.as_deref())];
            if owns_keys {
                let key_checks =
                    Service::ALL.map(|service| time::timeout(limit, refused_key(config, &client, service)));
                checks.extend(join_all(key_checks).await.into_iter().flatten().flatten());
            }
            (checks, reference)
        }
        Err(cause) => (vec![unreachable(config, cause)], None),
    }
}

/// The finding if the server refuses the key for a service. Mistyped and unreadable keys are reported elsewhere; other
/// errors say nothing about the key.
async fn refused_key(config: &ClientConfig, client: &client::Client, service: Service) -> Option<Check> {
    let key = config.key_for(service).ok().flatten()?;
    keys::service_of(key.expose_secret())?;
    let cause = client.with_api_key(key).own_key().await.err()?;
    let failure = remote::failure(&config.server, cause);
    let message = format!("the {service} key ({}): {}", config.key_origin(service), failure.message);
    (failure.kind == Kind::Unauthorized)
        .then(|| Check { hints: failure.hints, ..Check::failed(NAME, message) })
}

fn healthy(server: &str, version: Option<&str>) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    match version {
        None => Check::ok(NAME, format!("{server} is healthy")),
        Some(version) if version == own => {
            Check::ok(NAME, format!("{server} is healthy (version {version})"))
        }
        Some(version) => {
            Check::note(NAME, format!("{server} is healthy (version {version}; this mk is {own})"))
        }
    }
}

fn unreachable(config: &ClientConfig, cause: client::Error) -> Check {
    let failure = remote::failure(&config.server, cause);
    let failure = remote::without_hints_to("`mk doctor`", &config.server, failure);
    if failure.kind != Kind::Unreachable {
        return Check { hints: failure.hints, ..Check::failed(NAME, failure.message) };
    }
    let (origin, message) = (&config.server_origin, failure.message);
    let found = match origin {
        Origin::Flag(_) => Check::failed(NAME, message),
        origin if origin.is_set() => Check::warning(NAME, format!("{message}; set by {origin}")),
        _ => Check::note(NAME, message),
    };
    Check { hints: failure.hints, ..found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listening_everywhere_is_asked_on_loopback() {
        for (listen, has_tls, expected) in [
            ("0.0.0.0:9000", false, "http://127.0.0.1:9000"),
            ("[::]:9000", true, "https://[::1]:9000"),
            ("10.1.2.3:80", false, "http://10.1.2.3:80"),
        ] {
            assert_eq!(own_address(listen.parse().unwrap(), has_tls), expected);
        }
    }
}
