//! `mk serve` under a supervisor: it reports when it is ready, uses a passed socket, finds keys among credentials, and
//! prints its unit.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::mk::Mk;
use crate::support::scripted::Scripted;
use crate::support::serve;

/// The next notification to the supervisor.
fn notification(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let count = socket.recv(&mut buffer).expect("no notification");
    String::from_utf8_lossy(&buffer[..count]).trim().to_owned()
}

#[test]
fn the_supervisor_is_notified_when_the_server_is_ready_and_when_it_stops() {
    let call = serve::call("http://127.0.0.1:0/v1", "");
    let path = call.home().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let call = call.env("NOTIFY_SOCKET", path.to_str().unwrap());
    let server = serve::Serve::start(&call);
    assert_eq!(notification(&supervisor), "READY=1");
    assert!(std::net::TcpStream::connect(server.base.trim_start_matches("http://")).is_ok());
    server.signal("TERM");
    assert_eq!(notification(&supervisor), "STOPPING=1");
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
}

/// Runs the command through a shell that passes on its standard input as the first socket, as a supervisor would.
fn with_passed_socket(socket: OwnedFd, mk: &Mk) -> Command {
    let inner = mk.command();
    let script = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg(inner.get_program()).args(inner.get_args());
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::from(socket)).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn a_passed_listening_socket_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let expected = format!("http://{}", listener.local_addr().unwrap());
    let call = serve::call("http://127.0.0.1:0/v1", "");
    let mut child = with_passed_socket(listener.into(), &call).spawn().unwrap();
    let address = serve::first_address(child.stderr.take().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(address, expected);
}

#[test]
fn a_passed_socket_reachable_by_other_machines_needs_a_console_key() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let call = serve::call("http://127.0.0.1:0/v1", "");
    let ended = with_passed_socket(listener.into(), &call).output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is reachable from other machines"), "{stderr}");
}

#[test]
fn a_passed_socket_of_another_kind_is_refused() {
    let (socket, _other) = UnixDatagram::pair().unwrap();
    let ended =
        with_passed_socket(socket.into(), &serve::call("http://127.0.0.1:0/v1", "")).output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("LISTEN_FDS") && stderr.contains("hint: "), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_keys_are_found_among_credentials() {
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
fn a_unit_whose_program_would_not_start_comes_with_a_warning() {
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let program = place.path().join("mk");
    // By a process of its own: a test beside this one that starts a program would inherit a file of
    // ours that is still open for writing, and Linux does not run such a file ("Text file busy").
    let copied = Command::new("cp").args([env!("CARGO_BIN_EXE_mk").as_ref(), program.as_os_str()]).status();
    assert!(copied.unwrap().success());
    let made = Command::new(&program).args(["serve", "unit"]).env("HOME", place.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && made.stdout.ends_with(b"WantedBy=multi-user.target\n"), "{stderr}");
    let words = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("copy mk to /usr/local/bin"), "{stderr}");
}

#[test]
fn the_unit_is_hardened() {
    let unit = Mk::new().args(["serve", "unit"]).run().stdout;
    for setting in [
        "DynamicUser=yes",
        "UMask=0077",
        "CapabilityBoundingSet=",
        "LimitCORE=0",
        "LockPersonality=yes",
        "MemoryDenyWriteExecute=yes",
        "NoNewPrivileges=yes",
        "PrivateDevices=yes",
        "PrivateTmp=yes",
        "PrivateUsers=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHome=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectSystem=strict",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "RestrictNamespaces=yes",
        "RestrictSUIDSGID=yes",
        "StateDirectoryMode=0700",
        "SystemCallFilter=@system-service",
    ] {
        assert!(unit.lines().any(|line| line == setting), "{setting} is missing in:\n{unit}");
    }
}

#[test]
fn systemd_accepts_the_units() {
    let mk = Mk::new();
    let printed = |arguments: &[&str], name: &str| {
        let ran = mk.clone().args(arguments.iter().copied()).run();
        // The build directory may be a place that a unit cannot access, which causes a warning.
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
    // Only if it is installed, which it is on few build machines.
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").args([&service, &socket]).output()
    else {
        return;
    };
    let stderr = String::from_utf8_lossy(&verified.stderr);
    let ours = stderr.lines().any(|line| line.contains("mk.service:") || line.contains("mk.socket:"));
    assert!(!ours, "{stderr}");
}
