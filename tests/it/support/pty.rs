//! The binary on a pseudo-terminal: what a user sees, frame by frame.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Pty, open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::termios::{LocalModes, tcgetattr};

use super::mk::Mk;

/// A shell script that runs the command on a terminal as an interactive shell would.
///
/// The shell, not the command, leads the session: when a multi-threaded session leader exits, the kernel discards the
/// output that the terminal has not forwarded yet. Ctrl-C reaches both; bash terminates from it only if the command
/// does, which it can tell from an exit with 130.
const LEADER: &str = "\"$0\" \"$@\"; exit $?";

/// What [`Person::end`] returns for a command that Ctrl-C terminated.
pub const INTERRUPTED: &str = "signal 2";

/// What `mk chat` writes for a prompt with nothing typed yet.
pub const NEW_PROMPT: &str = "\x1b[K> \r";

/// The time limit for output to appear.
const PATIENCE: Duration = Duration::from_mins(1);

/// The output that appeared on a terminal.
pub struct Shown {
    /// The bytes as received.
    pub raw: String,
    /// The screen after each read.
    pub frames: Vec<String>,
    /// The final screen.
    pub last: String,
}

/// Runs a command on a terminal of this size until it ends.
pub fn run(mk: &Mk, columns: u16, rows: u16) -> Shown {
    let mut person = Person::on(&mk.command(), columns, rows);
    let mut frames = Vec::new();
    let limit = Instant::now() + PATIENCE;
    while person.is_open {
        assert!(Instant::now() < limit, "it never ended: {:?}", person.shown());
        if person.read() {
            frames.push(person.screen.screen().contents());
        }
    }
    let last = frames.last().cloned().unwrap_or_default();
    person.leader.wait().unwrap();
    Shown { raw: person.shown(), frames, last }
}

/// A user at a terminal: reads, types, and sees how the command ends. Dropping it closes the terminal.
pub struct Person {
    terminal: Pty,
    leader: Child,
    screen: vt100::Parser,
    seen: Vec<u8>,
    is_open: bool,
}

impl Person {
    /// Starts a command on a terminal of 80 columns and 24 rows.
    pub fn at(command: &Command) -> Self {
        Self::at_columns(command, 80)
    }

    /// Starts a command on a terminal with this many columns and 24 rows.
    pub fn at_columns(command: &Command, columns: u16) -> Self {
        Self::on(command, columns, 24)
    }

    /// Starts a command on a terminal of this size, with its own environment and a default `TERM`.
    fn on(command: &Command, columns: u16, rows: u16) -> Self {
        let (terminal, end) = open().unwrap();
        terminal.resize(Size::new(rows, columns)).unwrap();
        // The tests may have inherited an ignored SIGINT, as background jobs of a shell do.
        let mut leader = Command::new("/usr/bin/env");
        leader.args(["--default-signal", "bash", "-c", LEADER]);
        leader.arg(command.get_program()).args(command.get_args());
        leader.env_clear().env("TERM", "xterm-256color");
        leader
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env_remove("COLUMNS");
        if let Some(directory) = command.get_current_dir() {
            leader.current_dir(directory);
        }
        let leader = pty_process::blocking::Command::from(leader).spawn(end).unwrap();
        let screen = vt100::Parser::new(rows, columns, 0);
        Self { terminal, leader, screen, seen: Vec::new(), is_open: true }
    }

    /// Reads until this text has appeared in the output.
    pub fn until(&mut self, words: &str) {
        self.read_until(words, |person| person.shown().contains(words));
    }

    /// Reads until this text is on the screen, even if it was written in parts or over other text.
    pub fn until_on_screen(&mut self, words: &str) {
        self.read_until(words, |person| person.screen().contains(words));
    }

    /// Whether this text is on the screen within a moment.
    pub fn sees(&mut self, words: &str, moment: Duration) -> bool {
        let limit = Instant::now() + moment;
        while !self.screen().contains(words) && Instant::now() < limit {
            self.read();
        }
        self.screen().contains(words)
    }

    /// Reads until the screen is as it should be.
    pub fn until_screen(&mut self, what: &str, is_so: impl Fn(&str) -> bool) {
        self.read_until(what, |person| is_so(&person.screen()));
    }

    /// Reads until nothing more arrives from a command that writes nothing any more.
    pub fn until_quiet(&mut self) {
        while self.is_open && self.read() {}
    }

    /// Gives the terminal another size, which cuts lines and breaks none.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.terminal.resize(Size::new(rows, columns)).unwrap();
        self.screen.screen_mut().set_size(rows, columns);
    }

    /// The output between `words` and `end`.
    pub fn behind(&self, words: &str, end: &str) -> String {
        let shown = self.shown();
        let rest = shown.split_once(words).unwrap_or_else(|| panic!("no {words:?}: {shown}")).1;
        rest.split_once(end).unwrap_or_else(|| panic!("no {end:?}: {shown}")).0.to_owned()
    }

    /// Reads until this text has appeared this many times.
    pub fn until_times(&mut self, words: &str, times: usize) {
        self.read_until(words, |person| person.shown().matches(words).count() >= times);
    }

    /// The screen, without trailing blanks.
    pub fn screen(&self) -> String {
        let screen = self.screen.screen();
        let lines: Vec<String> =
            screen.rows(0, screen.size().1).map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Reads until the terminal has echo off; input typed before that is discarded.
    pub fn until_unseen(&mut self) {
        self.read_until("a terminal without echo", |person| {
            !tcgetattr(&person.terminal).unwrap().local_modes.contains(LocalModes::ECHO)
        });
    }

    /// Types text; `\x03` is Ctrl-C, `\x04` Ctrl-D.
    pub fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Reads to the end; returns how it ended (`code 3`, or as [`INTERRUPTED`]) and the whole output.
    pub fn end(mut self) -> (String, String) {
        self.read_until("the end", |person| !person.is_open);
        let status = self.leader.wait().unwrap();
        let ended = match status.code() {
            Some(code) => format!("code {code}"),
            None => format!("signal {}", status.signal().unwrap()),
        };
        (ended, self.shown())
    }

    /// The output so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Reads until a condition holds; fails after a minute.
    fn read_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let limit = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(self.is_open, "{what:?} did not appear before the end: {:?}", self.shown());
            assert!(Instant::now() < limit, "{what:?} never appeared: {:?}", self.shown());
            self.read();
        }
    }

    /// Reads what arrives within a moment, and returns whether anything did.
    fn read(&mut self) -> bool {
        // The wait is short because a change of terminal modes wakes nobody.
        let moment = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        let mut awaited = [PollFd::new(&self.terminal, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut awaited, Some(&moment))).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        // The end of a pseudo-terminal is an error on some systems and an empty read on others.
        let Ok(count @ 1..) = self.terminal.read(&mut buffer) else {
            self.is_open = false;
            return false;
        };
        self.seen.extend_from_slice(&buffer[..count]);
        self.screen.process(&buffer[..count]);
        true
    }
}
