//! `mk login` and `mk logout`: keys for a server, kept in the credentials file.

use std::io::IsTerminal;

use clap::Args;

use super::exit::{Failure, Outcome};
use super::globals::Session;
use crate::api::Service;
use crate::config::credentials;
use crate::keys;
use crate::secret::{self, ExposeSecret, SecretString};

/// Examples of `mk login`, first in its help.
pub(crate) const LOGIN_EXAMPLES: &str = "\
Examples:
  mk login                                          asks for the key, without showing it
  mk login --server https://mk.example.org < key.txt
  mk keys create --service verify | mk login        on the server's own machine";

/// Examples of `mk logout`, first in its help.
pub(crate) const LOGOUT_EXAMPLES: &str = "\
Examples:
  mk logout                        forget all keys for the server
  mk logout --service verify";

/// The arguments of `mk login`.
#[derive(Args, Debug)]
pub(crate) struct LoginArgs {}

/// The arguments of `mk logout`.
#[derive(Args, Debug)]
pub(crate) struct LogoutArgs {
    /// Only the key for this service
    #[arg(long, value_name = "SERVICE")]
    service: Option<Service>,
}

/// Stores a key for the configured server. The key itself says which service it is for.
pub(crate) fn login(_args: &LoginArgs, session: &mut Session) -> Outcome {
    let server = session.client_config(None, None)?.server;
    let key = read(session, &server)?;
    let Some(service) = keys::service_of(key.expose_secret()) else {
        return Err(Failure::usage("this is not a key: its form or its check digits do not fit")
            .hint("a key is mk_<service>_ and 32 characters; copy it again, whole"));
    };
    let path = credentials::store(&session.env, &server, service, &key)?;
    session.printer.sentence(&format!("stored the {service} key for {server} in {}", path.display()));
    Ok(0)
}

/// From a file that is named, a terminal without showing it, or standard input.
fn read(session: &Session, server: &str) -> Result<SecretString, Failure> {
    let unreadable = |cause: std::io::Error| {
        Failure::usage(format!("cannot read a key: {cause}"))
            .hint("mk login < FILE, or without a redirection on a terminal")
            .caused_by(cause)
    };
    if let Some(path) = &session.globals.api_key_file {
        return secret::from_file(path).map_err(unreadable);
    }
    if !std::io::stdin().is_terminal() {
        return secret::read(std::io::stdin().lock()).map_err(unreadable);
    }
    let terminal = console::Term::stderr();
    let asked = terminal.write_str(&format!("API key for {server} (not shown): "));
    let text = asked.and_then(|()| terminal.read_secure_line()).map_err(unreadable)?;
    Ok(SecretString::from(text.trim()))
}

/// Forgets keys for the configured server.
pub(crate) fn logout(args: &LogoutArgs, session: &mut Session) -> Outcome {
    let server = session.client_config(None, None)?.server;
    let removed = credentials::remove(&session.env, &server, args.service)?;
    if removed.is_empty() {
        session.printer.sentence(&format!("no key was stored for {server}"));
        return Ok(0);
    }
    let names: Vec<&str> = removed.iter().map(|service| service.as_str()).collect();
    let (keys, they_work) = match names.as_slice() {
        [name] => (format!("{name} key"), "it still works until it is"),
        _ => (format!("{} keys", names.join(" and ")), "they still work until they are"),
    };
    session.printer.sentence(&format!("forgot the {keys} for {server}; {they_work} revoked"));
    Ok(0)
}
