//! What the kernel reports of the server: memory under load, descriptors and threads at rest.

use std::fs;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::process::Process;
use crate::report::Condition;

/// How often memory is sampled.
const POLL: Duration = Duration::from_secs(1);
/// The largest ratio of resident memory in the last third to that in the second.
const GROWTH: f64 = 1.05;
/// Fewer samples than this are not enough to judge.
const FEWEST: usize = 60;
/// How many more descriptors there may be than at the start: connections to the databases are kept for the next reads.
const MORE_DESCRIPTORS: usize = 12;
/// How many more threads there may be than at the start: the four of the console's pools start with its first requests;
/// and the five kinds of regular work (flush, watch, prune, adopt, reload), of which one at least is under way at the
/// start, keep alive in turn as many threads as ever worked at once.
const MORE_THREADS: usize = 4 + 4;
/// A connection to a provider is kept for 50 s.
const REST: Duration = Duration::from_secs(90);

/// Descriptors and threads of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    descriptors: usize,
    threads: usize,
}

/// What a process holds now; `None` if the kernel does not report it.
pub(crate) fn held(process: &Process) -> Option<Held> {
    let pid = *process.pids().first()?;
    let count = |what: &str| Some(fs::read_dir(format!("/proc/{pid}/{what}")).ok()?.count());
    Some(Held { descriptors: count("fd")?, threads: count("task")? })
}

/// Samples the memory of a process every second until `end`, in kilobytes.
pub(crate) async fn memory(process: &Process, end: Instant) -> Vec<u32> {
    let mut samples = Vec::new();
    while Instant::now() < end {
        sleep(POLL).await;
        samples.extend(process.resident_kb());
    }
    samples
}

/// The condition that memory stops growing: the mean of the last third is at most 5 % above that of the second. In the
/// first third, caches fill.
pub(crate) fn flat(samples: &[u32]) -> Condition {
    let what = "memory is flat";
    let third = samples.len() / 3;
    let [first, second, last] =
        [0, 1, 2].map(|number| mean(&samples[number * third..(number + 1) * third]) / 1024.0);
    let found = format!("{first:.1}, {second:.1}, {last:.1} MB in the thirds of the run");
    if samples.len() < FEWEST {
        return Condition::unchecked(what, format!("{found}: too short to tell"));
    }
    Condition::holds(what, found, last <= second * GROWTH)
}

fn mean(samples: &[u32]) -> f64 {
    let count = f64::from(u32::try_from(samples.len()).unwrap_or(u32::MAX).max(1));
    samples.iter().map(|sample| f64::from(*sample)).sum::<f64>() / count
}

/// The condition that a process returns to what it held at the start, within the time for which connections to
/// providers are kept.
pub(crate) async fn returned(process: &Process, start: Option<Held>) -> Condition {
    let what = "descriptors and threads come back";
    let Some(start) = start else {
        return Condition::unchecked(what, "there is no /proc here".to_owned());
    };
    let deadline = Instant::now() + REST;
    loop {
        let now = held(process).unwrap_or(Held { descriptors: usize::MAX, threads: usize::MAX });
        let is_back = now.descriptors <= start.descriptors + MORE_DESCRIPTORS
            && now.threads <= start.threads + MORE_THREADS;
        if is_back || Instant::now() > deadline {
            let found = format!(
                "{} and {} at the start, {} and {} at rest",
                start.descriptors, start.threads, now.descriptors, now.threads
            );
            return Condition::holds(what, found, is_back);
        }
        sleep(POLL).await;
    }
}
