//! `mk config`: where settings come from and where their files are.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::terminal::tabular::{self, Column, breakable, column, hidden};
use crate::cli::terminal::term::Style;
use crate::config::{
    self, Entry, ServerArgs, StorePlace, client_listing, load_database, load_server_values, server_listing,
};

/// Examples of `mk config`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk config init                   write a commented server.toml
  mk config path                   where mk looks for files
  mk config list --origin          every value, and where it is set
  mk config list server --origin   only the server's values";

/// Which layer wins, and what a project may say; last in the help of `mk config`.
pub(crate) const NOTES: &str = "\
Each value comes from the first of these that sets it: a flag, a variable
(MK_...), the project's .mk.toml, your config.toml, the default. For the server:
a flag, a variable, server.toml, the default.

.mk.toml is the nearest one from the working directory up to the root of its
repository; outside a repository, only the working directory counts. It comes
with a checkout and may not be yours, so it may only hold [verify] (domain,
min_required, total_models, jobs, fail_on) and [output] (color, progress, view):
never a server, a key, a certificate authority or a chat model.";

/// The arguments of `mk config`.
#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Write an example server.toml in which every setting is explained
    Init {
        /// File to write [default: server.toml in the configuration directory]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Show where mk looks for files
    Path {
        /// The server's configuration file
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all settings and their values
    List {
        /// Which values: client or server [default: both]
        #[arg(value_enum, hide_possible_values = true)]
        side: Option<Side>,
        /// Also show where each value comes from
        #[arg(long)]
        origin: bool,
        /// The server's configuration file
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Whose configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Side {
    /// Of client commands such as `mk verify`
    Client,
    /// Of `mk serve`
    Server,
}

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs, session: &mut Session) -> Outcome {
    match &args.command {
        Command::Init { config } => {
            let server = ServerArgs { config: config.clone(), ..ServerArgs::default() };
            let path = config::init(&server, &session.env)?;
            session.printer.notice("wrote an example; commented settings show their defaults:");
            session.printer.line(&path.display().to_string())?;
        }
        Command::Path { config, json } => paths(session, config.clone(), *json)?,
        Command::List { side, origin, config, json } => list(session, *side, *origin, config.clone(), *json)?,
    }
    Ok(0)
}

fn paths(session: &Session, file: Option<PathBuf>, is_json: bool) -> Result<(), Failure> {
    let paths = config::paths(&session.env);
    let args = ServerArgs { config: file, ..ServerArgs::default() };
    let (data_dir, database) = match load_database(&args, &session.env) {
        Ok(StorePlace::Directory(dir)) => (Some(dir), None),
        Ok(StorePlace::Postgres(address)) => (None, Some(address.to_string())),
        // Whoever looks for the files may be about to fix this.
        Err(cause) => {
            session.printer.warning(&format!("the data directory is unknown: {cause}"));
            (None, None)
        }
    };
    let text = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    let named = [
        ("config_dir", text(paths.config_dir)),
        ("server_file", text(config::server_path(&args, &session.env))),
        ("client_file", text(paths.client_file)),
        ("credentials_file", text(paths.credentials_file)),
        ("project_file", text(paths.project_file)),
        ("data_dir", text(data_dir)),
        // Instead of the directory.
        ("database", database),
    ];
    if is_json {
        let mut document = json!({ "schema": "mk.config.paths/1" });
        for (name, place) in named {
            document[name] = json!(place);
        }
        return session.printer.document(&document);
    }
    let shown = named.map(|(name, place)| (name, place.unwrap_or_else(|| "-".to_owned())));
    tabular::record(&session.printer, &shown)
}

fn list(
    session: &mut Session,
    side: Option<Side>,
    with_origin: bool,
    file: Option<PathBuf>,
    is_json: bool,
) -> Result<(), Failure> {
    let client = match side {
        Some(Side::Server) => Vec::new(),
        _ => client_listing(&session.client_config(None, None)?),
    };
    let server = match side {
        Some(Side::Client) => Vec::new(),
        _ => server_values(session, side, file)?,
    };
    if is_json {
        let document = json!({
            "schema": "mk.config/1",
            "client": client.iter().map(entry_json).collect::<Vec<_>>(),
            "server": server.iter().map(entry_json).collect::<Vec<_>>(),
        });
        return session.printer.document(&document);
    }
    let mut sides = vec![("client", client), ("server", server)];
    sides.retain(|(_, entries)| !entries.is_empty());
    let out = session.printer.terminal.out;
    for (at, (name, entries)) in sides.iter().enumerate() {
        if out.is_terminal && sides.len() > 1 {
            if at > 0 {
                session.printer.line("")?;
            }
            // As a column it would take the space that values need.
            session.printer.line(&out.paint.apply(Style::Strong, name))?;
        }
        print(session, name, entries, with_origin)?;
    }
    Ok(())
}

/// The server's values, even without a provider. A wrong file is no failure if both sides are listed.
fn server_values(
    session: &Session,
    side: Option<Side>,
    file: Option<PathBuf>,
) -> Result<Vec<Entry>, Failure> {
    let args = ServerArgs { config: file, ..ServerArgs::default() };
    match load_server_values(&args, &session.env) {
        Ok(server) => {
            // Without providers, all other warnings follow from that.
            let none = "no model provider is configured or was found; `mk serve` needs one".to_owned();
            let doubts = if server.providers.is_empty() { vec![none] } else { server.warnings.clone() };
            for doubt in &doubts {
                session.printer.warning(doubt);
            }
            Ok(server_listing(&server))
        }
        Err(cause) if side.is_none() => {
            session.printer.warning(&format!("the server's values are missing: {cause}"));
            Ok(Vec::new())
        }
        Err(cause) => Err(cause.into()),
    }
}

fn print(session: &Session, side: &str, entries: &[Entry], with_origin: bool) -> Result<(), Failure> {
    let mut columns: Vec<Column> = vec![hidden("of"), column("key"), breakable("value")];
    if with_origin {
        columns.push(breakable("from"));
    }
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            let mut row = vec![side.to_owned(), entry.key.clone(), entry.shown().into_owned()];
            if with_origin {
                row.push(entry.origin.to_string());
            }
            row
        })
        .collect();
    tabular::print(&session.printer, &columns, &rows)
}

fn entry_json(entry: &Entry) -> Value {
    json!({ "key": entry.key, "value": value_json(&entry.value), "origin": entry.origin.to_string() })
}

/// A value as JSON: `null` if it is not set. Strings, numbers and lists are written the same way in both notations;
/// anything that is not JSON, such as `not set`, becomes a string.
fn value_json(value: &str) -> Value {
    if value.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(value).unwrap_or_else(|_| json!(value))
}
