//! Where chat completions come from: the configured server with its inference key, or a server of our own.

use std::time::Duration;

use clap::Args;

use super::embedded::{Embedded, SANDBOX_BANNER};
use super::exit::Failure;
use super::globals::Session;
use super::printer::Printer;
use super::remote;
use crate::api::Service;
use crate::client::{Client, Error};
use crate::config::{ClientConfig, ServerArgs, ServerConfig, load_server};

/// Where it runs.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Where")]
pub(crate) struct Place {
    /// Simulated models in this process: no server, key or network. They know few facts
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// The configured providers, called from this process: no server needed
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) local: bool,
}

/// A place that is settled, but nothing is connected or started yet.
pub(crate) enum Settled {
    /// A server that is there.
    Server(Desk),
    /// One of our own, for this command.
    Embedded {
        /// What it is to be.
        config: Box<ServerConfig>,
        /// Whether its models are simulated.
        is_sandbox: bool,
        /// How much silence is borne.
        idle: Duration,
    },
}

/// Somebody who can be asked.
pub(crate) struct Desk {
    /// A client of the server.
    pub(crate) client: Client,
    /// The server as the person named it.
    pub(crate) server: String,
    /// Whether all of its models are simulated, by the person's own wish.
    pub(crate) is_sandbox: bool,
    _embedded: Option<Embedded>,
}

/// Settles where `command` asks; bears `idle` of silence there.
pub(crate) fn settle(
    place: Place,
    command: &str,
    config: &ClientConfig,
    session: &Session,
    idle: Duration,
) -> Result<Settled, Failure> {
    if place.sandbox || place.local {
        let server_args = ServerArgs { sandbox: place.sandbox, ..ServerArgs::default() };
        let server = load_server(&server_args, &session.env)?;
        return Ok(Settled::Embedded { config: Box::new(server), is_sandbox: place.sandbox, idle });
    }
    let Some(key) = config.key_for(Service::Inference) else {
        return Err(remote::no_key(config, Service::Inference, Some(&format!("mk {command} --sandbox"))));
    };
    let client = remote::patient_client(config, Some(key), idle)?;
    Ok(Settled::Server(Desk { client, server: config.server.clone(), is_sandbox: false, _embedded: None }))
}

impl Settled {
    /// Starts what has to be started, and says where answers will be simulated.
    pub(crate) async fn open(self, printer: &Printer) -> Result<Desk, Failure> {
        let (config, is_sandbox, idle) = match self {
            Self::Server(desk) => return Ok(desk),
            Self::Embedded { config, is_sandbox, idle } => (config, is_sandbox, idle),
        };
        let embedded = Embedded::start(*config, Service::Inference).await?;
        let client = remote::embedded_client(&embedded.address, embedded.key.clone(), idle)?;
        if is_sandbox {
            printer.notice(SANDBOX_BANNER);
        }
        Ok(Desk { client, server: embedded.address.clone(), is_sandbox, _embedded: Some(embedded) })
    }
}

impl Desk {
    /// The failure that an error of the client is, in the words of chat completions.
    pub(crate) fn failure(&self, cause: Error) -> Failure {
        let is_incomplete = matches!(cause, Error::Incomplete);
        let mut failure = remote::failure(&self.server, cause);
        if is_incomplete {
            failure.message = format!("the answer of {} broke off before its end", self.server);
            failure.hints = vec!["what came until then is not the whole answer".to_owned()];
        }
        match failure.said.as_ref().map(|said| said.code.as_str()) {
            Some("wrong_service") => {
                failure.hints = vec![
                    "a key works for one service only: `mk keys create --service inference` makes one"
                        .to_owned(),
                ];
            }
            // What helps `mk verify` does not help here; the message says when it is over.
            Some("rate_limited_minute") => failure.hints.clear(),
            _ => {}
        }
        failure
    }
}
