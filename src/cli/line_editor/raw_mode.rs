//! The terminal's raw mode during a conversation, and its restoration in every case.
//!
//! Keys arrive one by one and are not echoed by the terminal, from the first prompt to the end: with the same modes for
//! prompts and answers there is no moment in which a key could be misread, shown twice, or lost. Ctrl-C is an ordinary
//! key; Ctrl-Z and Ctrl-\ remain signals, so that they work whatever this process does.
//!
//! The original modes are restored on drop, which includes panics, and by a thread when a signal ends or stops the
//! process. It writes to the terminal directly: whoever holds the lock of standard error may be what is stuck.

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

/// The value that disables a special character: `_POSIX_VDISABLE`, which differs between systems.
const DISABLED_CHARACTER: u8 = if cfg!(any(target_os = "linux", target_os = "android")) { 0 } else { 0xff };

/// Turns bracketed paste on, and off again.
const BRACKETED_PASTE_ON: &[u8] = b"\x1b[?2004h";
const BRACKETED_PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// The terminal is in raw mode as long as this lives.
#[derive(Debug)]
pub(super) struct RawMode(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    input: File,
    output: File,
    /// The original modes to restore; `None` once they are restored for good.
    original: Mutex<Option<Termios>>,
    /// How far below the cursor the first row is that is not the prompt's; 0 where there is no prompt.
    rows_below: AtomicUsize,
    /// Notified when the process continues after a stop.
    resumed: Notify,
}

impl RawMode {
    /// Puts the terminal behind standard input into raw mode; escape sequences go to the one behind standard error.
    pub(super) fn enter() -> io::Result<Self> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let original = Mutex::new(Some(tcgetattr(&input)?));
        let shared = Arc::new(Shared {
            input,
            output,
            original,
            rows_below: AtomicUsize::new(0),
            resumed: Notify::new(),
        });
        let signals = Signals::new([SIGCONT, SIGHUP, SIGQUIT, SIGTERM, SIGTSTP])?;
        let modes = Self(Arc::clone(&shared));
        thread::Builder::new().name("signals".to_owned()).spawn(move || handle_signals(signals, &shared))?;
        modes.0.set()?;
        Ok(modes)
    }

    /// Records how far below the cursor the first row is that is not the prompt's; 0 where there is no prompt.
    pub(super) fn set_rows_below(&self, rows: usize) {
        self.0.rows_below.store(rows, Ordering::Relaxed);
    }

    /// Restores the original modes for good.
    pub(super) fn exit(&self) {
        let mut original = self.0.lock();
        self.0.restore(original.take().as_ref());
    }

    /// Resolves when the process continues after a stop; immediately if it did since the last call.
    pub(super) async fn resumed(&self) {
        self.0.resumed.notified().await;
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.exit();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Termios>> {
        self.original.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets raw mode, unless the original modes were restored for good.
    fn set(&self) -> io::Result<()> {
        let original = self.lock();
        let Some(original) = original.as_ref() else { return Ok(()) };
        // `Now` keeps what was typed before; anything else would wait for output or discard input.
        tcsetattr(&self.input, OptionalActions::Now, &raw(original))?;
        (&self.output).write_all(BRACKETED_PASTE_ON)
    }

    /// Restores the original modes and moves below the prompt. Fails only if the terminal is gone.
    fn restore(&self, original: Option<&Termios>) {
        let Some(original) = original else { return };
        let _ = tcsetattr(&self.input, OptionalActions::Now, original);
        let mut leave = BRACKETED_PASTE_OFF.to_vec();
        match self.rows_below.swap(0, Ordering::Relaxed) {
            0 => {}
            1 => leave.extend_from_slice(b"\r\n"),
            more => leave.extend_from_slice(format!("\x1b[{}B\r\n", more - 1).as_bytes()),
        }
        let _ = (&self.output).write_all(&leave);
    }
}

/// Adjusts the modes for each signal, and then lets the signal take its default action.
fn handle_signals(mut signals: Signals, shared: &Shared) {
    for signal in signals.forever() {
        match signal {
            SIGCONT => {
                // Fails only if the terminal is gone, which the next read reports.
                let _ = shared.set();
                shared.resumed.notify_one();
            }
            // Without a shell that could continue us, the system would not stop us either.
            SIGTSTP if !has_shell() => {}
            _ => {
                let mut original = shared.lock();
                shared.restore(original.as_ref());
                if signal != SIGTSTP {
                    original.take();
                }
                drop(original);
                let _ = emulate_default_handler(signal);
            }
        }
    }
}

/// Whether another process leads the session that this one runs in.
fn has_shell() -> bool {
    getsid(None).is_ok_and(|leader| leader != getpgrp())
}

/// Raw mode: the terminal's modes without those that would withhold keys from us. Output processing stays.
fn raw(original: &Termios) -> Termios {
    let mut modes = original.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::IEXTEN;
    modes.local_modes |= LocalModes::ISIG;
    // Without IXON: a terminal stopped by Ctrl-S would block us, and with us whatever handles Ctrl-C.
    modes.input_modes -=
        InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP | InputModes::IXON;
    modes.special_codes[SpecialCodeIndex::VINTR] = DISABLED_CHARACTER;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}
