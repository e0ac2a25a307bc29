//! Keys stored by several processes at once.

use std::process::Stdio;

use mk::api::Service;
use mk::keys::mint;
use mk::secret::ExposeSecret;

use crate::support::mk::Mk;

#[test]
fn no_key_is_lost_where_many_are_stored_at_once() {
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
