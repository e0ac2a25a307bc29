//! A server that sends exactly the bytes of a test's script, for responses that no real server would send.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A step on a connection, which closes after the last one.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits.
    Wait(Duration),
    /// Sends the same bytes over and over until the peer disconnects.
    Flood(Vec<u8>),
    /// Sends nothing more, but keeps the connection open.
    Hang,
}

/// A scripted server. Dropping it closes its port.
pub struct Scripted {
    /// Its base address.
    pub base: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Scripted {
    /// Starts a server that replies to the n-th request (from 0) according to `script`.
    pub async fn start(script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { continue };
                let request = read_request(&mut stream).await;
                let steps = script(seen.lock().unwrap().len());
                let steps = steps.into_iter().map(|step| match step {
                    Step::Send(bytes) => Step::Send(about(&request, bytes)),
                    other => other,
                });
                let steps = steps.collect();
                seen.lock().unwrap().push(request);
                tokio::spawn(async move { play(stream, steps).await });
            }
        });
        Self { base, requests, task }
    }

    /// Starts a server that answers every request with these bytes.
    pub async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_| vec![Step::Send(answer.clone())]).await
    }

    /// The requests so far, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An event-stream response with this body, ended by closing the connection.
pub fn stream(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}{body}").into_bytes()
}

/// A response with a JSON body.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n{body}")
        .into_bytes()
}

/// The terminal frame of a verification without claims, of the text that [`about`] puts in.
pub const COMPLETED: &str = concat!(
    "event: completed\ndata: {\"requestId\":\"ver_1\",\"original_fact\":\"x\",\"results\":[],",
    "\"timestamp\":\"t\",\"tokenUsage\":{\"promptTokens\":0,\"completionTokens\":0,\"totalTokens\":0},",
    "\"minRequired\":2,\"skipped\":[],\"complete\":true,",
    "\"coverage\":{\"sentences\":0,\"checked\":0,\"skipped\":0,\"unchecked\":0}}\n\n"
);

/// An answer whose result is about the text of the request, where it says `x`.
pub fn about(request: &str, answer: Vec<u8>) -> Vec<u8> {
    let body = request.split_once("\r\n\r\n").map(|(_, body)| body);
    let body: Option<Value> = body.and_then(|body| serde_json::from_str(body).ok());
    match (body, String::from_utf8(answer)) {
        (Some(body), Ok(text)) => {
            let fact = format!("\"original_fact\":{}", body["fact"]);
            text.replace("\"original_fact\":\"x\"", &fact).into_bytes()
        }
        (_, Ok(text)) => text.into_bytes(),
        (_, Err(bytes)) => bytes.into_bytes(),
    }
}

async fn play(mut stream: TcpStream, steps: Vec<Step>) {
    for step in steps {
        let sent = match step {
            Step::Send(bytes) => stream.write_all(&bytes).await,
            Step::Wait(span) => {
                tokio::time::sleep(span).await;
                Ok(())
            }
            Step::Flood(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {}
                return;
            }
            Step::Hang => std::future::pending().await,
        };
        if sent.is_err() {
            return;
        }
    }
    // The peer may have disconnected already.
    let _ = stream.shutdown().await;
}

/// Reads a request with the body that its `Content-Length` announces.
pub async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                break;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
