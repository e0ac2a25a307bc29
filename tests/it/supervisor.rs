//! `mk serve` under a supervisor: it tells when it serves, takes a socket that is passed, finds keys among credentials,
//! and prints its unit.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::mk::Mk;
use crate::support::scripted::Scripted;
use crate::support::serve;

/// The next thing that the supervisor is told.
fn told(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let count = socket.recv(&mut buffer).expect("nothing was told");
    String::from_utf8_lossy(&buffer[..count]).trim().to_owned()
}

#[test]
fn a_supervisor_is_told_when_it_serves_and_when_it_ends() {
    let call = serve::call("http://127.0.0.1:1/v1", "");
    let path = call.home().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let call = call.env("NOTIFY_SOCKET", path.to_str().unwrap());
    let server = serve::Serve::start(&call);
    assert_eq!(told(&supervisor), "READY=1");
    assert!(std::net::TcpStream::connect(server.base.trim_start_matches("http://")).is_ok());
    server.signal("TERM");
    assert_eq!(told(&supervisor), "STOPPING=1");
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
}

/// The command behind a shell that passes its standard input on as the first socket, as a supervisor would.
fn passing(socket: OwnedFd, mk: &Mk) -> Command {
    let inner = mk.command();
    let script = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg(inner.get_program()).args(inner.get_args());
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::from(socket)).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn a_listening_socket_that_is_passed_is_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let expected = format!("http://{}", listener.local_addr().unwrap());
    let call = serve::call("http://127.0.0.1:1/v1", "");
    let mut child = passing(listener.into(), &call).spawn().unwrap();
    let address = serve::first_address(child.stderr.take().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(address, expected);
}

#[test]
fn a_passed_socket_that_others_can_reach_needs_a_console_key_too() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let call = serve::call("http://127.0.0.1:1/v1", "");
    let ended = passing(listener.into(), &call).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("can be reached from other machines"), "{said}");
}

#[test]
fn a_passed_socket_of_another_kind_is_refused_in_words() {
    let (socket, _other) = UnixDatagram::pair().unwrap();
    let ended = passing(socket.into(), &serve::call("http://127.0.0.1:1/v1", "")).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("LISTEN_FDS") && said.contains("hint: "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_found_among_credentials() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let provider = Scripted::answering(answer).await;
    let mk = Mk::new();
    let credentials = mk.home().join("credentials");
    std::fs::create_dir(&credentials).unwrap();
    std::fs::write(credentials.join("ACME_KEY"), "sk-from-a-credential\n").unwrap();
    let file = mk.home().join("server.toml");
    let table =
        format!("[providers.acme]\nbase_url = \"{}/v1\"\napi_key_env = \"ACME_KEY\"\n", provider.base);
    std::fs::write(&file, table).unwrap();
    let call = mk
        .args(["doctor", "--json", "--config", file.to_str().unwrap()])
        .env("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap());
    let ran = call.run_beside().await;
    assert!(provider.requests()[0].contains("Bearer sk-from-a-credential"), "{ran:?}");
    assert!(!ran.stdout.contains("sk-from"), "{ran:?}");
}

#[test]
fn a_unit_that_could_not_start_its_program_comes_with_a_warning() {
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let program = place.path().join("mk");
    std::fs::copy(env!("CARGO_BIN_EXE_mk"), &program).unwrap();
    let made = Command::new(&program).args(["serve", "unit"]).env("HOME", place.path()).output().unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && made.stdout.ends_with(b"WantedBy=multi-user.target\n"), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("copy mk to /usr/local/bin"), "{said}");
}

#[test]
fn the_units_are_right_by_systemd_s_own_measure() {
    let mk = Mk::new();
    let printed = |arguments: &[&str], name: &str| {
        let ran = mk.clone().args(arguments.iter().copied()).run();
        // Where these tests are built may be a place that a unit does not see.
        let is_silent =
            ran.stderr.is_empty() || (name == "mk.service" && ran.stderr.contains("/usr/local/bin"));
        assert!(ran.code() == 0 && is_silent, "{ran:?}");
        let path = mk.home().join(name);
        std::fs::write(&path, &ran.stdout).unwrap();
        (path, ran.stdout)
    };
    let (service, text) = printed(&["serve", "unit"], "mk.service");
    let (socket, _) = printed(&["serve", "unit", "--socket"], "mk.socket");
    assert!(text.contains(&format!("ExecStart={} serve\n", env!("CARGO_BIN_EXE_mk"))), "{text}");
    // Only where it is installed: few machines that build have it.
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").args([&service, &socket]).output()
    else {
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours = said.lines().any(|line| line.contains("mk.service:") || line.contains("mk.socket:"));
    assert!(!ours, "{said}");
}
