//! One prompt, one answer.

use super::Talk;
use super::ask::{Answer, ask};
use super::output::document;
use crate::api::chat::ChatMessage;
use crate::cli::exit::{Kind, Outcome};

/// Asks, and prints the answer.
pub(super) async fn run(talk: &Talk<'_>, prompt: String) -> Outcome {
    let mut messages = talk.opening();
    messages.push(ChatMessage::new("user", prompt));
    let is_json = talk.plan.json;
    let mut answer = Answer::default();
    let mut pen = talk.output.pen(&talk.shown_model(), is_json);
    let asked = ask(talk, &talk.request(messages), &mut answer, &mut pen).await;
    drop(pen);
    let printer = &talk.plan.printer;
    if let Err(failure) = asked {
        if !is_json || answer.text.is_empty() || failure.kind == Kind::ClosedPipe {
            return Err(failure);
        }
        // Reported here: the one document is about what came, too.
        printer.failure(&failure);
        printer.document(&document(&answer, Some(&failure)))?;
        return Ok(failure.kind.code());
    }
    if is_json {
        printer.document(&document(&answer, None))?;
    }
    talk.output.epilogue(&answer);
    Ok(0)
}
