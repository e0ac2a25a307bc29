//! The binary on a pseudo-terminal: what a person sees, frame by frame.

use std::io::{Read, Write};
use std::process::Command;

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
