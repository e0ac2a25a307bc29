//! The budget of an app or key in lists and records: its amount, what is spent, and how full that makes it, in words
//! beside a symbol.

use crate::api::console::{App, Key, csv};
use crate::cli::target::admin::Unpriced;
use crate::cli::terminal::humanize::dollars;
use crate::cli::terminal::mark::{Mark, marked};
use crate::cli::terminal::printer::Printer;
use crate::money::NanoUsd;

/// The budget fields of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    amount_usd: Option<f64>,
    spent_usd: f64,
    used_percent: Option<f64>,
    threshold: Option<u8>,
    /// How many calls are missing from what is spent, as their price is unknown.
    unpriced: u64,
}

impl Budget {
    /// That of an app.
    pub(crate) fn of_app(app: &App, unpriced: &Unpriced) -> Self {
        let unpriced = unpriced.of(&app.id);
        Self::new(app.budget_usd, app.spent_usd, app.budget_used_percent, app.budget_threshold, unpriced)
    }

    /// That of a key.
    pub(crate) fn of_key(key: &Key, unpriced: &Unpriced) -> Self {
        let unpriced = unpriced.of(&key.id);
        Self::new(key.budget_usd, key.spent_usd, key.budget_used_percent, key.budget_threshold, unpriced)
    }

    fn new(
        amount_usd: Option<f64>,
        spent_usd: Option<f64>,
        used_percent: Option<f64>,
        threshold: Option<u8>,
        unpriced: u64,
    ) -> Self {
        let unpriced = unpriced.max(u64::from(spent_usd.is_none()));
        Self { amount_usd, spent_usd: spent_usd.unwrap_or_default(), used_percent, threshold, unpriced }
    }

    /// The text for a record: `$25.00 a month`, or `none`.
    pub(crate) fn monthly(&self) -> String {
        self.amount_usd.map_or_else(|| "none".to_owned(), |budget| format!("{} a month", exactly(budget)))
    }

    /// The text for what is spent, in a record: `$8.10 this month (81 % of the budget, nearly used up)`.
    pub(crate) fn this_month(&self, printer: &Printer) -> String {
        let spent = format!("{} this month", self.spent(printer.terminal.symbols.at_least, exactly));
        let used = self.percent().map(|percent| format!(" ({percent} of the budget{})", self.words()));
        marked(printer, self.mark(), spent + &used.unwrap_or_default())
    }

    /// The cells of a list for people: the budget, and `$8.10 (81 %, nearly used up)`.
    pub(crate) fn cells(&self, printer: &Printer) -> [String; 2] {
        let used = self.percent().map(|percent| format!(" ({percent}{})", self.words()));
        let spent = self.spent(printer.terminal.symbols.at_least, dollars) + &used.unwrap_or_default();
        [self.amount(), marked(printer, self.mark(), spent)]
    }

    /// The cells of a list for programs: the budget and what is spent, in dollars, the percentage used, and the calls
    /// that are missing from what is spent.
    pub(crate) fn plain_cells(&self) -> [String; 4] {
        let percent = self.used_percent.map_or_else(|| "-".to_owned(), |percent| percent.to_string());
        let amount = self.amount_usd.map_or_else(|| "-".to_owned(), csv::decimal);
        [amount, self.spent("", csv::decimal), percent, self.unpriced.to_string()]
    }

    /// What is spent; never zero or complete where a price is unknown.
    fn spent(&self, at_least: &str, format: impl Fn(f64) -> String) -> String {
        match self.unpriced {
            0 => format(self.spent_usd),
            _ if self.spent_usd > 0.0 => format!("{at_least}{}", format(self.spent_usd)),
            _ => "unknown".to_owned(),
        }
    }

    fn amount(&self) -> String {
        self.amount_usd.map_or_else(|| "-".to_owned(), dollars)
    }

    /// Rounded down, so that a budget of which 99.9 % are used is not shown as used up.
    fn percent(&self) -> Option<String> {
        self.used_percent.map(|percent| format!("{:.0} %", percent.floor()))
    }

    const fn words(&self) -> &'static str {
        match self.mark() {
            None => "",
            Some(Mark::Near) => ", nearly used up",
            Some(Mark::Over) => ", used up",
        }
    }

    const fn mark(&self) -> Option<Mark> {
        match self.threshold {
            Some(100..) => Some(Mark::Over),
            Some(80..) => Some(Mark::Near),
            _ => None,
        }
    }
}

/// The amount with all its digits, as it was set.
fn exactly(amount: f64) -> String {
    NanoUsd::from_usd(amount).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{Paint, Terminal};
    use crate::money::{threshold, used_percent};

    fn of(spent: f64) -> Budget {
        let (spent_usd, amount_usd) = (spent, Some(10.0));
        let (spent, budget) = (NanoUsd::from_usd(spent).unwrap(), NanoUsd(10_000_000_000));
        let used_percent = Some(used_percent(spent, budget));
        Budget { amount_usd, spent_usd, used_percent, threshold: threshold(spent, budget), unpriced: 0 }
    }

    #[test]
    fn how_full_it_is_is_said_in_words_and_never_early() {
        let mut terminal = Terminal::test(80, Paint::Plain);
        terminal.out.is_terminal = false;
        let printer = Printer { terminal, quiet: false, verbose: false };
        let spent = |amount| of(amount).cells(&printer)[1].clone();
        assert_eq!(spent(0.0), "$0.0000 (0 %)");
        assert_eq!(spent(7.9999), "$8.00 (79 %)");
        assert_eq!(spent(8.1), "$8.10 (81 %, nearly used up)");
        assert_eq!(spent(9.999), "$10.00 (99 %, nearly used up)");
        assert_eq!(spent(12.5), "$12.50 (125 %, used up)");
        assert_eq!(of(8.1).this_month(&printer), "$8.10 this month (81 % of the budget, nearly used up)");
        assert_eq!(of(8.1).plain_cells(), ["10.00", "8.10", "81", "0"]);

        let none =
            Budget { amount_usd: None, spent_usd: 0.5, used_percent: None, threshold: None, unpriced: 0 };
        assert_eq!((none.monthly().as_str(), &*none.this_month(&printer)), ("none", "$0.50 this month"));
        assert_eq!(none.plain_cells(), ["-", "0.50", "-", "0"]);

        let partial = Budget { unpriced: 2, ..none };
        assert_eq!(partial.this_month(&printer), "≥$0.50 this month");
        assert_eq!((partial.cells(&printer)[1].as_str(), &*partial.plain_cells()[1]), ("≥$0.5000", "0.50"));
        let unknown = Budget { spent_usd: 0.0, ..partial };
        assert_eq!((unknown.cells(&printer)[1].as_str(), &*unknown.plain_cells()[1]), ("unknown", "unknown"));
    }

    #[test]
    fn amounts_are_exact_in_records() {
        let amount = Budget { amount_usd: Some(12.000_000_001), ..of(0.0) };
        assert_eq!(amount.monthly(), "$12.000000001 a month");
    }
}
