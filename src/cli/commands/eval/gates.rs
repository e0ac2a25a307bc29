//! Thresholds that fail an evaluation.
//!
//! They are held against the end of the confidence interval that speaks against the panel: 10 of 10 proves no accuracy
//! of 90 %. With `--point`, they are held against the share itself.

use serde_json::{Value, json};

use super::args::Gates;
use super::reports::text::shown;
use super::score::{Matrix, Rate};
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::humanize::{counted, thousands};

/// How a share stands to its threshold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    gate: Gate,
    limit: f64,
    by_point: bool,
    rate: Rate,
    pub(super) is_met: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    MinAccuracy,
    MaxFalsePass,
}

impl Gates {
    /// Holds the figures against the thresholds.
    pub(super) fn judge(&self, matrix: &Matrix) -> Vec<Judged> {
        let by_point = self.point;
        let accuracy = self.min_accuracy.map(|limit| {
            let rate = matrix.right();
            let is_met = if by_point { rate.reaches(limit) } else { rate.total > 0 && rate.lower() >= limit };
            Judged { gate: Gate::MinAccuracy, limit, by_point, rate, is_met }
        });
        let false_pass = self.max_false_pass.map(|limit| {
            let rate = matrix.false_passed();
            let is_met =
                if by_point { rate.stays_within(limit) } else { rate.total > 0 && rate.upper() <= limit };
            Judged { gate: Gate::MaxFalsePass, limit, by_point, rate, is_met }
        });
        accuracy.into_iter().chain(false_pass).collect()
    }
}

impl Judged {
    /// Why it is missed, if it is, and what would help.
    pub(super) fn failure(&self) -> Option<Failure> {
        if self.is_met {
            return None;
        }
        let (limit, total) = (self.limit, self.rate.total);
        let end = if self.by_point { "" } else { self.end() };
        let (found, asks, what) = match self.gate {
            Gate::MinAccuracy => {
                ("right were", format!("--min-accuracy asks for {limit} %{end}"), "statement")
            }
            Gate::MaxFalsePass => {
                ("passed as TRUE were", format!("--max-false-pass allows {limit} %{end}"), "FALSE statement")
            }
        };
        let failure = |found: String| Failure::new(Kind::Other, format!("{found}; {asks}"));
        if total == 0 {
            return Some(failure(format!("no {what} was verified")));
        }
        let failure = failure(format!("{found} {}", shown(self.rate)));
        let holds_by_point = match self.gate {
            Gate::MinAccuracy => self.rate.reaches(limit),
            Gate::MaxFalsePass => self.rate.stays_within(limit),
        };
        let needed = self.rate.total_for_bound(limit).filter(|_| holds_by_point && !self.by_point);
        Some(match needed {
            Some(needed) => failure.hint(format!(
                "with this share, {}s are needed to prove that, and there are {}; --point compares the share itself",
                counted(needed, what).trim_end_matches('s'),
                thousands(u64::try_from(total).unwrap_or(u64::MAX)),
            )),
            None => failure,
        })
    }

    /// What is held against the limit, in words.
    const fn end(&self) -> &'static str {
        match self.gate {
            Gate::MinAccuracy => " at the lower end of the interval",
            Gate::MaxFalsePass => " at the upper end of the interval",
        }
    }

    /// Its entry in JSON.
    pub(super) fn document(&self) -> Value {
        let (name, bound) = match self.gate {
            Gate::MinAccuracy => ("min_accuracy", self.rate.lower()),
            Gate::MaxFalsePass => ("max_false_pass", self.rate.upper()),
        };
        let held = if self.by_point { self.rate.percent() } else { Some(bound) };
        let held = held.map(|held| (held * 10.0).round() / 10.0);
        json!({ "gate": name, "limit": self.limit, "point": self.by_point, "held": held, "rate": self.rate, "met": self.is_met })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::eval::label::Label;

    fn judged(gates: Gates, right: usize, passed: usize, found: usize) -> Vec<(bool, Option<Failure>)> {
        let mut matrix = Matrix::default();
        for (count, expected, said) in [
            (right, Label::True, Label::True),
            (passed, Label::False, Label::True),
            (found, Label::False, Label::False),
        ] {
            (0..count).for_each(|_| matrix.add(expected, said));
        }
        gates.judge(&matrix).iter().map(|judged| (judged.is_met, judged.failure())).collect()
    }

    #[test]
    fn a_gate_is_held_against_the_end_of_the_interval() {
        let gates = Gates { min_accuracy: Some(90.0), max_false_pass: Some(5.0), ..Gates::default() };
        let few = judged(gates, 0, 0, 20);
        assert!(few.iter().all(|(is_met, _)| !is_met), "{few:?}");
        let hint = &few[1].1.as_ref().unwrap().hints[0];
        assert!(hint.contains("73 FALSE statements are needed") && hint.contains("there are 20"), "{hint}");
        let enough = judged(gates, 0, 0, 73);
        assert!(enough.iter().all(|(is_met, failure)| *is_met && failure.is_none()), "{enough:?}");
        let by_point = judged(Gates { point: true, ..gates }, 0, 0, 20);
        assert!(by_point.iter().all(|(is_met, _)| *is_met), "{by_point:?}");
    }

    #[test]
    fn no_number_of_statements_helps_a_share_beyond_the_limit() {
        let gates = Gates { max_false_pass: Some(5.0), ..Gates::default() };
        let failure = judged(gates, 0, 2, 18).remove(0).1.unwrap();
        assert!(failure.hints.is_empty() && failure.message.contains("2 of 20, 10.0 %"), "{failure:?}");
    }

    #[test]
    fn without_statements_no_gate_is_met() {
        for point in [true, false] {
            let gates =
                Gates { min_accuracy: Some(0.0), max_false_pass: Some(100.0), point, ..Gates::default() };
            let none = judged(gates, 0, 0, 0);
            assert!(none.iter().all(|(is_met, _)| !is_met), "{none:?}");
        }
    }
}
