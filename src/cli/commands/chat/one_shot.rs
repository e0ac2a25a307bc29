//! One prompt, one answer.

use super::Conversation;
use super::ask::{Answer, ask};
use super::output::document;
use super::transcript::Transcript;
use crate::api::chat::ChatMessage;
use crate::cli::process::exit::{Failure, Kind, Outcome};

/// Asks the prompt and prints the answer.
pub(super) async fn run(conversation: &Conversation<'_>, prompt: String, answer: &mut Answer) -> Outcome {
    let transcript = Transcript { system: conversation.plan.system.clone(), turns: Vec::new() };
    let mut messages = transcript.messages();
    messages.push(ChatMessage::new("user", prompt));
    let is_json = conversation.plan.json;
    let mut writer = conversation.output.writer(&conversation.shown_model(), is_json);
    let outcome = ask(conversation, &conversation.request(messages), answer, &mut writer).await;
    drop(writer);
    let printer = &conversation.plan.printer;
    if let Err(failure) = outcome {
        if !is_json || answer.text.is_empty() || failure.kind == Kind::ClosedPipe {
            return Err(failure);
        }
        // Reported here, as the one document also covers what arrived.
        printer.failure(&failure);
        printer.document(&document(answer, Some(&failure)))?;
        return Ok(failure.kind.code());
    }
    if is_json {
        printer.document(&document(answer, None))?;
    }
    conversation.output.epilogue(answer, conversation.plan.request.max_tokens);
    Ok(0)
}

/// Adds the partial answer to a failure by Ctrl-C or SIGTERM, for JSON: it has been paid for.
pub(super) fn with_partial_answer(failure: Failure, answer: &Answer) -> Failure {
    if failure.kind.stop_signal().is_none() || answer.text.is_empty() {
        return failure;
    }
    // What was waiting for the answer has been dropped.
    let elapsed = answer.begun.map(|begun| begun.elapsed()).unwrap_or_default();
    let partial = document(&Answer { elapsed, ..answer.clone() }, Some(&failure));
    failure.with_partial(partial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_keeps_the_partial_answer() {
        let partial_of = |kind, text: &str| {
            let begun = std::time::Instant::now().checked_sub(std::time::Duration::from_millis(700));
            let answer = Answer { text: text.to_owned(), begun, ..Answer::default() };
            with_partial_answer(Failure::new(kind, "x"), &answer).partial
        };
        let partial = partial_of(Kind::Interrupted, "half of").unwrap();
        assert_eq!((&partial["schema"], &partial["exit"]), (&"mk.chat/1".into(), &130.into()));
        assert_eq!(partial["message"]["content"], "half of");
        assert!(partial["elapsed_ms"].as_u64() >= Some(700), "{partial}");
        assert_eq!(partial_of(Kind::Interrupted, ""), None);
        assert_eq!(partial_of(Kind::Server, "half of"), None, "it has a document of its own");
    }
}
