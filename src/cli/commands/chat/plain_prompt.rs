//! Reads lines from a terminal that does its own line editing, or that cannot be drawn on.

use std::future::Future;
use std::io::{self, BufRead};
use std::pin::Pin;

use tokio::sync::oneshot;

use crate::cli::args::text::{MAX_BYTES, unreadable};
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::process::runtime;
use crate::cli::terminal::printer::Printer;

/// Prompts for lines.
pub(super) struct PlainPrompt<'a> {
    printer: &'a Printer,
    interrupts: Interrupts,
}

impl<'a> PlainPrompt<'a> {
    pub(super) fn open(printer: &'a Printer) -> Self {
        Self { printer, interrupts: Interrupts::listen() }
    }

    /// The next line; `None` at the end of input.
    pub(super) async fn ask(&mut self) -> Result<Option<String>, Failure> {
        self.printer.question(">").map_err(|cause| unreadable("the terminal", cause))?;
        let line = tokio::select! {
            biased;
            () = self.interrupts.next() => {
                self.printer.notice("");
                return Err(Failure::new(Kind::Interrupted, "interrupted"));
            }
            line = line() => line?,
        };
        if line.is_none() {
            self.printer.notice("");
        }
        Ok(line.map(|line| without_key_sequences(&line)))
    }

    /// Resolves when Ctrl-C is pressed.
    pub(super) async fn interrupted(&mut self) {
        self.interrupts.next().await;
    }
}

/// A line without the bytes of keys that are not characters (an arrow sends `ESC [ A`), which nobody means to send.
fn without_key_sequences(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // CSI sequences extend to a final byte, SS3 sequences have one character.
            match chars.next_if(|c| matches!(c, '[' | 'O')) {
                Some('[') => while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {},
                Some(_) => {}
                None => continue,
            }
            chars.next();
        } else if !c.is_control() || c == '\t' {
            text.push(c);
        }
    }
    text
}

/// A line of standard input. A thread reads it and ends with the process, as a blocking read cannot be cancelled.
async fn line() -> Result<Option<String>, Failure> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        // The receiver may have been interrupted, and then nobody wants the line.
        let _ = sender.send(read(io::stdin().lock()));
    });
    let read = receiver.await.unwrap_or_else(|_| Err(io::ErrorKind::UnexpectedEof.into()));
    read.map_err(|cause| unreadable("standard input", cause))
}

fn read(input: impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES).read_until(b'\n', &mut bytes)?;
    // Invalid bytes come from a slip on the keyboard; the model sees the same replacement character as the person.
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Resolves each time Ctrl-C is pressed.
pub(super) struct Interrupts(Pin<Box<dyn Future<Output = ()>>>);

impl Interrupts {
    pub(super) fn listen() -> Self {
        Self(Box::pin(runtime::ctrl_c()))
    }

    pub(super) async fn next(&mut self) {
        self.0.as_mut().await;
        *self = Self::listen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_characters_are_not_sent() {
        assert_eq!(without_key_sequences("\u{1b}[A\u{1b}[1;5Dhi\tyou\u{7}é\n"), "hi\tyoué");
        assert_eq!(without_key_sequences("\u{1b}OPa"), "a");
        assert_eq!(
            (without_key_sequences("\u{1b}"), without_key_sequences("\u{1b}[")),
            (String::new(), String::new())
        );
    }

    #[test]
    fn lines_end_and_so_does_input() {
        assert_eq!(read(&b"one\ntwo"[..]).unwrap().as_deref(), Some("one\n"));
        assert_eq!(read(&b"no end"[..]).unwrap().as_deref(), Some("no end"));
        assert_eq!(read(&b"\xffx\n"[..]).unwrap().as_deref(), Some("\u{fffd}x\n"));
        assert_eq!(read(&b""[..]).unwrap(), None);
    }
}
