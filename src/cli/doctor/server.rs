//! Is the server there, and is it well?

use std::time::Duration;

use tokio::time;

use super::check::Check;
use super::clock::Reference;
use crate::cli::exit::Kind;
use crate::cli::remote;
use crate::client;
use crate::clock::Clock;
use crate::config::{ClientConfig, Origin};

const NAME: &str = "server";

/// How long a healthy server may take, unless somebody says otherwise.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks the configured server how it is. One that nobody named need not be there.
pub(super) async fn ask(config: &ClientConfig) -> (Check, Option<Reference>) {
    let client = match remote::client(config, None) {
        Ok(client) => client,
        Err(failure) => {
            return (Check { hints: failure.hints, ..Check::failed(NAME, failure.message) }, None);
        }
    };
    let limit = config.timeout.unwrap_or(LIMIT);
    let about = time::timeout(limit, client.about()).await.unwrap_or(Err(client::Error::Silent));
    match about {
        Ok(about) => {
            let ours = Clock::system().now();
            let who = config.server.clone();
            let reference = about.date.map(|theirs| Reference { who, theirs, ours });
            (well(&config.server, about.version.as_deref()), reference)
        }
        Err(cause) => (missing(config, cause), None),
    }
}

fn well(server: &str, version: Option<&str>) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    match version {
        None => Check::ok(NAME, format!("{server} is well")),
        Some(version) if version == own => Check::ok(NAME, format!("{server} is well (version {version})")),
        Some(version) => {
            Check::note(NAME, format!("{server} is well; it is version {version}, and this is {own}"))
        }
    }
}

fn missing(config: &ClientConfig, cause: client::Error) -> Check {
    let failure = remote::failure(&config.server, cause);
    if failure.kind != Kind::Unreachable {
        return Check { hints: failure.hints, ..Check::failed(NAME, failure.message) };
    }
    let (origin, message) = (&config.server_origin, failure.message);
    let check = match origin {
        Origin::Flag(_) => Check::failed(NAME, message),
        origin if origin.is_set() => Check::warning(NAME, format!("{message}; it is named by {origin}")),
        _ => Check::note(NAME, message),
    };
    check.hint(remote::START_OR_NAME)
}
