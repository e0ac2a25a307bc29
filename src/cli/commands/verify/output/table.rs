//! Results as a table with a row per claim: `--view table`.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, Width};

use super::votes;
use crate::api::verify::{Assessment, ClaimResult, VerifyResponse};
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::{Paint, Terminal};

use super::page::{Page, mark};

/// The index of the column that is only shown for several statements.
const SOURCE_COLUMN: usize = 1;
/// The indices of columns with our own words.
const VERDICT_COLUMN: usize = 3;
const MODELS_COLUMN: usize = 6;
/// The least width for a table: it leaves the claim about twenty cells.
const MIN_WIDTH: usize = 64;
/// The width of the longest of these words, `CONSENSUS`, with a space on either side.
const WORD_WIDTH: u16 = 11;
/// The least width for a table in which these words stand on one line.
const ROOMY_WIDTH: usize = 80;
/// The width of the longest of these phrases, `NO CONSENSUS`, with a space on either side.
const PHRASE_WIDTH: u16 = 14;

/// All lines on a verification: the table and the summary.
pub(crate) fn result(page: &Page<'_>, result: &VerifyResponse, elapsed: Duration) -> Vec<String> {
    if is_too_narrow(page.terminal) {
        return page.result(result, elapsed);
    }
    let mut rows = Rows::new(page.terminal, false);
    rows.add(None, result);
    let mut lines = rows.lines();
    lines.extend(page.summary(result, elapsed));
    lines
}

/// What was found for some of `total` claims, by index, before a verification broke off.
pub(crate) fn partial(page: &Page<'_>, found: &BTreeMap<usize, ClaimResult>, total: usize) -> Vec<String> {
    if is_too_narrow(page.terminal) {
        return page.partial(found, total);
    }
    let mut rows = Rows::new(page.terminal, false);
    for (index, claim) in found {
        rows.claim(None, *index, claim);
    }
    let mut lines = rows.lines();
    lines.extend(page.remainder(found.len(), total));
    lines
}

/// Whether the column for the claim would be too narrow for words, so that claims are listed instead.
pub(crate) const fn is_too_narrow(terminal: &Terminal) -> bool {
    terminal.out.is_terminal && terminal.width < MIN_WIDTH
}

/// The rows of a table.
pub(crate) struct Rows<'a> {
    terminal: &'a Terminal,
    /// Whether a column names the statement that a row belongs to.
    has_sources: bool,
    table: Table,
}

impl<'a> Rows<'a> {
    /// No rows yet; `has_sources` for several statements.
    pub(crate) fn new(terminal: &'a Terminal, has_sources: bool) -> Self {
        let mut table = Table::new();
        table.load_style(terminal.symbols.table);
        let head: [&str; 7] = ["", "from", "#", "verdict", "votes", "claim", "models say"];
        let mut rows = Self { terminal, has_sources, table };
        rows.table.set_header(rows.shown(head.map(Cell::new)));
        rows
    }

    /// Adds the claims and the skipped parts of a verification.
    pub(crate) fn add(&mut self, source: Option<&str>, result: &VerifyResponse) {
        for (index, claim) in result.results.iter().enumerate() {
            self.claim(source, index, claim);
        }
        for part in &result.skipped {
            let word = if part.reason.is_unchecked() { "not checked" } else { "skipped" };
            self.other(source, word, &part.text, &part.reason.as_str().replace('_', " "));
        }
        if result.results.is_empty() && result.skipped.is_empty() {
            self.other(source, "nothing to verify", "", "");
        }
    }

    /// Adds a statement that could not be verified.
    pub(crate) fn failed(&mut self, source: &str, message: &str) {
        self.other(Some(source), "error", message, "");
    }

    fn claim(&mut self, source: Option<&str>, index: usize, claim: &ClaimResult) {
        let row = self.shown([
            symbol(self.terminal, claim.assessment),
            Cell::new(sanitize::line(source.unwrap_or_default())),
            Cell::new(index + 1),
            Cell::new(claim.assessment),
            Cell::new(votes::letters(claim, "") + if claim.cached { "\ncached" } else { "" }),
            Cell::new(sanitize::line(&claim.claim)),
            Cell::new(votes::consensus_text(claim)),
        ]);
        self.table.add_row(row);
    }

    /// A row without a verdict.
    fn other(&mut self, source: Option<&str>, word: &str, text: &str, why: &str) {
        let row = self.shown([
            Cell::new(self.terminal.symbols.skipped),
            Cell::new(sanitize::line(source.unwrap_or_default())),
            Cell::new("-"),
            Cell::new(word),
            Cell::new(""),
            Cell::new(sanitize::line(text)),
            Cell::new(why),
        ]);
        self.table.add_row(row);
    }

    /// A row without the column of sources, where there is none.
    fn shown(&self, row: [Cell; 7]) -> Vec<Cell> {
        let is_shown = |at: usize| at != SOURCE_COLUMN || self.has_sources;
        row.into_iter().enumerate().filter(|(at, _)| is_shown(*at)).map(|(_, cell)| cell).collect()
    }

    /// The lines of the table.
    pub(crate) fn lines(mut self) -> Vec<String> {
        let (terminal, table) = (self.terminal, &mut self.table);
        if terminal.out.is_terminal {
            let width = u16::try_from(terminal.width).unwrap_or(80);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        } else {
            table.set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
        }
        if terminal.out.paint == Paint::Full {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let missing = usize::from(!self.has_sources);
        keep_words_whole(table, missing, terminal.width >= ROOMY_WIDTH);
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Gives the claim only the width that the other columns do not need: they hold few words, and none of those may be
/// broken; where there is room, they stand on one line. `missing` is how many columns are not shown before them.
fn keep_words_whole(table: &mut Table, missing: usize, is_roomy: bool) {
    let texts = table.column_max_content_widths();
    for at in [VERDICT_COLUMN - missing, MODELS_COLUMN - missing] {
        let whole = texts.get(at).map_or(0, |width| width + 2).clamp(WORD_WIDTH, PHRASE_WIDTH);
        let width = if is_roomy { whole } else { WORD_WIDTH };
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
    }
}

fn symbol(terminal: &Terminal, assessment: Assessment) -> Cell {
    let cell = Cell::new(mark(terminal, assessment).0);
    if terminal.out.paint != Paint::Full {
        return cell;
    }
    match assessment {
        Assessment::True => cell.fg(Color::DarkCyan),
        Assessment::False => cell.fg(Color::DarkRed).add_attribute(Attribute::Bold),
        Assessment::NoConsensus => cell.fg(Color::DarkYellow),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::votes::tests::claim;
    use super::*;
    use crate::cli::terminal::wrap::cells;

    fn result() -> VerifyResponse {
        let year = claim("FALSE", "B", &[("p/a", "B"), ("p/b", "B"), ("p/c", "A")]);
        serde_json::from_value(json!({
            "requestId": "ver_1", "original_fact": "x", "results": [year], "timestamp": "t",
            "tokenUsage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 },
            "minRequired": 2, "audited": true, "complete": true, "skipped": [{ "text": "So nice!", "reason": "opinion" }],
        }))
        .unwrap()
    }

    fn lines(terminal: &Terminal, result: &VerifyResponse) -> Vec<String> {
        let mut rows = Rows::new(terminal, false);
        rows.add(None, result);
        rows.lines()
    }

    #[test]
    fn each_claim_is_a_row() {
        let lines = lines(&Terminal::test(80, Paint::Plain), &result());
        assert!(
            lines.iter().any(|line| line.contains("FALSE") && line.contains("FFT") && line.contains("1889"))
        );
        assert!(lines.iter().any(|line| line.contains("So nice!") && line.contains("opinion")));
        assert!(lines.iter().all(|line| cells(line) <= 80 && !line.contains('\u{1b}')), "{lines:#?}");
    }

    #[test]
    fn no_word_is_broken_on_a_narrow_terminal() {
        let mut result = result();
        result.results.push(claim("NO CONSENSUS", "A", &[("p/a", "A"), ("p/b", "B"), ("p/c", "D")]));
        for width in [40, 44, MIN_WIDTH, 80] {
            let terminal = Terminal::test(width, Paint::Plain);
            let page = Page { terminal: &terminal, explain: false, places: None };
            let lines = super::result(&page, &result, Duration::ZERO);
            assert!(lines.iter().all(|line| cells(line) <= width), "{lines:#?}");
            for word in ["CONSENSUS", "completed", "claimed"] {
                assert!(lines.iter().any(|line| line.contains(word)), "{word}: {lines:#?}");
            }
            let phrases = ["NO CONSENSUS", "as claimed"];
            let are_whole = phrases.iter().all(|phrase| lines.iter().any(|line| line.contains(phrase)));
            assert!(are_whole || (MIN_WIDTH..ROOMY_WIDTH).contains(&width), "{lines:#?}");
        }
    }

    #[test]
    fn the_summary_of_the_list_ends_it() {
        for width in [44, 80] {
            let terminal = Terminal::test(width, Paint::Plain);
            let page = Page { terminal: &terminal, explain: false, places: None };
            let elapsed = Duration::from_millis(2440);
            let table = super::result(&page, &result(), elapsed);
            let summary = page.summary(&result(), elapsed);
            assert!(summary[0].starts_with("1 claim: ✗ 1 false"), "{summary:#?}");
            assert!(
                table.ends_with(&summary) && page.result(&result(), elapsed).ends_with(&summary),
                "{table:#?}"
            );
        }
    }

    #[test]
    fn symbols_are_coloured_where_allowed() {
        let text = lines(&Terminal::test(80, Paint::Full), &result()).join("\n");
        assert!(text.contains('\u{1b}'), "{text}");
    }
}
