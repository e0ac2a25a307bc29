//! An HTTP/1.1 client with a connection pool for one provider.
//!
//! Our own instead of a library, for the sake of memory and streams: hyper's client holds 29 KB for each call that waits
//! for a model, more than a whole verification may take. It parses the framing between chunks byte by byte, and hands
//! each chunk from its connection task to the body separately: with it, a completion and an event of a stream take 19 %
//! more instructions (28 November 2026). Here the task that waits for the response also reads it: all data that has
//! arrived is passed on at once, no other task is woken, and a waiting call holds only its socket. Heads are parsed by
//! `httparse`, as in hyper.
//!
//! What must hold: a connection is kept only if its response was read to an end that was beyond doubt; in any other
//! case it is closed, which ends the work at the provider. A request that an idle connection did not take, because the
//! provider had closed it meanwhile, is sent on another connection; one that may have been taken is never sent twice.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::lock::Lock;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Method, Response, Uri};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{SendError, connect_error, tcp};

mod connection;
mod encoded_request;
mod framing;
mod head;

use connection::{Connection, SendOutcome};
use encoded_request::EncodedRequest;
use framing::Framing;
use head::Head;

/// How long an idle connection is kept; common servers close theirs after a minute or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// A request to be sent.
#[derive(Debug)]
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    /// All headers but `Host` and `Content-Length`.
    pub(crate) headers: Vec<(&'a HeaderName, &'a HeaderValue)>,
    pub(crate) body: Bytes,
}

/// The error for a connection that ended too soon, or on which something arrived that is no valid response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BrokenResponse;

/// A connection that may take a request.
#[derive(Debug)]
pub(crate) struct Ready {
    connection: Connection,
    /// Whether it was made for this request, so that there is no reason why it should not take it.
    is_new: bool,
}

/// The connections to one provider.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    /// Scheme and authority.
    address: Uri,
    /// The value of the `Host` header.
    host: HeaderValue,
    /// What encrypts connections, if the address asks for it.
    tls: Option<Arc<ClientConfig>>,
    connect_timeout: Duration,
    idle: Arc<IdleConnections>,
}

/// The idle connections of a pool.
#[derive(Debug)]
struct IdleConnections {
    state: Mutex<IdleState>,
    max: usize,
}

#[derive(Debug, Default)]
struct IdleState {
    /// Each with the time since when it has been idle, the longest first.
    connections: Vec<(Connection, Instant)>,
    /// Whether a task is running that closes expired connections.
    has_sweeper: bool,
}

impl ConnectionPool {
    /// A pool for the provider at `address`, which keeps at most `max_idle` idle connections.
    pub(crate) fn new(
        address: &Uri,
        connect_timeout: Duration,
        max_idle: usize,
        tls: ClientConfig,
    ) -> Result<Self, http::Error> {
        let is_encrypted = address.scheme() == Some(&Scheme::HTTPS);
        let host = address.authority().map_or("", http::uri::Authority::as_str);
        Ok(Self {
            host: HeaderValue::from_str(host)?,
            address: address.clone(),
            tls: is_encrypted.then(|| Arc::new(tls)),
            connect_timeout,
            idle: Arc::new(IdleConnections { state: Mutex::default(), max: max_idle }),
        })
    }

    /// Encodes a request to this provider.
    pub(crate) fn encode(&self, request: &HttpRequest<'_>) -> EncodedRequest {
        EncodedRequest::new(request, &self.host)
    }

    /// A connection for a request: an idle one, else a new one. A request need not be encoded before there is one: when
    /// hundreds are to be sent at once, connecting takes longer than that.
    ///
    /// # Errors
    /// [`SendError::Unreachable`] or [`SendError::NoDescriptors`] if no connection could be made.
    pub(crate) async fn connection(&self) -> Result<Ready, SendError> {
        while let Some(mut connection) = self.idle.take() {
            if connection.is_reusable() {
                return Ok(Ready { connection, is_new: false });
            }
        }
        // Boxed, as it takes a place in the future of each call otherwise.
        Ok(Ready { connection: Box::pin(self.connect()).await?, is_new: true })
    }

    /// Sends a request on a connection and waits for the head of the response. A response that begins before the
    /// request has been sent completely is read as well, and its connection is closed afterwards.
    ///
    /// # Errors
    /// As [`ConnectionPool::connection`], or [`SendError::Cut`] if the connection broke.
    pub(crate) async fn send(&self, on: Ready, request: EncodedRequest) -> Result<Response<Body>, SendError> {
        // Boxed, so that the request takes no space in the future of a call that waits for its response.
        let (mut connection, is_sent) = Box::pin(self.send_request(on, request)).await?;
        let head = connection.head().await.map_err(|_| SendError::Cut)?;
        Ok(self.response(connection, head, is_sent))
    }

    /// Sends a request on this connection, or on another if it is an idle one that does not take it. Also returns
    /// whether it was sent completely.
    async fn send_request(
        &self,
        mut on: Ready,
        mut request: EncodedRequest,
    ) -> Result<(Connection, bool), SendError> {
        loop {
            match on.connection.send(&mut request).await {
                SendOutcome::Nothing if on.is_new => return Err(SendError::Cut),
                SendOutcome::Nothing => on = self.connection().await?,
                sent => return Ok((on.connection, matches!(sent, SendOutcome::Complete))),
            }
        }
    }

    fn response(&self, connection: Connection, head: Head, is_sent: bool) -> Response<Body> {
        let Head { response, framing, keep_alive } = head;
        let keep_alive = keep_alive && is_sent;
        let mut body = Body { connection: Some(connection), framing, keep_alive, idle: self.idle.clone() };
        if body.framing.is_over() {
            body.release_connection();
        }
        response.map(|()| body)
    }

    async fn connect(&self) -> Result<Connection, SendError> {
        let (cause, failure) = match timeout(self.connect_timeout, self.dial()).await {
            Ok(Ok(connection)) => {
                connect_error::connected();
                return Ok(connection);
            }
            Ok(Err(cause)) => (with_causes(&*cause), connect_error::failure(&*cause)),
            Err(_) => ("it took too long".to_owned(), SendError::Unreachable),
        };
        tracing::debug!(address = %self.address, cause, "cannot connect to a provider");
        Err(failure)
    }

    async fn dial(&self) -> Result<Connection, Box<dyn Error + Send + Sync>> {
        let host = self.address.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.address.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let plain = tcp::connect(host, port).await?;
        let Some(tls) = &self.tls else { return Ok(Connection::plain(plain)) };
        let name = ServerName::try_from(host)?.to_owned();
        // Boxed, as hundreds of plain connections that are made at once need no room for it.
        let encrypted = Box::pin(TlsConnector::from(tls.clone()).connect(name, plain)).await?;
        Ok(Connection::encrypted(encrypted))
    }
}

/// An error's message followed by those of its causes, which hold the details.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl IdleConnections {
    /// The most recently used connection; the provider may have closed it meanwhile.
    fn take(&self) -> Option<Connection> {
        let (connection, since) = self.state.locked().connections.pop()?;
        (since.elapsed() < IDLE_TIMEOUT).then_some(connection)
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        let mut state = self.state.locked();
        state.connections.push((connection, Instant::now()));
        let oldest = (state.connections.len() > self.max).then(|| state.connections.remove(0));
        if !std::mem::replace(&mut state.has_sweeper, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        drop(state);
        // Closed outside the lock.
        drop(oldest);
    }

    /// Closes expired connections; returns when the next one will expire, if any is left.
    fn close_expired(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state.locked();
        let count = state.connections.partition_point(|(_, since)| *since + IDLE_TIMEOUT <= now);
        // Closed outside the lock.
        let expired: Vec<(Connection, Instant)> = state.connections.drain(..count).collect();
        let next = state.connections.first().map(|(_, since)| *since + IDLE_TIMEOUT);
        state.has_sweeper = next.is_some();
        drop(state);
        drop(expired);
        next
    }
}

/// Closes idle connections as they expire, until none is left.
async fn sweep(idle: std::sync::Weak<IdleConnections>) {
    let mut next = Instant::now() + IDLE_TIMEOUT;
    loop {
        sleep_until(next).await;
        let Some(idle) = idle.upgrade() else { return };
        match idle.close_expired(Instant::now()) {
            Some(later) => next = later,
            None => return,
        }
    }
}

/// The body of a response. Dropping it before its end closes its connection.
#[derive(Debug)]
pub(crate) struct Body {
    /// `None` once it has been returned to the pool or closed.
    connection: Option<Connection>,
    framing: Framing,
    /// Whether the connection can be used again after this response.
    keep_alive: bool,
    idle: Arc<IdleConnections>,
}

impl Body {
    /// Returns the connection to the pool if it can take another request; this is checked again before it gets one.
    fn release_connection(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && self.keep_alive
            && connection.make_idle()
        {
            self.idle.put(connection);
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let Self { connection, framing, .. } = &mut *self;
        let Some(open) = connection else { return Poll::Ready(None) };
        let Ok(data) = ready!(open.poll_data(context, framing)) else {
            *connection = None;
            return Poll::Ready(Some(Err(SendError::Cut)));
        };
        if data.is_none() || framing.is_over() {
            self.release_connection();
        }
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.framing.length().map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests;
