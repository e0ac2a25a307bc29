//! What the process itself could leak: secrets in its log at any level, its memory in a core dump.

use mk::api::Service;

use crate::support::mk::{Mk, operator};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::exchange;
use crate::support::serve::{self, Serve};

/// Creates a key in the server's database, as an operator does.
fn created(server: &Mk, service: Service) -> String {
    let data = serve::data_dir(server.home());
    let service = service.to_string();
    let ran = operator(&data, &["keys", "create", "--service", &service, "--json"]).run();
    ran.json()["key"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_logged_without_secrets() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let call = serve::call(&provider.base_url, "");
    let server = Serve::start(&call.clone().env("MK_LOG", "trace,warp=trace,warp::filters=trace"));
    let link = std::fs::read_to_string(serve::data_dir(call.home()).join("setup-link")).unwrap();
    let token = link.trim_end().rsplit('/').next().unwrap().to_owned();
    let key = created(&call, Service::Verify);
    let secret = &key["mk_verify_".len()..];
    let authority = server.base.trim_start_matches("http://");
    let paths = [
        format!("/setup/{token}"),
        format!("/%23/setup/{token}"),
        format!("/setup/{token}."),
        format!("/setup/x{token}"),
        format!("/{token}"),
        format!("/assets/{token}"),
        format!("/v1/apps/{token}/keys/{token}"),
        format!("/v1/keys/{key}"),
        format!("/v1/keys/id={key};x"),
        format!("/v1/keys/%20{key}"),
        format!("/{key}?key={key}&token={token}"),
    ];
    for path in &paths {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nreferer: {key}\r\nconnection: close\r\n\r\n");
        let answer = exchange(authority, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
        assert!(!answer.contains(secret) && !answer.contains(&token), "{path}: {answer}");
    }
    let long_method = format!(
        "{} /long-method HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        "M".repeat(60_000)
    );
    exchange(authority, long_method.as_bytes()).await;
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(status.success());
    assert_eq!(log.matches("\"message\":\"request\"").count(), paths.len() + 1, "{log}");
    for word in [secret, token.as_str()] {
        let leak = log.lines().find(|line| line.contains(word));
        assert_eq!(leak, None);
    }
    assert!(log.contains("/long-method") && log.lines().all(|line| line.len() < 2_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_writes_no_core_dump() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Serve::start(&serve::call(&provider.base_url, ""));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let figures: Vec<&str> = core.split_whitespace().skip(4).take(2).collect();
    assert_eq!(figures, ["0", "0"], "{core}");
}
