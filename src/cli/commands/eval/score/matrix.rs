//! What statements are against what was said about them, and the shares that follow.

use std::collections::BTreeMap;

use super::statistics::Rate;
use crate::cli::commands::eval::label::Label;

/// The counts of statements by what they are and what was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matrix {
    counts: BTreeMap<(Label, Label), usize>,
}

impl Matrix {
    /// Counts one more statement.
    pub(crate) fn add(&mut self, expected: Label, said: Label) {
        *self.counts.entry((expected, said)).or_default() += 1;
    }

    /// How many statements that are `expected` were `said` to be.
    pub(crate) fn count(&self, expected: Label, said: Label) -> usize {
        self.counts.get(&(expected, said)).copied().unwrap_or(0)
    }

    /// How many statements satisfy this.
    fn sum(&self, counts: impl Fn(Label, Label) -> bool) -> usize {
        let chosen = self.counts.iter().filter(|((expected, said), _)| counts(*expected, *said));
        chosen.map(|(_, count)| count).sum()
    }

    /// All statements.
    pub(crate) fn total(&self) -> usize {
        self.sum(|_, _| true)
    }

    /// The share about which the right thing was said.
    pub(crate) fn right(&self) -> Rate {
        Rate { hits: self.sum(|expected, said| expected == said), total: self.total() }
    }

    /// The share that was said to be true or false at all.
    pub(crate) fn decided(&self) -> Rate {
        Rate { hits: self.sum(|_, said| said.is_verdict()), total: self.total() }
    }

    /// The share of correct ones among those said to be true or false.
    pub(crate) fn right_when_decided(&self) -> Rate {
        let hits = self.sum(|expected, said| expected == said && said.is_verdict());
        Rate { hits, total: self.decided().hits }
    }

    /// The share of statements said to be this that are.
    pub(crate) fn precision(&self, said: Label) -> Rate {
        Rate { hits: self.count(said, said), total: self.sum(|_, other| other == said) }
    }

    /// The share of statements that are this that were said to be.
    pub(crate) fn coverage(&self, expected: Label) -> Rate {
        Rate { hits: self.count(expected, expected), total: self.sum(|other, _| other == expected) }
    }

    /// The share of false statements that passed as true: what a gate would let through.
    pub(crate) fn false_passed(&self) -> Rate {
        Rate { hits: self.count(Label::False, Label::True), ..self.coverage(Label::False) }
    }

    /// The share of true statements that were called false.
    pub(crate) fn true_called_false(&self) -> Rate {
        Rate { hits: self.count(Label::True, Label::False), ..self.coverage(Label::True) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_right_totals() {
        let mut matrix = Matrix::default();
        for (expected, said) in [
            (Label::True, Label::True),
            (Label::True, Label::False),
            (Label::True, Label::NoConsensus),
            (Label::False, Label::False),
            (Label::False, Label::True),
            (Label::NoConsensus, Label::NoConsensus),
        ] {
            matrix.add(expected, said);
        }
        let rate = |hits, total| Rate { hits, total };
        assert_eq!(matrix.right(), rate(3, 6));
        assert_eq!(matrix.decided(), rate(4, 6));
        assert_eq!(matrix.right_when_decided(), rate(2, 4));
        assert_eq!((matrix.precision(Label::True), matrix.precision(Label::False)), (rate(1, 2), rate(1, 2)));
        assert_eq!((matrix.coverage(Label::True), matrix.coverage(Label::False)), (rate(1, 3), rate(1, 2)));
        assert_eq!(matrix.false_passed(), rate(1, 2));
        assert_eq!(matrix.true_called_false(), rate(1, 3));
    }
}
