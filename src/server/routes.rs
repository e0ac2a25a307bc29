//! From a request to the handler of its endpoint: each of [`Endpoint`] has its arm in [`dispatch`], or in that of the
//! console. Whatever no endpoint takes is refused here: 404, or 405 with `Allow`.
//!
//! warp takes requests apart, and one filter takes them all: a filter for each path would be tried in turn, and its
//! rejections would have to be turned into our errors again.

use std::sync::Arc;

use bytes::Buf;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream};
use http::{HeaderValue, Method, Uri, header};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::endpoints::messages::Purpose;
use super::endpoints::{
    chat, console, dashboard, docs, embeddings, health, messages, metrics, models, openapi, receipt_key,
    responses, verify,
};
use super::reply::{ApiError, ErrorCode, Reply};
use super::request::incoming::Incoming;
use super::{ServerState, gate};
use crate::api::endpoint::Endpoint;
use crate::net::inbound::unread_body::TrackedBody;
use crate::verify::Work;

/// All routes.
#[derive(Clone)]
pub(crate) struct Routes {
    context: Arc<ServerState>,
    filters: BoxedFilter<(Response,)>,
}

impl Routes {
    /// The routes of a server.
    pub(crate) fn new(context: &Arc<ServerState>) -> Self {
        Self { context: context.clone(), filters: all(context) }
    }

    /// Answers a request. Completions and health pages, which monitoring polls all the time, bypass warp and go
    /// straight to their handlers: through the filters, a completion takes 4 % more instructions, and a health page 16 %
    /// (28 November 2026).
    pub(crate) fn answer<'a>(
        &'a self,
        mut request: http::Request<TrackedBody>,
        incoming: &'a Incoming,
    ) -> BoxFuture<'a, Reply> {
        match incoming.endpoint {
            Some(Endpoint::ChatCompletions | Endpoint::OpenAiChatCompletions)
                if request.method() == Method::POST =>
            {
                let body = request.into_body().into_data_stream();
                return Box::pin(chat::complete(&self.context, incoming, body));
            }
            Some(Endpoint::Responses) if request.method() == Method::POST => {
                let body = request.into_body().into_data_stream();
                return Box::pin(responses::create(&self.context, incoming, body));
            }
            Some(Endpoint::VerifyHealth) if request.method() == Method::GET => {
                return Box::pin(health::answer(&self.context, incoming, health::verify));
            }
            Some(Endpoint::InferenceHealth) if request.method() == Method::GET => {
                return Box::pin(health::answer(&self.context, incoming, health::inference));
            }
            _ => {}
        }
        let uri = request.uri().clone();
        request.extensions_mut().insert(uri);
        request.extensions_mut().insert(incoming.clone());
        let service = TowerToHyperService::new(warp::service(self.filters.clone()));
        Box::pin(service.call(request).map(|answered| match answered {
            Ok(response) => response.into(),
            Err(never) => match never {},
        }))
    }

    /// The routes of a server under test: these filters alone.
    #[cfg(test)]
    pub(crate) const fn only(context: Arc<ServerState>, filters: BoxedFilter<(Response,)>) -> Self {
        Self { context, filters }
    }
}

/// A request that has been taken apart, but for its body.
pub(crate) struct Request {
    pub(crate) context: Arc<ServerState>,
    pub(crate) incoming: Incoming,
    pub(crate) method: Method,
    /// With path and query as they came, percent-encoded.
    pub(crate) uri: Uri,
}

impl Request {
    /// The query string, without the question mark.
    pub(crate) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }
}

fn all(context: &Arc<ServerState>) -> BoxedFilter<(Response,)> {
    let context = context.clone();
    warp::method()
        .and(warp::ext::get::<Uri>())
        .and(warp::ext::get::<Incoming>())
        .and(warp::body::stream())
        .then(move |method, uri, incoming, body| {
            dispatch(Request { context: context.clone(), incoming, method, uri }, body)
        })
        .boxed()
}

/// Calls the handler of an endpoint. Its futures are boxed where they are large, as every request reserves space for
/// the largest.
async fn dispatch<B: Buf + Send>(
    request: Request,
    body: impl Stream<Item = Result<B, warp::Error>> + Send,
) -> Response {
    let Request { context, incoming, method, uri } = &request;
    let path = uri.path();
    let exists = |endpoint: &Endpoint| match endpoint {
        Endpoint::Asset => dashboard::has(endpoint.ids(path)[0]),
        Endpoint::Topic => docs::has(path),
        _ => true,
    };
    let Some(endpoint) = incoming.endpoint.filter(exists) else {
        return reject(&request, ApiError::from(ErrorCode::UnknownRoute)).await;
    };
    // Codex goes on with POST at once after this status, and only after seven attempts in 6 s after 404 or 405.
    if endpoint == Endpoint::Responses
        && *method == Method::GET
        && incoming.headers.contains_key(header::UPGRADE)
    {
        return reject(&request, ErrorCode::WebSocketUnsupported.into()).await;
    }
    if !endpoint.allows(method.as_str()) {
        return reject(&request, ApiError::method_not_allowed(endpoint.methods())).await;
    }
    let [id, _] = endpoint.ids(path);
    let answered = match endpoint {
        Endpoint::ChatCompletions | Endpoint::OpenAiChatCompletions => {
            Ok(Box::pin(chat::complete(context, incoming, body)).await.into())
        }
        Endpoint::Responses => Ok(Box::pin(responses::create(context, incoming, body)).await.into()),
        Endpoint::Embeddings | Endpoint::OpenAiEmbeddings => {
            Box::pin(embeddings::create(context, incoming, body)).await
        }
        Endpoint::Verify => Box::pin(verify::handle(context, incoming, body, Work::Verify)).await,
        Endpoint::Extract => Box::pin(verify::handle(context, incoming, body, Work::Extract)).await,
        Endpoint::VerifyHealth => Ok(health::answer(context, incoming, health::verify).await.into()),
        Endpoint::InferenceHealth | Endpoint::OpenAiBase | Endpoint::AnthropicBase => {
            Ok(health::answer(context, incoming, health::inference).await.into())
        }
        Endpoint::Models | Endpoint::OpenAiModels => models::list(context, incoming).await,
        Endpoint::Model | Endpoint::OpenAiModel => models::one(context, incoming, id).await,
        Endpoint::Messages => Box::pin(messages::create(context, incoming, body, Purpose::Answer)).await,
        Endpoint::CountTokens => Box::pin(messages::create(context, incoming, body, Purpose::Count)).await,
        Endpoint::AnthropicModels => messages::list(context, incoming, request.query()).await,
        Endpoint::AnthropicModel => messages::one(context, incoming, id).await,
        Endpoint::ReceiptKey => receipt_key::show(context, incoming).await,
        Endpoint::Metrics => metrics::show(context, incoming).await,
        Endpoint::OpenApi => openapi::show(context, incoming).await,
        Endpoint::Dashboard => Ok(dashboard::show(context, incoming, None).await),
        Endpoint::Asset => Ok(dashboard::show(context, incoming, Some(id)).await),
        Endpoint::Docs | Endpoint::Topic | Endpoint::Llms => Ok(docs::show(context, incoming, path).await),
        // What is left is the console's.
        _ => return Box::pin(console::handle(request, endpoint, body)).await,
    };
    answered.unwrap_or_else(|error| error.into_response(incoming))
}

/// Answers a request that no endpoint takes, which counts as one for an open page.
async fn reject(request: &Request, error: ApiError) -> Response {
    let error = match gate::open_page(&request.context.app, &request.incoming).await {
        Ok(rate) => error.with_rate(rate),
        Err(limited) => limited,
    };
    let mut response = error.into_response(&request.incoming);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    dashboard::with_security_headers(response)
}
