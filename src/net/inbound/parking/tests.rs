//! Streams with pauses, over real connections and step by step.

use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::unfold;
use http_body_util::StreamBody;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use warp::{Filter, Reply};

use super::*;
use crate::app::AppState;
use crate::clock::{Clock, Time};
use crate::config::{Env, ServerArgs, load_server};
use crate::net::inbound::activity::Activity;
use crate::net::inbound::write_timeout::WriteTimeout;
use crate::server::routes::Routes;
use crate::server::{Options, connection};

type Chunk = Result<&'static str, io::Error>;

/// A body of the chunks that are sent to it.
fn chunks() -> (mpsc::UnboundedSender<Chunk>, impl futures_util::Stream<Item = Chunk>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) }))
}

/// A server whose every response is a stream that may be parked; each request hands out the sender that feeds its body.
async fn serve() -> (TcpStream, mpsc::UnboundedReceiver<mpsc::UnboundedSender<Chunk>>, watch::Sender<()>) {
    let now = Time::from_unix_ms(1_795_202_760_000);
    let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
    let config = load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], now)).unwrap();
    let app = Arc::new(AppState::in_memory(&config, Clock::manual(now)).unwrap());
    let context = Arc::new(crate::server::ServerState::new(app, Options::default()));
    let (requested, feeds) = mpsc::unbounded_channel();
    let routes = warp::any().and(warp::body::bytes()).map(move |body: Bytes| {
        let (feed, stream) = chunks();
        requested.send(feed).unwrap();
        let mut response = warp::reply::stream(stream).into_response();
        let mut headers = HeaderMap::new();
        if body == "last" {
            headers.insert(header::CONNECTION, "Close".parse().unwrap());
        }
        allow(response.extensions_mut(), &headers);
        response
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, peer) = listener.accept().await.unwrap();
    let (closing, closed) = watch::channel(());
    let routes = Routes::only(context.clone(), routes.boxed());
    let terms = connection::Terms { peer, routes, context, closing: closed };
    tokio::spawn(async move { connection::serve(stream, &terms).await });
    (caller, feeds, closing)
}

/// Reads until what was read ends with `end`.
async fn read_to(caller: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        read.push(caller.read_u8().await.unwrap());
    }
    String::from_utf8(read).unwrap()
}

const ASK: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nmore";
const LAST: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nlast";

#[tokio::test]
async fn a_stream_with_pauses_is_complete_and_the_next_request_follows() {
    let (mut caller, mut feeds, _closing) = serve().await;
    // The second is sent before the first is answered, the third after the second is.
    caller.write_all(&ASK.repeat(2)).await.unwrap();
    for round in 0..3 {
        let feed = feeds.recv().await.unwrap();
        feed.send(Ok("first")).unwrap();
        let head = read_to(&mut caller, "5\r\nfirst\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
        feed.send(Ok("a second one")).unwrap();
        assert_eq!(read_to(&mut caller, "one\r\n").await, "c\r\na second one\r\n");
        feed.send(Ok("")).unwrap();
        feed.send(Ok("3rd")).unwrap();
        drop(feed);
        assert_eq!(read_to(&mut caller, "0\r\n\r\n").await, "3\r\n3rd\r\n0\r\n\r\n");
        if round == 1 {
            caller.write_all(ASK).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_connection_closes_where_either_side_has_said_so() {
    let (mut caller, mut feeds, _closing) = serve().await;
    caller.write_all(LAST).await.unwrap();
    let feed = feeds.recv().await.unwrap();
    feed.send(Ok("one")).unwrap();
    read_to(&mut caller, "one\r\n").await;
    feed.send(Ok("two")).unwrap();
    drop(feed);
    let mut rest = String::new();
    caller.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "3\r\ntwo\r\n0\r\n\r\n");

    let (mut caller, mut feeds, closing) = serve().await;
    caller.write_all(ASK).await.unwrap();
    let feed = feeds.recv().await.unwrap();
    feed.send(Ok("one")).unwrap();
    read_to(&mut caller, "one\r\n").await;
    feed.send(Ok("two")).unwrap();
    read_to(&mut caller, "two\r\n").await;
    closing.send(()).unwrap();
    drop(feed);
    let mut rest = String::new();
    caller.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "0\r\n\r\n");
}

#[tokio::test]
async fn a_body_that_fails_is_never_taken_for_complete() {
    let (mut caller, mut feeds, _closing) = serve().await;
    caller.write_all(ASK).await.unwrap();
    let feed = feeds.recv().await.unwrap();
    feed.send(Ok("one")).unwrap();
    read_to(&mut caller, "one\r\n").await;
    feed.send(Ok("two")).unwrap();
    read_to(&mut caller, "two\r\n").await;
    feed.send(Err(io::ErrorKind::Other.into())).unwrap();
    let mut rest = Vec::new();
    // It may end in any way.
    let _ = caller.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_silent_body_lies_in_its_slot_until_it_is_taken() {
    let (feed, stream) = chunks();
    let stream = Box::pin(stream.map(|chunk| chunk.map(|text| Frame::data(Bytes::from(text)))));
    let mut response = Response::new(http_body_util::StreamBody::new(stream));
    allow(response.extensions_mut(), &HeaderMap::new());
    let slot = ParkingSlot::new();
    let mut body = slot.wrap(response, Version::HTTP_11).into_body();

    assert!(body.frame().now_or_never().is_none());
    feed.send(Ok("one")).unwrap();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "one",
        "taken back when hyper polled"
    );
    assert!(slot.0.locked().is_none());

    assert!(body.frame().now_or_never().is_none());
    let (ours, theirs) = tokio::io::duplex(1);
    let mut writer = WriteTimeout::new(ours, std::time::Duration::from_mins(1), Activity::new());
    let stalled = writer.stalled();
    writer.write_all(b"1").await.unwrap();
    assert!(writer.write(b"2").now_or_never().is_none(), "there is room for one byte");
    let mut hyper = pin!(std::future::pending::<()>());
    assert!(slot.drive(hyper.as_mut(), &stalled).now_or_never().is_none(), "a write of hyper's is pending");
    let mut theirs = theirs;
    theirs.read_u8().await.unwrap();
    writer.write_all(b"2").await.unwrap();
    let parked = slot.drive(hyper.as_mut(), &stalled).await.ok().unwrap();
    assert!(!parked.is_last);
}

#[tokio::test]
async fn a_large_frame_is_a_chunk_like_any_other() {
    let large = "x".repeat(3 * WRITE_SIZE);
    let frames = ["a", &large, "b"].map(|data| Ok::<_, io::Error>(Frame::data(Bytes::from(data.to_owned()))));
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let (mut stream, mut caller) = tokio::io::duplex(1024);
    let writing = async move { finish(&mut stream, Parked { body, is_last: false }).await.unwrap() };
    let mut written = String::new();
    let (may_follow, _) = tokio::join!(writing, caller.read_to_string(&mut written));
    assert!(may_follow);
    assert_eq!(written, format!("1\r\na\r\n{:x}\r\n{large}\r\n1\r\nb\r\n0\r\n\r\n", large.len()));
}

#[test]
fn only_marked_responses_in_http_1_1_are_parkable() {
    let marked = |version| {
        let mut response = Response::new(http_body_util::Empty::<Bytes>::new());
        allow(response.extensions_mut(), &HeaderMap::new());
        ParkingSlot::new().wrap(response, version).into_body()
    };
    assert!(matches!(marked(Version::HTTP_11), ParkableBody::Parkable { .. }));
    assert!(matches!(marked(Version::HTTP_10), ParkableBody::Fixed(_)));
    let plain = Response::new(http_body_util::Empty::<Bytes>::new());
    assert!(matches!(ParkingSlot::new().wrap(plain, Version::HTTP_11).into_body(), ParkableBody::Fixed(_)));
}
