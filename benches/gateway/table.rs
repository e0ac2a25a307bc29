//! The table: medians over the rounds, comparisons within each round, and their bounds.

use crate::figures::{Sample, Target, median};

/// A line of the table.
pub(crate) struct Row {
    /// What is measured, with its unit.
    pub(crate) what: &'static str,
    /// The figure.
    pub(crate) of: fn(&Sample) -> Option<f64>,
    /// How `mk` is compared with the others.
    pub(crate) against: Against,
    /// The bound, if there is one.
    pub(crate) bound: Option<Bound>,
}

/// How two figures of one round are compared.
#[derive(Clone, Copy)]
pub(crate) enum Against {
    /// Not compared.
    Nothing,
    /// As a quotient.
    Times,
    /// As a difference.
    Plus,
}

/// A bound on a figure of `mk`, or on its comparison with another target.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    /// The target that it is compared with; `None` if the bound is on the figure itself.
    pub(crate) to: Option<Target>,
    /// The limit.
    pub(crate) limit: Limit,
}

/// The values that are allowed.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

/// Whether a bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It holds.
    Ok,
    /// It does not.
    Missed,
    /// Not measured.
    Unchecked,
}

/// The samples of one scenario: by round, then in the order of [`Target::ALL`].
pub(crate) type Rounds = Vec<[Option<Sample>; Target::ALL.len()]>;

impl Row {
    /// The median over the rounds of one target's figure.
    fn figure(&self, rounds: &Rounds, target: Target) -> Option<f64> {
        median(rounds.iter().filter_map(|round| self.value(round, target)))
    }

    /// The median over the rounds of the comparison of `mk` with `target` in the same round.
    fn comparison(&self, rounds: &Rounds, target: Target) -> Option<f64> {
        let compared = rounds.iter().filter_map(|round| {
            let (ours, theirs) = (self.value(round, Target::Mk)?, self.value(round, target)?);
            match self.against {
                Against::Nothing => None,
                Against::Times => Some(ours / theirs),
                Against::Plus => Some(ours - theirs),
            }
        });
        // In a short time no processor time may have been counted, which gives no number.
        median(compared.filter(|value| value.is_finite()))
    }

    fn value(&self, round: &[Option<Sample>; Target::ALL.len()], target: Target) -> Option<f64> {
        round[target as usize].as_ref().and_then(self.of).filter(|value| value.is_finite())
    }

    /// The line, and the verdict on its bound.
    pub(crate) fn line(&self, rounds: &Rounds) -> (String, Option<Verdict>) {
        let [direct, nginx, mk, chat] = Target::ALL.map(|target| shown(self.figure(rounds, target)));
        let [to_direct, to_nginx, to_chat] = [Target::Direct, Target::Nginx, Target::Chat]
            .map(|target| self.compared(self.comparison(rounds, target)));
        let verdict = self.bound.map(|bound| {
            bound.verdict(match bound.to {
                Some(target) => self.comparison(rounds, target),
                None => self.figure(rounds, Target::Mk),
            })
        });
        let bound = self.bound.map_or_else(String::new, |bound| bound.text(self.against));
        let verdict_text = verdict.map_or("", Verdict::text);
        let what = self.what;
        let line = format!(
            "  {what:<26}{direct:>10}{nginx:>10}{chat:>10}{mk:>10}{to_nginx:>11}{to_direct:>11}{to_chat:>10}  {bound:<18}{verdict_text}"
        );
        (line.trim_end().to_owned(), verdict)
    }

    fn compared(&self, value: Option<f64>) -> String {
        match (self.against, value) {
            (Against::Nothing, _) => String::new(),
            (_, None) => "–".to_owned(),
            (Against::Times, Some(value)) => format!("{value:.2} x"),
            (Against::Plus, Some(value)) => format!("{value:+.3}"),
        }
    }
}

/// The head of the table's columns.
pub(crate) fn head() -> String {
    let [direct, nginx, mk, chat] = Target::ALL.map(Target::name);
    let [to_nginx, to_direct, to_chat] = ["to nginx", "to direct", "to chat"];
    format!(
        "{:<28}{direct:>10}{nginx:>10}{chat:>10}{mk:>10}{to_nginx:>11}{to_direct:>11}{to_chat:>10}  bound",
        ""
    )
}

impl Bound {
    fn verdict(self, value: Option<f64>) -> Verdict {
        match (self.limit, value) {
            (_, None) => Verdict::Unchecked,
            (Limit::AtLeast(limit), Some(value)) if value < limit => Verdict::Missed,
            (Limit::AtMost(limit), Some(value)) if value > limit => Verdict::Missed,
            _ => Verdict::Ok,
        }
    }

    /// The bound as the table shows it.
    fn text(self, against: Against) -> String {
        let (sign, limit) = match self.limit {
            Limit::AtLeast(limit) => (">=", limit),
            Limit::AtMost(limit) => ("<=", limit),
        };
        match (self.to.map(Target::name), against) {
            (None, _) | (_, Against::Nothing) => format!("{sign} {limit}"),
            (Some(to), Against::Times) => format!("{sign} {limit} x {to}"),
            (Some(to), Against::Plus) => format!("{sign} {to} + {limit}"),
        }
    }
}

impl Verdict {
    const fn text(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missed => "MISSED",
            Self::Unchecked => "not checked",
        }
    }
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}
