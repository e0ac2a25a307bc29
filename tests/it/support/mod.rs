//! Shared helpers: servers, fake providers, the binary, stream readers.

pub mod breaks;
pub mod browser;
pub mod chat;
pub mod console;
pub mod cutter;
pub mod database;
pub mod description;
pub mod dice;
pub mod events;
pub mod formats;
pub mod log;
pub mod mk;
pub mod panel;
pub mod place;
pub mod postgres;
pub mod provider;
pub mod pty;
pub mod raw;
pub mod recorded;
pub mod redis;
pub mod reload;
pub mod scrape;
pub mod scripted;
pub mod serve;
pub mod server;
pub mod tls;

use std::time::{Duration, Instant};

/// The longest that an immediate reaction may take, however busy the machine is. Anything else that could end the same
/// wait, such as a timeout or a failed write of a comment, takes at least three times as long.
pub const PROMPT: Duration = Duration::from_secs(5);

/// Waits until a condition holds; fails with `what` after a minute.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < limit, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
