//! Key files that are unreadable, empty, or hold a key for another service: commands that do not need them still work.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use mk::api::Service;
use mk::keys::mint;
use mk::secret::ExposeSecret;

use crate::support::mk::{CommandOutput, Mk, NOBODY};
use crate::support::panel::agreeing_panel;

fn run(mk: &Mk, line: &str) -> CommandOutput {
    mk.clone().args(line.split(' ')).run()
}

fn key(service: Service) -> String {
    mint(service).unwrap().key.expose_secret().to_owned()
}

#[test]
fn an_empty_key_file_does_not_block_commands_that_need_no_key() {
    let home = Mk::new();
    let file = home.home().join("key");
    fs::write(&file, "").unwrap();
    for variable in ["MK_API_KEY_FILE", "MK_VERIFY_KEY_FILE", "MK_CONSOLE_KEY_FILE"] {
        let user = home.clone().env(variable, file.to_str().unwrap());
        for line in [
            "keys create --service verify",
            "keys list",
            "apps list",
            "usage",
            "config list client",
            "logout",
        ] {
            let ran = run(&user, line);
            assert!(ran.code() == 0 && !ran.stderr.contains(variable), "{line}: {ran:?}");
        }
        let login = user.clone().args(["login", "--no-check"]).stdin(key(Service::Inference)).run();
        assert_eq!(login.code(), 0, "{login:?}");
        let sandbox = run(&user, "verify --sandbox Paris");
        assert!(sandbox.code() == 12 && !sandbox.stderr.contains(variable), "{sandbox:?}");
    }
}

#[test]
fn an_unreadable_key_file_is_reported_where_its_key_is_needed() {
    let home = Mk::new().env("MK_SERVER", NOBODY);
    let user = home
        .clone()
        .env("MK_VERIFY_KEY_FILE", "/no/such/key")
        .env("MK_INFERENCE_KEY", &key(Service::Inference));
    let told = "MK_VERIFY_KEY_FILE names /no/such/key, which cannot be read";
    let verify = run(&user, "verify Paris");
    assert!(verify.code() == 2 && verify.stderr.contains(told), "{verify:?}");
    let models = run(&user, "models");
    assert!(models.code() == 6 && !models.stderr.contains(told), "{models:?}");
    let console = home.env("MK_CONSOLE_KEY_FILE", "/no/such/key");
    assert_eq!(
        run(&console, "apps list").code(),
        2,
        "without the key it is unclear whether the server is meant"
    );

    let whoami = run(&user, "whoami");
    assert!(whoami.stdout.contains(told), "{whoami:?}");
    let listed = run(&user, "config list client --origin");
    assert!(listed.stdout.contains("keys.verify\tunreadable\tMK_VERIFY_KEY_FILE\n"), "{listed:?}");
    let doctor = run(&user, "doctor").stdout;
    assert_eq!(doctor.matches(told).count(), 1, "{doctor}");
    let any = Mk::new().env("MK_API_KEY_FILE", "/no/such/key");
    let (doctor, whoami) = (run(&any, "doctor").stdout, run(&any, "whoami"));
    assert_eq!(
        doctor.matches("MK_API_KEY_FILE names").count(),
        1,
        "reported once for all services: {doctor}"
    );
    assert_eq!(whoami.stdout.matches("MK_API_KEY_FILE names").count(), 3, "{whoami:?}");
    assert_eq!(whoami.stderr.matches("MK_API_KEY_FILE names").count(), 1, "{whoami:?}");
}

#[test]
fn stored_keys_readable_by_others_are_rejected_and_can_be_replaced() {
    let user = Mk::new().env("MK_SERVER", NOBODY);
    let login = || user.clone().args(["login", "--no-check"]).stdin(key(Service::Verify)).run();
    assert_eq!(login().code(), 0);
    let file = user.home().join(".config/mk/credentials.toml");
    let expose = || fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let is_private = || fs::metadata(&file).unwrap().permissions().mode().trailing_zeros() >= 6;
    let told = "contains keys and other users of this machine can read it";
    expose();
    let verify = run(&user, "verify Paris");
    assert!(verify.code() == 2 && verify.stderr.contains(told), "{verify:?}");
    assert!(run(&user, "whoami").stdout.contains(told));
    let again = login();
    assert!(again.code() == 0 && again.stderr.contains(told) && is_private(), "{again:?}");
    expose();
    let other = run(&user, "logout --server http://127.0.0.1:2");
    assert!(other.stderr.contains("chmod 600 ") && !is_private(), "the file is not rewritten: {other:?}");
    let logout = run(&user, "logout");
    assert!(logout.code() == 0 && logout.stderr.contains(told) && is_private(), "{logout:?}");
}

#[test]
fn a_key_named_by_flag_is_not_replaced_by_another() {
    let user = Mk::new().env("MK_SERVER", NOBODY).env("MK_INFERENCE_KEY", &key(Service::Inference));
    let user = user.env("MK_CONSOLE_KEY", &key(Service::Console));
    let file = user.home().join("key");
    let named = user.args(["--api-key-file", file.to_str().unwrap()]);
    for line in ["models", "apps list"] {
        fs::write(&file, key(Service::Verify)).unwrap();
        let ran = run(&named, line);
        assert!(
            ran.code() == 4
                && ran
                    .stderr
                    .contains("--api-key-file holds a verify key; this command needs an inference key")
                    == (line == "models")
                && ran.stderr.contains("--api-key-file holds a verify key"),
            "{line}: {ran:?}"
        );
        fs::write(&file, "no key").unwrap();
        let ran = run(&named, line);
        assert!(ran.code() == 2 && ran.stderr.contains("which contains no key"), "{line}: {ran:?}");
    }
}

#[test]
fn a_key_named_by_flag_requires_a_server() {
    let home = Mk::new();
    let file = home.home().join("key");
    fs::write(&file, key(Service::Console)).unwrap();
    let user = home.args(["--api-key-file", file.to_str().unwrap()]);
    for (line, told) in [
        ("apps create web", "--api-key-file needs a server, and none is named"),
        ("apps list --data-dir d", "--api-key-file selects a server, but --data-dir selects"),
    ] {
        let ran = run(&user, line);
        assert!(ran.code() == 2 && ran.stderr.contains(told), "{line}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_to_check_is_not_used_for_authentication() {
    let (server, _provider) = agreeing_panel().await;
    let user = Mk::new().env("MK_CONSOLE_KEY", &server.key(Service::Console));
    let file = user.home().join("key");
    fs::write(&file, server.key(Service::Verify)).unwrap();
    let call = user.args([
        "keys",
        "check",
        "--json",
        "--server",
        &server.base,
        "--api-key-file",
        file.to_str().unwrap(),
    ]);
    let ran = call.run_beside().await;
    assert_eq!(ran.json()["state"], "active", "{ran:?}");

    let user = Mk::new().stdin(server.key(Service::Verify));
    let file = user.home().join("key");
    fs::write(&file, server.key(Service::Console)).unwrap();
    let from =
        ["keys", "check", "-", "--json", "--server", &server.base, "--api-key-file", file.to_str().unwrap()];
    let ran = user.args(from).run_beside().await;
    assert_eq!(
        ran.json()["state"],
        "active",
        "with the key on stdin, the file is for authentication: {ran:?}"
    );
}
