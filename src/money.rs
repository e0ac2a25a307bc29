//! Money in whole nano-dollars (10⁻⁹ US dollars): sums stay exact, and the cheapest token still costs something.
//!
//! Unknown prices stay unknown (`None` where a [`Price`] is expected), never zero.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Time;

/// The number of decimal places of a dollar amount.
const DECIMALS: usize = 9;

/// An amount in nano-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// The maximum that [`NanoUsd::parse_usd`] accepts, in dollars.
    pub const MAX_USD: u64 = 1_000_000_000;

    /// The amount of `dollars`, rounded to the nearest nano-dollar; `None` if it is negative, not finite or out of
    /// range.
    pub fn from_usd(dollars: f64) -> Option<Self> {
        let nano = (dollars * 1e9).round();
        // The cast is exact: the range was just checked.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked")]
        (nano.is_finite() && (0.0..=9e18).contains(&nano)).then_some(Self(nano as u64))
    }

    /// In dollars, for people and for JSON numbers.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show; sums are made before")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Parses a dollar amount that a person has written: `25`, `0.50`. Digit by digit, so that it is exactly what was
    /// meant; `None` if it is not a number, more than a billion, or finer than nano-dollars.
    pub fn parse_usd(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > DECIMALS {
            return None;
        }
        let nano: u64 = format!("{whole}{fraction:0<DECIMALS$}").parse().ok()?;
        (nano <= Self::MAX_USD * 1_000_000_000).then_some(Self(nano))
    }

    /// The sum, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, saturating at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Exact, with at least two decimals: `$25.00`, `$0.0000375`.
impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, nano) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let fraction = format!("{nano:0DECIMALS$}");
        write!(f, "${dollars}.{:0<2}", fraction.trim_end_matches('0'))
    }
}

/// Whose budget it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetScope {
    /// The key's own.
    Key,
    /// That of the app the key belongs to.
    App,
    /// That of the end user the request is for.
    EndUser,
}

/// How long a budget lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Period {
    /// A calendar month (UTC).
    #[default]
    Month,
    /// A UTC day.
    Day,
}

impl Period {
    /// The month or day of this time, in the form in which it is stored.
    pub fn number(self, at: Time) -> i64 {
        match self {
            Self::Month => at.utc_month(),
            Self::Day => at.utc_day(),
        }
    }

    /// When the next one begins.
    pub fn end(self, now: Time) -> Time {
        match self {
            Self::Month => now.next_utc_month(),
            Self::Day => now.next_utc_midnight(),
        }
    }
}

/// A budget that does not cover what a call may cost. Its text describes the situation, not what to do about
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetShortage {
    /// Whose budget.
    pub scope: BudgetScope,
    /// How long it lasts.
    pub period: Period,
    /// The amount for that time.
    pub budget: NanoUsd,
    /// What has been spent of it.
    pub spent: NanoUsd,
    /// What other calls under way may still use of it.
    pub reserved: NanoUsd,
    /// The most that the call may cost.
    pub max_cost: NanoUsd,
    /// When the next one begins.
    pub renews_at: Time,
}

impl BudgetShortage {
    /// Whether nothing is left, whatever the calls under way end up costing.
    pub const fn is_used_up(&self) -> bool {
        self.spent.0 >= self.budget.0
    }

    /// Whether the call would fit once those under way have released all they reserved.
    pub fn is_temporary(&self) -> bool {
        self.max_cost <= self.budget.minus(self.spent)
    }

    /// What is left for further calls.
    pub fn left(&self) -> NanoUsd {
        self.budget.minus(self.spent).minus(self.reserved)
    }
}

impl fmt::Display for BudgetShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, reserved, max_cost, .. } = self;
        let whose = match self.scope {
            BudgetScope::Key => "this API key",
            BudgetScope::App => "this API key's app",
            BudgetScope::EndUser => "this end user",
        };
        let period = match self.period {
            Period::Month => "monthly",
            Period::Day => "daily",
        };
        if self.is_used_up() {
            return write!(f, "the {period} budget of {whose} ({budget}) is used up");
        }
        let left = self.left();
        write!(
            f,
            "this could cost up to {max_cost}, but {left} is left of the {period} budget of {whose} ({budget})"
        )?;
        if reserved.0 > 0 {
            write!(f, ", besides {reserved} reserved for requests under way")?;
        }
        Ok(())
    }
}

/// What a model costs, in nano-dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// For a million tokens of prompt.
    pub input_per_mtok: NanoUsd,
    /// For a million tokens of completion.
    pub output_per_mtok: NanoUsd,
    /// For a million tokens of prompt that are read from the provider's cache; `None` for the price of any prompt.
    pub cached_input_per_mtok: Option<NanoUsd>,
    /// For a million tokens of prompt that are written to the provider's cache; `None` for the price of any prompt.
    pub cache_write_per_mtok: Option<NanoUsd>,
}

/// The tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt, cached or not.
    pub prompt: u64,
    /// Tokens of the answer, including reasoning.
    pub completion: u64,
    /// The part of the prompt that was read from the provider's cache.
    pub cached: u64,
    /// The part of the prompt that was written to the provider's cache.
    pub cache_written: u64,
}

/// What a call has used, and how that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The tokens.
    pub tokens: Tokens,
    /// Whether they were estimated: the provider has not reported them.
    pub is_estimated: bool,
}

impl Usage {
    /// As the provider has reported it.
    pub const fn reported(tokens: Tokens) -> Self {
        Self { tokens, is_estimated: false }
    }

    /// As estimated. That nothing was used is no estimate.
    pub fn estimated(tokens: Tokens) -> Self {
        Self { tokens, is_estimated: tokens != Tokens::default() }
    }
}

impl From<Tokens> for Usage {
    /// As reported.
    fn from(tokens: Tokens) -> Self {
        Self::reported(tokens)
    }
}

impl Tokens {
    /// The tokens of a call whose prompt was not cached.
    pub const fn new(prompt: u64, completion: u64) -> Self {
        Self { prompt, completion, cached: 0, cache_written: 0 }
    }

    /// The tokens of a call without an answer.
    pub const fn of_prompt(prompt: u64) -> Self {
        Self::new(prompt, 0)
    }

    /// Both, saturating.
    pub const fn total(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}

impl Price {
    /// A price without one of its own for what is cached.
    pub const fn new(input_per_mtok: NanoUsd, output_per_mtok: NanoUsd) -> Self {
        Self { input_per_mtok, output_per_mtok, cached_input_per_mtok: None, cache_write_per_mtok: None }
    }

    /// The cost of one call, rounded up to a whole nano-dollar. A provider that reports more cached tokens than prompt
    /// is charged for no more than the prompt.
    pub fn of(self, tokens: Tokens) -> NanoUsd {
        let Self { input_per_mtok: input, output_per_mtok: output, .. } = self;
        let cached = tokens.cached.min(tokens.prompt);
        let written = tokens.cache_written.min(tokens.prompt - cached);
        let total = [
            (tokens.prompt - cached - written, input),
            (cached, self.cached_input_per_mtok.unwrap_or(input)),
            (written, self.cache_write_per_mtok.unwrap_or(input)),
            (tokens.completion, output),
        ];
        let total: u128 =
            total.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price.0)).sum();
        NanoUsd(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// The most that a call may cost, whatever part of its prompt is cached.
    pub fn at_most(self, tokens: Tokens) -> NanoUsd {
        let dearest = self.input_per_mtok.max(self.cache_write_per_mtok.unwrap_or_default());
        let dearest = dearest.max(self.cached_input_per_mtok.unwrap_or_default());
        Self::new(dearest, self.output_per_mtok).of(tokens)
    }
}

/// The thresholds of a budget, in percent.
const THRESHOLDS: [u8; 3] = [100, 80, 50];

/// The highest threshold of a budget (50, 80 or 100 percent) that `spent` has reached. A budget of zero is used up from
/// the beginning.
pub fn threshold(spent: NanoUsd, budget: NanoUsd) -> Option<u8> {
    let reached = |percent: &u8| u128::from(spent.0) * 100 >= u128::from(budget.0) * u128::from(*percent);
    THRESHOLDS.into_iter().find(reached)
}

/// How much of a budget is used, in percent to one decimal, rounded down: 100 only if all of it is used.
pub fn used_percent(spent: NanoUsd, budget: NanoUsd) -> f64 {
    if budget.0 == 0 {
        return 100.0;
    }
    let tenths = u128::from(spent.0) * 1000 / u128::from(budget.0);
    u32::try_from(tenths).map_or(f64::from(u32::MAX), f64::from) / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_nano_dollar_per_token_add_up() {
        // 37.5 nano-dollars per token, the price of command-r7b.
        let price = Price::new(NanoUsd(37_500_000), NanoUsd(150_000_000));
        assert_eq!(price.of(Tokens::new(2, 1)), NanoUsd(225));
        assert_eq!(price.of(Tokens::of_prompt(1)), NanoUsd(38));
    }

    #[test]
    fn what_is_cached_has_its_own_price_where_that_is_known() {
        let tokens = Tokens { prompt: 1_000, completion: 1, cached: 700, cache_written: 200 };
        let plain = Price::new(NanoUsd(10_000_000), NanoUsd(1_000_000));
        assert_eq!((plain.of(tokens), plain.at_most(tokens)), (NanoUsd(10_001), NanoUsd(10_001)));
        let own = Price {
            cached_input_per_mtok: Some(NanoUsd(1_000_000)),
            cache_write_per_mtok: Some(NanoUsd(12_000_000)),
            ..plain
        };
        assert_eq!(own.of(tokens), NanoUsd(100 * 10 + 700 + 200 * 12 + 1));
        assert_eq!(own.at_most(tokens), NanoUsd(12_001));
        let absurd = Tokens { prompt: 10, completion: 0, cached: 20, cache_written: 20 };
        assert_eq!(own.of(absurd), NanoUsd(10));
    }

    #[test]
    fn written_amounts_are_parsed_exactly() {
        for (text, nano) in [
            ("25", 25_000_000_000),
            ("0.5", 500_000_000),
            ("0", 0),
            ("007.10", 7_100_000_000),
            ("0.000000001", 1),
            ("1000000000", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(NanoUsd::parse_usd(text), Some(NanoUsd(nano)), "{text}");
        }
        for wrong in [
            "",
            ".",
            "5.",
            ".5",
            "-5",
            "+5",
            "$5",
            "5,00",
            "1e3",
            "NaN",
            "inf",
            " 5",
            "1.2.3",
            "0.0000000001",
            "1000000000.000000001",
            "99999999999999999999999999",
            "٣",
        ] {
            assert_eq!(NanoUsd::parse_usd(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn amounts_are_displayed_exactly() {
        for (nano, text) in [
            (0, "$0.00"),
            (1, "$0.000000001"),
            (37_500, "$0.0000375"),
            (500_000_000, "$0.50"),
            (25_000_000_000, "$25.00"),
            (u64::MAX, "$18446744073.709551615"),
        ] {
            assert_eq!(NanoUsd(nano).to_string(), text);
        }
    }

    #[test]
    fn a_shortage_describes_the_situation() {
        let shortage = |spent, reserved| BudgetShortage {
            scope: BudgetScope::App,
            period: Period::Month,
            budget: NanoUsd(5_000_000_000),
            spent: NanoUsd(spent),
            reserved: NanoUsd(reserved),
            max_cost: NanoUsd(2_000_000_000),
            renews_at: Time::from_unix_ms(0),
        };
        assert_eq!(
            shortage(5_100_000_000, 7).to_string(),
            "the monthly budget of this API key's app ($5.00) is used up"
        );
        let near = "this could cost up to $2.00, but $1.50 is left of the monthly budget of this API key's app ($5.00)";
        assert_eq!(shortage(3_500_000_000, 0).to_string(), near);
        assert_eq!(
            shortage(3_000_000_000, 500_000_000).to_string(),
            format!("{near}, besides $0.50 reserved for requests under way")
        );
        let of_user =
            BudgetShortage { scope: BudgetScope::EndUser, period: Period::Day, ..shortage(5_000_000_000, 0) };
        assert_eq!(of_user.to_string(), "the daily budget of this end user ($5.00) is used up");
    }

    #[test]
    fn refuses_senseless_amounts() {
        assert_eq!(NanoUsd::from_usd(0.25), Some(NanoUsd(250_000_000)));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(NanoUsd::from_usd(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_threshold_is_reached_exactly_and_never_by_rounding() {
        let of = |spent, budget| {
            (threshold(NanoUsd(spent), NanoUsd(budget)), used_percent(NanoUsd(spent), NanoUsd(budget)))
        };
        assert_eq!(of(0, 1000), (None, 0.0));
        assert_eq!(of(499, 1000), (None, 49.9));
        assert_eq!(of(500, 1000), (Some(50), 50.0));
        assert_eq!(of(799_999, 1_000_000), (Some(50), 79.9));
        assert_eq!(of(800, 1000), (Some(80), 80.0));
        assert_eq!(of(999_999, 1_000_000), (Some(80), 99.9));
        assert_eq!(of(1500, 1000), (Some(100), 150.0));
        assert_eq!(of(0, 0), (Some(100), 100.0));
        assert_eq!(of(u64::MAX, u64::MAX), (Some(100), 100.0));
    }
}
