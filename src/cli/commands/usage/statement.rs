//! `mk apps statement`: what an app used in a month, one line per service, key and model.

use serde_json::json;

use super::{Format, figures, labels, tame};
use crate::api::console::{Statement, StatementLine, csv};
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::target::admin::Admin;
use crate::cli::terminal::humanize::dollars;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::tabular::{self, Column, column, hidden};
use crate::cli::terminal::term::Symbols;
use crate::cli::terminal::wrap::wrap;
use crate::usage::Month;

const COLUMNS: [Column; 4] = [column("service"), hidden("key id"), column("key"), column("model")];

/// Prints the statement.
pub(crate) fn statement(
    session: &Session,
    admin: &Admin,
    app: &str,
    month: Month,
    format: Format,
) -> Result<(), Failure> {
    let mut statement = admin.statement(app, month)?;
    let printer = &session.printer;
    if statement.lines.is_empty() {
        let told = format!("no usage by {} in {} (UTC)", statement.app, statement.month);
        printer.sentence(&sanitize::line(&told));
    }
    match format {
        Format::Csv => printer.part(&csv::statement(&sanitized(statement))),
        Format::Json => {
            let mut document = serde_json::to_value(&statement).map_err(|cause| {
                Failure::new(Kind::Other, "the statement cannot be written as JSON").caused_by(cause)
            })?;
            document["schema"] = json!("mk.statement/1");
            printer.document(&document)
        }
        Format::Lines if printer.terminal.out.is_terminal => {
            labels::in_statement(&mut statement, admin);
            for_people(printer, &statement)
        }
        Format::Lines => {
            let rows: Vec<_> = statement.lines.iter().map(|line| row(line, None)).collect();
            tabular::print(printer, &columns(), &rows)
        }
    }
}

fn for_people(printer: &Printer, statement: &Statement) -> Result<(), Failure> {
    if statement.lines.is_empty() {
        return Ok(());
    }
    let state = if statement.is_preliminary { ", not over yet" } else { "" };
    let heading = format!("{} in {} (UTC){state}", statement.app, statement.month);
    for line in wrap(&sanitize::line(&heading), printer.terminal.width) {
        printer.line(&line)?;
    }
    let symbols = printer.terminal.symbols;
    let rows: Vec<_> = statement.lines.iter().map(|line| row(line, Some(symbols))).collect();
    let droppable = figures::DROPPABLE.map(|at| COLUMNS.len() + at);
    let all = columns();
    let columns = tabular::fit_columns(printer, &all, &rows, &droppable);
    figures::print_table(printer, &all, &columns, &rows, &statement.totals)?;
    match statement.budget_usd {
        Some(budget) => printer.line(&format!("budget: {} a month", dollars(budget))),
        None => Ok(()),
    }
}

fn columns() -> Vec<Column> {
    COLUMNS.into_iter().chain(figures::COLUMNS).collect()
}

fn row(line: &StatementLine, for_people: Option<&Symbols>) -> Vec<String> {
    let of = [&line.service, &line.key_id, &line.key, &line.model].map(Clone::clone);
    of.into_iter().chain(figures::cells(&line.sums, for_people)).collect()
}

/// The statement with its texts sanitized for a terminal.
fn sanitized(mut statement: Statement) -> Statement {
    let Statement { app_id, app, month, created_at, lines, .. } = &mut statement;
    let of_line = |line: &mut StatementLine| {
        let StatementLine { service, key_id, key, model, sums: _ } = line;
        [service, key_id, key, model].into_iter().for_each(tame);
    };
    lines.iter_mut().for_each(of_line);
    [app_id, app, month, created_at].into_iter().for_each(tame);
    statement
}
