//! The dashboard's files: nothing from other hosts, nothing inline, nothing missing.

use std::fs;
use std::path::{Path, PathBuf};

use mk::hex::hex;
use sha2::{Digest, Sha256};

/// The folder of the files.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/endpoints/dashboard/assets")
}

/// What is put together from other files and served under its own name.
pub const BUNDLES: [&str; 2] = ["dashboard.css", "dashboard.js"];

/// The names of all files, relative to `assets`.
pub fn names() -> Vec<String> {
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

/// Our own files. Vendored ones are checked by their checksums instead.
fn own_texts() -> Vec<(String, String)> {
    let own = names().into_iter().filter(|name| !name.starts_with("vendor/"));
    own.map(|name| (name.clone(), fs::read_to_string(root().join(&name)).unwrap())).collect()
}

#[test]
fn vendored_files_match_their_checksums() {
    let vendor = root().join("vendor");
    let sums = fs::read_to_string(vendor.join("SHA256SUMS")).unwrap();
    let mut listed = vec!["SHA256SUMS"];
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let hash = hex(&Sha256::digest(fs::read(vendor.join(name)).unwrap()));
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
fn nothing_is_loaded_from_elsewhere_or_inline() {
    // An XML namespace, which no browser fetches.
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
        "indexedDB",
        "document.cookie",
        "style=\"",
        "javascript:",
        // Absolute paths break behind a path prefix.
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
            assert!(!text.contains("url(") && !text.contains("@import"), "{name} loads another file");
        }
        if name != "first.js" && name != "lib/shell.js" {
            assert!(!text.contains("localStorage"), "{name} uses the browser's storage");
        }
        // What a reload keeps, and nothing else.
        if name != "playground/kept.js" {
            assert!(!text.contains("sessionStorage"), "{name} uses the window's storage");
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
fn every_referenced_file_exists() {
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
                    ".." => assert!(path.pop(), "{name} leaves the assets with {reference}"),
                    part => path.push(part),
                }
            }
            assert!(
                names.iter().map(String::as_str).chain(BUNDLES).any(|name| Path::new(name) == path),
                "{name} refers to {reference}, which does not exist"
            );
            asked += 1;
        }
        for link in text.split("href=\"assets/").skip(1) {
            let linked = link.split('"').next().unwrap();
            assert!(
                names.iter().map(String::as_str).chain(BUNDLES).any(|name| name == linked),
                "{name} links to {linked}, which does not exist"
            );
        }
    }
    assert!(asked > 60, "{asked}");
}

/// The paths that a module imports. They must be relative, as there is no bundler to resolve others.
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
