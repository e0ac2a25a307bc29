//! `mk keys` and `mk apps` on the local database, beside a running server.

use mk::api::Service;
use serde_json::json;

use crate::support::mk::{CommandOutput, Mk, operator};
use crate::support::panel::agreeing_panel;
use crate::support::server::TestServer;

fn on(server: &TestServer, arguments: &[&str]) -> Mk {
    let data = server.dir.path().join("data");
    operator(&data, arguments)
}

async fn run(server: &TestServer, arguments: &[&str]) -> CommandOutput {
    on(server, arguments).run_beside().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_key_is_alone_on_stdout_and_works_at_once() {
    let (server, _provider) = agreeing_panel().await;
    let ran = run(&server, &["keys", "create", "--service", "verify", "--name", "ci"]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let key = ran.stdout.trim_end();
    assert_eq!(ran.stdout, format!("{key}\n"));
    assert!(key.starts_with("mk_verify_") && key.len() == "mk_verify_".len() + 32, "{key}");
    assert!(!ran.stderr.contains(key), "the key is printed only once");
    assert_eq!(server.verify(key, &json!({})).send().await.unwrap().status(), 400);

    let listed = run(&server, &["keys", "list", "--json"]).await;
    let text = listed.json().to_string();
    assert!(text.contains("\"name\":\"ci\"") && text.contains(&key[key.len() - 4..]), "{text}");
    assert!(!text.contains(key));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_needs_confirmation_and_takes_effect_at_once() {
    let (server, _provider) = agreeing_panel().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    let refused = run(&server, &["keys", "revoke", &id]).await;
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);

    let done = run(&server, &["keys", "revoke", &id, "--yes"]).await;
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 401);
    let missing = run(&server, &["keys", "revoke", "key_nowhere", "--yes"]).await;
    assert_eq!(missing.code(), 9, "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_keeps_working_for_its_grace_period() {
    let (server, _provider) = agreeing_panel().await;
    let (old, id) = server.key_with(Service::Verify, |_| {});
    let ran = run(&server, &["keys", "rotate", &id, "--grace", "24h"]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let new = ran.stdout.trim();
    for key in [&old, new] {
        assert_eq!(server.verify(key, &json!({})).send().await.unwrap().status(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_an_app_revokes_its_keys() {
    let (server, _provider) = agreeing_panel().await;
    assert_eq!(run(&server, &["apps", "create", "website"]).await.code(), 0);
    let taken = run(&server, &["apps", "create", "website"]).await;
    assert_eq!(taken.code(), 9, "{taken:?}");
    let made = run(&server, &["keys", "create", "--service", "verify", "--app", "website"]).await;
    let key = made.stdout.trim().to_owned();
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);
    assert_eq!(run(&server, &["apps", "delete", "website", "--yes"]).await.code(), 0);
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 401);
    let gone = run(&server, &["keys", "create", "--service", "verify", "--app", "website"]).await;
    assert_eq!(gone.code(), 9, "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_check_detects_a_typo_without_a_database() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let check = |key: &str| Mk::new().args(["keys", "check", "-"]).stdin(key).run();
    let good = check(&key);
    assert_eq!(good.code(), 0, "{good:?}");
    assert!(good.stdout.contains("verify"), "{good:?}");
    let mut typo = key.clone();
    let swapped = if typo.ends_with('x') { 'y' } else { 'x' };
    typo.pop();
    typo.push(swapped);
    assert_ne!(check(&typo).code(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_can_write_beside_a_server() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let calls: Vec<_> = (0..8).map(|n| on(&server, &["apps", "create", &format!("app {n}")])).collect();
    let runs = futures_util::future::join_all(calls.iter().map(Mk::run_beside));
    let requests = futures_util::future::join_all((0..20).map(|_| server.verify(&key, &json!({})).send()));
    let (runs, requests) = tokio::join!(runs, requests);
    assert!(runs.iter().all(|ran| ran.code() == 0), "{runs:?}");
    assert!(requests.into_iter().all(|response| response.unwrap().status() == 400));
}

/// It takes the place of another by the order in which the program is linked, which nothing else would show.
#[cfg(target_os = "linux")]
#[test]
fn the_allocator_of_the_program_is_mimalloc() {
    let said = Mk::new().args(["--version"]).env("MIMALLOC_VERBOSE", "1").run();
    assert!(said.stderr.contains("mimalloc"), "{}", said.stderr);
}

#[test]
fn help_and_version_go_to_stdout() {
    for arguments in [&["--help"][..], &["help", "verify"], &["keys", "create", "-h"], &["--version"]] {
        let ran = Mk::new().args(arguments.iter().copied()).run();
        assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{ran:?}");
        assert!(!ran.stdout.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_itself_is_accepted_on_stdin_but_not_as_an_argument() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let refused = run(&server, &["keys", "revoke", &key, "--yes"]).await;
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("`-`") && !refused.stderr.contains(&key), "{refused:?}");
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);
    let piped = on(&server, &["keys", "revoke", "-", "--yes"]).stdin(key.clone()).run_beside().await;
    assert_eq!(piped.code(), 0, "{piped:?}");
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 401);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_that_could_not_be_printed_is_revoked() {
    let (server, _provider) = agreeing_panel().await;
    let call = on(&server, &["keys", "create", "--service", "verify", "--name", "unseen"]);
    let mut command = call.command();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is revoked"), "{output:?}");
    let listed = run(&server, &["keys", "show", "unseen", "--json"]).await;
    assert_eq!(listed.json()["state"], "revoked", "{listed:?}");
}

#[test]
fn a_key_can_be_created_after_the_first_app_was_renamed_or_deleted() {
    let home = Mk::new();
    let run = |line: &str| home.clone().args(line.split(' ')).run();
    assert_eq!(run("apps create web").code(), 0);
    let made_in = |app: &str| {
        let made = run("keys create --service console");
        assert_eq!(made.code(), 0, "{made:?}");
        assert!(made.stderr.contains(&format!("in app `{app}`")), "{made:?}");
    };
    made_in("default");
    assert_eq!(run("apps update default --name main").code(), 0);
    made_in("main");
    assert_eq!(run("apps delete main --yes").code(), 0);
    made_in("web");
    let named = run("keys create --service console --app default");
    assert!(named.code() == 9 && named.stderr.contains("there is no app `default`"), "{named:?}");
    assert_eq!(run("apps create default").code(), 0);
    made_in("default");
}

#[test]
fn checking_a_revoked_key_identifies_it() {
    let home = Mk::new();
    let run = |line: &str| home.clone().args(line.split(' ')).run();
    let key = run("keys create --service verify --name ci").stdout;
    assert_eq!(run("keys revoke ci --yes").code(), 0);
    let checked = home.clone().args(["keys", "check", "-", "--json"]).stdin(key).run();
    assert_eq!(checked.code(), 4, "{checked:?}");
    let document = checked.json();
    assert_eq!(
        (&document["schema"], &document["error"]["code"]),
        (&json!("mk.error/1"), &json!("api_key_revoked"))
    );
    let found = &document["partial"];
    assert_eq!((&found["schema"], &found["state"]), (&json!("mk.keys.check/1"), &json!("revoked")));
    assert_eq!((&found["app"], &found["id"]), (&json!("default"), &run("keys show ci --json").json()["id"]));
}

#[test]
fn a_revoked_key_is_refused_in_a_sentence_of_its_own() {
    let home = Mk::new();
    let run = |line: &str| home.clone().args(line.split(' ')).run();
    assert_eq!(run("keys create --service verify --name trial").code(), 0);
    assert_eq!(run("keys revoke trial --yes").code(), 0);
    let ran = run("keys update trial --per-minute 5");
    assert_eq!(ran.code(), 9, "{ran:?}");
    assert_eq!(ran.stderr, "error: this key is revoked for good; create a new one instead\n");
}

#[test]
fn an_unknown_key_among_several_is_reported_by_position() {
    let home = Mk::new();
    let run = |line: &str| home.clone().args(line.split(' ')).run();
    assert_eq!(run("keys create --service verify --name v").code(), 0);
    let ran = run("keys revoke v nope --yes");
    assert!(
        ran.code() == 9 && ran.stderr.starts_with("error: KEY 2 of 2: no such key\nhint: use "),
        "{ran:?}"
    );
    let ran = run("keys revoke nope --yes");
    let data = home.home().join(".local/share/mk").display().to_string();
    let place = format!("\nhint: mk looked in {data}\n");
    assert!(
        ran.stderr.starts_with("error: no such key\nhint: use ") && ran.stderr.ends_with(&place),
        "{ran:?}"
    );
    let ran = run("apps show nope");
    assert!(ran.stderr.ends_with(&place), "{ran:?}");
    assert!(run("keys list").stdout.contains("\tactive\t"), "no key is revoked unless all are known");
}

#[test]
fn a_duplicate_app_name_is_reported() {
    let home = Mk::new();
    let run = |line: &str| home.clone().args(line.split(' ')).run();
    assert_eq!(run("apps create web").code(), 0);
    let taken = run("apps update web --name default");
    assert!(
        taken.code() == 9 && taken.stderr.contains("app `default`: this name is already taken"),
        "{taken:?}"
    );
}
