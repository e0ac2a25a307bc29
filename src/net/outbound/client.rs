//! The HTTP client for calls to one address.
//!
//! Providers are called directly by our own, cheaper HTTP/1.1 client ([`super::http1`]) unless the environment names a
//! proxy (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` and the like); then `reqwest`, which knows all their forms, takes
//! over. Neither follows redirects.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::future::Either;
use http::{Response, Uri};
use hyper::body::{Frame, SizeHint};
use hyper_util::client::proxy::matcher::Matcher;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::http1::{self, ConnectionPool, HttpRequest};
use super::{SendError, connect_error, roots};

/// Connections to one provider.
#[derive(Debug)]
pub(crate) enum Client {
    /// To the provider itself.
    Direct(Box<ConnectionPool>),
    /// Through a proxy to this address.
    Proxied(reqwest::Client, Uri),
}

impl Client {
    /// A client for `address` that keeps at most `max_idle` idle connections; nothing is connected yet.
    /// Blocking: the first `https` address makes it read the system's root certificates.
    ///
    /// # Errors
    /// With a cause for the log; [`connect_error::failure`] classifies it.
    pub(crate) fn new(
        address: &Uri,
        connect_timeout: Duration,
        max_idle: usize,
        no_proxy: bool,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let is_proxied = !no_proxy && Matcher::from_env().intercept(address).is_some();
        if is_proxied {
            return Ok(Self::Proxied(proxied_client(connect_timeout)?, address.clone()));
        }
        // Without TLS, no root certificates are needed.
        let is_secure = address.scheme_str() == Some("https");
        let roots = if is_secure { roots::roots()? } else { RootCertStore::empty().into() };
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self::Direct(Box::new(ConnectionPool::new(address, connect_timeout, max_idle, tls)?)))
    }

    /// Waits until a request can be sent, for which it need not exist before.
    ///
    /// # Errors
    /// [`SendError::Unreachable`] or [`SendError::NoDescriptors`] if no connection could be made.
    pub(crate) async fn ready(&self) -> Result<Ready<'_>, SendError> {
        match self {
            Self::Direct(pool) => Ok(Ready::Direct(pool, pool.connection().await?)),
            Self::Proxied(client, address) => Ok(Ready::Proxied(client, address)),
        }
    }
}

/// What takes one request.
pub(crate) enum Ready<'c> {
    Direct(&'c ConnectionPool, http1::Ready),
    /// The library connects by itself.
    Proxied(&'c reqwest::Client, &'c Uri),
}

impl<'c> Ready<'c> {
    /// Sends a request and waits for the head of the response. Dropping the future, or the body that it yields, closes
    /// the connection unless the response has been read to its end. Nothing of `request` is kept while waiting.
    ///
    /// # Errors
    /// As [`Client::ready`], or [`SendError::Cut`] if the connection broke.
    pub(crate) fn send(
        self,
        request: &HttpRequest<'_>,
    ) -> impl Future<Output = Result<Response<Body>, SendError>> + Send + use<'c> {
        match self {
            Self::Direct(pool, on) => {
                // An async block would reserve space for the call twice.
                let sending = pool.send(on, pool.encode(request));
                Either::Left(sending.map_ok(|response| response.map(Body::Direct)))
            }
            Self::Proxied(client, address) => {
                let request = for_proxy(address, request);
                Either::Right(Box::pin(async move { send_via_proxy(client, request?).await }))
            }
        }
    }
}

fn for_proxy(address: &Uri, original: &HttpRequest<'_>) -> Result<reqwest::Request, SendError> {
    let mut parts = address.clone().into_parts();
    parts.path_and_query = Some(original.target.parse().map_err(|_| SendError::Unreachable)?);
    let uri = Uri::from_parts(parts).map_err(|_| SendError::Unreachable)?;
    let mut request = http::Request::new(reqwest::Body::from(original.body.clone()));
    (*request.method_mut(), *request.uri_mut()) = (original.method.clone(), uri);
    for (name, value) in &original.headers {
        request.headers_mut().append(*name, (*value).clone());
    }
    reqwest::Request::try_from(request).map_err(|_| SendError::Unreachable)
}

async fn send_via_proxy(
    client: &reqwest::Client,
    request: reqwest::Request,
) -> Result<Response<Body>, SendError> {
    match client.execute(request).await {
        Ok(response) => {
            connect_error::connected();
            Ok(Response::from(response).map(Body::Proxied))
        }
        Err(error) => Err(proxy_failure(&error)),
    }
}

fn proxied_client(connect_timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .build()
}

/// The body of a response, as it arrives.
#[derive(Debug)]
pub(crate) enum Body {
    Direct(http1::Body),
    Proxied(reqwest::Body),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        match &mut *self {
            Self::Direct(body) => Pin::new(body).poll_frame(context),
            Self::Proxied(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(|error| proxy_failure(&error))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Direct(body) => body.is_end_stream(),
            Self::Proxied(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Direct(body) => body.size_hint(),
            Self::Proxied(body) => body.size_hint(),
        }
    }
}

/// Classifies an error of the proxied client. A timeout while connecting counts as a failure to connect.
fn proxy_failure(error: &reqwest::Error) -> SendError {
    if error.is_connect() { connect_error::failure(error) } else { SendError::Cut }
}
