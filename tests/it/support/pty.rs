//! The binary on a pseudo-terminal: what a person sees, frame by frame.

use std::io::{ErrorKind, Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use expectrl::session::Session;

use super::mk::Mk;

/// What appeared on a terminal.
pub struct Shown {
    /// The bytes as they came.
    pub raw: String,
    /// The screen after each piece that arrived.
    pub frames: Vec<String>,
    /// What stands there at the end, scrolled-off lines included.
    pub last: String,
}

/// Runs a call on a terminal of this size until it ends.
pub fn run(mk: &Mk, columns: u16, rows: u16) -> Shown {
    let mut session = Session::spawn(held(&mk.command())).unwrap();
    session.get_process_mut().set_window_size(columns, rows).unwrap();
    session.write_all(b"\n").unwrap();
    let mut screen = vt100::Parser::new(rows, columns, 1000);
    let (mut raw, mut frames) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    // The end of a pseudo-terminal is an error on some systems and an empty read on others.
    while let Ok(count @ 1..) = session.read(&mut buffer) {
        raw.extend_from_slice(&buffer[..count]);
        screen.process(&buffer[..count]);
        frames.push(screen.screen().contents());
    }
    let last = frames.last().cloned().unwrap_or_default();
    Shown { raw: String::from_utf8_lossy(&raw).into_owned(), frames, last }
}

/// The call behind a shell that waits for a line: the terminal's size can be set only once something runs on it.
fn held(call: &Command) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "read -r _ && exec \"$0\" \"$@\""]).arg(call.get_program()).args(call.get_args());
    command.env_clear().envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("COLUMNS").env("TERM", "xterm-256color");
    if let Some(directory) = call.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// A person before a terminal of 24 rows: reads, types, and sees how it ends.
pub struct Person {
    session: expectrl::session::OsSession,
    screen: vt100::Parser,
    seen: Vec<u8>,
    is_open: bool,
}

impl Person {
    /// Starts a command there, on 80 columns.
    pub fn at(command: Command) -> Self {
        Self::at_columns(command, 80)
    }

    /// Starts a command there.
    pub fn at_columns(mut command: Command, columns: u16) -> Self {
        command.env_remove("COLUMNS").env("TERM", "xterm-256color");
        let mut session = Session::spawn(command).unwrap();
        session.get_process_mut().set_window_size(columns, 24).unwrap();
        // As terminals do; the library begins without.
        session.get_process_mut().set_echo(true, None).unwrap();
        let screen = vt100::Parser::new(24, columns, 0);
        Self { session, screen, seen: Vec::new(), is_open: true }
    }

    /// Reads until these words have come.
    pub fn until(&mut self, words: &str) {
        self.read_until(words, |person| person.shown().contains(words));
    }

    /// Reads until these words stand on the screen: where they came in pieces, or over others.
    pub fn until_on_screen(&mut self, words: &str) {
        self.read_until(words, |person| person.screen().contains(words));
    }

    /// What was shown between these words.
    pub fn behind(&self, words: &str, end: &str) -> String {
        let shown = self.shown();
        let rest = shown.split_once(words).unwrap_or_else(|| panic!("no {words:?}: {shown}")).1;
        rest.split_once(end).unwrap_or_else(|| panic!("no {end:?}: {shown}")).0.to_owned()
    }

    /// Reads until these words have come so many times.
    pub fn until_times(&mut self, words: &str, times: usize) {
        self.read_until(words, |person| person.shown().matches(words).count() >= times);
    }

    /// What stands on the screen, without blanks at the ends of lines.
    pub fn screen(&self) -> String {
        let screen = self.screen.screen();
        let lines: Vec<String> =
            screen.rows(0, screen.size().1).map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Reads until what is typed is not shown any more; what was typed before that is thrown away.
    pub fn until_unseen(&mut self) {
        self.read_until("a terminal without echo", |person| {
            !person.session.get_process().get_echo().unwrap()
        });
    }

    /// Types; `\x03` is Ctrl-C, `\x04` Ctrl-D.
    pub fn types(&mut self, text: &str) {
        self.session.write_all(text.as_bytes()).unwrap();
    }

    /// Reads to the end: how it ended (as `Exited(…, 3)` or `Signaled(…, SIGINT, …)`), and all that was shown.
    pub fn end(mut self) -> (String, String) {
        self.read_until("the end", |person| !person.is_open);
        let status = format!("{:?}", self.session.get_process().wait().unwrap());
        (status, self.shown())
    }

    /// What has been shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Reads until something holds, or fails after twenty seconds.
    fn read_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let limit = Instant::now() + Duration::from_secs(20);
        let mut buffer = [0; 4096];
        while !holds(self) {
            assert!(Instant::now() < limit, "{what:?} never came: {:?}", self.shown());
            match self.session.try_read(&mut buffer) {
                Ok(count @ 1..) => {
                    self.seen.extend_from_slice(&buffer[..count]);
                    self.screen.process(&buffer[..count]);
                }
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                // The end of a pseudo-terminal is an error on some systems and an empty read on others.
                _ => {
                    self.is_open = false;
                    assert!(holds(self), "{what:?} never came before the end: {:?}", self.shown());
                }
            }
        }
    }
}
