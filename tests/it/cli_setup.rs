//! Setting up the first console key by the one-time link of `mk serve`, and checking keys at login.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mk::api::Service;
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::mk::{Mk, NOBODY, operator};
use crate::support::panel::{config, with_panel};
use crate::support::provider::Reply;
use crate::support::pty::{INTERRUPTED, Person};
use crate::support::scripted::{Scripted, answer};
use crate::support::serve::{self, Serve};
use crate::support::server::{Setup, client};

fn link_file(call: &Mk) -> PathBuf {
    serve::data_dir(call.home()).join("setup-link")
}

/// Opens a link as the dashboard does.
async fn open(link: &str) -> Response {
    let (base, token) = link.split_once("/#/setup/").unwrap();
    client().post(format!("{base}/v1/auth/setup")).json(&json!({"token": token})).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_the_setup_link_is_in_a_private_file_until_used() {
    let call = serve::call(NOBODY, "").env("MK_LOG", "trace");
    let server = Serve::start(&call);
    let file = link_file(&call);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let link = std::fs::read_to_string(&file).unwrap();
    let link = link.trim_end();
    assert!(link.starts_with(&format!("{}/#/setup/", server.base)), "{link}");
    let made = open(link).await;
    assert_eq!(made.status(), 201);
    let made: Value = made.json().await.unwrap();
    eventually("the file is gone", || !file.exists()).await;
    assert_eq!(open(link).await.status(), 401);
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(status.success());
    assert!(log.contains(file.to_str().unwrap()), "the log names the file: {log}");
    let token = link.rsplit('/').next().unwrap();
    let key = made["created"]["key"].as_str().unwrap();
    assert!(!log.contains(token) && !log.contains(key), "{log}");

    let again = Serve::start(&call);
    assert!(!file.exists(), "no new link once there is a console key");
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setup_file_is_removed_when_a_console_key_is_created_elsewhere() {
    let call = serve::call(NOBODY, "");
    let server = Serve::start(&call);
    let file = link_file(&call);
    assert!(file.exists());
    let data = serve::data_dir(call.home());
    assert_eq!(operator(&data, &["keys", "create", "--service", "console"]).run().code(), 0);
    eventually("the file is gone", || !file.exists()).await;
    server.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_reads_nothing_does_not_block_the_server() {
    let mut person = Person::at(&Mk::new().args(["serve", "--sandbox", "--listen", "127.0.0.1:0"]).command());
    person.until("Next, in another terminal:");
    person.until("/#/setup/");
    let shown = person.shown();
    let link = shown.split_whitespace().find(|word| word.contains("/#/setup/")).expect(&shown);
    let (base, _) = link.split_once("/#/setup/").unwrap();
    // Each writes a line to the log; the terminal's buffer holds about 4 KB.
    for _ in 0..200 {
        let refused = client().get(format!("{base}/v1/apps")).send().await.unwrap().status();
        assert!(refused.is_client_error(), "{refused}");
    }
    person.types("\x03");
    let (status, _) = person.end();
    assert_eq!(status, INTERRUPTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setup_file_is_removed_at_shutdown_or_by_the_next_start() {
    let call = serve::call(NOBODY, "");
    let file = link_file(&call);
    let server = Serve::start(&call);
    server.signal("TERM");
    tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(!file.exists());

    let killed = Serve::start(&call);
    let void = std::fs::read_to_string(&file).unwrap();
    killed.kill();
    let server = Serve::start(&call);
    let link = std::fs::read_to_string(&file).unwrap();
    assert_ne!(link, void);
    let void = format!("{}/#/setup/{}", server.base, void.trim_end().rsplit('/').next().unwrap());
    assert_eq!(open(&void).await.status(), 401);
    server.kill();

    let data = serve::data_dir(call.home());
    assert!(file.exists());
    assert_eq!(operator(&data, &["keys", "create", "--service", "verify"]).run().code(), 0);
    assert!(file.exists(), "it is still needed");
    assert_eq!(operator(&data, &["keys", "create", "--service", "console"]).run().code(), 0);
    assert!(!file.exists(), "the link is void");
    std::fs::write(&file, &link).unwrap();
    let server = Serve::start(&call);
    assert!(!file.exists(), "a leftover file is removed");
    assert_eq!(
        open(&link.trim_end().replace(link.split("/#").next().unwrap(), &server.base)).await.status(),
        401
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_the_whole_setup_link_with_the_next_steps() {
    for arguments in
        [&["serve", "--listen", "127.0.0.1:0", "--sandbox"][..], &["serve", "--listen", "127.0.0.1:0"]]
    {
        let file = tempfile::tempdir().unwrap();
        let config = file.path().join("server.toml");
        std::fs::write(&config, "[providers.sandbox]\nkind = \"sandbox\"\n").unwrap();
        let call = Mk::new().args(arguments.iter().copied()).env("MK_CONFIG", config.to_str().unwrap());
        let call = call.env("MK_DATA_DIR", file.path().join("data").to_str().unwrap());
        let mut person = Person::at(&call.command());
        person.until("Next, in another terminal:");
        person.until("mk verify");
        let shown = person.shown();
        let link = shown.split_whitespace().find(|word| word.contains("/#/setup/")).expect(&shown).to_owned();
        assert!(shown.contains("It works once, within 30 minutes"), "{shown}");
        assert!(shown.starts_with("SANDBOX: answers are simulated; no real model is called\r\n"), "{shown}");
        assert_eq!(shown.matches("simulated").count(), 2, "and once for the panel: {shown}");
        assert!(!file.path().join("data/setup-link").exists());
        assert_eq!(open(&link).await.status(), 201);
        person.types("\x03");
        let (status, _) = person.end();
        assert_eq!(status, INTERRUPTED);
    }
}

/// What the server tells the holder of this key.
async fn status(base: &str, key: &str) -> u16 {
    client().get(format!("{base}/v1/key")).bearer_auth(key).send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_killed_sandbox_ends_with_the_next_start_on_its_data() {
    let data = tempfile::tempdir().unwrap();
    let serve = |more: &[&str]| {
        let call = Mk::new().args(["serve", "--listen", "127.0.0.1:0"]).args(more.iter().copied());
        call.env("MK_DATA_DIR", data.path().to_str().unwrap()).env("OPENAI_API_KEY", "sk-x")
    };
    let sandbox = serve(&["--sandbox"]).after("echo $$ > process");
    let mut person = Person::at(&sandbox.command());
    person.until("curl -N");
    let key = person.behind("export MK_API_KEY=", "\r\n");

    let beside = Serve::start(&serve(&[]));
    assert_eq!(status(&beside.base, &key).await, 200, "the sandbox still runs");
    beside.kill();
    let marks = || {
        let names = std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains("trial")).count()
    };
    let mut other = Person::at(&serve(&["--sandbox"]).command());
    other.until("curl -N");
    assert_eq!(marks(), 4, "two keys each");
    other.types("\x03");
    assert_eq!(other.end().0, INTERRUPTED);
    assert_eq!(marks(), 2, "those of a server that ends go with it");

    let process = std::fs::read_to_string(sandbox.home().join("process")).unwrap();
    let killed = std::process::Command::new("kill").args(["-9", process.trim()]).status().unwrap();
    assert!(killed.success());
    person.end();
    let next = Serve::start(&serve(&[]));
    assert_eq!(status(&next.base, &key).await, 401);
    next.kill();

    let audit = operator(data.path(), &["audit", "--json"]).run().stdout;
    assert_eq!(audit.matches("key.revoked").count(), 4, "{audit}");
    assert_eq!(marks(), 0, "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_sandbox_is_reported_like_a_requested_one() {
    let fake = "[providers.fake]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:0\"\n";
    let mixed = format!("{fake}[verify]\nextractor = \"fake/m\"\npanel = [\"fake/m\", \"sandbox/beta\"]\n");
    for (more, is_sandbox) in [(String::new(), true), (mixed, true), (fake.to_owned(), false)] {
        let (mk, file) = (Mk::new(), tempfile::tempdir().unwrap());
        let config = file.path().join("server.toml");
        let settings = format!("listen = \"127.0.0.1:0\"\n[providers.sandbox]\n{more}");
        std::fs::write(&config, settings).unwrap();
        let call = mk.args(["serve"]).env("MK_CONFIG", config.to_str().unwrap());
        let server = Serve::start(&call.env("MK_DATA_DIR", file.path().join("data").to_str().unwrap()));
        let serving = server.until_logged(1, |line| line.contains("\"serving\"")).await.remove(0);
        let serving: Value = serde_json::from_str(&serving).unwrap();
        assert_eq!(serving["sandbox"], is_sandbox, "{serving}");
    }
}

#[test]
fn the_welcome_fits_narrow_terminals_except_for_text_to_copy() {
    let call = Mk::new().args(["serve", "--sandbox", "--listen", "127.0.0.1:0"]);
    for columns in [44_u16, 80] {
        let mut person = Person::at_columns(&call.command(), columns);
        person.until("curl -N");
        person.types("\x03");
        let (_, shown) = person.end();
        let is_for_copying = |line: &str| {
            ["  http", "  export ", "  mk verify", "  mk chat", "  curl ", "    -H", "    -d"]
                .iter()
                .any(|it| line.starts_with(it))
        };
        assert!(shown.contains("To use the dashboard"), "{shown}");
        let serving = shown.lines().skip_while(|line| !line.contains("To use the dashboard"));
        for line in serving.take_while(|line| !line.contains("shutting down")).map(str::trim_end) {
            assert!(
                line.chars().count() <= usize::from(columns) || is_for_copying(line),
                "{columns}: {line:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn login_checks_a_key_before_storing_it() {
    let (server, _provider) = with_panel(|_, _| Reply::Hang).await;
    let (revoked, id) = server.key_with(Service::Inference, |_| {});
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let foreign = Setup::new(config(NOBODY)).start().await.key(Service::Verify);
    let user = Mk::new().env("MK_SERVER", &server.base);
    for (key, words) in [(&foreign, "invalid or missing API key"), (&revoked, "API key has been revoked")] {
        let login = user.clone().args(["login"]).stdin(key.as_str());
        let ran = login.run_beside().await;
        assert_eq!(ran.code(), 4, "{ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains("not stored"), "{ran:?}");
        assert!(ran.stderr.contains("hint: `mk login --no-check`"), "{ran:?}");
        let whoami = user.clone().args(["whoami", "--json"]).run_beside().await.json();
        assert_eq!((&whoami["keys"]["verify"], &whoami["keys"]["inference"]), (&json!(null), &json!(null)));
    }
    let ran = user.clone().args(["login", "--no-check"]).stdin(revoked).run_beside().await;
    assert_eq!((ran.code(), ran.stderr.matches("warning").count()), (0, 0), "{ran:?}");
    let whoami = user.clone().args(["whoami"]).run_beside().await;
    assert_eq!(whoami.code(), 4, "{whoami:?}");
    assert!(whoami.stdout.contains("); API key has been revoked\n"), "{whoami:?}");
    assert!(whoami.stderr.starts_with("error: the inference key ("), "{whoami:?}");
    let doctor = user.clone().args(["doctor"]).run_beside().await;
    let told =
        doctor.stdout.lines().find(|line| line.starts_with("failed\tserver\tthe inference key (")).unwrap();
    assert!(doctor.code() == 1 && told.contains("): API key has been revoked\t"), "{doctor:?}");
    let told = user.clone().args(["whoami", "--json"]).run_beside().await.json();
    assert_eq!(told["checked"]["inference"]["error"]["code"], "api_key_revoked");
    assert_eq!((&told["exit"], &told["error"]["code"]), (&json!(4), &json!("api_key_revoked")));
    let mistyped = user.args(["whoami"]).env("MK_INFERENCE_KEY", "mk_inference_x").run_beside().await;
    assert!(
        mistyped.code() == 4 && mistyped.stderr.contains("(MK_INFERENCE_KEY) is mistyped"),
        "{mistyped:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn login_stores_an_uncheckable_key_with_a_warning() {
    let key = Mk::new().args(["keys", "create", "--service", "verify"]).run().stdout;
    let old = Scripted::answering(answer("404 Not Found", "", "{}")).await;
    for (server, words) in [(NOBODY, "cannot reach"), (&old.base, "cannot check keys")] {
        let user = Mk::new().env("MK_SERVER", server);
        let ran = user.clone().args(["login"]).stdin(key.as_str()).run_beside().await;
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(words), "{ran:?}");
        assert!(ran.stderr.contains("stored the verify key"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoami_shows_the_remaining_limits_without_using_them() {
    let (server, _provider) = with_panel(|_, _| Reply::Hang).await;
    let (key, id) = server.key_with(Service::Verify, |new| new.per_minute = Some(5));
    let (open, _) = server.key_with(Service::Console, |new| {
        new.per_minute = Some(0);
        new.per_day = Some(0);
    });
    server.verify(&key, &json!({})).send().await.unwrap();
    let user = Mk::new().args(["whoami"]).env("MK_SERVER", &server.base).env("MK_VERIFY_KEY", &key);
    let user = user.env("MK_CONSOLE_KEY", &open);
    for _ in 0..2 {
        let ran = user.run_beside().await;
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert!(
            ran.stdout.contains("verify limits\t4 of 5 left this minute, 999 of 1000 left today\n"),
            "{ran:?}"
        );
        assert!(ran.stdout.contains("console limits\tnone\n"), "{ran:?}");
        assert!(!ran.stdout.contains("inference limits"), "{ran:?}");
    }
    let checked = user.args(["--json"]).run_beside().await.json()["checked"].take();
    assert_eq!(checked["verify"]["key"]["id"], json!(id));
    assert_eq!(checked["verify"]["minute"]["remaining"], json!(4));
    assert_eq!(checked.get("inference"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_gives_a_key_for_verify_and_one_for_inference_with_three_commands() {
    let data = tempfile::tempdir().unwrap();
    let call = Mk::new().args(["serve", "--listen", "127.0.0.1:0", "--sandbox"]);
    let call = call.env("MK_DATA_DIR", data.path().to_str().unwrap());
    let mut person = Person::at(&call.command());
    person.until("These keys expire when the server stops.");
    let verify = person.behind("export MK_API_KEY=", "\r\n");
    let inference = person.behind("export MK_INFERENCE_KEY=", "\r\n");
    let base = person.behind("serves on \u{1b}[1m", "\u{1b}");
    for command in ["mk verify --server ", "mk chat --server ", "curl -N "] {
        assert!(person.shown().contains(&format!("  {command}{base}")), "{}", person.shown());
    }
    let user = || Mk::new().env("MK_API_KEY", &verify).env("MK_INFERENCE_KEY", &inference);
    let verified = user().args(["verify", "--server", &base, "Paris is the capital of France."]);
    assert_eq!(verified.run_beside().await.code(), 0);
    let answered = user().args(["chat", "--server", &base, "What is 6 times 7?"]).run_beside().await;
    assert_eq!(answered.code(), 0, "{answered:?}");
    person.types("\x03");
    assert_eq!(person.end().0, INTERRUPTED);
}

#[test]
fn the_sandbox_says_what_of_the_file_it_ignores() {
    let mk = Mk::new();
    let file = mk.home().join("server.toml");
    let check = mk.args(["serve", "--check", "--sandbox", "--config", file.to_str().unwrap()]);
    std::fs::write(
        &file,
        "[providers.x]\nbase_url = \"http://127.0.0.1:0\"\n[verify]\nextractor = \"sandbox/alhpa\"\n",
    )
    .unwrap();
    let ran = check.run();
    let told = format!("--sandbox ignores [providers], the models of [verify] of {}", file.display());
    assert!(ran.code() == 0 && ran.stdout.contains(&told), "{ran:?}");
    std::fs::write(&file, "[verify]\nmax_claims = 7\n").unwrap();
    assert!(!check.run().stdout.contains("ignores"), "a limit counts in the sandbox too");
}

#[test]
fn the_auditor_that_is_named_is_the_one_that_audits_and_a_missing_price_is_told() {
    let mk = Mk::new();
    let file = mk.home().join("server.toml");
    let check = mk.args(["serve", "--check", "--config", file.to_str().unwrap()]);
    let models = "extractor = \"x/one\"\npanel = [\"x/one\", \"x/two\", \"x/three\"]\n";
    let priced = |name: &str| {
        format!("[providers.x.models.{name}]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 2\n")
    };
    let checked = |verify: &str, prices: &str| {
        let provider = "[providers.x]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:0\"\n";
        std::fs::write(&file, format!("{provider}{prices}[verify]\n{models}{verify}")).unwrap();
        let ran = check.run();
        assert_eq!(ran.code(), 0, "{ran:?}");
        ran.stdout
    };
    let facts = checked("auditor = \"x/one\"\n", "");
    assert!(facts.contains("x/two (`auditor` names the extractor, which cannot audit itself)"), "{facts}");
    assert!(
        facts.contains("the price of x/one, x/two, x/three is unknown: keys and apps with a budget"),
        "{facts}"
    );
    let panel = ["one", "two", "three"].map(priced).concat();
    let facts = checked("auditor = \"x/judge\"\n", &panel);
    assert!(facts.contains("the price of x/judge is unknown: "), "{facts}");
    let facts = checked("auditor = \"x/one\"\n", &panel);
    assert!(!facts.contains("no price"), "{facts}");
}

#[test]
fn what_is_wrong_on_the_command_line_is_told_before_a_missing_provider() {
    let ran = Mk::new().args(["serve", "--listen", "8081"]).run();
    assert!(ran.code() == 2 && ran.stderr.starts_with("error: --listen must be "), "{ran:?}");
    let ran = Mk::new().args(["serve"]).run();
    assert!(ran.stderr.contains("`mk serve --sandbox`"), "{ran:?}");
    for command in ["verify", "chat"] {
        let ran = Mk::new().args([command, "--local", "Paris is in France."]).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("simulated models: `mk {command} --sandbox")), "{ran:?}");
    }
}

#[test]
fn a_configuration_that_answers_503_is_not_called_valid() {
    let mk = Mk::new().args(["serve", "--check"]).env("OPENAI_API_KEY", "sk-x");
    let file = mk.home().join("server.toml");
    let mk = mk.env("MK_CONFIG", file.to_str().unwrap());
    for panel in ["[]", "[\"openai/gpt-5.4-mini\"]"] {
        std::fs::write(&file, format!("[verify]\npanel = {panel}\n")).unwrap();
        let ran = mk.run();
        assert!(!ran.stderr.contains("is valid"), "{ran:?}");
        assert!(ran.stderr.contains("verification (general and legal) will answer 503"), "{ran:?}");
    }
    std::fs::write(&file, "").unwrap();
    let ran = mk.run();
    assert!(ran.stderr.ends_with("the configuration is valid\n"), "{ran:?}");
}
