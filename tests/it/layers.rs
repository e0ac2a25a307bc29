//! Checks every `crate::` path in `src` against the map of rooms: which room may name which; and the guide's paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms each room may name, as the table at the top of `src/lib.rs` says.
struct Map {
    allowed: BTreeMap<String, BTreeSet<String>>,
    /// Rooms that every room may name; they name only each other.
    open: BTreeSet<String>,
}

impl Map {
    fn read(head: &str) -> Self {
        let mut map = Self { allowed: BTreeMap::new(), open: BTreeSet::new() };
        for line in head.lines().filter(|line| line.starts_with("//! | `")) {
            let cells: Vec<&str> = line.trim_start_matches("//!").split('|').map(str::trim).collect();
            let ["", rooms, _, may, ""] = cells[..] else { panic!("not three cells: {line}") };
            let is_open = may == "open to all";
            let may = if is_open || may == "nobody" { "" } else { may };
            for room in rooms.split(' ').map(|room| room.trim_matches('`').to_owned()) {
                if is_open {
                    map.open.insert(room.clone());
                }
                let may = may.split_whitespace().map(str::to_owned).collect();
                assert!(map.allowed.insert(room, may).is_none(), "a room has two rows: {line}");
            }
        }
        // If the table's format changes, it must not be skipped silently.
        assert!(map.allowed.len() > 20 && map.open.len() > 5, "the table was not parsed: {:?}", map.allowed);
        map
    }
}

#[test]
fn rooms_name_only_the_rooms_they_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let Map { allowed, open } = Map::read(&fs::read_to_string(src.join("lib.rs")).unwrap());
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files(&src) {
        let relative = file.strip_prefix(&src).unwrap();
        let room = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let in_tests =
            relative.iter().any(|part| part == "tests" || part.to_string_lossy().ends_with("tests.rs"));
        if room == "lib" || room == "main" || in_tests {
            continue;
        }
        let may = allowed.get(&room).unwrap_or_else(|| panic!("{room} is not on the map"));
        let mut named = named_rooms(&fs::read_to_string(&file).unwrap());
        named.retain(|named| *named != room && !open.contains(named));
        wrong.extend(named.difference(may).map(|named| format!("{} names {named}", relative.display())));
        seen.entry(room).or_default().append(&mut named);
    }
    let missing: Vec<_> = allowed.keys().filter(|room| !seen.contains_key(*room)).collect();
    assert!(missing.is_empty(), "on the map, but not in src: {missing:?}");
    for (room, may) in &allowed {
        wrong.extend(
            may.difference(&seen[room]).map(|named| format!("{room} may name {named}, but does not")),
        );
    }
    assert!(wrong.is_empty(), "against the map in src/lib.rs:\n{}", wrong.join("\n"));
}

/// The rooms named after `crate::`, in paths and in `use crate::{a, b}`; unit tests may name any room.
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

/// A file without its unit tests; code after them is kept.
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

/// The guide leads nowhere else than to what is there.
#[test]
fn the_guide_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("src/README.md")).unwrap();
    let is_path = |text: &&str| {
        text.contains('/')
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c))
    };
    let named: BTreeSet<&str> = guide.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() > 40, "{named:?}");
    for path in named {
        assert!(root.join("src").join(path).exists() || root.join(path).exists(), "{path}");
    }
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
