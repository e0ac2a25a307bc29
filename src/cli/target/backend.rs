//! The server that a command calls: the configured one with the key for its service, or one in this process that lives
//! as long as the command (`--sandbox`, `--local`).
//!
//! This takes two steps, so that mistakes in flags and configuration are reported before anything is connected or
//! started: [`choose`] selects the server, [`Chosen::open`] makes it ready. [`choose_and_read`] also reads the input.

use std::time::Duration;

use clap::Args;

use super::embedded::{Embedded, SANDBOX_BANNER};
use super::{remote, server_key};
use crate::api::Service;
use crate::cli::args::globals::Session;
use crate::cli::commands::receipt::signing_key_announced;
use crate::cli::process::exit::Failure;
use crate::cli::terminal::printer::Printer;
use crate::client::Client;
use crate::config::{ClientConfig, ServerArgs, ServerConfig, load_server_for};
use crate::secret::SecretString;

/// Flags that select the server; the configured one where none is given.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Where")]
pub(crate) struct BackendArgs {
    /// Use simulated models without key or network; they know only a few facts
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// Call the configured providers, without a server
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) local: bool,
}

/// What a command needs from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// The service whose key is used.
    pub(crate) service: Service,
    /// How long the server may be silent.
    pub(crate) idle_timeout: Duration,
    /// A command that works without a key, to suggest to whoever has none.
    pub(crate) keyless_command: &'static str,
}

/// The selected server; nothing is connected or started yet.
pub(crate) struct Chosen {
    need: Need,
    server: Server,
    inference: Option<Inference>,
}

/// How models are to be asked directly, beside what the command needs otherwise.
struct Inference {
    idle_timeout: Duration,
    /// The client of a configured server.
    client: Option<Client>,
}

enum Server {
    Configured(Client, String),
    Embedded { config: Box<ServerConfig>, is_sandbox: bool, signs_receipts: bool },
}

/// A server that is ready for requests.
pub(crate) struct Backend {
    /// A client of the server.
    pub(crate) client: Client,
    /// A client with a key for inference, if one was asked for.
    pub(crate) inference: Option<Client>,
    /// The server as the person named it.
    pub(crate) server: String,
    /// Whether all of its models are simulated, as the person asked for.
    pub(crate) is_sandbox: bool,
    /// The server in this process; stops when this is dropped.
    embedded: Option<Embedded>,
}

impl Backend {
    /// The command that lists its models.
    pub(crate) const fn list_command(&self) -> &'static str {
        match (self.is_sandbox, &self.embedded) {
            (true, _) => "mk models --sandbox",
            (false, Some(_)) => "mk models --local",
            (false, None) => "mk models",
        }
    }
}

/// Selects the server from flags and configuration.
pub(crate) fn choose(
    args: BackendArgs,
    config: &ClientConfig,
    session: &Session,
    need: Need,
) -> Result<Chosen, Failure> {
    if args.sandbox || args.local {
        let server_args = ServerArgs { sandbox: args.sandbox, ..ServerArgs::default() };
        let config = Box::new(load_server_for(&server_args, &session.env, need.keyless_command)?);
        return Ok(Chosen {
            need,
            server: Server::Embedded { config, is_sandbox: args.sandbox, signs_receipts: false },
            inference: None,
        });
    }
    let Some(key) = server_key::key_for(config, need.service)? else {
        return Err(server_key::no_key(config, need.service, Some(need.keyless_command)));
    };
    let client = remote::client_with_timeout(config, Some(key), need.idle_timeout)?;
    Ok(Chosen { need, server: Server::Configured(client, config.server.clone()), inference: None })
}

/// Selects the server and reads the input. Files come first: what is wrong with one is a mistake of this command and
/// told before a missing key. Standard input comes last, as a person may have to type it.
pub(crate) fn choose_and_read<T>(
    choose: impl FnOnce() -> Result<Chosen, Failure>,
    reads_stdin: bool,
    read: impl FnOnce() -> Result<T, Failure>,
) -> Result<(Chosen, T), Failure> {
    if reads_stdin {
        let chosen = choose()?;
        return Ok((chosen, read()?));
    }
    let input = read()?;
    Ok((choose()?, input))
}

impl Chosen {
    /// The same, to sign receipts by a key that lasts: a server in this process takes that of the server whose
    /// configuration it has.
    pub(crate) fn signing_receipts(mut self) -> Self {
        if let Server::Embedded { signs_receipts, .. } = &mut self.server {
            *signs_receipts = true;
        }
        self
    }

    /// The same, to ask models directly as well, which may be silent for as long as `idle_timeout`.
    ///
    /// # Errors
    /// If there is no inference key for the server.
    pub(crate) fn with_inference(
        mut self,
        config: &ClientConfig,
        idle_timeout: Duration,
    ) -> Result<Self, Failure> {
        let client = match &self.server {
            Server::Embedded { .. } => None,
            Server::Configured(..) => {
                let key = server_key::key_for(config, Service::Inference)?;
                let trial = Some(self.need.keyless_command);
                let key = key.ok_or_else(|| server_key::no_key(config, Service::Inference, trial))?;
                Some(remote::client_with_timeout(config, Some(key), idle_timeout)?)
            }
        };
        self.inference = Some(Inference { idle_timeout, client });
        Ok(self)
    }

    /// Starts what must be started, and announces where answers will be simulated.
    pub(crate) async fn open(self, printer: &Printer) -> Result<Backend, Failure> {
        let (config, is_sandbox, signs_receipts) = match self.server {
            Server::Configured(client, server) => {
                let inference = self.inference.and_then(|inference| inference.client);
                return Ok(Backend { client, inference, server, is_sandbox: false, embedded: None });
            }
            Server::Embedded { config, is_sandbox, signs_receipts } => (config, is_sandbox, signs_receipts),
        };
        let receipt_key =
            if signs_receipts { Some(signing_key_announced(&config.store_place(), printer)?) } else { None };
        let embedded =
            Embedded::start(*config, self.need.service, self.inference.is_some(), receipt_key).await?;
        let client = |key: &SecretString, idle_timeout| {
            remote::client_of(embedded.address.clone(), Some(key.clone()), idle_timeout, None)
        };
        let inference = embedded.inference_key.as_ref().zip(self.inference);
        let inference = inference.map(|(key, inference)| client(key, inference.idle_timeout)).transpose()?;
        let client = client(&embedded.key, self.need.idle_timeout)?;
        if is_sandbox {
            printer.notice(SANDBOX_BANNER);
        }
        let server = embedded.address.clone();
        Ok(Backend { client, inference, server, is_sandbox, embedded: Some(embedded) })
    }
}
