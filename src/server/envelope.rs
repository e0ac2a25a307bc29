//! What every request gets, whatever its route: its id, the headers common to all responses, whether the connection can
//! be kept alive, its record, and a response even when a handler panics.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use http::{HeaderValue, Request, Version, header};
use hyper::body::Incoming as Body;
use warp::reply::Response;

use super::reply::{self, ApiError, ErrorCode, Reply, SentCode};
use super::request::header_names;
use super::request::incoming::Incoming;
use super::request::record::OK;
use super::routes::Routes;
use super::{ServerState, gate};
use crate::api::endpoint::Door;
use crate::log_scope::LogScope;
use crate::net::inbound::framing;
use crate::net::inbound::unread_body::{self, TrackedBody};

/// Answers one request. Not an `async fn`, which would store the request twice while it waits.
pub(crate) fn answer(
    mut request: Request<Body>,
    peer: SocketAddr,
    routes: Routes,
    context: Arc<ServerState>,
) -> impl Future<Output = Result<Response, Infallible>> {
    let incoming = Incoming::new(&mut request, peer, &context.app);
    async move {
        let version = request.version();
        let (reply, keep_alive) = if framing::is_ambiguous(version, &incoming.headers) {
            (ApiError::from(ErrorCode::MalformedRequest).into_reply(&incoming), false)
        } else {
            let (request, remainder) = unread_body::track(request, &incoming.headers);
            let reply = route(request, &incoming, &routes).await;
            (reply, remainder.discard().await)
        };
        let closes = !keep_alive && version <= Version::HTTP_11;
        Ok(finish(reply, closes, &incoming, &context))
    }
}

/// Adds what all responses have to one; `closes` is whether its connection ends with it.
fn finish(reply: Reply, closes: bool, incoming: &Incoming, context: &ServerState) -> Response {
    let Reply { mut response, rate, error } = reply;
    let rate = rate.unwrap_or_else(|| {
        gate::open_page_state(&context.app, &incoming.configured, incoming.address).into()
    });
    reply::write_rate_headers(response.headers_mut(), &rate);
    if let Ok(id) = HeaderValue::from_str(&incoming.request_id) {
        if incoming.door == Door::Anthropic {
            response.headers_mut().insert(&header_names::MESSAGES_REQUEST_ID, id.clone());
        }
        response.headers_mut().insert(&header_names::REQUEST_ID, id);
    }
    if closes {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    match error {
        Some(SentCode(code)) => incoming.record.set_status(response.status(), code),
        None => incoming.record.set_status(response.status(), OK),
    }
    response
}

/// Passes a request to its route; 500 if the handler panics.
fn route<'a>(
    request: Request<TrackedBody>,
    incoming: &'a Incoming,
    routes: &'a Routes,
) -> impl Future<Output = Reply> + 'a {
    let scope = LogScope::of_request(incoming.request_id.clone());
    let answering = scope.around(routes.answer(request, incoming));
    AssertUnwindSafe(answering).catch_unwind().map(|outcome| {
        outcome.unwrap_or_else(|_panic| {
            let path = incoming.record.path();
            tracing::error!(request_id = %incoming.request_id, path, "a handler panicked");
            ApiError::from(ErrorCode::Internal).into_reply(incoming)
        })
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use warp::Filter;

    use super::*;
    use crate::app::AppState;
    use crate::clock::{Clock, Time};
    use crate::config::{Env, ServerArgs, load_server};
    use crate::server::{Options, connection};

    #[tokio::test]
    async fn a_handler_that_panics_gives_a_response_and_keeps_the_connection() {
        let now = Time::from_unix_ms(1_795_202_760_000);
        let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
        let config = load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], now)).unwrap();
        let app = Arc::new(AppState::in_memory(&config, Clock::manual(now)).unwrap());
        let context = Arc::new(ServerState::new(app, Options::default()));
        let panics = warp::any().map(|| -> Response { panic!("a secret of the handler") }).boxed();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let (closing, closed) = tokio::sync::watch::channel(());
        let routes = Routes::only(context.clone(), panics);
        let terms = connection::Terms { peer, routes, context, closing: closed };
        tokio::spawn(async move { connection::serve(stream, &terms).await });
        caller
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx-request-id: mine\r\n\r\n".repeat(2).as_slice())
            .await
            .unwrap();
        caller.shutdown().await.unwrap();
        let mut answers = String::new();
        caller.read_to_string(&mut answers).await.unwrap();
        drop(closing);

        assert_eq!(answers.matches("HTTP/1.1 500 Internal Server Error\r\n").count(), 2, "{answers}");
        assert_eq!(answers.matches("\r\nx-request-id: mine\r\n").count(), 2);
        assert_eq!(answers.matches("\r\nx-ratelimit-remaining: 600\r\n").count(), 2);
        assert!(answers.contains(r#""code":"internal","request_id":"mine""#) && !answers.contains("secret"));
    }
}
