//! A server under test: `server::serve` on a free port, with its own store and a manual clock.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mk::api::Service;
use mk::app::AppState;
use mk::clock::{Clock, Time};
use mk::config::{Env, ServerArgs, ServerConfig};
use mk::keys::{self, NewKey};
use mk::secret::ExposeSecret;
use mk::server::{self, Options};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// 2026-11-20, noon UTC: far from any midnight.
pub const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

/// The configuration of `--sandbox`, which needs no file.
pub fn sandbox() -> ServerConfig {
    let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], NOON)).unwrap()
}

/// A server under test. Dropping it begins its shutdown.
pub struct TestServer {
    pub base: String,
    pub app: Arc<AppState>,
    pub clock: Clock,
    pub dir: Arc<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

/// The setup of a server.
pub struct Setup {
    pub config: ServerConfig,
    pub options: Options,
    pub clock: Clock,
    pub dir: Arc<TempDir>,
}

impl Setup {
    /// With an empty data directory and the clock at noon.
    pub fn new(mut config: ServerConfig) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        config.data_dir = dir.path().join("data");
        Self { config, options: Options::default(), clock: Clock::manual(NOON), dir }
    }

    /// Changes the configuration.
    pub fn config(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Changes the server's options.
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Starts the server.
    pub async fn start(self) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = Arc::new(AppState::open(&self.config, self.clock.clone()).unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = server::serve(listener, app.clone(), self.options, async move {
            let _ = stopped.await;
        });
        let task = tokio::spawn(serving);
        TestServer { base, app, clock: self.clock, dir: self.dir, stop: Some(stop), task }
    }
}

impl TestServer {
    /// Creates a key for a service, as an operator would.
    pub fn key(&self, service: Service) -> String {
        self.key_with(service, |_| {}).0
    }

    /// Creates a key with further settings; returns the key and its id.
    pub fn key_with(&self, service: Service, change: impl FnOnce(&mut NewKey)) -> (String, String) {
        let mut new = NewKey::new(service, "default");
        change(&mut new);
        let (key, row) = keys::create(&self.app.store, &new, self.clock.now()).unwrap();
        (key.expose_secret().to_owned(), row.id.to_string())
    }

    /// The server's host and port.
    pub fn authority(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// An unsent verification request.
    pub fn verify(&self, key: &str, body: &serde_json::Value) -> reqwest::RequestBuilder {
        client().post(format!("{}/verify/v1/stream", self.base)).bearer_auth(key).json(body)
    }

    /// Begins the shutdown without waiting for it.
    pub fn begin_shutdown(&mut self) {
        self.stop.take();
    }

    /// Shuts the server down and waits for it.
    pub async fn shutdown(mut self) {
        self.begin_shutdown();
        let ended = tokio::time::timeout(Duration::from_secs(30), &mut self.task).await;
        ended.expect("the server did not shut down").unwrap().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.begin_shutdown();
    }
}

/// A response header, which must be present.
pub fn header<'a>(response: &'a reqwest::Response, name: &str) -> &'a str {
    response.headers()[name].to_str().unwrap()
}

/// An HTTP client for servers without TLS that uses no proxy. It keeps no idle connections, which would end with their
/// test's runtime; and so it is made only once, as that takes some twenty milliseconds in a debug build.
pub fn client() -> reqwest::Client {
    static SHARED: LazyLock<reqwest::Client> = LazyLock::new(|| {
        reqwest::Client::builder()
            .no_proxy()
            .tls_built_in_root_certs(false)
            .pool_max_idle_per_host(0)
            .timeout(Duration::from_mins(1))
            .build()
            .unwrap()
    });
    SHARED.clone()
}
