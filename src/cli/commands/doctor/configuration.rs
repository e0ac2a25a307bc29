//! Is the configuration right: the client's files and keys, the server's file, its panels?

use std::collections::BTreeSet;

use super::check::Check;
use crate::api::Service;
use crate::client::CertificateFlaw;
use crate::config::{ClientConfig, ConfigError, Env, ServerConfig, panel_warnings, paths};
use crate::net::inbound::tls::TlsFiles;
use crate::secret::ExposeSecret;
use crate::{keys, model_id, server};

const CLIENT: &str = "client configuration";
const SERVER: &str = "server configuration";
const PANEL: &str = "panel";

/// Findings on the client's files, variables and keys, if the configuration could be loaded.
pub(super) fn client(config: &ClientConfig, env: &Env) -> Vec<Check> {
    let file = paths(env).client_file.filter(|path| path.exists());
    let what = file.map_or_else(|| "no file; defaults apply".to_owned(), |path| path.display().to_string());
    let mut checks = Vec::new();
    let mut names = Vec::new();
    for service in Service::ALL {
        match config.key_for(service) {
            Ok(None) => {}
            Ok(Some(key)) => {
                names.push(service.as_str());
                if keys::service_of(key.expose_secret()).is_none() {
                    checks.push(mistyped(config, service));
                }
            }
            Err(error) => {
                let unreadable = Check::misconfigured(CLIENT, error);
                // A single file may be why several keys cannot be read.
                if !checks.contains(&unreadable) {
                    checks.push(unreadable);
                }
            }
        }
    }
    let keys_held =
        if names.is_empty() { "no key".to_owned() } else { format!("keys for {}", names.join(", ")) };
    let warnings = config.warnings.iter().map(|warning| Check::warning(CLIENT, warning));
    let found = Check::ok(CLIENT, format!("{what}; {keys_held} for {}", config.server));
    std::iter::once(found).chain(warnings).chain(checks).collect()
}

fn mistyped(config: &ClientConfig, service: Service) -> Check {
    let origin = config.key_origin(service);
    Check::failed(
        CLIENT,
        format!("the {service} key ({origin}) is mistyped: its form or check digits are wrong"),
    )
    .hint("`mk login` stores a new one; `mk keys check` checks for typos")
}

/// Findings on the server's configuration, if it could be loaded.
pub(super) fn server(config: &ServerConfig) -> Vec<Check> {
    let what = match &config.file {
        Some(file) => file.display().to_string(),
        None => "no file; defaults apply".to_owned(),
    };
    let notes: String = config.notes.iter().flat_map(|note| ["; ", note]).collect();
    let mut checks = vec![Check::ok(SERVER, format!("{what}{notes}"))];
    let of_panels = panel_warnings(config);
    let warnings = config.warnings.iter().filter(|warning| !of_panels.contains(warning));
    checks.extend(warnings.map(|warning| Check::warning(SERVER, warning)));
    checks.extend(config.tls.as_ref().map(certificate));
    checks.extend(panels(config, of_panels));
    checks
}

/// Whether the server can present the certificate, and clients may accept it.
fn certificate(files: &TlsFiles) -> Check {
    let found = match server::Certificate::read(files) {
        Ok(found) => found,
        Err(cause) => return Check::failed("tls", cause.to_string()),
    };
    let cert = files.cert.display();
    match CertificateFlaw::of_chain(found.chain()) {
        Some(flaw) => {
            Check::failed("tls", format!("clients will refuse {cert}: {}", flaw.as_str())).hint(flaw.hint())
        }
        None => Check::ok("tls", format!("{cert} and its key match")),
    }
}

/// The finding for a server configuration that cannot be used. `is_server_expected` is whether anything suggests that a
/// server should run here.
pub(super) fn no_server(error: ConfigError, is_without_providers: bool, is_server_expected: bool) -> Check {
    let found = Check::misconfigured(SERVER, error);
    match (is_without_providers, is_server_expected) {
        (false, _) => found,
        (true, true) => Check { state: super::check::Status::Warning, ..found },
        (true, false) => Check { state: super::check::Status::Note, ..found },
    }
}

fn panels(config: &ServerConfig, warnings: Vec<String>) -> Vec<Check> {
    if !warnings.is_empty() {
        return warnings.into_iter().map(|warning| Check::warning(PANEL, warning)).collect();
    }
    let (general, legal) = (&config.verify.general.panel, &config.verify.legal.panel);
    let mut checks = vec![panel("", general)];
    if legal != general {
        checks.push(panel("legal: ", legal));
    }
    checks
}

fn panel(domain: &str, models: &[String]) -> Check {
    let message = format!("{domain}{}", models.join(", "));
    if models.is_empty() {
        return Check::note(PANEL, format!("{domain}none, for chat only; verification answers 503"));
    }
    if models.iter().all(|id| id.starts_with("sandbox/")) {
        return Check::note(PANEL, format!("{message}: simulated"));
    }
    let makers: BTreeSet<&str> = models.iter().map(|id| maker(id)).collect();
    if makers.len() < 2 {
        return Check::warning(
            PANEL,
            format!("{message}: all from one provider, so they tend to make the same mistakes"),
        )
        .hint("add models of other providers to `panel` in [verify]");
    }
    Check::ok(PANEL, message)
}

/// Who made a model, as far as its identifier tells: `provider/model`, or `gateway/maker/model`.
fn maker(id: &str) -> &str {
    let (provider, model) = model_id::split(id).unwrap_or((id, ""));
    model.split_once('/').map_or(provider, |(maker, _)| maker)
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn a_panel_should_have_different_makers() {
        let state =
            |models: &[&str]| panel("", &models.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>()).state;
        assert_eq!(state(&["openai/a", "anthropic/b"]), Status::Ok);
        assert_eq!(state(&["openai/a", "openai/b"]), Status::Warning);
        assert_eq!(state(&["openrouter/openai/a", "openrouter/google/b"]), Status::Ok);
        assert_eq!(state(&["openrouter/openai/a", "openrouter/openai/b"]), Status::Warning);
        assert_eq!(state(&["sandbox/alpha", "sandbox/beta"]), Status::Note);
    }
}
