//! The HTTP client under [`super::transport`]: pooled connections to one provider, each with a limit on its making.
//!
//! A provider is called directly where nothing stands between, which is nearly always and costs the least. A proxy
//! that the environment names (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` and their kin) is left to the library that knows
//! all their forms. No redirect is followed either way.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use super::Failure;

/// Connections to one provider.
#[derive(Debug)]
pub(super) enum Client {
    /// To the provider itself.
    Direct(Box<Pool<Connector, Full<Bytes>>>),
    /// To a proxy on the way there.
    Proxied(reqwest::Client),
}

impl Client {
    /// A client for `address`; nothing is connected yet. Blocking: for the first `https` address the system's root
    /// certificates are read.
    pub(super) fn new(
        address: &Uri,
        connect_timeout: Duration,
        no_proxy: bool,
    ) -> Result<Self, reqwest::Error> {
        let is_proxied = !no_proxy && Matcher::from_env().intercept(address).is_some();
        if is_proxied {
            return Self::proxied(connect_timeout);
        }
        let tls = if address.scheme_str() == Some("https") { tls() } else { without_roots() };
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        // Without it, Nagle's algorithm holds small requests back.
        http.set_nodelay(true);
        let inner = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(http);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(Connector { inner, limit: connect_timeout });
        Ok(Self::Direct(Box::new(pool)))
    }

    fn proxied(connect_timeout: Duration) -> Result<Self, reqwest::Error> {
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(connect_timeout)
            .tcp_nodelay(true);
        builder.build().map(Self::Proxied)
    }

    /// Sends a request and waits for the head of its answer. Dropping the future, or the body that it gives, closes
    /// the connection if the answer has not come to its end.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] if no connection stood, [`Failure::Cut`] if it broke.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Body>, Failure> {
        match self {
            Self::Direct(pool) => match pool.request(request).await {
                Ok(response) => Ok(response.map(Body::Direct)),
                Err(error) => Err(failed(&error)),
            },
            Self::Proxied(client) => {
                let request = request.map(reqwest::Body::wrap);
                let request = reqwest::Request::try_from(request).map_err(|_| Failure::Unreachable)?;
                match client.execute(request).await {
                    Ok(response) => Ok(Response::from(response).map(Body::Proxied)),
                    Err(error) => Err(failed_by_proxy(&error)),
                }
            }
        }
    }
}

/// The body of an answer, as it arrives.
#[derive(Debug)]
pub(super) enum Body {
    Direct(Incoming),
    Proxied(reqwest::Body),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        Poll::Ready(match &mut *self {
            Self::Direct(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                frame.map(|frame| frame.map_err(|_| Failure::Cut))
            }
            Self::Proxied(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                frame.map(|frame| frame.map_err(|error| failed_by_proxy(&error)))
            }
        })
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

/// What a failure of the pool means. A connection that took too long to stand was none.
fn failed(error: &legacy::Error) -> Failure {
    if error.is_connect() { Failure::Unreachable } else { Failure::Cut }
}

fn failed_by_proxy(error: &reqwest::Error) -> Failure {
    if error.is_connect() { Failure::Unreachable } else { Failure::Cut }
}

/// Makes connections, TLS included, and gives up on those that take too long.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    inner: HttpsConnector<HttpConnector>,
    limit: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.limit, self.inner.call(address));
        Box::pin(async move { connecting.await? })
    }
}

/// Trusts what the system trusts, and Mozilla's list where the system has none. Made once: reading it takes some 20 ms.
fn tls() -> ClientConfig {
    static CONFIG: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = CONFIG.get_or_init(|| {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let system = rustls_native_certs::load_native_certs();
        for cause in &system.errors {
            tracing::warn!(%cause, "a root certificate of the system cannot be read");
        }
        roots.add_parsable_certificates(system.certs);
        Arc::new(roots)
    });
    ClientConfig::builder().with_root_certificates(roots.clone()).with_no_client_auth()
}

/// For addresses that never speak TLS.
fn without_roots() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}
