//! The only sender: takes what a dialect made to a provider's address and brings back what it answers.
//!
//! What must hold: every wait has a limit; a body is counted while it is read; no redirect is followed, as it
//! would take the key to an address nobody configured; the key stands in a header marked sensitive and in no error
//! or debug output. Dropping the future of a call closes its connection, which ends the work at the provider.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::opened::{Opened, Reply, classify, within};
use super::{Failure, KeyHeader, Outgoing, Settings};
use crate::secret::ExposeSecret;

/// One provider's connections.
#[derive(Debug)]
pub(super) struct Transport {
    base: Url,
    /// The key, in the header of the provider's format.
    key: Option<(HeaderName, HeaderValue)>,
    connect_timeout: Duration,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    total_timeout: Duration,
    /// Made at the first call: reading the system's root certificates takes some 20 ms, which a command that
    /// never calls this provider must not pay.
    client: OnceCell<Client>,
}

impl Transport {
    /// # Errors
    /// With a sentence for a person, if address or key cannot be used.
    pub(super) fn new(settings: &Settings, header: KeyHeader) -> Result<Self, String> {
        let key = match &settings.api_key {
            Some(key) => Some((header.name, sensitive(header.prefix, key.expose_secret())?)),
            None => None,
        };
        Ok(Self {
            base: base_url(&settings.base_url)?,
            key,
            connect_timeout: settings.connect_timeout,
            first_byte_timeout: settings.first_byte_timeout,
            idle_timeout: settings.idle_timeout,
            total_timeout: settings.total_timeout,
            client: OnceCell::new(),
        })
    }

    /// Sends a request and reads its whole answer, by `deadline` at the latest.
    ///
    /// # Errors
    /// If no complete answer came; any status is an answer.
    pub(super) async fn send(&self, outgoing: &Outgoing, deadline: Instant) -> Result<Reply, Failure> {
        self.open(outgoing, deadline).await?.whole().await
    }

    /// Sends a request and waits for the head of its answer; the body has to come by `deadline` as well.
    ///
    /// # Errors
    /// If no answer began; any status is an answer.
    pub(super) async fn open(&self, outgoing: &Outgoing, deadline: Instant) -> Result<Opened, Failure> {
        let client = within(deadline, self.client.get_or_try_init(|| self.connect())).await??;
        let began = Instant::now();
        let end = deadline.min(began + self.total_timeout);
        let first_byte = end.min(began + self.first_byte_timeout);
        let mut request = client
            .post(self.address(&outgoing.path))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = &self.key {
            request = request.header(name, value.clone());
        }
        for (name, value) in &outgoing.headers {
            request = request.header(name, value);
        }
        let sending = request.body(outgoing.body.clone()).send();
        let response = within(first_byte, sending).await?.map_err(|error| classify(&error))?;
        Ok(Opened { response, idle: self.idle_timeout, end, limit: Some(first_byte) })
    }

    /// The base address and `path` behind it; a query of the base (such as an API version) stays, in front of the
    /// path's own.
    fn address(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut address = self.base.clone();
        let full = format!("{}{path}", self.base.path().trim_end_matches('/'));
        address.set_path(&full);
        let queries: Vec<&str> =
            self.base.query().into_iter().chain([query]).filter(|q| !q.is_empty()).collect();
        address.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
        address
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .user_agent(concat!("mk/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true);
        if is_loopback(&self.base) {
            // A proxy from the environment could only reach its own loopback.
            builder = builder.no_proxy();
        }
        // Root certificates are read from disk here.
        let built = tokio::task::spawn_blocking(move || builder.build()).await;
        match built {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot set up a client for calls to providers");
                Err(Failure::Unreachable)
            }
            Err(_) => Err(Failure::Unreachable),
        }
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

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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
        let at = |base: &str, path: &str| transport(&settings(base)).unwrap().address(path).to_string();
        let address = |base: &str| at(base, "/chat/completions");
        assert_eq!(address("https://a.example/v1"), "https://a.example/v1/chat/completions");
        assert_eq!(address("https://a.example/v1/?v=2"), "https://a.example/v1/chat/completions?v=2");
        assert_eq!(address("http://[::1]:8000"), "http://[::1]:8000/chat/completions");
        assert_eq!(at("https://a.example/v1?v=2", "/m:go?alt=sse"), "https://a.example/v1/m:go?v=2&alt=sse");
        assert_eq!(at("https://a.example/v1", "/m:go?alt=sse"), "https://a.example/v1/m:go?alt=sse");
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
    fn loopback_is_told_in_all_its_spellings() {
        for (address, expected) in [
            ("http://localhost:11434/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://[::1]:8000", true),
            ("https://api.example.com", false),
            ("http://192.168.1.2", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }
}
