//! Against a server that does to its connections what it is told.

use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::RootCertStore;

use super::*;

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

async fn desk() -> (TcpListener, Links) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Uri = format!("http://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
    let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    (listener, Links::new(&address, Duration::from_secs(5), tls).unwrap())
}

fn request() -> Request<Full<Bytes>> {
    Request::post("/v1?x=1").body(Full::from("question")).unwrap()
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
    let response = links.send(request()).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

#[tokio::test]
async fn a_connection_is_used_again_once_its_answer_was_read() {
    let (listener, links) = desk().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heads = Vec::new();
        for with in [WHOLE, CHUNKED, WHOLE] {
            heads.push(answer(&mut stream, with).await);
        }
        heads
    });
    for _ in 0..3 {
        assert_eq!(asked(&links).await.unwrap(), "ok");
    }
    let heads = serving.await.unwrap();
    assert!(heads[0].starts_with("POST /v1?x=1 HTTP/1.1\r\n"), "{}", heads[0]);
    let host = links.address.authority().unwrap();
    assert!(heads[2].contains(&format!("host: {host}\r\n")), "{}", heads[2]);
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
        // What the system knows of it, the runtime has to hear as well.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_not_read_to_its_end_closes_its_connection() {
    let (listener, links) = desk().await;
    for is_asked_only in [false, true] {
        let (response, mut stream) = tokio::join!(
            async {
                let sending = links.send(request());
                if is_asked_only {
                    timeout(Duration::from_millis(50), sending).await.ok()
                } else {
                    Some(sending.await)
                }
            },
            async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
                answer(&mut stream, if is_asked_only { "" } else { head }).await;
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
async fn a_connection_that_is_not_used_is_closed() {
    let (listener, links) = desk().await;
    let (given, mut stream) = tokio::join!(asked(&links), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answer(&mut stream, WHOLE).await;
        stream
    });
    assert_eq!(given.unwrap(), "ok");
    let soon = Instant::now();
    let next = links.idle.close_unused(soon).unwrap();
    assert!(next > soon && next <= soon + KEEP);
    assert_eq!(links.idle.close_unused(next), None);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}
