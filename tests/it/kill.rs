//! Servers that are killed (`kill -9`) again and again, at random moments, while callers, operators and commands are
//! all active: no acknowledged write is lost or half done, no day admits more requests than its limit, and the ledger
//! holds all usage except that of the last second.
//!
//! `MK_KILL_ROUNDS` sets how often a server is killed, `MK_KILL_SEED` seeds the random moments.

mod acknowledged;
mod calls;
mod disk;
mod lane;
mod load;

use futures_util::future::join_all;

use crate::support::dice::Dice;
use crate::support::panel::finds_eiffel;
use crate::support::provider::{FakeProvider, Reply, stream};

/// Sequences of servers that run in parallel, each with its own data directory.
const LANES: u64 = 4;
/// Some fifteen seconds on two busy cores; `.ci/run` asks for more.
const ROUNDS: u64 = 40;
const SEED: u64 = 0x6d6b_2026;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

async fn provider() -> FakeProvider {
    FakeProvider::start(|ask| match (ask.model.as_str(), ask.task.as_str()) {
        ("m", _) if ask.body["stream"] == true => stream(&["one", "two", "three"]),
        ("m", _) => Reply::Text("four".to_owned()),
        (_, "claims") => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let (rounds, seed) = (setting("MK_KILL_ROUNDS", ROUNDS), setting("MK_KILL_SEED", SEED));
    // Shown only if the test fails.
    eprintln!("MK_KILL_ROUNDS={rounds} MK_KILL_SEED={seed}");
    let provider = provider().await;
    let lanes = (0..LANES).map(|lane| {
        let rounds = rounds / LANES + u64::from(lane < rounds % LANES);
        tokio::spawn(lane::run(provider.base_url.clone(), Dice(seed.wrapping_add(lane)), rounds))
    });
    for outcome in join_all(lanes).await {
        outcome.unwrap_or_else(|failure| panic!("{failure}; to repeat: MK_KILL_SEED={seed}"));
    }
}
