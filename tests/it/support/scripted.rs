//! A server that says, byte by byte, what a test tells it to: for what no proper server sends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What it does next on a connection; after the last step it closes.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits.
    Wait(Duration),
    /// Sends the same bytes until nobody takes them.
    Flood(Vec<u8>),
    /// Nothing more, ever.
    Hang,
}

/// A scripted server; its port closes when it is dropped.
pub struct Scripted {
    /// Its base address.
    pub base: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Scripted {
    /// Starts a server that answers the n-th request (from 0) by `script`.
    pub async fn start(script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { continue };
                let request = read_request(&mut stream).await;
                let steps = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request);
                    script(seen.len() - 1)
                };
                tokio::spawn(async move { play(stream, steps).await });
            }
        });
        Self { base, requests, task }
    }

    /// A server that answers every request with these bytes.
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

/// The head of a proper event stream that ends with its connection, and then `body`.
pub fn stream(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}{body}").into_bytes()
}

/// An answer with a status and a JSON body.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n{body}")
        .into_bytes()
}

/// The terminal frame of a verification without claims.
pub const COMPLETED: &str = concat!(
    "event: completed\ndata: {\"requestId\":\"ver_1\",\"original_fact\":\"x\",\"results\":[],",
    "\"timestamp\":\"t\",\"tokenUsage\":{\"promptTokens\":0,\"completionTokens\":0,\"totalTokens\":0},",
    "\"minRequired\":2}\n\n"
);

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
    // Whoever has left needs no proper end.
    let _ = stream.shutdown().await;
}

/// A request with its body, as far as `Content-Length` tells.
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
