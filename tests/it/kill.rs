//! Servers that are killed (`kill -9`) again and again, at random moments, while everything goes on at once: nothing
//! that somebody was told is lost, nothing is half done, no day has more requests than it may, and what was used is on
//! the books but for the last second.
//!
//! `MK_KILL_ROUNDS` sets how often a server dies, `MK_KILL_SEED` what the random moments come from.

mod calls;
mod lane;
mod load;
mod told;

use futures_util::future::join_all;

use crate::support::dice::Dice;
use crate::support::panel::finds_eiffel;
use crate::support::provider::{FakeProvider, Turn, stream};

/// Servers that live and die side by side, each on a data directory of its own.
const LANES: u64 = 4;
/// Some fifteen seconds on two busy cores; `.ci/run` asks for more.
const ROUNDS: u64 = 40;
const SEED: u64 = 0x6d6b_2026;

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

async fn provider() -> FakeProvider {
    FakeProvider::start(|ask| match (ask.model.as_str(), ask.task.as_str()) {
        ("m", _) if ask.body["stream"] == true => stream(&["one", "two", "three"]),
        ("m", _) => Turn::Text("four".to_owned()),
        (_, "claims") => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_told_is_lost_by_kill_9_at_any_moment() {
    let (rounds, seed) = (setting("MK_KILL_ROUNDS", ROUNDS), setting("MK_KILL_SEED", SEED));
    // Shown if it fails.
    eprintln!("MK_KILL_ROUNDS={rounds} MK_KILL_SEED={seed}");
    let provider = provider().await;
    let lanes = (0..LANES).map(|lane| {
        let rounds = rounds / LANES + u64::from(lane < rounds % LANES);
        tokio::spawn(lane::live_and_die(provider.base_url.clone(), Dice(seed.wrapping_add(lane)), rounds))
    });
    for outcome in join_all(lanes).await {
        outcome.unwrap_or_else(|failure| panic!("{failure}; again: MK_KILL_SEED={seed}"));
    }
}
