//! Who may name whom: reads every `crate::` path of `src` and holds it against the map.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that anyone may name; they name only each other.
const OPEN: [&str; 13] = [
    "api",
    "bidi",
    "clock",
    "id",
    "loopback",
    "model_id",
    "money",
    "private",
    "reason",
    "secret",
    "semaphore",
    "trouble",
    "workers",
];

fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        (
            "cli",
            vec![
                "app",
                "client",
                "config",
                "keys",
                "limits",
                "metrics",
                "providers",
                "server",
                "storage",
                "usage",
            ],
        ),
        (
            "app",
            vec![
                "config",
                "inference",
                "keys",
                "limits",
                "metrics",
                "providers",
                "storage",
                "usage",
                "verify",
            ],
        ),
        (
            "server",
            vec!["app", "config", "inference", "keys", "limits", "metrics", "storage", "usage", "verify"],
        ),
        ("config", vec!["inference", "limits", "providers", "storage", "verify"]),
        ("verify", vec!["inference", "usage"]),
        ("inference", vec!["providers", "usage"]),
        ("keys", vec!["storage"]),
        ("limits", vec!["storage"]),
        ("usage", vec!["metrics", "storage"]),
        ("client", vec![]),
        ("metrics", vec![]),
        ("providers", vec![]),
        ("storage", vec![]),
        ("api", vec![]),
        ("bidi", vec![]),
        ("clock", vec![]),
        ("id", vec![]),
        ("loopback", vec![]),
        ("model_id", vec![]),
        ("money", vec![]),
        ("semaphore", vec![]),
        ("private", vec![]),
        ("reason", vec![]),
        ("secret", vec![]),
        ("trouble", vec![]),
        ("workers", vec![]),
    ])
}

#[test]
fn rooms_name_only_whom_they_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let allowed = allowed();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in rust_files(&src) {
        let relative = file.strip_prefix(&src).unwrap();
        let room = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let in_tests =
            relative.iter().any(|part| part == "tests" || part.to_string_lossy().ends_with("tests.rs"));
        if room == "lib" || room == "main" || in_tests {
            continue;
        }
        let may = allowed.get(room.as_str()).unwrap_or_else(|| panic!("{room} is not on the map"));
        seen.insert(room.clone());
        for named in named_rooms(&fs::read_to_string(&file).unwrap()) {
            if named != room && !OPEN.contains(&named.as_str()) && !may.contains(&named.as_str()) {
                wrong.push(format!("{} names {named}", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "against the map in src/lib.rs:\n{}", wrong.join("\n"));
    let missing: Vec<_> = allowed.keys().filter(|room| !seen.contains(**room)).collect();
    assert!(missing.is_empty(), "on the map, but not in src: {missing:?}");
}

/// The rooms behind `crate::`, in paths and in `use crate::{a, b}`; unit tests are free.
fn named_rooms(source: &str) -> BTreeSet<String> {
    let code = without_tests(source);
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = lines.join("\n");
    let mut rooms = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let names = match rest.strip_prefix('{') {
            None => vec![rest],
            Some(list) => top_level_items(list),
        };
        for name in names {
            let word: String =
                name.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            rooms.insert(word);
        }
    }
    rooms.remove("");
    rooms
}

/// A file without its unit tests, whatever stands after them.
fn without_tests(source: &str) -> String {
    let Some((before, tests)) = source.split_once("\n#[cfg(test)]\nmod tests {") else {
        return source.to_owned();
    };
    let (_, after) = tests.split_once("\n}\n").unwrap();
    format!("{before}\n{}", without_tests(after))
}

fn top_level_items(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
