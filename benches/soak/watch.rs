//! What the kernel knows of the server: memory while it works, descriptors and threads while it does not.

use std::fs;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::process::Process;
use crate::report::Condition;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How much more may be resident in the last third than in the second.
const GROWTH: f64 = 1.05;
/// Less than this many looks tell nothing.
const FEWEST: usize = 60;
/// Descriptors and threads that may have been added since the start: connections to the database, and threads that
/// write to it, are kept for a while.
const MORE_DESCRIPTORS: usize = 12;
const MORE_THREADS: usize = 4;
/// A connection to a provider is kept for 50 s.
const REST: Duration = Duration::from_secs(90);

/// Descriptors and threads of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    descriptors: usize,
    threads: usize,
}

/// What a process holds now; `None` where the kernel does not say.
pub(crate) fn held(process: &Process) -> Option<Held> {
    let pid = *process.pids().first()?;
    let count = |what: &str| Some(fs::read_dir(format!("/proc/{pid}/{what}")).ok()?.count());
    Some(Held { descriptors: count("fd")?, threads: count("task")? })
}

/// Looks at the memory of a process until `end`; kilobytes, a look a second.
pub(crate) async fn memory(process: &Process, end: Instant) -> Vec<u32> {
    let mut looks = Vec::new();
    while Instant::now() < end {
        sleep(LOOK).await;
        looks.extend(process.resident_kb());
    }
    looks
}

/// That memory does not grow any more: the mean of the last third is at most 5 % above that of the second. In the first
/// third, caches fill.
pub(crate) fn flat(looks: &[u32]) -> Condition {
    let what = "memory is flat";
    let third = looks.len() / 3;
    let [first, second, last] =
        [0, 1, 2].map(|number| mean(&looks[number * third..(number + 1) * third]) / 1024.0);
    let found = format!("{first:.1}, {second:.1}, {last:.1} MB in the thirds of the run");
    if looks.len() < FEWEST {
        return Condition::unchecked(what, format!("{found}: too short to tell"));
    }
    Condition::holds(what, found, last <= second * GROWTH)
}

fn mean(looks: &[u32]) -> f64 {
    let count = f64::from(u32::try_from(looks.len()).unwrap_or(u32::MAX).max(1));
    looks.iter().map(|look| f64::from(*look)).sum::<f64>() / count
}

/// That a process comes back to what it held at the start, within the time for which connections to providers are kept.
pub(crate) async fn returned(process: &Process, start: Option<Held>) -> Condition {
    let what = "descriptors and threads come back";
    let Some(start) = start else {
        return Condition::unchecked(what, "there is no /proc here".to_owned());
    };
    let late = Instant::now() + REST;
    loop {
        let now = held(process).unwrap_or(Held { descriptors: usize::MAX, threads: usize::MAX });
        let is_back = now.descriptors <= start.descriptors + MORE_DESCRIPTORS
            && now.threads <= start.threads + MORE_THREADS;
        if is_back || Instant::now() > late {
            let found = format!(
                "{} and {} at the start, {} and {} at rest",
                start.descriptors, start.threads, now.descriptors, now.threads
            );
            return Condition::holds(what, found, is_back);
        }
        sleep(LOOK).await;
    }
}
