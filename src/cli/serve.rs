//! `mk serve`: the server, and what it tells the person who started it.
//!
//! What cannot work is said in one sentence before anything is served. The first SIGTERM or SIGINT drains, the
//! second ends at once.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::embedded::cannot_start;
use super::exit::{Failure, Kind, Outcome};
use super::globals::Session;
use super::local::stored;
use super::setup_link::SetupLink;
use super::{log, reload, resources, runtime, sanitize, supervisor, unit, welcome};
use crate::api::Service;
use crate::app::App;
use crate::clock::Clock;
use crate::config::{ServerArgs, ServerConfig, load_server};
use crate::keys::{self, NewKey};
use crate::secret::SecretString;
use crate::server::{self, Options, Tls};

/// Examples of `mk serve`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk serve --sandbox               simulated models: try everything without a provider
  OPENAI_API_KEY=… mk serve        providers are recognised by their usual variables
  mk serve --check                 is the configuration right?";

/// What stands below the options of `mk serve --help`.
pub(crate) const NOTES: &str = "\
Without a console key it gives a link that makes the first one in a browser,
once, within 30 minutes: on a terminal, or in the file setup-link of the data
directory.
SIGTERM and SIGINT let requests under way end for a while; a second signal ends
at once. SIGHUP reads the configuration again, TLS certificate and files of keys
included: what can change does, requests under way end by what they began with,
and the log tells what became of it. One that is wrong changes nothing.
A systemd unit is printed by `mk serve unit`. A listening socket passed by a
supervisor (LISTEN_FDS) is taken in the place of --listen, and a Type=notify
service is told when it serves and when it ends.
MK_LOG sets what is logged (default: info). On a terminal logs are text,
elsewhere JSON.
GET /metrics is for Prometheus, from this machine or with a console key;
man mk-serve lists what is counted.";

/// How long the key of `--sandbox` lives, if the server does not end it before.
const SANDBOX_KEY_LIFE: Duration = Duration::from_hours(24);

/// The arguments of `mk serve`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,

    /// Simulated models in the place of all providers
    #[arg(long)]
    sandbox: bool,

    /// Address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,

    /// Configuration file [default: server.toml in the configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
}

/// What is done instead of serving.
#[derive(Subcommand, Debug)]
enum ServeCommand {
    /// Print a unit for systemd
    #[command(help_template = super::HELP, before_help = unit::EXAMPLES, after_help = unit::NOTES)]
    Unit(unit::UnitArgs),
}

/// Runs the command.
pub(crate) fn run(args: &ServeArgs, session: &Session) -> Outcome {
    if let Some(ServeCommand::Unit(args)) = &args.command {
        return unit::run(args, session);
    }
    // Connections have runtimes of their own; this one accepts them and writes to the disk beside them.
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = built
        .map_err(|cause| Failure::new(Kind::Other, format!("cannot start: {cause}")).caused_by(cause))?;
    // Before anything is read that a reload reads again: whoever changes it while the server starts may signal.
    let reloads = {
        let _inside = runtime.enter();
        reload::Reloads::heard()
    };
    let config = load_server(&server_args(args), &session.env)?;
    let tls = config.tls.as_ref().map(Tls::read).transpose();
    let options = Options {
        tls: tls.map_err(|cause| Failure::usage(cause.to_string()).caused_by(cause))?,
        ..Options::default()
    };
    if args.check {
        return check(session, &config);
    }
    let _log = log::begin(session)?;
    no_memory_on_disk();
    let options = resources::fit(options);
    let app = App::open(&config, Clock::system()).map_err(|cause| cannot_start(&config.data_dir, cause))?;
    let inherited = supervisor::listener()?;
    let listen = inherited.as_ref().and_then(|socket| socket.local_addr().ok()).unwrap_or(config.listen);
    refuse_open_door(&app, listen, unusual_dir(session, &config))?;

    let heard = Heard { inherited, reloads };
    let outcome = runtime.block_on(serve(args, session, &config, app, options, heard));
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
    for (label, text) in welcome::facts(config) {
        session.printer.line(&format!("{label:<11}{}", sanitize::line(&text)))?;
    }
    for warning in &config.warnings {
        session.printer.warning(warning);
    }
    session.printer.notice("the configuration is right");
    Ok(0)
}

/// What comes from outside from the first moment on.
struct Heard {
    /// The listening socket of a supervisor.
    inherited: Option<std::net::TcpListener>,
    reloads: reload::Reloads,
}

async fn serve(
    args: &ServeArgs,
    session: &Session,
    config: &ServerConfig,
    app: App,
    options: Options,
    Heard { inherited, reloads }: Heard,
) -> Outcome {
    let has_own_listener = inherited.is_none();
    let bound = match inherited {
        Some(socket) => TcpListener::from_std(socket),
        None => TcpListener::bind(config.listen).await,
    };
    let listener = bound.map_err(|cause| no_listener(config.listen, cause))?;
    let address = listener.local_addr().map_err(|cause| no_listener(config.listen, cause))?;
    let base = format!("{}://{address}", if options.tls.is_some() { "https" } else { "http" });
    let app = Arc::new(app);
    // Before anybody is told that it serves: whoever is told may signal at once.
    let signalled = signalled();
    let has_person = session.printer.terminal.err.is_terminal;
    let link = SetupLink::begin(&app, &base, &config.data_dir, has_person && !session.printer.quiet)?;
    let trial = Trial::begin(args.sandbox && has_person, &app)?;
    let first = welcome::First {
        key: trial.key.as_ref(),
        link: link.shown.as_ref(),
        data_dir: unusual_dir(session, config),
    };
    welcome::say(&session.printer, config, &base, args.sandbox, &first);

    supervisor::tell_ready();
    let desk = reload::Desk::new(
        server_args(args),
        session.env.clone(),
        app.clone(),
        options.tls.clone(),
        reload::Running { config: config.clone(), has_own_listener },
    );
    let mut reloads = AbortOnDropHandle::new(tokio::spawn(reloads.follow(desk)));

    let (told, why) = tokio::sync::oneshot::channel();
    let shutdown = async {
        let ended_by = tokio::select! {
            ended_by = signalled => ended_by,
            Ok(()) = &mut reloads => EndedBy::Terminate,
        };
        drop(reloads);
        supervisor::tell_stopping();
        tracing::info!("shutting down; requests under way may end");
        // Received below, unless the server has failed already.
        let _ = told.send(ended_by);
    };
    let served = server::serve(listener, Arc::clone(&app), options, shutdown).await;
    trial.end(&app);
    drop(link);
    served.map_err(|cause| {
        Failure::new(Kind::Other, format!("the server ended badly: {cause}")).caused_by(cause)
    })?;
    match why.await {
        Ok(EndedBy::Interrupt) => Err(Failure::new(Kind::Interrupted, "interrupted")),
        _ => Ok(0),
    }
}

/// A throw-away key for the person who tries the sandbox; ends with the server.
struct Trial {
    id: Option<String>,
    key: Option<SecretString>,
}

impl Trial {
    fn begin(is_wanted: bool, app: &App) -> Result<Self, Failure> {
        if !is_wanted {
            return Ok(Self { id: None, key: None });
        }
        let now = app.clock.now();
        let apps = app.store.apps().map_err(|cause| stored(cause, "app"))?;
        let Some(first) = apps.first() else { return Ok(Self { id: None, key: None }) };
        let mut wanted = NewKey::of(Service::Verify, &first.id);
        wanted.name = Some("sandbox trial".to_owned());
        wanted.expires_at = Some(now.plus(SANDBOX_KEY_LIFE));
        let made = keys::create(&app.store, &wanted, now);
        let (key, row) =
            made.map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        Ok(Self { id: Some(row.id.to_string()), key: Some(key) })
    }

    fn end(self, app: &App) {
        let Some(id) = self.id else { return };
        if let Err(cause) = app.store.revoke_key(&id, app.clock.now()) {
            tracing::warn!(%cause, "the key of the sandbox could not be revoked; it expires within a day");
        }
    }
}

/// A crash would write the memory of this process to a disk, keys of providers included.
#[cfg(unix)]
fn no_memory_on_disk() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(cause) = setrlimit(Resource::Core, none) {
        tracing::warn!(%cause, "a crash would write memory to a disk; set the limit of core files to 0");
    }
}

#[cfg(not(unix))]
const fn no_memory_on_disk() {}

/// Where the database is, if commands beside the server do not look there of themselves.
fn unusual_dir<'a>(session: &Session, config: &'a ServerConfig) -> Option<&'a Path> {
    let is_usual = session.env.data_home.as_deref() == Some(&*config.data_dir);
    (!is_usual).then_some(&*config.data_dir)
}

/// A server that others can reach needs an operator who can look after it. `data_dir` as in
/// [`unusual_dir`].
fn refuse_open_door(app: &App, listen: SocketAddr, data_dir: Option<&Path>) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if app.store.has_console_key(app.clock.now()).map_err(|cause| stored(cause, "key"))? {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{listen} can be reached from other machines, and there is no console key yet"
    ))
    .hint(format!("make one first: mk keys create --service console{}", welcome::beside(data_dir))))
}

fn no_listener(listen: SocketAddr, cause: io::Error) -> Failure {
    let failure = match cause.kind() {
        io::ErrorKind::AddrInUse => Failure::usage(format!("{listen} is already in use"))
            .hint("does another mk serve run? choose another port: mk serve --listen 127.0.0.1:8081"),
        io::ErrorKind::PermissionDenied => Failure::usage(format!("{listen} may not be listened on"))
            .hint("ports below 1024 are for root; choose another: mk serve --listen 127.0.0.1:8080"),
        io::ErrorKind::AddrNotAvailable => {
            Failure::usage(format!("{listen} is not an address of this machine"))
                .hint("use 127.0.0.1, or 0.0.0.0 for all")
        }
        _ => Failure::usage(format!("cannot listen on {listen}: {cause}")),
    };
    failure.caused_by(cause)
}

/// What ended the server.
#[derive(Clone, Copy, Debug)]
enum EndedBy {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, as supervisors send it: an orderly end.
    Terminate,
}

/// Resolves at the first signal, from this call on, that asks the server to end; the second one ends it by itself.
#[cfg(unix)]
fn signalled() -> impl Future<Output = EndedBy> {
    use tokio::signal::unix::{SignalKind, signal};
    let heard = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    runtime::end_at_second(&[runtime::SIGINT, runtime::SIGTERM]);
    async {
        let (Ok(mut interrupt), Ok(mut terminate)) = heard else {
            // Signals that cannot be listened to act by default, and end the server.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => EndedBy::Interrupt,
            _ = terminate.recv() => EndedBy::Terminate,
        }
    }
}

/// Resolves at the first Ctrl-C; the second one ends the server by itself.
#[cfg(not(unix))]
async fn signalled() -> EndedBy {
    runtime::end_at_second(&[runtime::SIGINT]);
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    EndedBy::Interrupt
}
