//! Lists of records: a table on a terminal, tab-separated lines without a heading elsewhere. A terminal too narrow for
//! a table gets a block of lines per record.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

use super::mark::{paint_marks, sanitized};
use super::printer::Printer;
use super::sanitize;
use super::term::Terminal;
use super::wrap::{cells, hanging, wrap};
use crate::cli::process::exit::Failure;

/// Padding of a cell: a space on each side of its text.
const CELL_PADDING: usize = 2;

/// What a column takes beside its text: the padding, and one space between cells.
const COLUMN_OVERHEAD: usize = CELL_PADDING + 1;

/// A column: its heading, and whether it is shown on a terminal. Identifiers are long and people go by names, so tables
/// mostly leave them out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its heading.
    pub(crate) heading: &'static str,
    /// Whether tables for people show it too.
    pub(crate) for_people: bool,
    /// Whether it holds numbers, which people compare more easily when aligned right.
    is_number: bool,
    /// Where its texts may be wrapped.
    breaks: Breaks,
}

/// Where a text may be wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    /// Between words, which is easiest to read.
    BetweenWords,
    /// Between words, and only where the text is wider than this.
    Late(usize),
    /// Nowhere: it is read as one word, whatever spaces are in it.
    Nowhere,
    /// Within long words too: having the other columns side by side is worth more.
    Anywhere,
}

/// The least width for a column whose words may be broken.
const MIN_BROKEN_WIDTH: usize = 12;

/// The widths up to which a name stays on one line: where there is room, and where there is little.
const NAME_WIDTHS: [usize; 2] = [18, 11];

/// The least width at which a table with broken names is easier to read than a block of lines for each record.
const MIN_TABLE_WIDTH: usize = 60;

/// A column of names for everybody, which stay on one line unless they are long.
pub(crate) const fn names(heading: &'static str) -> Column {
    Column { heading, for_people: true, is_number: false, breaks: Breaks::Late(NAME_WIDTHS[0]) }
}

/// A column for everybody.
pub(crate) const fn column(heading: &'static str) -> Column {
    Column { heading, for_people: true, is_number: false, breaks: Breaks::BetweenWords }
}

/// A column for everybody whose texts stay on one line.
pub(crate) const fn unbroken(heading: &'static str) -> Column {
    Column { heading, for_people: true, is_number: false, breaks: Breaks::Nowhere }
}

/// A column for everybody whose words are broken before the table layout is given up.
pub(crate) const fn breakable(heading: &'static str) -> Column {
    Column { heading, for_people: true, is_number: false, breaks: Breaks::Anywhere }
}

/// A column of numbers for everybody.
pub(crate) const fn number(heading: &'static str) -> Column {
    Column { heading, for_people: true, is_number: true, breaks: Breaks::BetweenWords }
}

/// A column for programs only.
pub(crate) const fn hidden(heading: &'static str) -> Column {
    Column { heading, for_people: false, is_number: false, breaks: Breaks::BetweenWords }
}

/// Prints rows; each has a text per column.
pub(crate) fn print(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> Result<(), Failure> {
    if !printer.terminal.out.is_terminal {
        return print_plain(printer, rows);
    }
    table(printer, columns, rows).iter().try_for_each(|line| printer.line(line))
}

/// Prints rows for programs: a line each, without a heading.
pub(crate) fn print_plain(printer: &Printer, rows: &[Vec<String>]) -> Result<(), Failure> {
    rows.iter().try_for_each(|row| printer.line(&tab_separated(row)))
}

/// Separates rows from what follows them for people; a table ends with a rule by itself.
pub(crate) fn separate(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> Result<(), Failure> {
    let (columns, texts) = shown(printer, columns, rows);
    if min_width(&columns, &texts) > printer.terminal.width { printer.line("") } else { Ok(()) }
}

/// Prints rows without as many of the `droppable` columns as [`fit_columns`] drops, and reports which.
pub(crate) fn print_fitting(
    printer: &Printer,
    columns: &[Column],
    rows: &[Vec<String>],
    droppable: &[usize],
) -> Result<(), Failure> {
    let fitting = fit_columns(printer, columns, rows, droppable);
    print(printer, &fitting, rows)?;
    report_dropped(printer, columns, &fitting);
    Ok(())
}

/// Reports which of `columns` were dropped in `fitting`, and how to see them.
pub(crate) fn report_dropped(printer: &Printer, columns: &[Column], fitting: &[Column]) {
    let was_dropped = |(had, has): &(&Column, &Column)| had.for_people && !has.for_people;
    let pairs = columns.iter().zip(fitting).filter(was_dropped);
    let headings: Vec<&str> = pairs.map(|(column, _)| column.heading).collect();
    if !headings.is_empty() {
        printer.sentence(&format!("columns left out to fit: {} (--json shows all)", headings.join(", ")));
    }
}

/// Prints one record: a name and a value per line, wrapped for people.
pub(crate) fn record(printer: &Printer, fields: &[(impl AsRef<str>, String)]) -> Result<(), Failure> {
    if printer.terminal.out.is_terminal {
        return labelled_lines(printer, fields).iter().try_for_each(|line| printer.line(line));
    }
    fields
        .iter()
        .try_for_each(|(name, value)| printer.line(&format!("{}\t{}", name.as_ref(), sanitize::line(value))))
}

/// The lines of one record for people.
pub(crate) fn labelled_lines(printer: &Printer, fields: &[(impl AsRef<str>, String)]) -> Vec<String> {
    let indent = fields.iter().map(|(name, _)| name.as_ref().len()).max().unwrap_or(0) + 2;
    fields.iter().flat_map(|(name, value)| labelled(printer, indent, name.as_ref(), value)).collect()
}

/// A wrapped text behind its label.
fn labelled(printer: &Printer, indent: usize, label: &str, text: &str) -> Vec<String> {
    let lines = wrap(&for_people(printer, text), printer.terminal.width.saturating_sub(indent));
    let lines = hanging(&format!("{label:<indent$}"), indent, &lines);
    lines.iter().map(|line| paint_marks(printer, line)).collect()
}

pub(crate) fn tab_separated(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| sanitize::line(cell.as_ref())).collect();
    cells.join("\t")
}

/// These columns without as many of the `droppable` ones (indices, the least important first) as must go for a table to
/// fit the terminal; all columns if that does not suffice.
pub(crate) fn fit_columns(
    printer: &Printer,
    columns: &[Column],
    rows: &[Vec<String>],
    droppable: &[usize],
) -> Vec<Column> {
    let mut kept = columns.to_vec();
    let fits = |kept: &[Column]| {
        let (columns, texts) = shown(printer, kept, rows);
        min_width(&columns, &texts) <= printer.terminal.width
    };
    for at in droppable {
        if fits(&kept) {
            return kept;
        }
        kept[*at].for_people = false;
    }
    if fits(&kept) {
        return kept;
    }
    // Names are broken earlier before the layout of a table is given up, unless it is too narrow to be of use.
    let broken = with_broken_names(columns).filter(|_| printer.terminal.width >= MIN_TABLE_WIDTH);
    broken.map_or_else(|| columns.to_vec(), |broken| fit_columns(printer, &broken, rows, droppable))
}

/// The columns with names that are broken earlier; `None` if that cannot be.
fn with_broken_names(columns: &[Column]) -> Option<Vec<Column>> {
    let mut broken = columns.to_vec();
    let mut is_changed = false;
    for column in &mut broken {
        column.breaks = match column.breaks {
            Breaks::Late(width) if width > NAME_WIDTHS[1] => Breaks::Late(NAME_WIDTHS[1]),
            Breaks::Late(_) => Breaks::BetweenWords,
            _ => continue,
        };
        is_changed = true;
    }
    is_changed.then_some(broken)
}

/// How many cells a terminal has left for the text of one more column beside an unwrapped table.
pub(crate) fn spare_width(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> usize {
    printer.terminal.width.saturating_sub(unwrapped_width(printer, columns, rows) + COLUMN_OVERHEAD)
}

/// Whether a terminal is wide enough for a table in which no cell is wrapped.
pub(crate) fn fits_unwrapped(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> bool {
    unwrapped_width(printer, columns, rows) <= printer.terminal.width
}

/// The width of a table in which no cell is wrapped.
fn unwrapped_width(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> usize {
    let (columns, texts) = shown(printer, columns, rows);
    let widest = |at: usize, column: &Column| {
        let of_rows = texts.iter().filter_map(|row| row.get(at)).map(|text| cells(text));
        of_rows.chain([cells(column.heading)]).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(|(at, column)| widest(at, column) + COLUMN_OVERHEAD).sum()
}

/// A text as shown to people.
fn for_people<'a>(printer: &Printer, text: &'a str) -> Cow<'a, str> {
    printer.terminal.symbols.adapt(sanitized(text))
}

/// The columns and texts that are shown to people.
fn shown(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> (Vec<Column>, Vec<Vec<String>>) {
    let is_shown = |pair: &(&Column, &String)| pair.0.for_people;
    let seen = columns.iter().filter(|column| column.for_people).copied();
    let texts = |row: &Vec<String>| {
        columns
            .iter()
            .zip(row)
            .filter(is_shown)
            .map(|(_, text)| for_people(printer, text).into_owned())
            .collect()
    };
    (seen.collect(), rows.iter().map(texts).collect())
}

/// The lines of a table, or of blocks where a table does not fit.
pub(crate) fn table(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> Vec<String> {
    let (columns, rows) = shown(printer, columns, rows);
    if min_width(&columns, &rows) > printer.terminal.width {
        return blocks(printer, &columns, &rows);
    }
    let least = columns.iter().enumerate();
    let least: Vec<usize> =
        least.map(|(at, column)| min_text_width(at, column, &rows) + CELL_PADDING).collect();
    let headings = columns.iter().map(|column| column.heading.to_owned()).collect();
    let mut table = grid(&printer.terminal, printer.terminal.width, headings, rows, &least);
    for (at, _) in columns.iter().enumerate().filter(|(_, column)| column.is_number) {
        if let Some(figures) = table.column_mut(at) {
            figures.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| paint_marks(printer, &line)).collect()
}

/// A table that is at most `width` wide, and whose columns have at least these widths.
pub(crate) fn grid(
    terminal: &Terminal,
    width: usize,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    least: &[usize],
) -> Table {
    let cells = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    let mut table = Table::new();
    table
        .load_style(terminal.symbols.table)
        .force_no_tty()
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(cells(width));
    if headings.iter().any(|heading| !heading.is_empty()) {
        table.set_header(headings);
    }
    table.set_constraints(
        least.iter().map(|least| ColumnConstraint::LowerBoundary(Width::Fixed(cells(*least)))),
    );
    table.add_rows(rows);
    table
}

/// The least width at which a table breaks only words that may be broken.
fn min_width(columns: &[Column], rows: &[Vec<String>]) -> usize {
    columns.iter().enumerate().map(|(at, column)| min_text_width(at, column, rows) + COLUMN_OVERHEAD).sum()
}

/// The width of a column's longest word, or of its longest text if that must stay on one line, capped where its words
/// may be broken.
fn min_text_width(at: usize, column: &Column, rows: &[Vec<String>]) -> usize {
    let longest_word = |text: &str| text.split_whitespace().map(cells).max().unwrap_or(0);
    let least = |text: &String| match column.breaks {
        Breaks::BetweenWords => longest_word(text),
        Breaks::Late(width) => cells(text).min(width).max(longest_word(text)),
        Breaks::Nowhere => cells(text),
        Breaks::Anywhere => longest_word(text).min(MIN_BROKEN_WIDTH),
    };
    let of_rows = rows.iter().filter_map(|row| row.get(at)).map(least);
    of_rows.chain([longest_word(column.heading)]).max().unwrap_or(0)
}

/// One line per field, wrapped behind the headings, and an empty line between records.
fn blocks(printer: &Printer, columns: &[Column], rows: &[Vec<String>]) -> Vec<String> {
    let indent = columns.iter().map(|column| cells(column.heading)).max().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    for row in rows {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        for (column, text) in columns.iter().zip(row) {
            lines.extend(labelled(printer, indent, column.heading, text));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::mark::{Mark, marked};
    use crate::cli::terminal::term::{ASCII, Paint, Terminal};

    #[test]
    fn tables_fit_and_leave_out_columns_for_programs() {
        let printer = Printer { terminal: Terminal::test(44, Paint::Plain), quiet: false, verbose: false };
        let row =
            vec!["key_0123456789".to_owned(), "a name that is rather long\u{1b}[0m for a cell".to_owned()];
        let lines = table(&printer, &[hidden("id"), column("name")], &[row]);
        assert!(lines.iter().all(|line| cells(line) <= 44 && !line.contains("key_")), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:#?}");
    }

    #[test]
    fn if_words_would_break_each_record_is_a_block() {
        let printer = Printer { terminal: Terminal::test(20, Paint::Plain), quiet: false, verbose: false };
        let row = |name: &str| vec!["key_1".to_owned(), name.to_owned(), "2026-11-20".to_owned()];
        let columns = [hidden("id"), column("name"), column("created")];
        let lines = table(&printer, &columns, &[row("a nightly build"), row("ci")]);
        let expected = [
            "name     a nightly",
            "         build",
            "created  2026-11-20",
            "",
            "name     ci",
            "created  2026-11-20",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_table_that_just_fits_breaks_headings_only_between_words() {
        let printer = Printer { terminal: Terminal::test(44, Paint::Plain), quiet: false, verbose: false };
        let columns = [column("model"), column("$/M in"), column("$/M out"), column("retired on")];
        let row = ["sandbox/extractor", "0", "0", "-"].map(str::to_owned).to_vec();
        let lines = table(&printer, &columns, &[row]);
        assert!(lines.iter().any(|line| line.contains("sandbox/extractor")), "{lines:#?}");
        assert!(lines.iter().all(|line| cells(line) <= 44), "{lines:#?}");
    }

    #[test]
    fn a_breakable_column_is_broken_before_the_table_is_given_up() {
        let printer = Printer { terminal: Terminal::test(44, Paint::Plain), quiet: false, verbose: false };
        let columns = [column("key"), breakable("value"), unbroken("from")];
        let row = ["server", "\"https://mk.example.org\"", "chosen at start"].map(str::to_owned).to_vec();
        let lines = table(&printer, &columns, &[row]);
        assert!(lines.iter().any(|line| line.contains("key") && line.contains("from")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("chosen at start")), "{lines:#?}");
        assert!(lines.iter().all(|line| cells(line) <= 44), "{lines:#?}");
    }

    #[test]
    fn droppable_columns_are_dropped_for_the_table_to_fit() {
        let columns = [column("name"), column("lesser"), column("least")];
        let rows = [vec!["a-long-name".to_owned(), "1".to_owned(), "2".to_owned()]];
        let shown = |width: usize| {
            let terminal = Terminal::test(width, Paint::Plain);
            let printer = Printer { terminal, quiet: false, verbose: false };
            let fitting = fit_columns(&printer, &columns, &rows, &[2, 1]);
            [0, 1, 2].map(|at: usize| fitting[at].for_people)
        };
        assert_eq!(shown(31), [true, true, true]);
        assert_eq!(shown(30), [true, true, false]);
        assert_eq!(shown(22), [true, false, false]);
        assert_eq!(shown(13), [true, true, true], "in blocks there is room for all");
    }

    #[test]
    fn marks_are_as_wide_as_they_look() {
        let terminal = Terminal::test(44, Paint::Full);
        let printer = Printer { terminal, quiet: false, verbose: false };
        let near = marked(&printer, Some(Mark::Near), "$8 (81 %)".to_owned());
        let rows = [vec![near, "a".to_owned()], vec!["$1 (10 %) x".to_owned(), "\u{1}b".to_owned()]];
        let lines = table(&printer, &[column("spent"), column("name")], &rows);
        let plain: Vec<String> = lines.iter().map(|line| line.replace("\u{1b}[33m!\u{1b}[0m", "!")).collect();
        assert!(plain.iter().all(|line| !line.contains('\u{1b}')), "{plain:#?}");
        let near = plain.iter().find(|line| line.contains("! $8")).unwrap();
        let other = plain.iter().find(|line| line.contains("$1")).unwrap();
        assert_eq!(near.find(" a"), other.find(" b").or_else(|| other.find(" !b")), "{plain:#?}");
    }

    #[test]
    fn ascii_substitutes_get_the_width_they_need() {
        let columns = [unbroken("key"), column("name")];
        let rows = [vec!["verify …wXyZ".to_owned(), "ci".to_owned()]];
        let shown = |width: usize| {
            let terminal = Terminal { symbols: &ASCII, ..Terminal::test(width, Paint::Plain) };
            table(&Printer { terminal, quiet: false, verbose: false }, &columns, &rows)
        };
        for width in [24, 23, 20] {
            let lines = shown(width);
            assert!(lines.iter().any(|line| line.contains("verify ...wXyZ")), "{lines:#?}");
            assert!(lines.iter().all(|line| line.is_ascii() && cells(line) <= width), "{lines:#?}");
        }
    }

    #[test]
    fn lines_for_programs_contain_everything() {
        assert_eq!(tab_separated(&["key_1".to_owned(), "a\tb\n".to_owned()]), "key_1\ta b ");
    }
}
