//! Callers who are slow, silent, gone half way, or many: each costs a bounded amount of time.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::chat::{Desk, desk_with, hello, hello_stream};
use crate::support::events::read_until;
use crate::support::panel::{agreeing_panel, config, hanging_panel};
use crate::support::provider::{Beat, FakeProvider, Turn, role_chunk};
use crate::support::raw::{head, post, request};
use crate::support::server::{Setup, TestServer, client};
use crate::support::{PROMPT, eventually};

/// Waits until the server has closed, and returns what it had sent.
async fn rest_of(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    let ended = tokio::time::timeout(Duration::from_secs(10), read).await;
    // A reset is an end as well.
    let _ = ended.expect("the server did not close");
    String::from_utf8_lossy(&rest).into_owned()
}

#[tokio::test]
async fn a_caller_who_leaves_with_bytes_unread_is_noticed() {
    let (server, provider) = hanging_panel().await;
    let key = server.key(Service::Verify);
    let next = "GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";
    for (accept, pipelined) in [
        ("application/json", String::new()),
        ("application/json", next.to_owned()),
        ("text/event-stream", next.to_owned()),
        ("text/event-stream", next.repeat(2_000)),
    ] {
        let mut stream = TcpStream::connect(server.authority()).await.unwrap();
        let request = post(&key, &[("accept", accept)], r#"{"fact":"x"}"#);
        stream.write_all(&[request.as_bytes(), pipelined.as_bytes()].concat()).await.unwrap();
        eventually("the panel is asked", || provider.in_flight() == 3).await;
        drop(stream);
        let left = Instant::now();
        eventually("the calls stop", || provider.in_flight() == 0).await;
        assert!(left.elapsed() < PROMPT, "{accept}: {:?}", left.elapsed());
    }
}

#[tokio::test]
async fn who_stops_sending_gets_a_quick_answer_and_has_left_a_long_one() {
    let (server, provider) = hanging_panel().await;
    let key = server.key(Service::Verify);
    let send = async |request: String| {
        let mut stream = TcpStream::connect(server.authority()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        rest_of(&mut stream).await
    };
    let health = send("GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n".to_owned()).await;
    assert!(health.ends_with("{\"status\":\"ok\"}"), "{health}");
    let refused = send(post(&key, &[], "{}")).await;
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    let half_sent = send(post(&key, &[], "{}").replace("content-length: 2", "content-length: 9")).await;
    assert!(half_sent.starts_with("HTTP/1.1 400 "), "{half_sent}");
    send(post(&key, &[], r#"{"fact":"x"}"#)).await;
    eventually("no call goes on", || provider.in_flight() == 0).await;
}

#[tokio::test]
async fn a_refusal_reaches_a_caller_who_is_still_sending() {
    let (server, _provider) = agreeing_panel().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(0));
    let large = "x".repeat(16 << 20);
    let spread = format!("GET /verify/v1/health HTTP/1.1\r\nhost: x\r\nx-fill: {large}\r\n\r\n");
    for _ in 0..3 {
        for (request, status) in [
            (post("wrong", &[], &large), 401),
            (post(&key, &[], &large), 413),
            (post(&key, &[("x", "y")], &large).replace("application/json", "text/plain"), 413),
            (spread.clone(), 431),
        ] {
            let mut stream = TcpStream::connect(server.authority()).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap_or_else(|cause| panic!("{status}: {cause}"));
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap_or_else(|cause| panic!("{status}: {cause}"));
            assert_eq!(&answer, format!("HTTP/1.1 {status}").as_bytes());
        }
    }
}

#[tokio::test]
async fn bodies_that_do_not_arrive_are_given_up() {
    let provider = FakeProvider::start(|_| Turn::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .options(|options| {
            options.body_idle = Duration::from_millis(200);
            options.body_total = Duration::from_millis(800);
        })
        .start()
        .await;
    let key = server.key(Service::Verify);
    let request = head(&key, &[("content-length", "1000")]);

    let mut silent = TcpStream::connect(server.authority()).await.unwrap();
    silent.write_all(request.as_bytes()).await.unwrap();
    let answer = rest_of(&mut silent).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains("\r\nx-ratelimit-remaining: 59\r\n"), "a request is a request: {answer}");
    assert!(answer.contains(r#""code":"request_timeout""#), "{answer}");

    let mut dribbling = TcpStream::connect(server.authority()).await.unwrap();
    dribbling.write_all(request.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = dribbling.into_split();
    let dribble = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut answer = [0; 12];
    tokio::select! {
        () = dribble => panic!("cut off without an answer"),
        read = reader.read_exact(&mut answer) => { read.unwrap(); }
        () = tokio::time::sleep(Duration::from_secs(10)) => panic!("never given up"),
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_caller_who_does_not_read_is_cut_off() {
    let fact = "x".repeat(12 << 20);
    let provider = FakeProvider::start(|_| Turn::json(&json!({"claims": [], "skipped": ["x"]}))).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| {
            config.max_body_bytes = 32 << 20;
            config.verify.general.max_fact_chars = 32 << 20;
        })
        .options(|options| options.write_timeout = Duration::from_millis(300))
        .start()
        .await;
    let key = server.key(Service::Verify);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.authority().parse().unwrap()).await.unwrap();
    let request = post(&key, &[], &json!({"fact": fact}).to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    // The whole answer holds the statement again, which no buffer on the way can hold.
    eventually("the connection is over", || stream.try_write(b" ").is_err()).await;
    assert_eq!(provider.asks().len(), 1);
    let answer = rest_of(&mut stream).await;
    assert!(answer.contains("event: starting\n") && answer.len() < fact.len(), "{} bytes", answer.len());
}

#[tokio::test]
async fn an_answer_that_is_taken_slowly_is_no_silence() {
    let text = "x".repeat(4 << 20);
    let answer = text.clone();
    let short = |setup: Setup| {
        setup.options(|options| {
            options.header_timeout = Duration::from_millis(300);
            options.write_timeout = Duration::from_secs(5);
        })
    };
    let desk = desk_with("", "", short, move |_| Turn::Text(answer.clone())).await;
    let mut stream = connect_with_little_room(&desk.server).await;
    stream.write_all(&asked(&desk)).await.unwrap();
    // Longer than a head may take, and never so long without a byte.
    for _ in 0..12 {
        stream.read_exact(&mut vec![0; 64 * 1024]).await.expect("cut off");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rest = rest_of(&mut stream).await;
    assert!(rest.len() > text.len() - 12 * 64 * 1024 && rest.ends_with('}'), "{} bytes", rest.len());
}

#[tokio::test]
async fn who_has_taken_an_answer_late_has_all_the_time_for_the_next_request() {
    let text = "x".repeat(7 << 20);
    let limit = Duration::from_secs(1);
    let short = |setup: Setup| setup.options(|options| options.header_timeout = limit);
    let answer = text.clone();
    let desk = desk_with("", "", short, move |_| Turn::Text(answer.clone())).await;
    let mut stream = connect_with_little_room(&desk.server).await;
    stream.write_all(&asked(&desk)).await.unwrap();
    stream.read_exact(&mut [0; 1024]).await.unwrap();
    let untaken = limit.mul_f64(0.8);
    tokio::time::sleep(untaken).await;
    // Nearly all, so that the rest has been sent as well.
    stream.read_exact(&mut vec![0; text.len() - 1024]).await.unwrap();
    tokio::time::sleep(limit.mul_f64(0.4)).await;
    stream.write_all(b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let rest = rest_of(&mut stream).await;
    assert!(rest.ends_with("{\"status\":\"ok\"}"), "{rest}");
}

#[tokio::test]
async fn an_answer_that_is_being_taken_is_sent_whole_when_the_server_ends() {
    let text = "x".repeat(7 << 20);
    let answer = text.clone();
    let mut desk = desk_with("", "", |setup| setup, move |_| Turn::Text(answer.clone())).await;
    let mut stream = connect_with_little_room(&desk.server).await;
    stream.write_all(&asked(&desk)).await.unwrap();
    let mut taken = 1024;
    stream.read_exact(&mut vec![0; taken]).await.unwrap();
    desk.server.begin_shutdown();
    // For longer than a server that ends waits for a head.
    for _ in 0..25 {
        stream.read_exact(&mut vec![0; 64 * 1024]).await.expect("cut off");
        taken += 64 * 1024;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let rest = rest_of(&mut stream).await;
    assert!(taken + rest.len() > text.len() && rest.ends_with('}'), "{} bytes", taken + rest.len());
}

/// A connection on which little can be on its way.
async fn connect_with_little_room(server: &TestServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    socket.connect(server.authority().parse().unwrap()).await.unwrap()
}

/// A request for a completion, its connection kept.
fn asked(desk: &Desk) -> Vec<u8> {
    let body = hello().to_string();
    let head = head(&desk.key, &[("content-length", body.len().to_string().as_str())]);
    (head.replace("/verify/v1/stream", "/inference/v1/chat/completions") + &body).into_bytes()
}

#[tokio::test]
async fn a_kept_connection_that_idles_is_closed() {
    let provider = FakeProvider::start(|_| Turn::Hang).await;
    let setup = Setup::new(config(&provider.base_url));
    let server = setup.options(|options| options.header_timeout = Duration::from_millis(300)).start().await;
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream.write_all(b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let answer = rest_of(&mut stream).await;
    assert!(answer.ends_with("{\"status\":\"ok\"}"), "{answer}");
}

#[tokio::test]
async fn a_full_server_serves_again_when_connections_end() {
    let provider = FakeProvider::start(|_| Turn::Hang).await;
    let setup = Setup::new(config(&provider.base_url));
    let server = setup.options(|options| options.max_connections = 2).start().await;
    let mut first = TcpStream::connect(server.authority()).await.unwrap();
    let second = TcpStream::connect(server.authority()).await.unwrap();
    // Both are accepted once the first is answered and the third is not.
    first.write_all(b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    first.read_exact(&mut [0; 12]).await.unwrap();
    let health = client().get(format!("{}/verify/v1/health", server.base)).send();
    let waiting = tokio::spawn(health);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished(), "a third connection was served");
    drop(second);
    let answered = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("still full");
    assert_eq!(answered.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn a_storm_of_silent_connections_passes() {
    let (server, _provider) = agreeing_panel().await;
    let mut silent = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(server.authority()).await.unwrap();
        if n % 3 == 0 {
            stream.write_all(b"POST /verify").await.unwrap();
        }
        silent.push(stream);
    }
    let health = async || {
        let response = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
        assert_eq!(response.json::<Value>().await.unwrap(), json!({"status": "ok"}));
    };
    health().await;
    drop(silent);
    health().await;
}

#[tokio::test]
async fn revocation_cuts_a_stream_within_a_second() {
    let (server, _provider) = hanging_panel().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    let mut stream = server.verify(&key, &json!({"fact": "x"})).send().await.unwrap().bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let revoked = Instant::now();
    while stream.next().await.is_some() {}
    assert!(revoked.elapsed() < Duration::from_secs(1), "{:?}", revoked.elapsed());
}

#[tokio::test]
async fn a_caller_who_takes_no_more_of_a_stream_keeps_nobody_else_waiting() {
    let line =
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(9_000)}}]}));
    let limits = "max_concurrent = 1\ntotal_timeout = \"1s\"";
    let desk = desk_with(
        limits,
        "",
        |setup| setup,
        move |ask| {
            if ask.body["stream"] == true {
                return Turn::Stream(vec![role_chunk(), Beat::Repeat(line.clone(), 10_000)]);
            }
            Turn::Text("Hi".to_owned())
        },
    )
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(desk.server.authority().parse().unwrap()).await.unwrap();
    let bearer = format!("Bearer {}", desk.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let asked = request("POST", "/inference/v1/chat/completions", &headers, &hello_stream().to_string());
    stream.write_all(&asked).await.unwrap();
    stream.read_exact(&mut [0; 12]).await.unwrap();
    eventually("the provider is left alone", || desk.provider.abandoned() == 1).await;
    assert_eq!(desk.ask(&hello()).await.status(), 200);
    assert!(stream.try_write(b" ").is_ok(), "what is left would reach the caller");
    assert!(rest_of(&mut stream).await.contains(r#""code":"provider_timeout""#));
}
