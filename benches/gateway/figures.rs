//! Computes the figures of one target in one round from the times of single responses.

use std::time::Duration;

use crate::load::{Tally, Times};

/// Where a load is sent. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The provider itself.
    Direct,
    /// nginx in front of it.
    Nginx,
    /// `mk serve` in front of it.
    Mk,
    /// The same, asked for a chat completion instead of an answer in another protocol.
    Chat,
}

impl Target {
    /// All targets, in order.
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Nginx, Self::Mk, Self::Chat];

    /// The head of its column.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Mk => "mk",
            Self::Chat => "chat",
        }
    }
}

/// The resources that a process used while it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Processor time.
    pub(crate) cpu: Duration,
    /// The peak of its resident memory.
    pub(crate) resident_kb: u32,
}

/// The figures of one target in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) answers_per_s: f64,
    pub(crate) events_per_s: f64,
    pub(crate) median_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) first_median_ms: f64,
    pub(crate) first_p99_ms: f64,
    /// Processor time of the process for each answer.
    pub(crate) cpu_us: Option<f64>,
    /// Processor time of the process for each event.
    pub(crate) cpu_us_event: Option<f64>,
    /// The peak of the process's resident memory.
    pub(crate) resident_mb: Option<f64>,
}

impl Sample {
    /// The figures of a load whose responses have `events` events each; `used` are the resources of the process in the
    /// middle.
    pub(crate) fn new(tally: &Tally, events: usize, used: Option<Usage>) -> Self {
        let answers = number(tally.times.len());
        let all_events = answers * number(events);
        let seconds = tally.took.as_secs_f64();
        let whole = sorted_ms(&tally.times, |times| times.whole);
        let first = sorted_ms(&tally.times, |times| times.first);
        let cpu_us = used.map(|used| used.cpu.as_secs_f64() * 1e6);
        Self {
            answers_per_s: answers / seconds,
            events_per_s: all_events / seconds,
            median_ms: percentile(&whole, 50),
            p99_ms: percentile(&whole, 99),
            first_median_ms: percentile(&first, 50),
            first_p99_ms: percentile(&first, 99),
            cpu_us: cpu_us.map(|us| us / answers),
            cpu_us_event: cpu_us.map(|us| us / all_events),
            resident_mb: used.map(|used| f64::from(used.resident_kb) / 1024.0),
        }
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[low], values[high]))
}

fn sorted_ms(times: &[Times], of: fn(&Times) -> Duration) -> Vec<f64> {
    let mut all: Vec<f64> = times.iter().map(|times| of(times).as_secs_f64() * 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The smallest value that is at least as large as `percent` of all values; NaN if there are none.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::cast_precision_loss, reason = "counts of seconds' work, far below 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}
