//! All routes of the server, on one screen.
//!
//! A route never rejects once its method has matched: handlers answer everything, errors included. After the routes
//! come the responses to other methods on each path (405 with `Allow`), and at the end the one to everything else
//! (404), so that warp's own rejections are never seen.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Method, Request};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, path};

use super::incoming::Incoming;
use super::reply::{ApiError, Reply};
use super::unread_body::TrackedBody;
use super::{
    Context, chat, console, dashboard, docs, gate, health, metrics, models, openapi, receipt_key, verify,
};
use crate::verify::Work;

/// The path of nearly all requests to a busy server.
const COMPLETIONS: &str = "/inference/v1/chat/completions";
/// The paths that monitoring polls all the time.
const HEALTH: [(&str, health::Page); 2] =
    [("/inference/v1/health", health::inference), ("/verify/v1/health", health::verify)];

/// All routes.
#[derive(Clone)]
pub(crate) struct Routes {
    context: Arc<Context>,
    filters: BoxedFilter<(Response,)>,
}

impl Routes {
    /// The routes of a server.
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { context: context.clone(), filters: all(context) }
    }

    /// Answers a request. Completions and health pages bypass warp's filters and go straight to their handlers:
    /// filtering is a twentieth of the work for a completion, and a sixth for a health page.
    pub(crate) fn answer<'a>(
        &'a self,
        mut request: Request<TrackedBody>,
        incoming: &'a Incoming,
    ) -> BoxFuture<'a, Reply> {
        let path = request.uri().path();
        if request.method() == Method::POST && path == COMPLETIONS {
            let body = request.into_body().into_data_stream();
            return Box::pin(chat::complete(&self.context, incoming, body));
        }
        if request.method() == Method::GET
            && let Some((_, page)) = HEALTH.into_iter().find(|(route, _)| path == *route)
        {
            return Box::pin(health::answer(&self.context, incoming, page));
        }
        request.extensions_mut().insert(incoming.clone());
        let service = TowerToHyperService::new(warp::service(self.filters.clone()));
        Box::pin(service.call(request).map(|answered| match answered {
            Ok(response) => response.into(),
            Err(never) => match never {},
        }))
    }

    /// The routes of a server under test: these filters alone.
    #[cfg(test)]
    pub(crate) const fn only(context: Arc<Context>, filters: BoxedFilter<(Response,)>) -> Self {
        Self { context, filters }
    }
}

/// All filters, hot ones first. `crate::metrics::ROUTES` lists those that are counted by name.
fn all(context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    let read = warp::get().or(warp::head()).unify().boxed();
    let stream = path!("verify" / "v1" / "stream").boxed();
    let extract = path!("verify" / "v1" / "extract").boxed();
    let verify_health = path!("verify" / "v1" / "health").boxed();
    let inference_health = path!("inference" / "v1" / "health").boxed();
    let receipt_key = path!("verify" / "v1" / "receipt-key").boxed();
    let completions = path!("inference" / "v1" / "chat" / "completions").boxed();
    let model_list = path!("inference" / "v1" / "models").boxed();
    let one_model = path!("inference" / "v1" / "models" / ..).boxed();
    let metrics_page = path!("metrics").boxed();
    let description = path!("openapi.json").boxed();

    any_of([
        chat::route(completions.clone().and(warp::post()).boxed(), context),
        verify::route(stream.clone().and(warp::post()).boxed(), context, Work::Verify),
        verify::route(extract.clone().and(warp::post()).boxed(), context, Work::Extract),
        health_page(verify_health.clone().and(read.clone()).boxed(), context, health::verify),
        health_page(inference_health.clone().and(read.clone()).boxed(), context, health::inference),
        receipt_key::route(receipt_key.clone().and(read.clone()).boxed(), context),
        models::route(model_list.clone().and(read.clone()).boxed(), context),
        models::one(one_model.clone().and(read.clone()).boxed(), context),
        metrics::route(metrics_page.clone().and(read.clone()).boxed(), context),
        openapi::route(description.clone().and(read).boxed(), context),
        console::route(context),
        dashboard::route(context),
        docs::route(context),
        respond_with(completions, context, || ApiError::method_not_allowed("POST")),
        respond_with(model_list, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(one_model, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(metrics_page, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(description, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(stream, context, || ApiError::method_not_allowed("POST")),
        respond_with(extract, context, || ApiError::method_not_allowed("POST")),
        respond_with(verify_health, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(receipt_key, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(inference_health, context, || ApiError::method_not_allowed("GET, HEAD")),
        respond_with(warp::any().boxed(), context, ApiError::unknown_route)
            .map(dashboard::with_security_headers)
            .boxed(),
    ])
}

/// Extracts what every handler needs.
pub(crate) fn with_context(context: &Arc<Context>) -> BoxedFilter<(Arc<Context>, Incoming)> {
    let context = context.clone();
    warp::any().map(move || context.clone()).and(warp::ext::get::<Incoming>()).boxed()
}

fn health_page(
    route: BoxedFilter<()>,
    context: &Arc<Context>,
    page: health::Page,
) -> BoxedFilter<(Response,)> {
    route
        .and(with_context(context))
        .then(move |context: Arc<Context>, incoming: Incoming| async move {
            health::answer(&context, &incoming, page).await.into()
        })
        .boxed()
}

fn respond_with(
    route: BoxedFilter<()>,
    context: &Arc<Context>,
    error: fn() -> ApiError,
) -> BoxedFilter<(Response,)> {
    route
        .and(with_context(context))
        .then(move |context: Arc<Context>, incoming: Incoming| async move {
            let error = match gate::open_page(&context.app, &incoming).await {
                Ok(rate) => error().with_rate(rate),
                Err(limited) => limited,
            };
            error.into_response(&incoming.request_id)
        })
        .boxed()
}

/// Combines routes from the last to the first, so that a request for the first one passes a single `or`, not all of
/// them.
fn any_of<const N: usize>(routes: [BoxedFilter<(Response,)>; N]) -> BoxedFilter<(Response,)> {
    let mut routes = routes.into_iter().rev();
    let last = routes.next().unwrap_or_else(|| warp::any().map(Response::default).boxed());
    routes.fold(last, |rest, route| route.or(rest).unify().boxed())
}
