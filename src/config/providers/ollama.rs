//! Looks for a local Ollama, and for the models installed in it.
//!
//! This takes one small HTTP/1.0 request over a plain socket, as no runtime exists yet, and start-up must not be
//! delayed by more than a moment. Whatever answers on the port is not trusted: the response is capped, parsed strictly,
//! and ignored if it makes no sense.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::model_id;

/// Time limit for the connection, and for each read.
const IO_TIMEOUT: Duration = Duration::from_millis(100);
/// Time limit for everything.
const DEADLINE: Duration = Duration::from_millis(500);
/// The largest response; a list of a thousand models is a tenth of this.
const MAX_BYTES: usize = 1024 * 1024;

/// Where Ollama listens by default.
const PORT: u16 = 11434;
/// An address that nothing can listen on.
pub(in crate::config) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[derive(Deserialize)]
struct Listing {
    data: Vec<Installed>,
}

#[derive(Deserialize)]
struct Installed {
    id: String,
}

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
    let answer = ask(address)?;
    let (head, body) = split_head(&answer)?;
    if !head.starts_with(b"HTTP/1.") || head.get(8..13) != Some(b" 200 ") {
        return None;
    }
    let listing: Listing = serde_json::from_slice(body).ok()?;
    let names = listing.data.into_iter().map(|model| model.id);
    Some(names.filter(|name| is_usable(name)).collect())
}

fn ask(address: SocketAddr) -> Option<Vec<u8>> {
    let end = Instant::now() + DEADLINE;
    let mut stream = TcpStream::connect_timeout(&address, IO_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(IO_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(IO_TIMEOUT)).ok()?;
    let request = format!("GET /v1/models HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let mut piece = [0; 8192];
    while Instant::now() < end && answer.len() <= MAX_BYTES {
        match stream.read(&mut piece).ok()? {
            0 => return Some(answer),
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    None
}

fn split_head(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((&answer[..end], &answer[end + 4..]))
}

/// Embedding models cannot chat, and a name that is not valid in an identifier cannot be called.
fn is_usable(name: &str) -> bool {
    model_id::parse(&format!("ollama/{name}")).is_some() && !name.contains("embed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Responds to one request with these bytes and closes the connection.
    fn answering(bytes: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /v1/models HTTP/1.0\r\n"));
            // The other side closes early once it has seen enough.
            let _ = stream.write_all(&bytes);
        });
        address
    }

    fn ok(body: &str) -> Vec<u8> {
        format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{body}").into_bytes()
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
        assert_eq!(installed_models(answering(ok(r#"{"data":[]}"#))), Some(vec![]));
    }

    #[test]
    fn any_other_server_is_ignored() {
        for bytes in [
            b"HTTP/1.1 404 Not Found\r\n\r\n{\"data\":[]}".to_vec(),
            b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(),
            ok("<html>"),
            ok(&format!("{{\"data\":[{}", " ".repeat(2 * MAX_BYTES))),
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
