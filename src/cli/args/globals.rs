//! The flags that every command takes, and what follows from them.

use std::path::PathBuf;

use clap::Args;

use crate::cli::process::exit::Failure;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::Mode;
use crate::cli::terminal::term::Terminal;
use crate::config::{ClientArgs, ClientConfig, ColorMode, Env, ProgressMode, View, load_client};

/// The heading of the flags that every command takes.
pub(crate) const HEADING: &str = "Global options";

/// The flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Globals {
    /// Whether to use colour: auto, always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) color: Option<ColorMode>,

    /// How to show progress: auto, bars, lines (for logs and screen readers) or none
    #[arg(long, global = true, value_enum, value_name = "HOW", hide_possible_values = true)]
    pub(crate) progress: Option<ProgressMode>,

    /// Print nothing but errors and what --json asks for
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Show the causes and request ids of errors
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Base address of the server [default: port 8080 of this machine]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// Profile of config.toml to use
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// File that holds the API key
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,

    /// PEM file of additional certificate authorities to trust
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
}

impl Globals {
    /// The flag that selects a server, if one does.
    pub(crate) const fn server_flag(&self) -> Option<&'static str> {
        match (&self.server, &self.profile) {
            (Some(_), _) => Some("--server"),
            (None, Some(_)) => Some("--profile"),
            (None, None) => None,
        }
    }
}

/// What every command works with.
#[derive(Debug)]
pub(crate) struct Session {
    /// The flags.
    pub(crate) globals: Globals,
    /// The environment.
    pub(crate) env: Env,
    /// Access to the terminal.
    pub(crate) printer: Printer,
}

impl Session {
    /// Opens a session for this process.
    pub(crate) fn begin(globals: Globals, env: Env) -> Self {
        let printer = printer(&globals, &env, globals.color);
        Self { globals, env, printer }
    }

    /// The client's configuration; `timeout` and `view` are the command's own flags. From here on the configured colour
    /// mode applies.
    pub(crate) fn client_config(
        &mut self,
        timeout: Option<&str>,
        view: Option<View>,
    ) -> Result<ClientConfig, Failure> {
        let config = self.quiet_client_config(timeout, view)?;
        self.warn(&config);
        Ok(config)
    }

    /// The same without printing its warnings, for a command that may turn out not to need a server; [`Session::warn`]
    /// prints them.
    pub(crate) fn quiet_client_config(
        &mut self,
        timeout: Option<&str>,
        view: Option<View>,
    ) -> Result<ClientConfig, Failure> {
        let globals = &self.globals;
        let args = ClientArgs {
            server: globals.server.clone(),
            profile: globals.profile.clone(),
            api_key_file: globals.api_key_file.clone(),
            timeout: timeout.map(str::to_owned),
            ca_cert: globals.ca_cert.clone(),
            color: globals.color,
            progress: globals.progress,
            view,
        };
        let config = load_client(&args, &self.env)?;
        self.printer = printer(&self.globals, &self.env, Some(config.color));
        Ok(config)
    }

    /// Warns of what a configuration may contain but probably does not mean.
    pub(crate) fn warn(&self, config: &ClientConfig) {
        for warning in &config.warnings {
            self.printer.warning(warning);
        }
    }

    /// How progress is shown.
    pub(crate) fn progress(&self, config: &ClientConfig) -> Mode {
        Mode::choose(config.progress, &self.printer, &lookup(&self.env))
    }
}

fn printer(globals: &Globals, env: &Env, color: Option<ColorMode>) -> Printer {
    Printer {
        terminal: Terminal::detect(color, &lookup(env)),
        quiet: globals.quiet,
        verbose: globals.verbose,
    }
}

/// Looks up variables for the terminal modules. One that is not valid text counts as absent here; the configuration
/// reports it.
fn lookup(env: &Env) -> impl Fn(&str) -> Option<String> {
    |name| env.text(name).ok().flatten().map(str::to_owned)
}
