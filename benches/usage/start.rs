//! How long the release binary takes from its start to its first response, on an existing data directory.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mk::api::Service;
use mk::clock::Time;
use mk::keys::{self, NewKey};
use mk::storage::Store;

const MK: &str = env!("CARGO_BIN_EXE_mk");
const ROUNDS: usize = 9;
const POLL: Duration = Duration::from_micros(200);
const TIMEOUT: Duration = Duration::from_secs(20);
const HEALTH: &[u8] = b"GET /verify/v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Adds `count` keys that nobody has.
pub(crate) fn add_keys(store: &Store, dir: &Path, count: u32, now: Time) {
    let (_, like) = keys::create(store, &NewKey::new(Service::Verify, "default"), now).unwrap();
    // Created one by one, each with its audit entry, a million would take minutes.
    let database = rusqlite::Connection::open(dir.join("mk.db")).unwrap();
    database
        .execute(
            "WITH RECURSIVE numbers (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM numbers WHERE i < ?1)
             INSERT INTO keys (id, hash, app_id, service, last4, created_at, models, addresses)
             SELECT printf('key_%032x', i), randomblob(32), app_id, service, last4, created_at, models, addresses
             FROM numbers, (SELECT * FROM keys WHERE id = ?2)",
            rusqlite::params![count, like.id],
        )
        .unwrap();
}

/// The median of several starts on the directory `dir`.
pub(crate) fn median(dir: &Path) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| one(dir)).collect();
    times.sort();
    times[ROUNDS / 2]
}

fn one(dir: &Path) -> Duration {
    let address = free_address();
    let started_at = Instant::now();
    let server = Command::new(MK)
        .args(["serve", "--sandbox", "--listen", &address.to_string()])
        .env_clear()
        .envs([("HOME", dir), ("MK_DATA_DIR", dir)])
        .stderr(Stdio::null())
        .spawn();
    let _server = Server(server.unwrap());
    while !answers(address) {
        assert!(started_at.elapsed() < TIMEOUT, "mk serve does not answer");
        thread::sleep(POLL);
    }
    started_at.elapsed()
}

/// An address that is free now, and hopefully still when the server binds it.
fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr()).unwrap()
}

fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut answer = String::new();
    stream.write_all(HEALTH).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    true
}

/// A server that ends with its handle.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
