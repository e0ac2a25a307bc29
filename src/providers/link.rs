//! Connections to one provider, each driven by whoever waits for its answer.
//!
//! hyper's client is two halves, a sender and a connection that must be polled. Given a task of its own, the connection
//! hands over every chunk of a stream singly, with a wake-up each, and what came in one read goes out in many writes.
//! Here the one who waits polls both: an answer wakes nobody else, and all that came at once is passed on at once.
//!
//! What must hold: a connection is only kept when its answer was read to the end; whatever else becomes of one, it is
//! closed, which ends the work at the provider. A request that a kept connection did not take, because the provider
//! had closed it meanwhile, goes out on another one; one that may have been taken is never sent twice.

use std::error::Error;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Request, Response, Uri, Version};
use http_body_util::Full;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::rt::{Read, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::rustls::ClientConfig;
use tower_service::Service;

use super::{Failure, connecting};

/// The most that is read of a connection before anybody takes it; a head has to fit in.
const MOST_BUFFERED_BYTES: usize = 64 * 1024;
/// How long a connection is kept unused; common servers close theirs after a minute or more.
const KEEP: Duration = Duration::from_secs(50);

/// A connection's bytes. In a box, as TLS is large, and a call that waits would have room for it in every place that
/// the connection is moved to.
type Stream = Box<dyn Duplex>;

/// A request on its way to a connection. In a box, as it is moved from hand to hand, and every call that waits has room
/// for it in each of them.
pub(super) type Asked = Box<Request<Full<Bytes>>>;

/// What reads and writes.
trait Duplex: Read + Write + Debug + Send + Sync + Unpin {}

impl<S: Read + Write + Debug + Send + Sync + Unpin> Duplex for S {}

mod parked;
mod waiting;

use parked::Wire;
use waiting::Waiting;

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

/// One connection.
#[derive(Debug)]
struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection<Wire, Full<Bytes>>>>,
    waiting: Waiting,
    /// Whether it has said what it cannot say again: no other request may follow.
    is_spent: bool,
}

/// Connections that wait for a request, the longest unused first.
#[derive(Debug, Default)]
struct Idle {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    links: Vec<(Link, Instant)>,
    /// Whether somebody will close those that are not used.
    is_swept: bool,
}

/// Why a link gave no answer.
enum Unanswered {
    /// The request has not left.
    Unsent(Asked),
    /// It may have arrived.
    Broken,
}

impl Links {
    /// For the provider at `address`, a base address.
    pub(super) fn new(
        address: &Uri,
        connect_timeout: Duration,
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
            idle: Arc::default(),
        })
    }

    /// Sends a request, whose address is its path alone, and waits for the head of its answer.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] or [`Failure::NoDescriptors`] if no connection stood, [`Failure::Cut`] if it broke.
    pub(super) async fn send(&self, mut request: Asked) -> Result<Response<Body>, Failure> {
        request.headers_mut().insert(HOST, self.host.clone());
        while let Some(mut link) = self.idle.take() {
            if !link.is_usable() {
                continue;
            }
            match link.ask(request).await {
                Ok((link, response)) => return Ok(self.answered(link, response)),
                Err(Unanswered::Unsent(unsent)) => request = unsent,
                Err(Unanswered::Broken) => return Err(Failure::Cut),
            }
        }
        let link = Box::pin(self.open()).await?;
        match link.ask(request).await {
            Ok((link, response)) => Ok(self.answered(link, response)),
            Err(_) => Err(Failure::Cut),
        }
    }

    /// A new connection. Rare, and large: in a box, so that no other call makes room for it.
    async fn open(&self) -> Result<Link, Failure> {
        Link::over(Wire::new(self.connect().await?)).await
    }

    fn answered(&self, link: Link, response: Response<Incoming>) -> Response<Body> {
        // RFC 9112, section 9.3. What a connection becomes whose answer speaks of it, hyper knows.
        let stays_open =
            response.version() == Version::HTTP_11 && !response.headers().contains_key(CONNECTION);
        response.map(|incoming| {
            let mut body = Body { incoming, link: Some(link), stays_open, idle: self.idle.clone() };
            if body.incoming.is_end_stream() {
                body.give_back();
            }
            body
        })
    }

    async fn connect(&self) -> Result<Stream, Failure> {
        // The connector is always ready.
        let call = self.connector.clone().call(self.address.clone());
        let (cause, failure) = match timeout(self.connect_timeout, call).await {
            Ok(Ok(stream)) => {
                connecting::stands();
                return Ok(match stream {
                    MaybeHttpsStream::Http(plain) => Box::new(plain),
                    MaybeHttpsStream::Https(tls) => Box::new(tls),
                });
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

impl Link {
    async fn over(wire: Wire) -> Result<Self, Failure> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MOST_BUFFERED_BYTES);
        let (sender, connection) = builder.handshake(wire).await.map_err(|_| Failure::Cut)?;
        Ok(Self { sender, connection: Box::pin(connection), waiting: Waiting::default(), is_spent: false })
    }

    async fn ask(mut self, request: Asked) -> Result<(Self, Response<Incoming>), Unanswered> {
        pass_turn().await;
        let mut answer = pin!(self.sender.try_send_request(*request));
        let (connection, waiting) = (&mut self.connection, &self.waiting);
        let mut is_closed = false;
        let answered = poll_fn(|context| {
            let mut quiet = quietly();
            loop {
                if let Poll::Ready(answered) = answer.as_mut().poll(&mut quiet) {
                    return Poll::Ready(Some(answered));
                }
                if is_closed {
                    return Poll::Ready(None);
                }
                is_closed = waiting.poll_for(context, |context| connection.as_mut().poll(context)).is_ready();
                if !is_closed {
                    // What it has just read may be the answer.
                    return answer.as_mut().poll(&mut quiet).map(Some);
                }
            }
        });
        let answered = answered.await;
        pass_turn().await;
        match answered {
            Some(Ok(response)) => Ok((self, response)),
            Some(Err(mut failed)) => Err(match failed.take_message() {
                Some(unsent) => Unanswered::Unsent(Box::new(unsent)),
                None => Unanswered::Broken,
            }),
            None => Err(Unanswered::Broken),
        }
    }

    /// Does what there is to do, without waiting; whether it can take a request then.
    fn is_usable(&mut self) -> bool {
        !self.is_spent && self.connection.as_mut().poll(&mut quietly()).is_pending() && self.sender.is_ready()
    }
}

/// For polling what nobody need be woken for: a connection that is kept, which nobody waits for, and hyper's other
/// halves, which come on only when their connection is polled, by whoever polls them as well. With a waker of theirs, every
/// step of the one would have the other polled once more.
const fn quietly() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Lets everything else that is ready go first, once. What is sent to another process may have to wake it, which costs
/// more than the sending: several requests in a row, and several answers in a row, wake it once. Measured with 32
/// callers of a provider that answers at once, it saves a seventh of all work.
async fn pass_turn() {
    let mut has_passed = false;
    poll_fn(|context| {
        if has_passed {
            return Poll::Ready(());
        }
        has_passed = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Idle {
    /// The connection that was used last; its provider may have closed it by now.
    fn take(&self) -> Option<Link> {
        let (link, since) = self.kept().links.pop()?;
        (since.elapsed() < KEEP).then_some(link)
    }

    fn keep(self: &Arc<Self>, link: Link) {
        let mut kept = self.kept();
        kept.links.push((link, Instant::now()));
        if !std::mem::replace(&mut kept.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what was unused for long; when to come again, if anything is left.
    fn close_unused(&self, now: Instant) -> Option<Instant> {
        let mut kept = self.kept();
        let used = kept.links.partition_point(|(_, since)| *since + KEEP <= now);
        // Closed behind the lock.
        let unused: Vec<(Link, Instant)> = kept.links.drain(..used).collect();
        let next = kept.links.first().map(|(_, since)| *since + KEEP);
        kept.is_swept = next.is_some();
        drop(kept);
        drop(unused);
        next
    }

    /// Also after a panic elsewhere: links are kept whole.
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
    incoming: Incoming,
    /// `None` once it is given back or closed.
    link: Option<Link>,
    /// Whether the connection stays open behind an answer that was read to its end, unless it breaks.
    stays_open: bool,
    idle: Arc<Idle>,
}

impl Body {
    /// What the connection has handed over.
    fn take_frame(&mut self) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming, link, .. } = self;
        let take = || Pin::new(incoming).poll_frame(&mut quietly());
        match link {
            Some(link) => link.waiting.undisturbed(take),
            None => take(),
        }
    }

    /// Keeps the connection for the next request, if it can take one. Whether it still can is looked at when there is
    /// one: by then the answer is gone, whose bytes lie where hyper reads, so that it needs no other place for the next.
    fn give_back(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        if link.is_spent || !(self.stays_open || link.is_usable()) {
            return;
        }
        link.waiting.is_over();
        self.idle.keep(link);
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = &mut *self;
        let mut frame = this.take_frame();
        if frame.is_pending() {
            if let Some(Link { connection, waiting, .. }) = &mut this.link
                && waiting.poll_if_due(context, |context| connection.as_mut().poll(context)).is_ready()
            {
                this.link = None;
            }
            frame = this.take_frame();
        }
        let Poll::Ready(frame) = frame else {
            if let Some(link) = &this.link {
                link.waiting.goes_on();
            }
            return Poll::Pending;
        };
        match &frame {
            Some(Ok(_)) if !this.incoming.is_end_stream() => {}
            Some(Ok(_)) | None => this.give_back(),
            Some(Err(_)) => this.link = None,
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|_| Failure::Cut)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests;
