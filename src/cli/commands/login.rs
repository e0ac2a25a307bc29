//! `mk login` and `mk logout`: keys for a server, kept in the credentials file.

use std::io::IsTerminal;

use clap::Args;

use crate::api::Service;
use crate::cli::args::choice::one_of;
use crate::cli::args::globals::Session;
use crate::cli::args::text::read_stdin;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::remote;
use crate::cli::terminal::shell;
use crate::config::client::credentials;
use crate::config::{ClientArgs, ClientConfig, add_profile, has_profile, load_client};
use crate::keys;
use crate::secret::{self, ExposeSecret, SecretString};

/// Examples of `mk login`, first in its help.
pub(crate) const LOGIN_EXAMPLES: &str = "\
Examples:
  mk login                                     asks for the key, without echo
  mk login --server https://mk.example.org < key.txt
  mk login --server https://mk.example.org --profile work   adds a profile
  mk keys create --service verify | mk login   on the server's machine";

/// Examples of `mk logout`, first in its help.
pub(crate) const LOGOUT_EXAMPLES: &str = "\
Examples:
  mk logout                        forget all keys for the server
  mk logout --service verify";

/// The arguments of `mk login`.
#[derive(Args, Debug)]
pub(crate) struct LoginArgs {
    /// Store the key without checking it with the server
    #[arg(long)]
    no_check: bool,
}

/// The arguments of `mk logout`.
#[derive(Args, Debug)]
pub(crate) struct LogoutArgs {
    /// Only the key for this service: verify, inference or console
    #[arg(long, value_name = "SERVICE", value_parser = one_of(Service::ALL, Service::as_str), hide_possible_values = true)]
    service: Option<Service>,
}

/// Stores a key for the configured server, which is asked to accept it first. The key itself tells which service it is
/// for.
pub(crate) fn login(args: &LoginArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(None, None)?;
    let server = config.server.clone();
    // With both flags, the server gets that profile name.
    let profile = session.globals.profile.clone().filter(|_| session.globals.server.is_some());
    if let Some(name) = &profile {
        has_profile(&session.env, name, &server)?;
    }
    let key = read(session, &server)?;
    let Some(service) = keys::service_of(key.expose_secret()) else {
        return Err(Failure::usage("this is not a valid key: its form or its check digits are wrong")
            .hint("a key is mk_<service>_ followed by 32 characters; copy the whole key again"));
    };
    if !args.no_check {
        check(&config, &key, session)?;
    }
    if let Err(exposed) = credentials::must_be_private(&session.env) {
        warn_of_exposed(session, &exposed.message);
    }
    let path = credentials::store(&session.env, &server, service, &key)?;
    session.printer.sentence(&format!("stored the {service} key for {server} in {}", path.display()));
    if let Some(name) = &profile
        && let Some(path) = add_profile(&session.env, name, &server)?
    {
        session.printer.sentence(&format!("added profile `{name}` to {}", path.display()));
    }
    if !is_default_server(&server, session) {
        session.printer.sentence(&match &session.globals.profile {
            Some(name) => format!("use it with --profile {}", shell::word(name)),
            None => "use it with --server, MK_SERVER or a profile".to_owned(),
        });
    }
    Ok(0)
}

/// Whether commands use this server when no flag names one.
fn is_default_server(server: &str, session: &Session) -> bool {
    let default = load_client(&ClientArgs::default(), &session.env);
    default.is_ok_and(|default| {
        credentials::server_origin(&default.server) == credentials::server_origin(server)
    })
}

/// Fails if the server refuses the key. A server that cannot tell is no reason not to store it: it may be down, or too
/// old to know the endpoint.
fn check(config: &ClientConfig, key: &SecretString, session: &Session) -> Result<(), Failure> {
    let client = remote::client(config, Some(key.clone()))?;
    let limit = remote::short_timeout(config);
    let response =
        runtime::run(&session.printer, async { Ok(remote::within(limit, client.own_key()).await) })?;
    let Err(cause) = response else { return Ok(()) };
    if remote::is_unknown_endpoint(&cause) {
        session.printer.warning(&format!("{} cannot check keys; the key is stored unchecked", config.server));
        return Ok(());
    }
    let failure = remote::failure(&config.server, cause);
    if failure.kind == Kind::Unauthorized {
        let what = format!("{}; it is not stored", failure.message);
        return Err(Failure { message: what, ..failure }.hint("`mk login --no-check` stores it anyway"));
    }
    session.printer.warning(&format!("the key is stored unchecked: {}", failure.message));
    Ok(())
}

/// Reads the key from the file that is named, from a terminal without echo, or from standard input.
fn read(session: &Session, server: &str) -> Result<SecretString, Failure> {
    let unreadable = |cause: std::io::Error| {
        Failure::usage(format!("cannot read a key: {cause}"))
            .hint("use `mk login < FILE`, or run `mk login` on a terminal")
            .caused_by(cause)
    };
    if let Some(path) = &session.globals.api_key_file {
        return secret::from_file(path).map_err(unreadable);
    }
    if !std::io::stdin().is_terminal() {
        return read_stdin(&session.printer, secret::read)?.map_err(unreadable);
    }
    let terminal = console::Term::stderr();
    let prompted = terminal.write_str(&format!("API key for {server} (not shown): "));
    let text = prompted.and_then(|()| terminal.read_secure_line()).map_err(unreadable)?;
    Ok(SecretString::from(text.trim()))
}

/// Warns that keys stored earlier may have been read by others.
fn warn_of_exposed(session: &Session, exposed: &str) {
    let what = format!("{exposed}; replace keys that others may have read: `mk keys rotate`");
    session.printer.warning(&what);
}

/// Forgets keys for the configured server.
pub(crate) fn logout(args: &LogoutArgs, session: &mut Session) -> Outcome {
    let server = session.client_config(None, None)?.server;
    let exposed = credentials::must_be_private(&session.env);
    let removed = credentials::remove(&session.env, &server, args.service)?;
    if let Err(exposed) = exposed {
        // Only changing the file makes it private again.
        let hints = if removed.is_empty() { exposed.hints } else { Vec::new() };
        let parts: Vec<String> = [exposed.message].into_iter().chain(hints).collect();
        warn_of_exposed(session, &parts.join("; "));
    }
    let names: Vec<&str> = removed.iter().map(|service| service.as_str()).collect();
    let (keys, they_work) = match names.as_slice() {
        [] => {
            session.printer.sentence(&format!("no key was stored for {server}"));
            return Ok(0);
        }
        [name] => (format!("{name} key"), "it still works until it is"),
        [others @ .., last] => {
            (format!("{} and {last} keys", others.join(", ")), "they still work until they are")
        }
    };
    session.printer.sentence(&format!("forgot the {keys} for {server}; {they_work} revoked"));
    Ok(0)
}
