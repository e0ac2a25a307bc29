//! One request and its answer, written down as they happen.

use std::time::Duration;

use reqwest::RequestBuilder;
use tokio::time::timeout;

use super::Place;
use crate::book::Seen;
use crate::token;

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Sends a request and reads its answer, for as long as `patience` lasts; then the caller leaves, which closes its
/// connection. `None` also if the answer breaks off.
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
        book.see(token, Seen::Begun(status));
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.ok()? {
            body.extend_from_slice(&piece);
        }
        book.see(token, Seen::Whole(status));
        Some(Answer { status, body: String::from_utf8(body).ok()? })
    };
    timeout(patience, whole).await.ok().flatten()
}
