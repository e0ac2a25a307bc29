//! Stands between a server and PostgreSQL, and cuts connections at the worst moment: when a commit has been carried
//! out, before the server hears of it. It also makes the way long. Whatever comes back is passed on message by message,
//! as the protocol frames them; TLS is declined.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::postgres::{PASSWORD, Postgres, USER};

/// What a client begins with that would rather have TLS: a length of 8, and a number that is no version.
const WANTS_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

#[derive(Default)]
struct Orders {
    /// How many commits are still to be cut off.
    left: AtomicUsize,
    /// How many were.
    done: AtomicUsize,
    /// How many milliseconds what goes to the server takes on its way.
    delay: AtomicU64,
}

/// The cutter; its port closes when it is dropped, and connections go with the test's runtime.
pub struct Cutter {
    port: u16,
    orders: Arc<Orders>,
    task: JoinHandle<()>,
}

impl Cutter {
    /// In front of this cluster.
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

    /// The address of the database `mk` through it.
    pub fn url(&self) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{USER}", self.port)
    }

    /// Has it cut off the next commits, so many.
    pub fn cut(&self, commits: usize) {
        self.orders.left.store(commits, Ordering::SeqCst);
    }

    /// Has what goes to the server take so long on its way.
    pub fn delay(&self, milliseconds: u64) {
        self.orders.delay.store(milliseconds, Ordering::SeqCst);
    }

    /// How many were cut off so far.
    pub fn done(&self) -> usize {
        self.orders.done.load(Ordering::SeqCst)
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes everything on until one of both ends, or is cut off.
async fn pass_on(mut client: TcpStream, to: u16, orders: Arc<Orders>) -> std::io::Result<()> {
    let mut first = [0; 8];
    client.read_exact(&mut first).await?;
    if first == WANTS_TLS {
        client.write_all(b"N").await?;
        client.read_exact(&mut first).await?;
    }
    let mut server = TcpStream::connect(("127.0.0.1", to)).await?;
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    server.write_all(&first).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let back = async {
        let mut has_written = false;
        loop {
            let message = message(&mut from_server).await?;
            if is_committed(&message, &mut has_written) && take_one(&orders) {
                return Ok(());
            }
            to_client.write_all(&message).await?;
        }
    };
    let forth = async {
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
        done = forth => done,
        done = back => done,
    }
}

/// Type, length, and what follows.
async fn message(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; 5];
    from.read_exact(&mut message).await?;
    let length = u32::from_be_bytes([message[1], message[2], message[3], message[4]]);
    message.resize(1 + usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut message[5..]).await?;
    Ok(message)
}

/// Whether this is the first word of a commit's being done: `COMMIT` itself, or, where a statement is its own
/// transaction, that the server is ready for another one.
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
