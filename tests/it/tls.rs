//! TLS: both protocol versions by ALPN, and certificates that cannot be used.

use std::time::{Duration, Instant};

use mk::api::Service;
use mk::server::TlsFiles;
use reqwest::Version;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::events::Events;
use crate::support::panel::{config, panel_by};
use crate::support::provider::FakeProvider;
use crate::support::server::{Setup, TestServer};
use crate::support::tls::Identity;

async fn server() -> (TestServer, FakeProvider, Identity) {
    let provider = panel_by(|_, ask| ask.choose("Paris")).await;
    let identity = Identity::new();
    let setup = Setup::new(config(&provider.base_url));
    let server = setup.options(|options| options.tls = Some(identity.tls())).start().await;
    (server, provider, identity)
}

#[tokio::test]
async fn alpn_selects_either_version_of_http() {
    let (server, _provider, identity) = server().await;
    let key = server.key(Service::Verify);
    let base = format!("https://{}", server.authority());
    for (client, version) in [
        (identity.client().http1_only().build().unwrap(), Version::HTTP_11),
        (identity.client().build().unwrap(), Version::HTTP_2),
    ] {
        let health = client.get(format!("{base}/verify/v1/health")).send().await.unwrap();
        assert_eq!((health.version(), health.status().as_u16()), (version, 200));
        assert!(health.headers().contains_key("x-request-id"));
        assert_eq!(health.json::<Value>().await.unwrap(), json!({"status": "ok"}));

        let post = || {
            client
                .post(format!("{base}/verify/v1/stream"))
                .json(&json!({"fact": "The Eiffel Tower is in Paris."}))
        };
        let refused = post().send().await.unwrap();
        assert_eq!((refused.version(), refused.status().as_u16()), (version, 401));
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "missing_api_key");

        let response = post().bearer_auth(&key).send().await.unwrap();
        assert_eq!(response.version(), version);
        assert!(response.headers().contains_key("x-ratelimit-remaining"));
        let events = Events::read(response).await;
        assert!(events.raw.starts_with("event: starting\ndata: {"), "{}", events.raw);
        assert_eq!(events.results()[0]["assessment"], "TRUE");
    }
}

#[tokio::test]
async fn without_alpn_http_1_is_used() {
    let (server, _provider, identity) = server().await;
    let mut stream = identity.connect(server.authority(), &[]).await.unwrap();
    let request = b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn plain_text_is_refused_and_silent_connections_do_not_delay_a_shutdown() {
    let (server, _provider, _identity) = server().await;
    let mut plain = TcpStream::connect(server.authority()).await.unwrap();
    plain.write_all(b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let read = plain.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(10), read).await.expect("the connection was not closed");
    assert!(!answer.starts_with(b"HTTP"), "no response in plain text");

    let _silent = TcpStream::connect(server.authority()).await.unwrap();
    let started = Instant::now();
    server.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[test]
fn unusable_files_are_named_with_the_reason() {
    let good = Identity::new();
    let other = Identity::new();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let missing = dir.path().join("missing.pem");
    let empty = write("empty.pem", "");
    let broken = write("broken.pem", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    let cases = [
        (&missing, &good.files.key, "missing.pem", "No such file"),
        (&good.files.cert, &missing, "missing.pem", "No such file"),
        (&empty, &good.files.key, "empty.pem", "no certificate"),
        (&good.files.cert, &empty, "empty.pem", "no private key"),
        (&good.files.cert, &good.files.cert, "cert.pem", "no private key"),
        (&good.files.key, &good.files.key, "key.pem", "no certificate"),
        (&broken, &good.files.key, "broken.pem", ""),
        (&good.files.cert, &other.files.key, "key.pem", "does not belong to the certificate"),
    ];
    for (cert, key, file, reason) in cases {
        let files = TlsFiles { cert: cert.clone(), key: key.clone() };
        let message = mk::server::Tls::read(&files).err().expect("accepted").to_string();
        assert!(message.contains(file) && message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn insecure_tls_versions_are_refused() {
    let (server, _provider, _identity) = server().await;
    for version in [0_u8, 1, 2] {
        // A record with a ClientHello of SSL 3.0, TLS 1.0 and TLS 1.1: version, random, no session, one suite
        // (RSA with AES-128-CBC), no compression.
        let mut hello = vec![3, version];
        hello.extend([7; 32]);
        hello.extend([0, 0, 2, 0, 0x2f, 1, 0]);
        let mut record = vec![0x16, 3, version, 0, u8::try_from(hello.len() + 4).unwrap(), 1, 0, 0];
        record.push(u8::try_from(hello.len()).unwrap());
        record.extend(hello);
        let mut stream = TcpStream::connect(server.authority()).await.unwrap();
        stream.write_all(&record).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await;
        read.expect("the connection was not closed").ok();
        assert_eq!(answer.first(), Some(&0x15), "only an alert: {answer:?}");
    }
}
