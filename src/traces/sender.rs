//! Delivers spans: in batches, one at a time, to one address, through the client that calls providers.
//!
//! What must hold: only this task waits for the collector, and never for ever: each call has a timeout, each batch a
//! number of tries, and the end of the server a time of its own. What a collector writes is not believed: of an answer,
//! a bounded part is read, and none of it is logged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::otlp;
use super::tracer::{BATCH, Tracer};
use crate::log_throttle::LogThrottle;
use crate::net::loopback::is_loopback;
use crate::net::outbound::SendError;
use crate::net::outbound::client::{Body, Client};
use crate::net::outbound::http1::HttpRequest;

/// How long spans wait for a batch to become whole.
const INTERVAL: Duration = Duration::from_secs(5);
/// How often a batch is sent at most.
const MAX_TRIES: u32 = 5;
/// The wait before a batch is sent again, doubled each time, unless the collector asks for another.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait that a collector may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long the last spans may take when the server ends.
const FINAL_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of an answer is read; that of a collector that took everything is `{}`.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("mk/", env!("CARGO_PKG_VERSION")));

/// Why a batch was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("it answered {status}")]
    Status { status: StatusCode, retry_after: Option<Duration> },
    #[error("it cannot be reached")]
    Unreachable,
    #[error("the connection broke")]
    Broken,
    #[error("it took too long")]
    Timeout,
}

impl Refusal {
    /// Whether the same batch may be taken later: as the specification of OTLP says, or if it was not refused at all.
    fn is_transient(self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Unreachable | Self::Broken | Self::Timeout => true,
        }
    }
}

impl From<SendError> for Refusal {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Unreachable | SendError::NoDescriptors => Self::Unreachable,
            SendError::Cut => Self::Broken,
        }
    }
}

/// The task that delivers the spans of a tracer.
struct Sender<'a> {
    tracer: &'a Tracer,
    address: Uri,
    closing: &'a CancellationToken,
    client: OnceCell<Client>,
    trouble: LogThrottle,
}

/// Spans that have left the queue. Counted as failed when dropped, also when time is up.
struct Unsent<'a> {
    tracer: &'a Tracer,
    count: u64,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.tracer.count_failed(self.count);
    }
}

impl Tracer {
    /// Delivers spans until `closing` is cancelled, and then those that are left, if that does not take long.
    pub async fn deliver(self: Arc<Self>, closing: CancellationToken) {
        let Some(Ok(address)) = self.settings().endpoint.as_deref().map(str::parse) else { return };
        let sender = Sender {
            tracer: &self,
            address,
            closing: &closing,
            client: OnceCell::new(),
            trouble: LogThrottle::new(),
        };
        let too_late = async {
            closing.cancelled().await;
            sleep(FINAL_TIMEOUT).await;
        };
        tokio::select! {
            biased;
            () = sender.run() => {}
            () = too_late => tracing::warn!("the last traces were not delivered in time"),
        }
        loop {
            match self.take().len() {
                0 => break,
                left => drop(Unsent { tracer: &self, count: left as u64 }),
            }
        }
    }
}

impl Sender<'_> {
    async fn run(&self) {
        loop {
            tokio::select! {
                () = self.tracer.batch_ready.notified() => {}
                () = sleep(INTERVAL) => {}
                () = self.closing.cancelled() => {}
            }
            let is_last = self.closing.is_cancelled();
            loop {
                let spans = self.tracer.take();
                if spans.is_empty() {
                    break;
                }
                let count = spans.len();
                let body = Bytes::from(otlp::request(&spans, self.tracer.settings()));
                drop(spans);
                self.batch(count as u64, body).await;
                if count < BATCH {
                    break;
                }
            }
            if is_last {
                return;
            }
        }
    }

    /// Delivers a batch, or gives it up.
    async fn batch(&self, count: u64, body: Bytes) {
        let mut unsent = Unsent { tracer: self.tracer, count };
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=MAX_TRIES {
            let limit = self.tracer.settings().timeout;
            let outcome = timeout(limit, self.post(body.clone())).await.unwrap_or(Err(Refusal::Timeout));
            let refusal = match outcome {
                Ok(rejected) => {
                    unsent.count = rejected.min(count);
                    self.tracer.count_sent(count - unsent.count);
                    if self.trouble.succeeded() {
                        tracing::info!("traces are delivered again");
                    }
                    return;
                }
                Err(refusal) => refusal,
            };
            if let Some(suppressed) = self.trouble.failed(&refusal) {
                tracing::warn!(cause = %refusal, suppressed, "the trace collector does not accept traces");
            }
            if !refusal.is_transient() || attempt == MAX_TRIES || self.closing.is_cancelled() {
                break;
            }
            let asked = match refusal {
                Refusal::Status { retry_after, .. } => retry_after,
                _ => None,
            };
            tokio::select! {
                () = sleep(asked.unwrap_or(pause).min(MAX_PAUSE)) => {}
                () = self.closing.cancelled() => {}
            }
            pause *= 2;
        }
    }

    /// Sends a batch once. Returns how many of its spans were rejected.
    async fn post(&self, body: Bytes) -> Result<u64, Refusal> {
        let client = self.client().await?;
        let settings = self.tracer.settings();
        let own = [(&CONTENT_TYPE, &JSON), (&USER_AGENT, &AGENT)];
        let target = self.address.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let request = HttpRequest {
            method: Method::POST,
            target: target.into(),
            headers: own
                .into_iter()
                .chain(settings.headers.iter().map(|(name, value)| (name, value)))
                .collect(),
            body,
        };
        let (head, body) = client.ready().await?.send(&request).await?.into_parts();
        let answer = read(body).await;
        if !head.status.is_success() {
            return Err(Refusal::Status { status: head.status, retry_after: retry_after(&head.headers) });
        }
        Ok(rejected_spans(&answer))
    }

    async fn client(&self) -> Result<&Client, Refusal> {
        let connect = async || {
            // A proxy from the environment would connect to its own loopback address.
            let no_proxy = self.address.host().is_some_and(is_loopback);
            let (origin, limit) = (origin(&self.address)?, self.tracer.settings().timeout);
            // Root certificates are read from disk here.
            tokio::task::spawn_blocking(move || Client::new(&origin, limit, 1, no_proxy)).await.ok()?.ok()
        };
        self.client.get_or_try_init(async || connect().await.ok_or(Refusal::Unreachable)).await
    }
}

/// Scheme and authority, with `/` as the path.
fn origin(address: &Uri) -> Option<Uri> {
    let (scheme, authority) = (address.scheme()?.clone(), address.authority()?.clone());
    Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build().ok()
}

/// The beginning of an answer. Of a longer one the connection is closed, as the rest is not waited for.
async fn read(mut body: Body) -> Vec<u8> {
    let mut answer = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        if answer.len() + data.len() > MAX_ANSWER_BYTES {
            break;
        }
        answer.extend_from_slice(&data);
    }
    answer
}

/// How long a collector wants to be left alone, if it says so in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// How many spans a collector that answered 200 did not take.
fn rejected_spans(answer: &[u8]) -> u64 {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        partial_success: Option<PartialSuccess>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PartialSuccess {
        rejected_spans: Option<Value>,
    }
    let answer: Option<Answer> = serde_json::from_slice(answer).ok();
    match answer.and_then(|answer| answer.partial_success?.rejected_spans) {
        Some(Value::Number(number)) => number.as_u64().unwrap_or_default(),
        Some(Value::String(text)) => text.parse().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rejected_is_read_in_both_ways_of_writing_numbers() {
        for (answer, expected) in [
            ("{}", 0),
            ("", 0),
            ("<html>", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":-3}}"#, 0),
        ] {
            assert_eq!(rejected_spans(answer.as_bytes()), expected, "{answer}");
        }
    }

    #[test]
    fn only_what_the_specification_says_is_sent_again() {
        for (status, expected) in [
            (400, false),
            (401, false),
            (404, false),
            (408, false),
            (429, true),
            (500, false),
            (502, true),
            (503, true),
            (504, true),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Refusal::Status { status, retry_after: None }.is_transient(), expected, "{status}");
        }
        assert!(Refusal::Unreachable.is_transient() && Refusal::Timeout.is_transient());
    }
}
