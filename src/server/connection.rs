//! Serves one connection, from the TLS handshake to its end, with a timeout on every wait.
//!
//! HTTP/2 is spoken only if ALPN selected it: sniffing the version would be one more wait for a silent peer. The peer's
//! address is passed along with each request, as warp does not know it under an accept loop of our own.
//!
//! Ten thousand connections may idle at once, so the memory of each is kept small: whatever is large is boxed, and
//! exists only while it is needed. A future that holds it by value would reserve space for it, and for every place it
//! is moved to, as long as the connection lasts. hyper itself is that large: while a stream is silent, it is dropped
//! (see [`crate::net::inbound::parking`]).
//!
//! A peer that has stopped sending counts as gone, even if it might still read: what is ready is sent, work under way
//! is dropped. A connection that we close is drained for a moment, so that the last response arrives.

use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryFutureExt;
use futures_util::future::Either;
use http::{Method, Request};
use hyper::body::Incoming as Body;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::hyper_errors::ReplaceHyperErrors;
use super::routes::Routes;
use super::{ServerState, Tls, envelope, reply};
use crate::net::inbound::activity::{Activity, BusyUntilDone, BusyWhilePolled};
use crate::net::inbound::parking::{self, ParkingSlot, RewindIo};
use crate::net::inbound::poll_on_wake::PollOnWake;
use crate::net::inbound::stalled_streams::{InPieces, StreamExecutor};
use crate::net::inbound::write_timeout::{WriteStalled, WriteTimeout};
use crate::net::inbound::{socket, tcp_keepalive};

/// The timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request head, as the message of `headers_too_large` says.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// During shutdown: how long a partial head has to become a request, or an HTTP/2 peer to take the `GOAWAY`.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What is observed of a connection while hyper serves it.
struct Monitor {
    stalled: WriteStalled,
    activity: Activity,
}

/// Why a connection is closed from outside hyper.
enum CloseReason {
    Shutdown,
    PeerIdle,
}

/// What a connection is served with.
pub(crate) struct Terms {
    pub(crate) peer: SocketAddr,
    pub(crate) routes: Routes,
    pub(crate) context: Arc<ServerState>,
    /// Asks to answer the requests under way and close.
    pub(crate) closing: watch::Receiver<()>,
}

/// Serves one connection until it ends, or is asked to close.
pub(crate) async fn serve(stream: TcpStream, terms: &Terms) {
    let Terms { peer, context, .. } = terms;
    // Otherwise Nagle's algorithm holds small frames back; a failure only costs speed.
    let _ = stream.set_nodelay(true);
    tcp_keepalive::configure(&stream, context.options.write_timeout);
    let (socket, watch) = socket::split(stream);
    let activity = Activity::new();
    let evicted = activity.clone();
    let _counted = context.app.metrics.http.connections.add_one();
    let _listed = context.open_connections.add(activity.clone());
    let stream = WriteTimeout::new(socket, context.options.write_timeout, activity.clone());
    let monitor = Monitor { stalled: stream.stalled(), activity };
    {
        let cut_off = pin!(async {
            tokio::select! {
                () = watch.peer_left() => {}
                () = evicted.evicted() => {
                    context.app.metrics.http.count_evicted();
                    tracing::debug!(%peer, "connection closed to make room for others");
                }
            }
        });
        tokio::select! {
            biased;
            () = serve_stream(stream, monitor, terms) => {}
            () = PollOnWake::new(cut_off) => return,
        }
    }
    let mut shutdown = terms.closing.clone();
    tokio::select! {
        () = watch.linger() => {}
        _ = shutdown.changed() => {}
    }
}

fn serve_stream<S>(stream: S, monitor: Monitor, terms: &Terms) -> impl Future<Output = ()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match terms.context.options.tls.clone() {
        None => Either::Left(serve_http1(stream, monitor, terms)),
        Some(tls) => Either::Right(Box::pin(serve_tls(tls, stream, monitor, terms))),
    }
}

async fn serve_tls<S>(tls: Tls, stream: S, monitor: Monitor, terms: &Terms)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (peer, mut closing) = (terms.peer, terms.closing.clone());
    let accepting = Box::pin(tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream)));
    let accepted = tokio::select! {
        accepted = accepting => accepted,
        _ = closing.changed() => return,
    };
    let Ok(Ok(stream)) = accepted else {
        tracing::debug!(%peer, "TLS handshake failed");
        return;
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(serve_http2(stream, monitor.activity, terms)).await;
    } else {
        Box::pin(serve_http1(stream, monitor, terms)).await;
    }
}

/// Not an `async fn`, which would store its arguments twice while it waits.
fn serve_http1<S>(stream: S, monitor: Monitor, terms: &Terms) -> impl Future<Output = ()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Terms { peer, routes, context, closing } = terms;
    let (peer, header_timeout) = (*peer, context.options.header_timeout);
    let mut io = RewindIo::new(ReplaceHyperErrors::new(stream, peer, context.clone()));
    let Monitor { stalled, activity } = monitor;
    async move {
        let slot = ParkingSlot::new();
        let (service_activity, service_slot) = (activity.clone(), slot.clone());
        let mut service = service_fn(move |request: Request<Body>| {
            let guard = service_activity.busy();
            let (slot, version) = (service_slot.clone(), request.version());
            let response = envelope::answer(request, peer, routes.clone(), context.clone());
            // hyper reserves space for one such future as long as the connection lasts.
            Box::pin(response.map_ok(move |response| {
                slot.wrap(response.map(|body| BusyUntilDone::new(body, guard)), version)
            }))
        });
        let mut shutdown = closing.clone();
        let mut closed = PollOnWake::new(Box::pin(async {
            tokio::select! {
                biased;
                _ = shutdown.changed() => CloseReason::Shutdown,
                () = activity.idle_for(header_timeout) => CloseReason::PeerIdle,
            }
        }));
        let connection = loop {
            let connection = http1::Builder::new()
                // `closed` does it.
                .header_read_timeout(None)
                // Otherwise a caller who closes its sending side at once gets no response at all; `socket::PeerWatch`
                // notices those who left.
                .half_close(true)
                .max_buf_size(MAX_HEAD_BYTES)
                .serve_connection(io, service);
            let mut connection = Box::pin(connection);
            let parked = tokio::select! {
                biased;
                driven = slot.drive(connection.as_mut(), &stalled) => match driven {
                    Ok(parked) => parked,
                    Err(ended) => return log_end(peer, ended),
                },
                reason = &mut closed => match reason {
                    CloseReason::Shutdown => {
                        connection.as_mut().graceful_shutdown();
                        break connection;
                    }
                    CloseReason::PeerIdle => {
                        tracing::debug!(%peer, "connection closed: no request in time");
                        return;
                    }
                },
            };
            // In a block of its own, as what lives while the future waits takes a place in it.
            (io, service) = {
                let http1::Parts { mut io, read_buf, service, .. } = Pin::into_inner(connection).into_parts();
                io.rewind(&read_buf);
                (io, service)
            };
            match parking::finish(io.stream(), parked).await {
                Ok(true) if !closing.has_changed().unwrap_or(true) => {}
                Ok(_) => return log_end(peer, io.stream().shutdown().await),
                Err(cause) => return log_end(peer, Err(cause)),
            }
        };
        tokio::select! {
            ended = connection => log_end(peer, ended),
            () = activity.idle_for(CLOSE_TIMEOUT) => tracing::debug!(%peer, "connection closed: idle"),
        }
    }
}

async fn serve_http2<S>(stream: S, activity: Activity, terms: &Terms)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (peer, routes, context) = (terms.peer, terms.routes.clone(), terms.context.clone());
    let (options, mut closing) = (context.options.clone(), terms.closing.clone());
    let service_activity = activity.clone();
    let service = service_fn(move |request: Request<Body>| {
        let (activity, guard) = (service_activity.clone(), service_activity.busy());
        let is_head = request.method() == Method::HEAD;
        let response = envelope::answer(request, peer, routes.clone(), context.clone());
        response.map_ok(move |response| {
            let response = if is_head { reply::without_body(response) } else { response };
            response.map(|body| InPieces::new(BusyWhilePolled::new(body, activity, guard)))
        })
    });
    let connection = http2::Builder::new(StreamExecutor::new(options.write_timeout))
        .timer(TokioTimer::new())
        .keep_alive_interval(options.header_timeout)
        .keep_alive_timeout(options.write_timeout)
        .max_concurrent_streams(128)
        .max_header_list_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = Box::pin(connection);
    tokio::select! {
        ended = connection.as_mut() => return log_end(peer, ended),
        _ = closing.changed() => connection.as_mut().graceful_shutdown(),
        () = activity.idle_for(options.header_timeout.max(options.write_timeout)) => {
            tracing::debug!(%peer, "connection closed: the peer neither sends nor reads");
            connection.as_mut().graceful_shutdown();
            // A peer that takes nothing does not take the `GOAWAY` either.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection).await;
            return;
        }
    }
    log_end(peer, connection.await);
}

fn log_end(peer: SocketAddr, ended: Result<(), impl Display>) {
    if let Err(cause) = ended {
        tracing::debug!(%peer, %cause, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With what its task adds, it must fit into the allocator's size class of 1,792: ten thousand connections may wait.
    #[test]
    fn the_future_of_a_connection_is_small() {
        fn size<'a, F>(_: impl FnOnce(TcpStream, &'a Terms) -> F) -> usize {
            size_of::<F>()
        }
        let size = size(serve) + size_of::<Terms>() + 144;
        assert!(size <= 1792, "{size}");
    }
}
