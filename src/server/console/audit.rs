//! `GET /v1/audit`: who did what, when, to which object.

use http::StatusCode;
use warp::reply::Response;

use super::{Call, page};
use crate::api::console::AuditEntry;
use crate::server::reply::{self, ApiError};
use crate::storage::{AuditFilter, AuditRow, Span};

/// `GET /v1/audit`, newest first.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let mut query = call.query()?;
    let span = query.span("aud")?;
    let filter = AuditFilter {
        object: query.text("object"),
        actor: query.text("actor"),
        action: query.text("action"),
    };
    query.finish(&["object", "actor", "action", "limit", "cursor"])?;
    let limit = span.limit;
    let more = Span { limit: limit + 1, ..span };
    let rows = call.read(move |store, _| store.audit(&filter, &more)).await?;
    let entries = rows.into_iter().map(entry).collect();
    Ok(reply::json(StatusCode::OK, &page(entries, limit, |entry: &AuditEntry| &entry.id)))
}

fn entry(row: AuditRow) -> AuditEntry {
    AuditEntry {
        id: row.id,
        at: row.at.rfc3339(),
        actor: row.actor,
        actor_name: row.actor_name,
        channel: row.channel,
        action: row.action,
        object: row.object,
        object_name: row.object_name,
        details: row.details,
        address: row.address,
        request_id: row.request_id,
    }
}
