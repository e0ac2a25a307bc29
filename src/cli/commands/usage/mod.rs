//! `mk usage`: what was used and what it cost; and `mk apps statement`, the same for one app and month.
//!
//! The data comes as API records from an [`Admin`]; everything here is about presenting it: a table with bars on a
//! terminal, tab-separated lines in a pipe, CSV, or JSON.

mod bars;
mod budgets;
mod figures;
mod forget;
mod labels;
mod statement;
mod table;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::api::Service;
use crate::api::console::{self, Dimension, UsageReport, UsageRow};
use crate::cli::args::choice::one_of;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::target::admin::Admin;
use crate::cli::target::database::DatabaseArgs;
use crate::cli::terminal::sanitize;
use crate::clock::{Clock, Time};
use crate::keys::expiry;
use crate::usage::{Days, Month, ReportRequest, parse_date};
pub(crate) use labels::shortened;
pub(crate) use statement::statement;

/// Examples of `mk usage`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk usage                                     the last 30 days, day by day
  mk usage --since 7d --by model               what each model cost this week
  mk usage --by app,key --from 2026-11-01 --to 2026-11-30
  mk usage --app website --by day,service --csv > november.csv
  mk usage --by user --since 7d                what each end user used
  mk usage forget ann@example.org              delete what is recorded about one
  mk usage --json | jq .totals.cost_usd
  mk usage --server https://mk.example.org     of a remote server";

/// What the numbers mean, last in its help.
pub(crate) const NOTES: &str = "\
Days are UTC days. Requests are those that called a model at least once; summed
or filtered by model, a request counts once for each model it called. Attempts
are calls to models, and errors are failed attempts; calls that were cancelled,
or interrupted by a crash of their server, are not errors. A cost is `unknown`
if no price is known, and begins with ≥ if only some prices are known.

Users and tags are those that requests name (`mk help keys`); a request counts
for each of its tags. Beyond 10000 sums of an app and day, further users or tags
are counted together as `other`.

In a pipe, lines are tab-separated: what is asked for with --by (apps and keys
by id and name), requests, attempts, errors, tokens of prompts, of completions,
of both, cost in US dollars, attempts at an unknown price, prompt tokens read
from a cache, prompt tokens written to one, attempts whose usage is estimated.
--csv has the same columns and a heading; an unknown cost is an empty cell then.

Reads this machine's database or a remote server: see `mk apps --help`.";

/// The number of days shown by default, including today.
const DEFAULT_DAYS: u32 = 30;

/// The services that call models and therefore have usage.
const MODEL_SERVICES: [Service; 2] = [Service::Verify, Service::Inference];

/// The arguments of `mk usage`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, override_usage = "mk usage [OPTIONS | COMMAND]")]
pub(crate) struct UsageArgs {
    #[command(subcommand)]
    command: Option<Command>,
    /// Period up to today, such as 7d or 4w [default: 30d]
    #[arg(long, value_name = "SPAN", value_parser = days, conflicts_with_all = ["from", "to"])]
    since: Option<u32>,
    /// First day (UTC), such as 2026-11-01 [default: 29 days before the last]
    #[arg(long, value_name = "DATE", value_parser = date)]
    from: Option<i64>,
    /// Last day (UTC) [default: today]
    #[arg(long, value_name = "DATE", value_parser = date)]
    to: Option<i64>,
    /// Sum by day, app, key, model, service, user or tag, or by several of these [default: day]
    #[arg(long, value_parser = one_of(Dimension::ALL, Dimension::as_str), value_name = "WHAT", value_delimiter = ',', hide_possible_values = true)]
    by: Vec<Dimension>,
    /// Only usage of this app, by name or id
    #[arg(long)]
    app: Option<String>,
    /// Only usage of this key, by id, name or last four characters
    #[arg(long)]
    key: Option<String>,
    /// Only usage of this model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// Only usage of this service: verify or inference
    #[arg(long, value_name = "SERVICE", value_parser = one_of(MODEL_SERVICES, Service::as_str), hide_possible_values = true)]
    service: Option<Service>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Delete what is recorded about an end user; totals stay as they are
    Forget(forget::ForgetArgs),
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A table on a terminal, tab-separated lines elsewhere.
    Lines,
    /// CSV.
    Csv,
    /// One JSON document.
    Json,
}

impl Format {
    /// The format that the flags select.
    pub(crate) const fn from_flags(csv: bool, json: bool) -> Self {
        match (csv, json) {
            (_, true) => Self::Json,
            (true, false) => Self::Csv,
            (false, false) => Self::Lines,
        }
    }
}

impl UsageArgs {
    fn days(&self, now: Time) -> Result<Days, Failure> {
        let default = Days::until_today(self.since.unwrap_or(DEFAULT_DAYS), now);
        let last = self.to.unwrap_or(default.last);
        let first = self.from.unwrap_or(last - (default.last - default.first));
        if first > last {
            return Err(Failure::usage("--from must not be after --to (default: today)"));
        }
        Ok(Days { first, last })
    }
}

/// Runs `mk usage`.
pub(crate) fn run(args: &UsageArgs, session: &mut Session) -> Outcome {
    if let Some(Command::Forget(args)) = &args.command {
        return forget::run(args, session);
    }
    let days = args.days(Clock::system().now())?;
    let admin = Admin::open(&args.database, session)?;
    let by = if args.by.is_empty() { vec![Dimension::Day] } else { args.by.clone() };
    let request = ReportRequest {
        days,
        by,
        app_id: args.app.as_deref().map(|app| admin.app_id(app)).transpose()?,
        key_id: args.key.as_deref().map(|key| admin.key_id(key, &session.printer)).transpose()?,
        service: args.service,
        model: args.model.clone(),
    };
    let mut report = admin.report(&request)?;
    let printer = &session.printer;
    if report.data.is_empty() {
        let model = args.model.as_ref().map(|model| format!(" at {}", sanitize::line(model)));
        let model = model.unwrap_or_default();
        printer.sentence(&format!("no usage{model} from {} to {} (UTC)", report.from, report.to));
    }
    match Format::from_flags(args.csv, args.json) {
        Format::Csv => printer.part(&console::csv::report(&sanitized(report)))?,
        Format::Json => {
            let billing = admin.records().billing()?;
            let budgets: Vec<_> = budgets::matching(&billing, &request).collect();
            let UsageReport { from, to, by, data, totals, .. } = report;
            let document = json!({
                "schema": "mk.usage/1",
                "from": from, "to": to, "by": by, "data": data, "totals": totals, "budgets": budgets,
            });
            printer.document(&document)?;
        }
        Format::Lines if printer.terminal.out.is_terminal => {
            labels::in_report(&mut report, &admin);
            table::for_people(printer, &report)?;
            let mut billing = admin.records().billing()?;
            labels::in_budgets(&mut billing, &admin);
            budgets::print(printer, &billing, &request)?;
        }
        Format::Lines => table::for_programs(printer, &report)?,
    }
    Ok(0)
}

/// The report with its texts sanitized for a terminal.
fn sanitized(mut report: UsageReport) -> UsageReport {
    for row in &mut report.data {
        let UsageRow { day, app_id, app, key_id, key, model, service, user, tag, sums: _ } = row;
        [day, app_id, app, key_id, key, model, service, user, tag].into_iter().flatten().for_each(tame);
    }
    report
}

/// Makes a foreign text harmless for a terminal.
fn tame(text: &mut String) {
    *text = sanitize::line(text).into_owned();
}

/// Value parser for a month.
pub(crate) fn month(text: &str) -> Result<Month, String> {
    Month::parse(text).ok_or_else(|| "it must be a month such as 2026-11".to_owned())
}

fn date(text: &str) -> Result<i64, String> {
    parse_date(text).ok_or_else(|| "it must be a date such as 2026-11-20".to_owned())
}

/// Value parser for a number of whole days.
fn days(text: &str) -> Result<u32, String> {
    let wrong = || "it must be a number of days or weeks, such as 30d or 4w".to_owned();
    let span = expiry::parse_span(text).map_err(|_| wrong())?;
    let days = u32::try_from(span.as_secs() / 86_400).map_err(|_| wrong())?;
    if days == 0 || !span.as_secs().is_multiple_of(86_400) { Err(wrong()) } else { Ok(days) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_whole_days() {
        assert_eq!((days("30d"), days("4w"), days("48h")), (Ok(30), Ok(28), Ok(2)));
        for wrong in ["", "0", "0d", "30", "12h", "month", "-1d"] {
            assert!(days(wrong).is_err(), "{wrong}");
        }
    }
}
