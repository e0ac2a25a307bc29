//! `mk apps`: the groups that keys and their usage belong to.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;

use super::confirm::confirm;
use super::exit::{Failure, Outcome};
use super::figures::{self, monthly, this_month};
use super::globals::Session;
use super::local::{Database, Local, refused, stored};
use super::number::dollars;
use super::sheet::{self, column, hidden};
use super::usage::{self, Format};
use crate::api::console::App;
use crate::clock::Clock;
use crate::keys::{self, apps};
use crate::money::NanoUsd;
use crate::storage::{AppChange, AppRow};
use crate::usage::Month;

/// Examples of `mk apps`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk apps create newsroom --budget-usd 50
  mk apps list
  mk apps update newsroom --budget-usd 80     holds from the next request on
  mk apps statement newsroom --month 2026-10  what it used in that month, by key and model
  mk apps delete newsroom                     its keys are revoked, its usage stays";

/// The arguments of `mk apps`.
#[derive(Args, Debug)]
pub(crate) struct AppsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make an app
    Create {
        /// Its name, which no other app has
        name: String,
        /// What all its keys together may spend in a calendar month (UTC), in US dollars [default: any amount]
        #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
        budget_usd: Option<NanoUsd>,
        #[command(flatten)]
        common: Common,
    },
    /// List all apps
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
    #[command(group(ArgGroup::new("change").args(["name", "budget_usd", "no_budget"]).required(true).multiple(true)))]
    Update {
        /// Its name or id
        app: String,
        /// A new name, which no other app has
        #[arg(long)]
        name: Option<String>,
        /// What all its keys together may spend in a calendar month (UTC), in US dollars
        #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
        budget_usd: Option<NanoUsd>,
        /// Let its keys spend any amount
        #[arg(long, conflicts_with = "budget_usd")]
        no_budget: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show what an app has used in a month, by service, key and model
    Statement {
        /// Its name or id; one that was deleted by its id
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
    /// Delete an app and revoke its keys, for ever; its usage stays
    Delete {
        /// Its name or id
        app: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        common: Common,
    },
}

/// What all of them take.
#[derive(Args, Debug)]
struct Common {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

impl AppsArgs {
    /// Whether standard output is to hold JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.common().json
    }

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
pub(crate) fn run(args: &AppsArgs, session: &Session) -> Outcome {
    let is_json = args.wants_json();
    let local = args.common().database.open(session)?;
    match &args.command {
        Command::Create { name, budget_usd, .. } => {
            let made = apps::create(&local.store, name, *budget_usd, local.now);
            let app = made.map_err(|cause| refused(cause, &format!("app `{name}`")))?;
            session.printer.sentence(&format!(
                "made the app; `mk keys create --service verify --app {}` makes a key in it",
                as_argument(&app)
            ));
            show(session, &local, &app, is_json)?;
        }
        Command::List { .. } => list(session, &local, is_json)?,
        Command::Show { app, .. } => show(session, &local, &find(&local, app)?, is_json)?,
        Command::Update { app, name, budget_usd, no_budget, .. } => {
            let budget = if *no_budget { Some(None) } else { budget_usd.map(Some) };
            let change = AppChange { name: name.clone(), budget };
            let id = find(&local, app)?.id;
            let changed = apps::update(&local.store, &id, &change, local.now);
            let row = changed.map_err(|cause| refused(cause, &format!("app `{app}`")))?;
            show(session, &local, &row, is_json)?;
        }
        Command::Statement { app, month, csv, .. } => {
            let format = Format::of(*csv, is_json);
            usage::statement(session, &local, app, month.unwrap_or(Month::of(local.now)), format)?;
        }
        Command::Delete { app, yes, .. } => delete(session, &local, app, *yes, is_json)?,
    }
    Ok(0)
}

/// The app in a command that is to be copied: by its id where its name would need quotes.
fn as_argument(app: &AppRow) -> &str {
    let is_plain = app.name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if is_plain && !app.name.starts_with('-') { &app.name } else { &app.id }
}

fn find(local: &Local, app: &str) -> Result<AppRow, Failure> {
    local.store.app(app).map_err(|cause| stored(cause, &format!("app `{app}`")))
}

fn record(local: &Local, app: &AppRow) -> Result<App, Failure> {
    apps::record(&local.store, app, local.now).map_err(|cause| stored(cause, "app"))
}

fn list(session: &Session, local: &Local, is_json: bool) -> Result<(), Failure> {
    let records = apps::records(&local.store, local.now).map_err(|cause| stored(cause, "app"))?;
    if is_json {
        return session.printer.document(&json!({ "schema": "mk.apps/1", "apps": records }));
    }
    let columns = [
        hidden("id"),
        column("name"),
        column("active keys"),
        column("created"),
        column("budget"),
        column("spent"),
    ];
    let is_for_people = session.printer.terminal.out.is_terminal;
    let rows: Vec<Vec<String>> = records
        .into_iter()
        .map(|mut app| {
            if is_for_people {
                app.created_at.truncate("2026-11-20".len());
            }
            let budget = app.budget_usd.map_or_else(|| "-".to_owned(), figures::dollars);
            let spent = figures::dollars(app.spent_usd);
            vec![app.id, app.name, app.active_keys.to_string(), app.created_at, budget, spent]
        })
        .collect();
    sheet::print(&session.printer, &columns, &rows)
}

fn show(session: &Session, local: &Local, row: &AppRow, is_json: bool) -> Result<(), Failure> {
    let app = record(local, row)?;
    if is_json {
        return session.printer.document(&json!({ "schema": "mk.app/1", "app": app }));
    }
    let spent = keys::spent(&local.store, &row.id, local.now).map_err(|cause| stored(cause, "app"))?;
    let fields = [
        ("id", app.id),
        ("name", app.name),
        ("active keys", app.active_keys.to_string()),
        ("created", app.created_at),
        ("budget", monthly(row.budget)),
        ("spent", this_month(spent)),
    ];
    sheet::record(&session.printer, &fields)
}

fn delete(session: &Session, local: &Local, app: &str, yes: bool, is_json: bool) -> Result<(), Failure> {
    let found = record(local, &find(local, app)?)?;
    if !yes {
        let question = format!(
            "Delete the app `{}`? Its active keys ({}) stop working at once and for ever; its usage stays.",
            found.name, found.active_keys
        );
        confirm(&session.printer, &question, "--yes")?;
    }
    // A person may have taken a while to answer.
    let deleted = local.store.delete_app(&found.id, Clock::system().now());
    let revoked = deleted.map_err(|cause| stored(cause, &format!("app `{app}`")))?.revoked_keys;
    if is_json {
        let document = json!({ "schema": "mk.app.deleted/1", "deleted": found.id, "name": found.name, "revoked_keys": revoked });
        return session.printer.document(&document);
    }
    session.printer.sentence(&format!("deleted the app `{}`; keys revoked: {revoked}", found.name));
    Ok(())
}
