//! A fake provider for tests: a server that plays one scripted turn per request and records the requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// One step of the server's reaction to a request.
#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    /// Neither sends nor closes until the client disconnects.
    Hang,
}

/// A running server; stops when dropped.
pub(crate) struct Scripted {
    pub(crate) base_url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<String>>,
    under_way: AtomicUsize,
    most_at_once: AtomicUsize,
    request_received: Notify,
    client_left: Notify,
}

/// A complete JSON response.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
    vec![Step::Send(format!("{head}{body}").into_bytes())]
}

/// A completion of `text` that used 20 prompt and 5 completion tokens.
pub(crate) fn completion(text: &str) -> Vec<Step> {
    let body = serde_json::json!({
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
    });
    response(200, "", &body.to_string())
}

/// As [`completion`], in Anthropic's format.
pub(crate) fn message(text: &str) -> Vec<Step> {
    let body = serde_json::json!({
        "type": "message",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 5},
    });
    response(200, "", &body.to_string())
}

/// As [`completion`], in Gemini's format.
pub(crate) fn content(text: &str) -> Vec<Step> {
    let body = serde_json::json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25},
    });
    response(200, "", &body.to_string())
}

impl Scripted {
    /// Starts a server that plays `turns` in order; further connections are closed without a response.
    pub(crate) async fn start(turns: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut turns = turns.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, turns.next().unwrap_or_default(), Arc::clone(&shared)));
            }
        });
        Self { base_url, state, task }
    }

    /// The requests so far, with head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Waits until a request has been read.
    pub(crate) async fn request_received(&self) {
        self.state.request_received.notified().await;
    }

    /// Waits until a client has disconnected during a turn that hangs.
    pub(crate) async fn client_left(&self) {
        self.state.client_left.notified().await;
    }

    /// The maximum number of requests that were in progress at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.most_at_once.load(Ordering::SeqCst)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, turn: Vec<Step>, state: Arc<State>) {
    let Some(request) = read_request(&mut stream).await else {
        return;
    };
    state.requests.lock().unwrap().push(request);
    state.request_received.notify_one();
    let now = state.under_way.fetch_add(1, Ordering::SeqCst) + 1;
    state.most_at_once.fetch_max(now, Ordering::SeqCst);
    let hangs = turn.iter().any(|step| matches!(step, Step::Hang));
    for step in turn {
        match step {
            // Decremented before the last bytes are sent, as the client may send its next request before this task
            // resumes.
            Step::Send(bytes) => {
                if !hangs {
                    state.under_way.fetch_sub(1, Ordering::SeqCst);
                }
                let sent = stream.write_all(&bytes).await;
                if !hangs {
                    state.under_way.fetch_add(1, Ordering::SeqCst);
                }
                if sent.is_err() {
                    break;
                }
            }
            Step::Pause(span) => sleep(span).await,
            Step::Hang => {
                while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {}
                state.client_left.notify_one();
            }
        }
    }
    state.under_way.fetch_sub(1, Ordering::SeqCst);
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text.into_owned());
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
