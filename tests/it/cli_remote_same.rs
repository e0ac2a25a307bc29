//! `mk apps`, `mk keys` and `mk usage` print exactly the same for the local database and a server, except for values
//! that necessarily differ: ids, keys, times and the place.

use std::sync::Arc;

use mk::money::NanoUsd;
use mk::storage::Store;
use serde_json::Value;

use crate::support::mk::{CommandOutput, Mk};
use crate::support::place::{book, key_row, local, remote};
use crate::support::pty;

/// An operator's commands in order, with their exit codes.
const SCRIPT: [(&[&str], i32); 47] = [
    (&["apps", "create", "website", "--budget-usd", "50"], 0),
    (&["apps", "create", "press office", "--json"], 0),
    (&["apps", "create", "website"], 9),
    (&["apps", "create", "website", "--json"], 9),
    (&["apps", "create", ""], 2),
    (&["apps", "update", "website", "--name", "news", "--no-budget"], 0),
    (&["apps", "update", "news", "--budget-usd", "80.000000001", "--json"], 0),
    (&["apps", "update", "news", "--name", "default"], 9),
    (&["apps", "update", "nowhere", "--no-budget"], 9),
    (&["apps", "show", "news"], 0),
    (&["apps", "show", "news", "--json"], 0),
    (&["apps", "show", "nowhere"], 9),
    (&["apps", "list"], 0),
    (&["apps", "list", "--json"], 0),
    (&["keys", "create", "--service", "verify", "--name", "ci", "--expires", "2099-01-01"], 0),
    (
        &[
            "keys",
            "create",
            "--service",
            "inference",
            "--app",
            "news",
            "--name",
            "nightly",
            "--per-minute",
            "120",
            "--per-day",
            "0",
            "--address",
            "10.1.2.3/8",
            "--model",
            "openai/*",
            "--budget-usd",
            "10",
            "--json",
        ],
        0,
    ),
    (&["keys", "create", "--service", "verify", "--app", "nowhere"], 9),
    (&["keys", "create", "--service", "verify", "--app", "nowhere", "--json"], 9),
    (&["keys", "create", "--service", "verify", "--address", "300.1.1.1"], 2),
    (&["keys", "create", "--service", "inference", "--model", "gpt-*"], 2),
    (&["keys", "create", "--service", "console", "--model", "a/b"], 2),
    (&["keys", "create", "--service", "verify", "--name", " "], 2),
    (&["keys", "list", "--service", "inference"], 0),
    (&["keys", "list", "--app", "news", "--json"], 0),
    (&["keys", "list", "--app", "press office"], 0),
    (&["keys", "list", "--app", "nowhere"], 9),
    (&["keys", "list", "--service", "inference", "--all", "--json"], 0),
    (&["keys", "show", "ci"], 0),
    (&["keys", "show", "nightly", "--json"], 0),
    (&["keys", "show", "nobody"], 9),
    (&["keys", "update", "nightly", "--per-minute", "60", "--all-models", "--no-budget"], 0),
    (&["keys", "update", "nightly", "--model", "gpt-*"], 2),
    (&["keys", "update", "ci", "--name", "", "--json"], 2),
    (&["keys", "update", "ci", "--expires", "2098-01-01", "--json"], 0),
    (&["keys", "rotate", "ci", "--grace", "400d"], 2),
    (&["keys", "rotate", "ci", "--grace", "24h"], 0),
    (&["keys", "show", "ci"], 0),
    (&["keys", "show", "ci", "--json"], 0),
    (&["keys", "revoke", "nightly"], 2),
    (&["keys", "revoke", "nightly", "--yes", "--json"], 0),
    (&["keys", "revoke", "nightly", "--yes"], 0),
    (&["keys", "update", "nightly", "--no-name"], 9),
    (&["keys", "rotate", "nightly", "--json"], 9),
    (&["apps", "delete", "news", "--yes", "--json"], 0),
    (&["apps", "delete", "news", "--yes"], 9),
    (&["keys", "list", "--service", "inference", "--all"], 0),
    (&["apps", "delete", "press office", "--yes"], 0),
];

/// Replaces the values that necessarily differ by placeholders.
fn normalised(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (mark, length) = differing(rest);
        if length > 0 {
            out.push_str(mark);
            rest = &rest[length..];
            continue;
        }
        let first = rest.chars().next().unwrap();
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// If `text` begins with a value that necessarily differs: its placeholder and its length.
fn differing(text: &str) -> (&'static str, usize) {
    let run = |at: usize, is: fn(char) -> bool| text[at..].find(|c| !is(c)).unwrap_or(text.len() - at);
    for (prefix, mark, digits) in [
        ("key_", "KEY_ID", 32),
        ("app_", "APP_ID", 32),
        ("…", "…4444", 4),
        ("\"last4\":\"", "LAST4", 4),
        ("\"last4\": \"", "LAST4", 4),
    ] {
        if text.starts_with(prefix) && run(prefix.len(), |c| c.is_ascii_alphanumeric()) == digits {
            return (mark, prefix.len() + digits);
        }
    }
    for prefix in ["mk_verify_", "mk_inference_"] {
        if text.starts_with(prefix) && run(prefix.len(), |c| c.is_ascii_alphanumeric()) == 32 {
            return ("KEY", prefix.len() + 32);
        }
    }
    for prefix in ["mk looked in ", "mk looked on "] {
        if text.starts_with(prefix) {
            return ("PLACE", prefix.len() + run(prefix.len(), |c| !c.is_whitespace() && c != '"'));
        }
    }
    let moment = run(0, |c| c.is_ascii_digit() || "-:.TZ".contains(c));
    if moment == "2026-11-20T19:26:00.123Z".len() { ("MOMENT", moment) } else { ("", 0) }
}

/// Exit code and normalised output of a command, without the error code and request id that only a server adds to an
/// error document.
fn comparable(ran: &CommandOutput) -> (i32, String, String) {
    let mut stdout = ran.stdout.clone();
    if let Ok(mut document) = serde_json::from_str::<Value>(&stdout)
        && let Some(error) = document.get_mut("error").and_then(Value::as_object_mut)
    {
        error.remove("code");
        error.remove("request_id");
        stdout = format!("{document}\n");
    }
    (ran.code(), normalised(&stdout), normalised(&ran.stderr))
}

async fn both(local: &Mk, remote: &Mk, arguments: &[&str]) -> (CommandOutput, CommandOutput) {
    let call = |mk: &Mk| mk.clone().args(arguments.iter().copied());
    (call(local).run_beside().await, call(remote).run_beside().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_has_the_same_output_and_exit_code_locally_and_remotely() {
    let ((_store, here), (_server, there)) = (local(), remote().await);
    for (arguments, code) in SCRIPT {
        let (local, remote) = both(&here, &there, arguments).await;
        assert_eq!(comparable(&local), comparable(&remote), "{arguments:?}");
        assert_eq!(local.code(), code, "{arguments:?}: {local:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_look_the_same_locally_and_remotely_at_all_widths() {
    let ((store, here), (server, there)) = (local(), remote().await);
    for arguments in [
        &["apps", "create", "news", "--budget-usd", "10"][..],
        &[
            "keys",
            "create",
            "--service",
            "inference",
            "--app",
            "news",
            "--name",
            "near",
            "--budget-usd",
            "10",
        ],
        &[
            "keys",
            "create",
            "--service",
            "inference",
            "--app",
            "news",
            "--name",
            "over",
            "--budget-usd",
            "1.5",
        ],
        &[
            "keys",
            "create",
            "--service",
            "inference",
            "--app",
            "news",
            "--name",
            "free",
            "--expires",
            "2099-01-01",
        ],
    ] {
        let (local, remote) = both(&here, &there, arguments).await;
        assert_eq!((local.code(), remote.code()), (0, 0), "{local:?} {remote:?}");
    }
    for store in [&*store, &server.app.store] {
        book(store, "near", NanoUsd(8_123_456_789));
        book(store, "over", NanoUsd(1_500_000_000));
    }
    for arguments in [
        &["apps", "list"][..],
        &["apps", "show", "news"],
        &["keys", "list", "--app", "news"],
        &["keys", "show", "near"],
        &["keys", "show", "over"],
        &["keys", "show", "free"],
        &["apps", "list", "--json"],
        &["keys", "list", "--app", "news", "--json"],
    ] {
        let (local, remote) = both(&here, &there, arguments).await;
        assert_eq!(comparable(&local), comparable(&remote), "{arguments:?}");
        for width in [44, 80, 120] {
            let shown = |mk: &Mk| {
                let mk = mk.clone().args(arguments.iter().copied());
                tokio::task::spawn_blocking(move || pty::run(&mk, width, 200))
            };
            let (local, remote) = (shown(&here).await.unwrap(), shown(&there).await.unwrap());
            assert_eq!(normalised(&local.raw), normalised(&remote.raw), "{arguments:?} {width}");
            let json = arguments.contains(&"--json");
            // An id is a single word, which the terminal itself has to wrap.
            let fits = |line: &str| line.chars().count() <= width.into() || line.starts_with("id ");
            assert!(json || local.last.lines().all(fits), "{}", local.last);
            if arguments[..2] == ["keys", "list"] && !json {
                for words in ["! $8.12", "(81 %,", "nearly", "✗ $1.50", "(100 %,"] {
                    assert!(local.last.contains(words), "{words}: {}", local.last);
                }
                assert!(local.raw.contains("\u{1b}[33m!\u{1b}[0m $8.12"), "{}", local.raw);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_statements_are_the_same_locally_and_remotely() {
    let ((store, here), (server, there)) = (local(), remote().await);
    for (app, key) in [("news", "till"), ("gone", "left")] {
        for arguments in [
            &["apps", "create", app, "--budget-usd", "10"][..],
            &["keys", "create", "--service", "inference", "--app", app, "--name", key, "--budget-usd", "2"],
        ] {
            let (local, remote) = both(&here, &there, arguments).await;
            assert_eq!((local.code(), remote.code()), (0, 0), "{local:?} {remote:?}");
        }
    }
    for store in [&*store, &server.app.store] {
        book(store, "till", NanoUsd(1_650_000_000));
        book(store, "left", NanoUsd(7_000_000_001));
    }
    let ids = |store: &Store| {
        let key = key_row(store, "left");
        (key.app_id, key.id)
    };
    let (of_local, of_remote) = (ids(&store), ids(&server.app.store));
    let deleted = both(&here, &there, &["apps", "delete", "gone", "--yes"]).await;
    assert_eq!((deleted.0.code(), deleted.1.code()), (0, 0), "{deleted:?}");
    for (arguments, code) in [
        (&["usage"][..], 0),
        (&["usage", "--by", "app,key,model", "--since", "7d", "--csv"], 0),
        (&["usage", "--by", "day,service", "--json"], 0),
        (&["usage", "--app", "news", "--service", "inference", "--model", "a/b"], 0),
        (&["usage", "--key", "till", "--by", "key"], 0),
        (&["usage", "--app", "GONE_APP", "--by", "app"], 0),
        (&["usage", "--key", "GONE_KEY", "--by", "key"], 0),
        (&["usage", "--app", "gone"], 9),
        (&["usage", "--app", "app_00000000000000000000000000000000"], 9),
        (&["usage", "--key", "nobody", "--json"], 9),
        (&["usage", "--from", "2026-01-02", "--to", "2026-01-01"], 2),
        (&["apps", "statement", "news"], 0),
        (&["apps", "statement", "news", "--csv"], 0),
        (&["apps", "statement", "news", "--month", "2020-01", "--json"], 0),
        (&["apps", "statement", "GONE_APP", "--json"], 0),
        (&["apps", "statement", "gone"], 9),
    ] {
        let with = |mk: &Mk, (app, key): &(Arc<str>, Arc<str>)| {
            let named = arguments.iter().map(|text| match *text {
                "GONE_APP" => &**app,
                "GONE_KEY" => &**key,
                text => text,
            });
            mk.clone().args(named)
        };
        let (here, there) = (with(&here, &of_local), with(&there, &of_remote));
        let (local, remote) = (here.run_beside().await, there.run_beside().await);
        assert_eq!(comparable(&local), comparable(&remote), "{arguments:?}");
        assert_eq!(local.code(), code, "{arguments:?}: {local:?}");
        let shown = |mk: Mk| tokio::task::spawn_blocking(move || pty::run(&mk, 80, 200));
        let (local, remote) = (shown(here).await.unwrap(), shown(there).await.unwrap());
        assert_eq!(normalised(&local.raw), normalised(&remote.raw), "{arguments:?}");
    }
}
