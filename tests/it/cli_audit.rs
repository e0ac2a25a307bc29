//! `mk audit` for the local database and for a server, on a terminal, in a pipe and as JSON.

use mk::api::Service;
use mk::api::console::AUDIT_ACTIONS;
use mk::clock::Clock;
use mk::keys::{self, NewKey};
use mk::storage::AppChange;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::support::mk::{CommandOutput, Mk};
use crate::support::place::{local, remote};
use crate::support::pty;

fn run(mk: &Mk, arguments: &[&str]) -> CommandOutput {
    let ran = mk.clone().args(arguments.iter().copied()).run();
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran
}

/// Creates and changes an app, and creates and revokes a key in it.
fn website(mk: &Mk) {
    for arguments in [
        &["apps", "create", "website", "--budget-usd", "50"][..],
        &["keys", "create", "--service", "verify", "--app", "website", "--name", "ci"],
        &["apps", "update", "website", "--name", "news", "--no-budget"],
        &["keys", "revoke", "ci", "--yes"],
    ] {
        run(mk, arguments);
    }
}

/// Columns of the piped output: channel, actor's name, action, object's name.
fn entries(ran: &CommandOutput) -> Vec<[String; 4]> {
    let line = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(cells.len(), 11, "{line}");
        [2, 4, 5, 7].map(|at| cells[at].to_owned())
    };
    ran.stdout.lines().map(line).collect()
}

#[test]
fn every_change_is_listed_newest_first() {
    let (_store, mk) = local();
    website(&mk);
    let all = entries(&run(&mk, &["audit"]));
    let own = account();
    let cli = |action: &str, object: &str| ["cli", &own, action, object].map(str::to_owned);
    assert_eq!(
        all[..4],
        [
            cli("key.revoked", "ci"),
            cli("app.updated", "news"),
            cli("key.created", "ci"),
            cli("app.created", "website")
        ]
    );
    let server = ["server", "-", "key.created", "operator"].map(str::to_owned);
    assert_eq!(all[4], server, "the library's own change has the channel `server`");

    let of = |arguments: &[&str]| {
        let entries = entries(&run(&mk, &[&["audit"], arguments].concat()));
        entries.into_iter().map(|[_, _, action, _]| action).collect::<Vec<_>>()
    };
    assert_eq!(of(&["--key", "ci"]), ["key.revoked", "key.created"]);
    assert_eq!(of(&["--app", "news"]), ["key.revoked", "app.updated", "key.created", "app.created"]);
    assert_eq!(of(&["--app", "default"]), ["key.created", "app.created"]);
    assert_eq!(of(&["--app", "news", "--action", "app.created"]), ["app.created"]);
    assert_eq!(of(&["--actor", "operator"]), [""; 0]);
}

/// The account that the tests run as, by the system's own list; its number where that has no name.
fn account() -> String {
    let named = std::process::Command::new("id").arg("-un").output().unwrap();
    let name = String::from_utf8(named.stdout).unwrap().trim().to_owned();
    if named.status.success() { name } else { format!("uid {}", rustix::process::getuid().as_raw()) }
}

#[test]
fn the_account_is_named_whatever_variables_say_and_beside_it_who_called_sudo() {
    let (_store, mk) = local();
    let by = |variables: &[(&str, &str)]| {
        let mk = variables.iter().fold(mk.clone(), |mk, (name, value)| mk.env(name, value));
        run(&mk, &["keys", "create", "--service", "verify"]);
        entries(&run(&mk, &["audit", "--limit", "1"])).remove(0)[1].clone()
    };
    let own = account();
    assert_eq!(by(&[("USER", "mallory"), ("LOGNAME", "mallory"), ("USERNAME", "mallory")]), own);
    assert_eq!(by(&[("SUDO_USER", "ada")]), format!("{own} (sudo by ada)"));
    assert_eq!(by(&[("SUDO_USER", own.as_str())]), own);
    assert_eq!(by(&[("SUDO_USER", "\u{7}")]), own);
}

#[test]
fn the_entry_limit_is_reported_and_can_be_lifted() {
    let (_store, mk) = local();
    website(&mk);
    let two = run(&mk, &["audit", "--limit", "2"]);
    assert_eq!(two.stdout.lines().count(), 2);
    assert!(two.stderr.contains("older entries; --limit 0 shows all"), "{two:?}");
    let all = run(&mk, &["audit", "--limit", "0"]);
    assert_eq!((all.stdout.lines().count(), all.stderr.as_str()), (6, ""));
    let exact = run(&mk, &["audit", "--limit", "6", "--json"]);
    let document: Value = serde_json::from_str(&exact.stdout).unwrap();
    assert_eq!(document["schema"], "mk.audit/1");
    assert_eq!((document["entries"].as_array().unwrap().len(), &document["has_more"]), (6, &false.into()));
    assert_eq!(document["entries"][1]["details"]["name"]["from"], "website");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_s_audit_is_fetched_page_by_page() {
    let (server, mk) = remote().await;
    website(&mk);
    let api = |action: &str, object: &str| ["api", "operator", action, object].map(str::to_owned);
    let made = [
        api("key.revoked", "ci"),
        api("app.updated", "news"),
        api("key.created", "ci"),
        api("app.created", "website"),
    ];
    assert_eq!(entries(&run(&mk, &["audit", "--limit", "4"])), made);
    assert_eq!(entries(&run(&mk, &["audit", "--key", "ci", "--action", "key.revoked"])), made[..1]);
    assert_eq!(entries(&run(&mk, &["audit", "--app", "news"])), made);

    // More entries than fit on one page.
    let store = &server.app.store;
    let app = store.app("default").unwrap().id;
    for number in 0..450 {
        let change = AppChange { name: Some(format!("app {number}")), budget: None };
        store.update_app(&app, &change, server.clock.now()).unwrap();
    }
    let count = |limit: &str| entries(&run(&mk, &["audit", "--limit", limit])).len();
    let all = count("0");
    assert!(all > 450, "{all}");
    assert_eq!((count("200"), count("201"), count("400")), (200, 201, 400));
    assert_eq!((count(&all.to_string()), count(&(all + 1).to_string())), (all, all));
    assert_eq!(entries(&run(&mk, &["audit", "--actor", "operator", "--limit", "0"])), made);
    server.shutdown().await;
}

#[test]
fn invalid_filters_are_reported_by_name() {
    let (_store, mk) = local();
    for (arguments, code, says) in [
        (&["audit", "--action", "key.stolen"][..], 2, "key.stolen"),
        (&["audit", "--app", "nowhere"], 9, "there is no app `nowhere`"),
        (&["audit", "--key", "nobody"], 9, "no such key"),
        (&["audit", "--limit", "-1"], 2, "--limit"),
        (&["audit", "--app", "a", "--key", "b"], 2, "--key"),
    ] {
        let ran = mk.clone().args(arguments.iter().copied()).run();
        assert_eq!(ran.code(), code, "{ran:?}");
        assert!(ran.stderr.contains(says), "{arguments:?}: {ran:?}");
    }
    let help = mk.args(["audit", "--action", "x"]).run().stderr;
    assert!(AUDIT_ACTIONS.iter().all(|action| help.contains(action)), "{help}");
}

#[test]
fn the_audit_fits_every_terminal_without_control_characters() {
    let (store, mk) = local();
    website(&mk);
    let mut new = NewKey::new(Service::Verify, "default");
    new.name = Some("x".to_owned());
    keys::create(&store, &new, Clock::system().now()).unwrap();
    let mk = mk.env("SUDO_USER", "a\u{1b}[31m\u{202e}b");
    run(&mk, &["keys", "revoke", "x", "--yes"]);
    for columns in [44, 60, 80, 100, 160] {
        let shown = pty::run(&mk.clone().args(["audit"]), columns, 80);
        assert!(
            shown.last.lines().all(|line| line.width() <= usize::from(columns)),
            "{columns}:\n{}",
            shown.last
        );
        assert!(shown.last.contains("key.revoked") && shown.last.contains("news"), "{}", shown.last);
        assert!(!shown.raw.contains("\u{1b}[31m") && !shown.raw.contains('\u{202e}'), "{}", shown.raw);
    }
    let list = pty::run(&mk.clone().args(["audit"]), 80, 80).last;
    let details = format!("by {} via cli · name: website to news, budget_usd: 50 to none", account());
    assert!(list.lines().any(|line| line.trim_start() == details), "{list}");
    let wide = pty::run(&mk.args(["audit"]), 160, 80).last;
    assert!(wide.contains("name: website to news, budget_usd: 50") && wide.contains("to none"), "{wide}");
}
