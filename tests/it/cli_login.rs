//! `mk login`: concurrent logins, and profiles for named servers.

use std::process::Stdio;

use mk::api::Service;
use mk::keys::mint;
use mk::secret::ExposeSecret;

use crate::support::mk::Mk;

#[test]
fn concurrent_logins_lose_no_key() {
    let user = Mk::new();
    let servers: Vec<String> =
        (0..12).map(|number| format!("http://127.0.0.1:{}", 20_000 + number)).collect();
    let mut logins: Vec<_> = servers
        .iter()
        .map(|server| {
            let key = user.home().join(server.rsplit(':').next().unwrap());
            std::fs::write(&key, mint(Service::Verify).unwrap().key.expose_secret()).unwrap();
            let call = user.clone().args(["login", "--no-check", "--server", server, "--api-key-file"]);
            let mut command = call.args([key.to_str().unwrap()]).command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for login in logins.drain(..) {
        let output = login.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let stored = std::fs::read_to_string(user.home().join(".config/mk/credentials.toml")).unwrap();
    for server in &servers {
        assert!(stored.contains(&format!("[servers.\"{server}\"]")), "{server} is lost: {stored}");
    }
}

#[test]
fn login_stores_a_named_server_as_a_profile() {
    let user = Mk::new();
    let key = mint(Service::Verify).unwrap().key;
    let login = |line: &str| {
        let words = ["login", "--no-check"].into_iter().chain(line.split(' '));
        user.clone().args(words).stdin(key.expose_secret()).run()
    };
    let named = login("--profile work --server http://127.0.0.1:2");
    assert_eq!(named.code(), 0, "{named:?}");
    assert!(
        named.stderr.contains("added profile `work`")
            && named.stderr.ends_with("use it with --profile work\n")
    );
    let listed = user.clone().args(["config", "list", "client", "--profile", "work"]).run();
    assert!(listed.stdout.contains("server\t\"http://127.0.0.1:2\"\n"), "{listed:?}");
    assert!(listed.stdout.contains("keys.verify\tset\n"), "{listed:?}");

    let other = login("--profile work --server http://127.0.0.1:3");
    assert!(
        other.code() == 2 && other.stderr.contains("the profile `work` is for http://127.0.0.1:2"),
        "{other:?}"
    );
    let unnamed = login("--server http://127.0.0.1:4");
    assert!(unnamed.stderr.ends_with("use it with --server, MK_SERVER or a profile\n"), "{unnamed:?}");
    let missing = user.clone().args(["verify", "Paris"]).run();
    let told =
        "hint: there is one for http://127.0.0.1:2 and for http://127.0.0.1:4; select it with --server";
    assert!(missing.code() == 4 && missing.stderr.contains(told), "{missing:?}");
    let usual = login("--server http://127.0.0.1:8080");
    assert!(usual.code() == 0 && !usual.stderr.contains("use it with"), "{usual:?}");
    assert_eq!(user.clone().args(["models"]).run().stderr.matches("there is one for").count(), 0);
}
