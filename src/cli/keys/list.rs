//! `mk keys list` and `mk keys show`: records, never keys.

use clap::Args;
use serde_json::json;

use super::{Common, key_document, named};
use crate::api::Service;
use crate::api::console::Key;
use crate::cli::exit::Failure;
use crate::cli::figures::{monthly, this_month};
use crate::cli::globals::Session;
use crate::cli::local::{Local, stored};
use crate::cli::sheet::{self, column, hidden};
use crate::clock::Time;
use crate::keys;
use crate::money::NanoUsd;
use crate::storage::{KeyFilter, KeyRow};

/// The arguments of `mk keys list`.
#[derive(Args, Debug)]
pub(super) struct ListArgs {
    /// Only those of this app, by name or id
    #[arg(long, value_name = "APP")]
    app: Option<String>,

    /// Only those for this service
    #[arg(long, value_name = "SERVICE")]
    service: Option<Service>,

    /// Also those that are revoked
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    pub(super) common: Common,
}

/// The arguments of `mk keys show`.
#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    /// The key: its id, name, or last four characters
    key: String,

    #[command(flatten)]
    pub(super) common: Common,
}

pub(super) fn list(args: &ListArgs, session: &Session) -> Result<(), Failure> {
    let local = args.common.database.open(session)?;
    let app_id = match &args.app {
        Some(app) => {
            let found = local.store.app(app).map_err(|cause| stored(cause, &format!("app `{app}`")))?;
            Some(found.id)
        }
        None => None,
    };
    let filter = KeyFilter { app_id, service: args.service, revoked_too: args.all };
    let rows = local.store.keys(&filter).map_err(|cause| stored(cause, "key"))?;
    if args.common.json {
        let record = |row: &KeyRow| Ok(keys::record(row, spent(&local, row)?, local.now));
        let records: Vec<Key> = rows.iter().map(record).collect::<Result<_, Failure>>()?;
        return session.printer.document(&json!({ "schema": "mk.keys/1", "keys": records }));
    }
    if rows.is_empty() {
        let others = if args.all { "" } else { " (--all shows revoked ones too)" };
        session
            .printer
            .sentence(&format!("no keys to list{others}; `mk keys create --service verify` makes one"));
        return Ok(());
    }
    let columns = [
        hidden("id"),
        column("key"),
        column("name"),
        column("app"),
        column("state"),
        column("created"),
        column("expires"),
        column("last used"),
    ];
    let is_for_people = session.printer.terminal.out.is_terminal;
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, local.now, is_for_people)).collect();
    sheet::print(&session.printer, &columns, &cells)
}

fn spent(local: &Local, row: &KeyRow) -> Result<NanoUsd, Failure> {
    keys::spent(&local.store, &row.id, local.now).map_err(|cause| stored(cause, "key"))
}

/// People get dates, programs moments.
fn cells(row: &KeyRow, now: Time, is_for_people: bool) -> Vec<String> {
    let moment = |at: Option<Time>| match at {
        None => "-".to_owned(),
        Some(at) if is_for_people => at.utc_date(),
        Some(at) => at.rfc3339(),
    };
    vec![
        row.id.clone(),
        format!("{} …{}", row.service, row.last4),
        row.name.clone().unwrap_or_else(|| "-".to_owned()),
        row.app_name.clone(),
        keys::state_of(row, now).as_str().to_owned(),
        moment(Some(row.created_at)),
        moment(row.expires_at),
        moment(row.last_used_at),
    ]
}

pub(super) fn show(args: &ShowArgs, session: &Session) -> Result<(), Failure> {
    let local = args.common.database.open(session)?;
    let row = named(&local, &args.key)?;
    let spent = spent(&local, &row)?;
    let record = keys::record(&row, spent, local.now);
    if args.common.json {
        return session.printer.document(&key_document(record)?);
    }
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let limit = |own: Option<u32>| match own {
        None => "the server's".to_owned(),
        Some(0) => "unlimited".to_owned(),
        Some(limit) => limit.to_string(),
    };
    let all_or = |list: &[String]| if list.is_empty() { "all".to_owned() } else { list.join(", ") };
    let fields = [
        ("id", record.id),
        ("key", format!("mk_{}_…{}", record.service, record.last4)),
        ("name", or_dash(record.name)),
        ("app", record.app),
        ("state", record.state.as_str().to_owned()),
        ("created", record.created_at),
        ("expires", or_dash(record.expires_at)),
        ("last used", or_dash(record.last_used_at)),
        ("revoked", or_dash(record.revoked_at)),
        ("per minute", limit(record.limits.per_minute)),
        ("per day", limit(record.limits.per_day)),
        ("models", all_or(&record.models)),
        ("addresses", all_or(&record.addresses)),
        ("budget", monthly(row.budget)),
        ("spent", this_month(spent)),
    ];
    sheet::record(&session.printer, &fields)
}
