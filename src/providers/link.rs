//! Connections to one provider, and HTTP/1.1 on them.
//!
//! Our own, where a library would do, for the sake of streams: hyper's client hands over each chunk singly, from one
//! half of it to another, and takes every byte between chunks for itself, some forty locked instructions for each token
//! of an answer. That was half of what a stream cost. It also holds 27 KB for each call that waits for a model. Here the
//! one who waits reads: all that came at once is passed on at once, nobody else is woken, and a call that waits holds its
//! socket. Heads are read by `httparse`, as they are there.
//!
//! What must hold: a connection is only kept when its answer was read to the end, and where that is was beyond doubt;
//! whatever else becomes of one, it is closed, which ends the work at the provider. A request that a kept connection did
//! not take, because the provider had closed it meanwhile, goes out on another one; one that may have been taken is never
//! sent twice.

use std::borrow::Cow;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Response, Uri};
use hyper::body::{Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::rustls::ClientConfig;
use tower_service::Service;

use super::{Failure, connecting};

mod framing;
mod head;
mod question;
mod wire;

use framing::Framing;
use head::Head;
pub(super) use question::Question;
use wire::{Sent, Wire};

/// How long a connection is kept unused; common servers close theirs after a minute or more.
const KEEP: Duration = Duration::from_secs(50);

/// A request, as it is given to whoever sends it.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: Cow<'a, str>,
    /// All but `Host` and the length of the body.
    pub(super) headers: Vec<(&'a HeaderName, &'a HeaderValue)>,
    pub(super) body: Bytes,
}

/// What a connector connects.
type Connected = TokioIo<TcpStream>;

/// Said of a connection that ended too soon, or on which something stands that is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken;

/// Connections to one provider.
#[derive(Debug)]
pub(super) struct Links {
    /// Scheme and authority.
    address: Uri,
    host: HeaderValue,
    connector: HttpsConnector<HttpConnector>,
    connect_timeout: Duration,
    idle: Arc<Idle>,
}

/// Connections that wait for a request, the longest unused first.
#[derive(Debug)]
struct Idle {
    kept: Mutex<Kept>,
    /// How many at most.
    most: usize,
}

#[derive(Debug, Default)]
struct Kept {
    wires: Vec<(Wire, Instant)>,
    /// Whether somebody will close those that are not used.
    is_swept: bool,
}

impl Links {
    /// For the provider at `address`, a base address. Not more than `most_kept` connections are kept unused.
    pub(super) fn new(
        address: &Uri,
        connect_timeout: Duration,
        most_kept: usize,
        tls: ClientConfig,
    ) -> Result<Self, http::Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        // Without it, Nagle's algorithm holds small requests back.
        http.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let host = address.authority().map_or("", http::uri::Authority::as_str);
        Ok(Self {
            host: HeaderValue::from_str(host)?,
            address: address.clone(),
            connector: connector.wrap_connector(http),
            connect_timeout,
            idle: Arc::new(Idle { kept: Mutex::default(), most: most_kept }),
        })
    }

    /// A request as it goes to this provider.
    pub(super) fn question(&self, asked: &Asked<'_>) -> Question {
        Question::new(asked, &self.host)
    }

    /// Sends a request and waits for the head of its answer. An answer that begins before the request has left is read
    /// as well, and its connection is closed then.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] or [`Failure::NoDescriptors`] if no connection stood, [`Failure::Cut`] if it broke.
    pub(super) async fn send(&self, question: Question) -> Result<Response<Body>, Failure> {
        // In a box, as the request is no part of the call that waits.
        let (mut wire, is_sent) = Box::pin(self.hand_over(question)).await?;
        let head = wire.head().await.map_err(|_| Failure::Cut)?;
        Ok(self.answered(wire, head, is_sent))
    }

    /// Gives a request to a connection that takes it: a kept one, else a new one. Whether it took all of it.
    async fn hand_over(&self, mut question: Question) -> Result<(Wire, bool), Failure> {
        while let Some(mut wire) = self.idle.take() {
            if !wire.is_quiet() {
                continue;
            }
            match wire.send(&mut question).await {
                Sent::Nothing => {}
                sent => return Ok((wire, matches!(sent, Sent::Whole))),
            }
        }
        let mut wire = self.connect().await?;
        match wire.send(&mut question).await {
            Sent::Nothing => Err(Failure::Cut),
            sent => Ok((wire, matches!(sent, Sent::Whole))),
        }
    }

    fn answered(&self, wire: Wire, head: Head, is_sent: bool) -> Response<Body> {
        let Head { response, framing, stays_open } = head;
        let stays_open = stays_open && is_sent;
        let mut body = Body { wire: Some(wire), framing, stays_open, idle: self.idle.clone() };
        if body.framing.is_over() {
            body.give_back();
        }
        response.map(|()| body)
    }

    async fn connect(&self) -> Result<Wire, Failure> {
        // The connector is always ready.
        let call = self.connector.clone().call(self.address.clone());
        let (cause, failure) = match timeout(self.connect_timeout, call).await {
            Ok(Ok(stream)) => {
                connecting::stands();
                return Ok(Wire::new(stream));
            }
            Ok(Err(cause)) => (told(&*cause), connecting::failure(&*cause)),
            Err(_) => ("it took too long".to_owned(), Failure::Unreachable),
        };
        tracing::debug!(address = %self.address, cause, "cannot connect to a provider");
        Err(failure)
    }
}

/// An error with its causes, which say what the error alone does not.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}

impl Idle {
    /// The connection that was used last; its provider may have closed it by now.
    fn take(&self) -> Option<Wire> {
        let (wire, since) = self.kept().wires.pop()?;
        (since.elapsed() < KEEP).then_some(wire)
    }

    fn keep(self: &Arc<Self>, wire: Wire) {
        let mut kept = self.kept();
        kept.wires.push((wire, Instant::now()));
        let oldest = (kept.wires.len() > self.most).then(|| kept.wires.remove(0));
        if !std::mem::replace(&mut kept.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        drop(kept);
        // Closed behind the lock.
        drop(oldest);
    }

    /// Closes what was unused for long; when to come again, if anything is left.
    fn close_unused(&self, now: Instant) -> Option<Instant> {
        let mut kept = self.kept();
        let used = kept.wires.partition_point(|(_, since)| *since + KEEP <= now);
        // Closed behind the lock.
        let unused: Vec<(Wire, Instant)> = kept.wires.drain(..used).collect();
        let next = kept.wires.first().map(|(_, since)| *since + KEEP);
        kept.is_swept = next.is_some();
        drop(kept);
        drop(unused);
        next
    }

    /// Also after a panic elsewhere: connections are kept whole.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sweep(idle: std::sync::Weak<Idle>) {
    let mut next = Instant::now() + KEEP;
    loop {
        sleep_until(next).await;
        let Some(idle) = idle.upgrade() else { return };
        match idle.close_unused(Instant::now()) {
            Some(later) => next = later,
            None => return,
        }
    }
}

/// The body of an answer. Dropping it before its end closes its connection.
#[derive(Debug)]
pub(super) struct Body {
    /// `None` once it is given back or closed.
    wire: Option<Wire>,
    framing: Framing,
    /// Whether the connection stays open behind an answer that was read to its end.
    stays_open: bool,
    idle: Arc<Idle>,
}

impl Body {
    /// Keeps the connection for the next request, if it can take one. Whether it still can is looked at when there is
    /// one.
    fn give_back(&mut self) {
        if let Some(mut wire) = self.wire.take()
            && self.stays_open
            && wire.rest()
        {
            self.idle.keep(wire);
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Self { wire, framing, .. } = &mut *self;
        let Some(open) = wire else { return Poll::Ready(None) };
        let Ok(data) = ready!(open.poll_data(context, framing)) else {
            *wire = None;
            return Poll::Ready(Some(Err(Failure::Cut)));
        };
        if data.is_none() || framing.is_over() {
            self.give_back();
        }
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.wire.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.framing.length().map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests;
