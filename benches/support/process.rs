//! Programs that a bench starts: given enough files, measured, and ended with their handles.
//!
//! What the kernel tells of a process is read from `/proc`; where there is none, processor time and memory are
//! unknown and the rest goes on.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Context;

/// Raises what a program may have open, where that is allowed, and becomes it: some hundred callers, and for each of
/// them one connection or thirty to the provider, are more than the 1,024 files that are usual.
const BECOME: &str = "ulimit -n 16384 2>/dev/null; exec \"$0\" \"$@\"";
/// A tick of the kernel's account of processor time; programs see hundredths of a second everywhere.
const TICK: Duration = Duration::from_millis(10);
/// How long a program may take to end.
const GOODBYE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// A call of a program that reads nothing and whose output nobody reads, unless the caller sets that otherwise.
pub(crate) fn program(file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(BECOME).arg(file);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts a [`program`].
pub(crate) fn start(command: &mut Command) -> anyhow::Result<Child> {
    command.spawn().with_context(|| format!("cannot start {command:?}"))
}

/// A running program. Dropping this ends it and its children.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// One that was [started](start).
    pub(crate) const fn of(child: Child) -> Self {
        Self { child }
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Processor time that it and its children have used, in the kernel and outside.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let ticks: Vec<u32> = self.pids().into_iter().map(ticks).collect::<Option<_>>()?;
        Some(TICK * ticks.into_iter().sum())
    }

    /// Memory that it and its children have resident, in kilobytes.
    pub(crate) fn resident_kb(&self) -> Option<u32> {
        let resident: Vec<u32> = self.pids().into_iter().map(resident_kb).collect::<Option<_>>()?;
        Some(resident.into_iter().sum())
    }

    /// It, and behind it its children; grandchildren it has none.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        std::iter::once(pid).chain(children).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            // It has ended by itself; its number may be somebody else's by now.
            return;
        }
        // Once it is gone, its children can no longer be told from anybody else's.
        let pids = self.pids();
        signal("TERM", &pids[..1]);
        let late = Instant::now() + GOODBYE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > late {
                signal("KILL", &pids);
                let _ = self.child.wait();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Sends a signal by its name. Asks the shell, whose `kill` is everywhere; a process that has ended meanwhile is what was wanted.
pub(crate) fn signal(name: &str, pids: &[u32]) {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$0\" \"$@\"", name]).args(pids.iter().map(u32::to_string));
    let _ = kill.stdin(Stdio::null()).stderr(Stdio::null()).status();
}

fn ticks(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name comes before and may hold anything, parentheses too.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11).map(|field| field.parse::<u32>().ok());
    Some(fields.next()?? + fields.next()??)
}

fn resident_kb(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
