//! How the dashboard's files are served. `dashboard_files` checks their content; how the pages behave is tested in a
//! browser (`tests/web`).

use std::fs;

use serde_json::Value;

use crate::dashboard_files::{BUNDLES, names, root};
use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::{exchange, request};
use crate::support::server::{Setup, TestServer, client};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The names of all served files below `/assets`.
fn served() -> Vec<String> {
    let is_plain = |name: &String| {
        ["favicon.svg", "first.js"].contains(&name.as_str()) || name.ends_with(".LICENSE.txt")
    };
    let bundles = BUNDLES.iter().map(ToString::to_string);
    names().into_iter().filter(is_plain).chain(bundles).collect()
}

/// The addresses of the files that the page asks for, as it writes them.
async fn asked(server: &TestServer) -> Vec<String> {
    let page = client().get(&server.base).send().await.unwrap().text().await.unwrap();
    page.split('"').filter(|part| part.starts_with("assets/")).map(str::to_owned).collect()
}

async fn server() -> (TestServer, FakeProvider) {
    agreeing_panel().await
}

#[tokio::test]
async fn every_file_is_served_completely_with_the_strict_policy() {
    let (server, _provider) = server().await;
    let addresses = served().into_iter().map(|name| format!("/assets/{name}"));
    for address in addresses.chain(["/".to_owned()]) {
        let response = client().get(format!("{}{address}?x=1", server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{address}");
        let kind = match address.rsplit('.').next().unwrap() {
            "/" => "text/html; charset=utf-8",
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
        let name = address.trim_start_matches("/assets/");
        let body = response.bytes().await.unwrap();
        if let Ok(file) = fs::read(root().join(name)) {
            assert_eq!(body, file, "{address}");
        }
    }
}

#[tokio::test]
async fn the_page_loads_a_few_immutable_files_of_its_own_version() {
    let (server, _provider) = server().await;
    let asked = asked(&server).await;
    assert!((3..=5).contains(&asked.len()), "{asked:?}");
    for address in asked {
        let response = client().get(format!("{}/{address}", server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{address}");
        assert_eq!(response.headers()["cache-control"], "public, max-age=31536000, immutable", "{address}");
        assert_eq!(response.headers()["content-security-policy"], POLICY);
        let [_, version, name] = address.splitn(3, '/').collect::<Vec<_>>()[..] else { panic!("{address}") };
        let plain = client().get(format!("{}/assets/{name}", server.base)).send().await.unwrap();
        assert_eq!(response.bytes().await.unwrap(), plain.bytes().await.unwrap(), "{address}");
        let other = format!("{}/assets/{}/{name}", server.base, version.replace(['0', '1', '2'], "f"));
        assert_eq!(client().get(other).send().await.unwrap().status(), 404, "{address}");
    }
}

#[tokio::test]
async fn the_bundles_hold_all_modules_and_styles() {
    let (server, _provider) = server().await;
    let read = async |name: &str| {
        client().get(format!("{}/assets/{name}", server.base)).send().await.unwrap().text().await.unwrap()
    };
    let (script, styles) = (read("dashboard.js").await, read("dashboard.css").await);
    let mut parts = 0;
    for name in names() {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        let Some(kind) = name.rsplit_once('.') else { continue };
        let (bundle, text) = match kind {
            ("first", _) => continue,
            // The first line is a comment in all of our own modules; a vendored one begins with its code.
            (_, "js") => (&script, text.lines().next().unwrap().chars().take(60).collect()),
            (_, "css") => (&styles, text),
            _ => continue,
        };
        assert!(bundle.contains(&text), "{name} is missing");
        parts += 1;
    }
    assert!(parts > 50, "{parts}");
}

#[tokio::test]
async fn a_file_with_a_matching_etag_is_not_sent_again() {
    let (server, _provider) = server().await;
    for address in ["/", "/assets/dashboard.js"] {
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
    for address in ["/", "/assets/dashboard.js", "/assets/favicon.svg"] {
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
        "/assets/app.js",
        "/assets/index.html",
        "/assets/vendor/SHA256SUMS",
        "/assets/../mod.rs",
        "/assets/vendor/../dashboard.js",
        "/assets/%2e%2e/mod.rs",
        "/assets/vendor%2fhtm.LICENSE.txt",
        "/assets//dashboard.js",
        "/assets/./dashboard.js",
        "/assets//etc/passwd",
        "/assets/dashboard.js/",
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
    for path in ["/", "/assets/dashboard.js"] {
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = exchange(server.authority(), &request(method, path, &[], "")).await;
            assert!(answer.starts_with("HTTP/1.1 405 "), "{method} {path}: {answer}");
            assert!(answer.contains("\r\nallow: GET, HEAD\r\n"), "{answer}");
        }
    }
}

#[tokio::test]
async fn the_files_of_the_dashboard_are_not_limited_and_what_does_not_exist_is() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.limits.open_pages_per_minute = 2)
        .start()
        .await;
    let status = async |address: &str| {
        client().get(format!("{}/{address}", server.base)).send().await.unwrap().status().as_u16()
    };
    for _ in 0..3 {
        assert_eq!(status("").await, 200);
        for address in asked(&server).await {
            assert_eq!(status(&address).await, 200, "{address}");
        }
        // What every load of the page begins with.
        assert_eq!(status("v1/auth/session").await, 401);
    }
    let mut limited = Vec::new();
    for address in ["verify/v1/health", "assets/nothing.js", "assets/nothing.js"] {
        limited.push(status(address).await);
    }
    assert_eq!(limited, [200, 404, 429]);
    // Whoever polls health pages too often can still open the dashboard.
    assert_eq!((status("").await, status("assets/dashboard.js").await), (200, 200));
    assert_eq!(status("v1/auth/session").await, 401);
}
