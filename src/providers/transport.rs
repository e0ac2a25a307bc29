//! The only sender: takes what a dialect made to a provider's address and brings back what it answers.
//!
//! What must hold: every wait has a limit; a body is counted while it is read; no redirect is followed, as it
//! would take the key to an address nobody configured; the key stands in a header marked sensitive and in no error
//! or debug output. Dropping the future of a call closes its connection, which ends the work at the provider.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::uri::{Authority, InvalidUri, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri};
use reqwest::Url;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::client::{Body, Client};
use super::link::Asked;
use super::opened::{Opened, Reply, within};
use super::{Failure, KeyHeader, Outgoing, Patience, Settings, connecting};
use crate::loopback::is_loopback;
use crate::secret::ExposeSecret;
use crate::workers::{PerWorker, yield_to_ready};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("mk/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// One provider's connections.
#[derive(Debug)]
pub(super) struct Transport {
    base: Base,
    /// What every request carries, the key in the header of the provider's format included.
    headers: HeaderMap,
    /// The name of the key's header, if there is a key.
    key: Option<HeaderName>,
    connect_timeout: Duration,
    /// The most calls at once.
    max_concurrent: usize,
    /// Made at the first call: reading the system's root certificates takes some 20 ms, which a command that never
    /// calls this provider must not pay.
    clients: PerWorker<OnceCell<Client>>,
}

/// The limits of a call that begins now.
struct Limits {
    first_byte: Instant,
    idle: Duration,
    end: Instant,
}

impl Limits {
    fn now(patience: &Patience, deadline: Instant) -> Self {
        let began = Instant::now();
        let end = deadline.min(began + patience.total_timeout);
        Self { first_byte: end.min(began + patience.first_byte_timeout), idle: patience.idle_timeout, end }
    }

    fn open(&self, answered: Response<Body>) -> Opened {
        let (head, body) = answered.into_parts();
        Opened { head, body, idle: self.idle, end: self.end, limit: Some(self.first_byte) }
    }
}

/// A provider's address, taken apart so that a request's is put together without reading it again.
#[derive(Debug)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    /// Without a slash at its end.
    path: String,
    /// Such as an API version.
    query: Option<String>,
    /// Of the first path that is the same for all requests, what it becomes: of most formats there is but one.
    usual: OnceLock<(&'static str, String)>,
}

impl Transport {
    /// # Errors
    /// With a sentence for a person, if address or key cannot be used.
    pub(super) fn new(settings: &Settings, header: KeyHeader) -> Result<Self, String> {
        let base = Base::new(&settings.base_url)?;
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, ANYTHING);
        headers.insert(USER_AGENT, AGENT);
        if HeaderValue::from_str(base.authority.as_str()).is_err() {
            return Err("base_url holds characters that no header can".to_owned());
        }
        if let Some(key) = &settings.api_key {
            headers.insert(header.name.clone(), sensitive(header.prefix, key.expose_secret())?);
        }
        Ok(Self {
            base,
            headers,
            key: settings.api_key.is_some().then_some(header.name),
            connect_timeout: settings.connect_timeout,
            max_concurrent: settings.max_concurrent,
            clients: PerWorker::new(OnceCell::new),
        })
    }

    /// Sends a request and reads its whole answer, within `patience` and by `deadline` at the latest. Until the answer
    /// begins this takes little more memory than its socket. So the request is made only when it can leave, and of `patience`
    /// nothing is kept but when it ends.
    ///
    /// # Errors
    /// If no complete answer came; any status is an answer.
    pub(super) fn send<'a>(
        &'a self,
        outgoing: impl FnOnce() -> Outgoing + Send + 'a,
        patience: &Patience,
        deadline: Instant,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send + 'a {
        let limits = Limits::now(patience, deadline);
        async move {
            let client = Box::pin(self.client(limits.end)).await?;
            yield_to_ready().await;
            let sending = Box::pin(client.send(&self.asked(Method::POST, &outgoing())?));
            let opened = limits.open(within(limits.first_byte, sending).await??);
            Box::pin(async move {
                yield_to_ready().await;
                opened.whole().await
            })
            .await
        }
    }

    /// Sends a request and waits for the head of its answer; the body has to come by `deadline` as well.
    ///
    /// # Errors
    /// If no answer began; any status is an answer.
    pub(super) async fn open(
        &self,
        outgoing: &Outgoing,
        patience: &Patience,
        deadline: Instant,
    ) -> Result<Opened, Failure> {
        self.begin(&self.asked(Method::POST, outgoing)?, patience, deadline).await
    }

    /// The same for a request without a body; `with_key` is whether it carries the key.
    ///
    /// # Errors
    /// As [`Transport::open`].
    pub(super) async fn get(
        &self,
        outgoing: &Outgoing,
        with_key: bool,
        patience: &Patience,
        deadline: Instant,
    ) -> Result<Opened, Failure> {
        let mut asked = self.asked(Method::GET, outgoing)?;
        let without = self.key.as_ref().filter(|_| !with_key);
        asked.headers.retain(|(name, _)| **name != CONTENT_TYPE && Some(*name) != without);
        self.begin(&asked, patience, deadline).await
    }

    /// Whether calls carry a key.
    pub(super) const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    async fn begin(
        &self,
        asked: &Asked<'_>,
        patience: &Patience,
        deadline: Instant,
    ) -> Result<Opened, Failure> {
        let client = self.client(deadline).await?;
        let limits = Limits::now(patience, deadline);
        // Not within a limit, whose timer would be told of each turn.
        yield_to_ready().await;
        let answered = within(limits.first_byte, client.send(asked)).await??;
        Ok(limits.open(answered))
    }

    /// The connections of this thread.
    async fn client(&self, deadline: Instant) -> Result<&Client, Failure> {
        let client = self.clients.here();
        if let Some(client) = client.get() {
            return Ok(client);
        }
        let connecting = Box::pin(client.get_or_try_init(|| self.connect()));
        within(deadline, connecting).await?
    }

    fn asked<'a>(&'a self, method: Method, outgoing: &'a Outgoing) -> Result<Asked<'a>, Failure> {
        // Only a dialect that puts a caller's bytes into a path unencoded could make this fail.
        let target = self.base.target(outgoing).map_err(|_| Failure::Unreachable)?;
        let own = outgoing.headers.iter().map(|(name, value)| (name, value));
        Ok(Asked {
            method,
            target,
            headers: self.headers.iter().chain(own).collect(),
            body: outgoing.body.clone(),
        })
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let address = self.base.origin().map_err(|_| Failure::Unreachable)?;
        // A proxy from the environment could only reach its own loopback.
        let no_proxy = is_loopback(self.base.authority.host());
        let (timeout, most_kept) = (self.connect_timeout, self.max_concurrent);
        // Root certificates are read from disk here.
        let built =
            tokio::task::spawn_blocking(move || Client::new(&address, timeout, most_kept, no_proxy)).await;
        match built {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(cause)) => {
                let failure = connecting::failure(&*cause);
                // Want of descriptors has been told.
                if failure != Failure::NoDescriptors {
                    tracing::error!(%cause, "cannot set up a client for calls to providers");
                }
                Err(failure)
            }
            Err(_) => Err(Failure::Unreachable),
        }
    }
}

impl Base {
    /// # Errors
    /// With a sentence for a person.
    fn new(text: &str) -> Result<Self, String> {
        let url = base_url(text)?;
        let unusable = |cause: &dyn std::fmt::Display| format!("base_url is no address ({cause})");
        let uri: Uri = url.as_str().parse().map_err(|cause| unusable(&cause))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(unusable(&"it has no host"));
        };
        Ok(Self {
            scheme,
            authority,
            path: url.path().trim_end_matches('/').to_owned(),
            query: url.query().filter(|query| !query.is_empty()).map(str::to_owned),
            usual: OnceLock::new(),
        })
    }

    /// The address alone, without a path.
    fn origin(&self) -> Result<Uri, http::Error> {
        let (scheme, authority) = (self.scheme.clone(), self.authority.clone());
        Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build()
    }

    /// Where a request goes.
    fn target<'a>(&'a self, outgoing: &Outgoing) -> Result<Cow<'a, str>, InvalidUri> {
        let Cow::Borrowed(path) = outgoing.path else { return self.joined(&outgoing.path).map(Cow::Owned) };
        if self.usual.get().is_none() {
            // If another one was quicker, that one is kept.
            let _ = self.usual.set((path, self.joined(path)?));
        }
        match self.usual.get() {
            Some((usual, target)) if *usual == path => Ok(target.into()),
            _ => self.joined(path).map(Cow::Owned),
        }
    }

    /// The base's path and `path` behind it; the base's query stays, in front of the path's own.
    fn joined(&self, path: &str) -> Result<String, InvalidUri> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let own = self.query.as_deref().unwrap_or_default();
        let mut full = String::with_capacity(self.path.len() + path.len() + own.len() + query.len() + 2);
        full.push_str(&self.path);
        full.push_str(path);
        if full.is_empty() {
            full.push('/');
        }
        for (query, sign) in [(own, '?'), (query, if own.is_empty() { '?' } else { '&' })] {
            if !query.is_empty() {
                full.push(sign);
                full.push_str(query);
            }
        }
        full.parse::<PathAndQuery>()?;
        Ok(full)
    }
}

fn sensitive(prefix: &str, key: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(&format!("{prefix}{key}"))
        .map_err(|_| "its API key holds characters that cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| {
        format!("base_url is no address ({error}); write it like https://api.example.com/v1")
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "base_url begins with {}://; only http:// and https:// can be called",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "base_url holds a user name or password; give the key by api_key_env or api_key_file".to_owned()
        );
    }
    if url.fragment().is_some() {
        return Err("base_url holds a #, which no request can send".to_owned());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Kind;
    use crate::secret::SecretString;

    fn settings(base_url: &str) -> Settings {
        let mut settings = Settings::new("acme", Kind::OpenAi, base_url);
        settings.api_key = Some(SecretString::from("sk-very-secret"));
        settings
    }

    fn transport(settings: &Settings) -> Result<Transport, String> {
        Transport::new(settings, KeyHeader { name: HeaderName::from_static("x-api-key"), prefix: "" })
    }

    #[test]
    fn the_key_is_in_no_debug_output() {
        let transport_with_key = transport(&settings("https://api.example.com/v1")).unwrap();
        assert!(transport_with_key.key.is_some());
        assert!(!format!("{transport_with_key:?}").contains("secret"));
        let mut broken = settings("https://api.example.com/v1");
        broken.api_key = Some(SecretString::from("sk-secret\nx"));
        assert!(!transport(&broken).unwrap_err().contains("secret"));
    }

    #[test]
    fn the_path_goes_behind_the_base_and_before_its_query() {
        let at = |base: &str, path: &str| transport(&settings(base)).unwrap().base.joined(path).unwrap();
        let address = |base: &str| at(base, "/chat/completions");
        assert_eq!(address("https://a.example/v1"), "/v1/chat/completions");
        assert_eq!(address("https://a.example/v1/?v=2"), "/v1/chat/completions?v=2");
        assert_eq!(address("http://[::1]:8000"), "/chat/completions");
        assert_eq!(Base::new("http://[::1]:8000/v1").unwrap().origin().unwrap(), "http://[::1]:8000/");
        assert_eq!(at("https://a.example/v1?v=2", "/m:go?alt=sse"), "/v1/m:go?v=2&alt=sse");
        assert_eq!(at("https://a.example/v1", "/m:go?alt=sse"), "/v1/m:go?alt=sse");
    }

    #[test]
    fn senseless_addresses_are_refused() {
        for wrong in
            ["", "api.example.com", "ftp://a.example", "https://u:p@a.example/", "https://a.example/#x"]
        {
            let message = transport(&settings(wrong)).unwrap_err();
            assert!(message.starts_with("base_url"), "{wrong}: {message}");
        }
    }

    #[test]
    fn a_host_of_this_machine_is_found_in_an_address() {
        for (address, expected) in [
            ("http://localhost:11434/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://[::1]:8000", true),
            ("https://api.example.com", false),
            ("http://192.168.1.2", false),
        ] {
            let base = Base::new(address).unwrap();
            assert_eq!(is_loopback(base.authority.host()), expected, "{address}");
        }
    }
}
