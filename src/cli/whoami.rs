//! `mk whoami`: which server, which keys, and whether anybody is there.

use clap::Args;
use serde_json::json;

use super::exit::Outcome;
use super::globals::Session;
use super::{remote, runtime, sheet};
use crate::api::Service;

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
    pub(crate) json: bool,
}

/// Says what client commands would use. Fails as they would if the server is not there.
pub(crate) fn run(args: &WhoamiArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(None, None)?;
    let client = remote::client(&config, None)?;
    let printer = session.printer.clone();
    let health = runtime::run(&printer, async {
        client.health().await.map_err(|cause| remote::failure(&config.server, cause))
    });
    let keys = Service::ALL.map(|service| {
        let origin = config.key_for(service).map(|_| config.key_origin(service).to_string());
        (service, origin)
    });
    if args.json {
        health?;
        let set: serde_json::Map<String, serde_json::Value> =
            keys.into_iter().map(|(service, origin)| (service.to_string(), json!(origin))).collect();
        printer.document(&json!({
            "schema": "mk.whoami/1",
            "server": config.server,
            "server_from": config.server_origin.to_string(),
            "profile": config.profile,
            "keys": set,
            "reachable": true,
        }))?;
        return Ok(0);
    }
    let mut fields = vec![
        ("server", format!("{} ({})", config.server, config.server_origin)),
        ("profile", config.profile.clone().unwrap_or_else(|| "-".to_owned())),
    ];
    for (service, origin) in &keys {
        let shown = origin.as_ref().map_or_else(|| "not set".to_owned(), |origin| format!("set ({origin})"));
        fields.push((key_field(*service), shown));
    }
    let reachable =
        health.as_ref().map_or_else(|failure| format!("no: {}", failure.message), |()| "yes".to_owned());
    fields.push(("reachable", reachable));
    sheet::record(&printer, &fields)?;
    health.map(|()| 0)
}

const fn key_field(service: Service) -> &'static str {
    match service {
        Service::Verify => "verify key",
        Service::Inference => "inference key",
        Service::Console => "console key",
    }
}
