//! How the dashboard's files are served. `dashboard_files` checks their content; how the pages behave is tested in a
//! browser (`tests/web`).

use std::fs;

use mk::api::Service;
use serde_json::Value;

use crate::dashboard_files::{names, root};
use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::{exchange, request};
use crate::support::server::{Setup, TestServer, client, sandbox};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The paths of all served files, with their file names.
fn served() -> Vec<(String, String)> {
    let address = |name: &str| match name {
        "index.html" => Some("/".to_owned()),
        "vendor/SHA256SUMS" => None,
        _ => Some(format!("/assets/{name}")),
    };
    names().into_iter().filter_map(|name| Some((address(&name)?, name))).collect()
}

async fn server() -> (TestServer, FakeProvider) {
    agreeing_panel().await
}

#[tokio::test]
async fn every_file_is_served_completely_with_the_strict_policy() {
    let (server, _provider) = server().await;
    assert!(served().len() > 30);
    for (address, name) in served() {
        let response = client().get(format!("{}{address}?x=1", server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{address}");
        let kind = match name.rsplit('.').next().unwrap() {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/plain; charset=utf-8",
        };
        let expected = [
            ("content-type", kind),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-cache"),
        ];
        for (header, value) in expected {
            assert_eq!(response.headers()[header], value, "{address}: {header}");
        }
        assert_eq!(
            response.headers()["x-ratelimit-limit"],
            "600",
            "{address} is not limited as an open page"
        );
        assert!(response.headers().contains_key("x-request-id"));
        if address != "/" {
            let body = response.bytes().await.unwrap();
            assert_eq!(body, fs::read(root().join(&name)).unwrap(), "{address}");
        }
    }
}

#[tokio::test]
async fn the_page_loads_immutable_files_of_its_own_version() {
    let (server, _provider) = server().await;
    let page = client().get(&server.base).send().await.unwrap().text().await.unwrap();
    let asked: Vec<&str> = page.split('"').filter(|part| part.starts_with("assets/")).collect();
    assert!(asked.len() > 5, "{page}");
    for address in asked {
        let response = client().get(format!("{}/{address}", server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{address}");
        assert_eq!(response.headers()["cache-control"], "public, max-age=31536000, immutable", "{address}");
        assert_eq!(response.headers()["content-security-policy"], POLICY);
        let [_, version, name] = address.splitn(3, '/').collect::<Vec<_>>()[..] else { panic!("{address}") };
        assert_eq!(response.bytes().await.unwrap(), fs::read(root().join(name)).unwrap(), "{address}");
        let other = format!("{}/assets/{}/{name}", server.base, version.replace(['0', '1', '2'], "f"));
        assert_eq!(client().get(other).send().await.unwrap().status(), 404, "{address}");
    }
}

#[tokio::test]
async fn a_file_with_a_matching_etag_is_not_sent_again() {
    let (server, _provider) = server().await;
    for address in ["/", "/assets/app.js"] {
        let address = format!("{}{address}", server.base);
        let first = client().get(&address).send().await.unwrap();
        let etag = first.headers()["etag"].to_str().unwrap().to_owned();
        assert!(etag.starts_with('"') && etag.len() == 34, "{etag}");
        for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
            let again = client().get(&address).header("if-none-match", &known).send().await.unwrap();
            assert_eq!((again.status().as_u16(), &again.headers()["etag"]), (304, &first.headers()["etag"]));
            assert_eq!(again.headers()["content-security-policy"], POLICY);
            assert!(again.bytes().await.unwrap().is_empty());
        }
        let other = client().get(&address).header("if-none-match", "\"other\"").send().await.unwrap();
        assert_eq!(other.status(), 200);
    }
}

#[tokio::test]
async fn head_returns_the_headers_without_the_file() {
    let (server, _provider) = server().await;
    for address in ["/", "/assets/lib/ui.js", "/assets/favicon.svg"] {
        let answer = exchange(server.authority(), &request("HEAD", address, &[], "")).await;
        let get = client().get(format!("{}{address}", server.base)).send().await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
        let length = get.headers()["content-length"].to_str().unwrap();
        assert!(answer.contains(&format!("\r\ncontent-length: {length}\r\n")), "{answer}");
        assert!(answer.contains(&format!("\r\netag: {}\r\n", get.headers()["etag"].to_str().unwrap())));
    }
}

#[tokio::test]
async fn no_other_path_or_method_is_served() {
    let (server, _provider) = server().await;
    let paths = [
        "/assets",
        "/assets/",
        "/assets/nothing.js",
        "/assets/index.html",
        "/assets/vendor/SHA256SUMS",
        "/assets/../mod.rs",
        "/assets/lib/../app.js",
        "/assets/%2e%2e/mod.rs",
        "/assets/lib%2fui.js",
        "/assets//app.js",
        "/assets/./app.js",
        "/assets//etc/passwd",
        "/assets/app.js/",
        "/index.html",
        "//",
    ];
    for path in paths {
        for method in ["GET", "POST"] {
            let answer = exchange(server.authority(), &request(method, path, &[], "")).await;
            assert!(answer.starts_with("HTTP/1.1 404 "), "{method} {path}: {answer}");
            let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            assert_eq!(body["code"], "unknown_route", "{path}");
        }
    }
    for path in ["/", "/assets/app.js"] {
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = exchange(server.authority(), &request(method, path, &[], "")).await;
            assert!(answer.starts_with("HTTP/1.1 405 "), "{method} {path}: {answer}");
            assert!(answer.contains("\r\nallow: GET, HEAD\r\n"), "{answer}");
        }
    }
}

#[tokio::test]
async fn the_dashboard_is_rate_limited_as_an_open_page_without_a_key() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.limits.open_pages_per_minute = 2)
        .start()
        .await;
    let key = server.key(Service::Verify);
    let mut statuses = Vec::new();
    for address in ["/", "/assets/app.js", "/assets/nothing.js"] {
        let request = client().get(format!("{}{address}", server.base)).bearer_auth(&key);
        statuses.push(request.send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn the_page_shows_whether_the_server_is_a_sandbox() {
    let simulated = Setup::new(sandbox()).start().await;
    let (live, _provider) = server().await;
    for (server, mode) in [(&simulated, "sandbox"), (&live, "live")] {
        let page = client().get(&server.base).send().await.unwrap().text().await.unwrap();
        assert!(page.contains(&format!("<html lang=\"en\" data-mode=\"{mode}\">")), "{page}");
    }
}
