//! Bugs on the wire: which of a provider's bytes and headers reach a caller, silent providers, and the cost of callers.

use std::time::{Duration, Instant};

use mk::api::Service;
use mk::keys::{self, NewKey};
use mk::secret::ExposeSecret;
use mk::storage::Store;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::asked;
use crate::support::chat::{chunks, config, gateway_with, hello, hello_stream};
use crate::support::provider::{
    FakeProvider, ModelRequest, Reply, StreamStep, done, finish_chunk, role_chunk, stream, text_chunk,
};
use crate::support::recorded::{FORMATS, events, gateway, hello_to};
use crate::support::scripted::Scripted;
use crate::support::serve::{self, Serve};
use crate::support::server::{NOON, Setup, client};

#[tokio::test]
async fn a_provider_s_comments_are_dropped() {
    let gateway = gateway(|ask: &ModelRequest| {
        let folder = FORMATS[ask.format as usize].1;
        let told =
            events(folder, if folder == "openai" { "chat-stream-openrouter" } else { "chat-stream-text" });
        let comment = |event| {
            [
                StreamStep::Send(": PROCESSING\n\n:\n".into()),
                StreamStep::Send(event),
                StreamStep::Send(":x\n".into()),
            ]
        };
        Reply::Stream(told.into_iter().flat_map(comment).collect())
    })
    .await;
    for (provider, _) in FORMATS {
        let raw = gateway.stream(&hello_to(&format!("{provider}/m"), true)).await;
        assert!(chunks(&raw).len() > 3 && !raw.contains("PROCESSING"), "{raw}");
        assert!(raw.lines().all(|line| line.is_empty() || line.starts_with("data: ")), "{raw}");
    }
}

#[tokio::test]
async fn no_provider_header_reaches_a_caller() {
    const THEIRS: &str = "x-ratelimit-limit-requests: 9\r\nx-ratelimit-limit: 9\r\nx-ratelimit-reset: 9\r\n\
        anthropic-ratelimit-tokens-remaining: 9\r\nratelimit: 9\r\nratelimit-policy: 9\r\nset-cookie: a=b\r\n\
        server: theirs\r\nx-request-id: theirs\r\nrequest-id: theirs\r\nopenai-organization: ours\r\nvia: 1.1 x\r\n\
        www-authenticate: Bearer\r\nlocation: /\r\nx-should-retry: true\r\nalt-svc: x\r\naccess-control-allow-origin: *\r\n";
    const OURS: [&str; 14] = [
        "cache-control",
        "content-length",
        "content-type",
        "date",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "transfer-encoding",
        "x-accel-buffering",
        "x-mk-attempts",
        "x-mk-model",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ];
    let answer = |status: &str, kind: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n{THEIRS}\r\n");
        head + body
    };
    let whole =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;
    let chunk =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    for (status, kind, body, request) in [
        ("200 OK", "application/json", whole, hello()),
        ("200 OK", "text/event-stream", chunk, hello_stream()),
        ("400 Bad Request", "application/json", "{}", hello()),
        ("429 Too Many Requests", "application/json", "{}", hello_stream()),
        ("500 Internal Server Error", "text/html", "<html>", hello()),
    ] {
        let provider = Scripted::answering(answer(status, kind, body)).await;
        let server = Setup::new(config(&format!("{}/v1", provider.base), "", "")).start().await;
        let sent = client()
            .post(format!("{}/inference/v1/chat/completions", server.base))
            .bearer_auth(server.key(Service::Inference))
            .json(&request);
        let response = sent.send().await.unwrap();
        assert_eq!(response.status() == 200, status == "200 OK");
        for (name, value) in response.headers() {
            assert!(OURS.contains(&name.as_str()) || name == "x-request-id", "{status}: {name}: {value:?}");
            assert!(!["9", "theirs"].contains(&value.to_str().unwrap()), "{status}: {name}: {value:?}");
        }
        assert_eq!(response.headers()["x-ratelimit-limit"], "60", "{status}");
    }
}

#[tokio::test]
async fn a_silent_provider_is_not_retried() {
    let script = |ask: &ModelRequest| match ask.model.as_str() {
        "comments" => Reply::Stream(vec![StreamStep::Send(": hi\n\n".into()), StreamStep::Stall]),
        "begun" => Reply::Stream(vec![role_chunk(), StreamStep::Stall]),
        _ => Reply::Hang,
    };
    let timeouts = "first_byte_timeout = \"1s\"\nidle_timeout = \"1s\"";
    let patient = |setup: Setup| setup.config(|config| config.providers[0].call_policy.retries = 2);
    let gateway = gateway_with(timeouts, "", patient, script).await;
    for (model, stream) in [("silent", false), ("silent", true), ("comments", true), ("begun", true)] {
        let began = Instant::now();
        let (status, raw) = asked(&gateway, &hello_to(&format!("fake/{model}"), stream)).await;
        assert!(raw.contains("provider_timeout"), "{model}: {status} {raw}");
        assert!(began.elapsed() < Duration::from_secs(3), "{model}: {:?}", began.elapsed());
    }
    assert_eq!(gateway.provider.requests().len(), 4, "no call is retried");
}

#[tokio::test]
async fn an_unknown_price_is_not_counted_as_zero() {
    let gateway = gateway_with(
        "",
        "",
        |setup| setup,
        |ask: &ModelRequest| match ask.body["stream"].as_bool() {
            Some(true) => stream(&["x"]),
            _ => Reply::Text("x".to_owned()),
        },
    )
    .await;
    for stream in [false, true] {
        asked(&gateway, &hello_to("fake/n", stream)).await;
    }
    let rows = gateway.rows();
    assert!(
        rows.len() == 2 && rows.iter().all(|row| row.cost.is_none() && row.prompt_tokens > 0),
        "{rows:?}"
    );
    let models =
        client().get(format!("{}/inference/v1/models", gateway.server.base)).bearer_auth(&gateway.key);
    let list: serde_json::Value = models.send().await.unwrap().json().await.unwrap();
    let unknown = list["data"].as_array().unwrap().iter().find(|model| model["id"] == "fake/n").unwrap();
    assert_eq!((unknown.get("input_usd_per_mtok"), unknown.get("output_usd_per_mtok")), (None, None));
}

/// Resident memory of a process, in bytes.
#[cfg(target_os = "linux")]
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn callers_who_do_not_read_use_little_memory() {
    // The first callers cause one-time costs: threads, and the allocator's pages for each block size.
    const FIRST: usize = 24;
    const CALLERS: usize = 48;
    let text = "x".repeat(16 * 1024);
    let provider = FakeProvider::start(move |_| {
        let StreamStep::Send(line) = text_chunk(&text) else { unreachable!() };
        Reply::Stream(vec![role_chunk(), StreamStep::Repeat(line, 6000), finish_chunk("stop"), done()])
    })
    .await;
    let mk = serve::call(&provider.base_url, "");
    let server = Serve::start(&mk);
    let store = Store::open(&serve::data_dir(mk.home()), NOON).unwrap();
    let (key, _) = keys::create(&store, &NewKey::new(Service::Inference, "default"), NOON).unwrap();
    let body = json!({"model": "fake/m", "stream": true, "messages": [{"role": "user", "content": "x"}]})
        .to_string();
    let request = format!(
        "POST /inference/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        key.expose_secret(),
        body.len()
    );
    let mut callers = Vec::new();
    let mut before = 0;
    while callers.len() < CALLERS {
        let mut caller = TcpStream::connect(server.base.trim_start_matches("http://")).await.unwrap();
        caller.write_all(request.as_bytes()).await.unwrap();
        callers.push(caller);
        wait_until_blocked(&provider).await;
        if callers.len() == FIRST {
            before = resident(server.process());
        }
    }
    let grown = resident(server.process()).saturating_sub(before);
    let per_caller = grown / (CALLERS - FIRST);
    // Each was sent 96 MB; only the buffers of two connections may stay in memory.
    assert!(per_caller < 1024 * 1024, "each caller who reads nothing costs {per_caller} bytes");
}

/// Waits until backpressure stops the provider from sending.
#[cfg(target_os = "linux")]
async fn wait_until_blocked(provider: &FakeProvider) {
    let mut taken = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = provider.streamed();
        if now == taken && now > 0 {
            return;
        }
        taken = now;
    }
}
