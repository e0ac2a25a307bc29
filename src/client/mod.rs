//! A client of a running server over HTTP. Knows only the wire types, and none of this program's other rooms.
//!
//! Every wait has a limit: the connection, and silence on an open stream (servers send a comment every 15 s). A limit
//! on the whole request is up to the caller. Redirects are not followed: a key must not be sent to an address that
//! nobody named. Proxies come from the environment, but not for loopback addresses.

mod certificate;
mod chat;
mod consistent;
mod console;
mod error;
mod events;
mod frames;

pub use certificate::CertificateFlaw;
pub use chat::{ChatStream, Piece};
pub use error::{Error, Refusal};
pub use events::VerifyStream;

use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Certificate, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::api::chat::ChatRequest;
use crate::api::console::OwnKey;
use crate::api::models::{Model, ModelList};
use crate::api::verify::{CACHE_HEADER, Event, PROGRESS_HEADER, ReceiptKey, VerifyRequest};
use crate::clock::Time;
use crate::net::loopback::is_loopback;
use crate::secret::{ExposeSecret, SecretString};

/// The path of chat completions.
const CHAT: &str = "inference/v1/chat/completions";

/// The largest response body that makes sense; what models write is far smaller.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// How to reach a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its base address, such as `https://mk.example.org` or one with a path prefix.
    pub server: String,
    /// The bearer key; `None` sends none.
    pub key: Option<SecretString>,
    /// Time limit for establishing the connection.
    pub connect_timeout: Duration,
    /// Time limit for the next byte of a response.
    pub idle_timeout: Duration,
    /// A PEM file of certificate authorities to trust besides those of the system.
    pub ca_cert: Option<PathBuf>,
}

/// What a server reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its version.
    pub version: Option<String>,
    /// The server's time of day.
    pub date: Option<Time>,
}

#[derive(Deserialize)]
struct Health {
    #[serde(default)]
    status: String,
    version: Option<String>,
}

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<SecretString>,
    fresh: bool,
}

impl Client {
    /// Creates a client; does not connect yet.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let base = base_url(&settings.server)?;
        let is_tls = base.scheme() == "https";
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("mk/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.idle_timeout)
            .redirect(reqwest::redirect::Policy::none())
            // Loading the system's certificates takes longer than a verification in the sandbox.
            .tls_built_in_root_certs(is_tls);
        if base.host_str().is_some_and(is_loopback) {
            builder = builder.no_proxy();
        }
        if let Some(path) = settings.ca_cert.as_ref().filter(|_| is_tls) {
            for certificate in certificates(path)? {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let http = builder.build().map_err(|cause| Error::Setup(error::innermost(&cause)))?;
        Ok(Self { http, base, key: settings.key.clone(), fresh: false })
    }

    /// This client, for whose verifications models are asked, whatever the server's cache of verdicts holds.
    #[must_use]
    pub fn asking_afresh(self) -> Self {
        Self { fresh: true, ..self }
    }

    /// Starts a verification. The request is sent exactly once, whatever happens to the connection.
    pub fn verify(&self, request: &VerifyRequest) -> VerifyStream {
        let post = self.post("verify/v1/stream").header(PROGRESS_HEADER, "models");
        let post = if self.fresh { post.header(CACHE_HEADER, "fresh") } else { post };
        VerifyStream::begin(post.json(request), Event::read, request)
    }

    /// Starts an extraction. The request is sent exactly once, whatever happens to the connection.
    pub fn extract(&self, request: &VerifyRequest) -> VerifyStream {
        let post = self.post("verify/v1/extract").json(request);
        VerifyStream::begin(post, Event::read_of_extraction, request)
    }

    /// Starts a streamed completion. The request is sent exactly once, whatever happens to the connection.
    pub fn chat_stream(&self, request: &ChatRequest) -> ChatStream {
        ChatStream::begin(self.post(CHAT).json(request), crate::id::new("req"))
    }

    /// Requests a completion as a whole.
    pub async fn chat(&self, request: &ChatRequest) -> Result<Piece, Error> {
        chat::complete(self.json(self.post(CHAT).json(request)).await?)
    }

    /// The models that the key may use.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let get = self.with_key(self.http.get(self.address("inference/v1/models")));
        let list: ModelList = self.json(get).await?;
        Ok(list.data)
    }

    /// The record of the key itself. Does not count against its limits.
    pub async fn own_key(&self) -> Result<OwnKey, Error> {
        self.json(self.with_key(self.http.get(self.address("v1/key")))).await
    }

    /// The public key by which receipts of the server are checked. Needs no key of the client's.
    pub async fn receipt_key(&self) -> Result<ReceiptKey, Error> {
        self.json(self.http.get(self.address("verify/v1/receipt-key"))).await
    }

    /// A client of the same server with another key.
    #[must_use]
    pub fn with_api_key(&self, key: SecretString) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// Checks that a server responds, and that it is healthy.
    pub async fn health(&self) -> Result<(), Error> {
        self.check_health("verify/v1/health").await.map(|_| ())
    }

    /// The same, with what the server reports about itself.
    pub async fn about(&self) -> Result<About, Error> {
        self.check_health("inference/v1/health").await
    }

    /// What is reported at `path` by a server that says it is healthy: anything else listening there may respond with
    /// 200 to any request.
    async fn check_health(&self, path: &str) -> Result<About, Error> {
        let sent = self.http.get(self.address(path)).send().await;
        let response = sent.map_err(|cause| Error::from_transport(&cause))?;
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            return Err(error::unhealthy_response(response).await);
        }
        if !response.status().is_success() {
            return Err(error::error_response(response).await);
        }
        let date = response.headers().get("date").and_then(|value| value.to_str().ok());
        let date = date.and_then(Time::parse_http);
        let health: Health = document("its answer", &body(response, MAX_BODY_BYTES).await?)?;
        if health.status != "ok" {
            return Err(Error::Malformed("the status in its answer is not `ok`".to_owned()));
        }
        Ok(About { version: health.version, date })
    }

    /// Sends a request whose response is one JSON document.
    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        document("its answer", &body(self.send(request).await?, MAX_BODY_BYTES).await?)
    }

    /// Sends a request and returns the response, unless it has an error status.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|cause| Error::from_transport(&cause))?;
        if response.status().is_success() { Ok(response) } else { Err(error::error_response(response).await) }
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.with_key(self.http.post(self.address(path)))
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    fn address(&self, path: &str) -> Url {
        let mut address = self.base.clone();
        address.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        address
    }
}

/// The whole body of a response, which must not be larger than `max` bytes.
async fn body(mut response: Response, max: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|cause| Error::from_body(&cause))? {
        if body.len() + chunk.len() > max {
            return Err(Error::Malformed("the answer is too large".to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn document<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|cause| match cause.classify() {
        Category::Data => frames::unreadable(what, &cause),
        _ => Error::Malformed(format!("{what} is not JSON")),
    })
}

fn base_url(text: &str) -> Result<Url, Error> {
    let url =
        Url::parse(text).map_err(|cause| Error::Setup(format!("`{text}` is not an address: {cause}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(Error::Setup(format!(
            "`{text}` is not the address of a server: use http://… or https://…"
        )));
    }
    Ok(url)
}

fn certificates(path: &std::path::Path) -> Result<Vec<Certificate>, Error> {
    let shown = path.display();
    let pem = std::fs::read(path).map_err(|cause| Error::Setup(format!("cannot read {shown}: {cause}")))?;
    let found = Certificate::from_pem_bundle(&pem)
        .map_err(|cause| Error::Setup(format!("{shown}: {}", error::innermost(&cause))))?;
    if found.is_empty() {
        return Err(Error::Setup(format!("{shown} has no certificate in PEM format")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(server: &str) -> Settings {
        Settings {
            server: server.to_owned(),
            key: None,
            connect_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(1),
            ca_cert: None,
        }
    }

    #[test]
    fn a_path_prefix_is_kept() {
        for base in ["http://localhost:8080/mk", "http://localhost:8080/mk/"] {
            let client = Client::new(&settings(base)).unwrap();
            assert_eq!(
                client.address("verify/v1/health").as_str(),
                "http://localhost:8080/mk/verify/v1/health"
            );
        }
    }

    #[test]
    fn an_invalid_address_is_reported_before_anything_is_sent() {
        for wrong in ["localhost:8080", "ftp://example.org", "not an address"] {
            assert!(matches!(Client::new(&settings(wrong)), Err(Error::Setup(_))), "{wrong}");
        }
    }
}
