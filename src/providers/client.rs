//! The HTTP client under [`super::transport`].
//!
//! A provider is called directly where nothing stands between, which is nearly always and costs the least. A proxy
//! that the environment names (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` and their kin) is left to the library that knows
//! all their forms. No redirect is followed either way.

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

use super::link::{self, Asked, Links};
use super::{Failure, connecting, roots};

/// Connections to one provider.
#[derive(Debug)]
pub(super) enum Client {
    /// To the provider itself.
    Direct(Box<Links>),
    /// To a proxy on the way to this address.
    Proxied(reqwest::Client, Uri),
}

impl Client {
    /// A client for `address`, which keeps not more than `most_kept` connections unused; nothing is connected yet.
    /// Blocking: for the first `https` address the system's root certificates are read.
    ///
    /// # Errors
    /// With a cause for the log; [`connecting::failure`] tells what it means.
    pub(super) fn new(
        address: &Uri,
        connect_timeout: Duration,
        most_kept: usize,
        no_proxy: bool,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let is_proxied = !no_proxy && Matcher::from_env().intercept(address).is_some();
        if is_proxied {
            return Ok(Self::Proxied(proxied(connect_timeout)?, address.clone()));
        }
        // Addresses without TLS need none.
        let is_secure = address.scheme_str() == Some("https");
        let roots = if is_secure { roots::roots()? } else { RootCertStore::empty().into() };
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self::Direct(Box::new(Links::new(address, connect_timeout, most_kept, tls)?)))
    }

    /// Sends a request and waits for the head of its answer. Dropping the future, or the body that it gives, closes the
    /// connection if the answer has not come to its end. Of `asked`, nothing is kept while the answer is waited for.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] or [`Failure::NoDescriptors`] if no connection stood, [`Failure::Cut`] if it broke.
    pub(super) fn send<'c>(
        &'c self,
        asked: &Asked<'_>,
    ) -> impl Future<Output = Result<Response<Body>, Failure>> + Send + use<'c> {
        match self {
            Self::Direct(links) => {
                // An async block would have room for the call twice.
                let sending = links.send(links.question(asked));
                Either::Left(sending.map_ok(|response| response.map(Body::Direct)))
            }
            Self::Proxied(client, address) => {
                let request = for_proxy(address, asked);
                Either::Right(Box::pin(async move { send_by_proxy(client, request?).await }))
            }
        }
    }
}

fn for_proxy(address: &Uri, asked: &Asked<'_>) -> Result<reqwest::Request, Failure> {
    let mut parts = address.clone().into_parts();
    parts.path_and_query = Some(asked.target.parse().map_err(|_| Failure::Unreachable)?);
    let uri = Uri::from_parts(parts).map_err(|_| Failure::Unreachable)?;
    let mut request = http::Request::new(reqwest::Body::from(asked.body.clone()));
    (*request.method_mut(), *request.uri_mut()) = (asked.method.clone(), uri);
    for (name, value) in &asked.headers {
        request.headers_mut().append(*name, (*value).clone());
    }
    reqwest::Request::try_from(request).map_err(|_| Failure::Unreachable)
}

async fn send_by_proxy(
    client: &reqwest::Client,
    request: reqwest::Request,
) -> Result<Response<Body>, Failure> {
    match client.execute(request).await {
        Ok(response) => {
            connecting::stands();
            Ok(Response::from(response).map(Body::Proxied))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn proxied(connect_timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .build()
}

/// The body of an answer, as it arrives.
#[derive(Debug)]
pub(super) enum Body {
    Direct(link::Body),
    Proxied(reqwest::Body),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match &mut *self {
            Self::Direct(body) => Pin::new(body).poll_frame(context),
            Self::Proxied(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(|error| failed(&error))))
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

/// What a failure behind a proxy means. A connection that took too long to stand was none.
fn failed(error: &reqwest::Error) -> Failure {
    if error.is_connect() { connecting::failure(error) } else { Failure::Cut }
}
