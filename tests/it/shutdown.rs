//! Shutdown: responses in progress may finish, those that do not are ended with an error, idle connections do not delay
//! it.

use std::time::Duration;

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::events::{Events, read_until};
use crate::support::panel::{agreeing_panel, config, panel_by, with_panel};
use crate::support::provider::Reply;
use crate::support::server::Setup;

#[tokio::test]
async fn an_open_stream_may_finish_during_shutdown() {
    let (mut server, _provider) =
        with_panel(|_, ask| ask.choose("Paris").after(Duration::from_millis(300))).await;
    let key = server.key(Service::Verify);
    let response =
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    server.begin_shutdown();
    let events = Events::read(response).await;
    events.end("completed");
    server.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_does_not_finish_ends_with_an_error_event() {
    let provider = panel_by(|_, _| Reply::Hang).await;
    let setup = Setup::new(config(&provider.base_url));
    let mut server = setup.options(|options| options.drain = Duration::from_millis(200)).start().await;
    let key = server.key(Service::Verify);
    let mut stream = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    server.begin_shutdown();
    let mut rest = String::new();
    while let Some(chunk) = stream.next().await {
        rest.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    assert_eq!(Events::parse(rest).end("error")["code"], "shutting_down");
    server.shutdown().await;
}

#[tokio::test]
async fn idle_connections_do_not_delay_a_shutdown() {
    let (server, _provider) = agreeing_panel().await;
    let _silent = TcpStream::connect(server.authority()).await.unwrap();
    let mut partial = TcpStream::connect(server.authority()).await.unwrap();
    partial.write_all(b"GET /verify/v1/health HTTP/1.1\r\nx-half:").await.unwrap();
    let kept = reqwest::Client::builder().no_proxy().build().unwrap();
    kept.get(format!("{}/verify/v1/health", server.base)).send().await.unwrap().text().await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.shutdown())
        .await
        .expect("idle connections delay the shutdown");
}
