//! Verifications of 10 claims by 3 models that take 200 ms each: one alone, 100 at once, 200 at once.
//!
//! What the machine itself takes for 200 at once is measured as well: the same calls to the same models from this
//! process, in the order in which a verification makes them, without a server in between.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::json;

use crate::caller::{Caller, Expected};
use crate::panel::{CLAIMS, FOR_CLAIMS, MODEL_TIME, Panel, sentence};
use crate::server::Server;
use crate::table::{Figure, Table, percentile};

/// The time of the models alone: extraction, and the slowest vote.
const MODELS: Duration = MODEL_TIME.saturating_mul(2);
const VOTES: usize = 3 * CLAIMS;
const DONE: Expected = Expected { status: 200, text: "event: completed\n", events: 0 };
const ANSWERED: Expected = Expected { status: 200, text: "chat.completion", events: 0 };
/// About as large as the server's calls.
const EXTRACTION_BYTES: usize = 4_700;
const VOTE_BYTES: usize = 2_100;

/// The body of a request with all claims.
pub(crate) fn body() -> String {
    let fact: Vec<String> = (0..CLAIMS).map(sentence).collect();
    json!({"fact": fact.join(" ")}).to_string()
}

/// Measures all figures.
pub(crate) async fn measure(table: &mut Table, is_quick: bool) -> anyhow::Result<()> {
    let panel = Panel::start()?;
    let server = Server::start(&format!("http://{}/v1", panel.address))?;
    alone(table, &server, if is_quick { 3 } else { 15 }).await?;
    let rounds = if is_quick { 1 } else { 4 };
    let (mut times, cpu) = together(&server, 100, rounds).await?;
    let slowest = Figure::ms(percentile(&mut times, 100)).beside(MODELS);
    table.hold("100 such verifications at once, slowest", slowest, 622.0);
    table.tell("CPU of the server for each of them", Figure::of(cpu, "ms"));

    let mut direct = directly(panel.address, 200, rounds).await?;
    let direct = Figure::ms(percentile(&mut direct, 99)).beside(MODELS);
    table.tell("the calls of 200 at once without a server between, p99", direct);
    let (mut times, cpu) = together(&server, 200, rounds).await?;
    let (median, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    table.tell("200 such verifications at once, median", Figure::ms(median).beside(MODELS));
    table.hold("200 such verifications at once, p99", Figure::ms(p99).beside(MODELS), 600.0);
    table.hold("CPU of the server for each of them", Figure::of(cpu, "ms"), 2.0);
    Ok(())
}

async fn alone(table: &mut Table, server: &Server, rounds: usize) -> anyhow::Result<()> {
    let mut caller = Verifier::connect(server, &body()).await?;
    let (mut totals, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (start, total) = caller.verify().await?;
        starts.push(start);
        totals.push(total);
    }
    let total = percentile(&mut totals, 50);
    table.hold("10 claims x 3 models of 200 ms, median", Figure::ms(total).beside(MODELS), 410.0);
    table.hold("`starting` on the wire, slowest", Figure::ms(percentile(&mut starts, 100)), 50.0);
    Ok(())
}

/// The times of `count` verifications that start together, over `rounds` rounds, and the server's processor time for
/// each in milliseconds. Connections to the server and to the models are open by then, as on a busy server.
async fn together(
    server: &Server,
    count: usize,
    rounds: usize,
) -> anyhow::Result<(Vec<Duration>, Option<f64>)> {
    let mut callers =
        try_join_all((0..count).map(async |_| Verifier::connect(server, &body()).await)).await?;
    let mut times = Vec::new();
    let before = server.process.cpu_time();
    for _ in 0..rounds {
        let round = try_join_all(callers.iter_mut().map(Verifier::verify)).await?;
        times.extend(round.into_iter().map(|(_, total)| total));
    }
    let used = before.zip(server.process.cpu_time()).map(|(before, after)| after.saturating_sub(before));
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let each = used.map(|used| used.as_secs_f64() * 1000.0 / times.len() as f64);
    Ok((times, each))
}

/// A caller that has had its first response.
pub(crate) struct Verifier {
    caller: Caller,
    request: Vec<u8>,
}

impl Verifier {
    /// A caller with a request of this body.
    pub(crate) async fn connect(server: &Server, body: &str) -> anyhow::Result<Self> {
        let authorization = format!("authorization: Bearer {}\r\n", server.key);
        let request = post(server.address, "/verify/v1/stream", &authorization, body);
        let mut verifier = Self { caller: Caller::connect(server.address).await?, request };
        verifier.verify().await?;
        Ok(verifier)
    }

    /// The times until the first frame and until the end.
    pub(crate) async fn verify(&mut self) -> anyhow::Result<(Duration, Duration)> {
        let started = Instant::now();
        let mut first = None;
        self.caller
            .ask(&self.request, &DONE, |answer| {
                if first.is_none() && !answer.body.is_empty() {
                    first = Some(started.elapsed());
                }
            })
            .await?;
        let total = started.elapsed();
        Ok((first.unwrap_or(total), total))
    }
}

/// The times that the calls of `count` verifications take by themselves, again on open connections.
async fn directly(panel: SocketAddr, count: usize, rounds: usize) -> anyhow::Result<Vec<Duration>> {
    let (extraction, vote) = (call(panel, FOR_CLAIMS, EXTRACTION_BYTES), call(panel, "", VOTE_BYTES));
    let (extraction, vote) = (&extraction, &vote);
    let connect = async || try_join_all((0..VOTES).map(|_| Caller::connect(panel))).await;
    let mut all = try_join_all((0..count).map(|_| connect())).await?;
    let one = async |callers: &mut Vec<Caller>| {
        let started = Instant::now();
        callers[0].ask(extraction, &ANSWERED, |_| ()).await?;
        try_join_all(callers.iter_mut().map(|caller| caller.ask(vote, &ANSWERED, |_| ()))).await?;
        anyhow::Ok(started.elapsed())
    };
    try_join_all(all.iter_mut().map(one)).await?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.extend(try_join_all(all.iter_mut().map(one)).await?);
    }
    Ok(times)
}

/// A call to a model.
fn call(panel: SocketAddr, text: &str, bytes: usize) -> Vec<u8> {
    post(panel, "/v1/chat/completions", "", &format!("{text:<bytes$}"))
}

fn post(host: SocketAddr, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    (head + body).into_bytes()
}
