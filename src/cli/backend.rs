//! The server that a command asks: the configured one with the key of its service, or one in this process for that one
//! command (`--sandbox`, `--local`).
//!
//! In two steps, so that what is wrong with flags and configuration is told before anything is read, connected or
//! started: [`choose`] settles which one it is, [`Chosen::open`] makes it ready.

use std::time::Duration;

use clap::Args;

use super::embedded::{Embedded, SANDBOX_BANNER};
use super::exit::Failure;
use super::globals::Session;
use super::printer::Printer;
use super::remote;
use crate::api::Service;
use crate::client::Client;
use crate::config::{ClientConfig, ServerArgs, ServerConfig, load_server};

/// Which one is meant; the configured server where no flag is given.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Where")]
pub(crate) struct BackendArgs {
    /// Simulated models in this process: no server, key or network. They know few facts
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// The configured providers, called from this process: no server needed
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) local: bool,
}

/// What a command asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// The service whose key it takes.
    pub(crate) service: Service,
    /// How much silence of the server is borne.
    pub(crate) idle: Duration,
    /// The command that needs no key, for whoever has none.
    pub(crate) trial: &'static str,
}

/// One that is settled, but nothing is connected or started yet.
pub(crate) struct Chosen {
    need: Need,
    server: Server,
}

enum Server {
    Configured(Client, String),
    Embedded { config: Box<ServerConfig>, is_sandbox: bool },
}

/// One that can be asked.
pub(crate) struct Backend {
    /// A client of the server.
    pub(crate) client: Client,
    /// The server as the person named it.
    pub(crate) server: String,
    /// Whether all of its models are simulated, by the person's own wish.
    pub(crate) is_sandbox: bool,
    /// Ends with this.
    _embedded: Option<Embedded>,
}

/// Settles by flags and configuration which one is asked.
pub(crate) fn choose(
    args: BackendArgs,
    config: &ClientConfig,
    session: &Session,
    need: Need,
) -> Result<Chosen, Failure> {
    if args.sandbox || args.local {
        let server_args = ServerArgs { sandbox: args.sandbox, ..ServerArgs::default() };
        let config = Box::new(load_server(&server_args, &session.env)?);
        return Ok(Chosen { need, server: Server::Embedded { config, is_sandbox: args.sandbox } });
    }
    let Some(key) = config.key_for(need.service)? else {
        return Err(remote::no_key(config, need.service, Some(need.trial)));
    };
    let client = remote::patient_client(config, Some(key), need.idle)?;
    Ok(Chosen { need, server: Server::Configured(client, config.server.clone()) })
}

impl Chosen {
    /// Starts what has to be started, and says where answers will be simulated.
    pub(crate) async fn open(self, printer: &Printer) -> Result<Backend, Failure> {
        let (config, is_sandbox) = match self.server {
            Server::Configured(client, server) => {
                return Ok(Backend { client, server, is_sandbox: false, _embedded: None });
            }
            Server::Embedded { config, is_sandbox } => (config, is_sandbox),
        };
        let embedded = Embedded::start(*config, self.need.service).await?;
        let client = remote::embedded_client(&embedded.address, embedded.key.clone(), self.need.idle)?;
        if is_sandbox {
            printer.notice(SANDBOX_BANNER);
        }
        Ok(Backend { client, server: embedded.address.clone(), is_sandbox, _embedded: Some(embedded) })
    }
}
