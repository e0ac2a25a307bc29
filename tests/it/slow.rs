//! Callers that are slow, silent, disconnected half way, or many: each takes up the server for a limited time only.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::chat::{Gateway, gateway, gateway_with, hello, hello_stream};
use crate::support::events::read_until;
use crate::support::panel::{agreeing_panel, config, hanging_panel};
use crate::support::provider::{FakeProvider, Reply, StreamStep, done, finish_chunk, role_chunk, text_chunk};
use crate::support::raw::{head, post, request};
use crate::support::server::{Setup, TestServer, client};
use crate::support::{PROMPT, eventually};

/// Waits until the server closes the connection, and returns what it has sent.
async fn rest_of(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    let ended = tokio::time::timeout(Duration::from_secs(10), read).await;
    // A reset also counts as closing.
    let _ = ended.expect("the server did not close");
    String::from_utf8_lossy(&rest).into_owned()
}

#[tokio::test]
async fn a_disconnect_is_noticed_although_pipelined_bytes_are_unread() {
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
        let request = post(&key, &[("accept", accept)], r#"{"fact":"The Eiffel Tower is in Paris."}"#);
        stream.write_all(&[request.as_bytes(), pipelined.as_bytes()].concat()).await.unwrap();
        eventually("the panel is asked", || provider.in_flight() == 3).await;
        drop(stream);
        let left = Instant::now();
        eventually("the calls stop", || provider.in_flight() == 0).await;
        assert!(left.elapsed() < PROMPT, "{accept}: {:?}", left.elapsed());
    }
}

#[tokio::test]
async fn a_half_closed_connection_gets_quick_responses_but_no_verifications() {
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
    send(post(&key, &[], r#"{"fact":"The Eiffel Tower is in Paris."}"#)).await;
    eventually("no call is left", || provider.in_flight() == 0).await;
}

#[tokio::test]
async fn a_refusal_reaches_a_caller_that_is_still_sending() {
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
async fn bodies_that_do_not_arrive_time_out() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
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
    assert!(answer.contains("\r\nx-ratelimit-remaining: 59\r\n"), "the request counts: {answer}");
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
        () = dribble => panic!("closed without a response"),
        read = reader.read_exact(&mut answer) => { read.unwrap(); }
        () = tokio::time::sleep(Duration::from_secs(10)) => panic!("never timed out"),
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_caller_that_does_not_read_is_disconnected() {
    // What ends in a colon states nothing, so that nothing of it goes back to the extractor.
    let fact = "x".repeat(8 << 20) + ":";
    let provider = FakeProvider::start(|_| Reply::json(&json!({"claims": [], "skipped": []}))).await;
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
    // The response repeats the statement, which is larger than all buffers on the way.
    eventually("the connection is closed", || stream.try_write(b" ").is_err()).await;
    assert_eq!(provider.requests().len(), 1);
    let answer = rest_of(&mut stream).await;
    assert!(answer.contains("event: starting\n") && answer.len() < fact.len(), "{} bytes", answer.len());
}

#[tokio::test]
async fn a_caller_that_reads_slowly_is_not_disconnected() {
    let text = "x".repeat(4 << 20);
    let answer = text.clone();
    let short = |setup: Setup| {
        setup.options(|options| {
            options.header_timeout = Duration::from_millis(300);
            options.write_timeout = Duration::from_secs(5);
        })
    };
    let gateway = gateway_with("", "", short, move |_| Reply::Text(answer.clone())).await;
    let mut stream = connect_with_small_buffer(&gateway.server).await;
    stream.write_all(&completion_request(&gateway)).await.unwrap();
    // In total longer than the header timeout, but never that long without a byte.
    for _ in 0..12 {
        stream.read_exact(&mut vec![0; 64 * 1024]).await.expect("the connection was closed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rest = rest_of(&mut stream).await;
    assert!(rest.len() > text.len() - 12 * 64 * 1024 && rest.ends_with('}'), "{} bytes", rest.len());
}

#[tokio::test]
async fn after_a_late_read_the_next_request_has_its_full_header_timeout() {
    let text = "x".repeat(7 << 20);
    let limit = Duration::from_secs(3);
    let short = |setup: Setup| setup.options(|options| options.header_timeout = limit);
    let answer = text.clone();
    let gateway = gateway_with("", "", short, move |_| Reply::Text(answer.clone())).await;
    let mut stream = connect_with_small_buffer(&gateway.server).await;
    stream.write_all(&completion_request(&gateway)).await.unwrap();
    stream.read_exact(&mut [0; 1024]).await.unwrap();
    let unread = limit.mul_f64(0.8);
    tokio::time::sleep(unread).await;
    // Nearly all, so that the server has been able to send the rest.
    stream.read_exact(&mut vec![0; text.len() - 1024]).await.unwrap();
    tokio::time::sleep(limit.mul_f64(0.4)).await;
    stream.write_all(b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let rest = rest_of(&mut stream).await;
    assert!(rest.ends_with("{\"status\":\"ok\"}"), "{rest}");
}

#[tokio::test]
async fn a_response_that_is_being_read_is_completed_during_shutdown() {
    let text = "x".repeat(7 << 20);
    let answer = text.clone();
    let mut gateway = gateway_with("", "", |setup| setup, move |_| Reply::Text(answer.clone())).await;
    let mut stream = connect_with_small_buffer(&gateway.server).await;
    stream.write_all(&completion_request(&gateway)).await.unwrap();
    let mut read = 1024;
    stream.read_exact(&mut vec![0; read]).await.unwrap();
    gateway.server.begin_shutdown();
    // Longer than a server that shuts down waits for the head of a request.
    for _ in 0..25 {
        stream.read_exact(&mut vec![0; 64 * 1024]).await.expect("the connection was closed");
        read += 64 * 1024;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let rest = rest_of(&mut stream).await;
    assert!(read + rest.len() > text.len() && rest.ends_with('}'), "{} bytes", read + rest.len());
}

/// Opens a connection with a small receive buffer.
async fn connect_with_small_buffer(server: &TestServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    socket.connect(server.authority().parse().unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_complete_stream_keeps_its_end_if_its_key_is_revoked_while_it_is_being_read() {
    let text = "x".repeat(3 << 20);
    let gateway = gateway(move |ask| {
        if ask.text() == "stall" {
            return Reply::Stream(vec![role_chunk(), StreamStep::Stall]);
        }
        let end = [text_chunk(&text), finish_chunk("stop"), done()].map(|step| match step {
            StreamStep::Send(chunk) => chunk,
            _ => unreachable!(),
        });
        // The first chunk fills the buffers of the system, so that the end stays in the server's.
        Reply::Stream(vec![text_chunk(&text), StreamStep::APART, StreamStep::Send(end.concat())])
    })
    .await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});
    let mut body = hello_stream();
    let mut reading = connect_with_small_buffer(&gateway.server).await;
    reading.write_all(&stream_request(&key, &body)).await.unwrap();
    eventually("the stream is complete", || !gateway.rows().is_empty()).await;
    body["messages"][0]["content"] = json!("stall");
    let other = gateway.post_as(&key, body.to_string()).send().await.unwrap();
    gateway.server.app.store.revoke_key(&id, gateway.server.clock.now()).unwrap();
    let ended = other.text().await.unwrap();
    assert!(ended.contains("api_key_revoked"), "{ended}");
    let raw = rest_of(&mut reading).await;
    assert_eq!((raw.matches("data: [DONE]").count(), raw.matches("\"error\"").count()), (1, 0));
}

/// A request for a completion on a connection that is kept open.
fn completion_request(gateway: &Gateway) -> Vec<u8> {
    chat_request(&gateway.key, &hello(), &[])
}

/// A request for a streamed completion on a connection that is closed after it.
fn stream_request(key: &str, body: &Value) -> Vec<u8> {
    chat_request(key, body, &[("connection", "close"), ("x-request-id", "req-1")])
}

fn chat_request(key: &str, body: &Value, headers: &[(&str, &str)]) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len().to_string();
    let head = head(key, &[&[("content-length", length.as_str())], headers].concat());
    (head.replace("/verify/v1/stream", "/inference/v1/chat/completions") + &body).into_bytes()
}

#[tokio::test]
async fn an_idle_kept_alive_connection_is_closed() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let setup = Setup::new(config(&provider.base_url));
    let server = setup.options(|options| options.header_timeout = Duration::from_millis(300)).start().await;
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream.write_all(b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let answer = rest_of(&mut stream).await;
    assert!(answer.ends_with("{\"status\":\"ok\"}"), "{answer}");
}

#[tokio::test]
async fn a_full_server_accepts_again_when_connections_close() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let setup = Setup::new(config(&provider.base_url));
    let full = setup.options(|options| {
        options.max_connections = 2;
        // Idle connections do not make room: only one that closes does.
        options.evictable_after = Duration::from_hours(1);
    });
    let server = full.start().await;
    let mut first = TcpStream::connect(server.authority()).await.unwrap();
    let second = TcpStream::connect(server.authority()).await.unwrap();
    // Once the first gets a response and the third does not, both have been accepted.
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
async fn a_storm_of_silent_connections_does_not_stop_the_server() {
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
async fn a_revocation_ends_a_stream_within_a_second() {
    let (server, _provider) = hanging_panel().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    let mut stream = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let revoked = Instant::now();
    while stream.next().await.is_some() {}
    assert!(revoked.elapsed() < Duration::from_secs(1), "{:?}", revoked.elapsed());
}

#[tokio::test]
async fn a_caller_that_stops_reading_a_stream_delays_nobody_else() {
    let line =
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(9_000)}}]}));
    let limits = "max_concurrent = 1\ntotal_timeout = \"1s\"";
    let gateway = gateway_with(
        limits,
        "",
        |setup| setup,
        move |ask| {
            if ask.body["stream"] == true {
                return Reply::Stream(vec![role_chunk(), StreamStep::Repeat(line.clone(), 10_000)]);
            }
            Reply::Text("Hi".to_owned())
        },
    )
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(gateway.server.authority().parse().unwrap()).await.unwrap();
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let post = request("POST", "/inference/v1/chat/completions", &headers, &hello_stream().to_string());
    stream.write_all(&post).await.unwrap();
    stream.read_exact(&mut [0; 12]).await.unwrap();
    eventually("the provider's call is cancelled", || gateway.provider.abandoned() == 1).await;
    assert_eq!(gateway.ask(&hello()).await.status(), 200);
    assert!(stream.try_write(b" ").is_ok(), "the connection to the caller is still open");
    assert!(rest_of(&mut stream).await.contains(r#""code":"provider_timeout""#));
}
