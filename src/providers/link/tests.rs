//! Against a server that does to its connections what it is told.

use http_body_util::BodyExt;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::*;

const MOST_KEPT: usize = 8;
const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// More than any socket takes at once.
const LARGE: usize = 16 << 20;
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

async fn desk() -> (TcpListener, Links) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Uri = format!("http://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
    let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    (listener, Links::new(&address, Duration::from_secs(5), MOST_KEPT, tls).unwrap())
}

fn request(links: &Links) -> Question {
    posted(links, "question")
}

fn posted(links: &Links, body: impl Into<Bytes>) -> Question {
    let asked =
        Asked { method: Method::POST, target: "/v1?x=1".into(), headers: Vec::new(), body: body.into() };
    links.question(&asked)
}

/// Reads one request and answers it.
async fn answer(stream: &mut TcpStream, with: &str) -> String {
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    while !bytes[..length].ends_with(b"question") {
        let count = stream.read(&mut bytes[length..]).await.unwrap();
        assert!(count > 0, "no whole request: {}", String::from_utf8_lossy(&bytes[..length]));
        length += count;
    }
    stream.write_all(with.as_bytes()).await.unwrap();
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

async fn asked(links: &Links) -> Result<Bytes, Failure> {
    Ok(links.send(request(links)).await?.into_body().collect().await?.to_bytes())
}

/// Waits until the runtime has heard what the system knows of the connection that was used last: that something came
/// or that it was closed.
async fn heard(links: &Links) {
    let wire = links.idle.take().unwrap();
    wire.heard().await;
    links.idle.keep(wire);
}

/// What was asked and answered on a new connection, and its other end.
async fn answered(listener: &TcpListener, links: &Links, with: &str) -> (Result<Bytes, Failure>, TcpStream) {
    tokio::join!(asked(links), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answer(&mut stream, with).await;
        stream
    })
}

#[tokio::test]
async fn a_connection_is_used_again_once_its_answer_was_read() {
    let (listener, links) = desk().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heads = Vec::new();
        for with in [WHOLE, CHUNKED, WHOLE, WHOLE] {
            heads.push(answer(&mut stream, with).await);
        }
        heads
    });
    for _ in 0..4 {
        assert_eq!(asked(&links).await.unwrap(), "ok");
    }
    let host = links.address.authority().unwrap();
    for head in serving.await.unwrap() {
        assert!(head.starts_with("POST /v1?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("host: {host}\r\n")), "{head}");
        assert_eq!(head.matches("content-length: 8\r\n").count(), 1, "{head}");
    }
}

#[tokio::test]
async fn a_request_goes_out_on_another_connection_if_the_kept_one_was_closed() {
    let (listener, links) = desk().await;
    for with in [WHOLE, CHUNKED, WHOLE] {
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer(&mut stream, with).await;
            stream
        };
        // A request that fails would wait for a connection that never comes.
        let both = async { tokio::try_join!(asked(&links), async { Ok(serving.await) }) };
        let (given, stream) = both.await.unwrap();
        assert_eq!(given, "ok");
        drop(stream);
        heard(&links).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_not_read_to_its_end_closes_its_connection() {
    let (listener, links) = desk().await;
    for is_asked_only in [false, true] {
        let (told, is_asked) = tokio::sync::oneshot::channel();
        let (response, mut stream) = tokio::join!(
            async {
                let sending = links.send(request(&links));
                if is_asked_only {
                    tokio::select! {
                        answered = sending => Some(answered),
                        _ = is_asked => None,
                    }
                } else {
                    Some(sending.await)
                }
            },
            async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
                answer(&mut stream, if is_asked_only { "" } else { head }).await;
                // Nobody waits for it unless the caller leaves then.
                let _ = told.send(());
                stream
            }
        );
        drop(response);
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0, "the connection stays open");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_from_one_that_never_stood() {
    let (listener, links) = desk().await;
    for with in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok",
    ] {
        let (given, ()) = tokio::join!(asked(&links), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer(&mut stream, with).await;
        });
        assert_eq!(given, Err(Failure::Cut), "{with:?}");
    }
    drop(listener);
    assert_eq!(asked(&links).await, Err(Failure::Unreachable));
}

#[tokio::test]
async fn a_connection_that_its_provider_will_close_is_closed_with_the_answer() {
    let (listener, links) = desk().await;
    for with in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: Keep-Alive, Close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        let (given, mut stream) = answered(&listener, &links, with).await;
        given.unwrap();
        let closed = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
        assert_eq!(closed.expect("it stays open").unwrap_or(0), 0, "{with:?}");
    }
    let (given, mut stream) = tokio::join!(asked(&links), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answer(&mut stream, "HTTP/1.1 200 OK\r\n\r\nok").await;
        stream.shutdown().await.unwrap();
        stream
    });
    assert_eq!(given.unwrap(), "ok", "the end of the connection is that of the answer");
    let closed = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
    assert_eq!(closed.expect("it stays open").unwrap_or(0), 0);
    // One that says that it stays is kept.
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            let with = "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok";
            answer(&mut stream, with).await;
        }
    };
    let asking = async {
        for _ in 0..2 {
            asked(&links).await.unwrap();
        }
    };
    let both = async { tokio::join!(serving, asking) };
    timeout(Duration::from_secs(20), both).await.expect("another connection was opened");
}

#[tokio::test]
async fn a_connection_on_which_more_came_than_was_asked_for_is_closed() {
    let (listener, links) = desk().await;
    for with in [format!("{WHOLE}HTTP"), format!("{CHUNKED}{WHOLE}")] {
        let (given, mut stream) = answered(&listener, &links, &with).await;
        assert_eq!(given.unwrap(), "ok");
        let closed = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
        assert_eq!(closed.expect("somebody would get the answer of another").unwrap_or(0), 0, "{with:?}");
    }
    // The same, when it comes later.
    let (given, mut stream) = answered(&listener, &links, WHOLE).await;
    assert_eq!(given.unwrap(), "ok");
    stream.write_all(WHOLE.as_bytes()).await.unwrap();
    heard(&links).await;
    let serving = async {
        let (mut next, _) = listener.accept().await.unwrap();
        answer(&mut next, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nown").await;
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
    };
    let both = timeout(Duration::from_secs(20), async { tokio::join!(asked(&links), serving) }).await;
    assert_eq!(both.expect("it was asked on the first one").0.unwrap(), "own");
}

#[tokio::test]
async fn a_connection_is_looked_at_however_much_its_task_has_done() {
    let (listener, links) = desk().await;
    let (given, mut stream) = answered(&listener, &links, WHOLE).await;
    assert_eq!(given.unwrap(), "ok");
    let mut wire = links.idle.take().unwrap();
    stream.write_all(WHOLE.as_bytes()).await.unwrap();
    wire.heard().await;
    while tokio::task::coop::has_budget_remaining() {
        let _ = futures_util::FutureExt::now_or_never(tokio::task::coop::consume_budget());
    }
    assert!(!wire.is_quiet(), "the next caller would get the answer of another");
}

#[tokio::test]
async fn only_so_many_connections_are_kept_and_the_oldest_go_first() {
    let (listener, links) = desk().await;
    let mut streams = Vec::new();
    for _ in 0..=MOST_KEPT {
        let (wire, accepted) = tokio::join!(links.connect(), listener.accept());
        links.idle.keep(wire.unwrap());
        streams.push(accepted.unwrap().0);
    }
    assert_eq!(links.idle.kept().wires.len(), MOST_KEPT);
    assert_eq!(streams[0].read(&mut [0]).await.unwrap(), 0, "the oldest one stays open");
}

#[tokio::test]
async fn an_answer_that_begins_while_its_request_is_read_stops_nothing() {
    let (listener, links) = desk().await;
    let large = posted(&links, vec![b'x'; LARGE]);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 1024]).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await.unwrap();
        stream.read_exact(&mut vec![0; LARGE - 1024]).await.unwrap();
        stream.write_all(b"ok").await.unwrap();
        stream
    };
    let both = async { tokio::join!(links.send(large), serving) };
    let both = timeout(Duration::from_mins(1), both).await;
    let (response, _stream) = both.expect("half a request was sent, and the rest is waited for");
    assert_eq!(response.unwrap().into_body().collect().await.unwrap().to_bytes(), "ok");
}

#[tokio::test]
async fn all_that_came_at_once_is_one_piece() {
    let (listener, links) = desk().await;
    let (response, _stream) = tokio::join!(links.send(request(&links)), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        answer(&mut stream, &format!("{head}{}", "5\r\nevent\r\n".repeat(100))).await;
        stream
    });
    let piece = response.unwrap().into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(piece, "event".repeat(100));
}

#[tokio::test]
async fn a_connection_that_is_not_used_is_closed() {
    let (listener, links) = desk().await;
    let (given, mut stream) = answered(&listener, &links, WHOLE).await;
    assert_eq!(given.unwrap(), "ok");
    let soon = Instant::now();
    let next = links.idle.close_unused(soon).unwrap();
    assert!(next > soon && next <= soon + KEEP);
    assert_eq!(links.idle.close_unused(next), None);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_answer_to_a_request_that_has_not_all_arrived_is_read_and_ends_its_connection() {
    let (listener, links) = desk().await;
    let large = posted(&links, vec![b'x'; LARGE]);
    let (response, mut stream) = tokio::join!(links.send(large), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 1024]).await.unwrap();
        let refusal = b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\nno";
        stream.write_all(refusal).await.unwrap();
        stream
    });
    let response = response.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "no");
    assert!(links.idle.take().is_none(), "half a request stands before the next one");
    // What is left of the request, and then the end; or a reset.
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.expect("it stays open");
    assert!(rest.len() < LARGE);
}

/// A desk that speaks TLS.
async fn desk_with_tls() -> (TcpListener, TlsAcceptor, Links) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der());
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let links = Links::new(
        &format!("https://localhost:{port}/v1").parse().unwrap(),
        Duration::from_secs(30),
        MOST_KEPT,
        tls,
    );
    (listener, Arc::new(server.unwrap()).into(), links.unwrap())
}

#[tokio::test]
async fn what_tls_says_of_its_own_is_no_answer() {
    let (listener, acceptor, links) = desk_with_tls().await;
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        // Sends tickets at once, of which nobody has asked.
        let mut stream = acceptor.accept(stream).await.unwrap();
        for _ in 0..2 {
            let (mut bytes, mut length, mut end) = (vec![0; 1 << 16], 0, 0);
            while length < LARGE + end {
                let count = stream.read(&mut bytes).await.unwrap();
                assert!(count > 0, "{length} bytes of the request came");
                if end == 0 {
                    end = bytes.windows(4).position(|at| at == b"\r\n\r\n").unwrap() + 4;
                }
                length += count;
            }
            stream.write_all(WHOLE.as_bytes()).await.unwrap();
        }
    };
    let asking = async {
        for _ in 0..2 {
            let large = posted(&links, vec![b'x'; LARGE]);
            let response = links.send(large).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
        }
    };
    let both = async { tokio::join!(serving, asking) };
    timeout(Duration::from_mins(1), both).await.expect("half a request was sent, and the rest is waited for");
}

#[tokio::test]
async fn an_answer_that_is_not_the_last_word_stops_no_request() {
    let (listener, links) = desk().await;
    let large = posted(&links, vec![b'x'; LARGE]);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        stream.read_exact(&mut vec![0; LARGE]).await.unwrap();
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        stream.write_all(format!("{hints}{WHOLE}").as_bytes()).await.unwrap();
        stream
    };
    let both = async { tokio::join!(links.send(large), serving) };
    let both = timeout(Duration::from_mins(1), both).await;
    let (response, _stream) = both.expect("half a request was sent, and the rest is waited for");
    assert_eq!(response.unwrap().into_body().collect().await.unwrap().to_bytes(), "ok");
}

/// Status and body of an answer that comes like this before its connection ends, as it is read here.
fn read_here(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut came = bytes::BytesMut::from(bytes);
    let Head { response, mut framing, .. } = head::take(&mut came, &mut 0).ok()??;
    let body = framing.take(&mut came).ok()?;
    let is_whole = framing.is_over() || framing == Framing::UntilClosed;
    is_whole.then(|| (response.status().as_u16(), body.to_vec()))
}

/// The same, as hyper reads it.
async fn read_by_hyper(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.ok()?;
    let asking = async {
        let question = http::Request::post("/").body(http_body_util::Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(question).await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.into_body().collect().await.ok()?.to_bytes().to_vec()))
    };
    let answering = async {
        // What comes before anything was asked is no answer.
        let _ = far.read(&mut [0; 1024]).await;
        let _ = far.write_all(bytes).await;
        drop(far);
    };
    tokio::join!(asking, connection, answering).0
}

fn a_piece_of_http() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 429 \r\n",
        "HTTP/1.1 204 x\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 x\r\na: b\r\n\r\n",
        "content-length: 2\r\n",
        "Content-Length: 2, 2\r\n",
        "content-length: 5\r\n",
        "content-length: +2\r\n",
        "content-length: 2 \r\n",
        "content-length:\r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\n",
        "Transfer-Encoding: gzip, Chunked\r\n",
        "transfer-encoding: chunked, gzip\r\n",
        "transfer-encoding: \"chunked\"\r\n",
        "connection: close\r\n",
        "a : b\r\n",
        " folded\r\n",
        "a: b\n",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "2\r\nok\r\n",
        "2\r\nok\r\n",
        "02;a=b\r\nok\r\n",
        "2 \r\nok\r\n",
        "2\nok\r\n",
        "A\r\n0123456789\r\n",
        "0\r\n",
        "0\r\n\r\n",
        "0\r\nx: y\r\n\r\n",
        "ok",
        "x",
        ";",
        "\u{0}",
    ])
}

proptest! {
    #[test]
    fn what_is_read_here_hyper_reads_as_well_and_as_the_same(
        pieces in prop::collection::vec(a_piece_of_http(), 0..9),
        begins_soundly in prop::bool::weighted(0.8),
        spoilt in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let begin = if begins_soundly { "HTTP/1.1 200 OK\r\n" } else { "" };
        let mut bytes = format!("{begin}{}", pieces.concat()).into_bytes();
        if let Some((place, byte)) = spoilt.filter(|_| !bytes.is_empty()) {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(read) = read_here(&bytes) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let expected = runtime.block_on(read_by_hyper(&bytes));
            prop_assert_eq!(Some(read), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_here(&bytes);
        read_here(&[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", &*bytes].concat());
    }
}
