//! One connection, from handshake to end, with a limit on every wait.
//!
//! HTTP/2 is spoken only after ALPN: to sniff the version would be one more wait for a silent peer. The peer's address is
//! put into each request's extensions, as warp does not know it under a loop of our own.
//!
//! Ten thousand connections may idle at once, so what one takes is kept small: whatever is large stands in a box of
//! its own that exists only while it is needed. A future that merely holds it by value would keep room for it, and for
//! every place it is moved to, as long as the connection lasts. hyper itself is such a large thing: while a stream is
//! silent, it is taken apart (see [`super::parked`]).
//!
//! A peer that has stopped sending has left, whatever it may still read: what is ready reaches it, work under way is
//! dropped. A connection that we end is listened to for a moment longer, so that the last answer arrives.

use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use hyper::body::Incoming as Body;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::envelope;
use super::parked::{self, Berth, Line};
use super::poll_on_wake::PollOnWake;
use super::refusal::Refusals;
use super::reply;
use super::routes::Routes;
use super::socket;
use super::stall::{StallGuard, Stalled};
use super::turns::{InTurn, Turns, Underway};
use super::vanished;
use super::{Context, Tls};

/// For the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The largest head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// At the end: for a head that has begun to become a request, or for an HTTP/2 peer to take the goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// How a connection goes.
struct Course {
    stalled: Stalled,
    turns: Turns,
}

/// What ends a connection from beside.
enum Over {
    ServerEnds,
    PeerIdles,
}

/// Serves one connection until it ends, or until `closing` says to answer what is under way and end.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    routes: Routes,
    context: Arc<Context>,
    closing: watch::Receiver<()>,
) {
    let _open = context.app.metrics.http.connections.add_one();
    // Without it, Nagle's algorithm holds small frames back; a failure costs speed alone.
    let _ = stream.set_nodelay(true);
    vanished::give_up_on(&stream, context.options.write_timeout);
    let (socket, watch) = socket::split(stream);
    let turns = Turns::new();
    let stream = StallGuard::new(socket, context.options.write_timeout, turns.clone());
    let course = Course { stalled: stream.stalled(), turns };
    let mut ending = closing.clone();
    {
        let left = pin!(watch.left());
        tokio::select! {
            biased;
            () = speak(stream, course, peer, routes, context, closing) => {}
            () = PollOnWake::new(left) => return,
        }
    }
    tokio::select! {
        () = watch.linger() => {}
        _ = ending.changed() => {}
    }
}

async fn speak<S>(
    stream: S,
    course: Course,
    peer: SocketAddr,
    routes: Routes,
    context: Arc<Context>,
    closing: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match context.options.tls.clone() {
        None => speak_http1(stream, course, peer, routes, context, closing).await,
        Some(tls) => Box::pin(speak_tls(tls, stream, course, peer, routes, context, closing)).await,
    }
}

async fn speak_tls<S>(
    tls: Tls,
    stream: S,
    course: Course,
    peer: SocketAddr,
    routes: Routes,
    context: Arc<Context>,
    mut closing: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let accepting = Box::pin(tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(stream)));
    let accepted = tokio::select! {
        accepted = accepting => accepted,
        _ = closing.changed() => return,
    };
    let Ok(Ok(stream)) = accepted else {
        tracing::debug!(%peer, "TLS handshake failed");
        return;
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(speak_http2(stream, course.turns, peer, routes, context, closing)).await;
    } else {
        Box::pin(speak_http1(stream, course, peer, routes, context, closing)).await;
    }
}

async fn speak_http1<S>(
    stream: S,
    course: Course,
    peer: SocketAddr,
    routes: Routes,
    context: Arc<Context>,
    closing: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let header_timeout = context.options.header_timeout;
    let mut line = Line::new(Refusals::new(stream, peer, context.clone()));
    let Course { stalled, turns } = course;
    let followed = turns.clone();
    let berth = Berth::new();
    let lender = berth.clone();
    let mut service = service_fn(move |request: Request<Body>| {
        let ours = followed.ours();
        let (lender, version) = (lender.clone(), request.version());
        let (routes, context) = (routes.clone(), context.clone());
        // hyper keeps room for one such future as long as the connection lasts.
        Box::pin(async move {
            let answer = envelope::answer(request, peer, routes, context).await;
            answer.map(|response| lender.lend(response.map(|body| Underway::new(body, ours)), version))
        })
    });
    let mut watched = closing.clone();
    let mut over = PollOnWake::new(Box::pin(async {
        tokio::select! {
            biased;
            _ = watched.changed() => Over::ServerEnds,
            () = turns.missed(header_timeout) => Over::PeerIdles,
        }
    }));
    let connection = loop {
        let connection = http1::Builder::new()
            // `over` sees to it.
            .header_read_timeout(None)
            // Otherwise a caller who stops sending at once gets no answer at all; `socket::Watch` sees to those who left.
            .half_close(true)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(line, service);
        let mut connection = Box::pin(connection);
        let silent = tokio::select! {
            biased;
            followed = berth.follow(connection.as_mut(), &stalled) => match followed {
                Ok(silent) => silent,
                Err(ended) => return log_end(peer, ended),
            },
            over = &mut over => match over {
                Over::ServerEnds => {
                    connection.as_mut().graceful_shutdown();
                    break connection;
                }
                Over::PeerIdles => {
                    tracing::debug!(%peer, "connection ended: no request came in time");
                    return;
                }
            },
        };
        let http1::Parts { io, read_buf, service: again, .. } = Pin::into_inner(connection).into_parts();
        line = io;
        line.put_back(&read_buf);
        service = again;
        drop(read_buf);
        match parked::finish(line.stream(), silent).await {
            Ok(true) if !closing.has_changed().unwrap_or(true) => {}
            Ok(_) => return log_end(peer, line.stream().shutdown().await),
            Err(cause) => return log_end(peer, Err(cause)),
        }
    };
    tokio::select! {
        ended = connection => log_end(peer, ended),
        () = turns.missed(GOODBYE) => tracing::debug!(%peer, "connection ended: no request is under way"),
    }
}

async fn speak_http2<S>(
    stream: S,
    turns: Turns,
    peer: SocketAddr,
    routes: Routes,
    context: Arc<Context>,
    mut closing: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let options = context.options.clone();
    let followed = turns.clone();
    let service = service_fn(move |request: Request<Body>| {
        let (turns, ours) = (followed.clone(), followed.ours());
        let is_head = request.method() == Method::HEAD;
        let answer = envelope::answer(request, peer, routes.clone(), context.clone());
        async move {
            answer.await.map(|response| {
                let response = if is_head { reply::head_of(response) } else { response };
                response.map(|body| InTurn::new(body, turns, ours))
            })
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
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
        () = turns.missed(options.header_timeout.max(options.write_timeout)) => {
            tracing::debug!(%peer, "connection ended: its peer sends and takes nothing");
            connection.as_mut().graceful_shutdown();
            // A peer that takes nothing does not take the goodbye either.
            let _ = tokio::time::timeout(GOODBYE, connection).await;
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
