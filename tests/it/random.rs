//! Random callers: no call to a provider outlives them, and each call is recorded once.

use std::time::Duration;

use mk::api::Service;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::eventually;
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::post;
use crate::support::server::{Setup, TestServer};

/// What a caller does.
#[derive(Clone, Debug)]
enum Caller {
    /// Reads to the end.
    Patient { json: bool },
    /// Disconnects after this many bytes of the response.
    Leaves { after: usize },
    /// Sends only this many bytes of the request and disconnects.
    SendsHalf { bytes: usize },
    /// Sends, closes its sending side, and continues to read.
    HalfCloses,
    /// Pipelines a second request and disconnects.
    Pipelines { json: bool },
    /// Its key is revoked during the response.
    Revoked,
    /// Sends garbage after a valid request.
    Garbage,
}

fn caller() -> impl Strategy<Value = Caller> {
    prop_oneof![
        any::<bool>().prop_map(|json| Caller::Patient { json }),
        (0_usize..3000).prop_map(|after| Caller::Leaves { after }),
        (0_usize..300).prop_map(|bytes| Caller::SendsHalf { bytes }),
        Just(Caller::HalfCloses),
        any::<bool>().prop_map(|json| Caller::Pipelines { json }),
        Just(Caller::Revoked),
        Just(Caller::Garbage),
    ]
}

async fn act(server: &TestServer, caller: Caller) {
    let (key, id) = server.key_with(Service::Verify, |_| {});
    let accept = |json: bool| [("accept", if json { "application/json" } else { "text/event-stream" })];
    let fact = r#"{"fact":"The Eiffel Tower is in Paris."}"#;
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    let mut answer = Vec::new();
    let stream_of = |json: bool| post(&key, &accept(json), fact);
    let once = |json: bool| stream_of(json).replacen("\r\n", "\r\nconnection: close\r\n", 1);
    // The server may also close the connection of such a caller.
    let _ = match caller {
        Caller::Patient { json } => {
            stream.write_all(once(json).as_bytes()).await.unwrap();
            stream.read_to_end(&mut answer).await
        }
        Caller::Leaves { after } => {
            stream.write_all(once(false).as_bytes()).await.unwrap();
            answer.resize(after, 0);
            stream.read_exact(&mut answer).await
        }
        Caller::SendsHalf { bytes } => {
            let request = stream_of(true);
            stream.write_all(&request.as_bytes()[..bytes.min(request.len())]).await.map(|()| 0)
        }
        Caller::HalfCloses => {
            stream.write_all(stream_of(false).as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            stream.read_to_end(&mut answer).await
        }
        Caller::Pipelines { json } => {
            stream.write_all(stream_of(json).repeat(2).as_bytes()).await.unwrap();
            stream.read(&mut [0; 64]).await
        }
        Caller::Revoked => {
            stream.write_all(stream_of(false).as_bytes()).await.unwrap();
            answer.resize(300, 0);
            let _ = stream.read_exact(&mut answer).await;
            server.app.store.revoke_key(&id, server.clock.now()).unwrap();
            stream.shutdown().await.unwrap();
            stream.read_to_end(&mut answer).await
        }
        Caller::Garbage => {
            stream.write_all((stream_of(false) + "GARBAGE\r\n\r\n").as_bytes()).await.unwrap();
            stream.read_to_end(&mut answer).await
        }
    };
}

async fn run(callers: Vec<Caller>) {
    let provider = FakeProvider::start(|ask| match ask.model.as_str() {
        "extractor" => finds_eiffel(),
        "three" => Reply::Hang,
        _ => ask.choose("Paris").after(Duration::from_millis(5)),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.model_timeout = Duration::from_secs(2))
        .start()
        .await;
    let acts = futures_util::future::join_all(callers.into_iter().map(|caller| act(&server, caller)));
    tokio::time::timeout(Duration::from_secs(20), acts)
        .await
        .expect("a caller got neither a response nor the end of its connection");
    eventually("no call is left", || provider.in_flight() == 0).await;

    let data = server.dir.path().join("data");
    let dir = server.dir.clone();
    server.shutdown().await;
    let calls = i64::try_from(provider.requests().len()).unwrap();
    let ledger = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
    let count = |condition: &str| -> i64 {
        let query = format!("SELECT count(*) FROM attempts WHERE {condition}");
        ledger.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    // An attempt may be cancelled before its request has reached the provider; every other row has a request.
    assert!(count("true") >= calls, "{} rows for {calls} calls", count("true"));
    assert!(count("outcome <> 'cancelled'") <= calls);
    drop(dir);
}

#[test]
fn no_call_outlives_its_caller() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config {
        cases: 6,
        max_shrink_iters: 8,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&prop::collection::vec(caller(), 1..12), |callers| {
        runtime.block_on(run(callers));
        Ok(())
    });
    outcome.unwrap();
}
