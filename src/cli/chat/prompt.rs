//! Where questions come from: the line editor on a terminal, or plain lines where it cannot draw.

use super::plain_prompt::PlainPrompt;
use crate::cli::exit::Failure;
use crate::cli::printer::Printer;
#[cfg(unix)]
use crate::cli::{
    exit::Kind,
    line_editor::{LineEditor, ReadLine},
    text::unreadable,
};

/// Prompts for questions.
pub(super) enum Prompt<'a> {
    #[cfg(unix)]
    Edited(Box<LineEditor<'a>>),
    Plain(PlainPrompt<'a>),
}

impl<'a> Prompt<'a> {
    /// Takes over the terminal, if it can be drawn on.
    pub(super) fn open(printer: &'a Printer) -> Self {
        #[cfg(unix)]
        if printer.terminal.can_animate
            && let Ok(editor) = LineEditor::open(printer)
        {
            return Self::Edited(Box::new(editor));
        }
        Self::Plain(PlainPrompt::open(printer))
    }

    /// The next text; `None` at the end of input.
    pub(super) async fn ask(&mut self) -> Result<Option<String>, Failure> {
        match self {
            #[cfg(unix)]
            Self::Edited(editor) => {
                match editor.read_line().await.map_err(|cause| unreadable("the terminal", cause))? {
                    ReadLine::Text(text) => Ok(Some(text)),
                    ReadLine::End => Ok(None),
                    ReadLine::Interrupted => {
                        editor.interrupt_process_group();
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
            Self::Edited(editor) => editor.interrupted().await,
            Self::Plain(plain) => plain.interrupted().await,
        }
    }
}
