//! HTTP/2: callers that cancel one stream, close the connection, or never read or send anything.

use std::convert::Infallible;
use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Request;
use hyper::body::{Body as _, Frame};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mk::api::Service;
use tokio::task::JoinHandle;

use crate::support::panel::{config, panel_by};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::server::{Setup, TestServer};
use crate::support::tls::Identity;
use crate::support::{PROMPT, eventually};

const SHORT: Duration = Duration::from_millis(300);

/// A server whose panel hangs, with short read and write timeouts.
async fn server() -> (TestServer, FakeProvider, Identity) {
    let provider = panel_by(|_, _| Reply::Hang).await;
    let identity = Identity::new();
    let server = Setup::new(config(&provider.base_url))
        .options(|options| {
            options.tls = Some(identity.tls());
            options.header_timeout = SHORT;
            options.write_timeout = SHORT;
        })
        .start()
        .await;
    (server, provider, identity)
}

type Sender = SendRequest<Full<Bytes>>;

/// Opens a connection; the task ends when the connection does.
async fn connect(authority: &str, identity: &Identity, window: u32) -> (Sender, JoinHandle<()>) {
    let stream = identity.connect(authority, &["h2"]).await.unwrap();
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let task = tokio::spawn(async move {
        let _ = connection.await;
    });
    (sender, task)
}

fn health() -> Request<Full<Bytes>> {
    Request::get("https://localhost/verify/v1/health").body(Full::default()).unwrap()
}

fn verification(key: &str, accept: &str) -> Request<Full<Bytes>> {
    Request::post("https://localhost/verify/v1/stream")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("accept", accept)
        .body(Full::from(r#"{"fact":"The Eiffel Tower is in Paris."}"#))
        .unwrap()
}

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), work).await.unwrap_or_else(|_| panic!("never: {what}"))
}

#[tokio::test]
async fn a_response_to_head_has_no_body() {
    let (server, _provider, identity) = server().await;
    let (mut sender, _connection) = connect(server.authority(), &identity, 65_535).await;
    for path in ["/verify/v1/health", "/", "/nowhere"] {
        let mut ask = async |method| {
            let uri = format!("https://localhost{path}");
            let request = Request::builder().method(method).uri(uri).body(Full::default()).unwrap();
            sender.send_request(request).await.unwrap()
        };
        let (whole, head) = (ask("GET").await, ask("HEAD").await);
        assert!(head.body().is_end_stream(), "{path}");
        assert_eq!(head.status(), whole.status());
        assert_eq!(head.headers()["content-length"], whole.headers()["content-length"], "{path}");
    }
}

#[tokio::test]
async fn cancelling_one_stream_stops_its_calls_and_no_others() {
    let (server, provider, identity) = server().await;
    let key = server.key(Service::Verify);
    let (mut sender, _task) = connect(server.authority(), &identity, 65_535).await;
    let stays = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
    eventually("a panel is asked", || provider.in_flight() == 3).await;

    let leaves = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
    eventually("two panels are asked", || provider.in_flight() == 6).await;
    drop(leaves);
    let left = Instant::now();
    eventually("the calls of one stop", || provider.in_flight() == 3).await;
    assert!(left.elapsed() < PROMPT, "{:?}", left.elapsed());

    let document = sender.send_request(verification(&key, "application/json"));
    let waiting = tokio::spawn(document);
    eventually("two panels are asked", || provider.in_flight() == 6).await;
    waiting.abort();
    eventually("the calls of one stop", || provider.in_flight() == 3).await;
    let mut body = stays.into_body();
    let first = soon("a frame", body.frame()).await.unwrap().unwrap();
    assert!(first.into_data().unwrap().starts_with(b"event: starting\n"));
}

#[tokio::test]
async fn closing_the_connection_stops_all_its_calls() {
    let (server, provider, identity) = server().await;
    let key = server.key(Service::Verify);
    // A separate runtime, because hyper's client spawns parts of a connection as tasks, which have to end as well.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let authority = server.authority().to_owned();
    runtime.spawn(async move {
        let (mut sender, _task) = connect(&authority, &identity, 65_535).await;
        let first = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
        let second = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
        std::future::pending::<()>().await;
        drop((first, second));
    });
    eventually("two panels are asked", || provider.in_flight() == 6).await;
    runtime.shutdown_background();
    let left = Instant::now();
    eventually("all calls stop", || provider.in_flight() == 0).await;
    assert!(left.elapsed() < PROMPT, "{:?}", left.elapsed());
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (server, _provider, identity) = server().await;
    let (mut sender, task) = connect(server.authority(), &identity, 65_535).await;
    assert_eq!(sender.send_request(health()).await.unwrap().status(), 200);
    soon("the idle connection is closed", task).await.unwrap();
}

#[tokio::test]
async fn a_connection_whose_caller_never_reads_is_closed() {
    let (server, _provider, identity) = server().await;
    let (mut sender, task) = connect(server.authority(), &identity, 1).await;
    let unread = sender.send_request(health()).await.unwrap();
    soon("the stalled connection is closed", task).await.unwrap();
    assert!(unread.into_body().collect().await.is_err(), "a truncated body is an error");
}

#[tokio::test]
async fn a_revoked_key_stops_the_calls_of_a_stream_that_nobody_reads() {
    let provider = panel_by(|_, _| Reply::Hang).await;
    let identity = Identity::new();
    let tls = identity.tls();
    let server =
        Setup::new(config(&provider.base_url)).options(|options| options.tls = Some(tls)).start().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    let (mut sender, _task) = connect(server.authority(), &identity, 1).await;
    let unread = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
    eventually("a panel is asked", || provider.in_flight() == 3).await;
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let revoked = Instant::now();
    eventually("its calls stop", || provider.in_flight() == 0).await;
    assert!(revoked.elapsed() < PROMPT, "{:?}", revoked.elapsed());
    drop(unread);
}

/// A server that gives up a stream after a moment, and an idle connection hardly ever.
async fn patient_server() -> (TestServer, FakeProvider, Identity) {
    let provider = panel_by(|_, _| Reply::Hang).await;
    let identity = Identity::new();
    let tls = identity.tls();
    let server = Setup::new(config(&provider.base_url))
        .options(|options| {
            options.tls = Some(tls);
            options.write_timeout = SHORT;
        })
        .start()
        .await;
    (server, provider, identity)
}

#[tokio::test]
async fn a_stream_that_its_caller_does_not_take_is_given_up_with_its_calls() {
    let (server, provider, identity) = patient_server().await;
    let key = server.key(Service::Verify);
    for window in [0, 1] {
        let (mut sender, task) = connect(server.authority(), &identity, window).await;
        let unread = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
        eventually("a panel is asked", || provider.in_flight() == 3).await;
        eventually("its calls stop", || provider.in_flight() == 0).await;
        assert!(!task.is_finished(), "other streams of the connection go on");
        assert!(unread.into_body().collect().await.is_err());
    }
    // One that waits for models has all the time that they need.
    let (mut taking, _task) = connect(server.authority(), &identity, 65_535).await;
    let _taken = taking.send_request(verification(&key, "text/event-stream")).await.unwrap();
    eventually("a panel is asked", || provider.in_flight() == 3).await;
    tokio::time::sleep(SHORT * 3).await;
    assert_eq!(provider.in_flight(), 3);
}

#[tokio::test]
async fn streams_without_a_key_that_nobody_takes_are_given_up_as_well() {
    let (server, _provider, identity) = patient_server().await;
    let (mut sender, task) = connect(server.authority(), &identity, 0).await;
    let page = |path: &str| Request::get(format!("https://localhost{path}")).body(Full::default()).unwrap();
    for path in ["/verify/v1/health", "/openapi.json", "/unknown", "/v1/apps"] {
        let unread = sender.send_request(page(path)).await.unwrap();
        let given_up = soon("the stream is given up", unread.into_body().collect()).await;
        assert!(given_up.is_err(), "{path}");
    }
    assert!(!task.is_finished());
    // What is taken arrives whole, whatever its size.
    let (mut taking, _task) = connect(server.authority(), &identity, 65_535).await;
    let whole =
        taking.send_request(page("/openapi.json")).await.unwrap().into_body().collect().await.unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&whole.to_bytes()).unwrap()["paths"].is_object());
}

#[tokio::test]
async fn a_stream_that_waits_for_models_keeps_its_connection() {
    let (server, _provider, identity) = server().await;
    let key = server.key(Service::Verify);
    let (mut sender, task) = connect(server.authority(), &identity, 65_535).await;
    let response = sender.send_request(verification(&key, "text/event-stream")).await.unwrap();
    tokio::time::sleep(SHORT * 4).await;
    assert!(!task.is_finished(), "the connection waits for the server");
    assert!(sender.send_request(health()).await.is_ok());
    drop(response);
    soon("the idle connection is closed", task).await.unwrap();
}

#[tokio::test]
async fn a_body_without_a_content_length_is_not_ignored() {
    let (server, _provider, identity) = server().await;
    let console = server.key(Service::Console);
    let (_, id) = server.key_with(Service::Verify, |_| {});
    let app = server.app.store.app("default").unwrap().id;
    let stream = identity.connect(server.authority(), &["h2"]).await.unwrap();
    let handshake = Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    let task = tokio::spawn(connection);
    let frames =
        [r#"{"grace_"#, r#"seconds":60}"#].map(|chunk| Ok::<_, Infallible>(Frame::data(Bytes::from(chunk))));
    let rotate = Request::post(format!("https://localhost/v1/apps/{app}/keys/{id}/rotate"))
        .header("authorization", format!("Bearer {console}"))
        .body(StreamBody::new(futures_util::stream::iter(frames)))
        .unwrap();
    let answer = sender.send_request(rotate).await.unwrap();
    assert_eq!(answer.status(), 415, "without a content type the body is refused and nothing happens");
    assert_eq!(server.app.store.key(&id).unwrap().expires_at, None);
    task.abort();
}

#[tokio::test]
async fn requests_cancelled_at_once_leave_no_calls_behind() {
    let (server, provider, identity) = server().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(0));
    let (mut sender, task) = connect(server.authority(), &identity, 65_535).await;
    let mut sent = 0;
    // The server may close such a connection.
    while sent < 2_000 && sender.ready().await.is_ok() {
        drop(sender.send_request(verification(&key, "text/event-stream")));
        sent += 1;
        if sent % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(sent > 10, "{sent}");
    let (mut other, _task) = connect(server.authority(), &identity, 65_535).await;
    assert_eq!(
        soon("another caller gets a response", other.send_request(health())).await.unwrap().status(),
        200
    );
    drop(sender);
    task.abort();
    eventually("no call is left", || provider.in_flight() == 0).await;
    assert!(provider.most_in_flight() <= 128 * 3, "{} calls at once", provider.most_in_flight());
}
