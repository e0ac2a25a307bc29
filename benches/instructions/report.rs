//! The table, and the verdicts on the budgets.

use std::fmt;

use anyhow::{Context, ensure};

use crate::plan::{Ask, Bound, Figure, Per};
use crate::run::Count;

/// How far from its budget a figure may be, either way, in percent.
pub(crate) const MARGIN: u64 = 10;

/// How a figure compares with its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Within,
    /// More than the margin above.
    Above,
    /// More than the margin below.
    Below,
}

/// The value of a figure, computed from the counts.
///
/// # Errors
/// If the counts it needs are missing.
pub(crate) fn value(figure: &Figure, counts: &[(Ask, Count)]) -> anyhow::Result<u64> {
    let count = of(figure.ask, counts)?;
    let (instructions, parts) = match figure.per {
        Per::Answer => return per_answer(count),
        Per::Event => (count.instructions, count.events),
        Per::EventBeyond(other) => {
            let other = of(other, counts)?;
            ensure!(count.answers == other.answers, "{} was counted of fewer or more", figure.title);
            // If there is no difference at all, the result is zero.
            let instructions = count.instructions.saturating_sub(other.instructions);
            (instructions, count.events.saturating_sub(other.events))
        }
    };
    instructions.checked_div(parts).with_context(|| format!("{}: there is none", figure.title))
}

fn of(ask: Ask, counts: &[(Ask, Count)]) -> anyhow::Result<Count> {
    let found = counts.iter().find(|(counted, _)| *counted == ask);
    found.map(|(_, count)| *count).with_context(|| format!("{} was not counted", ask.name()))
}

fn per_answer(count: Count) -> anyhow::Result<u64> {
    count.instructions.checked_div(u64::from(count.answers)).context("no answer was counted")
}

impl Verdict {
    /// Compares `value` with what the figure is held to.
    ///
    /// # Errors
    /// If a count that it is held to is missing.
    pub(crate) fn of(value: u64, bound: Bound, counts: &[(Ask, Count)]) -> anyhow::Result<(u64, Self)> {
        Ok(match bound {
            Bound::Budget(budget) if value * 100 > budget * (100 + MARGIN) => (budget, Self::Above),
            Bound::Budget(budget) if value * 100 < budget * (100 - MARGIN) => (budget, Self::Below),
            Bound::Budget(budget) => (budget, Self::Within),
            Bound::OfChat(percent, chat) => {
                let most = per_answer(of(chat, counts)?)? * percent / 100;
                (most, if value > most { Self::Above } else { Self::Within })
            }
        })
    }
}

/// The first line.
pub(crate) fn head() -> String {
    format!("{:<36} {:>12} {:>12}", "instructions", "counted", "bound")
}

/// The line of a figure.
pub(crate) struct Line<'a> {
    /// The figure.
    pub(crate) figure: &'a Figure,
    /// What was counted.
    pub(crate) value: u64,
    /// What it is held to, and how it compares with that; `None` if that is for another build.
    pub(crate) verdict: Option<(u64, Verdict)>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { figure: Figure { title, ask, .. }, value, verdict } = self;
        write!(f, "{title:<36} {value:>12}")?;
        let Some((bound, verdict)) = verdict else { return Ok(()) };
        let percent = i128::from(*value) * 100 / i128::from(*bound.max(&1)) - 100;
        write!(f, " {bound:>12} {:>7}", format!("{percent:+} %"))?;
        match verdict {
            Verdict::Within => Ok(()),
            Verdict::Above => write!(f, "  ABOVE: see where by callgrind_annotate {}.out", ask.name()),
            Verdict::Below => f.write_str("  BELOW: lower its budget in benches/instructions/plan.rs"),
        }
    }
}
