//! The table: medians over the rounds, comparisons within each round, and their bounds.

use crate::load::Tally;
use crate::{Load, Rounds};

/// By how much the requests per second may be lower than those they are compared with.
const FLAT: f64 = 0.05;

/// The result of a load in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    answers_per_s: f64,
    /// The server's processor time for each answer, where the system tells it.
    cpu_us: Option<f64>,
}

impl Sample {
    /// The figures of a load; `cpu` is the processor time that the server used meanwhile.
    pub(crate) fn new(tally: &Tally, cpu: Option<std::time::Duration>) -> Self {
        let answers = f64::from(tally.answers);
        Self {
            answers_per_s: answers / tally.took.as_secs_f64(),
            cpu_us: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / answers),
        }
    }
}

/// Prints the table; returns whether all bounds were checked and hold.
pub(crate) fn print(rounds: &Rounds) -> bool {
    println!("\n{:<46}{:>12}{:>14}", "", "requests/s", "CPU us each");
    for load in Load::ALL {
        let figure = |of: Figure| median(rounds.iter().filter_map(|round| value(round, load, of)));
        println!("{:<46}{:>12}{:>14}", load.title(), shown(figure(ANSWERS), 0), shown(figure(CPU), 1));
    }
    println!("\n{:<46}{:>12}{:>14}  bound", "compared", "requests/s", "CPU us each");
    let flat = |what, load, to| comparison(rounds, what, load, to, true);
    let is_flat = [
        flat("10 keys in use: a million keys to 10", Load::FewOfMany, Load::FewOfFew),
        flat("20,000 in use: a million keys to 20,000", Load::SomeOfMany, Load::SomeOfAll),
        flat("100,000 in use: a million keys to 100,000", Load::ManyOfMany, Load::ManyOfAll),
    ];
    let shown = |what, load, to| comparison(rounds, what, load, to, false);
    shown("250,000 in use: a million keys to 250,000", Load::BeyondOfMany, Load::BeyondOfAll);
    shown("a million keys: 20,000 in use to 10", Load::SomeOfMany, Load::FewOfMany);
    shown("a million keys: 100,000 in use to 10", Load::ManyOfMany, Load::FewOfMany);
    shown("a million keys: 250,000 in use to 10", Load::BeyondOfMany, Load::FewOfMany);
    is_flat.into_iter().all(|is_flat| is_flat)
}

type Figure = fn(&Sample) -> Option<f64>;

const ANSWERS: Figure = |sample| Some(sample.answers_per_s);
const CPU: Figure = |sample| sample.cpu_us;

fn value(round: &[Option<Sample>; Load::ALL.len()], load: Load, of: Figure) -> Option<f64> {
    round[load as usize].as_ref().and_then(of)
}

/// Prints a line; returns whether `load` has as many requests per second as `to`, if that is a bound. More are fine.
fn comparison(rounds: &Rounds, what: &str, load: Load, to: Load, is_bound: bool) -> bool {
    let ratio = |of: Figure| {
        median(rounds.iter().filter_map(|round| Some(value(round, load, of)? / value(round, to, of)?)))
    };
    let answers = ratio(ANSWERS);
    let is_flat = answers.is_some_and(|answers| answers >= 1.0 - FLAT);
    let bound = match (is_bound, is_flat) {
        (false, _) => String::new(),
        (true, true) => format!(">= {:.2} x   ok", 1.0 - FLAT),
        (true, false) => format!(">= {:.2} x   MISSED", 1.0 - FLAT),
    };
    let times = |value| format!("{} x", shown(value, 3));
    println!("{}", format!("{what:<46}{:>12}{:>14}  {bound}", times(answers), times(ratio(CPU))).trim_end());
    is_flat || !is_bound
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// The middle value, or the mean of the two in the middle. In a short time no processor time may have been counted.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[low], values[high]))
}
