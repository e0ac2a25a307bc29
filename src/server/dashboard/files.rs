//! The table of embedded files. A test compares it with the directory, so that none is forgotten.
//!
//! Each file has two paths: its name, and its name below the version, which is a hash of all files. The page uses the
//! latter: what is there never changes, so a browser requests it once and a reload costs one request; and modules of
//! two versions are never mixed, as their imports are relative.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::Bytes;
use http::HeaderValue;
use sha2::digest::Output;
use sha2::{Digest, Sha256};

/// A file as it is served.
pub(super) struct File {
    pub(super) bytes: Bytes,
    pub(super) content_type: &'static str,
    /// The hash of the content, in quotes.
    pub(super) etag: HeaderValue,
}

/// Pairs of a name under `assets/` and the content of that file, embedded at build time.
macro_rules! embedded {
    ($($name:literal)*) => {
        [$(($name, include_bytes!(concat!("assets/", $name)) as &'static [u8])),*]
    };
}

const EMBEDDED: &[(&str, &[u8])] = &embedded! {
    "app.js"
    "favicon.svg"
    "parts.css"
    "style.css"
    "theme.js"
    "lib/api.js"
    "lib/app_dialogs.js"
    "lib/budget.js"
    "lib/chart.js"
    "lib/commands.js"
    "lib/copy.js"
    "lib/data.js"
    "lib/dialog.js"
    "lib/download.js"
    "lib/format.js"
    "lib/guard.js"
    "lib/html.js"
    "lib/key_dialogs.js"
    "lib/key_form.js"
    "lib/key_once.js"
    "lib/router.js"
    "lib/server_base.js"
    "lib/shell.js"
    "lib/ui.js"
    "pages/app.js"
    "pages/apps.js"
    "pages/audit.js"
    "pages/login.js"
    "pages/overview.js"
    "pages/playground.css"
    "pages/playground.js"
    "pages/setup.js"
    "pages/usage.js"
    "pages/usage_billing.js"
    "pages/usage_report.js"
    "pages/usage_statements.js"
    "playground/chat.js"
    "playground/command.js"
    "playground/conversation.js"
    "playground/exchange.js"
    "playground/fault.js"
    "playground/focus.js"
    "playground/keys.js"
    "playground/outcome.js"
    "playground/request.js"
    "playground/run.js"
    "playground/show_as.js"
    "playground/store.js"
    "playground/stream.js"
    "playground/talk.js"
    "playground/text.js"
    "playground/verdict.js"
    "playground/verification.js"
    "playground/verify.js"
    "playground/votes.js"
    "vendor/htm-preact.js"
    "vendor/htm.LICENSE.txt"
    "vendor/preact.LICENSE.txt"
    "vendor/uplot.LICENSE.txt"
    "vendor/uplot.css"
    "vendor/uplot.js"
};

const PAGE: &str = include_str!("assets/index.html");
const LIVE_MODE: &str = r#"data-mode="live""#;
const SANDBOX_MODE: &str = r#"data-mode="sandbox""#;

static FILES: LazyLock<HashMap<&'static str, File>> = LazyLock::new(|| {
    EMBEDDED.iter().map(|(name, bytes)| (*name, File::new(name, Bytes::from_static(bytes)))).collect()
});
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for (name, bytes) in EMBEDDED {
        hash.update(name);
        hash.update(Sha256::digest(bytes));
    }
    hex(&hash.finalize())
});
static LIVE_PAGE: LazyLock<File> = LazyLock::new(|| render_page(LIVE_MODE));
static SANDBOX_PAGE: LazyLock<File> = LazyLock::new(|| render_page(SANDBOX_MODE));

fn render_page(mode: &str) -> File {
    let page = PAGE.replace(LIVE_MODE, mode).replace(r#""assets/"#, &format!("\"assets/{}/", *VERSION));
    File::new("index.html", page.into())
}

/// The first half of a hash, in hexadecimal, which is more than enough to tell files apart.
fn hex(hash: &Output<Sha256>) -> String {
    let mut digits = format!("{hash:x}");
    digits.truncate(32);
    digits
}

impl File {
    fn new(name: &str, bytes: Bytes) -> Self {
        let etag = HeaderValue::try_from(format!("\"{}\"", hex(&Sha256::digest(&bytes))));
        Self {
            content_type: content_type(name),
            // Hexadecimal digits always form a valid header; without a tag, a file would only be sent again.
            etag: etag.unwrap_or(HeaderValue::from_static("\"\"")),
            bytes,
        }
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

/// The page of a server with real answers.
pub(super) fn page() -> &'static File {
    &LIVE_PAGE
}

/// The page of a server with simulated answers.
pub(super) fn sandbox_page() -> &'static File {
    &SANDBOX_PAGE
}

/// The file at a path below `/assets/`, and whether it is immutable there.
pub(super) fn find(path: &str) -> Option<(&'static File, bool)> {
    let versioned = path.strip_prefix(VERSION.as_str()).and_then(|rest| rest.strip_prefix('/'));
    Some((FILES.get(versioned.unwrap_or(path))?, versioned.is_some()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Files in the directory that are not served.
    const NOT_SERVED: [&str; 2] = ["index.html", "vendor/SHA256SUMS"];

    #[test]
    fn every_file_in_the_directory_is_in_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/dashboard/assets");
        let mut found: Vec<String> = NOT_SERVED.iter().map(ToString::to_string).collect();
        found.extend(EMBEDDED.iter().map(|(name, _)| (*name).to_owned()));
        found.sort();
        let mut directories = vec![root.clone()];
        let mut expected = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    expected.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_page_says_when_answers_are_simulated() {
        assert_eq!(PAGE.matches(LIVE_MODE).count(), 1);
        let sandbox = String::from_utf8(sandbox_page().bytes.to_vec()).unwrap();
        assert!(sandbox.contains(SANDBOX_MODE) && !sandbox.contains(LIVE_MODE));
        assert_ne!(sandbox_page().etag, page().etag);
    }
}
