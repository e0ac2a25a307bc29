//! One request and its response, recorded as they happen.

use std::time::Duration;

use reqwest::RequestBuilder;
use tokio::time::timeout;

use super::Place;
use crate::book::Seen;
use crate::token;

/// A whole response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Sends a request and reads its response until `patience` has passed; then the caller leaves, which closes its
/// connection. Also returns `None` if the response breaks off.
pub(super) async fn exchange(
    place: &Place,
    token: u64,
    request: RequestBuilder,
    patience: Duration,
) -> Option<Answer> {
    let book = &place.book;
    let whole = async {
        let mut response = request.header("x-request-id", token::id(token)).send().await.ok()?;
        let status = response.status().as_u16();
        book.see(token, Seen::Partly(status));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
        }
        book.see(token, Seen::Whole(status));
        Some(Answer { status, body: String::from_utf8(body).ok()? })
    };
    timeout(patience, whole).await.ok().flatten()
}
