//! Budgets below a report: how full they are, in words, beside a symbol whose colour says the same.

use crate::api::console::{Billing, BudgetLine};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::humanize::{counted, dollars};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::Style;
use crate::cli::terminal::wrap::{hanging, wrap};
use crate::usage::ReportRequest;

/// How many budgets are shown, the fullest ones.
const MAX_SHOWN: usize = 10;
/// The width of what precedes a line's text: a symbol and a space.
const INDENT: usize = 2;

/// The budgets that match the report's filters, the fullest first.
pub(super) fn matching<'a>(
    billing: &'a Billing,
    request: &'a ReportRequest,
) -> impl Iterator<Item = &'a BudgetLine> {
    let matches = |wanted: &Option<String>, id: &str| wanted.as_deref().is_none_or(|wanted| wanted == id);
    billing
        .budgets
        .iter()
        .filter(move |line| matches(&request.app_id, &line.app_id) && matches(&request.key_id, &line.id))
}

/// Prints the budgets for people.
pub(super) fn print(printer: &Printer, billing: &Billing, request: &ReportRequest) -> Result<(), Failure> {
    let lines: Vec<_> = matching(billing, request).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let reset = billing.ends_at.split('T').next().unwrap_or_default();
    let heading = format!("budgets of {}, which reset on {reset}:", billing.month);
    printer.line("")?;
    for line in wrap(&sanitize::line(&heading), printer.terminal.width) {
        printer.line(&line)?;
    }
    for line in lines.iter().take(MAX_SHOWN) {
        for text in shown(printer, line) {
            printer.line(&text)?;
        }
    }
    match lines.len().saturating_sub(MAX_SHOWN) {
        0 => Ok(()),
        more => printer.line(&format!("  and {} more, less used; --json shows all", counted(more, "budget"))),
    }
}

fn shown(printer: &Printer, line: &BudgetLine) -> Vec<String> {
    let terminal = &printer.terminal;
    let symbols = terminal.symbols;
    let (symbol, words) = match line.threshold {
        Some(100) => (terminal.out.paint.apply(Style::False, symbols.no), " (used up)"),
        Some(80) => (terminal.out.paint.apply(Style::Open, symbols.skipped), " (80 % reached)"),
        Some(_) => (symbols.waiting.to_owned(), " (50 % reached)"),
        None => (" ".to_owned(), ""),
    };
    let what = if line.id == line.app_id { "app" } else { "key" };
    let text = format!(
        "{what} {}: {} of {}, {:.0} %{words}",
        symbols.adapt(sanitize::line(&line.name)),
        dollars(line.spent_usd),
        dollars(line.budget_usd),
        line.used_percent.floor()
    );
    hanging(&format!("{symbol} "), INDENT, &wrap(&text, terminal.width.saturating_sub(INDENT)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{Paint, Terminal};

    fn line(used_percent: f64, threshold: Option<u8>) -> BudgetLine {
        BudgetLine {
            id: "key_1".to_owned(),
            name: "nightly \u{1b}[2Jbuild".to_owned(),
            app_id: "app_1".to_owned(),
            budget_usd: 20.0,
            spent_usd: used_percent / 5.0,
            used_percent,
            threshold,
        }
    }

    fn on(width: usize, paint: Paint, line: &BudgetLine) -> Vec<String> {
        shown(&Printer { terminal: Terminal::test(width, paint), quiet: false, verbose: false }, line)
    }

    #[test]
    fn a_threshold_is_also_stated_in_words_and_never_early() {
        let plain = |percent, threshold| on(80, Paint::Plain, &line(percent, threshold)).join("\n");
        let key = "key nightly \u{fffd}[2Jbuild:";
        assert_eq!(plain(0.0, None), format!("  {key} $0.0000 of $20.00, 0 %"));
        assert_eq!(plain(79.99, Some(50)), format!("· {key} $16.00 of $20.00, 79 % (50 % reached)"));
        assert_eq!(plain(80.0, Some(80)), format!("! {key} $16.00 of $20.00, 80 % (80 % reached)"));
        assert_eq!(plain(130.0, Some(100)), format!("✗ {key} $26.00 of $20.00, 130 % (used up)"));
    }

    #[test]
    fn only_the_symbol_is_coloured_and_lines_fit() {
        let lines = on(30, Paint::Full, &line(85.0, Some(80)));
        assert!(lines[0].starts_with("\u{1b}[33m!\u{1b}[0m key nightly"), "{lines:?}");
        assert!(lines.len() > 1 && lines[1..].iter().all(|line| line.starts_with("  ") && line.len() <= 30));
    }
}
