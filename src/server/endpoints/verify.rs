//! `POST /verify/v1/stream`: a verification as Server-Sent Events, or as one JSON document. `POST /verify/v1/extract`:
//! its extraction alone, as one JSON document or, for texts that take long, as Server-Sent Events.
//!
//! The verification runs in a task that the response body owns: when the caller leaves, the body is dropped, the task
//! is aborted, and with it every provider call. The body adds what only a stream needs: keep-alive comments, and the
//! terminal frame of a run that is aborted.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use warp::Reply;
use warp::reply::Response;

use crate::api::verify::{
    CACHE_HEADER, Domain, Event, Format, MAX_CONTEXT_CHARS, MAX_MODELS, MIN_REQUIRED, PROGRESS_HEADER,
};
use crate::api::{Service, sse};
use crate::clock::Time;
use crate::keys;
use crate::log_scope::LogScope;
use crate::net::inbound::parking;
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::in_flight::Registration;
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::incoming::{self, Incoming};
use crate::server::request::params::{Params, invalid};
use crate::server::request::record::{OK, Record};
use crate::usage::Meter;
use crate::verify::{self, EventResult, Job, PanelSettings, Verifier, Work};

/// Events that are buffered for a slow reader before the run slows down with it.
const EVENT_BUFFER: usize = 32;
/// What `asOf` may be.
const DATES: &str = "a date such as 2026-11-20, or an RFC 3339 time";

/// All parameters of a request.
pub(in crate::server) const PARAMETERS: [&str; 9] =
    ["fact", "domain", "minRequired", "totalModels", "asOf", "explain", "context", "format", "receipt"];

/// Answers a request for a verification, or for an extraction.
pub(crate) async fn handle<B: Buf>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, warp::Error>>,
    work: Work,
) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Verify).await?;
    reply::within(caller.rate, answer(context, &caller, incoming, body, work).await)
}

/// The most bytes that a character takes in JSON: as two escaped surrogates, `\ud83d\ude00`.
const MAX_CHAR_BYTES: usize = 12;
/// Room for all that is neither statement nor context.
const OTHER_BYTES: usize = 64 * 1024;

/// The size that a body needs at most for the longest statement and the longest context. Programs that write nothing
/// but ASCII (Python's `json.dumps`) escape every other character, so that a text is several times as large on the way:
/// whether it is too long is for its characters to say.
fn body_bytes(verifier: &Verifier) -> usize {
    let longest = [Domain::General, Domain::Legal].map(|domain| verifier.settings(domain).max_fact_chars);
    let chars = longest.into_iter().fold(0, usize::max).saturating_add(MAX_CONTEXT_CHARS);
    chars.saturating_mul(MAX_CHAR_BYTES).saturating_add(OTHER_BYTES)
}

/// Answers an admitted request.
pub(in crate::server) async fn answer<B: Buf>(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, warp::Error>>,
    work: Work,
) -> Result<Response, ApiError> {
    let bytes = body_bytes(&incoming.configured.verifier);
    let body = context.read_large_json(incoming, body, bytes).await?;
    let model_progress = incoming.headers.get(PROGRESS_HEADER).is_some_and(|value| value == "models");
    let (verifier, now) = (&incoming.configured.verifier, context.app.clock.now());
    let fresh = wants_fresh(&incoming.headers)?;
    let (job, wants_receipt) = read_job(&body, |domain| verifier.settings(domain), now, model_progress)?;
    let mut job = Job { work, fresh, ..job };
    check_models(verifier, caller, &job)?;
    if wants_receipt && work == Work::Verify {
        job.receipt = Some(context.app.receipt_key().await?);
    }

    let run = start(context, verifier.clone(), caller, job).await?;
    let is_document = match work {
        Work::Verify => incoming::wants_json(&incoming.headers),
        Work::Extract => !incoming::wants_events(&incoming.headers),
    };
    if is_document {
        return run.into_document().await;
    }
    let mut response = run.into_stream();
    parking::allow(response.extensions_mut(), &incoming.headers);
    Ok(response)
}

/// Whether the cache is not to be used.
fn wants_fresh(headers: &HeaderMap) -> Result<bool, ApiError> {
    let mut values = headers.get_all(CACHE_HEADER).iter();
    let first = values.next();
    if first.is_some_and(|value| value != "fresh") || values.next().is_some() {
        return Err(invalid(
            CACHE_HEADER,
            format!("the header `{CACHE_HEADER}` must be `fresh`, sent once, or be left out"),
        ));
    }
    Ok(first.is_some())
}

/// The verification that a body asks for, and whether it asks for a receipt.
pub(in crate::server) fn read_job<'s>(
    body: &[u8],
    settings: impl FnOnce(Domain) -> &'s PanelSettings,
    now: Time,
    model_progress: bool,
) -> Result<(Job, bool), ApiError> {
    let mut params = Params::parse(body)?;
    let fact = params.required_text("fact")?;
    let domain: Domain = params.parsed("domain", "`general` or `legal`", word)?.unwrap_or_default();
    let settings = settings(domain);
    if verify::is_blank(&fact) {
        return Err(invalid("fact", "`fact` is empty; send the statement to verify"));
    }
    let limit = settings.max_fact_chars;
    if fact.len() > limit && fact.chars().count() > limit {
        let length = fact.chars().count();
        let message = format!("`fact` has {length} characters, and the limit is {limit}; split the text");
        return Err(invalid("fact", message));
    }
    check_for_nul("fact", &fact)?;

    let min_required = params.whole_number("minRequired", MIN_REQUIRED)?.unwrap_or(2);
    let panel = panel_size(settings);
    if panel >= 2 && panel < min_required {
        return Err(invalid(
            "minRequired",
            format!(
                "`minRequired` is {min_required}, but only {panel} models are configured for this domain"
            ),
        ));
    }
    // Without a panel no number is right: that is an error of the server, below.
    let most = if panel >= 2 { panel } else { MAX_MODELS };
    let total_models = params
        .whole_number("totalModels", min_required..=most)
        .map_err(|error| error.with_suffix(&format!("; {panel} models are configured for this domain")))?
        .unwrap_or(panel.min(3));

    let as_of = params.parsed("asOf", DATES, Time::parse)?.unwrap_or(now);
    let explain = params.boolean("explain")?.unwrap_or(false);
    let text = params.text("context")?;
    // Without a context the models are asked what they know, which nobody who sends one wants.
    if text.as_deref().is_some_and(verify::is_blank) {
        return Err(invalid("context", "`context` is empty; send the text to answer from, or leave it out"));
    }
    if text.as_ref().is_some_and(|text| text.chars().count() > MAX_CONTEXT_CHARS) {
        return Err(invalid(
            "context",
            format!("`context` is longer than {MAX_CONTEXT_CHARS} characters; shorten it"),
        ));
    }
    text.as_deref().map_or(Ok(()), |text| check_for_nul("context", text))?;
    let format: Format = params.parsed("format", "`text` or `markdown`", word)?.unwrap_or_default();
    let wants_receipt = params.boolean("receipt")?.unwrap_or(false);
    params.finish(&PARAMETERS)?;

    if panel < 2 {
        return Err(ErrorCode::NoProviderAvailable.into());
    }
    let job = Job {
        id: crate::id::new("ver"),
        fact,
        format,
        domain,
        min_required,
        total_models,
        as_of,
        explain,
        context: text,
        work: Work::Verify,
        model_progress,
        fresh: false,
        receipt: None,
    };
    Ok((job, wants_receipt))
}

/// The value that a word stands for on the wire.
fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}

/// Refuses what no text has: without it, the words on both sides of it would be one, and with it, nobody could quote
/// them.
fn check_for_nul(param: &'static str, text: &str) -> Result<(), ApiError> {
    match text.find('\0') {
        None => Ok(()),
        Some(at) => {
            let at = text[..at].chars().count();
            let message =
                format!("`{param}` holds a NUL character (U+0000) at position {at}; send plain text");
            Err(invalid(param, message))
        }
    }
}

/// The maximum number of models for a request.
pub(in crate::server) fn panel_size(settings: &PanelSettings) -> u32 {
    u32::try_from(settings.panel.len()).map_or(MAX_MODELS, |size| size.min(MAX_MODELS))
}

/// Rejects a verification that might use a model that the key may not use.
fn check_models(verifier: &Verifier, caller: &Caller, job: &Job) -> Result<(), ApiError> {
    if caller.key.models.is_empty() {
        return Ok(());
    }
    match verifier.models(job).into_iter().find(|model| !keys::may_use(&caller.key, model)) {
        None => Ok(()),
        Some(model) => Err(ApiError::new(
            ErrorCode::ModelNotAllowed,
            format!(
                "this API key cannot use {model}, which this server verifies with; it is limited to {}",
                caller.key.models.join(", ")
            ),
        )),
    }
}

/// A verification in flight, with everything that ends when it is dropped.
struct Run {
    id: String,
    steps: mpsc::Receiver<Box<EventResult>>,
    registration: Registration,
    keep_alive: Duration,
    record: Arc<Record>,
    _task: AbortOnDropHandle<()>,
}

async fn start(
    context: &Arc<ServerState>,
    verifier: Arc<Verifier>,
    caller: &Caller,
    job: Job,
) -> Result<Run, ApiError> {
    let app = &context.app;
    let id = job.id.clone();
    let meter = Meter::new(caller.account(id.as_str()), app.accounting());
    caller.record.set_verification(&id, &meter);
    // If that fails, so does the check.
    let _ = meter.load_spending().await;
    if let Err(unpaid) = verifier.check_budget(&job, &meter)
        // What is known already costs nothing.
        && !verifier.knows(&job, &meter).await
    {
        return Err(unpaid.into());
    }
    let registration = gate::register(context, caller).await?;
    let (sender, steps) = mpsc::channel(EVENT_BUFFER);
    // The task keeps the record as well: when aborted, it books its usage after the response is dropped.
    let record = caller.record.clone();
    let task = async move {
        let _record = record;
        verifier.run(&job, &meter, sender).await;
    };
    let task = context.runs.spawn(LogScope::current().around(task));
    registration.set_work(task.abort_handle());
    Ok(Run {
        id,
        steps,
        registration,
        keep_alive: context.options.keep_alive,
        record: caller.record.clone(),
        _task: AbortOnDropHandle::new(task),
    })
}

impl Run {
    /// The next event. A run that is aborted, or that ends without a result, ends with an error.
    async fn next(&mut self) -> Result<Event, ApiError> {
        let step = tokio::select! {
            biased;
            reason = self.registration.aborted() => return Err(reason.into()),
            step = self.steps.recv() => step,
        };
        let Some(step) = step else {
            tracing::error!(id = self.id, "a verification ended without a result");
            return Err(ApiError::from(ErrorCode::Internal));
        };
        Ok((*step)?)
    }

    /// The response as a stream of frames.
    fn into_stream(self) -> Response {
        self.record.begin_stream();
        let mut response = warp::reply::stream(frames(self)).into_response();
        reply::set_stream_headers(response.headers_mut());
        response
    }

    /// The response as one document, once the run is complete.
    async fn into_document(mut self) -> Result<Response, ApiError> {
        loop {
            match self.next().await? {
                Event::Completed(result) => return Ok(reply::json(StatusCode::OK, &*result)),
                Event::Extracted(result) => return Ok(reply::json(StatusCode::OK, &*result)),
                _ => {}
            }
        }
    }
}

fn frames(run: Run) -> impl Stream<Item = serde_json::Result<Bytes>> {
    futures_util::stream::unfold(Some(run), |run| async move {
        let mut run = run?;
        let keep_alive_at = Instant::now() + run.keep_alive;
        tokio::select! {
            event = run.next() => {
                let event = event.unwrap_or_else(|error| Event::Error(error.into_event(&run.id)));
                let frame = event.frame();
                match &event {
                    Event::Completed(_) | Event::Extracted(_) => run.record.end_stream(OK),
                    Event::Error(error) => run.record.end_stream(error.code.clone()),
                    _ => {}
                }
                let is_over = event.is_terminal() || frame.is_err();
                Some((frame, (!is_over).then_some(run)))
            }
            () = sleep_until(keep_alive_at) => Some((Ok(sse::KEEP_ALIVE), Some(run))),
        }
    })
}
