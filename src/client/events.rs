//! The stream of a verification, as typed events.
//!
//! The only file that knows `reqwest_eventsource`, which by default posts again whenever a stream ends, even
//! properly: retries are off here, so that a verification is never posted twice. What must hold: success is only
//! what ended with a terminal event; an end without one is [`Error::Incomplete`].
//!
//! Its decoder has no size cap, so frames are measured once they are complete; one that never ends grows for as long
//! as the caller lets it. It also panics on a byte order mark at the start of a stream: such a server is
//! [`Error::Broken`] instead of the end of this program, and [`is_decoding`] tells whoever reports panics that this
//! one is none.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use futures_util::StreamExt;
use reqwest::RequestBuilder;
use reqwest_eventsource::{Error as SourceError, Event as SourceEvent, EventSource, retry};

use super::error::{Error, refused};
use crate::api::verify::Event;

/// The largest frame that makes sense: a result of 30 claims and 9 models with their reasons is far below.
const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// The largest stream that makes sense: whoever reads may keep all of it.
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;

/// The most that is told of what is wrong with a frame: the reason may repeat what the server has sent.
const MAX_REASON_CHARS: usize = 200;

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread decodes foreign bytes at this moment: a panic is then caught, and is the sender's fault.
pub fn is_decoding() -> bool {
    IS_DECODING.get()
}

/// A verification under way. Dropping it closes the connection, and the server then stops its work.
pub struct Events {
    source: EventSource,
    is_open: bool,
    is_done: bool,
    bytes: usize,
}

impl Events {
    /// Sends `post` and reads what comes back.
    pub(super) fn begin(post: RequestBuilder) -> Result<Self, Error> {
        #[expect(clippy::disallowed_methods, reason = "the one place, with retries off")]
        let mut source =
            EventSource::new(post).map_err(|_| Error::Setup("the request cannot be sent".to_owned()))?;
        source.set_retry_policy(Box::new(retry::Never));
        Ok(Self { source, is_open: false, is_done: false, bytes: 0 })
    }

    /// The next event; `None` after the terminal one. Events that this version does not know are passed over. Not to
    /// be dropped unfinished if another is to follow: a refusal's body would be lost.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if self.is_done {
                return Ok(None);
            }
            let message = match self.decode().await? {
                None => return Err(Error::Incomplete),
                Some(Ok(SourceEvent::Open)) => {
                    self.is_open = true;
                    continue;
                }
                Some(Ok(SourceEvent::Message(message))) => message,
                Some(Err(cause)) => return Err(self.failure(cause).await),
            };
            let size = message.data.len();
            self.bytes = self.bytes.saturating_add(size);
            if size > MAX_FRAME_BYTES || self.bytes > MAX_STREAM_BYTES {
                self.source.close();
                return Err(Error::Broken("the answer is larger than any verification".to_owned()));
            }
            let read = Event::read(&message.event, &message.data);
            let event = read.map_err(|cause| unreadable(&message.event, &cause))?;
            if let Some(event) = event {
                self.is_done = event.is_terminal();
                return Ok(Some(event));
            }
        }
    }

    /// The decoder's next item; its panics are errors.
    async fn decode(&mut self) -> Result<Option<Result<SourceEvent, SourceError>>, Error> {
        let item = poll_fn(|context| {
            IS_DECODING.set(true);
            let polled = catch_unwind(AssertUnwindSafe(|| self.source.poll_next_unpin(context)));
            IS_DECODING.set(false);
            match polled {
                Ok(poll) => poll.map(Ok),
                Err(_panic) => Poll::Ready(Err(improper())),
            }
        });
        item.await
    }

    async fn failure(&self, cause: SourceError) -> Error {
        match cause {
            SourceError::Transport(cause) if self.is_open => Error::from_body(&cause),
            SourceError::Transport(cause) => Error::from_transport(&cause),
            SourceError::InvalidStatusCode(_, response) => refused(response).await,
            SourceError::InvalidContentType(..) => Error::Broken("the answer is no event stream".to_owned()),
            SourceError::StreamEnded => Error::Incomplete,
            SourceError::Utf8(_) | SourceError::Parser(_) | SourceError::InvalidLastEventId(_) => improper(),
        }
    }
}

fn improper() -> Error {
    Error::Broken("the answer is not a proper event stream".to_owned())
}

fn unreadable(event: &str, cause: &serde_json::Error) -> Error {
    let reason: String = cause.to_string().chars().take(MAX_REASON_CHARS).collect();
    Error::Broken(format!("event `{event}`: {reason}"))
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

    /// A server that answers every request with `answer`, then closes or stalls; counts the requests.
    async fn server(answer: Vec<u8>, stall: bool) -> (Client, Arc<AtomicUsize>) {
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
            idle_timeout: Duration::from_millis(200),
            ca_cert: None,
        };
        (Client::new(&settings).unwrap(), requests)
    }

    fn stream(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n{body}")
            .into_bytes()
    }

    async fn run(client: &Client) -> Result<Vec<Event>, Error> {
        let mut events = client.verify(&VerifyRequest::default())?;
        let mut seen = Vec::new();
        while let Some(event) = events.next().await? {
            seen.push(event);
        }
        Ok(seen)
    }

    const COMPLETED: &str = concat!(
        "event: completed\ndata: {\"requestId\":\"ver_1\",\"original_fact\":\"x\",\"results\":[],",
        "\"timestamp\":\"t\",\"tokenUsage\":{\"promptTokens\":0,\"completionTokens\":0,\"totalTokens\":0},",
        "\"minRequired\":2}\n\n"
    );

    #[tokio::test]
    async fn a_proper_end_is_success_and_nothing_is_posted_again() {
        let body = format!(
            "event: starting\ndata: {{\"status\":\"starting\"}}\n\n: keep-alive\n\nevent: later\ndata: 1\n\n{COMPLETED}"
        );
        let (client, requests) = server(stream(&body), false).await;
        let events = run(&client).await.unwrap();
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        assert_eq!(names, ["starting", "completed"]);
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_end_without_terminal_event_is_incomplete_and_not_posted_again() {
        let (client, requests) =
            server(stream("event: starting\ndata: {\"status\":\"starting\"}\n\n"), false).await;
        assert!(matches!(run(&client).await, Err(Error::Incomplete)));
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn silence_has_a_limit() {
        let (client, _) = server(stream("event: starting\ndata: {\"status\":\"starting\"}\n\n"), true).await;
        assert!(matches!(run(&client).await, Err(Error::Silent)));
    }

    #[tokio::test]
    async fn a_refusal_brings_its_body_and_wait() {
        let answer = concat!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 42\r\nx-should-retry: false\r\nconnection: close\r\n\r\n",
            "{\"error\":\"Rate Limit Exceeded\",\"message\":\"Too many requests per minute\",",
            "\"code\":\"rate_limited_minute\",\"request_id\":\"r1\"}"
        );
        let (client, _) = server(answer.as_bytes().to_vec(), false).await;
        let Err(Error::Refused(refusal)) = run(&client).await else { panic!("not refused") };
        assert_eq!(refusal.status, 429);
        assert_eq!(refusal.body.code, "rate_limited_minute");
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(42)));
        assert!(refusal.hopeless);
    }

    #[tokio::test]
    async fn a_foreign_page_is_broken_or_refused() {
        let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>".to_vec();
        let (client, _) = server(page, false).await;
        assert!(matches!(run(&client).await, Err(Error::Broken(_))));
        let redirect =
            b"HTTP/1.1 302 Found\r\nlocation: https://elsewhere/\r\nconnection: close\r\n\r\n".to_vec();
        let (client, _) = server(redirect, false).await;
        let Err(Error::Refused(refusal)) = run(&client).await else { panic!("not refused") };
        assert_eq!(refusal.body.message, "Found: the server is at https://elsewhere/");
    }

    #[tokio::test]
    async fn a_byte_order_mark_does_not_end_the_program() {
        let (client, _) = server(stream("\u{feff}event: starting\ndata: {}\n\n"), false).await;
        assert!(matches!(run(&client).await, Err(Error::Broken(_))));
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
