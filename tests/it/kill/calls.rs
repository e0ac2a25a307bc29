//! Calls that are under way when their server is killed: what they had used is on the books but for the last second,
//! once, whoever comes after.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use reqwest::Response;
use rusqlite::Connection;
use serde_json::Value;

use super::disk::Disk;
use super::load;
use crate::support::chat::hello_stream;
use crate::support::eventually;
use crate::support::mk::{Mk, operator};
use crate::support::provider::{FakeProvider, Reply, StreamStep, role_chunk, text_chunk};
use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

/// Two tokens by the server's estimate, as the provider never comes to tell the usage.
const PIECE: &str = "12345678";
const TOKENS_OF_PIECE: usize = 2;

/// A provider that goes on for ever, a piece every tenth of a second.
async fn babbler() -> FakeProvider {
    let mut beats = vec![role_chunk()];
    for _ in 0..600 {
        beats.extend([StreamStep::Pause(Duration::from_millis(100)), text_chunk(PIECE)]);
    }
    FakeProvider::start(move |_| Reply::Stream(beats.clone())).await
}

async fn key(call: &Mk) -> String {
    let create = ["keys", "create", "--service", "inference", "--per-minute", "0", "--json"];
    let made = operator(&data_dir(call.home()), &create).run_beside().await;
    made.json()["key"].as_str().unwrap().to_owned()
}

async fn ask(base: &str, key: &str) -> Response {
    let url = format!("{base}/inference/v1/chat/completions");
    client().post(url).bearer_auth(key).json(&hello_stream()).send().await.unwrap()
}

/// When each piece came, until there are no more.
async fn pieces(response: Response) -> Vec<Instant> {
    let (mut stream, mut came) = (response.bytes_stream(), Vec::new());
    while let Some(Ok(bytes)) = stream.next().await {
        let count = std::str::from_utf8(&bytes).unwrap().matches(PIECE).count();
        came.extend(std::iter::repeat_n(Instant::now(), count));
    }
    came
}

fn ledger(data: &Path) -> Connection {
    let ledger = Connection::open(data.join("ledger.db")).unwrap();
    ledger.busy_timeout(Duration::from_secs(10)).unwrap();
    ledger
}

fn number(data: &Path, query: &str) -> i64 {
    ledger(data).query_row(query, [], |row| row.get(0)).unwrap()
}

/// Makes servers that are dead look as if they had been for a minute.
fn age(data: &Path) {
    ledger(data).execute("UPDATE calls_under_way SET seen_at = seen_at - 60000", []).unwrap();
}

fn open_entries(data: &Path) -> i64 {
    number(data, "SELECT count(*) FROM calls_under_way WHERE attempt_id IS NULL")
}

/// Sums are those of the attempts.
fn must_add_up(data: &Path) {
    let same = [
        ("sum(attempts) FROM usage_days", "count(*) FROM attempts"),
        ("sum(requests) FROM usage_days", "count(DISTINCT request_id) FROM attempts"),
        ("sum(errors) FROM usage_days", "0 FROM attempts"),
        ("sum(completion_tokens) FROM usage_days", "sum(completion_tokens) FROM attempts"),
        ("sum(cost_nano_usd) FROM usage_days", "sum(cost_nano_usd) FROM attempts"),
        ("sum(nano_usd) FROM spend WHERE subject LIKE 'key_%'", "sum(cost_nano_usd) FROM attempts"),
    ];
    for (one, other) in same {
        let of = |what: &str| number(data, &format!("SELECT {what}"));
        assert_eq!(of(one), of(other), "{one}, {other}");
    }
}

async fn end(server: Serve) {
    server.signal("INT");
    server.until_logged(1, |line| line.contains("shutting down")).await;
    server.signal("INT");
    let (_, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_killed_is_booked_but_for_its_last_second() {
    let provider = babbler().await;
    let call = serve::call(&provider.base_url, "");
    load::configure(&call);
    let data = data_dir(call.home());
    let server = Serve::start_beside(&call).await;
    let key = key(&call).await;
    let response = ask(&server.base, &key).await;
    let (reading, disk) = (tokio::spawn(pieces(response)), Disk::of(&data));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(number(&data, "SELECT count(*) FROM attempts"), 0);
    server.kill();
    let crash = Instant::now();
    let came = reading.await.unwrap();
    let safe = came.iter().filter(|at| disk.must_have(**at, crash)).count();
    assert!(came.len() >= 15, "{} pieces came", came.len());
    assert_eq!(open_entries(&data), 1);

    age(&data);
    let server = Serve::start_beside(&call).await;
    server.until_logged(1, |line| line.contains("recorded as interrupted")).await;
    let usage = operator(&data, &["usage", "--json"]).run_beside().await.json();
    let total: &Value = &usage["totals"];
    let booked = usize::try_from(total["completion_tokens"].as_u64().unwrap()).unwrap();
    let bounds = safe * TOKENS_OF_PIECE..=(came.len() + 1) * TOKENS_OF_PIECE;
    assert!(bounds.contains(&booked), "{booked} tokens of {bounds:?}");
    assert_eq!((&total["requests"], &total["attempts"], &total["errors"]), (&1.into(), &1.into(), &0.into()));
    assert_eq!(number(&data, "SELECT latency_ms BETWEEN 2000 AND 3500 FROM attempts"), 1);
    let page = client().get(format!("{}/metrics", server.base)).send().await.unwrap().text().await.unwrap();
    let counted = r#"mk_attempts_total{provider="fake",model="m",outcome="interrupted"} 1"#;
    assert!(page.contains(counted), "{page}");
    must_add_up(&data);

    // An orderly end books what is under way, and leaves nothing.
    let reading = tokio::spawn(pieces(ask(&server.base, &key).await));
    eventually("the journal knows it", || open_entries(&data) == 1).await;
    end(server).await;
    reading.await.unwrap();
    assert_eq!((open_entries(&data), number(&data, "SELECT count(*) FROM attempts")), (0, 2));
    must_add_up(&data);
    end(Serve::start_beside(&call).await).await;
    assert_eq!(number(&data, "SELECT count(*) FROM attempts"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_together_book_the_calls_of_a_dead_one_once_and_none_of_a_living_one() {
    let provider = babbler().await;
    let call = serve::call(&provider.base_url, "");
    load::configure(&call);
    let data = data_dir(call.home());
    let (dead, alive) = tokio::join!(Serve::start_beside(&call), Serve::start_beside(&call));
    let key = key(&call).await;
    let begin = |base: &str| {
        let (base, key) = (base.to_owned(), key.clone());
        tokio::spawn(async move { pieces(ask(&base, &key).await).await })
    };
    let doomed: Vec<_> = (0..8).map(|_| begin(&dead.base)).collect();
    let spared = begin(&alive.base);
    eventually("the journal knows all", || open_entries(&data) == 9).await;
    dead.kill();
    join_all(doomed).await;
    // The living one writes again before anybody else looks.
    let living = "(SELECT server FROM calls_under_way GROUP BY server HAVING count(*) = 1)";
    let sql = format!("UPDATE calls_under_way SET seen_at = seen_at - 60000 WHERE server NOT IN {living}");
    ledger(&data).execute(&sql, []).unwrap();
    let more = join_all((0..3).map(|_| Serve::start_beside(&call))).await;
    let booked = "SELECT count(*) FROM attempts WHERE outcome = 'interrupted'";
    eventually("they are booked", || number(&data, booked) == 8).await;
    // As long as everybody looks once more.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!((number(&data, "SELECT count(*) FROM attempts"), open_entries(&data)), (8, 1));
    must_add_up(&data);
    for server in more.into_iter().chain([alive]) {
        end(server).await;
    }
    spared.await.unwrap();
    assert_eq!((number(&data, "SELECT count(*) FROM attempts"), open_entries(&data)), (9, 0));
    must_add_up(&data);
}
