//! Looks for a local Ollama, and for the models installed in it.
//!
//! It is probed like any provider, but start-up must not be delayed by more than a moment. Whatever answers on the port
//! is not trusted, and ignored if it makes no sense.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::model_id;
use crate::providers::{Kind, Provider, Settings, catalog};

/// Time limit for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);
/// Time limit for everything.
const DEADLINE: Duration = Duration::from_millis(500);

/// Where Ollama listens by default.
const PORT: u16 = 11434;
/// An address that nothing can listen on.
pub(in crate::config) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Where an Ollama of this machine listens, by its `OLLAMA_HOST`: an address with or without `http://` and port. One on
/// another machine is not looked for, as nobody said that texts may go there.
pub(in crate::config) fn address(host: &str) -> SocketAddr {
    let host = host.trim().trim_matches(['"', '\'']);
    let (rest, usual_port) = match host.strip_prefix("http://") {
        Some(rest) => (rest, 80),
        None => (host, PORT),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse()),
        _ => (authority, Ok(usual_port)),
    };
    let ip = match name.trim_matches(['[', ']']) {
        "" | "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        name => name.parse().ok(),
    };
    let here = ip.and_then(|ip: IpAddr| match ip {
        ip if ip.is_loopback() => Some(ip),
        IpAddr::V4(ip) if ip.is_unspecified() => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => Some(Ipv6Addr::LOCALHOST.into()),
        _ => None,
    });
    here.zip(port.ok()).map_or(NOWHERE, SocketAddr::from)
}

/// The models that can hold a conversation, newest first as Ollama lists them; `None` if there is no Ollama.
pub(in crate::config) fn installed_models(address: SocketAddr) -> Option<Vec<String>> {
    let mut settings = Settings::new(catalog::OLLAMA.name, Kind::OpenAi, &format!("http://{address}/v1"));
    settings.connect_timeout = CONNECT_TIMEOUT;
    let provider = Provider::new(settings, Clock::system()).ok()?;
    let probe = move || {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let deadline = Instant::now() + DEADLINE;
        runtime.block_on(async { timeout_at(deadline, provider.probe(deadline)).await }).ok()?.ok()
    };
    // On a thread of its own, as a reload runs within a runtime.
    let report = thread::spawn(probe).join().ok()??;
    Some(report.models?.into_iter().filter(|name| is_usable(name)).collect())
}

/// Embedding models cannot chat, and a name that is not valid in an identifier cannot be called.
fn is_usable(name: &str) -> bool {
    model_id::parse(&format!("ollama/{name}")).is_some() && !name.contains("embed")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Responds to one request with these bytes and closes the connection.
    fn answering(bytes: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /v1/models HTTP/1.1\r\n"));
            // The other side closes early once it has seen enough.
            let _ = stream.write_all(&bytes);
        });
        address
    }

    fn ok(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}").into_bytes()
    }

    #[test]
    fn only_an_ollama_of_this_machine_is_looked_for() {
        for (host, expected) in [
            ("", "127.0.0.1:11434"),
            ("0.0.0.0", "127.0.0.1:11434"),
            (":9000", "127.0.0.1:9000"),
            (" \"localhost:9000\" ", "127.0.0.1:9000"),
            ("127.0.0.2:9000", "127.0.0.2:9000"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("http://0.0.0.0:9000/ollama", "127.0.0.1:9000"),
            ("[::]:9000", "[::1]:9000"),
            ("::1", "[::1]:11434"),
            ("[::1]", "[::1]:11434"),
        ] {
            assert_eq!(address(host).to_string(), expected, "{host}");
        }
        for elsewhere in ["10.1.2.3:11434", "gpu.example", "https://127.0.0.1", "127.0.0.1:x", "[::1]:99999"]
        {
            assert_eq!(address(elsewhere), NOWHERE, "{elsewhere}");
        }
    }

    #[test]
    fn lists_what_can_hold_a_conversation() {
        let body =
            r#"{"object":"list","data":[{"id":"llama3.1:8b"},{"id":"nomic-embed-text"},{"id":"a\u001bb"}]}"#;
        assert_eq!(installed_models(answering(ok(body))), Some(vec!["llama3.1:8b".to_owned()]));
        assert_eq!(installed_models(answering(ok(r#"{"data":[]}"#))), None);
    }

    #[test]
    fn any_other_server_is_ignored() {
        for bytes in [
            b"HTTP/1.1 404 Not Found\r\n\r\n{\"data\":[]}".to_vec(),
            b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(),
            ok("<html>"),
            ok(&format!("{{\"data\":[{{\"id\":\"m\"}}{}]}}", " ".repeat(1 << 26))),
            Vec::new(),
        ] {
            assert_eq!(installed_models(answering(bytes)), None);
        }
    }

    #[test]
    fn an_absent_or_silent_server_costs_only_a_moment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = listener.local_addr().unwrap();
        let started = Instant::now();
        assert_eq!(installed_models(silent), None);
        drop(listener);
        assert_eq!(installed_models(silent), None);
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}
