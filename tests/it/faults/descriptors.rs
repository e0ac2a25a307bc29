//! More connections than the server has file descriptors for.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, View, problems, provider, reports};
use crate::support::chat::hello;
use crate::support::serve;

/// The number of callers that connect and send nothing. Less than the kernel's backlog for a listening socket.
const CALLERS: usize = 100;

async fn crowd(fixture: &Fixture) -> Vec<TcpStream> {
    let authority = fixture.server.base.trim_start_matches("http://");
    let mut crowd = Vec::new();
    for _ in 0..CALLERS {
        crowd.push(TcpStream::connect(authority).await.unwrap());
    }
    crowd
}

/// Sends a completion request on an open connection; returns the raw response.
async fn chat_on(stream: &mut TcpStream, key: &str) -> String {
    let body = hello().to_string();
    let head = format!(
        "POST /inference/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(Duration::from_mins(1), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_callers_cannot_exhaust_the_descriptors() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let fixture = Fixture::of(call.after("ulimit -n 64"), View::Plain).await;
    let mut crowd = crowd(&fixture).await;
    // The last in the queue is served although none of the others leaves: idle ones make room. Descriptors are reserved
    // for providers and databases.
    let answer = chat_on(crowd.last_mut().unwrap(), &fixture.chat).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("four"), "{answer}");
    drop(crowd);
    fixture.chat_must_succeed().await;
    fixture.verify_must_succeed().await;
    let log = fixture.end().await;
    assert!(
        reports(&log, &["few connections are possible", "\"connections\":8", "\"open_files\":64"]),
        "{:?}",
        problems(&log)
    );
    let full = "the limit of open connections is reached; idle ones are closed for new ones";
    assert!(reports(&log, &[full, "\"max\":8"]), "{:?}", problems(&log));
    assert_eq!(problems(&log).len(), 2, "{:?}", problems(&log));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn out_of_descriptors_the_server_waits_without_flooding_the_log_and_recovers() {
    use rustix::process::{Pid, Resource, prlimit};

    let provider = provider().await;
    let fixture = Fixture::start(&provider).await;
    fixture.chat_must_succeed().await;
    let id = fixture.server.process();
    let usual = prlimit(Pid::from_raw(id.try_into().unwrap()), Resource::Nofile, lowered(id)).unwrap();
    let crowd = crowd(&fixture).await;
    let before = cpu_ticks(id);
    tokio::time::sleep(Duration::from_secs(4)).await;
    // A hundred ticks are one second; a busy loop would use all four seconds.
    let used = cpu_ticks(id) - before;
    assert!(used < 200, "{used} ticks of processor time in four seconds");
    drop(crowd);
    fixture.chat_must_succeed().await;
    prlimit(Pid::from_raw(id.try_into().unwrap()), Resource::Nofile, usual).unwrap();
    fixture.chat_must_succeed().await;
    fixture.verify_must_succeed().await;
    assert_eq!(fixture.create().await.status(), 201);
    let log = fixture.end().await;
    assert!(reports(&log, &["cannot accept a connection", "oo many open files"]), "{:?}", problems(&log));
    assert!(problems(&log).len() <= 4, "{:?}", problems(&log));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_for_lack_of_descriptors_is_not_blamed_on_its_provider() {
    for host in ["127.0.0.1", "localhost"] {
        call_without_descriptors(host).await;
    }
}

#[cfg(target_os = "linux")]
async fn call_without_descriptors(host: &str) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let provider = provider().await;
    // A host name has to be resolved first, which fails in different ways.
    let base_url = provider.base_url.replace("127.0.0.1", host);
    let fixture = Fixture::of(serve::call(&base_url, ""), View::Plain).await;
    let id = fixture.server.process();
    let process = Pid::from_raw(id.try_into().unwrap());
    let limit = |limit| prlimit(process, Resource::Nofile, limit).unwrap();
    // All requests use one connection, so that the server needs a descriptor only for its provider.
    let caller = reqwest::Client::new();
    let models = format!("{}/inference/v1/models", fixture.server.base);
    let listed = caller.get(models).bearer_auth(&fixture.chat).send().await.unwrap();
    assert_eq!(listed.status(), 200);
    listed.bytes().await.unwrap();
    let is_free = |number: &u64| !std::path::Path::new(&format!("/proc/{id}/fd/{number}")).exists();
    let lowest = (0..1_000).find(is_free);
    let usual = limit(Rlimit { current: lowest, ..rustix::process::getrlimit(Resource::Nofile) });

    // More consecutive failures in total than it takes to open the circuit breaker.
    for _ in 0..6 {
        let url = format!("{}/inference/v1/chat/completions", fixture.server.base);
        let refused = caller.post(url).bearer_auth(&fixture.chat).json(&hello()).send().await.unwrap();
        let (status, wait) = (refused.status(), refused.headers().get("retry-after").cloned());
        let error: serde_json::Value = refused.json().await.unwrap();
        assert_eq!((status.as_u16(), &error["code"]), (503, &"server_overloaded".into()), "{host}: {error}");
        assert_eq!(wait.unwrap(), "5");
        assert!(error.get("provider").is_none(), "{error}");
        assert!(error["message"].as_str().unwrap().contains("try again"), "{error}");
    }
    limit(usual);
    fixture.chat_must_succeed().await;
    fixture.verify_must_succeed().await;
    let log = fixture.end().await;
    assert!(reports(&log, &["no file descriptor", "oo many open files"]), "{host}: {:?}", problems(&log));
    // No caller was waiting, but after every connection the server tries to accept another, which may fail as well. On a
    // slow machine, so may what the server does every second.
    let unrelated = ["request", "cannot accept a connection; trying again", "cannot check for revoked keys"];
    let told =
        problems(&log).into_iter().filter(|line| !unrelated.iter().any(|name| line["message"] == *name));
    assert_eq!(told.count(), 1, "{host}: {:?}", problems(&log));
}

#[cfg(target_os = "linux")]
/// A limit that leaves room for a few more descriptors than are open now.
fn lowered(process: u32) -> rustix::process::Rlimit {
    use rustix::process::{Resource, Rlimit};
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    Rlimit { current: Some(open as u64 + 12), maximum }
}

#[cfg(target_os = "linux")]
/// The processor time that the process has used, in user and system mode, in ticks.
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
