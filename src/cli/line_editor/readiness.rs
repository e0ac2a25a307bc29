//! Waits until a terminal has something to read, without reading it.
//!
//! A thread does the waiting, as the runtime's own means need `unsafe` code. It waits only on request, and ends with
//! the process.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::Notify;

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Watches a terminal for input.
#[derive(Debug)]
pub(super) struct InputWatch {
    requests: Sender<()>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    terminal: File,
    is_requested: AtomicBool,
    arrived: Notify,
}

impl InputWatch {
    pub(super) fn new(terminal: File) -> io::Result<Self> {
        let state =
            Arc::new(State { terminal, is_requested: AtomicBool::new(false), arrived: Notify::new() });
        let (requests, requests_received) = channel();
        let watched = Arc::clone(&state);
        thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || watch(&watched, &requests_received))?;
        Ok(Self { requests, state })
    }

    /// Resolves when there may be something to read; check with [`is_ready`].
    pub(super) async fn readable(&self) {
        if !self.state.is_requested.swap(true, Ordering::SeqCst) {
            // Fails only if the thread is gone, and with it the process.
            let _ = self.requests.send(());
        }
        self.state.arrived.notified().await;
    }
}

fn watch(state: &State, requests_received: &Receiver<()>) {
    for () in requests_received {
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&state.terminal, PollFlags::IN)], None) {}
        // The order matters: whoever is notified and finds nothing may request again.
        state.is_requested.store(false, Ordering::SeqCst);
        state.arrived.notify_one();
    }
}

/// Whether a read would not block: there is input, or the end of it.
pub(super) fn is_ready(terminal: &File) -> io::Result<bool> {
    match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&NO_WAIT)) {
        Err(Errno::INTR) => Ok(false),
        polled => Ok(polled? > 0),
    }
}
