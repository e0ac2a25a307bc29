//! Error messages: correct, in the user's own terms, and with a next step that works.

use std::path::Path;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk, NOBODY, VERIFY_KEY};
use crate::support::panel::agreeing_panel;
use crate::support::pty;

fn mk(arguments: &[&str]) -> CommandOutput {
    Mk::new().args(arguments.iter().copied()).run()
}

#[test]
fn the_command_suggested_after_making_an_app_works() {
    for name in ["website", "press-office", "press office", "-x"] {
        let user = Mk::new();
        let made = user.clone().args(["apps", "create", "--", name]).run();
        let suggested = made.stderr.split('`').nth(1).unwrap_or_else(|| panic!("{made:?}"));
        let words: Vec<&str> = suggested.split(' ').skip(1).collect();
        let key = user.args(words).run();
        assert_eq!(key.code(), 0, "{suggested}: {key:?}");
    }
}

#[test]
fn usage_hints_show_the_full_usage() {
    for arguments in [
        &["verify", "--lines", "x", "2+2=4"][..],
        &["verify", "--json", "--jsonl", "x"],
        &["verify", "--local", "--sandbox", "x"],
    ] {
        let ran = mk(arguments);
        assert!(ran.stderr.contains("Usage: mk verify [OPTIONS] [TEXT|FILE]...;"), "{ran:?}");
    }
    let ran = mk(&["--verson"]);
    assert!(ran.stderr.contains("Usage: mk [OPTIONS] <COMMAND>;"), "{ran:?}");
}

#[test]
fn documented_project_settings_are_accepted() {
    let topic = include_str!("../../man/mk-config.5.md");
    let example = topic.split("```toml\n[verify]").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let user = Mk::new();
    std::fs::write(user.home().join(".mk.toml"), format!("[verify]{example}")).unwrap();
    let listed = user.args(["config", "list", "client", "--origin", "--json"]).run().json();
    let of_project: Vec<&str> = listed["client"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["origin"].as_str().unwrap().contains(".mk.toml"))
        .map(|entry| entry["key"].as_str().unwrap())
        .collect();
    let verify = ["domain", "min_required", "total_models", "jobs", "fail_on"];
    let expected: Vec<String> = ["output.color", "output.progress", "output.view"]
        .map(str::to_owned)
        .into_iter()
        .chain(verify.map(|key| format!("verify.{key}")))
        .collect();
    assert_eq!(of_project, expected);
    let help = mk(&["config", "--help"]).stdout;
    assert!(help.contains(".mk.toml") && verify.iter().all(|key| help.contains(key)), "{help}");
}

#[test]
fn an_unquoted_text_gets_a_hint_to_quote_it() {
    let ran = mk(&["verify", "Paris", "is", "in", "France."]);
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains("quotes"), "{ran:?}");
    assert!(!mk(&["verify", "The Eiffel Tower is in Paris.", "--bogus"]).stderr.contains("quotes"));
}

#[test]
fn invalid_numbers_are_reported_with_their_range() {
    for (arguments, range) in [
        (&["verify", "--min-required", "4", "x"][..], "2 or 3"),
        (&["verify", "--total-models", "two", "x"], "a whole number from 2 to 9"),
        (&["verify", "--jobs", "0", "x"], "a whole number from 1 to 64"),
        (
            &["keys", "create", "--service", "verify", "--per-minute", "-1"],
            "a whole number from 0 to 4294967295",
        ),
    ] {
        let ran = mk(arguments);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("it must be {range}")), "{ran:?}");
    }
}

#[test]
fn errors_name_flags_instead_of_api_fields() {
    let fewer = mk(&["verify", "--sandbox", "--min-required", "3", "--total-models", "2", "x"]);
    assert_eq!(fewer.code(), 2, "{fewer:?}");
    assert!(fewer.stderr.contains("--total-models") && fewer.stderr.contains("--min-required"), "{fewer:?}");
    assert!(!fewer.stderr.contains("SANDBOX"), "rejected before the sandbox starts: {fewer:?}");
    let more = mk(&["verify", "--sandbox", "--total-models", "9", "x"]);
    assert!(more.stderr.contains("error: --total-models "), "{more:?}");
    let long = Mk::new().args(["verify", "--sandbox", "-"]).stdin("long ".repeat(50_000)).run();
    assert_eq!(long.code(), 2, "{long:?}");
    assert!(
        long.stderr
            .contains("error: the text has 250000 characters, and the limit is 200000; split the text"),
        "{long:?}"
    );
    let address = mk(&["keys", "create", "--service", "verify", "--address", "300.1.1.1"]);
    assert!(address.stderr.starts_with("error: --address: "), "{address:?}");
    let name = mk(&["apps", "create", ""]);
    assert!(name.stderr.starts_with("error: name must be "), "{name:?}");
}

#[test]
fn a_timeout_is_reported_as_it_was_given() {
    let ran = mk(&["verify", "--sandbox", "--timeout", "40ms", "2+2=4 [sandbox:stall]."]);
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert!(ran.stderr.contains("no result within 40 ms"), "{ran:?}");
}

#[test]
fn whoami_works_without_a_reachable_server() {
    let user = Mk::new().env("MK_SERVER", NOBODY).env("MK_API_KEY", "mk_verify_x");
    let ran = user.clone().args(["whoami", "--json"]).run();
    assert_eq!(ran.code(), 6, "{ran:?}");
    let document = ran.json();
    assert_eq!(document["schema"], "mk.whoami/1");
    assert_eq!((&document["reachable"], &document["exit"]), (&json!(false), &json!(6)));
    assert_eq!(document["keys"]["verify"], "MK_API_KEY");
    assert_eq!(document["mistyped"], json!(["verify"]));
    let ran = user.args(["whoami"]).run();
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert!(ran.stdout.contains("MK_API_KEY; mistyped"), "{ran:?}");
    assert!(!ran.stderr.contains("mk whoami"), "whoami does not refer to itself: {ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_error_hints_at_max_wait() {
    let (server, _provider) = agreeing_panel().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(1));
    let call = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &key);
    assert_eq!(call.run_beside().await.code(), 0);
    let ran = call.run_beside().await;
    assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("--max-wait"), "{ran:?}");
}

#[test]
fn logout_lists_the_forgotten_keys() {
    let user = Mk::new().env("MK_SERVER", NOBODY);
    for service in ["verify", "console"] {
        let key = user.clone().args(["keys", "create", "--service", service]).run().stdout;
        assert_eq!(user.clone().args(["login"]).stdin(key).run().code(), 0);
    }
    let both = user.clone().args(["logout"]).run();
    assert!(both.stderr.contains("forgot the verify and console keys for http://127.0.0.1:0"), "{both:?}");
    let empty = user.args(["login"]).run();
    assert_eq!(empty.code(), 2);
    assert!(empty.stderr.contains("hint: ") && empty.stderr.contains("mk login <"), "{empty:?}");
}

#[test]
fn serve_names_the_config_file_that_lacks_a_provider() {
    let user = Mk::new();
    let made = user.clone().args(["config", "init"]).run();
    assert_eq!(made.code(), 0, "{made:?}");
    let file = user.home().join(".config/mk/server.toml");
    assert!(file.exists(), "{made:?}");
    let ran = user.args(["serve", "--check"]).run();
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains(file.to_str().unwrap()), "{ran:?}");
    assert!(!ran.stderr.contains("mk config init"), "it would fail because the file exists: {ran:?}");
}

#[test]
fn serve_check_rejects_an_invalid_log_filter() {
    let ran = Mk::new().env("MK_LOG", "inof").args(["serve", "--sandbox", "--check"]).run();
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains("MK_LOG: `inof` is not valid"), "{ran:?}");
}

#[test]
fn serve_check_rejects_an_invalid_provider_key() {
    let with_key = Mk::new().env("OPENAI_API_KEY", "sk-\u{7f}");
    for arguments in [&["serve", "--check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let ran = with_key.clone().args(arguments.iter().copied()).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("its API key contains characters that cannot be sent"), "{ran:?}");
        assert!(!ran.stderr.contains("sk-"), "{ran:?}");
    }
}

#[test]
fn the_suggested_command_for_the_first_console_key_works() {
    for place in ["data", "o'clock dir"] {
        let user = Mk::new();
        let data = user.home().join(place);
        let serve = ["serve", "--sandbox", "--listen", "0.0.0.0:0", "--data-dir"];
        let refused = user.clone().args(serve).args([data.to_str().unwrap()]).run();
        assert_eq!(refused.code(), 2, "{refused:?}");
        let hint = refused.stderr.split_once("hint: create one first: ").unwrap().1;
        let bin = std::path::Path::new(env!("CARGO_BIN_EXE_mk")).parent().unwrap();
        let made = std::process::Command::new("/bin/sh")
            .args(["-c", hint])
            .env_clear()
            .env("HOME", user.home())
            .env("PATH", bin)
            .current_dir(user.home())
            .output()
            .unwrap();
        assert!(made.stdout.starts_with(b"mk_console_"), "{hint}: {made:?}");
        let store = mk::storage::Store::open(&data, mk::clock::Clock::system().now()).unwrap();
        assert!(store.has_console_key(mk::clock::Clock::system().now()).unwrap(), "{hint}");
    }
}

#[test]
fn a_key_for_a_missing_app_is_rejected_with_a_hint() {
    let mk = Mk::new();
    let (old, new) = (mk.home().join("old"), mk.home().join("new"));
    let create = |dir: &Path, app: &str| {
        let dir = dir.to_str().unwrap();
        mk.clone().args(["keys", "create", "--service", "verify", "--app", app, "--data-dir", dir]).run()
    };
    assert_eq!(create(&old, "default").code(), 0);
    for dir in [&old, &new] {
        let ran = create(dir, "gone");
        assert_eq!(ran.code(), 9, "{ran:?}");
        assert!(ran.stderr.starts_with("error: there is no app `gone`"), "{ran:?}");
        assert!(ran.stderr.contains("mk apps create") && ran.stdout.is_empty(), "{ran:?}");
    }
    let taken = mk.clone().args(["apps", "create", "default", "--data-dir", new.to_str().unwrap()]).run();
    assert_eq!(taken.code(), 9, "{taken:?}");
    assert!(!new.exists(), "a rejected command creates no database");
}

#[test]
fn settings_are_listed_as_json_values() {
    let odd = "local/a\\b'c'\"d\"\u{200b}";
    let listed = Mk::new().args(["config", "list", "--json"]).env("MK_MODEL", odd).run().json();
    let value = |key: &str| {
        let entries = listed["client"].as_array().unwrap();
        entries.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("{key}"))["value"].clone()
    };
    assert_eq!(value("server"), "http://127.0.0.1:8080");
    assert_eq!(value("chat.model"), odd);
    assert_eq!(value("verify.domain"), Value::Null);
    assert_eq!(value("keys.verify"), "not set");
    let text = mk(&["config", "list", "client"]);
    assert!(text.stdout.contains("client\tverify.domain\t\"general\"\n"), "{text:?}");
    assert!(text.stdout.contains("client\tnetwork.ca_cert\tnot set\n"), "there is no default: {text:?}");
}

#[test]
fn server_settings_are_listed_even_without_a_provider() {
    for arguments in [&["config", "list"][..], &["config", "list", "server"]] {
        let ran = Mk::new().args(arguments.iter().copied()).env("MK_LISTEN", "127.0.0.1:9").run();
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert!(ran.stdout.contains("server\tlisten\t\"127.0.0.1:9\"\n"), "{ran:?}");
        let warning = "warning: no model provider is configured or was found; `mk serve` needs one\n";
        assert_eq!(ran.stderr, warning);
    }
    let wrong = Mk::new().args(["config", "list", "server"]).env("MK_LISTEN", "nine").run();
    assert_eq!(wrong.code(), 2, "{wrong:?}");
}

#[test]
fn a_directory_is_rejected_as_a_file_of_lines() {
    let ran = mk(&["verify", "--sandbox", "--lines", "."]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains("error: cannot read .: "), "{ran:?}");
}

#[test]
fn a_wrong_file_is_reported_before_a_missing_key() {
    for arguments in [
        &["verify", "-f", "nowhere.txt"][..],
        &["verify", "-f", ".", "-f", "nowhere.txt"],
        &["verify", "--lines", "nowhere.txt"],
        &["eval", "nowhere.jsonl"],
    ] {
        let ran = mk(arguments);
        assert_eq!(ran.code(), 2, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: cannot read "), "{ran:?}");
    }
    for arguments in [&["verify", "-"][..], &["verify", "--lines", "-"], &["eval", "-"]] {
        let ran = mk(arguments);
        assert_eq!(ran.code(), 4, "nobody has to type a text that cannot be used: {arguments:?}: {ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_not_mistaken_for_a_closed_pipe() {
    for arguments in [&["verify", "--sandbox", "2+2=4."][..], &["verify", "--sandbox", "--json", "2+2=4."]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Mk::new().args(arguments.iter().copied()).command().stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    }
}

#[test]
fn lists_stay_readable_where_a_table_does_not_fit() {
    let user = Mk::new();
    let made = user.clone().args(["keys", "create", "--service", "verify", "--name", "nightly build"]).run();
    assert_eq!(made.code(), 0, "{made:?}");
    let listed = user.args(["keys", "list"]);
    let narrow = pty::run(&listed, 44, 24).last;
    for words in ["nightly build", "active", "created", "default"] {
        assert!(narrow.contains(words), "{words:?} is not in\n{narrow}");
    }
    let wide = pty::run(&listed, 80, 24).last;
    let is_head = |line: &str| line.contains("name") && line.contains("created");
    assert!(wide.lines().any(is_head), "a table if there is room:\n{wide}");
}

#[test]
fn a_foreign_server_is_recognised() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let foreign = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
        let answer = "HTTP/1.1 501 Not Implemented\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
        std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
    });
    let ran = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &base)
        .env("MK_API_KEY", VERIFY_KEY)
        .run();
    foreign.join().unwrap();
    assert_eq!(ran.code(), 5, "{ran:?}");
    let complaint = format!("error: {base} answered 501 Not Implemented, but not like an mk server");
    assert!(ran.stderr.contains(&complaint), "{ran:?}");
    assert!(ran.stderr.contains("hint: check that this is the address of an mk server"), "{ran:?}");
}

#[test]
fn a_schema_has_the_same_shape_in_every_command() {
    let user = Mk::new();
    let json =
        |arguments: &[&str]| user.clone().args(arguments.iter().copied()).args(["--json"]).run().json();
    let mut made = json(&["keys", "create", "--service", "verify", "--name", "ci"]);
    made.as_object_mut().unwrap().remove("key").unwrap();
    assert_eq!(json(&["keys", "show", "ci"]), made);
    assert_eq!(json(&["keys", "revoke", "ci", "--yes"])["schema"], "mk.keys.revoked/1");
    json(&["apps", "create", "website"]);
    assert_eq!(json(&["apps", "delete", "website", "--yes"])["schema"], "mk.app.deleted/1");
}

#[test]
fn sentences_wrap_between_words() {
    let user = Mk::new();
    let name = "a key for the nightly build of the website";
    let made = user.clone().args(["keys", "create", "--service", "verify", "--name", name]);
    let shown = pty::run(&made, 44, 24).last;
    let told: Vec<&str> = shown.lines().take_while(|line| !line.starts_with("mk_verify_")).collect();
    assert!(told.len() > 1 && told.join(" ").contains(name), "{shown}");
    assert!(told.join(" ").contains("it is shown only once:"), "{shown}");
}

#[test]
fn an_empty_or_unreadable_context_is_rejected() {
    let user = Mk::new().args(["verify", "--sandbox", "x"]);
    std::fs::write(user.home().join("empty.txt"), " \n").unwrap();
    std::fs::write(user.home().join("latin1.txt"), b"caf\xe9").unwrap();
    std::fs::write(user.home().join("long.txt"), "x".repeat(100_001)).unwrap();
    for (file, told) in [
        ("empty.txt", "error: --context: empty.txt is empty"),
        ("latin1.txt", "error: --context: latin1.txt is not UTF-8 text"),
        ("long.txt", "error: --context: long.txt is longer than 100000 characters"),
        #[cfg(unix)]
        ("/dev/zero", "error: --context: /dev/zero is larger than 1 MiB"),
        ("-", "error: --context needs a file, not standard input"),
        ("nowhere.txt", "error: --context: cannot read nowhere.txt: "),
    ] {
        let ran = user.clone().args(["--context", file]).run();
        assert!(ran.code() == 2 && ran.stderr.contains(told), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_key_is_reported_with_who_can_change_it() {
    let (server, _provider) = agreeing_panel().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.addresses = vec!["192.0.2.0/24".to_owned()]);
    let call = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &key);
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert!(ran.stderr.contains("hint: to change what the key may do, run `mk keys update`"), "{ran:?}");
}

#[test]
fn the_suggested_next_command_uses_the_same_data_directory() {
    let user = Mk::new();
    let made = user.clone().args(["apps", "create", "news", "--data-dir", "own place"]).run();
    assert!(
        made.stderr.contains("`mk keys create --service verify --app news --data-dir 'own place'`"),
        "{made:?}"
    );
    let next = ["keys", "create", "--service", "verify", "--app", "news", "--data-dir", "own place"];
    let key = user.args(next).run();
    assert_eq!(key.code(), 0, "{key:?}");
    assert!(key.stderr.ends_with("it is shown only once, on standard output\n"), "{key:?}");
}

#[test]
fn statements_with_nothing_to_verify_are_counted_separately() {
    let user = Mk::new().args(["verify", "--sandbox", "--lines", "facts.txt", "--view", "list"]);
    std::fs::write(user.home().join("facts.txt"), "2+2=4.\nWhat a lovely day!\n").unwrap();
    let ran = user.run();
    assert!(ran.stdout.contains("2 statements: 1 verified, 1 with nothing to verify"), "{ran:?}");
}
