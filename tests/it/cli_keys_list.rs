//! `mk keys list` on a terminal: what identifies a key stays on one line, and ids are available.

use mk::api::Service;
use mk::clock::Clock;
use mk::keys::{self, NewKey};
use mk::money::NanoUsd;
use mk::storage::KeyRow;
use unicode_width::UnicodeWidthStr;

use crate::support::mk::Mk;
use crate::support::place::local;
use crate::support::pty;

/// A command on a database with several keys, one with a name of several words and an expiry.
fn with_keys() -> (Mk, Vec<KeyRow>) {
    let (store, mk) = local();
    let now = Clock::system().now();
    let named = |service, name: &str| {
        let mut new = NewKey::new(service, "default");
        new.name = Some(name.to_owned());
        new
    };
    let mut nightly = named(Service::Inference, "the nightly build");
    nightly.expires_at = Some(now.plus(std::time::Duration::from_hours(24 * 90)));
    let rows = [nightly, named(Service::Verify, "ci"), NewKey::new(Service::Inference, "default")]
        .map(|new| keys::create(&store, &new, now).unwrap().1);
    (mk, rows.to_vec())
}

fn listed(mk: &Mk, columns: u16) -> String {
    let shown = pty::run(&mk.clone().args(["keys", "list"]), columns, 80).last;
    assert!(shown.lines().all(|line| line.width() <= usize::from(columns)), "{columns}:\n{shown}");
    shown
}

#[test]
fn each_key_fits_on_one_line_at_every_width() {
    let (mk, rows) = with_keys();
    for columns in [44, 60, 80, 100, 140] {
        let shown = listed(&mk, columns);
        for row in &rows {
            let key = format!("{} …{}", row.service, row.last4);
            assert_eq!(shown.matches(&key).count(), 1, "{key} at {columns}:\n{shown}");
        }
        assert!(shown.contains("active") && shown.contains("expires"), "{shown}");
    }
    let narrow = listed(&mk, 80);
    assert_eq!(narrow.lines().count(), 4 + 4 + 1, "a table with one line per key:\n{narrow}");
    assert!(narrow.trim_end().ends_with("columns left out to fit: created (--json shows all)"), "{narrow}");
    assert!(!listed(&mk, 140).contains("left out"));
}

#[test]
fn only_ids_are_left_out_where_all_else_has_room() {
    let (store, mk) = local();
    let mut new = NewKey::new(Service::Inference, "default");
    (new.name, new.budget) =
        (Some("the nightly build of the website".to_owned()), Some(NanoUsd(50_000_000_000)));
    let (_, row) = keys::create(&store, &new, Clock::system().now()).unwrap();
    let shown = listed(&mk, 140);
    assert!(shown.contains("created") && !shown.contains("left out"), "{shown}");
    assert!(shown.contains("the nightly build of the website"), "on one line:\n{shown}");
    assert!(!shown.contains(&*row.id), "{shown}");
}

#[test]
fn ids_are_shown_on_wide_terminals_and_by_keys_show() {
    let (mk, rows) = with_keys();
    let wide = listed(&mk, 140);
    for row in &rows {
        assert!(wide.contains(&*row.id), "{wide}");
        assert!(!listed(&mk, 80).contains(&*row.id));
    }
    let one = pty::run(&mk.clone().args(["keys", "show", &rows[0].last4]), 80, 40).last;
    assert!(one.contains(&*rows[0].id), "{one}");
    let help = mk.args(["keys", "list", "--help"]).run().stdout;
    assert!(help.contains("mk keys show"), "the help says where to find ids: {help}");
}

#[test]
fn ascii_mode_prints_only_ascii() {
    let (mk, rows) = with_keys();
    let mk = mk.env("MK_ASCII", "1");
    let shown = |arguments: &[&str], columns: u16| {
        let raw = pty::run(&mk.clone().args(arguments.iter().copied()), columns, 80).raw;
        assert!(raw.is_ascii(), "{arguments:?}: {raw}");
        raw
    };
    for columns in [44, 80, 140] {
        let list = shown(&["keys", "list"], columns);
        assert!(list.contains(&format!("{} ...{}", rows[1].service, rows[1].last4)), "{list}");
        assert!(list.lines().all(|line| line.trim_end().len() <= usize::from(columns)), "{columns}:\n{list}");
    }
    assert!(shown(&["keys", "show", "ci"], 80).contains(&format!("mk_verify_...{}", rows[1].last4)));
    assert!(shown(&["verify", "The Eiffel Tower is in Paris."], 80).contains("--sandbox \"...\""));
    assert!(shown(&["verify", "two", "words"], 80).contains("mk verify \"...\""));
    assert!(shown(&["keys", "revoke", "ci", "--yes"], 80).contains(&format!("key ...{}", rows[1].last4)));
    assert!(shown(&["serve", "--help"], 80).contains("OPENAI_API_KEY=..."));
    assert!(shown(&["usage", "--help"], 80).contains("with >= if"));
}

#[test]
fn a_missing_database_is_reported_and_not_created() {
    let mk = Mk::new();
    let nowhere = mk.home().join("typo");
    for command in [
        &["keys", "list"][..],
        &["usage"],
        &["keys", "show", "ci"],
        &["apps", "list"],
        &["apps", "show", "ci"],
        &["apps", "statement", "ci"],
        &["keys", "update", "ci", "--name", "cd"],
        &["keys", "rotate", "ci"],
        &["keys", "revoke", "ci", "--yes"],
        &["apps", "update", "ci", "--name", "cd"],
        &["apps", "delete", "ci", "--yes"],
    ] {
        let ran =
            mk.clone().args(command.iter().copied()).args(["--data-dir", nowhere.to_str().unwrap()]).run();
        let expected = if command.contains(&"ci") { 9 } else { 0 };
        assert_eq!(ran.code(), expected, "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("there is no database in {} yet", nowhere.display())),
            "{ran:?}"
        );
        assert!(!nowhere.exists() && ran.stdout.is_empty(), "{ran:?}");
    }
}

#[test]
fn creating_a_database_is_reported_once() {
    let mk = Mk::new();
    let new = mk.home().join("new");
    let told = format!("created a database in {}\n", new.display());
    let create = || {
        mk.clone().args(["keys", "create", "--service", "verify"]).args(["--data-dir", new.to_str().unwrap()])
    };

    let refused = create().args(["--address", "300.1.1.1"]).run();
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.starts_with("error: --address: ") && !new.exists(), "{refused:?}");

    let first = create().run();
    assert_eq!(first.code(), 0, "{first:?}");
    assert!(first.stderr.starts_with(&told) && first.stdout.starts_with("mk_verify_"), "{first:?}");

    let second = create().run();
    assert_eq!(second.code(), 0, "{second:?}");
    assert!(!second.stderr.contains("database"), "{second:?}");
}
