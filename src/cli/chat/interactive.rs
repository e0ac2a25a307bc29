//! A conversation on a terminal, line by line.
//!
//! What was said stays in the conversation once its answer is whole: a question that was stopped or that failed is
//! forgotten, so that it can be asked again. Ctrl-C stops a running answer, and ends the command at the prompt.

use std::future::Future;
use std::io::{self, BufRead};
use std::pin::Pin;

use tokio::sync::oneshot;

use super::Talk;
use super::ask::{Answer, ask};
use crate::api::chat::ChatMessage;
use crate::cli::exit::{Failure, Kind, Outcome};
use crate::cli::runtime;
use crate::cli::text::{MAX_BYTES, unreadable};

/// What ends a conversation, besides the end of input.
const EXIT: &str = "/exit";

/// What is told first, and again for `/help`.
const HELP: &str = "Ctrl-C stops an answer; /exit or Ctrl-D ends the conversation";

/// Asks for lines and answers them, until the person ends it.
pub(super) async fn run(talk: &Talk<'_>) -> Outcome {
    let printer = &talk.plan.printer;
    printer.sentence(HELP);
    let mut interrupts = Interrupts::listen();
    let mut messages = talk.opening();
    loop {
        let Some(line) = prompt(talk, &mut interrupts).await? else { return Ok(0) };
        match typed(&line).trim() {
            "" => continue,
            EXIT => return Ok(0),
            "/help" => {
                printer.sentence(HELP);
                continue;
            }
            command if is_command(command) => {
                printer.sentence(&format!("no such command: {command}; {HELP}"));
                continue;
            }
            text => messages.push(ChatMessage::new("user", text)),
        }
        match turn(talk, &messages, &mut interrupts).await? {
            Some(text) => messages.push(ChatMessage::new("assistant", text)),
            None => drop(messages.pop()),
        }
    }
}

/// Whether a line is meant for us: a slash and a word, where a path or a question has more.
fn is_command(text: &str) -> bool {
    text.strip_prefix('/')
        .is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
}

/// A line without what keys other than characters leave in it (an arrow, `ESC [ A`): nobody means to send that.
fn typed(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // CSI: up to its final byte. SS3: one character.
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

/// The next line; `None` at the end of input.
async fn prompt(talk: &Talk<'_>, interrupts: &mut Interrupts) -> Result<Option<String>, Failure> {
    let printer = &talk.plan.printer;
    printer.question(">").map_err(|cause| unreadable("the terminal", cause))?;
    let line = tokio::select! {
        biased;
        () = interrupts.next() => {
            printer.notice("");
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        line = line() => line?,
    };
    if line.is_none() {
        printer.notice("");
    }
    Ok(line)
}

/// Answers the last message; `None` if there is no whole answer, which was told then.
async fn turn(
    talk: &Talk<'_>,
    messages: &[ChatMessage],
    interrupts: &mut Interrupts,
) -> Result<Option<String>, Failure> {
    let printer = &talk.plan.printer;
    let mut answer = Answer::default();
    let mut pen = talk.output.pen(&talk.shown_model(), false);
    let request = talk.request(messages.to_vec());
    let asked = tokio::select! {
        biased;
        () = interrupts.next() => None,
        asked = ask(talk, &request, &mut answer, &mut pen) => Some(asked),
    };
    drop(pen);
    match asked {
        Some(Ok(())) => {
            talk.output.epilogue(&answer);
            Ok(Some(answer.text))
        }
        Some(Err(failure)) if matches!(failure.kind, Kind::ClosedPipe | Kind::Unauthorized) => Err(failure),
        Some(Err(failure)) => {
            printer.failure(&failure);
            Ok(None)
        }
        None => {
            printer.notice("stopped; the question and what came of its answer are forgotten");
            Ok(None)
        }
    }
}

/// A line of standard input, read by a thread, as a read cannot be given up; it ends with the process.
async fn line() -> Result<Option<String>, Failure> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        // Whoever waits may have been interrupted, and nobody wants the line then.
        let _ = sender.send(read(io::stdin().lock()));
    });
    let read = receiver.await.unwrap_or_else(|_| Err(io::ErrorKind::UnexpectedEof.into()));
    read.map_err(|cause| unreadable("standard input", cause))
}

fn read(input: impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES).read_until(b'\n', &mut bytes)?;
    // Bytes that are no text come of a slip of the keyboard; the model sees the same mark as the person.
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Ctrl-C, each time it is pressed.
struct Interrupts(Pin<Box<dyn Future<Output = ()>>>);

impl Interrupts {
    fn listen() -> Self {
        Self(Box::pin(runtime::pressed()))
    }

    async fn next(&mut self) {
        self.0.as_mut().await;
        *self = Self::listen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_no_characters_are_not_sent() {
        assert_eq!(typed("\u{1b}[A\u{1b}[1;5Dhi\tyou\u{7}é\n"), "hi\tyoué");
        assert_eq!(typed("\u{1b}OPa"), "a");
        assert_eq!((typed("\u{1b}"), typed("\u{1b}[")), (String::new(), String::new()));
    }

    #[test]
    fn a_command_is_a_slash_and_a_word() {
        assert!(is_command("/exot") && is_command("/q"));
        for text in ["/", "/etc/hosts", "/exit now", "/2", "exit", "//"] {
            assert!(!is_command(text), "{text}");
        }
    }

    #[test]
    fn lines_end_and_input_does() {
        assert_eq!(read(&b"one\ntwo"[..]).unwrap().as_deref(), Some("one\n"));
        assert_eq!(read(&b"no end"[..]).unwrap().as_deref(), Some("no end"));
        assert_eq!(read(&b"\xffx\n"[..]).unwrap().as_deref(), Some("\u{fffd}x\n"));
        assert_eq!(read(&b""[..]).unwrap(), None);
    }
}
