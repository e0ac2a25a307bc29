//! `GET /verify/v1/receipt-key`: the public key by which receipts of this server are checked, for everybody: whoever
//! gets a receipt need not be a caller.

use http::StatusCode;
use warp::reply::Response;

use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate, with_rate};

/// Answers a request for the key.
pub(crate) async fn show(context: &ServerState, incoming: &Incoming) -> Response {
    let rate = match gate::open_page(&context.app, incoming).await {
        Ok(rate) => rate,
        Err(limited) => return limited.into_response(incoming),
    };
    match context.app.receipt_key().await {
        Ok(key) => with_rate(reply::json(StatusCode::OK, &key.public().document()), rate),
        Err(cause) => ApiError::from(cause).with_rate(rate).into_response(incoming),
    }
}
