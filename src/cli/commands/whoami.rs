//! `mk whoami`: which server and keys are used, what is left of their limits, and whether the server is reachable.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::api::Service;
use crate::api::console::{OwnKey, WindowLeft};
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::remote;
use crate::cli::terminal::tabular;
use crate::client::Client;
use crate::config::ClientConfig;
use crate::keys;
use crate::secret::ExposeSecret;

/// Examples of `mk whoami`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk whoami
  mk whoami --server https://mk.example.org --json";

/// The arguments of `mk whoami`.
#[derive(Args, Debug)]
pub(crate) struct WhoamiArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A service, and where its key comes from, if there is one.
struct HeldKey {
    service: Service,
    origin: Option<String>,
    /// Whether its check digits show that no server has issued it.
    is_mistyped: bool,
    /// Why it cannot be read, if so.
    read_failure: Option<Failure>,
    /// The server's verdict; `None` if it was not asked, or does not know the endpoint.
    verdict: Option<Result<OwnKey, Failure>>,
}

/// Reports what client commands would use. Fails as they would if the server is unreachable or a key is refused.
pub(crate) fn run(args: &WhoamiArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(None, None)?;
    let client = remote::client(&config, None)?;
    let printer = session.printer.clone();
    let limit = remote::short_timeout(&config);
    let mut held = Service::ALL.map(|service| held(&config, service));
    let health = runtime::run(&printer, async {
        let response = remote::within(limit, client.health()).await;
        response.map_err(|cause| remote::failure(&config.server, cause))?;
        for key in &mut held {
            key.verdict = verdict(&config, &client, key, limit).await;
        }
        Ok(())
    });
    let unreachable = match health {
        Ok(()) => None,
        Err(failure) if failure.kind.stop_signal().is_some() => return Err(failure),
        Err(failure) => Some(remote::without_hints_to("`mk whoami`", &config.server, failure)),
    };
    let is_reachable = unreachable.is_none();
    let mut failures: Vec<Failure> = unreachable.into_iter().collect();
    for failure in held.iter().filter_map(key_failure) {
        // A single file may be why several keys cannot be read.
        if failures.iter().all(|before| before.message != failure.message) {
            failures.push(failure);
        }
    }
    if args.json {
        printer.document(&document(&config, &held, is_reachable, failures.first()))?;
    } else {
        tabular::record(&printer, &fields(&config, &held, is_reachable))?;
    }
    // Reported here, as with --json the one document is already printed.
    for failure in &failures {
        printer.failure(failure);
    }
    Ok(failures.first().map_or(0, |failure| failure.kind.code()))
}

/// Why commands that need this key would fail whatever they request; `None` if no such reason is known.
fn key_failure(held: &HeldKey) -> Option<Failure> {
    let whose = format!("the {} key ({})", held.service, held.origin.as_deref()?);
    if held.is_mistyped {
        let what = format!("{whose} is mistyped: its form or check digits are wrong");
        return Some(Failure::new(Kind::Unauthorized, what).hint("`mk login` stores a new one"));
    }
    let failed = |why: &Failure, message: String| {
        Some(Failure {
            hints: why.hints.clone(),
            server_error: why.server_error.clone(),
            ..Failure::new(why.kind, message)
        })
    };
    if let Some(read_failure) = &held.read_failure {
        // The message itself says where the key would come from.
        return failed(read_failure, read_failure.message.clone());
    }
    let why = held.verdict.as_ref()?.as_ref().err()?;
    // A server that is busy, unhealthy or does not understand the request says nothing about the key.
    if why.kind != Kind::Unauthorized {
        return None;
    }
    failed(why, format!("{whose}: {}", why.message))
}

fn held(config: &ClientConfig, service: Service) -> HeldKey {
    let origin = || Some(config.key_origin(service).to_string());
    let none = HeldKey { service, origin: None, is_mistyped: false, read_failure: None, verdict: None };
    match config.key_for(service) {
        Ok(None) => none,
        Ok(Some(key)) => {
            HeldKey { origin: origin(), is_mistyped: keys::service_of(key.expose_secret()).is_none(), ..none }
        }
        Err(error) => HeldKey { origin: origin(), read_failure: Some(error.into()), ..none },
    }
}

/// The server's verdict on a key that it may have issued.
async fn verdict(
    config: &ClientConfig,
    client: &Client,
    held: &HeldKey,
    limit: Duration,
) -> Option<Result<OwnKey, Failure>> {
    let key = config.key_for(held.service).ok().flatten().filter(|_| !held.is_mistyped)?;
    match remote::within(limit, client.with_api_key(key.clone()).own_key()).await {
        Ok(own) => Some(Ok(own)),
        Err(cause) if remote::is_unknown_endpoint(&cause) => None,
        Err(cause) => Some(Err(remote::failure(&config.server, cause))),
    }
}

/// `failure` decides the exit code.
fn document(config: &ClientConfig, held: &[HeldKey], is_reachable: bool, failure: Option<&Failure>) -> Value {
    let origins: serde_json::Map<String, Value> =
        held.iter().map(|key| (key.service.to_string(), json!(key.origin))).collect();
    let mistyped: Vec<&str> =
        held.iter().filter(|key| key.is_mistyped).map(|key| key.service.as_str()).collect();
    let verdicts: serde_json::Map<String, Value> =
        held.iter().filter_map(|key| Some((key.service.to_string(), verdict_document(key)?))).collect();
    let mut document = json!({
        "schema": "mk.whoami/1",
        "server": config.server,
        "server_from": config.server_origin.to_string(),
        "profile": config.profile,
        "keys": origins,
        "mistyped": mistyped,
        "checked": verdicts,
        "reachable": is_reachable,
        "exit": failure.map_or(0, |failure| failure.kind.code()),
    });
    if let Some(failure) = failure {
        document["error"] = failure.document()["error"].take();
    }
    document
}

fn fields(config: &ClientConfig, held: &[HeldKey], is_reachable: bool) -> Vec<(String, String)> {
    let mut fields = vec![
        ("server".to_owned(), format!("{} ({})", config.server, config.server_origin)),
        ("profile".to_owned(), config.profile.clone().unwrap_or_else(|| "-".to_owned())),
    ];
    for key in held {
        let shown = match &key.origin {
            None => "not set".to_owned(),
            Some(origin) if key.is_mistyped => {
                format!("set ({origin}; mistyped: its form or check digits are wrong)")
            }
            Some(origin) => match (&key.read_failure, &key.verdict) {
                (Some(read_failure), _) => read_failure.message.clone(),
                (None, Some(Err(refused))) => format!("set ({origin}); {}", refused.message),
                (None, _) => format!("set ({origin})"),
            },
        };
        fields.push((format!("{} key", key.service), shown));
        if let Some(Ok(own)) = &key.verdict {
            fields.push((format!("{} limits", key.service), limits(own)));
        }
    }
    fields.push(("reachable".to_owned(), if is_reachable { "yes" } else { "no" }.to_owned()));
    fields
}

/// The server's record of a key, or why there is none. `None` if nothing is known.
fn verdict_document(held: &HeldKey) -> Option<Value> {
    let why = |failure: &Failure| json!({ "error": failure.document()["error"] });
    match (&held.read_failure, &held.verdict) {
        (Some(failure), _) | (None, Some(Err(failure))) => Some(why(failure)),
        (None, Some(Ok(own))) => Some(json!(own)),
        (None, None) => None,
    }
}

/// What is left of a key's limits.
fn limits(own: &OwnKey) -> String {
    let window_text =
        |window: WindowLeft, span: &str| format!("{} of {} left {span}", window.remaining, window.limit);
    let windows =
        [own.minute.map(|it| window_text(it, "this minute")), own.day.map(|it| window_text(it, "today"))];
    let windows: Vec<String> = windows.into_iter().flatten().collect();
    if windows.is_empty() { "none".to_owned() } else { windows.join(", ") }
}
