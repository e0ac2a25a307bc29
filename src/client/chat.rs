//! A streamed completion: pieces of text, and then the finish reason and usage.
//!
//! A completion is only complete if it has a finish reason and its stream has the end marker (`[DONE]`). Anything else
//! is [`Error::Incomplete`], and a chunk with an error is [`Error::Failed`].

use reqwest::RequestBuilder;
use serde_json::Value;

use super::error::Error;
use super::frames::{Frames, unreadable};
use crate::api::chat::{ChatCompletion, ChatError, ChatUsage};
use crate::api::error::ErrorEvent;
use crate::net::sse_decoder::MAX_EVENT_BYTES;

/// The largest stream that makes sense: one chunk per token, each with all its fields.
const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;

/// The end marker.
const DONE: &str = "[DONE]";

/// Part of a completion, or all of it. To add pieces up, concatenate the texts; for all other fields the last value
/// holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The model that answers.
    pub model: String,
    /// Whether the completion is simulated.
    pub is_sandbox: bool,
    /// The text.
    pub text: String,
    /// Why the completion has ended, if it has.
    pub finish_reason: Option<String>,
    /// The token usage, if known by now.
    pub usage: Option<ChatUsage>,
    /// What was found about the answer, if it was verified.
    pub verification: Option<Value>,
}

/// A completion in progress. Dropping it closes the connection, whereupon the server stops the model.
pub struct ChatStream {
    frames: Frames,
    /// The request id chosen here, as a chunk that reports a failure does not contain it.
    request_id: String,
    has_finished: bool,
    is_done: bool,
}

impl ChatStream {
    /// Sends `post` with this request id, and reads the response.
    pub(super) fn begin(post: RequestBuilder, request_id: String) -> Self {
        let frames =
            Frames::begin(post.header("x-request-id", &request_id), MAX_STREAM_BYTES, MAX_EVENT_BYTES);
        Self { frames, request_id, has_finished: false, is_done: false }
    }

    /// The next piece; `None` after the end of a complete stream. Not cancel-safe: the body of an error response would
    /// be lost.
    pub async fn next(&mut self) -> Result<Option<Piece>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let frame = self.frames.next().await?;
        if frame.data.trim() == DONE {
            self.is_done = true;
            return if self.has_finished { Ok(None) } else { Err(Error::Incomplete) };
        }
        let chunk = serde_json::from_str(&frame.data).map_err(|cause| unreadable("a chunk", &cause))?;
        let piece = piece(chunk, &self.request_id)?;
        self.has_finished |= piece.finish_reason.is_some();
        Ok(Some(piece))
    }
}

/// A completion that was not streamed.
pub(super) fn complete(answer: ChatCompletion) -> Result<Piece, Error> {
    let piece = piece(answer, "")?;
    if piece.finish_reason.is_none() {
        return Err(Error::Incomplete);
    }
    Ok(piece)
}

fn piece(answer: ChatCompletion, request_id: &str) -> Result<Piece, Error> {
    if let Some(fault) = answer.error {
        return Err(failed(fault, request_id));
    }
    let is_sandbox = answer.system_fingerprint.as_deref() == Some("sandbox");
    let verification = answer.mk_verification.filter(|found| !found.is_null());
    let mut piece =
        Piece { model: answer.model, is_sandbox, usage: answer.usage, verification, ..Piece::default() };
    let Some(choice) = answer.choices.into_iter().find(|choice| choice.index == 0) else { return Ok(piece) };
    if choice.finish_reason.as_deref() == Some("error") {
        return Err(failed(ChatError::default(), request_id));
    }
    let message = choice.message.unwrap_or_default();
    piece.text = message.content.filter(|text| !text.is_empty()).or(message.refusal).unwrap_or_default();
    piece.finish_reason = choice.finish_reason;
    Ok(piece)
}

fn failed(fault: ChatError, request_id: &str) -> Error {
    let message =
        if fault.message.is_empty() { "the model's answer broke off".to_owned() } else { fault.message };
    Error::Failed(Box::new(ErrorEvent {
        error: fault.kind,
        message,
        code: fault.code,
        request_id: request_id.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::{Client, Settings};
    use super::*;
    use crate::api::chat::ChatRequest;

    const SAID: &str =
        r#"data: {"model":"a/b","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#;
    const ENDED: &str = r#"data: {"model":"a/b","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    const USAGE: &str = r#"data: {"model":"a/b","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#;

    /// Reads a stream of these lines: the pieces until its end or failure.
    async fn read(lines: &[&str]) -> (Vec<Piece>, Option<Error>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let answer = format!("{head}{}\n\n", lines.join("\n\n"));
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = socket.read(&mut request).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        let span = Duration::from_secs(5);
        let settings =
            Settings { server, key: None, connect_timeout: span, idle_timeout: span, ca_cert: None };
        let mut stream = Client::new(&settings).unwrap().chat_stream(&ChatRequest::default());
        let mut pieces = Vec::new();
        loop {
            match stream.next().await {
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => return (pieces, None),
                Err(cause) => return (pieces, Some(cause)),
            }
        }
    }

    #[tokio::test]
    async fn a_complete_stream_has_text_reason_and_usage() {
        let (pieces, failure) = read(&[SAID, ": keep-alive", ENDED, USAGE, "data: [DONE]"]).await;
        assert!(failure.is_none(), "{failure:?}");
        let texts: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!((texts.as_str(), pieces[1].finish_reason.as_deref()), ("Hi", Some("stop")));
        assert_eq!(pieces[2].usage.unwrap().total_tokens, 10);
    }

    #[tokio::test]
    async fn a_stream_without_reason_or_end_mark_is_incomplete() {
        for lines in [&[SAID][..], &[SAID, ENDED, USAGE], &[SAID, "data: [DONE]"], &[]] {
            let (_, failure) = read(lines).await;
            assert!(matches!(failure, Some(Error::Incomplete)), "{lines:?}: {failure:?}");
        }
    }

    #[tokio::test]
    async fn a_chunk_with_an_error_is_a_failure_and_not_an_end() {
        let error = r#"data: {"model":"a/b","choices":[{"index":0,"delta":{},"finish_reason":"error"}],"error":{"message":"broke off","type":"Bad Gateway","code":"provider_error"}}"#;
        let (pieces, failure) = read(&[SAID, error, "data: [DONE]"]).await;
        let Some(Error::Failed(event)) = failure else { panic!("{failure:?}") };
        assert_eq!((pieces.len(), event.code.as_str()), (1, "provider_error"));
        let bare = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#;
        assert!(matches!(read(&[SAID, bare]).await.1, Some(Error::Failed(_))));
    }

    #[tokio::test]
    async fn what_is_not_a_chunk_is_a_malformed_response() {
        assert!(matches!(read(&["data: {\"choices\":7}"]).await.1, Some(Error::Malformed(_))));
    }
}
