//! nginx as a plain reverse proxy: what relaying alone costs on this machine.
//!
//! It runs without root, in the foreground, with all its files in a temporary directory. It is configured for speed:
//! one worker per core, keep-alive connections to the provider, streams unbuffered, no access log.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, bail};

use crate::process::{self, Process};

/// The path that nginx answers with 200 by itself.
pub(crate) const CHEAP: &str = "/cheap";

/// Directories of system programs that are not on every user's `PATH`.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Another process can take a free port before nginx does.
const TRIES: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Where nginx is, if it is installed: on `PATH`, or where the system keeps its own.
pub(crate) fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(SYSTEM.map(PathBuf::from));
    places.map(|place| place.join("nginx")).find(|file| file.is_file())
}

/// A running nginx.
pub(crate) struct Nginx {
    /// Proxies to the provider, with responses buffered.
    pub(crate) whole: SocketAddr,
    /// The same without buffering.
    pub(crate) streams: SocketAddr,
    /// Master and workers.
    pub(crate) process: Process,
    _dir: tempfile::TempDir,
}

impl Nginx {
    /// Starts it in front of `provider` and waits until it serves.
    pub(crate) fn start(file: &Path, provider: SocketAddr) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("error.log");
        for _ in 0..TRIES {
            let [whole, streams] = free_addresses()?;
            let config = dir.path().join("nginx.conf");
            fs::write(&config, configuration(dir.path(), provider, whole, streams))?;
            let mut command = process::program(file);
            command.arg("-p").arg(dir.path()).arg("-c").arg(&config).stderr(fs::File::create(&log)?);
            let mut process = Process::of(process::start(&mut command)?);
            if serves(&mut process, streams)? {
                return Ok(Self { whole, streams, process, _dir: dir });
            }
        }
        bail!("nginx does not start: {}", fs::read_to_string(&log).context("it left no log")?)
    }
}

/// Two addresses that nothing listens on.
fn free_addresses() -> anyhow::Result<[SocketAddr; 2]> {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let (first, second) = (free()?, free()?);
    Ok([first.local_addr()?, second.local_addr()?])
}

fn serves(process: &mut Process, address: SocketAddr) -> anyhow::Result<bool> {
    let late = Instant::now() + TIMEOUT;
    while process.ended()?.is_none() && Instant::now() < late {
        if TcpStream::connect(address).is_ok() {
            // Another process may have taken the port, in which case nginx is about to exit.
            thread::sleep(10 * POLL);
            return Ok(process.ended()?.is_none());
        }
        thread::sleep(POLL);
    }
    Ok(false)
}

fn configuration(dir: &Path, provider: SocketAddr, whole: SocketAddr, streams: SocketAddr) -> String {
    let dir = dir.display();
    format!(
        r#"
daemon off;
worker_processes auto;
pid "{dir}/nginx.pid";
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path "{dir}/client_body";
  proxy_temp_path "{dir}/proxy";
  fastcgi_temp_path "{dir}/fastcgi";
  uwsgi_temp_path "{dir}/uwsgi";
  scgi_temp_path "{dir}/scgi";
  client_body_buffer_size 64k;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  upstream provider {{
    server {provider};
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
  }}
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  server {{
    listen {whole} reuseport backlog=4096;
    location / {{ proxy_pass http://provider; }}
    location {CHEAP} {{ default_type application/json; return 200 '{{"status":"ok"}}'; }}
  }}
  server {{
    listen {streams} reuseport backlog=4096;
    proxy_buffering off;
    location / {{ proxy_pass http://provider; }}
  }}
}}
"#
    )
}
