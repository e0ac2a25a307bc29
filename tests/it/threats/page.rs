//! The threat model is held to its tests: each of its lines names at least one, and all that it names exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The lines of the page: what is attacked and what stops it, and the tests that show it.
fn lines() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/gate.rs")).unwrap();
    let page: Vec<&str> = page.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let page = page.join(" ");
    // A group of lines, or the end of them, begins behind an empty one.
    let lines = page.split(" - **").skip(1).map(|line| line.split("  **").next().unwrap());
    lines
        .map(|line| {
            let (told, tests) =
                line.split_once("Tests:").unwrap_or_else(|| panic!("no test is named: {line}"));
            (told.to_owned(), tests.split('`').skip(1).step_by(2).map(str::to_owned).collect())
        })
        .collect()
}

/// The functions of all tests.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut rooms = vec![root.join("tests/it"), root.join("src")];
    let mut found = BTreeSet::new();
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rooms.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.extend(tests_of(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

fn tests_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        // Properties are written within a macro, which makes a test of each.
        let name = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
        match name.and_then(|rest| rest.split_once('(')) {
            Some((name, _)) if is_test => {
                found.push(name.to_owned());
                is_test = false;
            }
            Some(_) => is_test = false,
            None if line.starts_with("#[test]") || line.starts_with("#[tokio::test") => is_test = true,
            None => {}
        }
    }
    found
}

#[test]
fn every_line_of_the_threat_model_names_tests_that_exist() {
    let (lines, tests) = (lines(), tests());
    assert!(lines.len() >= 30, "{} lines", lines.len());
    assert!(tests.len() > 500, "{} tests", tests.len());
    for (told, named) in lines {
        let (attack, defence) = told.split_once("**").unwrap_or_else(|| panic!("{told}"));
        assert!(attack.ends_with('.') && defence.len() > 10, "{told}");
        assert!(!named.is_empty(), "no test is named: {told}");
        for name in named {
            assert!(tests.contains(&name), "there is no test `{name}`: {told}");
        }
    }
}

/// Names that callers choose are kept in tables whose order nobody can foresee. Hashers with a fixed seed would let a
/// caller choose names that all fall into one place.
#[test]
fn no_table_of_ours_has_a_hasher_that_can_be_foreseen() {
    let mut rooms = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rooms.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for wrong in ["BuildHasherDefault", "FxHash", "AHash", "fnv::", "with_hasher"] {
                    assert!(!text.contains(wrong), "{wrong} in {}", path.display());
                }
            }
        }
    }
}
