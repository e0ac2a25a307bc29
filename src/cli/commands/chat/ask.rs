//! Requests one answer, and shows it while it arrives.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time;

use super::output::AnswerWriter;
use super::{Conversation, PRICES_TIMEOUT};
use crate::api::chat::{ChatRequest, ChatUsage};
use crate::api::error_code::ErrorCode;
use crate::cli::commands::models;
use crate::cli::process::exit::Failure;
use crate::cli::target::remote;
use crate::cli::terminal::sanitize;
use crate::client::Piece;
use crate::config;

/// An answer, as far as it has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The model that answers.
    pub(crate) model: String,
    /// Its text.
    pub(crate) text: String,
    /// Why it ended; `None` while it is incomplete.
    pub(crate) finish_reason: Option<String>,
    /// Its token usage, if reported.
    pub(crate) usage: Option<ChatUsage>,
    /// When it was requested; `None` before that.
    pub(crate) begun: Option<Instant>,
    /// How long it took; zero until it ends.
    pub(crate) elapsed: Duration,
    /// Whether it is simulated.
    pub(crate) is_sandbox: bool,
    /// What was found about it, if it was verified.
    pub(crate) verification: Option<Value>,
}

impl Answer {
    fn take(&mut self, piece: Piece) {
        if !piece.model.is_empty() {
            self.model = piece.model;
        }
        self.text.push_str(&piece.text);
        self.finish_reason = piece.finish_reason.or(self.finish_reason.take());
        self.usage = piece.usage.or(self.usage);
        self.is_sandbox |= piece.is_sandbox;
        self.verification = piece.verification.or(self.verification.take());
    }
}

/// Requests an answer and fills `answer` as it arrives; on failure, what has arrived stays in it.
pub(crate) async fn ask(
    conversation: &Conversation<'_>,
    request: &ChatRequest,
    answer: &mut Answer,
    writer: &mut AnswerWriter<'_>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    answer.begun = Some(begun);
    let limit = conversation.plan.limit;
    let outcome = time::timeout(limit, follow(conversation, request, answer, writer)).await;
    answer.elapsed = begun.elapsed();
    match outcome {
        Ok(Ok(())) => writer.end(),
        // If a stream was silent up to the limit, the idle timeout may fire first.
        Ok(Err(failure)) if answer.elapsed < limit => {
            Err(with_model_named(conversation, &request.model, failure).await)
        }
        _ => Err(remote::too_slow("whole answer", limit, "")),
    }
}

/// Names the model, if it is one that the server does not have, and one that may be meant.
async fn with_model_named(conversation: &Conversation<'_>, model: &str, failure: Failure) -> Failure {
    if failure.code() != Some(ErrorCode::ModelNotFound) {
        return failure;
    }
    let backend = &conversation.backend;
    let models = models::list_within(backend, PRICES_TIMEOUT).await.unwrap_or_default();
    let meant = config::closest(model, models.iter().map(|known| known.id.as_str()));
    let meant = meant.map(|name| format!("did you mean `{}`?", sanitize::line(name)));
    let others = format!("`{}` lists the models", backend.list_command());
    let (source, model) = (&conversation.model_source, sanitize::line(model));
    let message = format!("{source}: there is no model `{model}`");
    Failure { message, hints: meant.into_iter().chain([others]).collect(), ..failure }
}

async fn follow(
    conversation: &Conversation<'_>,
    request: &ChatRequest,
    answer: &mut Answer,
    writer: &mut AnswerWriter<'_>,
) -> Result<(), Failure> {
    let failed = |cause| conversation.failure(cause);
    let client = &conversation.backend.client;
    if !request.stream {
        let piece = client.chat(request).await.map_err(failed)?;
        writer.piece(&piece)?;
        answer.take(piece);
        return Ok(());
    }
    let mut stream = client.chat_stream(request);
    while let Some(piece) = stream.next().await.map_err(failed)? {
        writer.piece(&piece)?;
        answer.take(piece);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up() {
        let mut answer = Answer::default();
        let piece = |text: &str| Piece { model: "a/b".to_owned(), text: text.to_owned(), ..Piece::default() };
        let usage = ChatUsage { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10, estimated: false };
        answer.take(piece("Hel"));
        answer.take(piece("lo"));
        answer.take(Piece { finish_reason: Some("stop".to_owned()), ..Piece::default() });
        answer.take(Piece { usage: Some(usage), is_sandbox: true, ..Piece::default() });
        answer.take(Piece::default());
        assert_eq!((answer.text.as_str(), answer.model.as_str()), ("Hello", "a/b"));
        assert_eq!((answer.finish_reason.as_deref(), answer.usage), (Some("stop"), Some(usage)));
        assert!(answer.is_sandbox);
    }
}
