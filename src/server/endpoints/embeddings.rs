//! `POST /inference/v1/embeddings`, and the same at `/openai/v1`: the vectors of texts.
//!
//! A request takes the way of a completion, with its limits, budgets, retries, fallbacks and accounts (see `chat`); what
//! differs is what is checked of it. The answer is always complete.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use warp::reply::Response;

use super::chat::request::{fields_of, invalid, missing, model, whole};
use super::chat::{self, Answer, Answered, Told};
use crate::api::Service;
use crate::inference::{CompletionRequest, Json, estimate};
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::Incoming;

/// The most texts in a request, as in the format's reference; it bounds the size of an answer.
pub(in crate::server) const MAX_INPUTS: usize = 2048;
/// The longest vectors that can be asked for; no model has longer ones.
pub(in crate::server) const MAX_DIMENSIONS: u64 = 65_536;
/// What a vector is written as.
pub(in crate::server) const ENCODINGS: [&str; 2] = ["float", "base64"];

/// What `input` may be.
const INPUT: &str = "a text, a list of 1 to 2048 texts, or tokens as numbers; none of them empty";

/// Answers a request for embeddings, behind any door that has this format.
pub(crate) async fn create<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Inference).await?;
    reply::within(caller.rate, answer(context, &caller, incoming, body).await)
}

async fn answer<B: Buf, E>(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Result<Response, ApiError> {
    let body: Bytes = context.read_inference_json(incoming, body).await?;
    let (model, request) = read(&body)?;
    let Answered { about, answer } =
        chat::ask_for(context, caller, incoming, (&model, &request), &Told::by(&request.fields), &body)
            .await?;
    let mut response = match answer {
        Answer::Whole(vectors) | Answer::Native(vectors) => reply::json_bytes(vectors),
        // Cannot happen, as no stream was asked for.
        Answer::Stream(stream) => stream.into_response(None),
    };
    about.write(response.headers_mut());
    Ok(response)
}

/// Reads a request: the model it names, and what is asked of it.
fn read(body: &[u8]) -> Result<(String, CompletionRequest<'_>), ApiError> {
    let fields = fields_of(body, |_, reader| reader.value().map(drop))?;
    let model = model(&fields)?;
    let input = fields.non_null("input").ok_or_else(|| missing("input"))?;
    let prompt_tokens = input_tokens(input).ok_or_else(|| invalid("input", INPUT, input))?;
    if let Some(messages) = fields.get("messages") {
        return Err(invalid("messages", "left out: an embedding has an `input`", messages));
    }
    whole(&fields, "dimensions", MAX_DIMENSIONS)?;
    if let Some(encoding) = fields.non_null("encoding_format") {
        let name = encoding.string().filter(|name| ENCODINGS.contains(&&**name));
        name.ok_or_else(|| invalid("encoding_format", "float or base64", encoding))?;
    }
    let request = CompletionRequest {
        fields,
        stream: false,
        include_usage: false,
        choices: 1,
        prompt_tokens,
        native: None,
    };
    Ok((model, request))
}

/// The estimated tokens of an input; `None` if it is not one.
fn input_tokens(input: Json<'_>) -> Option<u64> {
    if input.is_string() {
        return text_tokens(input);
    }
    let items = input.items().filter(|items| !items.is_empty())?;
    if is_token(items[0]) {
        return items.iter().all(|item| is_token(*item)).then_some(items.len() as u64);
    }
    if items.len() > MAX_INPUTS {
        return None;
    }
    items.into_iter().map(|item| text_tokens(item).or_else(|| tokens(item))).sum()
}

fn text_tokens(text: Json<'_>) -> Option<u64> {
    // Whether it can be decoded, as each provider would read half a character differently.
    let is_text = text.string().is_some_and(|text| !text.is_empty());
    is_text.then(|| estimate::length_tokens(estimate::characters(text.get()).saturating_sub(2)))
}

fn tokens(list: Json<'_>) -> Option<u64> {
    let tokens = list.items().filter(|items| !items.is_empty())?;
    tokens.iter().all(|item| is_token(*item)).then_some(tokens.len() as u64)
}

fn is_token(value: Json<'_>) -> bool {
    value.read::<u32>().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_texts_or_tokens() {
        let tokens = |input: &str| {
            let body = format!(r#"{{"model":"a/b","input":{input}}}"#);
            read(body.as_bytes()).map(|(_, request)| request.prompt_tokens).ok()
        };
        assert_eq!(tokens(r#""12345678""#), Some(2));
        assert_eq!(tokens(r#"["12345678","1"]"#), Some(3));
        assert_eq!(tokens("[1,2,3]"), Some(3));
        assert_eq!(tokens("[[1,2,3],[4]]"), Some(4));
        for wrong in
            ["null", r#""""#, "[]", "[[]]", r#"["a",""]"#, "[1,-1]", "[1,\"a\"]", "7", "{}", r#""\ud800""#]
        {
            assert_eq!(tokens(wrong), None, "{wrong}");
        }
        let many = |count: usize| tokens(&format!("[{}]", vec![r#""a""#; count].join(",")));
        assert_eq!((many(MAX_INPUTS), many(MAX_INPUTS + 1)), (Some(2048), None));
    }

    #[test]
    fn errors_name_the_parameter() {
        for (rest, param) in [
            ("", "input"),
            (r#","input":7"#, "input"),
            (r#","input":"a","dimensions":0"#, "dimensions"),
            (r#","input":"a","encoding_format":"hex""#, "encoding_format"),
            (r#","input":"a","messages":[]"#, "messages"),
        ] {
            let body = format!(r#"{{"model":"a/b"{rest}}}"#);
            let error = read(body.as_bytes()).unwrap_err().into_body("");
            assert_eq!(error.param.as_deref(), Some(param), "{rest}");
        }
    }
}
