//! Money in whole nano-dollars (10⁻⁹ US dollars): sums stay exact, and the cheapest token still costs something.
//!
//! Unknown prices stay unknown (`None` where a [`Price`] is asked for), never zero.

use serde::{Deserialize, Serialize};

/// An amount in nano-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// The amount of `dollars`, rounded to the nearest nano-dollar; `None` for a negative or senseless number.
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

    /// The sum, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// What a model costs, in nano-dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// For a million tokens of prompt.
    pub input_per_mtok: NanoUsd,
    /// For a million tokens of completion.
    pub output_per_mtok: NanoUsd,
}

impl Price {
    /// The cost of one call, rounded up to a whole nano-dollar.
    pub fn of(self, prompt_tokens: u64, completion_tokens: u64) -> NanoUsd {
        let total = u128::from(self.input_per_mtok.0) * u128::from(prompt_tokens)
            + u128::from(self.output_per_mtok.0) * u128::from(completion_tokens);
        NanoUsd(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_a_nano_dollar_a_token_adds_up() {
        // 37.5 nano-dollars a token, as command-r7b costs.
        let price = Price { input_per_mtok: NanoUsd(37_500_000), output_per_mtok: NanoUsd(150_000_000) };
        assert_eq!(price.of(2, 1), NanoUsd(225));
        assert_eq!(price.of(1, 0), NanoUsd(38));
    }

    #[test]
    fn refuses_senseless_amounts() {
        assert_eq!(NanoUsd::from_usd(0.25), Some(NanoUsd(250_000_000)));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(NanoUsd::from_usd(wrong), None, "{wrong}");
        }
    }
}
