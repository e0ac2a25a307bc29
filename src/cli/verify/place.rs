//! Where verifications run: on a server that is there, or on one of our own for one command.

use std::time::Duration;

use super::args;
use super::watch::Target;
use crate::api::Service;
use crate::cli::embedded::Embedded;
use crate::cli::exit::Failure;
use crate::cli::globals::Session;
use crate::cli::remote;
use crate::config::{ClientConfig, ServerArgs, ServerConfig, load_server};

/// Where verifications run.
pub(crate) enum Place {
    /// A server that is there.
    Server(Target),
    /// One of our own, for this command.
    Embedded {
        /// What it is to be.
        config: Box<ServerConfig>,
        /// Whether its models are simulated.
        is_sandbox: bool,
        /// For a whole verification.
        limit: Duration,
    },
}

/// A place that takes requests.
pub(crate) struct Open {
    /// Where they go.
    pub(crate) target: Target,
    /// Whether simulated models are known to answer.
    pub(crate) is_sandbox: bool,
    /// What ends with this.
    _embedded: Option<Embedded>,
}

impl Place {
    /// What flags and configuration name. `without_a_server` is a command to try where there is no key.
    pub(crate) fn settle(
        flags: &args::Place,
        config: &ClientConfig,
        session: &Session,
        limit: Duration,
        without_a_server: &str,
    ) -> Result<Self, Failure> {
        if flags.sandbox || flags.local {
            let server_args = ServerArgs { sandbox: flags.sandbox, ..ServerArgs::default() };
            let config = Box::new(load_server(&server_args, &session.env)?);
            return Ok(Self::Embedded { config, is_sandbox: flags.sandbox, limit });
        }
        let Some(key) = config.key_for(Service::Verify) else {
            return Err(remote::no_key(config, Service::Verify, Some(without_a_server)));
        };
        let client = remote::client(config, Some(key))?;
        Ok(Self::Server(Target { client, server: config.server.clone(), limit }))
    }

    /// Starts what is to be started.
    pub(crate) async fn open(self) -> Result<Open, Failure> {
        match self {
            Self::Server(target) => Ok(Open { target, is_sandbox: false, _embedded: None }),
            Self::Embedded { config, is_sandbox, limit } => {
                let embedded = Embedded::start(*config, Service::Verify).await?;
                let client =
                    remote::embedded_client(&embedded.address, embedded.key.clone(), remote::IDLE_TIMEOUT)?;
                let target = Target { client, server: embedded.address.clone(), limit };
                Ok(Open { target, is_sandbox, _embedded: Some(embedded) })
            }
        }
    }
}
