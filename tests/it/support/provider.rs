//! A fake model provider on a real socket: it speaks the wire formats of model APIs, replies as a test's script says,
//! and records the requests.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::formats::Format;

/// A request to a model, as received.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Its wire format.
    pub format: Format,
    /// The provider's own model name.
    pub model: String,
    /// `claims` or `answer`, by the name of the JSON schema or, without one, by the prompt; `open` for a question without
    /// options, `judgement` for what its answer means.
    pub task: String,
    /// The whole body.
    pub body: Value,
    /// The body, byte for byte.
    pub raw: String,
    /// The API key, from the header that the format uses.
    pub key: Option<String>,
    /// The path that it was sent to.
    pub path: String,
    /// Its headers.
    pub headers: http::HeaderMap,
    /// The trace that it is part of.
    pub traceparent: Option<String>,
    /// When it had been received.
    pub at: Instant,
    /// Whether a stream was requested.
    pub stream: bool,
}

impl ModelRequest {
    /// All messages' texts, joined.
    pub fn text(&self) -> String {
        self.format.texts(&self.body).join("\n")
    }

    /// The text of a block of the prompt between its `BEGIN` and `END` markers.
    pub fn block(&self, label: &str) -> String {
        let text = self.text();
        let open = format!("BEGIN {label} ");
        let start = text.rfind(&open).map(|at| at + open.len());
        let Some(rest) = start.map(|at| &text[at..]) else { return String::new() };
        let (marker, rest) = rest.split_once('\n').unwrap_or_default();
        rest.split(&format!("\nEND {label} {marker}")).next().unwrap_or_default().to_owned()
    }

    /// The options offered to the model, by letter.
    pub fn options(&self) -> BTreeMap<String, String> {
        let parse = |line: &str| line.split_once(") ").map(|(key, text)| (key.to_owned(), text.to_owned()));
        self.block("OPTIONS").lines().filter_map(parse).collect()
    }

    /// The letter of the option with this text.
    pub fn letter(&self, text: &str) -> String {
        let options = self.options();
        let found = options.iter().find(|(_, option)| option.eq_ignore_ascii_case(text));
        found.unwrap_or_else(|| panic!("no option {text:?} in {options:?}")).0.clone()
    }

    /// The reply that chooses the option with this text.
    pub fn choose(&self, text: &str) -> Reply {
        Reply::json(&json!({"answer": self.letter(text)}))
    }
}

/// How the provider replies to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A completion with this text that used 100 + 10 tokens.
    Text(String),
    /// Any status, headers and body.
    Raw(u16, Vec<(&'static str, String)>, String),
    /// The reply after a delay.
    After(Duration, Box<Reply>),
    /// Never replies.
    Hang,
    /// Resets the connection before the first byte of a response.
    Reset,
    /// Breaks the connection after half a response.
    Cut,
    /// A stream, step by step.
    Stream(Vec<StreamStep>),
}

/// A step of a streamed reply.
#[derive(Clone, Debug)]
pub enum StreamStep {
    /// Sends text.
    Send(String),
    /// Sends bytes, which need not be UTF-8.
    Bytes(Vec<u8>),
    /// Sends the same text this many times.
    Repeat(String, usize),
    /// Waits.
    Pause(Duration),
    /// Sends nothing more, but keeps the connection open.
    Stall,
    /// Breaks the connection.
    Cut,
}

impl StreamStep {
    /// A pause long enough that the server reads what comes before and after it separately, and so forwards it
    /// separately.
    pub const APART: Self = Self::Pause(Duration::from_millis(300));
}

/// A chunk with one text delta.
pub fn text_chunk(text: &str) -> StreamStep {
    chunk(&json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]))
}

/// A chunk with these choices, as a provider sends it.
pub fn chunk(choices: &Value) -> StreamStep {
    let chunk = json!({
        "id": "chatcmpl-up",
        "object": "chat.completion.chunk",
        "created": 1_795_000_000,
        "model": "m-2026",
        "choices": choices,
    });
    StreamStep::Send(format!("data: {chunk}\n\n"))
}

/// The first chunk of a stream.
pub fn role_chunk() -> StreamStep {
    chunk(&json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]))
}

/// The chunk that ends a choice.
pub fn finish_chunk(reason: &str) -> StreamStep {
    chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]))
}

/// The usage chunk: 7 prompt and 3 completion tokens.
pub fn usage_chunk() -> StreamStep {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
    StreamStep::Send(format!("data: {}\n\n", json!({"choices": [], "usage": usage})))
}

/// The `[DONE]` marker.
pub fn done() -> StreamStep {
    StreamStep::Send("data: [DONE]\n\n".to_owned())
}

/// A complete, well-formed stream of these words.
pub fn stream(words: &[&str]) -> Reply {
    let mut steps = vec![role_chunk()];
    steps.extend(words.iter().map(|word| text_chunk(word)));
    steps.extend([finish_chunk("stop"), usage_chunk(), done()]);
    Reply::Stream(steps)
}

impl Reply {
    pub fn json(value: &Value) -> Self {
        Self::Text(value.to_string())
    }

    pub fn status(status: u16, body: &Value) -> Self {
        Self::Raw(status, Vec::new(), body.to_string())
    }

    pub fn after(self, wait: Duration) -> Self {
        Self::After(wait, Box::new(self))
    }
}

/// A claim as an extractor returns it, quoted as it is.
pub fn claim(claim: &str, question: &str, claimed: &str, rivals: &[&str]) -> Value {
    json!({
        "quote": claim,
        "claim": claim,
        "question": question,
        "claimed_answer": claimed,
        "rivals": rivals,
        "best": "",
    })
}

/// The reply of an extractor that finds these claims.
pub fn claims(claims: &[Value]) -> Reply {
    Reply::json(&json!({"claims": claims, "skipped": []}))
}

type Script = dyn Fn(&ModelRequest) -> Reply + Send + Sync;

struct Shared {
    script: Box<Script>,
    requests: Mutex<Vec<ModelRequest>>,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    abandoned: AtomicUsize,
    streamed: AtomicUsize,
    connections: AtomicUsize,
}

/// More than any test looks at. Benchmarks send requests without limit.
const MAX_RECORDED: usize = 500;

fn record(shared: &Shared, ask: &ModelRequest) {
    let mut requests = shared.requests.lock().unwrap();
    if requests.len() < MAX_RECORDED {
        requests.push(ask.clone());
    }
}

/// The provider. Dropping it closes its port.
pub struct FakeProvider {
    /// The value for `base_url` in the configuration.
    pub base_url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl FakeProvider {
    /// Starts a provider that replies according to `script`.
    pub async fn start(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            streamed: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Self { base_url, shared, task }
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The requests for one model.
    pub fn requests_for(&self, model: &str) -> Vec<ModelRequest> {
        self.requests().into_iter().filter(|ask| ask.model == model).collect()
    }

    /// The number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    /// The largest number of requests in flight at once.
    pub fn most_in_flight(&self) -> usize {
        self.shared.most_in_flight.load(Ordering::SeqCst)
    }

    /// The number of connections accepted.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The number of streamed bytes handed to the socket.
    pub fn streamed(&self) -> usize {
        self.shared.streamed.load(Ordering::SeqCst)
    }

    /// The number of requests whose caller disconnected before the reply was complete.
    pub fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::SeqCst)
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let shared = shared.clone();
        tokio::spawn(async move {
            let reset = Arc::new(AtomicBool::new(false));
            let is_reset = reset.clone();
            let service = service_fn(move |request| Box::pin(play(request, shared.clone(), reset.clone())));
            let mut connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
            if is_reset.load(Ordering::SeqCst) {
                // Closing the socket with zero linger sends a reset.
                let _ = connection.into_parts().io.inner().set_zero_linger();
            }
        });
    }
}

/// Counts a request in flight. If it is dropped before the reply was complete, the caller has disconnected.
struct Call {
    shared: Arc<Shared>,
    answered: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.in_flight.fetch_sub(1, Ordering::SeqCst);
        if !self.answered {
            self.shared.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}

type Body = BoxBody<Bytes, std::io::Error>;

async fn play(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    reset: Arc<AtomicBool>,
) -> std::io::Result<Response<Body>> {
    let now = shared.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
    shared.most_in_flight.fetch_max(now, Ordering::SeqCst);
    let mut call = Call { shared: shared.clone(), answered: false };
    let path = request.uri().path().to_owned();
    let format = Format::at(&path);
    let key = format.key(request.headers());
    let headers = request.headers().clone();
    let traceparent = request.headers().get("traceparent").map(|value| value.to_str().unwrap().to_owned());
    let bytes =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let raw = String::from_utf8_lossy(&bytes).into_owned();
    let stream = body["stream"] == true || path.ends_with(":streamGenerateContent");
    let ask = ModelRequest {
        stream,
        format,
        model: format.model(&path, &body),
        task: task_of(&body),
        body,
        raw,
        key,
        path,
        headers,
        traceparent,
        at: Instant::now(),
    };
    record(&shared, &ask);
    let mut turn = (shared.script)(&ask);
    while let Reply::After(wait, next) = turn {
        tokio::time::sleep(wait).await;
        turn = *next;
    }
    let response = match turn {
        Reply::Hang => std::future::pending().await,
        Reply::Reset => {
            call.answered = true;
            reset.store(true, Ordering::SeqCst);
            return Err(std::io::Error::other("reset"));
        }
        Reply::Cut => cut(),
        Reply::Stream(steps) => return Ok(streamed(steps, call)),
        Reply::Text(text) => whole(200, &[], format.answer(&ask.model, &text)),
        Reply::Raw(status, headers, body) => whole(status, &headers, body),
        Reply::After(..) => unreachable!("resolved above"),
    };
    call.answered = true;
    Ok(response)
}

/// Determined by the schema's name, or by the prompt if the model takes no schema.
fn task_of(body: &Value) -> String {
    if let Some(name) = body["response_format"]["json_schema"]["name"].as_str() {
        return name.to_owned();
    }
    let text = body.to_string();
    let tasks = [("ANSWER", "judgement"), ("OPTIONS", "answer"), ("SECTION", "claims"), ("QUESTION", "open")];
    let task = tasks.into_iter().find(|(label, _)| text.contains(&format!("BEGIN {label} ")));
    task.map_or("claims", |(_, task)| task).to_owned()
}

fn whole(status: u16, headers: &[(&'static str, String)], body: String) -> Response<Body> {
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    response.body(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed()).unwrap()
}

/// A stream with backpressure. The request counts as in flight until its end.
fn streamed(steps: Vec<StreamStep>, call: Call) -> Response<Body> {
    let queue: VecDeque<StreamStep> = steps.into();
    let pieces = futures_util::stream::unfold(Some((queue, call)), |state| async move {
        let (mut queue, mut call) = state?;
        loop {
            match queue.pop_front() {
                None => {
                    call.answered = true;
                    return None;
                }
                Some(StreamStep::Pause(wait)) => tokio::time::sleep(wait).await,
                Some(StreamStep::Stall) => std::future::pending().await,
                Some(StreamStep::Cut) => {
                    call.answered = true;
                    return Some((Err(std::io::Error::other("cut")), None));
                }
                Some(StreamStep::Repeat(text, count)) => {
                    if count > 1 {
                        queue.push_front(StreamStep::Repeat(text.clone(), count - 1));
                    }
                    queue.push_front(StreamStep::Send(text));
                }
                Some(StreamStep::Send(text)) => queue.push_front(StreamStep::Bytes(text.into_bytes())),
                Some(StreamStep::Bytes(bytes)) => {
                    call.shared.streamed.fetch_add(bytes.len(), Ordering::SeqCst);
                    return Some((Ok(Frame::data(Bytes::from(bytes))), Some((queue, call))));
                }
            }
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(BodyExt::boxed(StreamBody::new(pieces))).unwrap()
}

fn cut() -> Response<Body> {
    let pieces = [
        Ok(Frame::data(Bytes::from_static(b"{\"id\":\"chatcmpl-1\",\"choi"))),
        Err(std::io::Error::other("cut")),
    ];
    Response::new(BodyExt::boxed(StreamBody::new(futures_util::stream::iter(pieces))))
}
