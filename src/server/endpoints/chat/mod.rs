//! `POST /inference/v1/chat/completions`, and the same at `/openai/v1`: a model's answer, complete or as a stream.
//!
//! Documented fields of the request are checked, everything else is passed on (see `request`); the gateway produces the
//! answer. A success status is only sent once there is an answer, or the first event of a stream: whatever fails before
//! that gets an error status.
//!
//! Doors of other protocols translate their requests into this format, or pass them on as they are ([`ask_in`]), and
//! give the answer in their own: whatever holds for a completion holds for them. [`compose`] and
//! [`given`] are what their translations share.

pub(in crate::server) mod compose;
pub(in crate::server) mod given;
mod guard;
mod kept;
mod limited;
mod message;
mod native;
pub(super) mod request;
pub(in crate::server) mod stream;
mod told;

pub(in crate::server) use guard::{FIELD as VERIFICATION, with_verification};
pub(in crate::server) use message::ROLES;
pub(in crate::server) use native::{Native, Translation, ask_in};
pub(in crate::server) use request::{
    MAX_TOKENS, TEMPERATURE, boolean, invalid, missing, object, read, whole,
};
pub(in crate::server) use told::Told;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::{HeaderMap, HeaderValue};
use memchr::memmem;
use warp::reply::Response;

use crate::api::Service;
use crate::inference::{ChatAnswer, ChatReply, CompletionRequest, Conversation, Json, estimate};
use crate::keys;
use crate::net::workers::yield_to_ready;
use crate::server::ServerState;
use crate::server::endpoints::asked_models::AskedModels;
use crate::server::gate::{self, Caller};
use crate::server::in_flight::Registration;
use crate::server::reply::{self, ApiError, Reply};
use crate::server::request::header_names;
use crate::server::request::incoming::Incoming;
use crate::usage::Meter;

/// If a body takes longer than this to arrive, its key is checked again: it may have been revoked meanwhile.
const SLOW_BODY: Duration = Duration::from_millis(50);

/// Answers a request for a completion, behind any door that has this format.
pub(crate) async fn complete<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Reply {
    let caller = match gate::admit(&context.app, incoming, Service::Inference).await {
        Ok(caller) => caller,
        Err(refused) => return refused.into_reply(incoming),
    };
    match answer(context, &caller, incoming, body).await {
        Ok(response) => Reply { rate: Some(caller.rate.into()), ..response.into() },
        Err(error) => error.with_rate(caller.rate).into_reply(incoming),
    }
}

/// Answers an admitted request.
pub(in crate::server) async fn answer<B: Buf, E>(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Result<Response, ApiError> {
    let body = context.read_inference_json(incoming, body).await?;
    let Answered { about, answer } = ask(context, caller, incoming, &body).await?;
    let mut response = match answer {
        Answer::Whole(completion) | Answer::Native(completion) => {
            reply::json_bytes(with_verification(completion, about.verification.as_deref()))
        }
        Answer::Stream(stream) => stream.into_response(None),
    };
    about.write(response.headers_mut());
    Ok(response)
}

/// A model's answer, and what is known about it.
pub(in crate::server) struct Answered {
    pub(in crate::server) about: About,
    pub(in crate::server) answer: Answer,
}

/// An answer, in the chat-completion format unless it is one to a native request.
pub(in crate::server) enum Answer {
    /// A `chat.completion` object.
    Whole(Bytes),
    /// The whole answer to a native request, in its protocol.
    Native(Bytes),
    /// A stream that has begun.
    Stream(Box<stream::Stream>),
}

/// What the headers tell about an answer.
pub(in crate::server) struct About {
    /// The full identifier of the model that answers.
    pub(in crate::server) model: Arc<str>,
    attempts: u32,
    /// The names of what was left out of the request.
    pub(in crate::server) left_out: Vec<String>,
    /// The estimated length of the prompt in tokens.
    pub(in crate::server) prompt_tokens: u64,
    /// Whether it is one that was kept, if that was asked for.
    cache: Option<kept::Mark>,
    /// What was found about a whole answer, as JSON, if that was asked for.
    pub(in crate::server) verification: Option<Box<str>>,
}

impl About {
    /// Adds the headers.
    pub(in crate::server) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(&header_names::ATTEMPTS, HeaderValue::from(self.attempts));
        if let Ok(model) = HeaderValue::from_str(&self.model) {
            headers.insert(&header_names::MODEL, model);
        }
        if !self.left_out.is_empty() {
            headers.insert(&header_names::DROPPED, dropped(&self.left_out));
        }
        if let Some(mark) = self.cache {
            mark.write(headers);
        }
    }
}

/// Asks a model for the completion that `body` describes, within what the key may use and pay for.
pub(in crate::server) async fn ask(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    body: &Bytes,
) -> Result<Answered, ApiError> {
    let (model, completion) = read(body)?;
    ask_for(context, caller, incoming, (&model, &completion), &Told::by(&completion.fields), body).await
}

/// As [`ask`], for what was read of `body`: the model and the request; and what the caller told of it.
pub(in crate::server) async fn ask_for(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    (model, completion): (&str, &CompletionRequest<'_>),
    told: &Told,
    body: &Bytes,
) -> Result<Answered, ApiError> {
    let keep_for = kept::wanted(&incoming.headers, caller)?;
    let (gateway, limits) = (&incoming.configured.gateway, &caller.end_users(incoming));
    let account = caller.account_with(incoming.request_id.clone(), told.labels(caller, limits), limits);
    if let Some(end_user) = account.end_user() {
        // Boxed, so that requests for nobody reserve no space for it.
        Box::pin(gate::admit_end_user(&context.app, caller, limits.quota, end_user)).await?;
    }
    let has_budget = account.budget.is_set();
    let conversation = || Conversation::of(&completion.fields, header_names::session(&incoming.headers));
    let asked = AskedModels::of(gateway, caller, has_budget, model, conversation)?;
    if has_budget || keys::is_limited_to_models(&caller.key) {
        limited::check(&completion.fields, has_budget)?;
    }
    // The key was checked when the request began, which is enough for a complete answer; a stream takes long, and so
    // may a body.
    let registration = if completion.stream || incoming.record.age() > SLOW_BODY {
        gate::register(context, caller).await?
    } else {
        context.in_flight.register(&caller.key.id, caller.key.expires_at)
    };
    let meter = Meter::new(account, context.app.accounting());
    let watch = guard::Watch::of(context, caller, incoming, (&asked.requested, completion), &meter);
    let place = keep_for.filter(|_| !completion.stream);
    let request = (&asked, completion.native.as_deref(), &**body);
    let place = place.and_then(|time| kept::Place::of(context, caller, incoming, request, time));
    if let Some(place) = &place
        // Boxed, as only these requests need room for it.
        && let Some(found) = Box::pin(place.find(caller, &meter, gateway)).await
    {
        return guarded(watch, caller, found).await;
    }
    if let Some(watch) = &watch {
        // Boxed, as only these requests need room for it.
        Box::pin(watch.check_budget()).await?;
    }
    let call = (completion, body);
    let mut answered = run(context, caller, incoming, call, asked, registration, &meter).await?;
    if let Some(place) = &place {
        place.keep(&answered, gateway);
        answered.about.cache = Some(kept::Mark::Miss);
    } else if keep_for.is_some() {
        answered.about.cache = Some(kept::Mark::Bypass);
    }
    guarded(watch, caller, answered).await
}

/// Has an answer verified, if it is under guard.
async fn guarded(
    watch: Option<Box<guard::Watch>>,
    caller: &Caller,
    answered: Answered,
) -> Result<Answered, ApiError> {
    match watch {
        None => Ok(answered),
        // Boxed, as only these requests need room for it.
        Some(watch) => Box::pin(watch.over(caller, answered)).await,
    }
}

/// The estimated length in tokens of the prompt of the completion that `body` describes, if the key may ask for it:
/// texts and tools, and a fixed number for each image.
pub(in crate::server) fn prompt_tokens(
    caller: &Caller,
    incoming: &Incoming,
    body: &[u8],
) -> Result<u64, ApiError> {
    let (model, completion) = read(body)?;
    AskedModels::of(&incoming.configured.gateway, caller, caller.has_budget(), &model, || None)?;
    let tools = completion.fields.get("tools").map_or(0, |tools| estimate::characters(tools.get()));
    let messages = completion.fields.get("messages").map_or("", Json::get);
    let images = memmem::find_iter(messages.as_bytes(), b"\"image_url\":{").count() as u64;
    let others = estimate::length_tokens(tools).saturating_add(images * estimate::TOKENS_PER_IMAGE);
    Ok(completion.prompt_tokens.saturating_add(others))
}

async fn run(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    (completion, body): (&CompletionRequest<'_>, &Bytes),
    AskedModels { requested, chain }: AskedModels,
    mut registration: Registration,
    meter: &Meter,
) -> Result<Answered, ApiError> {
    let token = context.runs.token();
    caller.record.set_completion(requested, meter);
    let answered = tokio::select! {
        biased;
        answered = incoming.configured.gateway.chat(completion, body, chain, meter) => answered?,
        reason = registration.aborted() => return Err(reason.into()),
    };
    let ChatAnswer { model, attempts, reply, left_out } = answered;
    caller.record.set_answering_model(model.clone());
    let answer = match reply {
        ChatReply::Whole(body) => {
            yield_to_ready().await;
            Answer::Whole(body)
        }
        ChatReply::Native(body) => Answer::Native(body),
        ChatReply::Stream(relay) => {
            caller.record.begin_stream();
            let (keep_alive, record) = (context.options.keep_alive, caller.record.clone());
            let stream =
                stream::Stream { relay, registration, ward: None, keep_alive, record, _token: token };
            Answer::Stream(Box::new(stream))
        }
    };
    let about = About {
        model,
        attempts,
        left_out,
        prompt_tokens: completion.prompt_tokens,
        cache: None,
        verification: None,
    };
    Ok(Answered { about, answer })
}

/// The names as a header's value. Fields that callers made up may hold anything.
fn dropped(names: &[String]) -> HeaderValue {
    let is_plain = |c: char| c.is_ascii_graphic() && c != ',';
    let plain: String =
        names.join(",").chars().map(|c| if is_plain(c) || c == ',' { c } else { '?' }).collect();
    HeaderValue::try_from(plain.replace(',', ", ")).unwrap_or(HeaderValue::from_static("?"))
}
