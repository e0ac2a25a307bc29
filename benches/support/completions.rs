//! The fake provider's responses: fixed chat completions.
//!
//! Any POST is a chat completion; below [`SLOW`] it takes [`THINKING`]. A stream is sent as providers send it, each
//! event flushed separately, and on request one event at a time, to count what an event costs: see [`accept`].

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::PollSemaphore;

/// The path below which chat completions take some time.
pub(crate) const SLOW: &str = "/slow";
/// How long they take there.
pub(crate) const THINKING: Duration = Duration::from_millis(200);
/// The events of a stream without usage: the role, the chunks of text, the finish reason and `[DONE]`.
pub(crate) const EVENTS: usize = PIECES + 3;
/// The pieces of text of a stream.
pub(crate) const PIECES: usize = 100;
/// Each of them.
pub(crate) const PIECE_TEXT: &str = " token";
/// The end of the text of every whole response.
pub(crate) const LAST_WORDS: &str = "about twelve million in the wider region.";

/// The text of every whole response.
pub(crate) const ANSWER_TEXT: &str = "The capital of France is Paris. It lies on the Seine in the north of the country, has been the seat of government for most of the last thousand years, and is today home to a little over two million people within the city limits and about twelve million in the wider region.";
const BEFORE_TEXT: &str = r#"{"id":"chatcmpl-BenchA1b2C3d4E5f6G7h8I9","object":"chat.completion","created":1760000000,"model":"model","choices":[{"index":0,"message":{"role":"assistant","content":""#;
const AFTER_TEXT: &str = r#"","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":212,"completion_tokens":58,"total_tokens":270,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_bench"}"#;
const CHUNK: &str = r#"data: {"id":"chatcmpl-BenchA1b2C3d4E5f6G7h8I9","object":"chat.completion.chunk","created":1760000000,"model":"model","system_fingerprint":"fp_bench","#;
const FIRST: &str = r#""choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#;
const STOP: &str = r#""choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#;
const USAGE: &str =
    r#""choices":[],"usage":{"prompt_tokens":212,"completion_tokens":100,"total_tokens":312}}"#;

/// Serves all connections. With `turns`, each chunk of text in a stream, and the event after them, waits for a permit;
/// what comes before and after does not. `others` has the answers at paths of other protocols.
pub(crate) async fn accept(
    listener: TcpListener,
    turns: Option<Arc<Semaphore>>,
    others: fn(&str) -> Option<Answers>,
) {
    let completions = Arc::new((Answers::new(false), Answers::new(true)));
    loop {
        // A connection that was closed before it was accepted does not matter.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let (completions, turns) = (Arc::clone(&completions), turns.clone());
        let service =
            service_fn(move |request| answer(request, Arc::clone(&completions), others, turns.clone()));
        // Errors of a connection are noticed by its client.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// The parts of a request that determine the form of the response.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: StreamOptions,
}

#[derive(Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

type Answer = Response<Either<Full<Bytes>, Streamed>>;

async fn answer(
    request: Request<Incoming>,
    completions: Arc<(Answers, Answers)>,
    others: fn(&str) -> Option<Answers>,
    turns: Option<Arc<Semaphore>>,
) -> anyhow::Result<Answer> {
    let is_slow = request.uri().path().starts_with(SLOW);
    let other = others(request.uri().path());
    let body = request.into_body().collect().await?.to_bytes();
    let asked: Asked = serde_json::from_slice(&body)?;
    if is_slow {
        tokio::time::sleep(THINKING).await;
    }
    let (plain, with_usage) = &*completions;
    let answers = if asked.stream_options.include_usage { with_usage } else { plain };
    let Answers { whole, events, before } = other.unwrap_or_else(|| answers.clone());
    let (kind, body) = if asked.stream {
        let turns = turns.map(PollSemaphore::new);
        let streamed = Streamed { events, before, next: 0, is_flushed: true, turns };
        ("text/event-stream", Either::Right(streamed))
    } else {
        ("application/json", Either::Left(Full::from(whole)))
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// What a request may get.
#[derive(Clone)]
pub(crate) struct Answers {
    /// Without streaming.
    pub(crate) whole: Bytes,
    /// Those of a stream.
    pub(crate) events: Arc<[Bytes]>,
    /// How many events come before the first piece of text.
    pub(crate) before: usize,
}

impl Answers {
    fn new(has_usage: bool) -> Self {
        let chunk = |rest: &str| Bytes::from(format!("{CHUNK}{rest}\n\n"));
        let mut events = vec![chunk(FIRST)];
        let piece =
            json!([{"index": 0, "delta": {"content": PIECE_TEXT}, "logprobs": null, "finish_reason": null}]);
        events.extend(std::iter::repeat_n(chunk(&format!(r#""choices":{piece}}}"#)), PIECES));
        events.push(chunk(STOP));
        events.extend(has_usage.then(|| chunk(USAGE)));
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        let whole = Bytes::from([BEFORE_TEXT, ANSWER_TEXT, AFTER_TEXT].concat());
        Self { whole, events: events.into(), before: 1 }
    }
}

/// The body of a stream.
struct Streamed {
    events: Arc<[Bytes]>,
    before: usize,
    next: usize,
    is_flushed: bool,
    turns: Option<PollSemaphore>,
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // hyper flushes what it has when the body is pending.
        if !self.is_flushed {
            self.is_flushed = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if (self.before..=self.before + PIECES).contains(&self.next)
            && let Some(turns) = &mut self.turns
            && let Some(turn) = ready!(turns.poll_acquire(context))
        {
            turn.forget();
        }
        let event = self.events.get(self.next).cloned();
        self.next += 1;
        self.is_flushed = false;
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }
}
