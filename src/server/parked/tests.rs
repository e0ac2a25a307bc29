//! Streams with pauses, over real connections and in single steps.

use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::unfold;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use warp::{Filter, Reply};

use super::*;
use crate::app::App;
use crate::clock::{Clock, Time};
use crate::config::{Env, ServerArgs, load_server};
use crate::server::routes::Routes;
use crate::server::stall::StallGuard;
use crate::server::turns::Turns;
use crate::server::{Options, connection};

type Piece = Result<&'static str, io::Error>;

/// A body of the pieces that are sent to it.
fn pieces() -> (mpsc::UnboundedSender<Piece>, impl futures_util::Stream<Item = Piece>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) }))
}

/// A server on which every answer is a stream that may be parked; each request hands out the way to feed its answer.
async fn serve() -> (TcpStream, mpsc::UnboundedReceiver<mpsc::UnboundedSender<Piece>>, watch::Sender<()>) {
    let now = Time::from_unix_ms(1_795_202_760_000);
    let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
    let config = load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], now)).unwrap();
    let app = Arc::new(App::in_memory(&config, Clock::manual(now)).unwrap());
    let context = Arc::new(crate::server::Context::new(app, Options::default()));
    let (asked, answers) = mpsc::unbounded_channel();
    let routes = warp::any().and(warp::body::bytes()).map(move |body: Bytes| {
        let (feed, stream) = pieces();
        asked.send(feed).unwrap();
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
    tokio::spawn(connection::serve(stream, peer, routes, context, closed));
    (caller, answers, closing)
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
async fn a_stream_with_pauses_is_whole_and_the_next_request_follows() {
    let (mut caller, mut answers, _closing) = serve().await;
    // The second comes before the first is answered, the third behind it.
    caller.write_all(&ASK.repeat(2)).await.unwrap();
    for round in 0..3 {
        let feed = answers.recv().await.unwrap();
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
async fn nothing_follows_where_either_side_has_said_so() {
    let (mut caller, mut answers, _closing) = serve().await;
    caller.write_all(LAST).await.unwrap();
    let feed = answers.recv().await.unwrap();
    feed.send(Ok("one")).unwrap();
    read_to(&mut caller, "one\r\n").await;
    feed.send(Ok("two")).unwrap();
    drop(feed);
    let mut rest = String::new();
    caller.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "3\r\ntwo\r\n0\r\n\r\n");

    let (mut caller, mut answers, closing) = serve().await;
    caller.write_all(ASK).await.unwrap();
    let feed = answers.recv().await.unwrap();
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
async fn a_body_that_breaks_off_is_never_taken_for_whole() {
    let (mut caller, mut answers, _closing) = serve().await;
    caller.write_all(ASK).await.unwrap();
    let feed = answers.recv().await.unwrap();
    feed.send(Ok("one")).unwrap();
    read_to(&mut caller, "one\r\n").await;
    feed.send(Ok("two")).unwrap();
    read_to(&mut caller, "two\r\n").await;
    feed.send(Err(io::ErrorKind::Other.into())).unwrap();
    let mut rest = Vec::new();
    // Ended in whatever way.
    let _ = caller.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_silent_body_lies_in_its_berth_until_it_is_wanted() {
    let (feed, stream) = pieces();
    let stream = Box::pin(stream.map(|piece| piece.map(|text| Frame::data(Bytes::from(text)))));
    let mut answer = Response::new(http_body_util::StreamBody::new(stream));
    allow(answer.extensions_mut(), &HeaderMap::new());
    let berth = Berth::new();
    let mut lent = berth.lend(answer, Version::HTTP_11).into_body();

    assert!(lent.frame().now_or_never().is_none());
    feed.send(Ok("one")).unwrap();
    assert_eq!(lent.frame().await.unwrap().unwrap().into_data().unwrap(), "one", "had back, as hyper asked");
    assert!(berth.place().is_none());

    assert!(lent.frame().now_or_never().is_none());
    let (ours, theirs) = tokio::io::duplex(1);
    let mut guard = StallGuard::new(ours, std::time::Duration::from_mins(1), Turns::new());
    let stalled = guard.stalled();
    guard.write_all(b"1").await.unwrap();
    assert!(guard.write(b"2").now_or_never().is_none(), "there is room for one");
    let mut hyper = pin!(std::future::pending::<()>());
    assert!(berth.follow(hyper.as_mut(), &stalled).now_or_never().is_none(), "what hyper has is not out");
    let mut theirs = theirs;
    theirs.read_u8().await.unwrap();
    guard.write_all(b"2").await.unwrap();
    let silent = berth.follow(hyper.as_mut(), &stalled).await.ok().unwrap();
    assert!(!silent.is_last);
}

#[test]
fn only_marked_answers_in_chunks_are_movable() {
    let marked = |version| {
        let mut answer = Response::new(http_body_util::Empty::<Bytes>::new());
        allow(answer.extensions_mut(), &HeaderMap::new());
        Berth::new().lend(answer, version).into_body()
    };
    assert!(matches!(marked(Version::HTTP_11), Lent::Movable { .. }));
    assert!(matches!(marked(Version::HTTP_10), Lent::Kept(_)));
    let plain = Response::new(http_body_util::Empty::<Bytes>::new());
    assert!(matches!(Berth::new().lend(plain, Version::HTTP_11).into_body(), Lent::Kept(_)));
}
