//! `GET /v1/audit`: who did what to which object, and when.

use http::StatusCode;
use warp::reply::Response;

use super::{ConsoleRequest, page};
use crate::api::console::AuditEntry;
use crate::server::reply::{self, ApiError};
use crate::storage::{AuditFilter, PageRequest};

/// `GET /v1/audit`, newest first.
pub(super) async fn list(call: ConsoleRequest) -> Result<Response, ApiError> {
    let mut query = call.query()?;
    let span = query.page("aud")?;
    let filter = AuditFilter {
        object: query.text("object")?,
        object_name: query.text("object_name")?,
        app: query.text("app")?,
        actor: query.id("actor", "key")?,
        actor_name: query.text("actor_name")?,
        action: query.text("action")?,
    };
    query.finish(&["object", "object_name", "app", "actor", "actor_name", "action", "limit", "cursor"])?;
    let limit = span.limit;
    let more = PageRequest { limit: limit + 1, ..span };
    let rows = call.read(move |store, _| store.audit(&filter, &more)).await?;
    let entries = rows.into_iter().map(AuditEntry::from).collect();
    Ok(reply::json(StatusCode::OK, &page(entries, limit, |entry: &AuditEntry| &entry.id)))
}
