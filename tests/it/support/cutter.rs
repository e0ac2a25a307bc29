//! A proxy between a server and PostgreSQL that cuts connections at the worst moment: after a commit has been executed
//! but before its acknowledgement arrives. It can also add latency. Replies are forwarded message by message, as the
//! protocol frames them; TLS is declined.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::postgres::{PASSWORD, Postgres, USER};

/// PostgreSQL's `SSLRequest`, with which a client asks for TLS: the length 8 and a magic number.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

#[derive(Default)]
struct Orders {
    /// Commits still to be cut off.
    left: AtomicUsize,
    /// Commits cut off so far.
    done: AtomicUsize,
    /// Latency towards the server, in milliseconds.
    delay: AtomicU64,
}

/// The proxy. Dropping it closes the port; connections end with the test's runtime.
pub struct Cutter {
    port: u16,
    orders: Arc<Orders>,
    task: JoinHandle<()>,
}

impl Cutter {
    /// Starts a proxy in front of this cluster.
    pub async fn start(postgres: &Postgres) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (orders, to) = (Arc::<Orders>::default(), postgres.port());
        let ordered = orders.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                tokio::spawn(pass_on(client, to, ordered.clone()));
            }
        });
        Self { port, orders, task }
    }

    /// The URL of the database `mk` through the proxy.
    pub fn url(&self) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{USER}", self.port)
    }

    /// Cuts off the next `commits` commits.
    pub fn cut(&self, commits: usize) {
        self.orders.left.store(commits, Ordering::SeqCst);
    }

    /// Delays everything sent to the server.
    pub fn delay(&self, milliseconds: u64) {
        self.orders.delay.store(milliseconds, Ordering::SeqCst);
    }

    /// The number of commits cut off so far.
    pub fn done(&self) -> usize {
        self.orders.done.load(Ordering::SeqCst)
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards in both directions until either side ends or the connection is cut.
async fn pass_on(mut client: TcpStream, to: u16, orders: Arc<Orders>) -> std::io::Result<()> {
    let mut first = [0; 8];
    client.read_exact(&mut first).await?;
    if first == SSL_REQUEST {
        client.write_all(b"N").await?;
        client.read_exact(&mut first).await?;
    }
    let mut server = TcpStream::connect(("127.0.0.1", to)).await?;
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    server.write_all(&first).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let backward = async {
        let mut has_written = false;
        loop {
            let message = message(&mut from_server).await?;
            if is_committed(&message, &mut has_written) && take_one(&orders) {
                return Ok(());
            }
            to_client.write_all(&message).await?;
        }
    };
    let forward = async {
        let mut some = vec![0; 1 << 16];
        loop {
            let read = from_client.read(&mut some).await?;
            let delay = orders.delay.load(Ordering::SeqCst);
            if delay > 0 {
                tokio::time::sleep(Duration::from_millis(delay)).await;
            }
            if read == 0 {
                return Ok(());
            }
            to_server.write_all(&some[..read]).await?;
        }
    };
    tokio::select! {
        done = forward => done,
        done = backward => done,
    }
}

/// Reads one message: type, length and payload.
async fn message(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; 5];
    from.read_exact(&mut message).await?;
    let length = u32::from_be_bytes([message[1], message[2], message[3], message[4]]);
    message.resize(1 + usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut message[5..]).await?;
    Ok(message)
}

/// Whether this message is the first to acknowledge a commit: `COMMIT` itself or, where a statement is its own
/// transaction, `ReadyForQuery`.
fn is_committed(message: &[u8], has_written: &mut bool) -> bool {
    match message {
        [b'C', _, _, _, _, done @ ..] => {
            *has_written |=
                ["INSERT", "UPDATE", "DELETE", "COPY"].iter().any(|word| done.starts_with(word.as_bytes()));
            done.starts_with(b"COMMIT")
        }
        [b'Z', .., b'I'] => std::mem::take(has_written),
        _ => false,
    }
}

fn take_one(orders: &Orders) -> bool {
    let one_less = |left: usize| left.checked_sub(1);
    let is_ordered = orders.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok();
    orders.done.fetch_add(usize::from(is_ordered), Ordering::SeqCst);
    is_ordered
}
