//! A server inside this process for a single command: on a free loopback port, with a store that leaves nothing behind.
//!
//! The command calls it over HTTP like any other server, so that what works here works there.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::database::database_failure;
use crate::api::Service;
use crate::app::{AppState, StartError};
use crate::cli::process::exit::{Failure, Kind};
use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::keys::{self, NewKey};
use crate::secret::SecretString;
use crate::server;
use crate::verify::receipt::SigningKey;

/// Announced once, before anything that simulated models produce; fits a terminal of 40 columns.
pub(crate) const SANDBOX_BANNER: &str = "SANDBOX: answers are simulated, not real";

/// A server inside this process; stops when dropped.
pub(crate) struct Embedded {
    /// Its base address.
    pub(crate) address: String,
    /// A key for the service that was asked for.
    pub(crate) key: SecretString,
    /// A key for inference, if that was asked for as well.
    pub(crate) inference_key: Option<SecretString>,
    task: JoinHandle<()>,
}

impl Embedded {
    /// Starts a server with the providers and panels of `config`, and makes a key for `service`, and one for inference
    /// if models are asked directly as well. It signs receipts by a `receipt_key`, or by one that ends with it.
    pub(crate) async fn start(
        mut config: ServerConfig,
        service: Service,
        with_inference: bool,
        receipt_key: Option<SigningKey>,
    ) -> Result<Self, Failure> {
        // The only caller is this process, so its keys have no limits.
        config.limits.keys.per_minute = 0;
        config.limits.keys.per_day = 0;
        let clock = Clock::system();
        let app =
            AppState::in_memory(&config, clock.clone()).map_err(|cause| cannot_start(&config, cause))?;
        let app = match receipt_key {
            Some(key) => app.with_receipt_key(key),
            None => app,
        };
        let make = |service: Service| {
            let made = keys::create(&app.store, &NewKey::new(service, "default"), clock.now());
            made.map(|(key, _)| key)
                .map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))
        };
        let key = make(service)?;
        let inference_key = with_inference.then(|| make(Service::Inference)).transpose()?;

        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(loopback).await.map_err(listen_failure)?;
        let address = format!("http://{}", listener.local_addr().map_err(listen_failure)?);
        let task = tokio::spawn(async move {
            let never = std::future::pending();
            // The calls of one command need no worker threads of their own.
            let options = server::Options { workers: 0, ..server::Options::default() };
            // Ends only when the task is dropped, so there is no error to report.
            let _ = server::serve(listener, Arc::new(app), options, never).await;
        });
        Ok(Self { address, key, inference_key, task })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The failure for a server that cannot start with `config`, with a hint.
pub(crate) fn cannot_start(config: &ServerConfig, cause: StartError) -> Failure {
    match cause {
        StartError::Storage(cause) => database_failure(&config.store_place(), cause),
        StartError::Provider { .. } => Failure::usage(cause.to_string())
            .hint("`mk config list server --origin` shows where the setting comes from")
            .caused_by(cause),
    }
}

fn listen_failure(cause: std::io::Error) -> Failure {
    Failure::new(Kind::Other, format!("cannot listen on a loopback port: {cause}")).caused_by(cause)
}
