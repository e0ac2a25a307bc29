//! Reproducible random numbers: the same seed gives the same numbers. Not for secrets.

use std::time::Duration;

/// A random number generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The numbers of `seed` for one of its many users.
    pub(crate) const fn new(seed: u64, user: u64) -> Self {
        Self(seed ^ user.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from zero to `end`, excluding `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True `of_thousand` times out of a thousand.
    pub(crate) fn chance(&mut self, of_thousand: u64) -> bool {
        self.below(1000) < of_thousand
    }

    /// A duration up to `most`.
    pub(crate) fn span(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(most))
    }

    /// One of these, with the probability that its weight gives.
    ///
    /// # Panics
    /// If there is none, or all weights are zero.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[(u64, T)]) -> T {
        let mut left = self.below(all.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in all {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *one,
            }
        }
        all[0].1
    }
}
