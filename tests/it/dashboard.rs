//! The dashboard as it is served, and what must hold of its files: nothing from elsewhere, nothing inline, nothing
//! missing. How its pages behave is tested in a browser.

use std::fs;
use std::path::{Path, PathBuf};

use mk::api::Service;
use mk::config::{Env, ServerArgs, load_server};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::panel::{config, with_panel};
use crate::support::provider::{FakeProvider, Turn};
use crate::support::raw::{exchange, request};
use crate::support::server::{NOON, Setup, TestServer, client};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/dashboard/assets")
}

/// All files, by their names below `assets`.
fn names() -> Vec<String> {
    let mut directories = vec![root()];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The addresses of all files that are served, each with its name.
fn served() -> Vec<(String, String)> {
    let address = |name: &str| match name {
        "index.html" => Some("/".to_owned()),
        "vendor/SHA256SUMS" => None,
        _ => Some(format!("/assets/{name}")),
    };
    names().into_iter().filter_map(|name| Some((address(&name)?, name))).collect()
}

/// Our own texts: what others wrote is held by its checksum.
fn own_texts() -> Vec<(String, String)> {
    let own = names().into_iter().filter(|name| !name.starts_with("vendor/"));
    own.map(|name| (name.clone(), fs::read_to_string(root().join(&name)).unwrap())).collect()
}

async fn server() -> (TestServer, FakeProvider) {
    with_panel(|_, ask| ask.choose("Paris")).await
}

#[tokio::test]
async fn every_file_is_served_whole_under_the_strict_policy() {
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
        assert_eq!(response.headers()["x-ratelimit-limit"], "600", "{address} is not an open page");
        assert!(response.headers().contains_key("x-request-id"));
        if address != "/" {
            let body = response.bytes().await.unwrap();
            assert_eq!(body, fs::read(root().join(&name)).unwrap(), "{address}");
        }
    }
}

#[tokio::test]
async fn the_page_asks_for_files_of_its_own_version_which_never_change() {
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
async fn a_file_that_the_browser_has_is_not_sent_again() {
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
async fn head_tells_the_same_without_the_file() {
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
async fn nothing_else_is_there_whatever_the_path_looks_like() {
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
async fn it_counts_as_an_open_page_and_needs_no_key() {
    let provider = FakeProvider::start(|_| Turn::Hang).await;
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
async fn the_page_of_a_sandbox_says_so_to_anyone() {
    let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
    let config = load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], NOON)).unwrap();
    let sandbox = Setup::new(config).start().await;
    let (live, _provider) = server().await;
    for (server, mode) in [(&sandbox, "sandbox"), (&live, "live")] {
        let page = client().get(&server.base).send().await.unwrap().text().await.unwrap();
        assert!(page.contains(&format!("<html lang=\"en\" data-mode=\"{mode}\">")), "{page}");
    }
}

#[test]
fn what_others_wrote_is_what_they_published() {
    let vendor = root().join("vendor");
    let sums = fs::read_to_string(vendor.join("SHA256SUMS")).unwrap();
    let mut listed = vec!["SHA256SUMS"];
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let hash = format!("{:x}", Sha256::digest(fs::read(vendor.join(name)).unwrap()));
        assert_eq!(hash, sum, "{name} was changed");
        listed.push(name);
    }
    listed.sort_unstable();
    let all = names();
    let there: Vec<&str> = all.iter().filter_map(|name| name.strip_prefix("vendor/")).collect();
    assert_eq!(there, listed);
    let size: u64 = there.iter().map(|name| fs::metadata(vendor.join(name)).unwrap().len()).sum();
    assert!(size < 100_000, "{size} bytes");
}

#[test]
fn nothing_comes_from_elsewhere_and_nothing_is_inline() {
    // A name of a format, and not an address: no browser asks there.
    let svg = "http://www.w3.org/2000/svg";
    let banned = [
        "://",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "new EventSource",
        "sessionStorage",
        "indexedDB",
        "document.cookie",
        "style=\"",
        "javascript:",
        // From the root, which under a path prefix is somebody else's.
        "\"/v1",
        "`/v1",
        "\"/assets",
        "\"/verify",
        "\"/inference",
        "src=\"/",
        "href=\"/",
    ];
    for (name, text) in own_texts() {
        let text = text.replace(svg, "");
        for word in banned {
            assert!(!text.contains(word), "{name} has {word}");
        }
        if Path::new(&name).extension().is_some_and(|extension| extension == "css") {
            assert!(!text.contains("url(") && !text.contains("@import"), "{name} asks for more");
        }
        if name != "theme.js" && name != "lib/shell.js" {
            assert!(!text.contains("localStorage"), "{name} keeps something in the browser");
        }
    }
    let page = fs::read_to_string(root().join("index.html")).unwrap();
    assert!(!page.contains("<style") && !page.contains(" on"), "{page}");
    for script in page.split("<script").skip(1) {
        assert!(script.starts_with(" src=\"assets/"), "{script}");
        assert!(script.split_once('>').unwrap().1.starts_with("</script>"), "{script}");
    }
}

#[test]
fn whatever_is_asked_for_is_there() {
    let names = names();
    let mut asked = 0;
    for (name, text) in own_texts() {
        let directory = Path::new(&name).parent().unwrap();
        let referred: Vec<&str> = match name.rsplit('.').next().unwrap() {
            "js" => imports(&text).collect(),
            "html" => text.split(['"']).filter(|part| part.starts_with("assets/")).collect(),
            _ => Vec::new(),
        };
        for reference in referred {
            let relative = reference.strip_prefix("assets/").unwrap_or(reference);
            let mut path = directory.to_path_buf();
            for part in relative.split('/') {
                match part {
                    "." => {}
                    ".." => assert!(path.pop(), "{name} leaves the assets by {reference}"),
                    part => path.push(part),
                }
            }
            assert!(names.iter().any(|name| Path::new(name) == path), "{name} asks for {reference}");
            asked += 1;
        }
        for link in text.split("href=\"assets/").skip(1) {
            let linked = link.split('"').next().unwrap();
            assert!(names.iter().any(|name| name == linked), "{name} links to {linked}");
        }
    }
    assert!(asked > 60, "{asked}");
}

/// What a module imports: all of it lies beside it, as there is no build that could find it elsewhere.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let statements = text.lines().filter(|line| {
        line.starts_with("import ") || line.starts_with("export {") || line.starts_with("} from ")
    });
    statements.filter_map(|line| {
        let from = line.rsplit_once("from \"").or_else(|| line.split_once("import \""))?.1;
        let path = from.split('"').next()?;
        assert!(path.starts_with('.'), "{line}");
        Some(path)
    })
}
