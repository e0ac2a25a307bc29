//! Where questions come from: edited on a terminal, or plain lines where it cannot be drawn on.

#[cfg(unix)]
use super::edited_prompt::EditedPrompt;
use super::plain_prompt::PlainPrompt;
use crate::cli::process::exit::Failure;
use crate::cli::terminal::printer::Printer;

/// Prompts for questions.
pub(super) enum Prompt<'a> {
    #[cfg(unix)]
    Edited(Box<EditedPrompt<'a>>),
    Plain(PlainPrompt<'a>),
}

impl<'a> Prompt<'a> {
    /// Takes over the terminal, if it can be drawn on. `models` complete `/model`.
    pub(super) fn open(printer: &'a Printer, models: Vec<String>) -> Self {
        #[cfg(unix)]
        if printer.terminal.can_animate
            && let Ok(prompt) = EditedPrompt::open(printer, models)
        {
            return Self::Edited(Box::new(prompt));
        }
        Self::Plain(PlainPrompt::open(printer))
    }

    /// The next text; `None` at the end of input.
    pub(super) async fn ask(&mut self) -> Result<Option<String>, Failure> {
        match self {
            #[cfg(unix)]
            Self::Edited(edited) => edited.ask().await,
            Self::Plain(plain) => plain.ask().await,
        }
    }

    /// Resolves when Ctrl-C is pressed while an answer is arriving.
    pub(super) async fn interrupted(&mut self) {
        match self {
            #[cfg(unix)]
            Self::Edited(edited) => edited.interrupted().await,
            Self::Plain(plain) => plain.interrupted().await,
        }
    }
}
