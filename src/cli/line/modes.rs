//! The terminal's modes while a conversation lasts, and that they are always given back.
//!
//! Keys come one by one and are not shown by the terminal, from the first prompt to the end: with one set of modes for
//! prompts and answers alike, there is no moment in which a key would be taken for another one, shown twice, or lost.
//! Ctrl-C is a key as well. Ctrl-Z and Ctrl-\ stay signals, so that they work whatever this process does.
//!
//! The modes are given back when this is dropped, which a panic does too, and by a thread when a signal ends or stops
//! the process. It writes to the terminal itself: whoever holds the lock of standard error may be what is stuck.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{getpgrp, getsid};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::Notify;

/// A special character that is none: `_POSIX_VDISABLE`, which differs among systems.
const NO_CHARACTER: u8 = if cfg!(any(target_os = "linux", target_os = "android")) { 0 } else { 0xff };

/// Lets the terminal mark pasted texts, and no longer.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const LEAVE_PASTES: &[u8] = b"\x1b[?2004l";

/// The modes are ours as long as this lives.
#[derive(Debug)]
pub(super) struct Modes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    input: File,
    output: File,
    /// The modes to give back; `None` once they are for good.
    theirs: Mutex<Option<Termios>>,
    /// How many rows down the first one is that is not ours.
    below: AtomicUsize,
    /// The process goes on after a stop.
    goes_on: Notify,
}

impl Modes {
    /// Sets the modes of the terminal behind standard input; marks go to that behind standard error.
    pub(super) fn enter() -> io::Result<Self> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let theirs = Mutex::new(Some(tcgetattr(&input)?));
        let shared =
            Arc::new(Shared { input, output, theirs, below: AtomicUsize::new(0), goes_on: Notify::new() });
        let signals = Signals::new([SIGCONT, SIGHUP, SIGQUIT, SIGTERM, SIGTSTP])?;
        let modes = Self(Arc::clone(&shared));
        thread::Builder::new().name("signals".to_owned()).spawn(move || listen(signals, &shared))?;
        modes.0.set()?;
        Ok(modes)
    }

    /// Says how many rows down the first one is that is not ours; 0 where there is no prompt.
    pub(super) fn say_below(&self, rows: usize) {
        self.0.below.store(rows, Ordering::Relaxed);
    }

    /// Gives the modes back for good.
    pub(super) fn leave(&self) {
        let mut theirs = self.0.lock();
        self.0.give_back(theirs.take().as_ref());
    }

    /// Resolves when the process goes on after a stop; at once if it has since the last time.
    pub(super) async fn goes_on(&self) {
        self.0.goes_on.notified().await;
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.theirs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the modes ours, unless they were given back for good.
    fn set(&self) -> io::Result<()> {
        let theirs = self.lock();
        let Some(theirs) = theirs.as_ref() else { return Ok(()) };
        // What was typed before stays: anything but `Now` would wait for output or throw input away.
        tcsetattr(&self.input, OptionalActions::Now, &ours(theirs))?;
        (&self.output).write_all(MARK_PASTES)
    }

    /// Gives the modes back and leaves the prompt. Fails only where the terminal is gone.
    fn give_back(&self, theirs: Option<&Termios>) {
        let Some(theirs) = theirs else { return };
        let _ = tcsetattr(&self.input, OptionalActions::Now, theirs);
        let mut leave = LEAVE_PASTES.to_vec();
        match self.below.swap(0, Ordering::Relaxed) {
            0 => {}
            1 => leave.extend_from_slice(b"\r\n"),
            more => leave.extend_from_slice(format!("\x1b[{}B\r\n", more - 1).as_bytes()),
        }
        let _ = (&self.output).write_all(&leave);
    }
}

/// What signals do to the modes, and then by default to the process.
fn listen(mut signals: Signals, shared: &Shared) {
    for signal in signals.forever() {
        match signal {
            SIGCONT => {
                // Fails only where the terminal is gone, which the next read tells.
                let _ = shared.set();
                shared.goes_on.notify_one();
            }
            // Without a shell that could let us go on, the system would not stop us either.
            SIGTSTP if !has_shell() => {}
            _ => {
                let mut theirs = shared.lock();
                shared.give_back(theirs.as_ref());
                if signal != SIGTSTP {
                    theirs.take();
                }
                drop(theirs);
                let _ = emulate_default_handler(signal);
            }
        }
    }
}

/// Whether somebody else leads the session that this process runs in.
fn has_shell() -> bool {
    getsid(None).is_ok_and(|leader| leader != getpgrp())
}

/// The modes that keys are read in: those of the terminal but for what would keep keys from us. Its output stays.
fn ours(theirs: &Termios) -> Termios {
    let mut modes = theirs.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::IEXTEN;
    modes.local_modes |= LocalModes::ISIG;
    // Without IXON: a terminal that was stopped by Ctrl-S would stop us, and with it what hears Ctrl-C.
    modes.input_modes -=
        InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP | InputModes::IXON;
    modes.special_codes[SpecialCodeIndex::VINTR] = NO_CHARACTER;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}
