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
