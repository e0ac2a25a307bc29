//! `GET /verify/v1/receipt-key`: the public key by which receipts of this server are checked, for everybody: whoever
//! gets a receipt need not be a caller.

use http::StatusCode;
use warp::reply::Response;

use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};

/// Answers a request for the key.
pub(crate) async fn show(context: &ServerState, incoming: &Incoming) -> Result<Response, ApiError> {
    let rate = gate::open_page(&context.app, incoming).await?;
    let key = context.app.receipt_key().await;
    let answer = key.map(|key| reply::json(StatusCode::OK, &key.public().document()));
    reply::within(rate, answer.map_err(ApiError::from))
}
