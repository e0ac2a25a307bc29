//! SIGHUP and the process's environment: its supervisor, its certificate, its terminal.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::mk::Mk;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::pty::Person;
use crate::support::reload::Gateway;
use crate::support::serve::{self, Serve};
use crate::support::tls::Identity;

async fn notification(socket: &UnixDatagram) -> String {
    let socket = socket.try_clone().unwrap();
    let next = tokio::task::spawn_blocking(move || {
        let mut buffer = [0; 1024];
        let count = socket.recv(&mut buffer).expect("no notification");
        String::from_utf8_lossy(&buffer[..count]).trim().to_owned()
    });
    next.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_supervisor_is_notified_of_each_reload_and_of_the_shutdown() {
    let mk = Mk::new();
    let path = mk.home().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let mk = mk.env("NOTIFY_SOCKET", path.to_str().unwrap());
    let gateway = Gateway::start_with(mk, provider, "", "").await;
    assert_eq!(notification(&supervisor).await, "READY=1");
    let mut last = 0;
    for top in ["max_body_bytes = 2000", "this is wrong"] {
        gateway.write(top, "", "");
        gateway.reload().await;
        let reloading = notification(&supervisor).await;
        let at =
            reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{reloading}"));
        let at: u64 = at.parse().unwrap();
        assert!(at > last, "{at} after {last}");
        last = at;
        assert_eq!(notification(&supervisor).await, "READY=1");
    }
    gateway.server.signal("TERM");
    assert_eq!(notification(&supervisor).await, "STOPPING=1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_and_an_invalid_one_is_not() {
    let (first, second) = (Identity::new(), Identity::new());
    let mk = Mk::new();
    let copy = |from: &Identity| {
        std::fs::copy(&from.files.cert, mk.home().join("tls.crt")).unwrap();
        std::fs::copy(&from.files.key, mk.home().join("tls.key")).unwrap();
    };
    copy(&first);
    let data = mk.home().join("data");
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\ntls_cert = \"tls.crt\"\ntls_key = \"tls.key\"\n\
         [providers.sandbox]\nkind = \"sandbox\"\n",
        data.display()
    );
    let file = mk.home().join("server.toml");
    std::fs::write(&file, &text).unwrap();
    let call = mk.clone().args(["serve"]).env("MK_CONFIG", file.to_str().unwrap());
    let server = Serve::start_beside(&call).await;
    let authority = server.base.trim_start_matches("https://").to_owned();
    let is_presented = async |identity: &Identity| identity.connect(&authority, &["h2"]).await.is_ok();
    assert!(is_presented(&first).await && !is_presented(&second).await);
    let kept = first.client().build().unwrap();
    let health = format!("{}/verify/v1/health", server.base);
    assert_eq!(kept.get(&health).send().await.unwrap().status(), 200);

    copy(&second);
    server.signal("HUP");
    let renewed = |line: &str| line.contains("\"changed\":\"the TLS certificate\"");
    server.until_logged(1, renewed).await;
    assert!(is_presented(&second).await && !is_presented(&first).await);
    assert_eq!(kept.get(&health).send().await.unwrap().status(), 200, "an open connection is kept");

    std::fs::copy(&first.files.key, mk.home().join("tls.key")).unwrap();
    server.signal("HUP");
    server.until_logged(1, |line| line.contains("does not belong to the certificate")).await;
    assert!(is_presented(&second).await);

    std::fs::write(&file, text.replace("tls_cert = \"tls.crt\"\ntls_key = \"tls.key\"\n", "")).unwrap();
    server.signal("HUP");
    server.until_logged(1, |line| line.contains("\"needs_restart\":\"tls_cert, tls_key\"")).await;
    assert!(is_presented(&second).await);
}

/// Waits until a process opens this pipe for reading, and opens it for writing.
async fn open_writer(pipe: &Path) -> std::fs::File {
    use rustix::fs::{Mode, OFlags, open};
    let limit = Instant::now() + Duration::from_mins(1);
    loop {
        // Fails as long as no process reads.
        if let Ok(file) = open(pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()) {
            return file.into();
        }
        assert!(Instant::now() < limit, "the configuration is not read");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_during_startup_causes_a_reload_once_the_server_runs() {
    let call = serve::call("http://127.0.0.1:0/v1", "").after("echo $$ > process");
    let (file, process) = (call.home().join("server.toml"), call.home().join("process"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let starting = call.clone();
    let server = tokio::spawn(async move { Serve::start_beside(&starting).await });

    let mut writer = open_writer(&file).await;
    let process = std::fs::read_to_string(process).unwrap();
    assert!(Command::new("kill").args(["-HUP", process.trim()]).status().unwrap().success());
    writer.write_all(text.as_bytes()).unwrap();
    drop(writer);
    let server = server.await.unwrap();
    // The server reads the file again, as it may have changed after the first time.
    let mut writer = open_writer(&file).await;
    writer.write_all(format!("max_body_bytes = 2000\n{text}").as_bytes()).unwrap();
    drop(writer);
    server.until_logged(1, |line| line.contains("\"changed\":\"max_body_bytes\"")).await;
}

/// A process that is killed at the end of the test.
struct Stray(String);

impl Drop for Stray {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = Command::new("kill").args(["-9", &self.0]).stderr(Stdio::null()).status();
    }
}

#[test]
fn a_server_ends_when_its_terminal_is_closed() {
    let call = serve::call("http://127.0.0.1:0/v1", "");
    let inner = call.command();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "\"$0\" \"$@\" & echo \"it is process $!.\"; wait"]);
    shell.arg(inner.get_program()).args(inner.get_args()).current_dir(call.home());
    shell.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut person = Person::at(&shell);
    person.until("in another terminal");
    let stray = Stray(person.behind("it is process ", "."));
    let shown = person.shown();
    let digits = shown.split("http://127.0.0.1:").nth(1).unwrap();
    let port: String = digits.chars().take_while(char::is_ascii_digit).collect();
    let address = format!("127.0.0.1:{port}");
    assert!(TcpStream::connect(&address).is_ok(), "{shown}");

    // Sent by a user, the signal is a reload.
    assert!(Command::new("kill").args(["-HUP", &stray.0]).status().unwrap().success());
    person.until("configuration reloaded");
    assert!(TcpStream::connect(&address).is_ok());

    drop(person);
    let limit = Instant::now() + Duration::from_mins(1);
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < limit, "the server keeps running without its terminal");
        std::thread::sleep(Duration::from_millis(10));
    }
}
