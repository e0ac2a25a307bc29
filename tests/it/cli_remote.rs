//! `mk apps` and `mk keys` on a remote server: when the server is used instead of the database, confirmations before
//! something is deleted, and servers that misbehave.

use std::fs::OpenOptions;

use mk::api::Service;
use mk::api::console::{Billing, BudgetLine, Statement, StatementLine, UsageReport, UsageRow, UsageSums};
use mk::storage::{AuditFilter, KeyFilter, PageRequest};
use serde_json::{Value, json};

use crate::support::mk::{CONSOLE_KEY, CommandOutput, Mk, VERIFY_KEY};
use crate::support::place::{local, remote};
use crate::support::pty::{self, INTERRUPTED, Person};
use crate::support::scripted::{Scripted, Step, answer};
use crate::support::server::TestServer;

async fn run(mk: &Mk, arguments: &[&str]) -> CommandOutput {
    mk.clone().args(arguments.iter().copied()).run_beside().await
}

/// Whether a command uses the server rather than the database, as reported by `-v`.
async fn uses_server(server: &TestServer, call: Mk) -> bool {
    command_uses_server(server, &call.args(["apps", "list", "-v"])).await
}

async fn command_uses_server(server: &TestServer, call: &Mk) -> bool {
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let (at_server, in_database) = (format!("on {}\n", server.base), "database: ");
    assert_ne!(
        ran.stderr.contains(&at_server),
        ran.stderr.contains(in_database),
        "exactly one of them is used: {ran:?}"
    );
    ran.stderr.contains(&at_server)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_used_if_it_is_named_and_its_key_is_known() {
    let (server, named) = remote().await;
    let console = server.key(Service::Console);
    let verify = server.key(Service::Verify);
    let at = |variable: &str, key: &str| Mk::new().env("MK_SERVER", &server.base).env(variable, key);
    assert!(uses_server(&server, named.clone()).await);
    assert!(uses_server(&server, at("MK_API_KEY", &console)).await);
    assert!(!uses_server(&server, at("MK_API_KEY", &verify)).await, "no console key");
    assert!(!uses_server(&server, Mk::new().env("MK_CONSOLE_KEY", &console)).await, "no server");
    let data = named.home().join("data");
    let of_database = named.args(["apps", "list", "-v", "--data-dir", data.to_str().unwrap()]);
    assert!(!command_uses_server(&server, &of_database).await, "the database");

    let by_flag = Mk::new().env("MK_CONSOLE_KEY", &console).args(["--server", &server.base]);
    assert!(uses_server(&server, by_flag).await);
    let stored = Mk::new();
    let login =
        stored.clone().args(["login", "--server", &server.base]).stdin(console.clone()).run_beside().await;
    assert_eq!(login.code(), 0, "{login:?}");
    assert!(!uses_server(&server, stored.clone()).await, "the server is not named");
    assert!(uses_server(&server, stored.clone().env("MK_SERVER", &server.base)).await);
    let config = stored.home().join(".config/mk");
    let file = format!("[profiles.there]\nserver = \"{}\"\n", server.base);
    std::fs::write(config.join("config.toml"), &file).unwrap();
    assert!(!uses_server(&server, stored.clone()).await);
    assert!(uses_server(&server, stored.clone().args(["--profile", "there"])).await);
    std::fs::write(config.join("config.toml"), format!("profile = \"there\"\n{file}")).unwrap();
    assert!(uses_server(&server, stored).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_named_by_flag_without_its_key_does_not_fall_back_to_the_database() {
    let (server, _) = remote().await;
    let verify = server.key(Service::Verify);
    for arguments in [&["apps", "list"][..], &["keys", "revoke", "x", "--yes"]] {
        let call = Mk::new().env("MK_API_KEY", &verify).args(["--server", &server.base]);
        let ran = run(&call, arguments).await;
        assert_eq!(ran.code(), 4, "{ran:?}");
        assert!(ran.stderr.contains("needs a console key for"), "{ran:?}");
        assert!(
            ran.stderr.contains("--service console") && ran.stderr.contains("mk login --server"),
            "{ran:?}"
        );
        assert!(!call.home().join(".local").exists(), "no database is created");
    }
    let both = run(&Mk::new(), &["apps", "list", "--server", &server.base, "--data-dir", "."]).await;
    assert!(
        both.code() == 2 && both.stderr.contains("--server selects a server, but --data-dir"),
        "{both:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_changes_apply_on_the_server_and_are_audited_as_the_key_s() {
    let (server, there) = remote().await;
    let made = run(&there, &["keys", "create", "--service", "verify", "--name", "ci"]).await;
    let key = made.stdout.trim_end().to_owned();
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);
    assert_eq!(run(&there, &["keys", "revoke", "ci", "--yes"]).await.code(), 0);
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 401);
    let audit =
        server.app.store.audit(&AuditFilter::default(), &PageRequest { after: String::new(), limit: 9 });
    let noted: Vec<_> =
        audit.unwrap().into_iter().map(|entry| (entry.action, entry.channel, entry.actor_name)).collect();
    let by_operator =
        |action: &str| (action.to_owned(), mk::api::console::Channel::Api, Some("operator".to_owned()));
    assert!(
        noted.contains(&by_operator("key.created")) && noted.contains(&by_operator("key.revoked")),
        "{noted:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_of_remote_deletions_name_the_server() {
    let (server, there) = remote().await;
    server.key_with(Service::Verify, |new| new.name = Some("ci".to_owned()));
    run(&there, &["apps", "create", "news"]).await;
    let base = &server.base;
    for (arguments, question) in [
        (&["keys", "revoke", "ci"][..], format!("Revoke on {base} the verify key")),
        (&["apps", "delete", "news"], format!("Delete the app `news` on {base}?")),
    ] {
        for (typed, end) in [("n\n", "code 3"), ("\x03", INTERRUPTED)] {
            let mk = there.clone().args(arguments.iter().copied());
            let (status, shown) = tokio::task::spawn_blocking(move || {
                let mut person = Person::at(&mk.command());
                person.until("[y/N] ");
                person.types(typed);
                person.end()
            })
            .await
            .unwrap();
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&question), "{shown}");
            assert_eq!(status, end, "{typed:?}: {shown}");
        }
    }
    assert_eq!(run(&there, &["keys", "show", "ci", "--json"]).await.json()["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_itself_can_be_given_on_stdin() {
    let (server, there) = remote().await;
    let (key, id) = server.key_with(Service::Verify, |new| new.name = Some("ci".to_owned()));
    let piped = |key: &str, arguments: &[&str]| {
        let call = there.clone().args(arguments.iter().copied()).stdin(key);
        async move { call.run_beside().await }
    };
    let check = ["keys", "check", "-", "--json"];
    let active = piped(&key, &check).await;
    assert_eq!((&active.json()["state"], &active.json()["id"]), (&json!("active"), &json!(id)), "{active:?}");
    assert_eq!(piped(&key, &["keys", "revoke", "-", "--yes"]).await.code(), 0);
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 401);
    assert_eq!(piped(&key, &["keys", "revoke", "-", "--yes"]).await.code(), 0, "repeatable");
    assert_eq!(piped(&key, &["keys", "show", "-", "--json"]).await.json()["id"], json!(id));
    let revoked = piped(&key, &check[..3]).await;
    assert!(revoked.code() == 4 && revoked.stdout.contains(&id), "{revoked:?}");

    let unknown = piped(VERIFY_KEY, &["keys", "revoke", "-", "--yes"]).await;
    assert!(unknown.code() == 9 && unknown.stderr.contains("no such key"), "{unknown:?}");
    let unknown = piped(VERIFY_KEY, &check[..3]).await;
    assert!(unknown.stdout.contains(&format!("state\tnot known on {}", server.base)), "{unknown:?}");
    let as_argument = run(&there, &["keys", "revoke", &key, "--yes"]).await;
    assert!(as_argument.code() == 2 && !as_argument.stderr.contains(&key), "{as_argument:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_from_the_server_are_reported_with_their_exit_code() {
    let (server, there) = remote().await;
    let (console, id) = server.key_with(Service::Console, |_| {});
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let revoked = run(&there.clone().env("MK_CONSOLE_KEY", &console), &["apps", "list"]).await;
    assert!(revoked.code() == 4 && revoked.stderr.contains("API key has been revoked"), "{revoked:?}");
    let (few, _) = server.key_with(Service::Console, |new| new.per_minute = Some(1));
    let few = there.clone().env("MK_CONSOLE_KEY", &few);
    assert_eq!(run(&few, &["apps", "list"]).await.code(), 0);
    let busy = run(&few, &["apps", "list"]).await;
    assert!(busy.code() == 7 && busy.stderr.contains("free again in"), "{busy:?}");
    assert!(!busy.stderr.contains("mk verify"), "{busy:?}");
    let nobody = run(&there.clone().env("MK_SERVER", "http://127.0.0.1:0"), &["keys", "list"]).await;
    assert_eq!(nobody.code(), 6, "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_complete_over_many_pages() {
    let (server, there) = remote().await;
    for number in 0..250 {
        server.key_with(Service::Inference, |new| new.name = Some(format!("key {number}")));
    }
    let listed = run(&there, &["keys", "list", "--service", "inference"]).await;
    let names: Vec<&str> = listed.stdout.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    let expected: Vec<String> = (0..250).map(|number| format!("key {number}")).collect();
    assert_eq!(names.len(), 250);
    assert!(expected.iter().all(|name| names.contains(&name.as_str())));
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_malformed_and_missing_responses_are_errors() {
    let record = r#"{"id":"app_1","name":"a","budget_usd":null,"created_at":"t","active_keys":0}"#;
    for (body, told) in [
        (format!(r#"{{"data":[{record}],"next_cursor":"app_1"}}"#), "its list does not end"),
        ("{\"data\":7}".to_owned(), "its list"),
        ("<html>".to_owned(), "its list"),
    ] {
        let odd = Scripted::answering(answer("200 OK", "", &body)).await;
        let call = Mk::new().env("MK_SERVER", &odd.base).env("MK_CONSOLE_KEY", CONSOLE_KEY);
        let ran = run(&call, &["apps", "list"]).await;
        assert!(ran.code() == 5 && ran.stderr.contains(told), "{ran:?}");
        assert!(odd.requests().len() <= 2);
    }
    let call = Mk::new().env("MK_CONSOLE_KEY", CONSOLE_KEY).env("MK_TIMEOUT", "1s");
    let mute = Scripted::start(|_| vec![Step::Hang]).await;
    let ran = run(&call.env("MK_SERVER", &mute.base), &["apps", "create", "x"]).await;
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert_eq!(mute.requests().len(), 1, "a write is never retried");
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_keys_waits_out_the_minute_limit() {
    let apps = r#"{"data":[{"id":"app_1","name":"a","budget_usd":null,"created_at":"t","active_keys":0}],"next_cursor":null}"#;
    let busy = r#"{"error":"Rate Limit Exceeded","message":"Too many requests per minute","code":"rate_limited_minute","request_id":"req_1"}"#;
    let server = Scripted::start(move |number| {
        vec![Step::Send(match number {
            0 => answer("200 OK", "", apps),
            1 => answer("429 Too Many Requests", "retry-after: 1\r\n", busy),
            _ => answer("200 OK", "", r#"{"data":[],"next_cursor":null}"#),
        })]
    })
    .await;
    let call = Mk::new().env("MK_SERVER", &server.base).env("MK_CONSOLE_KEY", CONSOLE_KEY);
    let ran = run(&call, &["keys", "list", "--json"]).await;
    assert_eq!((ran.code(), ran.json()["keys"].clone()), (0, json!([])), "{ran:?}");
    assert!(ran.stderr.contains("continuing in 1 s"), "{ran:?}");
    let asked: Vec<String> =
        server.requests().iter().map(|text| text.lines().next().unwrap().to_owned()).collect();
    assert_eq!(asked[1], asked[2], "{asked:?}");
    assert!(asked[2].starts_with("GET /v1/apps/app_1/keys?limit=200 "), "{asked:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_remote_key_that_could_not_be_printed_is_revoked() {
    let (server, there) = remote().await;
    let mut command =
        there.clone().args(["keys", "create", "--service", "verify", "--name", "unseen"]).command();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = tokio::task::spawn_blocking(move || command.stdout(full).output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let rows = server.app.store.keys(&KeyFilter { revoked_too: true, ..KeyFilter::default() }).unwrap();
    let unseen = rows.iter().find(|row| row.name.as_deref() == Some("unseen")).unwrap();
    assert!(unseen.revoked_at.is_some(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_deleted_app_are_listed_neither_locally_nor_remotely() {
    let ((_store, here), (_server, there)) = (local(), remote().await);
    for mk in [here, there] {
        for arguments in [
            &["apps", "create", "gone"][..],
            &["keys", "create", "--service", "inference", "--app", "gone", "--name", "left"],
            &["apps", "delete", "gone", "--yes"],
        ] {
            assert_eq!(run(&mk, arguments).await.code(), 0);
        }
        let listed = run(&mk, &["keys", "list", "--all", "--service", "inference", "--json"]).await;
        assert_eq!(listed.json()["keys"], json!([]));
        assert_eq!(run(&mk, &["keys", "show", "left"]).await.code(), 9);
    }
}

/// Clears the screen and forges a line.
const HOSTILE: &str = "\u{1b}[2J\u{1b}[1;1Hforged\nline";

fn hostile() -> String {
    HOSTILE.to_owned()
}

/// A server whose n-th response is the n-th of these, and commands against it.
async fn sending(answers: Vec<Value>) -> (Scripted, Mk) {
    let server = Scripted::start(move |number| {
        vec![Step::Send(answer("200 OK", "", &answers[number % answers.len()].to_string()))]
    })
    .await;
    let call = Mk::new().env("MK_SERVER", &server.base).env("MK_CONSOLE_KEY", CONSOLE_KEY);
    (server, call)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_key_is_not_printed_as_a_new_one() {
    let apps = json!({"data": [{"id": "app_1", "name": "a", "budget_usd": null, "created_at": "t", "active_keys": 0}],
        "next_cursor": null});
    let made = json!({"key": HOSTILE, "id": "key_1", "app_id": "app_1", "app": "a", "service": "verify", "name": null,
        "last4": "aaaa", "state": "active", "created_at": "t", "expires_at": null, "revoked_at": null,
        "last_used_at": null, "limits": {"per_minute": 1, "per_day": 1}, "models": [], "addresses": [],
        "budget_usd": null});
    for arguments in
        [&["keys", "create", "--service", "verify"][..], &["keys", "create", "--service", "verify", "--json"]]
    {
        let (server, call) = sending(vec![apps.clone(), made.clone()]).await;
        let ran = run(&call, arguments).await;
        assert!(ran.code() == 5 && ran.stderr.contains("not send an API key"), "{ran:?}");
        assert!(ran.stdout.is_empty() || arguments.contains(&"--json"), "{ran:?}");
        assert!(!(ran.stdout + &ran.stderr).contains('\u{1b}'));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_a_server_cannot_control_the_terminal() {
    let sums = UsageSums { requests: 1, attempts: 1, cost_usd: Some(1.0), ..UsageSums::default() };
    let row = UsageRow {
        day: Some(hostile()),
        app_id: Some(hostile()),
        app: Some(hostile()),
        key_id: Some(hostile()),
        key: Some(hostile()),
        model: Some(hostile()),
        service: Some(hostile()),
        user: Some(hostile()),
        tag: Some(hostile()),
        sums,
    };
    let by = mk::api::console::Dimension::ALL.to_vec();
    let report =
        UsageReport { from: hostile(), to: hostile(), by, data: vec![row], totals: sums, next_cursor: None };
    let budget = BudgetLine {
        id: hostile(),
        name: hostile(),
        app_id: hostile(),
        budget_usd: 1.0,
        spent_usd: 1.0,
        used_percent: 100.0,
        threshold: Some(100),
    };
    let billing = Billing {
        month: hostile(),
        ends_at: hostile(),
        month_to_date: sums,
        forecast: None,
        budgets: vec![budget],
    };
    let line =
        StatementLine { service: hostile(), key_id: hostile(), key: hostile(), model: hostile(), sums };
    let statement = Statement {
        app_id: hostile(),
        app: hostile(),
        month: hostile(),
        is_preliminary: true,
        created_at: hostile(),
        budget_usd: Some(1.0),
        lines: vec![line],
        totals: sums,
    };
    let app = json!({"id": "app_1", "name": "website", "budget_usd": null, "created_at": HOSTILE, "active_keys": 0});
    let usage = vec![json!(report), json!(billing)];
    let statements = vec![json!({"data": [app], "next_cursor": null}), json!(statement)];
    for (arguments, answers) in [(&["usage"][..], usage), (&["apps", "statement", "website"], statements)] {
        for format in [&[][..], &["--csv"], &["--json"]] {
            let (_server, call) = sending(answers.clone()).await;
            let ran = run(&call, &[arguments, format].concat()).await;
            assert_eq!(ran.code(), 0, "{ran:?}");
            assert!(!(ran.stdout.clone() + &ran.stderr).contains('\u{1b}'), "{ran:?}");
            let forged = ran.stdout.lines().any(|line| line.starts_with("line"));
            assert!(!forged, "{ran:?}");
        }
        let (_server, call) = sending(answers).await;
        let call = call.args(arguments.iter().copied());
        let shown = tokio::task::block_in_place(|| pty::run(&call, 200, 60));
        assert!(!shown.raw.contains("\u{1b}[2J"), "{:?}", shown.raw);
        assert!(shown.last.contains("[2J"), "{}", shown.last);
    }
}
