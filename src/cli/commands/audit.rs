//! `mk audit`: who changed what, and when.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use super::usage::shortened;
use crate::api::console::{AUDIT_ACTIONS, AuditEntry, Channel};
use crate::cli::args::globals::Session;
use crate::cli::args::number::within;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::target::admin::Admin;
use crate::cli::target::database::DatabaseArgs;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::tabular::{self, Column, column, unbroken};
use crate::cli::terminal::term::{Style, Terminal};
use crate::cli::terminal::wrap::{self, wrap};
use crate::clock::Time;
use crate::storage::AuditFilter;

/// Examples of `mk audit`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk audit                         the last changes, newest first
  mk audit --app website           changes to an app and its keys
  mk audit --key ci                changes to a key
  mk audit --actor laptop          changes made with a console key
  mk audit --action key.revoked --json | jq -r '.entries[].object_name'";

/// The contents of a line, last in its help.
pub(crate) const NOTES: &str = "\
Each entry is written in the same transaction as its change and never modified.
Times are UTC.

In a pipe, lines are tab-separated: id, time, channel (api, dashboard, cli,
server), id and name of the console key (on the command line, the user name),
action, id and name of the object, address, request id, and details as JSON.

Reads this machine's database or a remote server: see `mk apps --help`.";

/// The most entries without `--limit`.
const DEFAULT_LIMIT: u32 = 50;

/// The arguments of `mk audit`.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Only changes to this app and its keys, by name or id
    #[arg(long, value_name = "APP", conflicts_with = "key")]
    app: Option<String>,

    /// Only changes to this key, by id, name or last four characters
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Only changes made with this console key, by id, name or last four characters
    #[arg(long, value_name = "KEY")]
    actor: Option<String>,

    /// Only this action, such as key.revoked
    #[arg(long, value_name = "ACTION", value_parser = action(), hide_possible_values = true)]
    action: Option<String>,

    /// Maximum number of entries, newest first; 0 for all [default: 50]
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    limit: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

fn action() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(AUDIT_ACTIONS)
}

/// Runs `mk audit`.
pub(crate) fn run(args: &AuditArgs, session: &mut Session) -> Outcome {
    let admin = Admin::open(&args.database, session)?;
    let printer = &session.printer;
    let key_id = |key: &Option<String>| key.as_deref().map(|key| admin.key_id(key, printer)).transpose();
    let filter = AuditFilter {
        object: key_id(&args.key)?,
        app: args.app.as_deref().map(|app| admin.app_id(app)).transpose()?,
        actor: key_id(&args.actor)?,
        action: args.action.clone(),
        ..AuditFilter::default()
    };
    let limit = match args.limit.unwrap_or(DEFAULT_LIMIT) {
        0 => u32::MAX,
        limit => limit,
    };
    let mut entries = admin.records().audit(&filter, limit.saturating_add(1))?;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = entries.len() > shown;
    entries.truncate(shown);
    if args.json {
        let document = json!({ "schema": "mk.audit/1", "entries": entries, "has_more": has_more });
        printer.document(&document)?;
        return Ok(0);
    }
    if entries.is_empty() {
        printer.sentence("no entries");
    } else if printer.terminal.out.is_terminal {
        for_people(printer, &entries)?;
    } else {
        let rows: Vec<_> = entries.iter().map(plain_cells).collect();
        tabular::print_plain(printer, &rows)?;
    }
    if has_more {
        printer.sentence("there are older entries; --limit 0 shows all");
    }
    Ok(0)
}

/// The columns for people.
const COLUMNS: [Column; 7] = [
    unbroken("time (UTC)"),
    unbroken("action"),
    column("object"),
    column("by"),
    unbroken("via"),
    unbroken("address"),
    column("details"),
];

/// The column of the address, which most changes do not have: they are made on the command line.
const ADDRESS_COLUMN: usize = 5;

/// What precedes all but the first line of an entry in a list.
const INDENT: &str = "  ";

fn for_people(printer: &Printer, entries: &[AuditEntry]) -> Result<(), Failure> {
    let rows: Vec<Vec<String>> = entries.iter().map(cells).collect();
    let mut columns = COLUMNS;
    columns[ADDRESS_COLUMN].for_people = entries.iter().any(|entry| entry.address.is_some());
    let wide = printer.with_full_width();
    if tabular::fits_unwrapped(&wide, &columns, &rows) {
        return tabular::print(&wide, &columns, &rows);
    }
    let longest_action = entries.iter().map(|entry| entry.action.len()).max().unwrap_or(0);
    let mut lines = entries.iter().flat_map(|entry| list_lines(&printer.terminal, entry, longest_action));
    lines.try_for_each(|line| printer.line(&line))
}

fn cells(entry: &AuditEntry) -> Vec<String> {
    vec![
        timestamp(&entry.at).unwrap_or_else(|| entry.at.clone()),
        entry.action.clone(),
        named(entry.object_name.as_deref(), &entry.object),
        actor(entry),
        entry.channel.as_str().to_owned(),
        entry.address.clone().unwrap_or_else(|| "-".to_owned()),
        details(&entry.details),
    ]
}

/// The lines of an entry where the details, mostly longer than all else, would get a narrow column in a table: below
/// what was done they have all the width.
fn list_lines(terminal: &Terminal, entry: &AuditEntry, action_width: usize) -> Vec<String> {
    let shown = |text: &str| terminal.symbols.adapt(sanitize::line(text)).into_owned();
    let indented = |text: &str| wrap(text, terminal.width.saturating_sub(INDENT.len()));
    let at = timestamp(&entry.at).map_or_else(|| entry.at.clone(), |at| format!("{at}Z"));
    let (at, action) = (shown(&at), shown(&entry.action));
    let object = shown(&named(entry.object_name.as_deref(), &entry.object));
    let head = format!("{at}  {}", terminal.out.paint.apply(Style::Strong, &action));
    let gap = action_width.saturating_sub(action.len()) + 2;
    let has_room = at.len() + 2 + action.len() + gap + wrap::cells(&object) <= terminal.width;
    let (head, mut below) =
        if has_room { (format!("{head}{:gap$}{object}", ""), Vec::new()) } else { (head, indented(&object)) };
    below.extend(indented(&shown(&circumstances(entry))));
    let below = below.iter().map(|line| format!("{INDENT}{line}"));
    std::iter::once(head).chain(below).collect()
}

/// Who did it, how, from where, and what was set.
fn circumstances(entry: &AuditEntry) -> String {
    let mut text = format!("by {}", actor(entry));
    if entry.channel != Channel::Server {
        text = format!("{text} via {}", entry.channel.as_str());
    }
    if let Some(address) = &entry.address {
        text = format!("{text} from {address}");
    }
    match details(&entry.details).as_str() {
        "-" => text,
        details => format!("{text} · {details}"),
    }
}

fn actor(entry: &AuditEntry) -> String {
    match (&entry.actor, &entry.actor_name, entry.channel) {
        (Some(id), name, _) => named(name.as_deref(), id),
        (None, Some(name), _) => name.clone(),
        (None, None, Channel::Server) => "the server".to_owned(),
        (None, None, Channel::Cli) => "the operator".to_owned(),
        (None, None, _) => "-".to_owned(),
    }
}

fn named(name: Option<&str>, id: &str) -> String {
    name.map_or_else(|| shortened(id), str::to_owned)
}

/// The details for people: `name: website to news, budget_usd: 50 to none`.
fn details(set: &Value) -> String {
    let Value::Object(fields) = set else { return "-".to_owned() };
    let one = |(name, value): (&String, &Value)| match (value.get("from"), value.get("to")) {
        (Some(from), Some(to)) => format!("{name}: {} to {}", brief(name, from), brief(name, to)),
        _ => format!("{name}: {}", brief(name, value)),
    };
    let all: Vec<String> = fields.iter().map(one).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn brief(name: &str, value: &Value) -> String {
    match value {
        Value::Null if name.starts_with("per_") => "default".to_owned(),
        Value::Null => "none".to_owned(),
        // Without a list, a key may be used for all models and from all addresses.
        Value::Array(items) if items.is_empty() => "all".to_owned(),
        Value::Array(items) => items.iter().map(|item| brief(name, item)).collect::<Vec<_>>().join(" "),
        Value::String(text) if is_id(text) => shortened(text),
        Value::String(text) => timestamp(text).unwrap_or_else(|| text.clone()),
        Value::Number(number) => {
            number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
        }
        other => other.to_string(),
    }
}

/// A timestamp to the second, with a space so that it can be wrapped; `None` for any other text.
fn timestamp(text: &str) -> Option<String> {
    let at = Time::parse(text).filter(|_| text.contains('T'))?;
    let to_the_second = at.rfc3339().replacen('T', " ", 1);
    to_the_second.get(.."2026-11-20 12:34:56".len()).map(str::to_owned)
}

fn is_id(text: &str) -> bool {
    ["app_", "key_"].iter().any(|prefix| text.starts_with(prefix)) && text.len() == "app_".len() + 32
}

fn plain_cells(entry: &AuditEntry) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        entry.id.clone(),
        entry.at.clone(),
        entry.channel.as_str().to_owned(),
        or_dash(&entry.actor),
        or_dash(&entry.actor_name),
        entry.action.clone(),
        entry.object.clone(),
        or_dash(&entry.object_name),
        or_dash(&entry.address),
        or_dash(&entry.request_id),
        entry.details.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_read_as_a_sentence() {
        let changed =
            json!({"name": {"from": "website", "to": "news"}, "budget_usd": {"from": 50.0, "to": null}});
        assert_eq!(details(&changed), "name: website to news, budget_usd: 50 to none");
        let made = json!({
            "app_id": "app_01a209c221907000b5ed32474c29abc2",
            "models": ["a/b", "c/*"],
            "addresses": {"from": [], "to": ["10.0.0.0/8"]},
            "per_minute": {"from": null, "to": 120},
            "expires_at": "2027-02-21T18:54:07.260Z",
            "budget_usd": 0.000_000_001,
        });
        let expected = "app_id: app_…29abc2, models: a/b c/*, addresses: all to 10.0.0.0/8, \
                        per_minute: default to 120, expires_at: 2027-02-21 18:54:07, budget_usd: 0.000000001";
        assert_eq!(details(&made), expected);
        assert_eq!((details(&json!({})).as_str(), details(&json!(3)).as_str()), ("-", "-"));
    }

    #[test]
    fn text_that_only_resembles_an_id_or_a_timestamp_stays() {
        for text in ["app_x", "key_", "2027-02-21", "tomorrow", "T", ""] {
            assert_eq!(brief("name", &json!(text)), text);
        }
    }
}
