//! Where keys are accepted, and where they must never appear: arguments, logs, messages, files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use mk::api::Service;
use serde_json::json;

use crate::support::eventually;
use crate::support::mk::{CommandOutput, Mk, VERIFY_KEY, operator};
use crate::support::panel::{agreeing_panel, config, panel_by, with_panel};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::serve::{self, Serve};
use crate::support::server::{Setup, client};

const PROVIDER_KEY: &str = "sk-provider-8f3a1c5e7d9b";

/// The secret part of a key; only its last four characters, which are not included here, may be shown.
fn random_part(key: &str) -> &str {
    let random = key.trim_end().rsplit('_').next().unwrap();
    &random[..random.len() - 4]
}

fn created(home: &Mk) -> String {
    let ran = home.clone().args(["keys", "create", "--service", "verify"]).run();
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran.stdout.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_logged_even_at_trace_level() {
    let provider = panel_by(|model, ask| match model {
        "three" => Reply::status(401, &json!({"error": {"message": format!("bad key {PROVIDER_KEY}")}})),
        _ => ask.choose("Paris"),
    })
    .await;
    let call = serve::call(&provider.base_url, "");
    let (key_file, config) = (call.home().join("provider.key"), call.home().join("server.toml"));
    std::fs::write(&key_file, PROVIDER_KEY).unwrap();
    let with_key = format!("kind = \"openai\"\napi_key_file = \"{}\"", key_file.display());
    let text = std::fs::read_to_string(&config).unwrap().replace("kind = \"openai\"", &with_key);
    std::fs::write(&config, text).unwrap();

    let server = Serve::start(&call.clone().env("MK_LOG", "trace"));
    let key = created(&operator(&serve::data_dir(call.home()), &[]));
    let url = format!("{}/verify/v1/stream", server.base);
    let mut answers = String::new();
    let mistyped = format!("{}x", &key[..key.len() - 1]);
    for (bearer, body) in [
        (&key, json!({"fact": "The Eiffel Tower is in Paris."})),
        (&key, json!({})),
        (&mistyped, json!({"fact": "The Eiffel Tower is in Paris."})),
    ] {
        let answer = client().post(&url).bearer_auth(bearer).json(&body).send().await.unwrap();
        answers.push_str(&answer.text().await.unwrap());
    }
    assert_eq!(provider.requests()[0].key.as_deref(), Some(PROVIDER_KEY), "{answers}");
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(status.success());
    assert!(
        log.contains("\"level\":\"TRACE\"") && log.contains("\"message\":\"request\""),
        "the log has full detail"
    );
    for secret in [random_part(&key), PROVIDER_KEY] {
        assert!(!log.contains(secret), "{secret} in the log");
        assert!(!answers.contains(secret), "{secret} in {answers}");
        assert_eq!(files_containing(call.home(), secret), Vec::<String>::new());
    }
    let is_private = |name: &str| {
        let mode = std::fs::metadata(serve::data_dir(call.home()).join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    };
    ["mk.db", "ledger.db"].into_iter().for_each(is_private);
}

/// The files below a directory that contain a text, except the provider's key file.
fn files_containing(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_containing(&path, text));
        } else if !path.ends_with("provider.key")
            && String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text)
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_command_prints_its_key() {
    let (server, _provider) = with_panel(|_, _| Reply::status(500, &json!({}))).await;
    let (revoked, id) = server.key_with(Service::Verify, |_| {});
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let good = server.key(Service::Verify);
    for key in [&good, &revoked, "mk_verify_0123456789abcdef0123456789abcdef"] {
        for arguments in [
            &["verify", "The Eiffel Tower is in Paris.", "-v"][..],
            &["verify", "The Eiffel Tower is in Paris.", "-v", "--json"],
            &["whoami", "-v"],
            &["config", "list", "--origin"],
        ] {
            let mk = Mk::new().args(arguments.iter().copied());
            let ran = mk
                .env("MK_SERVER", &server.base)
                .env("MK_API_KEY", key)
                .env("RUST_LOG", "trace")
                .env("MK_LOG", "trace")
                .run_beside()
                .await;
            assert_not_shown(&ran, random_part(key));
        }
    }
}

fn assert_not_shown(ran: &CommandOutput, secret: &str) {
    assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{secret} in {ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_stores_a_key_from_stdin_only_in_a_private_file() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let user = Mk::new().env("MK_SERVER", &server.base);
    let login = user.clone().args(["login", "-v"]).stdin(format!("{key}\r\n")).run_beside().await;
    assert_eq!(login.code(), 0, "{login:?}");
    assert_not_shown(&login, random_part(&key));
    let held = files_containing(user.home(), random_part(&key));
    let [file] = &held[..] else { panic!("{held:?}") };
    assert!(file.ends_with("/credentials.toml"), "{file}");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(user.clone().args(["verify", "The Eiffel Tower is in Paris."]).run_beside().await.code(), 0);

    let elsewhere = user
        .clone()
        .args(["verify", "The Eiffel Tower is in Paris.", "--server", "http://127.0.0.1:0"])
        .run_beside()
        .await;
    assert_eq!(elsewhere.code(), 4, "a stored key is used for its server only: {elsewhere:?}");

    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let loose = user.clone().args(["verify", "The Eiffel Tower is in Paris."]).run_beside().await;
    assert_eq!(loose.code(), 2, "{loose:?}");
    assert!(
        loose.stderr.contains("other users of this machine can read it")
            && loose.stderr.contains("hint: chmod 600 "),
        "{loose:?}"
    );
    assert_not_shown(&loose, random_part(&key));
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();

    assert_eq!(user.clone().args(["logout"]).run_beside().await.code(), 0);
    assert_eq!(files_containing(user.home(), random_part(&key)), Vec::<String>::new());
    assert_eq!(user.args(["verify", "The Eiffel Tower is in Paris."]).run_beside().await.code(), 4);
}

#[test]
fn an_invalid_key_is_neither_stored_nor_printed() {
    let user = Mk::new().args(["login", "-v"]);
    for wrong in ["sk-somebody-elses-secret", "mk_verify_0123456789abcdef0123456789abcdef", ""] {
        let ran = user.clone().stdin(wrong).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(wrong.is_empty() || !ran.stderr.contains(wrong), "{ran:?}");
    }
    assert_eq!(files_containing(user.home(), "somebody"), Vec::<String>::new());
}

#[test]
fn a_project_file_cannot_redirect_keys() {
    for (text, word) in [
        ("server = \"http://evil.example\"", "server"),
        ("profile = \"x\"", "profile"),
        ("[network]\nca_cert = \"x.pem\"", "network"),
        ("api_key = \"x\"", "api_key"),
    ] {
        let mk = Mk::new().args(["verify", "The Eiffel Tower is in Paris."]).env("MK_API_KEY", VERIFY_KEY);
        std::fs::write(mk.home().join(".mk.toml"), text).unwrap();
        let ran = mk.run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(word) && ran.stderr.contains("project"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_list_shows_no_key() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let mk = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &key);
    let mut child = mk.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the extractor is called", || provider.in_flight() == 1).await;
    let listed = std::process::Command::new("ps")
        .args(["-o", "args=", "-p", &child.id().to_string()])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("verify") && !listed.contains(random_part(&key)), "{listed}");
    child.kill().unwrap();
    child.wait().unwrap();

    let key_as_argument = Mk::new().args(["keys", "check", &key]).run_beside().await;
    assert_eq!(key_as_argument.code(), 2, "{key_as_argument:?}");
    assert_not_shown(&key_as_argument, random_part(&key));
}

#[test]
fn a_key_given_for_an_app_is_not_repeated() {
    let home = Mk::new();
    let key = created(&home);
    for arguments in
        [&["apps", "show"][..], &["apps", "statement"], &["keys", "list", "--app"], &["usage", "--app"]]
    {
        let ran = home.clone().args([arguments, &[&key]].concat()).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("use the app's id or name"), "{ran:?}");
        assert_not_shown(&ran, random_part(&key));
    }
}
