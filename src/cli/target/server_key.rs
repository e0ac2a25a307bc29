//! The key for a server, and what a missing one or one of another service means: a message and hints.

use crate::api::Service;
use crate::cli::process::exit::{Failure, Kind};
use crate::config::{ClientConfig, Origin};
use crate::keys;
use crate::secret::{ExposeSecret, SecretString};

/// The most other servers with a key that are named when the chosen one has none.
const MAX_SERVERS: usize = 5;

/// The key for a service of the configured server. One that is mistyped is found here, before it is sent anywhere.
pub(crate) fn key_for(config: &ClientConfig, service: Service) -> Result<Option<SecretString>, Failure> {
    let key = config.key_for(service)?;
    match key.as_ref().map(|key| keys::service_of(key.expose_secret())) {
        Some(None) => Err(Failure::new(
            Kind::Unauthorized,
            format!(
                "the {service} key of {} is mistyped: its form or check digits are wrong",
                config.key_origin(service)
            ),
        )
        .hint("copy the whole key again; if it is lost, replace it with `mk keys rotate`")),
        Some(Some(other)) if other != service => {
            let message = holds_another(config, &config.key_origin(service), other, service);
            Err(Failure::new(Kind::Unauthorized, message).hint(how_to_get(config, service)))
        }
        _ => Ok(key),
    }
}

/// `MK_API_KEY holds an inference key; this command needs a verify key for http://127.0.0.1:8080`
fn holds_another(config: &ClientConfig, origin: &Origin, held: Service, needed: Service) -> String {
    let server = &config.server;
    format!("{origin} holds {} key; this command needs {} key for {server}", one(held), one(needed))
}

/// The service with its article, for before `key`.
const fn one(service: Service) -> &'static str {
    match service {
        Service::Verify => "a verify",
        Service::Inference => "an inference",
        Service::Console => "a console",
    }
}

/// How to get a key of this service.
fn how_to_get(config: &ClientConfig, service: Service) -> String {
    let server = &config.server;
    let variable = match service {
        Service::Verify => "MK_API_KEY",
        Service::Inference => "MK_INFERENCE_KEY",
        Service::Console => "MK_CONSOLE_KEY",
    };
    format!(
        "`mk keys create --service {service}` on the server's machine makes one; `mk login --server {server}` stores it, \
         or set {variable} or {variable}_FILE"
    )
}

/// The failure for a missing key of this service, with hints at how to get one; `trial` is a command that needs none.
pub(crate) fn no_key(config: &ClientConfig, service: Service, trial: Option<&str>) -> Failure {
    let kind = match service {
        Service::Verify => "API",
        Service::Inference => "inference",
        Service::Console => "console",
    };
    let mut message = format!("no {kind} key for {}", config.server);
    // A variable or file that may hold a key for any service holds one for another service.
    let is_for_any = |origin: &Origin| {
        matches!(origin, Origin::Flag(_) | Origin::Variable("MK_API_KEY" | "MK_API_KEY_FILE"))
    };
    let mut others = Service::ALL.into_iter().map(|other| (other, config.key_origin(other)));
    if let Some((other, origin)) = others.find(|(_, origin)| is_for_any(origin)) {
        message = holds_another(config, &origin, other, service);
    }
    let mut hint = how_to_get(config, service);
    if let Some(trial) = trial {
        hint = format!("{hint}; to try without one: {trial}");
    }
    let failure = Failure::new(Kind::Unauthorized, message).hint(hint);
    let elsewhere: Vec<&str> = config.servers_with_key(service).take(MAX_SERVERS).collect();
    if elsewhere.is_empty() {
        return failure;
    }
    failure.hint(format!(
        "there is one for {}; select it with --server, MK_SERVER or a profile",
        elsewhere.join(" and for ")
    ))
}
