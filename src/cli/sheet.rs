//! Lists of records: a table on a terminal, tab-separated lines without a heading elsewhere.

use comfy_table::{ContentArrangement, Table};

use super::exit::Failure;
use super::printer::Printer;
use super::sanitize;

/// A column: its heading, and whether a terminal shows it. Identifiers are long, and people name things otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its heading.
    pub(crate) heading: &'static str,
    /// Whether it stands in tables for people too.
    pub(crate) for_people: bool,
}

/// A column that everybody gets.
pub(crate) const fn column(heading: &'static str) -> Column {
    Column { heading, for_people: true }
}

/// A column for programs only.
pub(crate) const fn hidden(heading: &'static str) -> Column {
    Column { heading, for_people: false }
}

/// Prints rows, which have a text per column.
pub(crate) fn print(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> Result<(), Failure> {
    let lines = if printer.terminal.out.is_terminal {
        table(printer, columns, rows)
    } else {
        rows.iter().map(|row| tab_separated(row)).collect()
    };
    lines.iter().try_for_each(|line| printer.line(line))
}

/// Prints one record: a name and a value a line.
pub(crate) fn record(printer: &Printer, fields: &[(&str, String)]) -> Result<(), Failure> {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    fields.iter().try_for_each(|(name, value)| {
        let value = sanitize::line(value);
        if printer.terminal.out.is_terminal {
            printer.line(format!("{name:width$}  {value}").trim_end())
        } else {
            printer.line(&format!("{name}\t{value}"))
        }
    })
}

fn tab_separated(row: &[String]) -> String {
    let cells: Vec<_> = row.iter().map(|cell| sanitize::line(cell)).collect();
    cells.join("\t")
}

fn table(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> Vec<String> {
    let shown = |texts: &[String]| -> Vec<String> {
        let pairs = columns.iter().zip(texts).filter(|(column, _)| column.for_people);
        pairs.map(|(_, text)| sanitize::line(text).into_owned()).collect()
    };
    let headings: Vec<String> = columns.iter().map(|column| column.heading.to_owned()).collect();
    let mut table = Table::new();
    table
        .load_style(printer.terminal.symbols.table)
        .force_no_tty()
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(printer.terminal.width).unwrap_or(80))
        .set_header(shown(&headings));
    for row in rows {
        table.add_row(shown(row));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::term::{Paint, Terminal};
    use crate::cli::wrap::cells;

    #[test]
    fn tables_fit_and_leave_out_what_is_for_programs() {
        let printer = Printer { terminal: Terminal::test(44, Paint::Plain), quiet: false, verbose: false };
        let row =
            vec!["key_0123456789".to_owned(), "a name that is rather long\u{1b}[0m for a cell".to_owned()];
        let lines = table(&printer, &[hidden("id"), column("name")], &[row]);
        assert!(lines.iter().all(|line| cells(line) <= 44 && !line.contains("key_")), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:#?}");
    }

    #[test]
    fn lines_for_programs_hold_everything() {
        assert_eq!(tab_separated(&["key_1".to_owned(), "a\tb\n".to_owned()]), "key_1\ta b ");
    }
}
