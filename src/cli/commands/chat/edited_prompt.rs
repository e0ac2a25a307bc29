//! Questions that are edited on the terminal, with history, completion and pasted lines.
//!
//! The editing is rustyline's. What is ours: it reads in a thread, as a blocking read cannot be cancelled; between two
//! questions what is typed is not echoed into the answer, and waits for the next one; the terminal gets its modes back
//! however the process ends; earlier questions are never stored; what is shown cannot control the terminal.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{
    Behavior, Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event,
    EventContext, EventHandler, Helper, KeyEvent, Modifiers, RepeatCount,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGQUIT};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::oneshot;

use super::commands;
use super::plain_prompt::Interrupts;
use crate::cli::args::text::{MAX_BYTES, unreadable};
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::printer::Printer;
use crate::lock::Lock;
use crate::unsafe_chars::is_hazard;

/// Precedes the text.
const PROMPT: &str = "> ";

/// More earlier questions than anybody recalls.
const MAX_HISTORY: usize = 500;

/// Turns the marks around pasted text on, also while an answer arrives, and off again.
const PASTE_MARKS_ON: &[u8] = b"\x1b[?2004h";
const PASTE_MARKS_OFF: &[u8] = b"\x1b[?2004l";

/// How long a stop takes at most to reach all threads, in steps.
const STOP_STEP: Duration = Duration::from_millis(5);
const STOP_STEPS: u32 = 40;

/// Prompts for questions.
pub(super) struct EditedPrompt<'a> {
    printer: &'a Printer,
    /// Absent while its thread reads.
    editor: Option<LineEditor>,
    had_text: Arc<AtomicBool>,
    modes: Modes,
    interrupts: Interrupts,
}

type LineEditor = Editor<Words, MemHistory>;

impl<'a> EditedPrompt<'a> {
    /// Takes over the terminal. `models` complete `/model`.
    pub(super) fn open(printer: &'a Printer, models: Vec<String>) -> io::Result<Self> {
        let config = config().map_err(failed)?;
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        editor.set_helper(Some(Words { models }));
        editor.bind_sequence(KeyEvent::new('\r', Modifiers::ALT), Cmd::Newline);
        let had_text = Arc::new(AtomicBool::new(false));
        let ctrl_c = CtrlC { had_text: Arc::clone(&had_text) };
        editor.bind_sequence(KeyEvent::ctrl('c'), EventHandler::Conditional(Box::new(ctrl_c)));
        let tty = Modes::open()?;
        let ctrl_z = CtrlZ { modes: tty.share()? };
        editor.bind_sequence(KeyEvent::ctrl('z'), EventHandler::Conditional(Box::new(ctrl_z)));
        tty.silence();
        Ok(Self { printer, editor: Some(editor), had_text, modes: tty, interrupts: Interrupts::listen() })
    }

    /// The next text; `None` at the end of input. Ctrl-C clears what is typed, and ends the conversation where nothing
    /// is.
    pub(super) async fn ask(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let read = match self.read().await? {
                Ok(text) if text.len() as u64 > MAX_BYTES => {
                    self.printer.warning("the pasted text is left out: a question can have at most 1 MiB");
                    continue;
                }
                Ok(text) => Ok(Some(plain(&text))),
                Err(ReadlineError::Interrupted) if self.had_text.load(Ordering::SeqCst) => continue,
                Err(ReadlineError::Interrupted) => {
                    self.modes.restore();
                    // As the terminal itself would: shells end their loops at that. Fails only for a process that no
                    // longer exists.
                    let _ = kill_current_process_group(Signal::INT);
                    Err(interrupted())
                }
                Err(ReadlineError::Eof) => Ok(None),
                Err(cause) => Err(unreadable("the terminal", failed(cause))),
            };
            return read;
        }
    }

    /// Resolves when Ctrl-C is pressed while an answer is arriving.
    pub(super) async fn interrupted(&mut self) {
        self.interrupts.next().await;
    }

    async fn read(&mut self) -> Result<Result<String, ReadlineError>, Failure> {
        let gone = || unreadable("the terminal", io::ErrorKind::BrokenPipe.into());
        let mut editor = self.editor.take().ok_or_else(gone)?;
        let (sender, receiver) = oneshot::channel();
        // Ends with the process.
        thread::spawn(move || {
            let read = editor.readline(PROMPT);
            // Whoever waited may have been interrupted.
            let _ = sender.send((editor, read));
        });
        let (editor, read) = tokio::select! {
            biased;
            () = self.interrupts.next() => return Err(interrupted()),
            read = receiver => read.map_err(|_| gone())?,
        };
        self.modes.mark_pasted_text();
        self.editor = Some(editor);
        Ok(read)
    }
}

fn config() -> rustyline::Result<Config> {
    Ok(Config::builder()
        // The terminal itself, as results may go elsewhere.
        .behavior(Behavior::PreferTerm)
        .max_history_size(MAX_HISTORY)?
        .history_ignore_dups(true)?
        .auto_add_history(true)
        .completion_type(CompletionType::List)
        // Not for colours: without it, nothing makes pasted text harmless.
        .color_mode(ColorMode::Forced)
        .build())
}

fn interrupted() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted")
}

fn failed(cause: ReadlineError) -> io::Error {
    match cause {
        ReadlineError::Io(cause) => cause,
        other => io::Error::other(other.to_string()),
    }
}

/// A text without control characters other than line ends and tabs, which nobody means to send.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Notes whether there was anything to clear, and leaves the rest to the editor.
struct CtrlC {
    had_text: Arc<AtomicBool>,
}

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        self.had_text.store(!context.line().is_empty(), Ordering::SeqCst);
        Some(Cmd::Interrupt)
    }
}

/// Stops the process with the terminal as it was before; the editor would leave it without echo.
struct CtrlZ {
    modes: Modes,
}

impl ConditionalEventHandler for CtrlZ {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        let Ok(raw) = tcgetattr(&self.modes.input) else { return Some(Cmd::Noop) };
        self.modes.restore();
        let _ = io::stderr().write_all(b"\x1b[?2004l\r\n");
        stop_until_continued();
        let _ = tcsetattr(&self.modes.input, OptionalActions::Now, &raw);
        self.modes.mark_pasted_text();
        Some(Cmd::Repaint)
    }
}

/// Stops this process and what shares its terminal, as Ctrl-Z does; returns once it is continued.
fn stop_until_continued() {
    let continued = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGCONT, Arc::clone(&continued));
    // Fails only for a process that no longer exists.
    let _ = kill_current_process_group(Signal::TSTP);
    // Another thread may be the one that is stopped first. Without a shell that could continue it, none is stopped.
    for _ in 0..STOP_STEPS {
        if continued.load(Ordering::SeqCst) {
            break;
        }
        thread::sleep(STOP_STEP);
    }
    if let Ok(id) = registered {
        signal_hook::low_level::unregister(id);
    }
}

/// Completes commands and the names of models, and shows text harmlessly.
struct Words {
    models: Vec<String>,
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(commands::complete(&line[..at], &self.models))
    }
}

impl Highlighter for Words {
    /// Leaves out what has no width for the editor and may yet control the terminal.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        let stays = |c: char| matches!(c, '\n' | '\t') || !is_hazard(c);
        if line.chars().all(stays) {
            return Cow::Borrowed(line);
        }
        Cow::Owned(line.chars().filter(|&c| stays(c)).collect())
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Validator for Words {}

impl Helper for Words {}

/// The terminal's modes: as they were before and after all; without echo while an answer arrives. While a question is
/// edited, they are the editor's.
struct Modes {
    input: File,
    /// As they were at the start; `None` once they are restored for good.
    original: Arc<Mutex<Option<Termios>>>,
}

impl Modes {
    fn open() -> io::Result<Self> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let original = Arc::new(Mutex::new(Some(tcgetattr(&input)?)));
        let signals = Signals::new([SIGHUP, SIGQUIT])?;
        let modes = Self { input, original };
        let shared = modes.share()?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || shared.restore_at(signals))?;
        Ok(modes)
    }

    fn share(&self) -> io::Result<Self> {
        Ok(Self { input: self.input.try_clone()?, original: Arc::clone(&self.original) })
    }

    /// Restores the modes when one of these signals comes, and lets it take its default action.
    fn restore_at(self, mut signals: Signals) {
        for signal in signals.forever() {
            self.end();
            let _ = emulate_default_handler(signal);
        }
    }

    fn restore(&self) {
        self.set(|_| {});
    }

    /// What is typed is kept as it is, and not shown. Ctrl-C stays a signal.
    fn silence(&self) {
        self.set(|modes| {
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
            modes.input_modes -= InputModes::ICRNL;
        });
        self.mark_pasted_text();
    }

    fn mark_pasted_text(&self) {
        let original = self.original.locked();
        if original.is_some() {
            let _ = io::stderr().write_all(PASTE_MARKS_ON);
        }
    }

    fn set(&self, change: impl FnOnce(&mut Termios)) {
        let original = self.original.locked();
        let Some(mut modes) = original.clone() else { return };
        change(&mut modes);
        // `Now` keeps what was typed. Fails only if the terminal is gone, which the next read reports.
        let _ = tcsetattr(&self.input, OptionalActions::Now, &modes);
    }

    /// Restores the modes for good, also where a read was under way.
    fn end(&self) {
        self.restore();
        if self.original.locked().take().is_some() {
            let _ = io::stderr().write_all(PASTE_MARKS_OFF);
        }
    }
}

impl Drop for EditedPrompt<'_> {
    fn drop(&mut self) {
        let is_reading = self.editor.is_none();
        self.modes.end();
        if is_reading {
            // What follows begins below the prompt.
            self.printer.notice("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_shown_or_sent() {
        let words = Words { models: Vec::new() };
        assert_eq!(words.highlight("a\tb\n\u{1b}[31mc\u{202e}d\u{9b}", 0), "a\tb\n[31mcd");
        assert_eq!(plain("a\tb\n\u{1b}[31mc\u{7}é"), "a\tb\n[31mcé");
    }
}
