//! Answers that are kept for callers who ask for it: the same request is not paid for again.
//!
//! A request asks by the header `x-mk-cache: 1h` (`off`: not at all), else its key does. It is then answered with what
//! was kept for the same request no longer ago than that, and its own answer is kept for as long. The same request is
//! one of the same app with the same body, byte by byte, for a name that means the same models: programs write a request
//! in the same way each time, and nobody has to know which fields matter. Behind the door of another protocol, it is the
//! translated body that counts; or, where a model may get the request as it came, that one, with its protocol's headers.
//!
//! What must hold: nothing is served across apps; only what is whole is kept, and nothing that a fallback said, since it
//! was not asked for; a hit counts as a request and costs nothing, whatever is left of budgets. A stream is neither kept
//! nor answered from here. A store that fails costs nothing but the calls that it would have saved.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AGE;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{About, Answer, Answered};
use crate::api::cache_time::CacheTime;
use crate::api::verify::CACHE_HEADER;
use crate::app::VerdictCache;
use crate::cache_entry::{CacheKey, KeyParts, sealed, unsealed};
use crate::inference::{Gateway, Json, NativeRequest, Reader};
use crate::server::ServerState;
use crate::server::endpoints::asked_models::AskedModels;
use crate::server::gate::Caller;
use crate::server::reply::ApiError;
use crate::server::request::header_names;
use crate::server::request::incoming::Incoming;
use crate::server::request::params::invalid;
use crate::usage::Meter;

/// Changed when the entries change, or what their keys mean.
const FORM: &str = "mk answers 2";
/// The largest entry, in bytes.
const MAX_ENTRY_BYTES: usize = 4 << 20;
/// The header's value for a request whose key asks, and which does not want it.
const OFF: &str = "off";
/// The finish reasons of an answer that the model has ended itself.
const WHOLE: [&str; 3] = ["stop", "tool_calls", "function_call"];

/// The same of a native answer: the stop reasons of messages, the status of a response.
const WHOLE_NATIVE: [&str; 4] = ["end_turn", "stop_sequence", "tool_use", "completed"];

/// For how long a request may be answered from what is kept, and its answer be kept, if it asks for that.
pub(super) fn wanted(headers: &HeaderMap, caller: &Caller) -> Result<Option<CacheTime>, ApiError> {
    let mut values = headers.get_all(&header_names::CACHE).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(caller.key.cache),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => "",
    };
    if value == OFF {
        return Ok(None);
    }
    CacheTime::parse(value).map(Some).ok_or_else(|| {
        let message = format!("the header `{CACHE_HEADER}` must be {}, or {OFF}, once", CacheTime::FORM);
        invalid(CACHE_HEADER, message)
    })
}

/// What the headers of an answer tell about it.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) enum Mark {
    /// It was kept this long ago.
    Hit(Duration),
    /// It was not there, and is new.
    Miss,
    /// It was not looked for: a stream, or the operator does not allow it.
    Bypass,
}

impl Mark {
    pub(super) fn write(self, headers: &mut HeaderMap) {
        let name = match self {
            Self::Hit(age) => {
                headers.insert(AGE, HeaderValue::from(age.as_secs()));
                "hit"
            }
            Self::Miss => "miss",
            Self::Bypass => "bypass",
        };
        headers.insert(&header_names::CACHE, HeaderValue::from_static(name));
    }
}

/// An answer as it is kept. (`A` is its JSON.)
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<A> {
    /// For how long it may be kept.
    seconds: u32,
    /// The full identifier of the model that answered.
    model: String,
    left_out: Vec<String>,
    prompt_tokens: u64,
    /// Whether the answer is in the protocol of the request.
    is_native: bool,
    answer: A,
}

/// Where the answer of a request is kept.
pub(super) struct Place<'a> {
    cache: &'a VerdictCache,
    app_id: &'a Arc<str>,
    requested: Arc<str>,
    key: CacheKey,
    keep_for: CacheTime,
    max_age: Duration,
    /// Whether a chat completion can be an answer.
    takes_completions: bool,
}

impl<'a> Place<'a> {
    /// The place of a request that asks for `keep_for`; `None` if the operator allows none. Boxed, as few requests have
    /// one.
    pub(super) fn of(
        context: &'a ServerState,
        caller: &'a Caller,
        incoming: &Incoming,
        (asked, native, body): (&AskedModels, Option<&NativeRequest>, &[u8]),
        keep_for: CacheTime,
    ) -> Option<Box<Self>> {
        let gateway = &incoming.configured.gateway;
        let max_age = gateway.max_cache()?.min(keep_for.span());
        Some(Box::new(Self {
            cache: &context.app.verdicts,
            app_id: &caller.key.app_id,
            requested: asked.requested.clone(),
            key: key(gateway, &caller.key.app_id, asked, (native, body)),
            takes_completions: native.is_none_or(NativeRequest::is_translated),
            keep_for,
            max_age,
        }))
    }

    /// The answer that is kept, booked as a request that used nothing.
    pub(super) async fn find(&self, caller: &Caller, meter: &Meter, gateway: &Gateway) -> Option<Answered> {
        let found = self.look_up().await;
        self.cache.count_answer(found.is_some());
        let (age, Entry { model, left_out, prompt_tokens, is_native, answer, .. }) = found?;
        let model: Arc<str> = model.into();
        caller.record.set_completion(self.requested.clone(), meter);
        caller.record.set_answering_model(model.clone());
        meter.book_found(model.clone(), gateway.model_info(&model).price);
        let cache = Some(Mark::Hit(age));
        let answer: Box<str> = answer.into();
        let answer = Bytes::from(String::from(answer));
        Some(Answered {
            about: About { model, attempts: 0, left_out, prompt_tokens, cache, verification: None },
            answer: if is_native { Answer::Native(answer) } else { Answer::Whole(answer) },
        })
    }

    async fn look_up(&self) -> Option<(Duration, Entry<Box<RawValue>>)> {
        let (age, content) = self.cache.answer(self.app_id, self.key, self.max_age).await?;
        let entry: Entry<Box<RawValue>> = unsealed(&self.key, &content)?;
        let may_be_kept = age <= self.max_age && age <= Duration::from_secs(entry.seconds.into());
        (may_be_kept && (entry.is_native || self.takes_completions)).then_some((age, entry))
    }

    /// Keeps an answer, if it is worth it.
    pub(super) fn keep(&self, answered: &Answered, gateway: &Gateway) {
        let Answered { about, answer } = answered;
        let (answer, is_native) = match answer {
            Answer::Whole(answer) => (answer, false),
            Answer::Native(answer) => (answer, true),
            Answer::Stream(_) => return,
        };
        let is_asked_for = about.model == self.requested
            || gateway.pool(&self.requested).is_some_and(|pool| pool.is_target(&about.model));
        let is_whole = if is_native { is_whole_native(answer) } else { is_whole(answer) };
        if !is_asked_for || is_whole.is_none() {
            return;
        }
        let Ok(answer) = serde_json::from_slice::<&RawValue>(answer) else { return };
        let entry = Entry {
            seconds: self.keep_for.seconds(),
            model: about.model.to_string(),
            left_out: about.left_out.clone(),
            prompt_tokens: about.prompt_tokens,
            is_native,
            answer,
        };
        let content = sealed(&self.key, &entry).filter(|content| content.len() <= MAX_ENTRY_BYTES);
        if let Some(content) = content {
            self.cache.keep_answer(self.app_id, self.key, content, self.keep_for.span());
        }
    }
}

/// The key of a request. Any of the targets of a pool may answer it, so their order does not count.
fn key(
    gateway: &Gateway,
    app_id: &str,
    asked: &AskedModels,
    (native, body): (Option<&NativeRequest>, &[u8]),
) -> CacheKey {
    let mut parts = KeyParts::of(FORM);
    parts.text(env!("CARGO_PKG_VERSION")).text(app_id).text(&*asked.requested);
    parts.number(u64::from(gateway.drops_unsupported()));
    let mut models: Vec<&str> = asked.chain.iter().map(|id| &**id).collect();
    models.sort_unstable();
    parts.number(models.len() as u64);
    for id in models {
        parts.text(id).optional(gateway.place(id).as_deref());
    }
    match native {
        None => parts.text(body),
        Some(native) => native.parts().fold(parts.text("native"), KeyParts::text),
    };
    parts.key()
}

/// As [`is_whole`], of an answer to a native request: a message, or a response.
fn is_whole_native(answer: &[u8]) -> Option<()> {
    let [reason, status, usage] =
        Reader::new(std::str::from_utf8(answer).ok()?).fields(["stop_reason", "status", "usage"])?;
    usage?;
    let word = reason.or(status)?.string()?;
    WHOLE_NATIVE.contains(&&*word).then_some(())
}

/// Whether an answer is whole: each choice was ended by the model itself, which did not decline, or there are vectors;
/// and its provider told what it took.
fn is_whole(answer: &[u8]) -> Option<()> {
    let [choices, data, usage] =
        Reader::new(std::str::from_utf8(answer).ok()?).fields(["choices", "data", "usage"])?;
    let [estimated] = usage?.fields(["estimated"])?;
    if estimated.is_some() {
        return None;
    }
    let Some(choices) = choices else {
        return data?.items().filter(|vectors| !vectors.is_empty()).map(drop);
    };
    let choices = choices.items().filter(|choices| !choices.is_empty())?;
    choices.into_iter().try_for_each(|choice| {
        let [message, finish, word] =
            choice.fields(["message", "finish_reason", "provider_finish_reason"])?;
        let is_ended = WHOLE.contains(&&*finish.and_then(Json::string)?) && word.is_none();
        let [refusal] = message?.fields(["refusal"])?;
        (is_ended && refusal.is_none()).then_some(())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_whole_answers_are_kept() {
        let choice = |finish: &str, rest: &str| {
            format!(r#"{{"message":{{"content":"a"{rest}}},"finish_reason":{finish}}}"#)
        };
        let answer = |choices: &[String], usage: &str| {
            is_whole(format!(r#"{{"choices":[{}],"usage":{usage}}}"#, choices.join(",")).as_bytes()).is_some()
        };
        let (stop, usage) = (choice("\"stop\"", ""), r#"{"prompt_tokens":1}"#);
        assert!(answer(std::slice::from_ref(&stop), usage));
        assert!(answer(&[stop.clone(), choice("\"tool_calls\"", ",\"refusal\":null")], usage));
        for other in
            [choice("\"length\"", ""), choice("\"content_filter\"", ""), choice("null", ""), choice("7", "")]
        {
            assert!(!answer(&[stop.clone(), other.clone()], usage), "{other}");
        }
        assert!(!answer(&[choice("\"stop\"", ",\"refusal\":\"no\"")], usage));
        let odd = r#"{"message":{},"finish_reason":"stop","provider_finish_reason":"odd"}"#.to_owned();
        assert!(!answer(&[odd], usage));
        assert!(!answer(&[], usage));
        assert!(!answer(std::slice::from_ref(&stop), r#"{"estimated":true}"#));
        assert!(!answer(&[stop], "null"));
    }

    #[test]
    fn vectors_are_whole_if_there_are_any() {
        let vectors =
            |data: &str| is_whole(format!(r#"{{"data":{data},"usage":{{}}}}"#).as_bytes()).is_some();
        assert!(vectors(r#"[{"embedding":[0.5]}]"#));
        assert!(!vectors("[]") && !vectors("null") && !vectors("7"));
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(answer in r#"\{("(choices|data|usage)":(\[\{("(message|finish_reason)":(\{\}|"stop"|7),?){0,2}\}\]|\{\}|null),?){0,3}\}?"#) {
            let _ = is_whole(answer.as_bytes());
        }
    }
}
