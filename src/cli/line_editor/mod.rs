//! A line editor for terminals that works as in shells: moving and deleting within a line, history, multi-line paste,
//! and typing ahead.
//!
//! ```text
//! input (bytes) ─ keys ─ editor (buffer, history) ─ layout ─ screen ─ terminal
//!                 raw_mode (restored whatever happens), readiness (waits for input)
//! ```
//!
//! This is our own because the available crates discard what is typed between two reads, or treat Ctrl-C as a signal in
//! one moment and as a key in the next. All modules but `input`, `readiness`, `raw_mode` and this one are pure.
//!
//! What must hold: the terminal gets its modes back however the process ends; no key is lost, misread, or submitted
//! before Enter; the history is never written to disk.

mod buffer;
mod editor;
mod history;
mod input;
mod keys;
mod layout;
mod paste;
mod raw_mode;
mod readiness;
mod screen;

use std::io;

use futures_util::FutureExt;
use rustix::process::{Signal as Number, kill_current_process_group};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::printer::Printer;
use super::term::{ASCII, Terminal};
use editor::{Editor, Effect};
use input::Input;
use keys::Key;
use layout::{Layout, lay_out};
use raw_mode::RawMode;
use screen::Screen;

/// The result of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine {
    /// A text, possibly of several lines, without a trailing line end.
    Text(String),
    /// Ctrl-D, or the terminal is gone.
    End,
    /// Ctrl-C.
    Interrupted,
}

/// A terminal in raw mode, and the editor on it.
#[derive(Debug)]
pub(crate) struct LineEditor<'a> {
    printer: &'a Printer,
    input: Input,
    editor: Editor,
    screen: Screen,
    interrupts: Signal,
    resizes: Signal,
    raw_mode: RawMode,
}

impl<'a> LineEditor<'a> {
    /// Takes over the terminal; on failure the terminal is left as it was.
    pub(crate) fn open(printer: &'a Printer) -> io::Result<Self> {
        Ok(Self {
            printer,
            input: Input::open()?,
            editor: Editor::default(),
            screen: Screen::default(),
            interrupts: signal(SignalKind::interrupt())?,
            resizes: signal(SignalKind::window_change())?,
            raw_mode: RawMode::enter()?,
        })
    }

    /// Prompts for a text.
    pub(crate) async fn read_line(&mut self) -> io::Result<ReadLine> {
        // Earlier stops and resizes do not concern this prompt.
        while self.raw_mode.resumed().now_or_never().is_some() {}
        while self.resizes.recv().now_or_never().is_some() {}
        loop {
            loop {
                let line = match self.input.next() {
                    Ok(Some(key)) => self.press(key)?,
                    Ok(None) => break,
                    // The terminal is gone.
                    Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => Some(ReadLine::End),
                    Err(cause) => return Err(cause),
                };
                if let Some(line) = line {
                    return Ok(line);
                }
            }
            self.draw()?;
            tokio::select! {
                biased;
                _ = self.interrupts.recv() => {
                    if let Some(line) = self.press(Key::Interrupt)? {
                        return Ok(line);
                    }
                }
                () = self.raw_mode.resumed() => self.screen.forget(),
                _ = self.resizes.recv() => {
                    let out = self.screen.resized(&self.layout());
                    self.printer.draw(&out)?;
                }
                () = self.input.readable() => {}
            }
        }
    }

    /// Resolves when Ctrl-C is pressed while something else is running. Other keys wait for the next prompt.
    pub(crate) async fn interrupted(&mut self) {
        loop {
            // If the terminal is gone, nobody wants the answer either; the next prompt will notice, too.
            if self.input.has_interrupt().unwrap_or(true) {
                return;
            }
            tokio::select! {
                biased;
                _ = self.interrupts.recv() => return,
                () = tokio::task::yield_now(), if self.input.is_ready().unwrap_or(true) => {}
                () = self.input.readable() => {}
            }
        }
    }

    /// Restores the terminal and interrupts everything that shares it, as the terminal itself would for Ctrl-C: shells
    /// end their loops at that. This process must then end by itself, of the same signal.
    pub(crate) fn interrupt_process_group(&self) {
        self.raw_mode.exit();
        // Fails only for a process that no longer exists.
        let _ = kill_current_process_group(Number::INT);
    }

    /// Applies a key; returns the result of the prompt if that ends it.
    fn press(&mut self, key: Key) -> io::Result<Option<ReadLine>> {
        let line = match self.editor.press(key) {
            Effect::Edited => return Ok(None),
            Effect::Refused => return self.printer.draw("\u{7}").map(|()| None),
            Effect::Clear => {
                self.screen.forget();
                return self.printer.draw(screen::CLEAR).map(|()| None);
            }
            Effect::Oversized => {
                let text = self.editor.buffer().text().to_owned();
                self.finish(&text, "")?;
                self.printer.warning("what was pasted is left out: a text may have 1 MiB");
                return Ok(None);
            }
            Effect::Discarded(text) => {
                self.finish(&text, "^C")?;
                return Ok(None);
            }
            Effect::Submitted(text) => ReadLine::Text(text),
            Effect::Interrupted => ReadLine::Interrupted,
            Effect::Quit => ReadLine::End,
        };
        let written = if let ReadLine::Text(text) = &line { text } else { "" };
        self.finish(written, "")?;
        Ok(Some(line))
    }

    fn draw(&mut self) -> io::Result<()> {
        let (_, height) = size(&self.printer.terminal);
        let out = self.screen.draw(&self.layout(), height);
        self.printer.draw(&out)?;
        self.raw_mode.set_rows_below(self.screen.rows_below() + 1);
        Ok(())
    }

    /// Leaves the whole text on the terminal, and moves to the row below it.
    fn finish(&mut self, text: &str, mark: &str) -> io::Result<()> {
        let out = self.screen.finish(&self.lay_out(text, text.len()), mark);
        self.raw_mode.set_rows_below(0);
        self.printer.draw(&out)
    }

    fn layout(&self) -> Layout {
        let buffer = self.editor.buffer();
        self.lay_out(buffer.text(), buffer.cursor())
    }

    fn lay_out(&self, text: &str, at: usize) -> Layout {
        let terminal = &self.printer.terminal;
        lay_out(text, at, size(terminal).0, *terminal.symbols == ASCII)
    }
}

/// The real size in columns and rows: on wide terminals our own text is laid out narrower, but typed text is not.
fn size(terminal: &Terminal) -> (usize, usize) {
    let known = terminal_size::terminal_size_of(io::stderr());
    known.map_or((terminal.width, terminal.height), |(width, height)| {
        (usize::from(width.0), usize::from(height.0))
    })
}
