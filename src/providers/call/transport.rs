//! The only sender: delivers a dialect's requests to the provider's address and returns the responses.
//!
//! What must hold: every wait has a timeout; the size of a body is checked while it is read; no redirect is followed,
//! as that would send the key to an address nobody configured; the key is only in a header marked sensitive, and in no
//! error or debug output. Dropping the future of a call closes its connection, which ends the work at the provider.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::uri::{Authority, InvalidUri, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri};
use reqwest::Url;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::open_response::{OpenResponse, with_deadline};
use crate::net::loopback::is_loopback;
use crate::net::outbound::client::{Body, Client, Ready};
use crate::net::outbound::connect_error;
use crate::net::outbound::http1::HttpRequest;
use crate::net::workers::{PerWorker, yield_to_ready};
use crate::providers::{CallPolicy, FailedCall, Failure, KeyHeader, ProviderRequest, Settings};
use crate::secret::ExposeSecret;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("mk/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// Sends requests to one provider.
#[derive(Debug)]
pub(in crate::providers) struct Transport {
    base: Base,
    /// The headers of every request, but for the key.
    headers: HeaderMap,
    /// The header that carries a key.
    key_name: HeaderName,
    /// The values of that header, one for each key.
    keys: Vec<HeaderValue>,
    connect_timeout: Duration,
    max_concurrent: usize,
    /// One client per worker thread, created at the first call: reading the system's root certificates takes some 20
    /// ms, which a command that never calls this provider should not pay for.
    clients: PerWorker<OnceCell<Client>>,
}

/// The deadlines and timeouts of one call.
struct CallLimits {
    first_byte: Instant,
    idle_timeout: Duration,
    end: Instant,
}

impl CallLimits {
    fn starting_now(call_policy: &CallPolicy, deadline: Instant) -> Self {
        let began = Instant::now();
        let end = deadline.min(began + call_policy.total_timeout);
        Self {
            first_byte: end.min(began + call_policy.first_byte_timeout),
            idle_timeout: call_policy.idle_timeout,
            end,
        }
    }

    fn apply_to(&self, response: Response<Body>) -> OpenResponse {
        let (head, body) = response.into_parts();
        OpenResponse {
            head,
            body,
            idle_timeout: self.idle_timeout,
            end: self.end,
            next_deadline: Some(self.first_byte),
        }
    }
}

/// A provider's base URL, parsed once so that request targets need only be joined.
#[derive(Debug)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    /// Without a trailing slash.
    path: String,
    /// Such as an API version.
    query: Option<String>,
}

impl Transport {
    /// # Errors
    /// With a message for humans, if the address or the key is unusable.
    pub(in crate::providers) fn new(settings: &Settings, header: KeyHeader) -> Result<Self, String> {
        let base = Base::new(&settings.base_url)?;
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, ANYTHING);
        headers.insert(USER_AGENT, AGENT);
        if HeaderValue::from_str(base.authority.as_str()).is_err() {
            return Err("base_url contains characters that a header cannot carry".to_owned());
        }
        let keys = settings.api_keys().map(|key| sensitive(header.prefix, key.expose_secret()));
        Ok(Self {
            base,
            headers,
            keys: keys.collect::<Result<_, _>>()?,
            key_name: header.name,
            connect_timeout: settings.connect_timeout,
            max_concurrent: settings.max_concurrent,
            clients: PerWorker::new(OnceCell::new),
        })
    }

    /// Sends a request with the key at this place and waits for the head of the response; the body must arrive by
    /// `deadline` as well. Until then,
    /// the future holds little more than the socket: the request is encoded only when there is a connection for it, and
    /// only the resulting deadlines are kept of `call_policy`.
    ///
    /// # Errors
    /// If it cannot be encoded, or no response began; any status is a response.
    pub(in crate::providers) fn open<'a>(
        &'a self,
        outgoing: impl FnOnce() -> Result<ProviderRequest, Failure> + Send + 'a,
        key: usize,
        call_policy: &CallPolicy,
        deadline: Instant,
    ) -> impl Future<Output = Result<OpenResponse, FailedCall>> + Send + 'a {
        let limits = CallLimits::starting_now(call_policy, deadline);
        async move {
            let client = Box::pin(self.client(limits.end)).await?;
            // Outside the timeout, whose timer would otherwise be polled at every turn.
            yield_to_ready().await;
            let ready = with_deadline(limits.first_byte, Box::pin(client.ready())).await?;
            let ready = ready.map_err(Failure::from)?;
            let sending = Box::pin(ready.send(&self.http_request(Method::POST, &outgoing()?, Some(key))?));
            let begun = with_deadline(limits.first_byte, sending).await?;
            Ok(limits.apply_to(begun.map_err(FailedCall::before_answer)?))
        }
    }

    /// As [`Transport::open`], for a request without a body, encoded before; `with_key` is whether it carries the
    /// first key.
    ///
    /// # Errors
    /// As [`Transport::open`].
    pub(in crate::providers) async fn get(
        &self,
        outgoing: &ProviderRequest,
        with_key: bool,
        call_policy: &CallPolicy,
        deadline: Instant,
    ) -> Result<OpenResponse, Failure> {
        let mut request = self.http_request(Method::GET, outgoing, with_key.then_some(0))?;
        request.headers.retain(|(name, _)| **name != CONTENT_TYPE);
        let limits = CallLimits::starting_now(call_policy, deadline);
        let ready = self.ready(&limits).await?;
        let response = with_deadline(limits.first_byte, ready.send(&request)).await??;
        Ok(limits.apply_to(response))
    }

    /// Whether calls carry a key.
    pub(in crate::providers) const fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// A connection that is ready to send.
    async fn ready(&self, limits: &CallLimits) -> Result<Ready<'_>, Failure> {
        let client = Box::pin(self.client(limits.end)).await?;
        // Outside the timeout, whose timer would otherwise be polled at every turn.
        yield_to_ready().await;
        Ok(with_deadline(limits.first_byte, Box::pin(client.ready())).await??)
    }

    /// The client of this thread.
    async fn client(&self, deadline: Instant) -> Result<&Client, Failure> {
        let client = self.clients.here();
        if let Some(client) = client.get() {
            return Ok(client);
        }
        let connecting = Box::pin(client.get_or_try_init(|| self.connect()));
        with_deadline(deadline, connecting).await?
    }

    fn http_request<'a>(
        &'a self,
        method: Method,
        outgoing: &'a ProviderRequest,
        key: Option<usize>,
    ) -> Result<HttpRequest<'a>, Failure> {
        // Fails only if a dialect puts a caller's bytes into the path without encoding them.
        let target = self.base.joined(&outgoing.path).map_err(|_| Failure::Unreachable)?;
        let own = outgoing.headers.iter().map(|(name, value)| (name, value));
        let key = key.and_then(|index| self.keys.get(index)).map(|value| (&self.key_name, value));
        Ok(HttpRequest {
            method,
            target,
            headers: self.headers.iter().chain(key).chain(own).collect(),
            body: outgoing.body.clone(),
        })
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let address = self.base.origin().map_err(|_| Failure::Unreachable)?;
        // A proxy from the environment would connect to its own loopback address.
        let no_proxy = is_loopback(self.base.authority.host());
        let (timeout, max_idle) = (self.connect_timeout, self.max_concurrent);
        // Root certificates are read from disk here.
        let built =
            tokio::task::spawn_blocking(move || Client::new(&address, timeout, max_idle, no_proxy)).await;
        match built {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(cause)) => {
                let failure = Failure::from(connect_error::failure(&*cause));
                // A shortage of file descriptors has already been logged.
                if failure != Failure::NoDescriptors {
                    tracing::error!(%cause, "cannot set up the HTTP client for provider calls");
                }
                Err(failure)
            }
            Err(_) => Err(Failure::Unreachable),
        }
    }
}

impl Base {
    /// # Errors
    /// With a message for humans.
    fn new(text: &str) -> Result<Self, String> {
        let url = base_url(text)?;
        let unusable = |cause: &dyn std::fmt::Display| format!("base_url is not a URL ({cause})");
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
        })
    }

    /// Scheme and authority, with `/` as the path.
    fn origin(&self) -> Result<Uri, http::Error> {
        let (scheme, authority) = (self.scheme.clone(), self.authority.clone());
        Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build()
    }

    /// The request target: the base path followed by `path`; the base query is kept, before that of `path`.
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
        .map_err(|_| "its API key contains characters that cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| {
        format!("base_url is not a URL ({error}); write it like https://api.example.com/v1")
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "base_url begins with {}://; only http:// and https:// can be called",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "base_url contains a user name or password; set the key with api_key_env or api_key_file"
                .to_owned(),
        );
    }
    if url.fragment().is_some() {
        return Err("base_url contains a #, which a request cannot send".to_owned());
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
        assert!(transport_with_key.has_key());
        assert!(!format!("{transport_with_key:?}").contains("secret"));
        let mut broken = settings("https://api.example.com/v1");
        broken.api_key = Some(SecretString::from("sk-secret\nx"));
        assert!(!transport(&broken).unwrap_err().contains("secret"));
    }

    #[test]
    fn the_path_is_appended_to_the_base_path_and_the_queries_are_merged() {
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
    fn unusable_base_urls_are_refused() {
        for wrong in
            ["", "api.example.com", "ftp://a.example", "https://u:p@a.example/", "https://a.example/#x"]
        {
            let message = transport(&settings(wrong)).unwrap_err();
            assert!(message.starts_with("base_url"), "{wrong}: {message}");
        }
    }

    #[test]
    fn loopback_hosts_are_recognised_in_base_urls() {
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
