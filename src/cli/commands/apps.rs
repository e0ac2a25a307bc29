//! `mk apps`: the groups that keys and their usage belong to.

use clap::{Args, Subcommand};
use serde_json::json;

use super::budget::Budget;
use super::usage::{self, Format};
use crate::api::console::App;
use crate::cli::args::globals::Session;
use crate::cli::args::number::dollars;
use crate::cli::guide::usage_error;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::target::admin::{Admin, Unpriced, location_flags};
use crate::cli::target::database::DatabaseArgs;
use crate::cli::target::last_console_key;
use crate::cli::terminal::confirm::confirm;
use crate::cli::terminal::shell;
use crate::cli::terminal::tabular::{self, Column, column, names, number};
use crate::clock::Clock;
use crate::money::NanoUsd;
use crate::storage::{AppChange, LAST_APP};
use crate::usage::Month;

/// Examples of `mk apps`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk apps create newsroom --budget-usd 50
  mk apps list
  mk apps update newsroom --budget-usd 80     applies from the next request
  mk apps statement newsroom --month 2026-10  its usage, by key and model
  mk apps delete newsroom                     revokes its keys, keeps its usage
  mk apps list --server https://mk.example.org";

/// Where they are, last in the help of `mk apps` and `mk keys`.
pub(crate) const NOTES: &str = "\
Works on this machine's database or on a remote server: the one that --server or
--profile names, or the one set in the environment or config.toml if there is a
console key for it (`mk login`). --data-dir and --config select the database.
--api-key-file selects a server, with that key only. -v shows which is used.
More: mk help keys";

/// The columns in a pipe, last in the help of `mk apps list`.
const LIST_NOTES: &str = "\
In a pipe, lines are tab-separated: id, name, active keys, creation time,
monthly budget and amount spent this month in US dollars, percentage used, calls
at an unknown price. Values that are not set are `-`.";

/// The arguments of `mk apps`.
#[derive(Args, Debug)]
pub(crate) struct AppsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create an app
    Create {
        /// Name, unique among the apps
        name: String,
        /// Monthly budget of all its keys together, in US dollars per calendar month (UTC) [default: none]
        #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
        budget_usd: Option<NanoUsd>,
        #[command(flatten)]
        common: Common,
    },
    /// List all apps
    #[command(after_help = LIST_NOTES)]
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Show one app
    Show {
        /// Its name or id
        app: String,
        #[command(flatten)]
        common: Common,
    },
    /// Change an app's name or budget
    Update {
        /// Its name or id
        app: String,
        /// New name, unique among the apps
        #[arg(long)]
        name: Option<String>,
        /// Monthly budget of all its keys together, in US dollars per calendar month (UTC)
        #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
        budget_usd: Option<NanoUsd>,
        /// Remove the budget
        #[arg(long, conflicts_with = "budget_usd")]
        no_budget: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show an app's usage in a month, by service, key and model
    Statement {
        /// Its name or id; for a deleted app, its id
        app: String,
        /// Calendar month (UTC), such as 2026-10 [default: this month]
        #[arg(long, value_parser = usage::month)]
        month: Option<Month>,
        /// Print CSV
        #[arg(long, conflicts_with = "json")]
        csv: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Delete an app and revoke its keys for good; its usage is kept
    Delete {
        /// Its name or id
        app: String,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        common: Common,
    },
}

/// What all of them take, and the commands about keys.
#[derive(Args, Debug)]
pub(super) struct Common {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
}

impl AppsArgs {
    fn common(&self) -> &Common {
        match &self.command {
            Command::Create { common, .. }
            | Command::List { common }
            | Command::Show { common, .. }
            | Command::Update { common, .. }
            | Command::Statement { common, .. }
            | Command::Delete { common, .. } => common,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &AppsArgs, session: &mut Session) -> Outcome {
    let Common { json: is_json, database } = args.common();
    let is_json = *is_json;
    let admin = match &args.command {
        Command::Create { name, budget_usd, .. } => {
            let rehearse = |admin: &Admin| admin.records().create_app(name, *budget_usd).map(drop);
            Admin::open_or_create(database, session, rehearse)?
        }
        _ => Admin::open(database, session)?,
    };
    match &args.command {
        Command::Create { name, budget_usd, .. } => {
            let app = admin.records().create_app(name, *budget_usd)?;
            session.printer.sentence(&format!(
                "created the app; next, create a key in it: `mk keys create --service verify --app {}{}`",
                as_argument(&app),
                location_flags(database, session)
            ));
            show(session, None, app, is_json)?;
        }
        Command::List { .. } => list(session, &admin, is_json)?,
        Command::Show { app, .. } => show(session, Some(&admin), admin.app(app)?, is_json)?,
        Command::Update { app, name, budget_usd, no_budget, .. } => {
            let budget = if *no_budget { Some(None) } else { budget_usd.map(Some) };
            let change = AppChange { name: name.clone(), budget };
            if change == AppChange::default() {
                return Err(usage_error::no_change("apps"));
            }
            show(session, Some(&admin), admin.records().update_app(&admin.app(app)?, &change)?, is_json)?;
        }
        Command::Statement { app, month, csv, .. } => {
            let format = Format::from_flags(*csv, is_json);
            usage::statement(
                session,
                &admin,
                app,
                month.unwrap_or(Month::of(Clock::system().now())),
                format,
            )?;
        }
        Command::Delete { app, yes, .. } => delete(session, &admin, &admin.app(app)?, *yes, is_json)?,
    }
    Ok(0)
}

/// How to name the app in a command to be copied: by its id if its name would need quotes.
fn as_argument(app: &App) -> &str {
    let is_plain = shell::word(&app.name) == app.name;
    if is_plain && !app.name.starts_with('-') { &app.name } else { &app.id }
}

fn list(session: &Session, admin: &Admin, is_json: bool) -> Result<(), Failure> {
    let (printer, records) = (&session.printer, admin.apps()?);
    if is_json {
        return printer.document(&json!({ "schema": "mk.apps/1", "apps": records }));
    }
    if records.is_empty() {
        printer.sentence("there are no apps; `mk apps create NAME` creates one");
        return Ok(());
    }
    let unpriced = admin.unpriced_of_apps(None)?;
    if !printer.terminal.out.is_terminal {
        let rows: Vec<Vec<String>> = records.iter().map(|app| plain_cells(app, &unpriced)).collect();
        return tabular::print_plain(printer, &rows);
    }
    let cells = |app: &App| {
        let [budget, spent] = Budget::of_app(app, &unpriced).cells(printer);
        let created = app.created_at.split('T').next().unwrap_or_default().to_owned();
        vec![app.name.clone(), app.active_keys.to_string(), created, budget, spent]
    };
    let rows: Vec<Vec<String>> = records.iter().map(cells).collect();
    tabular::print_fitting(printer, &COLUMNS, &rows, &DROPPABLE)
}

/// The columns for people.
const COLUMNS: [Column; 5] =
    [names("name"), number("active keys"), column("created"), number("budget"), number("spent")];

/// Columns that a narrow terminal drops: the creation date.
const DROPPABLE: [usize; 1] = [2];

fn plain_cells(app: &App, unpriced: &Unpriced) -> Vec<String> {
    let mut cells =
        vec![app.id.clone(), app.name.clone(), app.active_keys.to_string(), app.created_at.clone()];
    cells.extend(Budget::of_app(app, unpriced).plain_cells());
    cells
}

/// Prints an app's record. `admin` is that of an app which may have spent something.
fn show(session: &Session, admin: Option<&Admin>, app: App, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return session.printer.document(&json!({ "schema": "mk.app/1", "app": app }));
    }
    let unpriced = admin.map(|admin| admin.unpriced_of_apps(Some(&app.id))).transpose()?.unwrap_or_default();
    let budget = Budget::of_app(&app, &unpriced);
    let fields = [
        ("id", app.id),
        ("name", app.name),
        ("active keys", app.active_keys.to_string()),
        ("created", app.created_at),
        ("budget", budget.monthly()),
        ("spent", budget.this_month(&session.printer)),
    ];
    tabular::record(&session.printer, &fields)
}

fn delete(session: &Session, admin: &Admin, app: &App, yes: bool, is_json: bool) -> Result<(), Failure> {
    // Nobody is prompted for or warned of what is impossible. If two do it at once, the store refuses one of them.
    if admin.apps()?.len() < 2 {
        return Err(Failure::new(Kind::Conflict, LAST_APP));
    }
    let question = format!(
        "Delete the app `{}`{}? Its active keys ({}) stop working at once, for good; its usage is kept.",
        app.name,
        admin.location_suffix(),
        app.active_keys
    );
    let has_keys = app.active_keys > 0;
    let warning = if has_keys { last_console_key::warning(admin, |key| key.app_id == app.id) } else { None };
    confirm(&session.printer, &question, warning.as_deref(), yes)?;
    let revoked = admin.records().delete_app(app)?.revoked_keys;
    if is_json {
        let document = json!({ "schema": "mk.app.deleted/1", "deleted": app.id, "name": app.name, "revoked_keys": revoked });
        return session.printer.document(&document);
    }
    session.printer.sentence(&format!("deleted the app `{}`; keys revoked: {revoked}", app.name));
    Ok(())
}
