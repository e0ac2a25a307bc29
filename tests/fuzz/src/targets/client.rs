//! A server's responses as the command line's client reads them, over a real connection: they mean the same however
//! they are split, and only a stream that ended properly is a success.

use std::cell::{LazyCell, RefCell};
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

use crate::input::{one_of, pieces};
use mk::api::chat::ChatRequest;
use mk::api::verify::VerifyRequest;
use mk::client::{Client, Error, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// The heads before the bytes of an input; the end of the connection is the end of the response.
const HEADS: [&str; 4] = [
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n",
];

/// The response to the next connections, in pieces.
type Script = Rc<RefCell<Vec<Vec<u8>>>>;

struct Stage {
    runtime: Runtime,
    tasks: LocalSet,
    client: Client,
    script: Script,
}

thread_local! {
    // Never dropped: the thread-locals that the runtime needs for that may already be gone when the program ends.
    static STAGE: LazyCell<&'static Stage> = LazyCell::new(|| Box::leak(Box::new(Stage::new())));
}

impl Stage {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let tasks = LocalSet::new();
        let script = Script::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let given = Rc::clone(&script);
        tasks.spawn_local(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let pieces = given.borrow().clone();
                tokio::task::spawn_local(answer(socket, pieces));
            }
        });
        let patience = Duration::from_secs(20);
        let client = Client::new(&Settings {
            server: format!("http://{address}"),
            key: None,
            connect_timeout: patience,
            idle_timeout: patience,
            ca_cert: None,
        });
        Self { runtime, tasks, client: client.expect("a client"), script }
    }

    /// The results of all the client's ways of reading a response.
    fn results(&self, head: &str, pieces: &[&[u8]]) -> String {
        let head = std::iter::once(head.as_bytes().to_vec());
        *self.script.borrow_mut() = head.chain(pieces.iter().map(|piece| piece.to_vec())).collect();
        self.tasks.block_on(&self.runtime, async {
            let verified = shown(verify(&self.client).await);
            let chatted = shown(chat(&self.client).await);
            format!("{verified}\n{chatted}\n{}", shown(self.client.models().await))
        })
    }
}

async fn answer(mut socket: TcpStream, pieces: Vec<Vec<u8>>) {
    let mut request = [0; 4096];
    let _ = socket.read(&mut request).await;
    let _ = socket.set_nodelay(true);
    for piece in pieces {
        // The client may have read enough and disconnected.
        if socket.write_all(&piece).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
    let _ = socket.shutdown().await;
    // A connection that is closed with unread data is reset, and what was sent may be lost.
    while socket.read(&mut request).await.is_ok_and(|count| count > 0) {}
}

async fn verify(client: &Client) -> Result<String, Error> {
    let mut events = client.verify(&VerifyRequest::default());
    let (mut seen, mut is_over) = (String::new(), false);
    while let Some(event) = events.next().await? {
        assert!(!is_over, "an event after the end");
        is_over = event.is_terminal();
        write!(seen, "{event:?}").expect("memory takes every write");
    }
    assert!(is_over, "success without an end");
    Ok(seen)
}

async fn chat(client: &Client) -> Result<String, Error> {
    let mut stream = client.chat_stream(&ChatRequest::default());
    let (mut text, mut reason) = (String::new(), None);
    while let Some(piece) = stream.next().await? {
        text.push_str(&piece.text);
        reason = piece.finish_reason.or(reason);
    }
    assert!(reason.is_some(), "success without a reason");
    Ok(format!("{text:?} {reason:?}"))
}

/// The outcome as text, without a refusal's id, which is generated for each request if the server sends none.
fn shown<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(Error::Refused(refusal)) => format!("refused: {} {}", refusal.status, refusal.body.message),
        Err(error) => format!("{error}"),
    }
}

pub(super) fn run(bytes: &[u8]) {
    let head = one_of(bytes, 200, &HEADS);
    STAGE.with(|stage| {
        let whole = stage.results(head, &[bytes]);
        assert_eq!(stage.results(head, &pieces(bytes)), whole, "in pieces");
    });
}
