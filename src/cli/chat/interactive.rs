//! A conversation on a terminal.
//!
//! A question becomes part of the conversation once its answer is complete: one that was interrupted or that failed is
//! forgotten, so that it can be asked again. Ctrl-C stops a running answer, and quits at the prompt.

use super::Conversation;
use super::ask::{Answer, ask};
use super::prompt::Prompt;
use crate::api::chat::ChatMessage;
use crate::cli::exit::{Failure, Kind, Outcome};

/// Ends a conversation, as the end of input does.
const EXIT: &str = "/exit";

/// Printed at the start, and for `/help`.
const HELP: &str = "Ctrl-C stops an answer; /exit or Ctrl-D ends the conversation";

/// Prompts for questions and answers them until the person quits.
pub(super) async fn run(conversation: &Conversation<'_>) -> Outcome {
    let printer = &conversation.plan.printer;
    printer.sentence(HELP);
    let mut prompt = Prompt::open(printer);
    let mut messages = conversation.opening();
    loop {
        let Some(text) = prompt.ask().await? else { return Ok(0) };
        match text.trim() {
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
        match turn(conversation, &messages, &mut prompt).await? {
            Some(text) => messages.push(ChatMessage::new("assistant", text)),
            None => drop(messages.pop()),
        }
    }
}

/// Whether a line is a command: a slash and a single word. Paths and questions have more.
fn is_command(text: &str) -> bool {
    text.strip_prefix('/')
        .is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Answers the last message; `None` if there is no complete answer, which was then reported.
async fn turn(
    conversation: &Conversation<'_>,
    messages: &[ChatMessage],
    prompt: &mut Prompt<'_>,
) -> Result<Option<String>, Failure> {
    let printer = &conversation.plan.printer;
    let mut answer = Answer::default();
    let mut writer = conversation.output.writer(&conversation.shown_model(), false);
    let request = conversation.request(messages.to_vec());
    let outcome = tokio::select! {
        biased;
        () = prompt.interrupted() => None,
        outcome = ask(conversation, &request, &mut answer, &mut writer) => Some(outcome),
    };
    drop(writer);
    match outcome {
        Some(Ok(())) => {
            conversation.output.epilogue(&answer);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_slash_and_a_word() {
        assert!(is_command("/exot") && is_command("/q"));
        for text in ["/", "/etc/hosts", "/exit now", "/2", "exit", "//"] {
            assert!(!is_command(text), "{text}");
        }
    }
}
