//! The table of embedded files. A test compares it with the directory, so that none is forgotten.
//!
//! The page's modules are served as one script and its styles as one sheet, put together when the first of them is
//! asked for. Each file has two paths: its name, and its name below the version, which is a hash of all files. The page
//! uses the latter: what is there never changes, so a browser requests it once and a reload costs one request.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest, Sha256};

use super::bundle;
use crate::hex::hex;

/// A file as it is served.
pub(in crate::server) struct File {
    pub(super) bytes: Bytes,
    pub(super) content_type: &'static str,
    /// The hash of the content, in quotes.
    pub(super) etag: HeaderValue,
}

/// Pairs of a name under `assets/` and the content of that file, embedded at build time.
macro_rules! embedded {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("assets/", $name)))),*]
    };
}

/// The modules of the page, which are served as one script.
const MODULES: &[(&str, &str)] = &embedded! {
    "app.js"
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
    "playground/kept.js"
    "playground/offer.js"
    "playground/offered.js"
    "playground/outcome.js"
    "playground/request.js"
    "playground/run.js"
    "playground/show_as.js"
    "playground/simulated.js"
    "playground/store.js"
    "playground/stream.js"
    "playground/talk.js"
    "playground/text.js"
    "playground/verdict.js"
    "playground/verification.js"
    "playground/verify.js"
    "playground/votes.js"
    "vendor/htm-preact.js"
};
/// Where the page begins.
const ENTRY: &str = "app.js";
/// A plain script that comes before the modules and defines a global variable.
const LIBRARY: &[(&str, &str)] = &embedded! {
    "vendor/uplot.js"
};
/// The styles, in the order in which they apply.
const STYLES: &[(&str, &str)] = &embedded! {
    "style.css"
    "parts.css"
    "pages/playground.css"
    "vendor/uplot.css"
};
/// What is served as it is.
const PLAIN: &[(&str, &str)] = &embedded! {
    "favicon.svg"
    "first.js"
    "vendor/htm.LICENSE.txt"
    "vendor/preact.LICENSE.txt"
    "vendor/uplot.LICENSE.txt"
};

const PAGE: &str = include_str!("assets/index.html");

/// All files but the page, by name.
static FILES: LazyLock<HashMap<&'static str, File>> = LazyLock::new(|| {
    let bundles = [("dashboard.js", script()), ("dashboard.css", joined(STYLES))];
    let plain = PLAIN.iter().map(|(name, text)| (*name, Bytes::from_static(text.as_bytes())));
    let bundled = bundles.into_iter().map(|(name, text)| (name, text.into()));
    plain.chain(bundled).map(|(name, bytes)| (name, File::new(name, bytes))).collect()
});
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut files: Vec<_> = FILES.iter().collect();
    files.sort_unstable_by_key(|(name, _)| **name);
    let mut hash = Sha256::new();
    for (name, file) in files {
        hash.update(name);
        hash.update(Sha256::digest(&file.bytes));
    }
    tag(&hash.finalize())
});
static INDEX: LazyLock<File> = LazyLock::new(|| {
    let page = PAGE.replace(r#""assets/"#, &format!("\"assets/{}/", *VERSION));
    File::new("index.html", page.into())
});

/// The script of the page. A test holds that the modules can be bundled; if not, the page says that it cannot load.
fn script() -> String {
    let source = |wanted: &str| MODULES.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text);
    let modules = bundle::script(ENTRY, &source).unwrap_or_else(|reason| {
        tracing::error!(reason, "the dashboard's script cannot be put together");
        String::new()
    });
    joined(LIBRARY) + &modules
}

fn joined(files: &[(&str, &str)]) -> String {
    files.iter().flat_map(|(_, text)| [*text, "\n"]).collect()
}

/// The first half of a hash, which is more than enough to tell files apart.
fn tag(hash: &[u8]) -> String {
    hex(&hash[..16])
}

impl File {
    /// A file with this content; the end of its name says what that is.
    pub(crate) fn new(name: &str, bytes: Bytes) -> Self {
        let etag = HeaderValue::try_from(format!("\"{}\"", tag(&Sha256::digest(&bytes))));
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
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

/// The page.
pub(super) fn page() -> &'static File {
    &INDEX
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
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/endpoints/dashboard/assets");
        let mut found: Vec<String> = NOT_SERVED.iter().map(ToString::to_string).collect();
        let all = [MODULES, LIBRARY, STYLES, PLAIN].concat();
        found.extend(all.iter().map(|(name, _)| (*name).to_owned()));
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
    fn every_module_is_in_the_script_once() {
        let script = String::from_utf8(find("dashboard.js").unwrap().0.bytes.to_vec()).unwrap();
        let begun =
            script.lines().filter(|line| line.starts_with("const $") && line.ends_with(" = (() => {"));
        assert_eq!(begun.count(), MODULES.len());
    }
}
