//! `mk keys list`: records, never keys.

use clap::Args;
use serde_json::json;

use super::Common;
use crate::api::Service;
use crate::api::console::{Key, KeyState};
use crate::cli::args::choice::one_of;
use crate::cli::args::globals::Session;
use crate::cli::commands::budget::Budget;
use crate::cli::process::exit::Failure;
use crate::cli::target::admin::{Admin, Unpriced};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::tabular::{self, Column, column, names, number, unbroken};

/// The text below the options in `mk keys list --help`.
pub(super) const NOTES: &str = "\
Ids are shown on wide terminals only, but always in a pipe, with --json and by
`mk keys show KEY`.

In a pipe, lines are tab-separated: id, key (service and last four characters),
name, app, state, times of creation, expiry and last use, monthly budget and
amount spent this month in US dollars, percentage used, calls at an unknown
price. Values that are not set are `-`.";

/// The arguments of `mk keys list`.
#[derive(Args, Debug)]
pub(super) struct ListArgs {
    /// Only keys of this app, by name or id
    #[arg(long, value_name = "APP")]
    app: Option<String>,

    /// Only keys for this service: verify, inference or console
    #[arg(long, value_name = "SERVICE", value_parser = one_of(Service::ALL, Service::as_str), hide_possible_values = true)]
    service: Option<Service>,

    /// Include revoked keys
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    common: Common,
}

pub(super) fn list(args: &ListArgs, session: &mut Session) -> Result<(), Failure> {
    let admin = Admin::open(&args.common.database, session)?;
    let app = args.app.as_deref().map(|app| admin.app(app)).transpose()?;
    let mut records = admin.keys(app.as_ref(), args.service)?;
    records.retain(|key| args.all || key.state != KeyState::Revoked);
    let printer = &session.printer;
    if args.common.json {
        return printer.document(&json!({ "schema": "mk.keys/1", "keys": records }));
    }
    if records.is_empty() {
        let others = if args.all { "" } else { " (--all includes revoked ones)" };
        printer.sentence(&format!("no keys{others}; `mk keys create --service verify` creates one"));
        return Ok(());
    }
    let unpriced = admin.unpriced_of_keys(None)?;
    if printer.terminal.out.is_terminal {
        return for_people(printer, &records, &unpriced);
    }
    let rows: Vec<Vec<String>> = records.iter().map(|key| plain_cells(key, &unpriced)).collect();
    tabular::print_plain(printer, &rows)
}

/// The columns for people. Ids are long, and only shown on wide terminals.
const COLUMNS: [Column; 10] = [
    unbroken("key"),
    names("name"),
    column("app"),
    column("state"),
    unbroken("created"),
    unbroken("expires"),
    unbroken("last used"),
    number("budget"),
    number("spent"),
    unbroken("id"),
];

/// The index of the id column.
const ID_COLUMN: usize = 9;

/// The indices of columns that a narrow terminal drops where they are empty: that no key has a name, expires or was
/// used.
const EMPTY_COLUMNS: [usize; 3] = [1, 5, 6];

/// The indices of the budget columns, which most keys do not need.
const BUDGET_COLUMNS: std::ops::Range<usize> = 7..9;

/// Columns that a narrow terminal drops, the least informative first: created, budget (`spent` tells how much of it is
/// used), last used.
const DROPPABLE: [usize; 3] = [4, 7, 6];

fn for_people(printer: &Printer, records: &[Key], unpriced: &Unpriced) -> Result<(), Failure> {
    let day = |moment: &Option<String>| {
        moment.as_deref().and_then(|at| at.split('T').next()).unwrap_or("-").to_owned()
    };
    let cells = |key: &Key| {
        let [budget, spent] = Budget::of_key(key, unpriced).cells(printer);
        let mut cells = identity_cells(key).to_vec();
        let days = [Some(key.created_at.clone()), key.expires_at.clone(), key.last_used_at.clone()];
        cells.extend(days.iter().map(day).chain([budget, spent, key.id.clone()]));
        cells
    };
    let rows: Vec<Vec<String>> = records.iter().map(cells).collect();
    let mut columns = COLUMNS;
    if !records.iter().any(|key| key.budget_usd.is_some()) {
        for column in &mut columns[BUDGET_COLUMNS] {
            column.for_people = false;
        }
    }
    let wide = printer.with_full_width();
    for has_ids in [true, false] {
        columns[ID_COLUMN].for_people = has_ids;
        if tabular::fits_unwrapped(&wide, &columns, &rows) {
            return tabular::print(&wide, &columns, &rows);
        }
    }
    for at in EMPTY_COLUMNS {
        columns[at].for_people = rows.iter().any(|row| row[at] != "-");
    }
    tabular::print_fitting(printer, &columns, &rows, &DROPPABLE)
}

fn plain_cells(key: &Key, unpriced: &Unpriced) -> Vec<String> {
    let or_dash = |moment: &Option<String>| moment.clone().unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![key.id.clone()];
    cells.extend(identity_cells(key));
    cells.extend([key.created_at.clone(), or_dash(&key.expires_at), or_dash(&key.last_used_at)]);
    cells.extend(Budget::of_key(key, unpriced).plain_cells());
    cells
}

fn identity_cells(key: &Key) -> [String; 4] {
    [
        format!("{} …{}", key.service, key.last4),
        key.name.clone().unwrap_or_else(|| "-".to_owned()),
        key.app.clone(),
        key.state.as_str().to_owned(),
    ]
}
