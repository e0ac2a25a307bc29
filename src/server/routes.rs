//! Every address of the server, on one screen.
//!
//! Routes never reject after their method matched: handlers answer, errors included. Behind the routes stand, for each
//! address, the answer to other methods (405 with `Allow`), and at the end the answer to everything else (404), so
//! that warp's own rejections are never seen.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, path};

use super::incoming::Incoming;
use super::reply::{Answer, ApiError};
use super::{Context, chat, console, dashboard, gate, health, metrics, models, openapi, unread, verify};

/// Where nearly all requests of a busy server go.
const COMPLETIONS: &str = "/inference/v1/chat/completions";
/// Where those who look after it ask, all the time.
const HEALTH: [(&str, health::Page); 2] =
    [("/inference/v1/health", health::inference), ("/verify/v1/health", health::verify)];

/// Every address.
#[derive(Clone)]
pub(crate) struct Routes {
    context: Arc<Context>,
    filters: BoxedFilter<(Response,)>,
}

impl Routes {
    /// Those of a server.
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { context: context.clone(), filters: all(context) }
    }

    /// Answers a request. One for a completion or a health page goes where its filter would lead it, without what filters
    /// do with a request on the way: a twentieth of a completion's work, a sixth of a health page's.
    pub(crate) async fn answer(&self, mut request: Request<unread::Body>, incoming: &Incoming) -> Answer {
        let path = request.uri().path();
        if request.method() == Method::POST && path == COMPLETIONS {
            let body = request.into_body().into_data_stream();
            return Box::pin(chat::complete(&self.context, incoming, body)).await;
        }
        if request.method() == Method::GET
            && let Some((_, page)) = HEALTH.into_iter().find(|(address, _)| path == *address)
        {
            return Box::pin(health::answer(&self.context, incoming, page)).await;
        }
        request.extensions_mut().insert(incoming.clone());
        let service = TowerToHyperService::new(warp::service(self.filters.clone()));
        match Box::pin(service.call(request)).await {
            Ok(response) => response.into(),
            Err(never) => match never {},
        }
    }

    /// A server's, of which nothing is there but this.
    #[cfg(test)]
    pub(crate) const fn only(context: Arc<Context>, filters: BoxedFilter<(Response,)>) -> Self {
        Self { context, filters }
    }
}

/// All routes, hot ones first. `crate::metrics::ROUTES` names those that are counted by name.
fn all(context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    let read = warp::get().or(warp::head()).unify().boxed();
    let stream = path!("verify" / "v1" / "stream").boxed();
    let verify_health = path!("verify" / "v1" / "health").boxed();
    let inference_health = path!("inference" / "v1" / "health").boxed();
    let completions = path!("inference" / "v1" / "chat" / "completions").boxed();
    let model_list = path!("inference" / "v1" / "models").boxed();
    let one_model = path!("inference" / "v1" / "models" / ..).boxed();
    let counted = path!("metrics").boxed();
    let description = path!("openapi.json").boxed();

    any_of([
        chat::route(completions.clone().and(warp::post()).boxed(), context),
        verify::route(stream.clone().and(warp::post()).boxed(), context),
        health_page(verify_health.clone().and(read.clone()).boxed(), context, health::verify),
        health_page(inference_health.clone().and(read.clone()).boxed(), context, health::inference),
        models::route(model_list.clone().and(read.clone()).boxed(), context),
        models::one(one_model.clone().and(read.clone()).boxed(), context),
        metrics::route(counted.clone().and(read.clone()).boxed(), context),
        openapi::route(description.clone().and(read).boxed(), context),
        console::route(context),
        dashboard::route(context),
        refuse(completions, context, || ApiError::method_not_allowed("POST")),
        refuse(model_list, context, || ApiError::method_not_allowed("GET, HEAD")),
        refuse(one_model, context, || ApiError::method_not_allowed("GET, HEAD")),
        refuse(counted, context, || ApiError::method_not_allowed("GET, HEAD")),
        refuse(description, context, || ApiError::method_not_allowed("GET, HEAD")),
        refuse(stream, context, || ApiError::method_not_allowed("POST")),
        refuse(verify_health, context, || ApiError::method_not_allowed("GET, HEAD")),
        refuse(inference_health, context, || ApiError::method_not_allowed("GET, HEAD")),
        refuse(warp::any().boxed(), context, ApiError::unknown_route).map(dashboard::guarded).boxed(),
    ])
}

/// What a handler needs of every request.
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

fn refuse(
    route: BoxedFilter<()>,
    context: &Arc<Context>,
    error: fn() -> ApiError,
) -> BoxedFilter<(Response,)> {
    route
        .and(with_context(context))
        .then(move |context: Arc<Context>, incoming: Incoming| async move {
            let error = match gate::open(&context.app, &incoming).await {
                Ok(rate) => error().with_rate(rate),
                Err(refused) => refused,
            };
            error.into_response(&incoming.request_id)
        })
        .boxed()
}

/// Put together from the end, so that a request for the first route passes through one choice and not through all.
fn any_of<const N: usize>(routes: [BoxedFilter<(Response,)>; N]) -> BoxedFilter<(Response,)> {
    let mut routes = routes.into_iter().rev();
    let last = routes.next().unwrap_or_else(|| warp::any().map(Response::default).boxed());
    routes.fold(last, |rest, route| route.or(rest).unify().boxed())
}
