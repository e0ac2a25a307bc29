//! The server's resident memory: idle, and with thousands of open verifications whose models do not answer.

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures_util::StreamExt;
use serde_json::json;

use crate::panel::sentence;
use crate::provider::{FakeProvider, Reply, claim, claims};
use crate::server::Server;
use crate::table::{Figure, Table};

/// The memory that a stream waiting for models may take, in kilobytes.
const STREAM_KB: f64 = 20.0;

/// Measures all figures.
pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    let provider = thinking().await;
    let server = Server::start(&provider.base_url)?;
    table.hold("resident memory, idle", Figure::of(server.resident_mb(), "MB"), 25.0);
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut open = Vec::new();
    for _ in 0..1000 {
        open.push(open_verification(&client, &server).await?);
    }
    let resident = Figure::of(server.resident_mb(), "MB");
    table.hold("resident memory, 1000 verifications open", resident, 150.0);
    drop(open);
    idle_streams(table, "a stream whose extractor thinks", 5_000, thinking().await, 1).await?;
    // As many as one key's calls fit in: an eighth of all that may be open is left to others.
    idle_streams(table, "a stream whose 3 models think, 1 claim", 2_900, thinking_panel().await, 3).await
}

/// The memory of a stream while no model answers: the growth of the resident size by `count` of them, on a new server,
/// once `calls` calls for each have reached the provider.
async fn idle_streams(
    table: &mut Table,
    what: &str,
    count: u32,
    provider: FakeProvider,
    calls: u32,
) -> anyhow::Result<()> {
    let server = Server::start(&provider.base_url)?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let before = server.resident_mb();
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(open_verification(&client, &server).await?);
    }
    let (all, late) = (usize::try_from(calls * count)?, Instant::now() + Duration::from_mins(1));
    while provider.in_flight() < all {
        ensure!(Instant::now() < late, "{} calls of {all}", provider.in_flight());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let each =
        before.zip(server.resident_mb()).map(|(before, now)| (now - before) * 1024.0 / f64::from(count));
    table.hold(&format!("memory of {what}, {count} open"), Figure::of(each, "KB"), STREAM_KB);
    Ok(())
}

/// Opens a verification and waits for its first frame.
async fn open_verification(client: &reqwest::Client, server: &Server) -> anyhow::Result<impl Sized + use<>> {
    let request = client
        .post(format!("http://{}/verify/v1/stream", server.address))
        .bearer_auth(&server.key)
        .json(&json!({"fact": sentence(0)}));
    let mut stream = request.send().await?.error_for_status()?.bytes_stream();
    let first = stream.next().await.transpose()?;
    ensure!(first.is_some_and(|frame| !frame.is_empty()), "no first frame");
    Ok(stream)
}

/// A provider whose models never answer.
async fn thinking() -> FakeProvider {
    FakeProvider::start(|_| Reply::Hang).await
}

/// A provider whose extractor finds one claim at once, while the other models never answer.
async fn thinking_panel() -> FakeProvider {
    FakeProvider::start(|ask| {
        if ask.task == "claims" {
            let question = "Which colour is House A at the end of the street?";
            return claims(&[claim(&sentence(0), question, "blue", &["red", "green"])]);
        }
        Reply::Hang
    })
    .await
}
