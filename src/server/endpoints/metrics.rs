//! `GET /metrics`: the server's own metrics, for Prometheus.

use http::{HeaderValue, header};
use warp::reply::Response;

use crate::inference::{self, BreakerReport};
use crate::limits::StoreReading;
use crate::metrics::{Breaker, BreakerState, CONTENT_TYPE, LimitsStore, Readings, Spans};
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};
use crate::traces::Counts;

/// Answers a request for the page.
pub(crate) async fn show(context: &ServerState, incoming: &Incoming) -> Result<Response, ApiError> {
    let rate = gate::admit_operator(&context.app, incoming).await?;
    reply::within(rate, page(context, incoming).await)
}

fn breaker(report: BreakerReport) -> Breaker {
    let state = match report.state {
        inference::BreakerState::Closed => BreakerState::Closed,
        inference::BreakerState::HalfOpen => BreakerState::HalfOpen,
        inference::BreakerState::Open => BreakerState::Open,
    };
    Breaker { provider: report.provider, model: report.model, state }
}

fn limits_store(StoreReading { is_up, decided_alone }: StoreReading) -> LimitsStore {
    LimitsStore { is_up, decided_alone }
}

fn spans(Counts { sent, dropped, failed }: Counts) -> Spans {
    Spans { sent, dropped, failed }
}

async fn page(context: &ServerState, incoming: &Incoming) -> Result<Response, ApiError> {
    let app = &context.app;
    let readings = Readings {
        is_database_up: app.store.is_healthy().await,
        ledger_queue: app.ledger.queued_rows() as u64,
        ledger_rows_lost: app.ledger.lost_rows(),
        limits_store: app.limiter.store().map(limits_store),
        verdicts: app.verdicts.look_ups(),
        spans: app.traces.as_ref().map(|traces| spans(traces.counts())),
        breakers: incoming.configured.gateway.breakers().into_iter().map(breaker).collect(),
    };
    let page = app.metrics.page(&readings).map_err(|cause| {
        tracing::error!(%cause, "the metrics cannot be written");
        ApiError::from(ErrorCode::Internal)
    })?;
    let mut response = Response::new(page.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    Ok(response)
}
