//! `mk doctor`: what it checks, what it reports, and what it sends.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::mk::{Mk, NOBODY, VERIFY_KEY};
use crate::support::scripted::{Scripted, Step};
use crate::support::{pty, serve};

const SECRET: &str = "sk-very-secret-0123456789";

/// A response with this status, after which the connection closes.
fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let date = "date: Fri, 20 Nov 2020 19:26:00 GMT";
    format!("HTTP/1.1 {status}\r\n{date}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// A provider that answers the first request with 200 and all others, sent without the key, with 401.
async fn locked() -> Scripted {
    let response =
        |at: usize| if at == 0 { answer("200 OK", "{}") } else { answer("401 Unauthorized", "{}") };
    Scripted::start(move |at| vec![Step::Send(response(at))]).await
}

/// A `mk doctor` command with this server configuration.
fn configured(file: &str) -> Mk {
    let mk = Mk::new();
    let path = mk.home().join("server.toml");
    fs::write(&path, file).unwrap();
    mk.args(["doctor", "--config", path.to_str().unwrap()]).env("THE_KEY", SECRET)
}

/// A `mk doctor` command without any setup, on a machine whose server cannot be running, whatever else does.
fn alone() -> Mk {
    Mk::new().args(["doctor"]).env("MK_LISTEN", NOBODY.trim_start_matches("http://"))
}

/// A verify key of another server.
fn foreign_key() -> String {
    let made = Mk::new().args(["keys", "create", "--service", "verify"]).run();
    assert_eq!(made.code(), 0, "{made:?}");
    made.stdout.trim().to_owned()
}

/// The check of this name.
fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name}: {document}"))
}

#[test]
fn without_any_setup_the_doctor_reports_and_creates_nothing() {
    let mk = alone();
    let ran = mk.run();
    assert_eq!(ran.code(), 0, "{ran:?}");
    let states: Vec<_> =
        ran.stdout.lines().map(|line| line.split('\t').take(2).collect::<Vec<_>>()).collect();
    let expected = [
        ["ok", "client configuration"],
        ["note", "server configuration"],
        // Where its server is to be; further below, that none is there.
        ["note", "server"],
        ["note", "database"],
        ["note", "server"],
        ["ok", "clock"],
    ];
    assert_eq!(states, expected, "{ran:?}");
    assert!(
        ran.stdout.contains(&format!("note\tserver\tcannot reach {NOBODY} (connection refused)")),
        "{ran:?}"
    );
    assert_eq!(fs::read_dir(mk.home()).unwrap().count(), 0);
    let named = mk.args(["--server", NOBODY, "--json"]).run();
    assert_eq!((named.code(), &named.json()["exit"]), (1, &1.into()));
    assert_eq!(check(&named.json(), "server")["status"], "failed", "{named:?}");
}

#[test]
fn a_certificate_that_every_client_refuses_is_reported() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, date_time_ymd};
    let made = || CertificateParams::new(vec!["mk.example.com".to_owned()]).unwrap();
    let (mut authority, mut ended) = (made(), made());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ended.not_after = date_time_ymd(2001, 1, 1);
    for (params, status, told) in [
        (made(), "ok", "and its key match"),
        (authority, "failed", "its certificate is that of an authority, not of a server"),
        (ended, "failed", "its certificate has expired, or is not valid yet"),
    ] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mk = configured("tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n[providers.sandbox]\n");
        fs::write(mk.home().join("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(mk.home().join("key.pem"), key.serialize_pem()).unwrap();
        let ran = mk.args(["--json"]).run();
        let found = check(&ran.json(), "tls").clone();
        assert_eq!(found["status"], status, "{found}");
        assert!(found["message"].as_str().unwrap().contains(told), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_provider_is_queried_only_for_its_models_in_its_own_format() {
    let (openai, anthropic, google) = (locked().await, locked().await, locked().await);
    let file = format!(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"{}/v1?api-version=1\"\napi_key_env = \"THE_KEY\"\n\
         [providers.b]\nkind = \"anthropic\"\nbase_url = \"{}/v1\"\napi_key_env = \"THE_KEY\"\n\
         [providers.c]\nkind = \"google\"\nbase_url = \"{}/v1beta\"\napi_key_env = \"THE_KEY\"\n\
         [verify]\nextractor = \"a/x\"\npanel = [\"a/x\", \"b/x\", \"c/x\"]\n",
        openai.base, anthropic.base, google.base
    );
    let ran = configured(&file).args(["--json"]).run_beside().await;
    let document = ran.json();
    for name in ["provider a", "provider b", "provider c", "panel", "limits store", "server configuration"] {
        assert_eq!(check(&document, name)["status"], "ok", "{document}");
    }
    let heads: Vec<String> = [&openai, &anthropic, &google]
        .iter()
        .map(|provider| provider.requests()[0].to_ascii_lowercase())
        .collect();
    assert!(heads[0].starts_with("get /v1/models?api-version=1 "), "{heads:?}");
    assert!(heads[0].contains(&format!("authorization: bearer {SECRET}")), "{heads:?}");
    assert!(
        heads[1].starts_with("get /v1/models?limit=1000 ") && heads[1].contains("anthropic-version: "),
        "{heads:?}"
    );
    assert!(heads[1].contains(&format!("x-api-key: {SECRET}")), "{heads:?}");
    assert!(heads[2].starts_with("get /v1beta/models?pagesize=1000 "), "{heads:?}");
    assert!(heads[2].contains(&format!("x-goog-api-key: {SECRET}")), "{heads:?}");
    for provider in [&openai, &anthropic, &google] {
        assert!(provider.requests().iter().all(|request| request.starts_with("GET ")));
        assert!(!provider.requests()[1].contains(SECRET), "the second request is without the key");
    }
    // All of them send a date in 2020.
    assert_eq!(check(&document, "clock")["status"], "failed", "{document}");
    assert_eq!(ran.code(), 1);
    assert!(!ran.stdout.contains(SECRET), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unlisted_model_is_reported_with_a_suggestion() {
    let list = r#"{"data":[{"id":"gpt-5.4-mini"},{"id":"gpt-5.4-2026-03-05"}]}"#;
    let (whole, part) = (
        Scripted::answering(answer("200 OK", list)).await,
        Scripted::answering(answer("200 OK", r#"{"data":[{"id":"claude-a"}],"has_more":true}"#)).await,
    );
    let file = format!(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"{}/v1\"\napi_key_env = \"THE_KEY\"\n\
         [providers.b]\nkind = \"anthropic\"\nbase_url = \"{}/v1\"\napi_key_env = \"THE_KEY\"\n\
         [verify]\nextractor = \"a/gpt-5.4\"\npanel = [\"a/gpt-5.4-mimi\", \"a/gpt-5.4-mini\", \"b/claude-b\"]\n\
         standby = [\"a/nothing-like-it\"]\n",
        whole.base, part.base
    );
    let document = configured(&file).args(["--json"]).run_beside().await.json();
    let checks = document["checks"].as_array().unwrap();
    let doubted: Vec<_> = checks
        .iter()
        .filter(|check| check["message"].as_str().unwrap().starts_with("does not list"))
        .map(|check| [&check["check"], &check["status"], &check["message"], &check["hints"][0]])
        .map(|fields| fields.map(|field| field.as_str().unwrap().to_owned()))
        .collect();
    let told = |message: &str, hint: &str| ["provider a", "warning", message, hint].map(str::to_owned);
    let elsewhere = "`mk models` lists the models of a running server; a provider may also have models that it does not list";
    let expected = [
        told("does not list gpt-5.4-mimi, which is set in `panel`", "did you mean gpt-5.4-mini?"),
        told("does not list nothing-like-it, which is set in `standby`", elsewhere),
    ];
    assert_eq!(doubted, expected, "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_provider_s_problem_is_reported() {
    let refusing =
        Scripted::answering(answer("401 Unauthorized", &format!("{{\"error\":\"no {SECRET}\"}}"))).await;
    let forbidding = Scripted::answering(answer("403 Forbidden", "{}")).await;
    let google = r#"{"error":{"code":400,"details":[{"reason":"API_KEY_INVALID"}]}}"#;
    let google = Scripted::answering(answer("400 Bad Request", google)).await;
    let open = Scripted::answering(answer("200 OK", "{}")).await;
    let listless = Scripted::answering(answer("404 Not Found", "{}")).await;
    let page = Scripted::answering(answer("200 OK", "<html>welcome</html>")).await;
    let garbled = Scripted::answering(&b"SSH-2.0-OpenSSH_9.9\r\n"[..]).await;
    let mut file = String::new();
    for (name, kind, base, key) in [
        ("refusing", "openai", &refusing.base, "THE_KEY"),
        ("forbidding", "openai", &forbidding.base, "THE_KEY"),
        ("gemini", "google", &google.base, "THE_KEY"),
        ("open", "openai", &open.base, "THE_KEY"),
        ("listless", "openai", &listless.base, "THE_KEY"),
        ("page", "openai", &page.base, "THE_KEY"),
        ("garbled", "openai", &garbled.base, "THE_KEY"),
        ("nobody", "openai", &NOBODY.to_owned(), "THE_KEY"),
        ("keyless", "openai", &open.base, "MISSING_KEY"),
    ] {
        let table = format!("[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{base}\"\n");
        file.extend([table, format!("api_key_env = \"{key}\"\n")]);
    }
    let ran = configured(&file).args(["--json"]).run_beside().await;
    let document = ran.json();
    let told = |name: &str| {
        let check = check(&document, name);
        (check["status"].as_str().unwrap().to_owned(), check["message"].as_str().unwrap().to_owned())
    };
    for name in ["provider refusing", "provider forbidding", "provider gemini"] {
        assert_eq!(told(name), ("failed".to_owned(), "rejects the key".to_owned()));
    }
    assert_eq!(told("provider open").0, "note");
    assert_eq!(told("provider listless").0, "warning");
    assert_eq!(told("provider page").0, "warning", "a web page is no list of models");
    for name in ["provider garbled", "provider nobody"] {
        assert_eq!(told(name).0, "failed", "{document}");
    }
    let (status, message) = told("server configuration");
    assert_eq!(status, "failed");
    assert!(message.contains("MISSING_KEY"), "{message}");
    assert_eq!(ran.code(), 1);
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_and_its_database_are_checked() {
    let provider = Scripted::answering(answer("200 OK", "{}")).await;
    let call = serve::call(&format!("{}/v1", provider.base), "");
    let server = serve::Serve::start_beside(&call).await;
    let file = call.home().join("server.toml");
    let doctor =
        Mk::new().args(["doctor", "--json", "--server", &server.base, "--config", file.to_str().unwrap()]);
    let ran = doctor.run_beside().await;
    let document = ran.json();
    for name in ["server", "database", "disk"] {
        assert_eq!(check(&document, name)["status"], "ok", "{document}");
    }
    let version = format!("(version {})", env!("CARGO_PKG_VERSION"));
    assert!(check(&document, "server")["message"].as_str().unwrap().ends_with(&version), "{document}");

    let main = serve::data_dir(call.home()).join("mk.db");
    fs::set_permissions(&main, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = doctor.run_beside().await;
    let told = format!("others have access to {} (mode 0644)", main.display());
    let document = ran.json();
    let exposed =
        document["checks"].as_array().unwrap().iter().find(|check| check["message"] == told.as_str());
    assert_eq!(exposed.unwrap()["hints"][0], format!("chmod 600 {}", main.display()));

    server.kill();
    let ledger = serve::data_dir(call.home()).join("ledger.db");
    fs::remove_file(ledger.with_file_name("ledger.db-wal")).unwrap();
    fs::write(&ledger, "x".repeat(8192)).unwrap();
    let ran = doctor.run_beside().await;
    assert_eq!(ran.code(), 1);
    let document = ran.json();
    let broken = document["checks"].as_array().unwrap().iter().filter(|check| check["status"] == "failed");
    let broken: Vec<_> = broken.map(|check| check["check"].as_str().unwrap()).collect();
    assert_eq!(broken, ["database", "server", "clock"], "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unnamed_server_is_looked_for_at_its_configured_address() {
    let provider = Scripted::answering(answer("200 OK", "{}")).await;
    let call = serve::call(&format!("{}/v1", provider.base), "");
    let file = call.home().join("server.toml");
    let server = serve::Serve::start_beside(&call).await;
    // Writes the port that the running server got into its configuration file.
    let address = server.base.strip_prefix("http://").unwrap();
    let port = address.rsplit(':').next().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("127.0.0.1:0", &format!("0.0.0.0:{port}"))).unwrap();
    let doctor = Mk::new().args(["doctor", "--json", "--config", file.to_str().unwrap()]);
    let document = doctor.run_beside().await.json();
    let told: Vec<_> = document["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["check"] == "server")
        .map(|check| (check["status"].as_str().unwrap(), check["message"].as_str().unwrap()))
        .collect();
    let [note, well] = told[..] else { panic!("{document}") };
    let here = format!("http://127.0.0.1:{port}");
    assert_eq!(note.0, "note");
    assert!(note.1.contains(&here) && note.1.ends_with("commands call http://127.0.0.1:8080"), "{document}");
    assert_eq!(well.0, "ok", "{document}");
    assert!(well.1.starts_with(&format!("{here} is healthy")), "{document}");

    let named = doctor.clone().env("MK_SERVER", &server.base).run_beside().await.json();
    let of_server = named["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "server");
    assert_eq!(of_server.count(), 1, "a named server needs no note: {named}");

    // A well-formed key that this server does not know.
    let foreign = doctor.env("MK_API_KEY", &foreign_key());
    let refused = |document: &Value| {
        let checks = document["checks"].as_array().unwrap();
        checks.iter().any(|check| check["message"].as_str().unwrap().starts_with("the verify key ("))
    };
    assert!(
        !refused(&foreign.run_beside().await.json()),
        "the key is not sent to a server that was not named"
    );
    assert!(refused(&foreign.env("MK_SERVER", &server.base).run_beside().await.json()));
}

#[test]
fn the_doctor_fits_narrow_terminals_with_a_word_beside_each_symbol() {
    for columns in [44, 80] {
        let shown = pty::run(&alone(), columns, 50);
        let lines: Vec<&str> = shown.last.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= usize::from(columns)), "{}", shown.last);
        assert!(
            lines.iter().any(|line| line.starts_with("✓ ok      client configuration: ")),
            "{}",
            shown.last
        );
        assert!(lines.iter().any(|line| line.starts_with("· note    database: ")), "{}", shown.last);
        assert!(shown.last.trim_end().ends_with("6 checks, no problems found"), "{}", shown.last);
    }
}

#[test]
fn the_server_is_looked_for_where_it_listens_although_its_file_has_an_error() {
    for wrong in [
        "[providers.openai]\napi_key_env = \"NOT_SET\"",
        "[providers.openai]\nretries = \"many\"",
        "max_body_byte = 5",
    ] {
        let mk = configured(&format!("listen = \"127.0.0.1:0\"\n{wrong}\n")).args(["--json"]);
        let document = mk.run().json();
        assert_eq!(check(&document, "server configuration")["status"], "failed", "{document}");
        let checks = document["checks"].as_array().unwrap();
        let asked =
            |check: &Value| check["message"].as_str().unwrap().contains("cannot reach http://127.0.0.1:0 ");
        assert!(checks.iter().any(asked), "{document}");
    }
}

#[test]
fn a_named_data_directory_is_checked_even_with_a_broken_config_file() {
    let mk = configured("listen = [");
    let none = mk.home().join("none");
    let document = mk.args(["--data-dir", none.to_str().unwrap(), "--json"]).run().json();
    assert_eq!(check(&document, "server configuration")["status"], "failed");
    assert_eq!(check(&document, "database")["status"], "note");
}

#[test]
fn every_command_sends_the_owner_of_a_damaged_database_to_the_backup() {
    for (from, until) in [(100, 1000), (8192, usize::MAX)] {
        let home = tempfile::tempdir().unwrap();
        let mk = |arguments: &[&str]| {
            let data = home.path().to_str().unwrap();
            Mk::new().args(arguments.iter().copied()).args(["--data-dir", data]).run()
        };
        assert_eq!(mk(&["keys", "create", "--service", "verify"]).code(), 0);
        let keys = home.path().join("mk.db");
        let mut bytes = fs::read(&keys).unwrap();
        let until = until.min(bytes.len());
        bytes[from..until].fill(0xde);
        fs::write(&keys, bytes).unwrap();
        for arguments in [&["keys", "list"][..], &["serve", "--sandbox", "--listen", "127.0.0.1:0"]] {
            let ran = mk(arguments);
            assert_ne!(ran.code(), 0, "{arguments:?}: {ran:?}");
            assert!(ran.stderr.contains("restore a backup: `mk restore FILE`"), "{arguments:?}: {ran:?}");
        }
    }
}

#[test]
fn a_ledger_without_its_key_database_is_an_error_not_a_new_installation() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().to_str().unwrap();
    let mk = |arguments: &[&str]| Mk::new().args(arguments.iter().copied()).args(["--data-dir", data]).run();
    assert_eq!(mk(&["apps", "create", "news"]).code(), 0);
    let keys = home.path().join("mk.db");
    fs::remove_file(&keys).unwrap();
    for is_empty in [false, true] {
        if is_empty {
            fs::write(&keys, "").unwrap();
        }
        for arguments in [&["keys", "list"][..], &["apps", "create", "more"], &["usage"]] {
            let ran = mk(arguments);
            assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
            assert!(ran.stderr.contains("away and restore again"), "{ran:?}");
        }
        let document = mk(&["doctor", "--json"]).json();
        let database = check(&document, "database");
        assert_eq!(database["status"], "failed");
        assert!(database["message"].as_str().unwrap().contains("away and restore again"), "{database}");
    }
}

#[test]
fn a_misconfigured_client_does_not_hide_the_other_checks() {
    let mk = Mk::new().args(["doctor", "--json"]).env("MK_TIMEOUT", "soon");
    let ran = mk.run();
    assert_eq!(ran.code(), 1, "{ran:?}");
    let document = ran.json();
    assert_eq!(check(&document, "client configuration")["status"], "failed");
    assert_eq!(check(&document, "clock")["status"], "ok");
}

#[test]
fn an_unreachable_server_error_points_to_the_doctor() {
    let ran = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris.", "--server", NOBODY])
        .env("MK_API_KEY", VERIFY_KEY)
        .run();
    assert!(ran.stderr.contains("`mk doctor` checks"), "{ran:?}");
    let ran = alone().run();
    assert!(!ran.stdout.contains("mk doctor"), "the doctor does not refer to itself: {ran:?}");
}
