//! Checks the threat model: each of its lines names at least one test, and all named tests exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The lines of the threat model: the attack and the defence, and the names of the tests.
fn lines() -> Vec<(String, Vec<String>)> {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/gate/threats.md")).unwrap();
    let page = page.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    // A heading ends a group of lines.
    let lines = page.split(" - **").skip(1).map(|line| line.split(" ## ").next().unwrap());
    lines
        .map(|line| {
            let (text, tests) =
                line.split_once("Tests:").unwrap_or_else(|| panic!("no test is named: {line}"));
            (text.to_owned(), tests.split('`').skip(1).step_by(2).map(str::to_owned).collect())
        })
        .collect()
}

/// The names of all test functions.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut dirs = vec![root.join("tests/it"), root.join("src")];
    let mut found = BTreeSet::new();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
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
        // Within `proptest!` the functions are marked with `#[test]` as well.
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
    for (text, named) in lines {
        let (attack, defence) = text.split_once("**").unwrap_or_else(|| panic!("{text}"));
        assert!(attack.ends_with('.') && defence.len() > 10, "{text}");
        assert!(!named.is_empty(), "no test is named: {text}");
        for name in named {
            assert!(tests.contains(&name), "there is no test `{name}`: {text}");
        }
    }
}

/// Names that callers choose are kept in hash tables with random seeds. With a fixed seed a caller could choose names
/// that all collide.
#[test]
fn no_hash_table_has_a_predictable_hasher() {
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for wrong in ["BuildHasherDefault", "FxHash", "AHash", "fnv::", "with_hasher"] {
                    assert!(!text.contains(wrong), "{wrong} in {}", path.display());
                }
            }
        }
    }
}
