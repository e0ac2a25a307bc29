//! Where questions come from: the line editor on a terminal, or plain lines where it cannot draw.

use super::plain::Plain;
use crate::cli::exit::Failure;
use crate::cli::printer::Printer;
#[cfg(unix)]
use crate::cli::{
    exit::Kind,
    line::{Console, Line},
    text::unreadable,
};

/// Prompts for questions.
pub(super) enum Prompt<'a> {
    #[cfg(unix)]
    Edited(Box<Console<'a>>),
    Plain(Plain<'a>),
}

impl<'a> Prompt<'a> {
    /// Takes over the terminal, if it can be drawn on.
    pub(super) fn open(printer: &'a Printer) -> Self {
        #[cfg(unix)]
        if printer.terminal.can_animate
            && let Ok(console) = Console::open(printer)
        {
            return Self::Edited(Box::new(console));
        }
        Self::Plain(Plain::open(printer))
    }

    /// The next text; `None` at the end of input.
    pub(super) async fn ask(&mut self) -> Result<Option<String>, Failure> {
        match self {
            #[cfg(unix)]
            Self::Edited(console) => {
                match console.line().await.map_err(|cause| unreadable("the terminal", cause))? {
                    Line::Text(text) => Ok(Some(text)),
                    Line::End => Ok(None),
                    Line::Interrupted => {
                        console.interrupt_all();
                        Err(Failure::new(Kind::Interrupted, "interrupted"))
                    }
                }
            }
            Self::Plain(plain) => plain.ask().await,
        }
    }

    /// Resolves when Ctrl-C is pressed while an answer is arriving.
    pub(super) async fn interrupted(&mut self) {
        match self {
            #[cfg(unix)]
            Self::Edited(console) => console.interrupted().await,
            Self::Plain(plain) => plain.interrupted().await,
        }
    }
}
