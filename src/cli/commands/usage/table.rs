//! A report as a table with bars, or as lines for programs.

use super::{bars, figures};
use crate::api::console::{Dimension, UsageReport, UsageRow, UsageSums};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::tabular::{self, Column, column, hidden, names};
use crate::cli::terminal::term::Symbols;

/// How many of the droppable columns are worth less than bars: the totals contain failed calls and requests as well.
const LESS_THAN_BARS: usize = 2;

/// What people read of requests that were for nobody in particular.
const NOBODY: &str = "(no user)";

/// Prints a report for programs: the dimensions it is summed by, and all numbers.
pub(super) fn for_programs(printer: &Printer, report: &UsageReport) -> Result<(), Failure> {
    let (columns, rows) = columns_and_rows(report, None);
    tabular::print(printer, &columns, &rows)
}

/// Prints a report for people: a table, with bars beside it if there is space, and the totals.
pub(super) fn for_people(printer: &Printer, report: &UsageReport) -> Result<(), Failure> {
    if report.data.is_empty() {
        return Ok(());
    }
    let symbols = printer.terminal.symbols;
    let (all, mut rows) = columns_and_rows(report, Some(symbols));
    let first_figure = all.len() - figures::COLUMNS.len();
    let droppable = figures::DROPPABLE.map(|at| first_figure + at);
    let fitting = tabular::fit_columns(printer, &all, &rows, &droppable);
    let (heading, value) = bar_value(&report.totals);
    let bar_width = |columns: &[Column]| bars::width(tabular::spare_width(printer, columns, &rows), heading);
    let (mut columns, width) = beside_bars(fitting, &droppable[..LESS_THAN_BARS], bar_width);
    if let Some(width) = width {
        let max = report.data.iter().map(|row| value(&row.sums)).fold(0.0, f64::max);
        for (row, sums) in rows.iter_mut().zip(report.data.iter().map(|row| &row.sums)) {
            row.push(bars::bar(value(sums), max, width, symbols.bar));
        }
        columns.push(column(heading));
    }
    printer.line(&sanitize::line(&format!("{} to {} (UTC)", report.from, report.to)))?;
    figures::print_table(printer, &all, &columns, &rows, &report.totals)
}

/// The columns without as many of the `droppable` ones as must go for bars to fit beside them, and the width of the
/// bars; all columns if that does not suffice.
fn beside_bars(
    columns: Vec<Column>,
    droppable: &[usize],
    width: impl Fn(&[Column]) -> Option<usize>,
) -> (Vec<Column>, Option<usize>) {
    let mut fewer = columns.clone();
    let mut hidden = droppable.iter();
    loop {
        if let Some(width) = width(&fewer) {
            return (fewer, Some(width));
        }
        match hidden.next() {
            Some(at) => fewer[*at].for_people = false,
            None => return (columns, None),
        }
    }
}

/// What the bars show, and its value for a row: the cost if any is known, otherwise tokens.
fn bar_value(totals: &UsageSums) -> (&'static str, fn(&UsageSums) -> f64) {
    if totals.cost_usd.is_some_and(|cost| cost > 0.0) {
        return ("by cost", |sums| sums.cost_usd.unwrap_or(0.0));
    }
    #[expect(clippy::cast_precision_loss, reason = "a bar's length")]
    let tokens = |sums: &UsageSums| sums.total_tokens as f64;
    ("by tokens", tokens)
}

fn columns_and_rows(report: &UsageReport, for_people: Option<&Symbols>) -> (Vec<Column>, Vec<Vec<String>>) {
    let columns = report.by.iter().flat_map(|dimension| columns(*dimension));
    let row = |row: &UsageRow| {
        let texts = report.by.iter().flat_map(|dimension| texts(row, *dimension, for_people.is_some()));
        texts.chain(figures::cells(&row.sums, for_people)).collect()
    };
    (columns.chain(figures::COLUMNS).collect(), report.data.iter().map(row).collect())
}

fn columns(dimension: Dimension) -> Vec<Column> {
    match dimension {
        Dimension::Day => vec![column("day")],
        Dimension::App => vec![hidden("app id"), column("app")],
        Dimension::Key => vec![hidden("key id"), column("key")],
        Dimension::Model => vec![column("model")],
        Dimension::Service => vec![column("service")],
        Dimension::User => vec![names("user")],
        Dimension::Tag => vec![names("tag")],
    }
}

/// The cells under [`columns`]. If something has no name, people get its id.
fn texts(row: &UsageRow, dimension: Dimension, is_for_people: bool) -> Vec<String> {
    let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
    let named = |id: &Option<String>, name: &Option<String>| {
        let instead = if is_for_people { text(id) } else { String::new() };
        vec![text(id), name.clone().unwrap_or(instead)]
    };
    match dimension {
        Dimension::Day => vec![text(&row.day)],
        Dimension::App => named(&row.app_id, &row.app),
        Dimension::Key => named(&row.key_id, &row.key),
        Dimension::Model => vec![text(&row.model)],
        Dimension::Service => vec![text(&row.service)],
        Dimension::User if is_for_people && row.user.as_deref() == Some("") => vec![NOBODY.to_owned()],
        Dimension::User => vec![text(&row.user)],
        Dimension::Tag => vec![text(&row.tag)],
    }
}
