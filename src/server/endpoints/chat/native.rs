//! Requests behind a door of another protocol: models that speak it get them as they came, all others what they are
//! translated into.
//!
//! A request is translated only if some model that may be asked needs that, or if its key has limits: what those count
//! is what a chat completion can ask for. Such a key's request is passed on only if it has nothing that is charged
//! apart, or that another model is asked for. One whose answer is verified is always translated.

use std::sync::Arc;

use bytes::Bytes;

use super::{Answered, Told, ask_for, boolean, guard, request};
use crate::inference::{self, CompletionRequest, Fields, NativeRequest, Protocol, Reader, estimate};
use crate::keys;
use crate::server::ServerState;
use crate::server::gate::Caller;
use crate::server::reply::{ApiError, ErrorCode};
use crate::server::request::header_names;
use crate::server::request::incoming::Incoming;

/// The fields that prompts are made of, in either protocol.
const PROMPT: [&str; 5] = ["system", "messages", "instructions", "input", "tools"];

/// The fields in them that hold no text: media, their addresses, and what only a provider can read.
const NO_TEXT: [&str; 7] =
    ["data", "file_data", "image_url", "url", "signature", "encrypted_content", "encrypted_index"];

/// A request translated into a chat completion.
pub(in crate::server) trait Translation {
    /// The chat completion.
    fn body(&self) -> &Bytes;

    /// What a parameter of the chat completion is called in the request; `None` if the same.
    fn name_here(&self, param: &str) -> Option<String>;

    /// What the caller told of the request, of which these are the fields of the chat completion.
    fn told(&self, fields: &Fields<'_>) -> Told {
        Told::by(fields)
    }
}

/// A request that some model may get as it came.
pub(in crate::server) struct Native {
    pub(in crate::server) model: String,
    pub(in crate::server) request: NativeRequest,
    stream: bool,
    prompt_tokens: u64,
    takers: inference::Native,
}

impl Native {
    /// Reads a request with these fields; `None` if no model that may be asked takes it as it is, or if something is
    /// wrong with it, which its translation then tells.
    pub(in crate::server) fn read(
        incoming: &Incoming,
        (protocol, body): (Protocol, &Bytes),
        fields: &Fields<'_>,
    ) -> Option<Self> {
        request::ensure_unambiguous(fields).ok()?;
        let model = request::model(fields).ok()?;
        let takers = incoming.configured.gateway.native(&model, protocol);
        if !takers.some {
            return None;
        }
        let headers = header_names::of_protocol(&incoming.headers, protocol);
        let request = NativeRequest::new(protocol, body, fields, headers)?;
        let texts = PROMPT.iter().filter_map(|name| fields.get(name));
        let characters: u64 =
            texts.map(|value| characters(&mut Reader::new(value.get()))).sum::<Option<_>>()?;
        let stream = boolean(fields, "stream", "stream").ok()?;
        Some(Self { model, request, stream, prompt_tokens: estimate::length_tokens(characters), takers })
    }

    /// As a completion whose fields are its own.
    fn completion(self, fields: Fields<'_>) -> CompletionRequest<'_> {
        let Self { request, stream, prompt_tokens, .. } = self;
        let native = Some(Arc::new(request));
        CompletionRequest { stream, include_usage: false, choices: 1, prompt_tokens, native, fields }
    }
}

/// The number of characters of the texts in a value.
fn characters(reader: &mut Reader<'_>) -> Option<u64> {
    let mut sum = 0;
    match reader.peek()? {
        b'"' => sum = estimate::characters(reader.value()?.get()).saturating_sub(2),
        b'[' => reader.array(|reader| {
            sum += characters(reader)?;
            Some(())
        })?,
        b'{' => reader.object(|reader, name| {
            if NO_TEXT.contains(&&*name.decode()?) {
                return reader.skip_value();
            }
            sum += characters(reader)?;
            Some(())
        })?,
        _ => reader.skip_value()?,
    }
    Some(sum)
}

/// Asks for what `body` asks in `protocol`; also returns its translation, if it was made. `may_pass` tells whether a
/// request with these fields may be passed on for a key with limits, or for one without; `read` reads the fields of one
/// that is translated.
pub(in crate::server) async fn ask_in<'b, T: Translation>(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    (protocol, body): (Protocol, &'b Bytes),
    may_pass: fn(&Fields<'_>, bool) -> bool,
    read: fn(&'b [u8]) -> Result<Fields<'b>, ApiError>,
    translate: impl FnOnce(&Fields<'b>) -> Result<T, ApiError>,
) -> Result<(Answered, Option<T>), ApiError> {
    let (fields, refused) = match read(body) {
        Ok(fields) => (Some(fields), None),
        // What is wrong with it may be right for a model that gets it as it came.
        Err(error) => (request::object(body).ok(), Some(error)),
    };
    // What is verified is the text of a chat completion.
    let native = fields
        .as_ref()
        .and_then(|fields| Native::read(incoming, (protocol, body), fields))
        .filter(|native| guard::wanted(caller, incoming, &native.model).is_none());
    let fields = fields.unwrap_or_default();
    let told = native.as_ref().map(|_| Told::in_protocol(protocol, &fields));
    let told = told.unwrap_or_default();
    let has_budget =
        caller.has_budget() || (told.is_for_somebody() && caller.end_users(incoming).has_budget());
    let is_limited = has_budget || keys::is_limited_to_models(&caller.key);
    let native = native.filter(|_| may_pass(&fields, is_limited));
    let translate = || refused.map_or_else(|| translate(&fields), Err);
    let translated = match native.as_ref().map(|native| native.takers) {
        Some(takers) if takers.all && !is_limited => None,
        // Then models that do not speak the protocol are passed over.
        Some(takers) if takers.first && !is_limited => translate().ok(),
        _ => Some(translate()?),
    };
    let (translated, native) = match (translated, native) {
        (None, Some(native)) => {
            let model = native.model.clone();
            let completion = native.completion(fields);
            return Ok((ask_for(context, caller, incoming, (&model, &completion), &told, body).await?, None));
        }
        (None, None) => return Err(ErrorCode::Internal.into()),
        (Some(translated), native) => (translated, native.map(|native| native.request)),
    };
    let asked = async {
        let body = translated.body();
        let (model, mut completion) = super::read(body)?;
        completion.native = native.map(|native| Arc::new(native.translated()));
        let told = translated.told(&completion.fields);
        ask_for(context, caller, incoming, (&model, &completion), &told, body).await
    };
    let answered = asked.await.map_err(|error| error.renamed(|param| translated.name_here(param)));
    Ok((answered?, Some(translated)))
}
