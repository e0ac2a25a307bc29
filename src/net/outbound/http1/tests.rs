//! The client against a server that treats its connections as each test demands.

use http_body_util::BodyExt;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use hyper_util::rt::TokioIo;

use super::*;

const MAX_IDLE: usize = 8;
const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// More than any socket accepts at once.
const LARGE: usize = 16 << 20;
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

async fn setup() -> (TcpListener, ConnectionPool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Uri = format!("http://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
    let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    (listener, ConnectionPool::new(&address, Duration::from_secs(5), MAX_IDLE, tls).unwrap())
}

async fn send(pool: &ConnectionPool, request: EncodedRequest) -> Result<Response<Body>, SendError> {
    pool.send(pool.connection().await?, request).await
}

fn request(pool: &ConnectionPool) -> EncodedRequest {
    post(pool, "question")
}

fn post(pool: &ConnectionPool, body: impl Into<Bytes>) -> EncodedRequest {
    let request = HttpRequest {
        method: Method::POST,
        target: "/v1?x=1".into(),
        headers: Vec::new(),
        body: body.into(),
    };
    pool.encode(&request)
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

async fn exchange(pool: &ConnectionPool) -> Result<Bytes, SendError> {
    Ok(send(pool, request(pool)).await?.into_body().collect().await?.to_bytes())
}

/// Waits until the runtime knows what happened to the connection that was used last: that bytes arrived or that it was
/// closed.
async fn wait_until_readable(pool: &ConnectionPool) {
    let connection = pool.idle.take().unwrap();
    connection.readable().await;
    pool.idle.put(connection);
}

/// The outcome of an exchange on a new connection, and the server's end of it.
async fn exchange_on_new(
    listener: &TcpListener,
    pool: &ConnectionPool,
    with: &str,
) -> (Result<Bytes, SendError>, TcpStream) {
    tokio::join!(exchange(pool), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answer(&mut stream, with).await;
        stream
    })
}

#[tokio::test]
async fn a_connection_is_reused_once_its_response_has_been_read() {
    let (listener, pool) = setup().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heads = Vec::new();
        for with in [WHOLE, CHUNKED, WHOLE, WHOLE] {
            heads.push(answer(&mut stream, with).await);
        }
        heads
    });
    for _ in 0..4 {
        assert_eq!(exchange(&pool).await.unwrap(), "ok");
    }
    let host = pool.address.authority().unwrap();
    for head in serving.await.unwrap() {
        assert!(head.starts_with("POST /v1?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("host: {host}\r\n")), "{head}");
        assert_eq!(head.matches("content-length: 8\r\n").count(), 1, "{head}");
    }
}

#[tokio::test]
async fn a_request_is_sent_on_another_connection_if_the_idle_one_was_closed() {
    let (listener, pool) = setup().await;
    for with in [WHOLE, CHUNKED, WHOLE] {
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer(&mut stream, with).await;
            stream
        };
        // If the request failed, `serving` would wait for a connection that never comes.
        let both = async { tokio::try_join!(exchange(&pool), async { Ok(serving.await) }) };
        let (body, stream) = both.await.unwrap();
        assert_eq!(body, "ok");
        drop(stream);
        wait_until_readable(&pool).await;
    }
}

#[tokio::test]
async fn a_response_that_is_not_read_to_its_end_closes_its_connection() {
    let (listener, pool) = setup().await;
    for cancels_early in [false, true] {
        let (notify, request_read) = tokio::sync::oneshot::channel();
        let (response, mut stream) = tokio::join!(
            async {
                let sending = send(&pool, request(&pool));
                if cancels_early {
                    tokio::select! {
                        answered = sending => Some(answered),
                        _ = request_read => None,
                    }
                } else {
                    Some(sending.await)
                }
            },
            async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
                answer(&mut stream, if cancels_early { "" } else { head }).await;
                // The receiver is dropped already unless the request is cancelled early.
                let _ = notify.send(());
                stream
            }
        );
        drop(response);
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0, "the connection stays open");
    }
}

#[tokio::test]
async fn a_broken_connection_is_distinguished_from_one_that_was_never_made() {
    let (listener, pool) = setup().await;
    for with in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok",
    ] {
        let (body, ()) = tokio::join!(exchange(&pool), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer(&mut stream, with).await;
        });
        assert_eq!(body, Err(SendError::Cut), "{with:?}");
    }
    drop(listener);
    assert_eq!(exchange(&pool).await, Err(SendError::Unreachable));
}

#[tokio::test]
async fn a_connection_that_its_provider_will_close_is_closed_with_the_response() {
    let (listener, pool) = setup().await;
    for with in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: Keep-Alive, Close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        let (body, mut stream) = exchange_on_new(&listener, &pool, with).await;
        body.unwrap();
        let closed = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
        assert_eq!(closed.expect("it stays open").unwrap_or(0), 0, "{with:?}");
    }
    let (body, mut stream) = tokio::join!(exchange(&pool), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answer(&mut stream, "HTTP/1.1 200 OK\r\n\r\nok").await;
        stream.shutdown().await.unwrap();
        stream
    });
    assert_eq!(body.unwrap(), "ok", "the end of the connection is that of the answer");
    let closed = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
    assert_eq!(closed.expect("it stays open").unwrap_or(0), 0);
    // One that says it stays open is kept.
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            let with = "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok";
            answer(&mut stream, with).await;
        }
    };
    let asking = async {
        for _ in 0..2 {
            exchange(&pool).await.unwrap();
        }
    };
    let both = async { tokio::join!(serving, asking) };
    timeout(Duration::from_secs(20), both).await.expect("another connection was opened");
}

#[tokio::test]
async fn a_connection_with_unsolicited_bytes_is_closed() {
    let (listener, pool) = setup().await;
    for with in [format!("{WHOLE}HTTP"), format!("{CHUNKED}{WHOLE}")] {
        let (body, mut stream) = exchange_on_new(&listener, &pool, &with).await;
        assert_eq!(body.unwrap(), "ok");
        let closed = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
        assert_eq!(closed.expect("somebody would get the answer of another").unwrap_or(0), 0, "{with:?}");
    }
    // The same, when it comes later.
    let (body, mut stream) = exchange_on_new(&listener, &pool, WHOLE).await;
    assert_eq!(body.unwrap(), "ok");
    stream.write_all(WHOLE.as_bytes()).await.unwrap();
    wait_until_readable(&pool).await;
    let serving = async {
        let (mut next, _) = listener.accept().await.unwrap();
        answer(&mut next, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nown").await;
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
    };
    let both = timeout(Duration::from_secs(20), async { tokio::join!(exchange(&pool), serving) }).await;
    assert_eq!(both.expect("it was asked on the first one").0.unwrap(), "own");
}

#[tokio::test]
async fn an_idle_connection_is_checked_even_without_cooperative_budget() {
    let (listener, pool) = setup().await;
    let (body, mut stream) = exchange_on_new(&listener, &pool, WHOLE).await;
    assert_eq!(body.unwrap(), "ok");
    let mut connection = pool.idle.take().unwrap();
    stream.write_all(WHOLE.as_bytes()).await.unwrap();
    connection.readable().await;
    while tokio::task::coop::has_budget_remaining() {
        let _ = futures_util::FutureExt::now_or_never(tokio::task::coop::consume_budget());
    }
    assert!(!connection.is_reusable(), "the next caller would get the answer of another");
}

#[tokio::test]
async fn only_so_many_idle_connections_are_kept_and_the_oldest_go_first() {
    let (listener, pool) = setup().await;
    let mut streams = Vec::new();
    for _ in 0..=MAX_IDLE {
        let (connection, accepted) = tokio::join!(pool.connect(), listener.accept());
        pool.idle.put(connection.unwrap());
        streams.push(accepted.unwrap().0);
    }
    assert_eq!(pool.idle.state.locked().connections.len(), MAX_IDLE);
    assert_eq!(streams[0].read(&mut [0]).await.unwrap(), 0, "the oldest one stays open");
}

#[tokio::test]
async fn a_successful_response_that_begins_early_does_not_stop_its_request() {
    let (listener, pool) = setup().await;
    let large = post(&pool, vec![b'x'; LARGE]);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 1024]).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await.unwrap();
        stream.read_exact(&mut vec![0; LARGE - 1024]).await.unwrap();
        stream.write_all(b"ok").await.unwrap();
        stream
    };
    let both = async { tokio::join!(send(&pool, large), serving) };
    let both = timeout(Duration::from_mins(1), both).await;
    let (response, _stream) = both.expect("half a request was sent, and the rest is waited for");
    assert_eq!(response.unwrap().into_body().collect().await.unwrap().to_bytes(), "ok");
}

#[tokio::test]
async fn all_data_that_arrives_at_once_is_one_piece() {
    let (listener, pool) = setup().await;
    let (response, _stream) = tokio::join!(send(&pool, request(&pool)), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        answer(&mut stream, &format!("{head}{}", "5\r\nevent\r\n".repeat(100))).await;
        stream
    });
    let piece = response.unwrap().into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(piece, "event".repeat(100));
}

#[tokio::test]
async fn an_expired_connection_is_closed() {
    let (listener, pool) = setup().await;
    let (body, mut stream) = exchange_on_new(&listener, &pool, WHOLE).await;
    assert_eq!(body.unwrap(), "ok");
    let soon = Instant::now();
    let next = pool.idle.close_expired(soon).unwrap();
    assert!(next > soon && next <= soon + IDLE_TIMEOUT);
    assert_eq!(pool.idle.close_expired(next), None);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_early_refusal_is_read_and_ends_its_connection() {
    let (listener, pool) = setup().await;
    let large = post(&pool, vec![b'x'; LARGE]);
    let (response, mut stream) = tokio::join!(send(&pool, large), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 1024]).await.unwrap();
        let refusal = b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\nno";
        stream.write_all(refusal).await.unwrap();
        stream
    });
    let response = response.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "no");
    assert!(pool.idle.take().is_none(), "half a request stands before the next one");
    // The rest of what was sent of the request, then the end; or a reset.
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.expect("it stays open");
    assert!(rest.len() < LARGE);
}

/// A listener with a TLS acceptor, and a pool that trusts it.
async fn setup_with_tls() -> (TcpListener, TlsAcceptor, ConnectionPool) {
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
    let pool = ConnectionPool::new(
        &format!("https://localhost:{port}/v1").parse().unwrap(),
        Duration::from_secs(30),
        MAX_IDLE,
        tls,
    );
    (listener, Arc::new(server.unwrap()).into(), pool.unwrap())
}

#[tokio::test]
async fn session_tickets_are_not_taken_for_a_response() {
    let (listener, acceptor, pool) = setup_with_tls().await;
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        // Sends session tickets at once, unsolicited.
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
            let large = post(&pool, vec![b'x'; LARGE]);
            let response = send(&pool, large).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
        }
    };
    let both = async { tokio::join!(serving, asking) };
    timeout(Duration::from_mins(1), both).await.expect("half a request was sent, and the rest is waited for");
}

#[tokio::test]
async fn interim_responses_do_not_stop_a_request() {
    let (listener, pool) = setup().await;
    let large = post(&pool, vec![b'x'; LARGE]);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        stream.read_exact(&mut vec![0; LARGE]).await.unwrap();
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        stream.write_all(format!("{hints}{WHOLE}").as_bytes()).await.unwrap();
        stream
    };
    let both = async { tokio::join!(send(&pool, large), serving) };
    let both = timeout(Duration::from_mins(1), both).await;
    let (response, _stream) = both.expect("half a request was sent, and the rest is waited for");
    assert_eq!(response.unwrap().into_body().collect().await.unwrap().to_bytes(), "ok");
}

/// The status and body of a response as our parser reads them, if `bytes` is all that arrives on the connection.
fn read_here(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut received = bytes::BytesMut::from(bytes);
    let Head { response, mut framing, .. } = head::take(&mut received, &mut 0).ok()??;
    let body = framing.take(&mut received).ok()?;
    let is_whole = framing.is_over() || framing == Framing::UntilClosed;
    is_whole.then(|| (response.status().as_u16(), body.to_vec()))
}

/// As [`read_here`], but read by hyper.
async fn read_by_hyper(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.ok()?;
    let asking = async {
        let request = http::Request::post("/").body(http_body_util::Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.into_body().collect().await.ok()?.to_bytes().to_vec()))
    };
    let answering = async {
        // What arrives before the request is no response.
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
    fn whatever_is_accepted_here_hyper_reads_in_the_same_way(
        pieces in prop::collection::vec(a_piece_of_http(), 0..9),
        is_well_begun in prop::bool::weighted(0.8),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let begin = if is_well_begun { "HTTP/1.1 200 OK\r\n" } else { "" };
        let mut bytes = format!("{begin}{}", pieces.concat()).into_bytes();
        if let Some((place, byte)) = damage.filter(|_| !bytes.is_empty()) {
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
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_here(&bytes);
        read_here(&[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", &*bytes].concat());
    }
}
