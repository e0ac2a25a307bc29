//! `mk serve`: runs the server, and informs the person who started it.
//!
//! What cannot work is reported in one sentence before anything is served. The first SIGTERM or SIGINT drains, the
//! second one ends the requests under way, the third one the process.

mod checks;
mod signals;
mod trial;
pub(in crate::cli) mod unit;
pub(in crate::cli) mod welcome;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Service;
use crate::app::AppState;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::{log, reload, resources, runtime, supervisor};
use crate::cli::target::embedded::cannot_start;
use crate::cli::target::setup_link::SetupLink;
use crate::cli::terminal::tabular;
use crate::clock::Clock;
use crate::config::{ServerArgs, ServerConfig, load_server};
use crate::server::{self, Options, Tls};
use checks::{
    database_flags, disable_core_dumps, listen_failure, refuse_exposed_server, refuse_two_databases,
    warn_of_unused_database,
};
use signals::{ShutdownCause, ShutdownSignals};
use trial::TrialKeys;

/// Examples of `mk serve`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk serve --sandbox            simulated models, to try mk without a provider
  OPENAI_API_KEY=... mk serve   finds providers by their usual variables
  mk serve --check              is the configuration valid?";

/// The text below the options in `mk serve --help`.
pub(crate) const NOTES: &str = "\
If there is no console key yet, the server gives you a link that creates the
first one in a browser. It works once, within 30 minutes. A terminal shows it;
otherwise it is in the file setup-link in the data directory.
SIGTERM and SIGINT give requests in progress 20 s to finish. A second signal
ends them; a third kills the process. SIGHUP reloads the configuration,
including the TLS certificate and key files. Requests in progress keep the old
settings. An invalid configuration is not applied, and the log says why.
`mk serve unit` prints a systemd unit. A listening socket passed by a supervisor
(LISTEN_FDS) replaces --listen, and a Type=notify service is notified of start
and stop.
Servers on several machines share apps, keys and usage through
MK_DATABASE_URL=postgres://..., and rate limits through
MK_LIMITS_URL=redis://...; see `mk help clustering`.
MK_LOG sets the log level (default: info). Logs are text on a terminal, and JSON
elsewhere.
GET /metrics is for Prometheus, from this machine or with a console key.
More: mk help operation";

/// The arguments of `mk serve`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,

    /// Use simulated models instead of any provider
    #[arg(long)]
    sandbox: bool,

    /// Address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,

    /// Configuration file [default: server.toml in the configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory of the SQLite database
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
}

/// What is done instead of serving.
#[derive(Subcommand, Debug)]
enum ServeCommand {
    /// Print a systemd unit
    #[command(help_template = crate::cli::HELP, before_help = unit::EXAMPLES, after_help = unit::NOTES)]
    Unit(unit::UnitArgs),
}

/// Runs the command.
pub(crate) fn run(args: &ServeArgs, session: &Session) -> Outcome {
    if let Some(ServeCommand::Unit(args)) = &args.command {
        return unit::run(args, session);
    }
    // Connections are served by runtimes of their own; this one accepts them and writes to the disk meanwhile.
    let runtime = runtime::build()?;
    let reloads = {
        let _inside = runtime.enter();
        reload::Reloads::listen()
    };
    let config = load_server(&server_args(args), &session.env)?;
    if args.data_dir.is_some() {
        refuse_two_databases(&config)?;
    }
    let tls = config.tls.as_ref().map(Tls::read).transpose();
    let options = Options {
        tls: tls.map_err(|cause| Failure::usage(cause.to_string()).caused_by(cause))?,
        ..Options::default()
    };
    let log_filter = log::filter_from_env(session)?;
    if args.check {
        AppState::check(&config, &Clock::system()).map_err(|cause| cannot_start(&config, cause))?;
        return check(session, &config);
    }
    let _log = log::begin(session, log_filter)?;
    disable_core_dumps();
    let options = resources::limit_connections(options);
    let app = AppState::open(&config, Clock::system()).map_err(|cause| cannot_start(&config, cause))?;
    warn_of_unused_database(&config);
    let inherited = supervisor::listener()?;
    let listen = inherited.as_ref().and_then(|socket| socket.local_addr().ok()).unwrap_or(config.listen);
    refuse_exposed_server(&app, listen, &database_flags(session, &config))?;

    let handles = StartupHandles { inherited, reloads };
    let outcome = runtime.block_on(serve(args, session, &config, app, options, handles));
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

fn server_args(args: &ServeArgs) -> ServerArgs {
    ServerArgs {
        config: args.config.clone(),
        listen: args.listen.clone(),
        data_dir: args.data_dir.clone(),
        sandbox: args.sandbox,
    }
}

fn check(session: &Session, config: &ServerConfig) -> Outcome {
    tabular::record(&session.printer, &welcome::facts(config))?;
    for warning in &config.warnings {
        session.printer.warning(warning);
    }
    let lacking = config.verify.lacking();
    session.printer.sentence(&match lacking.as_slice() {
        [] => "the configuration is valid".to_owned(),
        domains => {
            let domains: Vec<&str> = domains.iter().map(|domain| domain.as_str()).collect();
            let domains = domains.join(" and ");
            format!("the server can start, but verification ({domains}) will answer 503")
        }
    });
    Ok(0)
}

/// What is acquired before anything else: the listener of a supervisor, and reload signals.
struct StartupHandles {
    /// The listening socket passed by a supervisor.
    inherited: Option<std::net::TcpListener>,
    reloads: reload::Reloads,
}

async fn serve(
    args: &ServeArgs,
    session: &Session,
    config: &ServerConfig,
    app: AppState,
    options: Options,
    StartupHandles { inherited, reloads }: StartupHandles,
) -> Outcome {
    let has_own_listener = inherited.is_none();
    let bound = match inherited {
        Some(socket) => TcpListener::from_std(socket),
        None => server::listen(config.listen),
    };
    let listener = bound.map_err(|cause| listen_failure(config.listen, cause))?;
    let address = listener.local_addr().map_err(|cause| listen_failure(config.listen, cause))?;
    let base = format!("{}://{address}", if options.tls.is_some() { "https" } else { "http" });
    let app = Arc::new(app);
    // Before anybody is told that the server is ready: whoever is told may signal at once.
    let ShutdownSignals { requested, abort } = signals::listen()?;
    let has_person = session.printer.terminal.err.is_terminal;
    let link = SetupLink::begin(&app, &base, &config.data_dir, has_person && !session.printer.quiet)?;
    let trial_keys = TrialKeys::begin(args.sandbox && has_person, &app, &config.data_dir)?;
    let first = welcome::FirstSteps {
        keys: trial_keys.key(Service::Verify).zip(trial_keys.key(Service::Inference)),
        link: link.shown.as_ref(),
        database_flags: database_flags(session, config),
    };
    welcome::print(&session.printer, config, &base, app.configured().is_sandbox, &first);

    supervisor::notify_ready();
    let running = reload::Running { config: config.clone(), has_own_listener };
    let reloader = reload::Reloader {
        args: server_args(args),
        env: session.env.clone(),
        app: app.clone(),
        tls: options.tls.clone(),
        running: Arc::new(Mutex::new(running)),
    };
    let mut reloads = AbortOnDropHandle::new(tokio::spawn(reloads.follow(reloader)));

    let drain = options.drain;
    let (cause_sender, cause_received) = tokio::sync::oneshot::channel();
    let shutdown = async {
        let cause_of_shutdown = tokio::select! {
            Ok(cause_of_shutdown) = requested => cause_of_shutdown,
            Ok(()) = &mut reloads => ShutdownCause::Terminate,
        };
        drop(reloads);
        supervisor::notify_stopping();
        tracing::info!(
            "shutting down; requests in progress have {drain:?} to finish, and a second signal ends them now"
        );
        // Received below, unless the server has failed before that.
        let _ = cause_sender.send(cause_of_shutdown);
    };
    let options = Options { abort, ..options };
    let served = server::serve(listener, Arc::clone(&app), options, shutdown).await;
    trial_keys.end(&app);
    drop(link);
    served.map_err(|cause| {
        Failure::new(Kind::Other, format!("the server stopped with an error: {cause}")).caused_by(cause)
    })?;
    match cause_received.await {
        Ok(ShutdownCause::Interrupt) => Err(Failure::new(Kind::Interrupted, "interrupted")),
        _ => Ok(0),
    }
}
