//! Interactive use: confirmations, Ctrl-C, and which stream shows what.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::mk::{Mk, VERIFY_KEY};
use crate::support::pty::{INTERRUPTED, Person};
use crate::support::scripted::{Scripted, Step, stream};

const TRUE: &str = "The Eiffel Tower is in Paris.";

/// A shell script in this home directory, in which `mk` runs the binary.
fn script(home: &Path, text: &str) -> Command {
    let mut command = Command::new("bash");
    let text = format!("mk() {{ '{}' \"$@\"; }}\n{text}", env!("CARGO_BIN_EXE_mk"));
    command
        .args(["-c", &text])
        .env_clear()
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("PATH", std::env::var("PATH").unwrap())
        .current_dir(home);
    command
}

fn id_of_a_new_key(user: &Mk) -> String {
    let made = user.clone().args(["keys", "create", "--service", "verify", "--name", "ci", "--json"]).run();
    made.json()["id"].as_str().unwrap().to_owned()
}

fn is_revoked(user: &Mk, id: &str) -> bool {
    user.clone().args(["keys", "show", id, "--json"]).run().json()["state"] == "revoked"
}

#[test]
fn only_a_yes_revokes_the_key() {
    let user = Mk::new();
    let id = id_of_a_new_key(&user);
    for (answer, code, revoked) in [("n\n", 3, false), ("\n", 3, false), ("\x04", 3, false), ("y\n", 0, true)]
    {
        let mut person = Person::at(&user.clone().args(["keys", "revoke", "ci"]).command());
        person.until("[y/N] ");
        person.types(answer);
        let (status, shown) = person.end();
        assert_eq!(status, format!("code {code}"), "{answer:?}: {shown}");
        assert!(shown.contains("(ci)") && shown.contains("last used: never"), "{shown}");
        assert_eq!(is_revoked(&user, &id), revoked, "{answer:?}");
    }
}

#[test]
fn the_revocation_time_is_when_the_question_was_answered() {
    let user = Mk::new();
    let id = id_of_a_new_key(&user);
    let mut person = Person::at(&user.clone().args(["keys", "revoke", "ci"]).command());
    person.until("[y/N] ");
    // Times have a resolution of a millisecond, so the answer must not come within the same one.
    std::thread::sleep(Duration::from_millis(20));
    let answered = mk::clock::Clock::system().now();
    person.types("y\n");
    assert_eq!(person.end().0, "code 0");
    let record = user.args(["keys", "show", &id, "--json"]).run().json();
    let revoked = mk::clock::Time::parse(record["revoked_at"].as_str().unwrap()).unwrap();
    assert!(revoked >= answered, "{revoked} is before {answered}");
}

#[test]
fn ctrl_c_at_the_confirmation_changes_nothing() {
    let user = Mk::new();
    let id = id_of_a_new_key(&user);
    let mut person = Person::at(&user.clone().args(["keys", "revoke", "ci"]).command());
    person.until("[y/N] ");
    person.types("\x03");
    let (status, _) = person.end();
    assert_eq!(status, INTERRUPTED);
    assert!(!is_revoked(&user, &id));
}

#[test]
fn without_a_visible_prompt_confirmation_is_refused() {
    let user = Mk::new();
    let id = id_of_a_new_key(&user);
    for redirect in ["2>err.txt", "</dev/null 2>err.txt", "</dev/null"] {
        let (status, shown) =
            Person::at(&script(user.home(), &format!("mk keys revoke ci {redirect}"))).end();
        assert_eq!(status, "code 2", "{redirect}: {shown}");
        let errors = std::fs::read_to_string(user.home().join("err.txt")).unwrap();
        assert!(errors.contains("--yes") || shown.contains("--yes"), "{redirect}: {shown} {errors}");
    }
    assert!(!is_revoked(&user, &id));
    let mut person = Person::at(&script(user.home(), "mk keys revoke ci >out.txt"));
    person.until("[y/N] ");
    person.types("y\n");
    assert_eq!(person.end().0, "code 0", "stdout need not be a terminal to confirm");
}

#[test]
fn stdout_and_stderr_are_checked_separately_for_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let slow = "The Eiffel Tower is in Paris [sandbox:slow].";
    let (_, shown) =
        Person::at(&script(home.path(), &format!("mk verify --sandbox '{slow}' >out.txt"))).end();
    assert!(
        shown.contains("asking models") && shown.contains('\u{1b}'),
        "progress is still shown: {shown:?}"
    );
    assert!(!shown.contains("TRUE\t"), "{shown:?}");
    assert!(read("out.txt").starts_with("1\tTRUE\tTTT\t") && !read("out.txt").contains('\u{1b}'));

    let (_, shown) =
        Person::at(&script(home.path(), &format!("mk verify --sandbox '{TRUE}' 2>err.txt"))).end();
    assert!(shown.contains("\u{1b}[36m✓"), "colour is still used: {shown:?}");
    assert!(!shown.contains("SANDBOX"), "{shown:?}");
    assert!(
        read("err.txt").contains("SANDBOX") && !read("err.txt").contains('\u{1b}'),
        "{}",
        read("err.txt")
    );
}

#[test]
fn progress_is_not_drawn_over_piped_results() {
    let home = tempfile::tempdir().unwrap();
    let slow = "Paris is the capital of France. The capital of Australia is Sydney [sandbox:slow].";
    for (call, first, second) in [
        (format!("mk verify --sandbox '{slow}' | cat"), "1\tTRUE\tTTT\t", "2\tFALSE\t"),
        (format!("mk verify --sandbox --jsonl '{slow}' | cat"), "{\"schema\":", "\"assessment\":\"FALSE\""),
        (
            format!("printf '%s\\n' '{TRUE}' '{slow}' | mk verify --sandbox --lines - | cat"),
            "1\tTRUE\tTTT\t",
            "FALSE\t",
        ),
    ] {
        let (_, shown) = Person::at(&script(home.path(), &call)).end();
        let (before, results) = shown.split_once(first).unwrap_or_else(|| panic!("{call}: {shown:?}"));
        assert!(before.contains('\u{1b}'), "progress is shown before the results: {call}: {shown:?}");
        assert!(results.contains(second) && !results.contains('\u{1b}'), "{call}: {shown:?}");
    }
}

#[test]
fn ctrl_c_clears_the_progress_display() {
    let mk = Mk::new().args(["verify", "--sandbox", "Paris is the capital of France. [sandbox:stall]"]);
    let mut person = Person::at(&mk.command());
    person.until_on_screen("asking models");
    person.types("\x03");
    person.until_on_screen("interrupted");
    let screen = person.screen();
    assert!(!screen.contains("Verifying") && !screen.contains("asking models"), "{screen}");
    assert_eq!(person.end().0, INTERRUPTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_before_the_server_responds() {
    let server = Scripted::start(|_| vec![Step::Hang]).await;
    let mk = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", VERIFY_KEY);
    let ended = tokio::task::spawn_blocking(move || {
        let mut person = Person::at(&mk.command());
        person.until("Connecting");
        person.types("\x03");
        person.until("interrupted");
        person.end()
    });
    let (status, _) = ended.await.unwrap();
    assert_eq!(status, INTERRUPTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_shell_loop() {
    let server = Scripted::start(|_| {
        vec![Step::Send(stream("event: starting\ndata: {\"status\":\"starting\"}\n\n")), Step::Hang]
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let mut command =
        script(home.path(), "for n in 1 2 3; do mk verify \"$n\"; echo \"went on after $n\"; done");
    command.env("MK_SERVER", &server.base).env("MK_API_KEY", VERIFY_KEY);
    let ended = tokio::task::spawn_blocking(move || {
        let mut person = Person::at(&command);
        person.until("Connecting");
        person.types("\x03");
        person.end()
    });
    let (_, shown) = ended.await.unwrap();
    assert!(!shown.contains("went on"), "{shown}");
    assert!(server.requests().len() <= 1);
}

#[test]
fn a_silent_terminal_gets_a_notice_that_input_is_awaited() {
    let started = Instant::now();
    let mut person = Person::at(&Mk::new().args(["verify", "--sandbox", "-"]).command());
    person.until("waiting for text on standard input");
    assert!(started.elapsed() >= Duration::from_millis(2900), "{:?}", started.elapsed());
    person.types(&format!("{TRUE}\n\x04"));
    let (status, shown) = person.end();
    assert!(status == "code 0" && shown.contains("TRUE"), "{status} {shown}");
}

#[test]
fn a_typed_key_is_not_echoed() {
    let user = Mk::new().env("MK_SERVER", "http://127.0.0.1:0");
    let key = user.clone().args(["keys", "create", "--service", "verify"]).run().stdout.trim().to_owned();
    let mut person = Person::at(&user.clone().args(["login"]).command());
    person.until("(not shown): ");
    person.until_unseen();
    person.types(&format!("{key}\n"));
    let (status, shown) = person.end();
    assert!(status == "code 0" && !shown.contains(&key), "{status} {shown}");
    let whoami = user.args(["whoami"]).run();
    assert!(whoami.stdout.contains("verify key\tset"), "{whoami:?}");
}

#[test]
fn help_fits_the_terminal_and_starts_with_examples() {
    for arguments in [&["--help"][..], &["verify", "--help"], &["serve", "-h"], &["help", "keys", "create"]] {
        for columns in ["60", "80", "200"] {
            let ran = Mk::new().args(arguments.iter().copied()).env("COLUMNS", columns).run();
            assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{ran:?}");
            assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
            assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{columns}: {}", ran.stdout);
        }
    }
    let help = Mk::new().args(["verify", "--help"]).run().stdout;
    assert!(help.find("Examples:").unwrap() < help.find("Usage:").unwrap(), "{help}");
}
