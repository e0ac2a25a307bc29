//! Programs that a bench starts: they may open enough files, are measured, and end with their handles.
//!
//! Processor time and memory are read from `/proc`; where there is none, they are unknown and everything else works.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Context;

/// Raises the limit of open files, where that is allowed, and executes the program: some hundred callers, each with one
/// to thirty connections to the provider, need more than the usual 1,024 files.
const EXEC: &str = "ulimit -n 16384 2>/dev/null; exec \"$0\" \"$@\"";
/// The kernel's unit of processor time; programs see hundredths of a second on all systems.
const TICK: Duration = Duration::from_millis(10);
/// How long a program may take to end.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// A command without input whose output is discarded, unless the caller changes that.
pub(crate) fn program(file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(EXEC).arg(file);
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
    /// Wraps a [started](start) program.
    pub(crate) const fn of(child: Child) -> Self {
        Self { child }
    }

    /// Its exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// The processor time that it and its children have used, in kernel and user mode.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let ticks: Vec<u32> = self.pids().into_iter().map(ticks).collect::<Option<_>>()?;
        Some(TICK * ticks.into_iter().sum())
    }

    /// The resident memory of it and its children, in kilobytes.
    pub(crate) fn resident_kb(&self) -> Option<u32> {
        self.memory_kb("VmRSS:")
    }

    /// The most resident memory that it and its children ever had, in kilobytes.
    #[allow(dead_code, reason = "shared by the benches, and not used by all")]
    pub(crate) fn peak_kb(&self) -> Option<u32> {
        self.memory_kb("VmHWM:")
    }

    fn memory_kb(&self, line: &str) -> Option<u32> {
        let each = self.pids().into_iter().map(|pid| memory_kb(pid, line));
        Some(each.collect::<Option<Vec<u32>>>()?.into_iter().sum())
    }

    /// Its process id, followed by those of its children; there are no grandchildren.
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
            // It has ended by itself; its id may belong to another process by now.
            return;
        }
        // Once it is gone, its children can no longer be identified.
        let pids = self.pids();
        signal("TERM", &pids[..1]);
        let late = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > late {
                signal("KILL", &pids);
                let _ = self.child.wait();
                return;
            }
            thread::sleep(POLL);
        }
    }
}

/// Sends a signal by its name, with the shell's `kill`, which exists everywhere. A process that has already ended is no
/// error.
pub(crate) fn signal(name: &str, pids: &[u32]) {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$0\" \"$@\"", name]).args(pids.iter().map(u32::to_string));
    let _ = kill.stdin(Stdio::null()).stderr(Stdio::null()).status();
}

fn ticks(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name comes before and may contain anything, even parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11).map(|field| field.parse::<u32>().ok());
    Some(fields.next()?? + fields.next()??)
}

fn memory_kb(pid: u32, line: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|found| found.strip_prefix(line))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
