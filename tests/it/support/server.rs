//! A server under test: `server::serve` on a free port, with a store and a clock of its own.

use std::sync::Arc;
use std::time::Duration;

use mk::api::Service;
use mk::app::App;
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

/// The configuration of a simulated server, which has no file.
pub fn sandbox() -> ServerConfig {
    let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], NOON)).unwrap()
}

/// A server under test; it is told to end when dropped.
pub struct TestServer {
    pub base: String,
    pub app: Arc<App>,
    pub clock: Clock,
    pub dir: Arc<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

/// How a test wants its server.
pub struct Setup {
    pub config: ServerConfig,
    pub options: Options,
    pub clock: Clock,
    pub dir: Arc<TempDir>,
}

impl Setup {
    /// On a fresh directory, with the hands of the clock at noon.
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

    /// Changes how connections are treated.
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Starts the server.
    pub async fn start(self) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = Arc::new(App::open(&self.config, self.clock.clone()).unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = server::serve(listener, app.clone(), self.options, async move {
            let _ = stopped.await;
        });
        let task = tokio::spawn(serving);
        TestServer { base, app, clock: self.clock, dir: self.dir, stop: Some(stop), task }
    }
}

impl TestServer {
    /// A key for a service, made as an operator would make it.
    pub fn key(&self, service: Service) -> String {
        self.key_with(service, |_| {}).0
    }

    /// A key with more about it; also its id.
    pub fn key_with(&self, service: Service, change: impl FnOnce(&mut NewKey)) -> (String, String) {
        let mut new = NewKey::new(service, "default");
        change(&mut new);
        let (key, row) = keys::create(&self.app.store, &new, self.clock.now()).unwrap();
        (key.expose_secret().to_owned(), row.id.to_string())
    }

    /// The server's address without the scheme.
    pub fn authority(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// A verification's request, ready to be sent.
    pub fn verify(&self, key: &str, body: &serde_json::Value) -> reqwest::RequestBuilder {
        client().post(format!("{}/verify/v1/stream", self.base)).bearer_auth(key).json(body)
    }

    /// Tells the server to end, without waiting.
    pub fn begin_shutdown(&mut self) {
        self.stop.take();
    }

    /// Ends the server and waits for it.
    pub async fn shutdown(mut self) {
        self.begin_shutdown();
        let ended = tokio::time::timeout(Duration::from_secs(30), &mut self.task).await;
        ended.expect("the server did not end").unwrap().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.begin_shutdown();
    }
}

/// A header of an answer, which must be there.
pub fn header<'a>(response: &'a reqwest::Response, name: &str) -> &'a str {
    response.headers()[name].to_str().unwrap()
}

/// An HTTP client that follows nothing and keeps no connection.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .timeout(Duration::from_mins(1))
        .build()
        .unwrap()
}
