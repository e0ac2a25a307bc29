//! Are the providers reachable, and do they accept our keys? Checked concurrently and free of charge.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::check::Check;
use super::clock::{self, ClockReading};
use super::models::ConfiguredModels;
use crate::cli::terminal::humanize;
use crate::clock::Clock;
use crate::config::NamedProvider;
use crate::providers::{Failure, KeyStatus, Provider, Settings};
use crate::secret::SecretString;

/// Time limit per provider; its list of models is a small response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks every provider; a misconfigured one is reported and not asked.
pub(super) async fn ask(
    found: Vec<NamedProvider>,
    configured: &ConfiguredModels,
) -> Vec<(Vec<Check>, Option<ClockReading>)> {
    let each_key = |(name, settings): NamedProvider| match settings {
        Ok(settings) => by_key(&settings).into_iter().map(|(label, one)| (label, Ok(one))).collect(),
        Err(error) => vec![(label(&name), Err(error))],
    };
    join_all(found.into_iter().flat_map(each_key).map(|(label, settings)| async move {
        match settings {
            Ok(settings) => one(label, settings, configured).await,
            Err(error) => (vec![Check::misconfigured(label, error)], None),
        }
    }))
    .await
}

/// The provider once for each of its keys, as if it had no other.
fn by_key(settings: &Settings) -> Vec<(String, Settings)> {
    let count = settings.api_keys().count();
    if count < 2 {
        return vec![(label(&settings.name), settings.clone())];
    }
    let with_key = |(at, key): (usize, &SecretString)| {
        let api_key = Some(key.clone());
        let one = Settings { api_key, further_api_keys: Vec::new(), ..settings.clone() };
        (format!("{}, key {} of {count}", label(&settings.name), at + 1), one)
    };
    settings.api_keys().enumerate().map(with_key).collect()
}

fn label(name: &str) -> String {
    format!("provider {name}")
}

async fn one(
    name: String,
    settings: Settings,
    configured: &ConfiguredModels,
) -> (Vec<Check>, Option<ClockReading>) {
    let address = shown(&settings.base_url);
    let (who, has_key) = (settings.name.clone(), settings.api_key.is_some());
    let is_on_this_machine = clock::is_on_this_machine(&settings.base_url);
    let clock = Clock::system();
    let provider = match Provider::new(settings, clock.clone()) {
        Ok(provider) => provider,
        Err(error) => return (vec![Check::failed(name, error.message)], None),
    };
    let begun = Instant::now();
    let standing = match provider.probe(tokio::time::Instant::now() + TIMEOUT).await {
        Ok(standing) => standing,
        Err(failure) => return (vec![failed(name, &failure, &address, has_key)], None),
    };
    let took = humanize::seconds(begun.elapsed());
    let doubts = standing.models.map(|listed| configured.doubts(&who, &name, &listed)).unwrap_or_default();
    let check = match standing.key {
        KeyStatus::Simulated => Check::ok(name, "simulated; nothing to check"),
        KeyStatus::Accepted => Check::ok(name, format!("answers in {took} and accepts the key")),
        KeyStatus::NotNeeded => Check::ok(name, format!("answers in {took} without a key")),
        KeyStatus::Untried => Check::note(
            name,
            format!("answers in {took}; it lists its models without a key, so the key was not tested"),
        ),
        KeyStatus::NoList => Check::warning(
            name,
            format!("answers in {took}, but has no list of models at {address}, so the key was not tested"),
        )
        .hint("check `base_url`: most end in /v1"),
    };
    let reference =
        standing.date.map(|theirs| ClockReading { who, theirs, ours: clock.now(), is_on_this_machine });
    ([check].into_iter().chain(doubts).collect(), reference)
}

fn failed(name: String, failure: &Failure, address: &str, has_key: bool) -> Check {
    const KEY_HINT: &str = "`mk config list server --origin` shows where it is set; after changing it, reload \
        the server (SIGHUP) if it is in a file, or restart it if it is in a variable";
    match failure {
        Failure::Unauthorized if has_key => Check::failed(name, "rejects the key").hint(KEY_HINT),
        Failure::Unauthorized => Check::failed(name, "requires a key, and none is set")
            .hint("set `api_key_env` to its variable, or `api_key_file` to its file"),
        Failure::QuotaExhausted => Check::failed(name, "accepts the key, but its account has no credit left")
            .hint("top up the account"),
        Failure::RateLimited { .. } | Failure::Overloaded { .. } => {
            Check::warning(name, "has no capacity at the moment")
        }
        Failure::Unreachable => Check::failed(name, format!("cannot be reached at {address}"))
            .hint("check `base_url` and this machine's network (DNS, proxy, firewall, certificates)"),
        Failure::NoDescriptors => Check::failed(name, "could not be asked: too many files are open")
            .hint("raise the limit of open files (`ulimit -n`)"),
        Failure::Timeout => Check::failed(name, format!("does not answer at {address} in time"))
            .hint("check this machine's network (proxy, firewall)"),
        // A provider's own words may repeat what it was sent; its code does not.
        other => Check::failed(name, format!("answers with an error ({})", other.code()))
            .hint("check `base_url`, and that `kind` is the format of this API"),
    }
}

/// An address without its query, which may contain anything.
fn shown(base_url: &str) -> String {
    base_url.split('?').next().unwrap_or_default().to_owned()
}
