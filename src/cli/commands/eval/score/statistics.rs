//! The statistics behind the figures, as pure functions of counts.
//!
//! | figure | method | source |
//! |---|---|---|
//! | interval of a share | Wilson's score interval, 95 % | Wilson 1927, JASA 22, 209–212 |
//! | exact interval of a share | Clopper–Pearson, 95 % | Clopper & Pearson 1934, Biometrika 26, 404–413 |
//! | paired comparison | exact two-sided test of `McNemar` | `McNemar` 1947, Psychometrika 12, 153–157 |
//! | correlation of errors | phi, the product-moment correlation of two yes-or-no values | Yule 1912, JRSS 75, 579–652 |
//! | its interval | delta method by influence values, 95 % | Efron & Tibshirani 1993, An Introduction to the Bootstrap, ch. 22 |
//! | effective number of votes | design effect `k / (1 + (k − 1) ρ)` | Kish 1965, Survey Sampling, ch. 5 |
//!
//! The tail of the binomial distribution, which is the regularised incomplete beta function of whole numbers, is summed
//! here: of the crates that have that function, statrs brings a dozen others for linear algebra, and puruspe is wrong
//! for large counts.
//!
//! All of them take statements for drawn by chance and separately of each other. Intervals are two-sided: a gate on one
//! of their ends errs in at most 2.5 % of evaluations.

use serde::{Serialize, Serializer};

/// The standard normal distribution's 97.5th percentile.
const Z: f64 = 1.959_963_985;

/// More statements than anybody will ask.
const MOST: f64 = 1e9;

/// A term of a sum next to 1 that changes nothing.
const NEGLIGIBLE: f64 = 1e-20;

/// How often a bound is halved: as often as a double has digits.
const HALVINGS: usize = 60;

/// A number of hits out of a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The hits.
    pub(crate) hits: usize,
    /// The total.
    pub(crate) total: usize,
}

impl Rate {
    /// The percentage; `None` for a total of zero.
    pub(crate) fn percent(self) -> Option<f64> {
        (self.total > 0).then(|| 100.0 * ratio(self.hits, self.total))
    }

    /// Whether it is at least this percentage.
    pub(crate) fn reaches(self, percent: f64) -> bool {
        // Multiplied rather than divided, as 29 / 100 comes out slightly below 0.29.
        self.total > 0 && 100.0 * ratio(self.hits, 1) >= percent * ratio(self.total, 1)
    }

    /// Whether it is at most this percentage.
    pub(crate) fn stays_within(self, percent: f64) -> bool {
        self.total > 0 && 100.0 * ratio(self.hits, 1) <= percent * ratio(self.total, 1)
    }

    /// Wilson's 95 % confidence interval in percent, which is also valid for few statements and near 0 and 100.
    pub(crate) fn interval(self) -> Option<(f64, f64)> {
        if self.total == 0 {
            return None;
        }
        let (share, one) = (ratio(self.hits, self.total), ratio(1, self.total));
        let spread = Z * (share * (1.0 - share) * one + Z * Z * one * one / 4.0).sqrt();
        let (middle, scale) = (share + Z * Z * one / 2.0, 1.0 + Z * Z * one);
        let bound = |value: f64| 100.0 * (value / scale).clamp(0.0, 1.0);
        Some((bound(middle - spread), bound(middle + spread)))
    }

    /// The lower end of the interval; 0 where nothing is known.
    pub(crate) fn lower(self) -> f64 {
        self.interval().map_or(0.0, |(lower, _)| lower)
    }

    /// The upper end of the interval; 100 where nothing is known.
    pub(crate) fn upper(self) -> f64 {
        self.interval().map_or(100.0, |(_, upper)| upper)
    }

    /// The exact 95 % confidence interval of Clopper and Pearson in percent: never too narrow, for what is rare.
    pub(crate) fn exact_interval(self) -> Option<(f64, f64)> {
        let Self { hits, total } = self;
        if total == 0 {
            return None;
        }
        // So many hits or more are improbable below the lower end, and so many or fewer above the upper one.
        let lower = |share: f64| hits > 0 && 1.0 - at_most(hits - 1, total, share) < 0.025;
        let upper = |share: f64| hits == total || at_most(hits, total, share) > 0.025;
        Some((100.0 * boundary(lower), 100.0 * boundary(upper)))
    }

    /// Of how many statements a bound of the interval would reach this percentage, if the share stayed what it is;
    /// `None` if it never would.
    pub(crate) fn total_for_bound(self, percent: f64) -> Option<usize> {
        let share = self.percent()? / 100.0;
        let bound = percent / 100.0;
        // The ends of Wilson's interval are where (share − bound)² = z² · bound · (1 − bound) / n.
        let needed = (Z * Z * bound * (1.0 - bound) / (share - bound).powi(2)).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to MOST")]
        (needed <= MOST).then_some(needed as usize)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shown::new(*self, self.interval()).serialize(serializer)
    }
}

/// A share whose interval is the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exact(pub(crate) Rate);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shown::new(self.0, self.0.exact_interval()).serialize(serializer)
    }
}

#[derive(Serialize)]
struct Shown {
    count: usize,
    of: usize,
    percent: Option<f64>,
    interval_95: Option<(f64, f64)>,
}

impl Shown {
    fn new(rate: Rate, interval: Option<(f64, f64)>) -> Self {
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        Self {
            count: rate.hits,
            of: rate.total,
            percent: rate.percent().map(tenths),
            interval_95: interval.map(|(low, high)| (tenths(low), tenths(high))),
        }
    }
}

/// What two judges did on the same statements, of whom each was at fault or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs {
    /// Both.
    pub(crate) both: usize,
    /// Only the first.
    pub(crate) only_first: usize,
    /// Only the second.
    pub(crate) only_second: usize,
    /// Neither.
    pub(crate) neither: usize,
}

impl Pairs {
    /// Counts one more statement.
    pub(crate) fn add(&mut self, first: bool, second: bool) {
        *match (first, second) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.only_first,
            (false, true) => &mut self.only_second,
            (false, false) => &mut self.neither,
        } += 1;
    }

    /// All statements.
    pub(crate) const fn total(self) -> usize {
        self.both + self.only_first + self.only_second + self.neither
    }

    /// The probability of a difference at least as large if both were equally often at fault: the exact two-sided test
    /// of `McNemar`, which only those statements decide on which the two differ.
    pub(crate) fn mcnemar(self) -> f64 {
        let (fewer, more) = (self.only_first.min(self.only_second), self.only_first.max(self.only_second));
        if more == 0 {
            return 1.0;
        }
        (2.0 * at_most(fewer, fewer + more, 0.5)).min(1.0)
    }

    /// The correlation of the faults with its 95 % confidence interval; `None` if either is always or never at fault.
    pub(crate) fn phi(self) -> Option<Estimate> {
        let cells = [
            (1.0, 1.0, self.both),
            (1.0, 0.0, self.only_first),
            (0.0, 1.0, self.only_second),
            (0.0, 0.0, self.neither),
        ];
        let mean = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            cells.iter().map(|(first, second, count)| of(*first, *second) * ratio(*count, self.total())).sum()
        };
        if self.total() == 0 {
            return None;
        }
        let (first_mean, second_mean) = (mean(&|first, _| first), mean(&|_, second| second));
        let variance = |mean: f64| mean * (1.0 - mean);
        let (first_scale, second_scale) = (variance(first_mean).sqrt(), variance(second_mean).sqrt());
        if first_scale == 0.0 || second_scale == 0.0 {
            return None;
        }
        let first_z = |first: f64| (first - first_mean) / first_scale;
        let second_z = |second: f64| (second - second_mean) / second_scale;
        let value = mean(&|first, second| first_z(first) * second_z(second));
        let influence = |first: f64, second: f64| {
            let (first, second) = (first_z(first), second_z(second));
            first * second - value * (first * first + second * second) / 2.0
        };
        let spread =
            Z * (mean(&|first, second| influence(first, second).powi(2)) / ratio(self.total(), 1)).sqrt();
        let bound = |bound: f64| bound.clamp(-1.0, 1.0);
        Some(Estimate { value, interval: (bound(value - spread), bound(value + spread)) })
    }
}

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The value.
    pub(crate) value: f64,
    /// Its interval.
    pub(crate) interval: (f64, f64),
}

/// Of how many models with uncorrelated errors the votes are worth, for `models` with this mean correlation. A negative
/// one counts as none: it is no evidence of more models than there are.
pub(crate) fn effective_votes(models: usize, mean_correlation: f64) -> f64 {
    let models = ratio(models, 1);
    models / (1.0 + (models - 1.0) * mean_correlation.clamp(0.0, 1.0))
}

/// The probability of at most so many hits of this total, each with this probability.
fn at_most(hits: usize, total: usize, probability: f64) -> f64 {
    if probability <= 0.0 || probability >= 1.0 {
        return if probability <= 0.0 || hits >= total { 1.0 } else { 0.0 };
    }
    let odds = probability / (1.0 - probability);
    // Each number's probability against that of the most probable one: nothing overflows, and no factorial is needed.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to the total")]
    let mode = ((ratio(total + 1, 1) * probability) as usize).min(total);
    let (mut below, mut all) = (0.0, 0.0);
    let mut add = |number: usize, weight: f64| {
        all += weight;
        below += if number <= hits { weight } else { 0.0 };
        weight > NEGLIGIBLE
    };
    add(mode, 1.0);
    let mut weight = 1.0;
    for number in (0..mode).rev() {
        weight *= ratio(number + 1, total - number) / odds;
        if !add(number, weight) {
            break;
        }
    }
    weight = 1.0;
    for number in mode + 1..=total {
        weight *= ratio(total - number + 1, number) * odds;
        if !add(number, weight) {
            break;
        }
    }
    below / all
}

/// The share up to which something holds.
fn boundary(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[expect(clippy::cast_precision_loss, reason = "there are no datasets of 2^52 statements")]
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hits: usize, total: usize) -> Rate {
        Rate { hits, total }
    }

    fn near(found: (f64, f64), low: f64, high: f64) {
        assert!(
            (found.0 - low).abs() < 0.05 && (found.1 - high).abs() < 0.05,
            "{found:?} is not {low} to {high}"
        );
    }

    #[test]
    fn a_share_reaches_itself() {
        for total in 1..400 {
            for hits in 0..=total {
                let rate = rate(hits, total);
                let percent = ratio(hits * 100 / total, 1);
                assert!(
                    (hits * 100) % total > 0 || rate.reaches(percent) && rate.stays_within(percent),
                    "{rate:?}"
                );
            }
        }
        assert!(!rate(2249, 2500).reaches(90.0));
        assert!(!Rate::default().reaches(0.0) && !Rate::default().stays_within(100.0));
    }

    #[test]
    fn intervals_are_wilsons() {
        // Values of R's `prop.test(…, correct = FALSE)`.
        near(rate(35, 40).interval().unwrap(), 73.9, 94.5);
        near(rate(0, 10).interval().unwrap(), 0.0, 27.8);
        near(rate(10, 10).interval().unwrap(), 72.2, 100.0);
        assert_eq!(
            (Rate::default().interval(), Rate::default().lower(), Rate::default().upper()),
            (None, 0.0, 100.0)
        );
    }

    #[test]
    fn exact_intervals_are_those_of_clopper_and_pearson() {
        // Values of R's `binom.test`.
        near(rate(35, 40).exact_interval().unwrap(), 73.20, 95.81);
        near(rate(0, 10).exact_interval().unwrap(), 0.0, 30.85);
        near(rate(10, 10).exact_interval().unwrap(), 69.15, 100.0);
        near(rate(3, 1000).exact_interval().unwrap(), 0.062, 0.874);
        near(rate(4000, 10_000).exact_interval().unwrap(), 39.04, 40.97);
        near(rate(99_990, 100_000).exact_interval().unwrap(), 99.982, 99.995);
        assert_eq!(Rate::default().exact_interval(), None);
    }

    #[test]
    fn no_pass_proves_less_than_5_percent_only_from_73_statements_on() {
        assert!(rate(0, 72).upper() > 5.0 && rate(0, 73).upper() < 5.0);
        assert_eq!(rate(0, 10).total_for_bound(5.0), Some(73));
        assert_eq!(rate(10, 10).total_for_bound(95.0), Some(73));
        assert_eq!(rate(19, 20).total_for_bound(95.0), None, "what lies on the bound never passes it");
        assert_eq!(Rate::default().total_for_bound(95.0), None);
        for (hits, total) in [(49, 50), (9, 10), (99, 100)] {
            let scaled = |n: usize| rate(n * hits / total, n).lower();
            let needed = rate(hits, total).total_for_bound(85.0).unwrap();
            assert!(
                scaled(needed + total) >= 84.9 && scaled(needed.saturating_sub(total)) < 85.1,
                "{needed}"
            );
        }
    }

    #[test]
    fn the_test_of_mcnemar_is_the_exact_one() {
        let p = |only_first, only_second| Pairs { only_first, only_second, ..Pairs::default() }.mcnemar();
        // Values of R's `binom.test(b, b + c)`.
        for (b, c, expected) in [
            (0, 6, 0.03125),
            (6, 0, 0.03125),
            (2, 8, 0.109_375),
            (5, 5, 1.0),
            (0, 0, 1.0),
            (1, 10, 0.011_718_75),
        ] {
            assert!((p(b, c) - expected).abs() < 1e-6, "{b} {c}: {}", p(b, c));
        }
    }

    #[test]
    fn phi_is_the_correlation_of_two_faults() {
        let phi =
            |both, only_first, only_second, neither| Pairs { both, only_first, only_second, neither }.phi();
        assert!((phi(10, 0, 0, 30).unwrap().value - 1.0).abs() < 1e-12);
        assert!((phi(0, 20, 20, 0).unwrap().value + 1.0).abs() < 1e-12);
        assert!(phi(9, 21, 21, 49).unwrap().value.abs() < 1e-12);
        // (20·60 − 10·10) / √(30·70·30·70)
        let found = phi(20, 10, 10, 60).unwrap();
        assert!((found.value - 1100.0 / 2100.0).abs() < 1e-12);
        assert!(found.interval.0 > 0.3 && found.interval.1 < 0.75, "{found:?}");
        assert_eq!(phi(0, 0, 5, 5), None, "without a variance there is no correlation");
        assert_eq!(phi(0, 0, 0, 0), None);
    }

    #[test]
    fn votes_that_agree_in_everything_are_one() {
        assert!((effective_votes(3, 0.0) - 3.0).abs() < 1e-12);
        assert!((effective_votes(3, 1.0) - 1.0).abs() < 1e-12);
        assert!((effective_votes(3, 0.5) - 1.5).abs() < 1e-12);
        assert!((effective_votes(3, -0.2) - 3.0).abs() < 1e-12);
    }
}
