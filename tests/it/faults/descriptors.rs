//! More connections than there are descriptors for.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::desk::{Desk, View, provider, tells, troubles};
use crate::support::chat::hello;
use crate::support::serve;

/// So many callers come and say nothing. Fewer than what the kernel lets wait for a server.
const CALLERS: usize = 100;

async fn crowd(desk: &Desk) -> Vec<TcpStream> {
    let authority = desk.server.base.trim_start_matches("http://");
    let mut crowd = Vec::new();
    for _ in 0..CALLERS {
        crowd.push(TcpStream::connect(authority).await.unwrap());
    }
    crowd
}

/// A completion on a connection that is open already.
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
async fn callers_alone_cannot_use_up_the_descriptors() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let desk = Desk::of(call.after("ulimit -n 64"), View::Plain).await;
    let mut crowd = crowd(&desk).await;
    // Whoever is inside is served, by providers and databases that have descriptors of their own.
    let answer = chat_on(&mut crowd[0], &desk.chat).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("four"), "{answer}");
    // Whoever waits is served when others leave.
    let mut last = crowd.pop().unwrap();
    drop(crowd);
    let answer = chat_on(&mut last, &desk.chat).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    desk.must_chat().await;
    desk.must_verify().await;
    let log = desk.end().await;
    assert!(
        tells(&log, &["few connections at once", "\"connections\":8", "\"open_files\":64"]),
        "{:?}",
        troubles(&log)
    );
    assert_eq!(troubles(&log).len(), 1, "{:?}", troubles(&log));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_it_waits_without_a_flood_and_goes_on() {
    use rustix::process::{Pid, Resource, prlimit};

    let provider = provider().await;
    let desk = Desk::start(&provider).await;
    desk.must_chat().await;
    let id = desk.server.process();
    let usual = prlimit(Pid::from_raw(id.try_into().unwrap()), Resource::Nofile, lowered(id)).unwrap();
    let crowd = crowd(&desk).await;
    let before = cpu_ticks(id);
    tokio::time::sleep(Duration::from_secs(4)).await;
    // A hundred ticks are a second; a loop that does not wait takes all of the four.
    let used = cpu_ticks(id) - before;
    assert!(used < 200, "{used} ticks of processor time in four seconds");
    drop(crowd);
    desk.must_chat().await;
    prlimit(Pid::from_raw(id.try_into().unwrap()), Resource::Nofile, usual).unwrap();
    desk.must_chat().await;
    desk.must_verify().await;
    assert_eq!(desk.create().await.status(), 201);
    let log = desk.end().await;
    assert!(tells(&log, &["cannot accept a connection", "oo many open files"]), "{:?}", troubles(&log));
    assert!(troubles(&log).len() <= 4, "{:?}", troubles(&log));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_finds_no_descriptor_is_not_held_against_its_provider() {
    for host in ["127.0.0.1", "localhost"] {
        call_without_descriptors(host).await;
    }
}

#[cfg(target_os = "linux")]
async fn call_without_descriptors(host: &str) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let provider = provider().await;
    // A name has to be looked up first, which fails in ways of its own.
    let base_url = provider.base_url.replace("127.0.0.1", host);
    let desk = Desk::of(serve::call(&base_url, ""), View::Plain).await;
    let id = desk.server.process();
    let process = Pid::from_raw(id.try_into().unwrap());
    let limit = |limit| prlimit(process, Resource::Nofile, limit).unwrap();
    // One connection for all, so that the server needs no descriptor but for its provider.
    let caller = reqwest::Client::new();
    let models = format!("{}/inference/v1/models", desk.server.base);
    let listed = caller.get(models).bearer_auth(&desk.chat).send().await.unwrap();
    assert_eq!(listed.status(), 200);
    listed.bytes().await.unwrap();
    let is_free = |number: &u64| !std::path::Path::new(&format!("/proc/{id}/fd/{number}")).exists();
    let lowest = (0..1_000).find(is_free);
    let usual = limit(Rlimit { current: lowest, ..rustix::process::getrlimit(Resource::Nofile) });

    // Together more failures in a row than open any breaker.
    for _ in 0..6 {
        let url = format!("{}/inference/v1/chat/completions", desk.server.base);
        let refused = caller.post(url).bearer_auth(&desk.chat).json(&hello()).send().await.unwrap();
        let (status, wait) = (refused.status(), refused.headers().get("retry-after").cloned());
        let error: serde_json::Value = refused.json().await.unwrap();
        assert_eq!((status.as_u16(), &error["code"]), (503, &"server_overloaded".into()), "{host}: {error}");
        assert_eq!(wait.unwrap(), "5");
        assert!(error.get("provider").is_none(), "{error}");
        assert!(error["message"].as_str().unwrap().contains("try again"), "{error}");
    }
    limit(usual);
    desk.must_chat().await;
    desk.must_verify().await;
    let log = desk.end().await;
    assert!(tells(&log, &["no descriptor", "oo many open files"]), "{host}: {:?}", troubles(&log));
    // Nobody waited to be accepted, but that is tried once more behind each connection.
    let beside = ["request", "cannot accept a connection; it waits, and is tried again"];
    let told = troubles(&log).into_iter().filter(|line| !beside.iter().any(|name| line["message"] == *name));
    assert_eq!(told.count(), 1, "{host}: {:?}", troubles(&log));
}

#[cfg(target_os = "linux")]
/// Room for a few more than are open now.
fn lowered(process: u32) -> rustix::process::Rlimit {
    use rustix::process::{Resource, Rlimit};
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    Rlimit { current: Some(open as u64 + 12), maximum }
}

#[cfg(target_os = "linux")]
/// What the process has used, in user and system mode.
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
