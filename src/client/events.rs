//! The stream of a verification, or of an extraction, as typed events.
//!
//! Only a stream that ends with a terminal event is a success; an end without one is [`Error::Incomplete`]. A result that
//! contradicts itself, or what was asked, is [`Error::Malformed`]; one that does not tell how much of the text was checked
//! is read as incomplete.

use std::slice::from_ref;

use reqwest::RequestBuilder;

use super::consistent::{Account, doubt_untold};
use super::error::Error;
use super::frames::{Frames, unreadable};
use crate::api::verify::{ClaimResult, Event, VerifyRequest};
use crate::net::sse_decoder::MAX_EVENT_BYTES;

/// The largest stream that makes sense, as the reader may keep all of it.
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;
/// The same with a receipt, which tells all claims once more, with every answer; it is in the last event.
const MAX_BYTES_WITH_RECEIPT: usize = 64 * 1024 * 1024;
/// The most models of a verification, and the most options of a claim, answers to it and failures, that make sense:
/// servers have at most eight options and nine models. How a claim is shown takes time for each option and each pair of
/// models.
const MAX_PER_CLAIM: usize = 100;

/// How frames become events.
pub(super) type ReadEvent = fn(&str, &str) -> serde_json::Result<Option<Event>>;

/// A verification or an extraction in progress. Dropping it closes the connection, whereupon the server stops its work.
pub struct VerifyStream {
    frames: Frames,
    read: ReadEvent,
    account: Account,
    is_done: bool,
}

impl VerifyStream {
    /// Sends `post`, which holds the `request`, and reads the response.
    pub(super) fn begin(post: RequestBuilder, read: ReadEvent, request: &VerifyRequest) -> Self {
        let (max_bytes, max_event) = if request.receipt == Some(true) {
            (MAX_BYTES_WITH_RECEIPT, MAX_BYTES_WITH_RECEIPT)
        } else {
            (MAX_STREAM_BYTES, MAX_EVENT_BYTES)
        };
        let frames = Frames::begin(post, max_bytes, max_event);
        Self { frames, read, account: Account::new(request), is_done: false }
    }

    /// The next event; `None` after the terminal one. Events that this version does not know are skipped. Not
    /// cancel-safe: the body of an error response would be lost.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        while !self.is_done {
            let frame = self.frames.next().await?;
            let read = (self.read)(&frame.event, &frame.data);
            let event = read.map_err(|cause| unreadable(&format!("event `{}`", frame.event), &cause))?;
            if let Some(mut event) = event {
                ensure_plausible(&event)?;
                if let Some(flaw) = self.account.flaw(&event) {
                    return Err(Error::Malformed(flaw));
                }
                if let Event::Completed(result) = &mut event {
                    doubt_untold(result, &frame.data);
                }
                self.is_done = event.is_terminal();
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}

/// Fails if there is a claim with more models, options, answers or failures than [`MAX_PER_CLAIM`].
fn ensure_plausible(event: &Event) -> Result<(), Error> {
    let (most, results) = match event {
        Event::ClaimVerified(verified) => {
            (verified.model_answers.len(), verified.result.as_deref().map(from_ref).unwrap_or_default())
        }
        Event::VerifyingClaims(verifying) => (verifying.models.len(), &[][..]),
        Event::Completed(completed) => (0, completed.results.as_slice()),
        Event::Extracted(extracted) => {
            let options = extracted.claims.iter().map(|claim| claim.details.options.len());
            (options.max().unwrap_or_default(), &[][..])
        }
        _ => return Ok(()),
    };
    let of_result = |claim: &ClaimResult| {
        claim.model_answers.len().max(claim.model_errors.len()).max(claim.original_options.len())
    };
    if results.iter().map(of_result).fold(most, usize::max) <= MAX_PER_CLAIM {
        return Ok(());
    }
    Err(Error::Malformed(format!(
        "event `{}`: a claim with too many models, answers or options",
        event.name()
    )))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::{Client, Settings};
    use super::*;
    use crate::api::verify::VerifyRequest;

    /// Longer than any server here is silent, however busy the machine is.
    const PLENTY: Duration = Duration::from_secs(20);

    /// A server that responds to every request with `answer` and then closes the connection; counts the requests.
    async fn server(answer: Vec<u8>) -> (Client, Arc<AtomicUsize>) {
        server_with(answer, false, PLENTY).await
    }

    /// The same, stalling if `stall` is set, and a client with this idle timeout.
    async fn server_with(answer: Vec<u8>, stall: bool, idle_timeout: Duration) -> (Client, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                let mut request = vec![0; 4096];
                let _ = socket.read(&mut request).await.unwrap();
                socket.write_all(&answer).await.unwrap();
                if stall {
                    std::future::pending::<()>().await;
                }
            }
        });
        let settings = Settings {
            server: format!("http://{address}"),
            key: None,
            connect_timeout: Duration::from_secs(5),
            idle_timeout,
            ca_cert: None,
        };
        (Client::new(&settings).unwrap(), requests)
    }

    fn stream(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n{body}")
            .into_bytes()
    }

    async fn run(client: &Client) -> Result<Vec<Event>, Error> {
        let mut events = client.verify(&VerifyRequest::default());
        let mut seen = Vec::new();
        while let Some(event) = events.next().await? {
            seen.push(event);
        }
        Ok(seen)
    }

    const COMPLETED: &str = concat!(
        "event: completed\ndata: {\"requestId\":\"ver_1\",\"original_fact\":\"\",\"results\":[],",
        "\"timestamp\":\"t\",\"tokenUsage\":{\"promptTokens\":0,\"completionTokens\":0,\"totalTokens\":0},",
        "\"minRequired\":2}\n\n"
    );

    #[tokio::test]
    async fn a_proper_end_is_success_and_nothing_is_sent_again() {
        let body = format!(
            "event: starting\ndata: {{\"status\":\"starting\"}}\n\n: keep-alive\n\nevent: later\ndata: 1\n\n{COMPLETED}"
        );
        let (client, requests) = server(stream(&body)).await;
        let events = run(&client).await.unwrap();
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        assert_eq!(names, ["starting", "completed"]);
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_end_without_terminal_event_is_incomplete_and_nothing_is_sent_again() {
        let (client, requests) = server(stream("event: starting\ndata: {\"status\":\"starting\"}\n\n")).await;
        assert!(matches!(run(&client).await, Err(Error::Incomplete)));
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn silence_has_a_limit() {
        let begun = stream("event: starting\ndata: {\"status\":\"starting\"}\n\n");
        let (client, _) = server_with(begun, true, Duration::from_millis(200)).await;
        assert!(matches!(run(&client).await, Err(Error::Timeout)));
    }

    #[tokio::test]
    async fn an_error_status_comes_with_its_body_and_retry_time() {
        let answer = concat!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 42\r\nx-should-retry: false\r\nconnection: close\r\n\r\n",
            "{\"error\":\"Rate Limit Exceeded\",\"message\":\"Too many requests per minute\",",
            "\"code\":\"rate_limited_minute\",\"request_id\":\"r1\"}"
        );
        let (client, _) = server(answer.as_bytes().to_vec()).await;
        let Err(Error::Refused(refusal)) = run(&client).await else { panic!("not refused") };
        assert_eq!(refusal.status, 429);
        assert_eq!(refusal.body.code, "rate_limited_minute");
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(42)));
        assert!(refusal.hopeless);
    }

    #[tokio::test]
    async fn a_foreign_page_is_malformed_or_refused() {
        let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>".to_vec();
        let (client, _) = server(page).await;
        assert!(matches!(run(&client).await, Err(Error::Malformed(_))));
        let redirect =
            b"HTTP/1.1 302 Found\r\nlocation: https://elsewhere/\r\nconnection: close\r\n\r\n".to_vec();
        let (client, _) = server(redirect).await;
        let Err(Error::Refused(refusal)) = run(&client).await else { panic!("not refused") };
        assert_eq!(refusal.body.message, "Found: the server is at https://elsewhere/");
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_skipped_and_other_bytes_are_malformed() {
        let (client, _) = server(stream(&format!("\u{feff}{COMPLETED}"))).await;
        assert_eq!(run(&client).await.unwrap().len(), 1);
        let mut bytes = stream("event: starting\ndata: \"");
        bytes.extend(b"\xff\"\n\n");
        let (client, _) = server(bytes).await;
        assert!(matches!(run(&client).await, Err(Error::Malformed(_))));
    }

    /// Repeats `piece` until nobody reads it any more; returns how many bytes were written.
    async fn flood(piece: &'static str) -> (Result<Vec<Event>, Error>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let flooding = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut vec![0; 4096]).await.unwrap();
            socket.write_all(&stream("")).await.unwrap();
            let (chunk, mut written) = (piece.repeat(64 * 1024 / piece.len()), 0);
            while socket.write_all(chunk.as_bytes()).await.is_ok() {
                written += chunk.len();
                assert!(written < 1 << 30, "it reads on");
            }
            written
        });
        let settings = Settings {
            server: format!("http://{address}"),
            key: None,
            connect_timeout: PLENTY,
            idle_timeout: PLENTY,
            ca_cert: None,
        };
        let outcome = run(&Client::new(&settings).unwrap()).await;
        (outcome, flooding.await.unwrap())
    }

    #[tokio::test]
    async fn what_never_becomes_a_frame_is_given_up() {
        for piece in ["data: {}\n", ": keep-alive\n\n", "event", "data: ", "\n"] {
            let (outcome, written) = flood(piece).await;
            assert!(
                matches!(&outcome, Err(Error::Malformed(why)) if why.contains("too large")),
                "{outcome:?}"
            );
            // Beyond what is read at most, there are the buffers of both sockets.
            assert!(written < 64 * 1024 * 1024, "{piece:?}: {written}");
        }
    }

    #[tokio::test]
    async fn nobody_listening_is_unreachable_with_the_reason() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let settings = Settings {
            server: format!("http://127.0.0.1:{port}"),
            key: None,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(5),
            ca_cert: None,
        };
        let failed = run(&Client::new(&settings).unwrap()).await;
        assert!(matches!(&failed, Err(Error::Unreachable(why)) if why == "connection refused"), "{failed:?}");
    }
}
