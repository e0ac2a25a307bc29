//! `GET /verify/v1/receipt-key`: the public key by which receipts of this server are checked, for everybody: whoever gets
//! a receipt need not be a caller.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::incoming::Incoming;
use super::reply::ApiError;
use super::{Context, gate, reply, routes, with_rate};

/// The route; `filter` matches path and method.
pub(crate) fn route(filter: BoxedFilter<()>, context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    filter
        .and(routes::with_context(context))
        .then(|context: Arc<Context>, incoming: Incoming| async move {
            let rate = match gate::open_page(&context.app, &incoming).await {
                Ok(rate) => rate,
                Err(limited) => return limited.into_response(&incoming.request_id),
            };
            match context.app.receipt_key().await {
                Ok(key) => with_rate(reply::json(StatusCode::OK, &key.public().document()), rate),
                Err(cause) => ApiError::from(cause).with_rate(rate).into_response(&incoming.request_id),
            }
        })
        .boxed()
}
