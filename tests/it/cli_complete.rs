//! Completion at a shell's prompt: in real shells, and what it does where there is nothing to know.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::chat::{Gateway, gateway};
use crate::support::mk::{CommandOutput, Mk, NOBODY};
use crate::support::provider::stream;
use crate::support::pty::Person;
use crate::support::scripted::{Scripted, Step};
use crate::support::{PROMPT, serve};

/// What bash would be told for this line.
fn completed(mk: &Mk, line: &str) -> CommandOutput {
    let word = line.rsplit(' ').next().unwrap();
    let ran = mk.clone().args(["__complete", "bash", "--", line, word]).run();
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran
}

/// What bash is told for this line, once it contains this: a busy machine may take longer than completion waits.
fn completed_with(mk: &Mk, line: &str, wanted: &str) -> String {
    let limit = Instant::now() + Duration::from_mins(1);
    loop {
        let shown = completed(mk, line).stdout;
        if shown.contains(wanted) {
            return shown;
        }
        assert!(Instant::now() < limit, "no {wanted:?} for {line:?}: {shown}");
    }
}

/// A person's setup: keys, an app, a profile.
fn setup() -> Mk {
    let mk = Mk::new();
    for line in [
        "apps create newsroom",
        "keys create --service verify --name nightly",
        "keys create --service console",
    ] {
        assert_eq!(mk.clone().args(line.split(' ')).run().code(), 0, "{line}");
    }
    let spaced = mk.clone().args(["keys", "create", "--service", "verify", "--name", "ci bot"]).run();
    assert_eq!(spaced.code(), 0, "{spaced:?}");
    let config = mk.home().join(".config/mk");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), format!("[profiles.workplace]\nserver = \"{NOBODY}\"\n")).unwrap();
    mk
}

/// Types lines in a shell, presses Tab, and checks what stands there then.
async fn typed_in(shell: &str, arguments: &[&str], load: &str) {
    let gateway: Gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let mk = setup();
    fs::write(mk.home().join("evidence.txt"), "x").unwrap();
    let script = mk.clone().args(["completions", shell]).run();
    fs::write(mk.home().join("script"), script.stdout).unwrap();
    let mk = mk.env("MK_INFERENCE_KEY", &gateway.key).env("PS1", "ready> ");
    let as_mk = mk.command();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_mk")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(shell);
    command.args(arguments).current_dir(mk.home());
    command.envs(as_mk.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    let server = gateway.server.base.clone();
    let load = load.to_owned();
    let acted = tokio::task::spawn_blocking(move || {
        let mut person = Person::at_columns(&command, 160);
        person.types(&format!("{load}; echo loa''ded\n"));
        person.until("loaded");
        for (line, completed) in [
            ("mk key", "mk keys"),
            ("mk keys show nig", "mk keys show nightly"),
            ("mk keys show ci", "mk keys show ci\\ bot"),
            ("mk keys create --service verify --app news", "--app newsroom"),
            ("mk usage --by day,mod", "--by day,model"),
            ("mk --profile work", "mk --profile workplace"),
            ("mk verify -f evid", "mk verify -f evidence.txt"),
            (&format!("mk --server {server} chat -m fak"), "chat -m fake/"),
        ] {
            // Completion gives up early on a busy machine; people press Tab again.
            let mut times = 0..20;
            person.types(line);
            while !{
                person.types("\t");
                person.sees(completed, Duration::from_secs(3))
            } {
                assert!(times.next().is_some(), "{line}: {}", person.screen());
            }
            person.types("\x15");
        }
        person.types("exit\n");
        person.end();
    });
    acted.await.unwrap();
    drop(mk);
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_completes_what_there_is() {
    typed_in("bash", &["--norc", "-i"], "source ./script").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs zsh, which `cargo test` may not ask for; runs in .ci/run"]
async fn zsh_completes_what_there_is() {
    typed_in("zsh", &["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source ./script").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs fish, which `cargo test` may not ask for; runs in .ci/run"]
async fn fish_completes_what_there_is() {
    typed_in("fish", &["--no-config", "-i"], "source ./script").await;
}

#[test]
fn what_the_scripts_ask_is_no_command_for_people() {
    for arguments in [&["--help"][..], &["-h"], &["--profile", "x"], &["man"]] {
        let ran = Mk::new().args(arguments.iter().copied()).run();
        assert!(!ran.stdout.contains("__complete") && !ran.stderr.contains("__complete"), "{ran:?}");
    }
}

#[test]
fn without_a_database_nothing_is_offered_and_nothing_made() {
    let mk = Mk::new();
    for line in ["mk keys show ", "mk apps show ", "mk chat -m ", "mk --profile "] {
        assert_eq!(completed(&mk, line).stdout, "", "{line}");
    }
    assert_eq!(fs::read_dir(mk.home()).unwrap().count(), 0);
}

#[test]
fn a_database_at_rest_is_read_without_leaving_anything_beside_it() {
    let mk = setup();
    let data = mk.home().join(".local/share/mk");
    let files = || {
        let mut names: Vec<_> =
            fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    let shown = completed_with(&mk, "mk keys revoke ", "nightly\n");
    assert!(shown.contains("ci\\ bot\n"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("key_")), "a key without a name has its id: {shown}");
    assert!(!shown.contains("mk_"), "no key is shown: {shown}");
    assert_eq!(completed_with(&mk, "mk keys revoke key_", "key_").lines().count(), 3);
    assert_eq!(files(), before);
    let revoked = mk.clone().args(["keys", "revoke", "nightly", "--yes"]).run();
    assert_eq!(revoked.code(), 0, "{revoked:?}");
    assert!(!completed_with(&mk, "mk keys show ", "ci\\ bot").contains("nightly"));
}

#[test]
fn a_locked_or_damaged_database_offers_nothing_at_once() {
    let mk = setup();
    let path = mk.home().join(".local/share/mk/mk.db");
    let lock = rusqlite::Connection::open(&path).unwrap();
    lock.pragma_update(None, "locking_mode", "EXCLUSIVE").unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE held (x);").unwrap();
    let begun = Instant::now();
    assert_eq!(completed(&mk, "mk keys show ").stdout, "");
    assert!(begun.elapsed() < PROMPT);
    drop(lock);
    fs::write(&path, "no database").unwrap();
    assert_eq!(completed(&mk, "mk keys show ").stdout, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_asked_and_one_that_is_silent_is_not_waited_for() {
    let (server, mk) = crate::support::place::remote().await;
    let named = tokio::task::spawn_blocking(move || completed_with(&mk, "mk keys show ", "operator\n"));
    named.await.unwrap();
    drop(server);
    let silent = Scripted::start(|_| vec![Step::Hang]).await;
    for line in ["mk keys show ", "mk chat -m "] {
        let call = Mk::new().env("MK_SERVER", &silent.base);
        let call = call.env("MK_CONSOLE_KEY", "k").env("MK_INFERENCE_KEY", "k");
        let begun = Instant::now();
        let ran = tokio::task::spawn_blocking(move || completed(&call, line)).await.unwrap();
        assert_eq!(ran.stdout, "", "{line}");
        assert!(begun.elapsed() < PROMPT, "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_read_beside_a_running_server() {
    let call = serve::call(&format!("{NOBODY}/v1"), "");
    let server = serve::Serve::start_beside(&call).await;
    let data = serve::data_dir(call.home()).to_str().unwrap().to_owned();
    let mk = Mk::new();
    let made =
        mk.clone().args(["keys", "create", "--service", "verify", "--name", "late", "--data-dir", &data]);
    assert_eq!(made.run_beside().await.code(), 0);
    let line = format!("mk keys show --data-dir {data} ");
    tokio::task::spawn_blocking(move || completed_with(&mk, &line, "late\n")).await.unwrap();
    drop(server);
}
