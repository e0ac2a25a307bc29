//! The fake provider: three dialects on one socket, with the faults that providers have.
//!
//! It implements HTTP by hand, as a real server cannot be made to break off at a chosen point. What must hold: a call
//! is on its list before the first byte of its response is sent, and its entry depends only on the request and the
//! decided turn; so whatever happens to the connection, the list says what the ledger has to record.

mod answer;
mod asked;
mod called;
mod play;
mod turn;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};

use crate::dice::Dice;
pub(crate) use called::Called;
pub(crate) use turn::Turn;

/// The running provider.
pub(crate) struct Provider {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    dice: Mutex<Dice>,
    calls: Mutex<Vec<Called>>,
}

impl Provider {
    /// Starts it on the current runtime.
    pub(crate) async fn start(seed: u64) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let dice = Mutex::new(Dice::new(seed, u64::MAX));
        let shared = Arc::new(Shared { dice, calls: Mutex::default() });
        tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { address, shared })
    }

    /// All calls so far, in the order in which they arrived.
    pub(crate) fn calls(&self) -> Vec<Called> {
        self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // A connection that was closed before it was accepted does not matter.
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream, shared.clone()));
    }
}

/// Serves a connection until either side ends it.
async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Some(asked) = asked::read(&mut stream, &mut buffer).await {
        let decided = {
            let mut dice = shared.dice.lock().unwrap_or_else(PoisonError::into_inner);
            turn::decide(&asked, &mut dice)
        };
        let called = called::of(&asked, &decided);
        shared.calls.lock().unwrap_or_else(PoisonError::into_inner).push(called);
        // If the server has disconnected, its ledger shows it.
        match play::play(&mut stream, &asked, &decided).await {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
    }
}
