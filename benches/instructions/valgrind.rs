//! Counting with Valgrind's Callgrind, switched on and off from outside while the server runs.
//!
//! `vgdb` transmits the commands; `callgrind_control` is a script around the same calls. The pipes are in their own
//! directory, so that other simulators on the machine are not affected.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::process;

/// How to install Valgrind.
pub(crate) const MISSING: &str = "valgrind is not installed, so nothing can be counted. To get it on Debian or Ubuntu: apt-get install valgrind";

/// Whether Valgrind is installed.
pub(crate) fn is_installed() -> bool {
    let mut version = Command::new("valgrind");
    let version = version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Controls a simulated program, and collects its counts.
pub(crate) struct Counter {
    pipes: PathBuf,
    counts: PathBuf,
    pid: Option<u32>,
    dumps: u32,
}

impl Counter {
    /// A counter for one program, with its pipes in `scratch` and its counts in `counts`, which is created.
    pub(crate) fn new(scratch: &Path, counts: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(counts).with_context(|| format!("cannot make {}", counts.display()))?;
        Ok(Self { pipes: scratch.join("vgdb"), counts: counts.to_owned(), pid: None, dumps: 0 })
    }

    /// A command that runs `program` in the simulator, which does not count yet.
    pub(crate) fn around(&self, program: &Path) -> Command {
        let mut command = process::program(Path::new("valgrind"));
        command
            .args(["--quiet", "--tool=callgrind", "--instr-atstart=no"])
            .arg(format!("--vgdb-prefix={}", self.pipes.display()))
            .arg(format!("--callgrind-out-file={}", self.dumped().display()))
            .arg(program);
        command
    }

    /// Sets the process id of the started program.
    pub(crate) const fn started(&mut self, pid: u32) {
        self.pid = Some(pid);
    }

    /// Starts counting.
    pub(crate) fn begin(&self) -> anyhow::Result<()> {
        self.tell(&["zero"])?;
        self.tell(&["instrumentation", "on"])
    }

    /// Stops counting; returns the number of instructions. The counts by function are left in a file with this name.
    pub(crate) fn end(&mut self, name: &str) -> anyhow::Result<u64> {
        self.tell(&["instrumentation", "off"])?;
        self.tell(&["dump"])?;
        self.dumps += 1;
        let mut dump = self.dumped().into_os_string();
        dump.push(format!(".{}", self.dumps));
        let file = self.counts.join(format!("{name}.out"));
        fs::rename(&dump, &file)
            .with_context(|| format!("callgrind has left no {}", Path::new(&dump).display()))?;
        let text = fs::read_to_string(&file)?;
        total(&text).with_context(|| format!("no total in {}", file.display()))
    }

    fn dumped(&self) -> PathBuf {
        self.counts.join("dump")
    }

    fn tell(&self, words: &[&str]) -> anyhow::Result<()> {
        let pid = self.pid.context("nothing was started that could be counted")?;
        let mut call = Command::new("vgdb");
        call.arg(format!("--pid={pid}")).arg(format!("--vgdb-prefix={}", self.pipes.display())).args(words);
        let told =
            call.stdin(Stdio::null()).output().context("cannot start vgdb, which comes with valgrind")?;
        let said = String::from_utf8_lossy(&told.stderr);
        ensure!(told.status.success(), "callgrind does not take {words:?}: {said}");
        Ok(())
    }
}

/// The total in a file of Callgrind's.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}
