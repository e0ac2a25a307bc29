//! What is left out of a request because a model's format has nothing like it.
//!
//! Some fields have no effect on the answer and are always left out. Others have one: they are refused, unless the
//! operator wants such requests answered without them. What must hold: the caller is told of all of them, and what an
//! answer is made of (the conversation, tools, the form and number of answers) is never left out.

use serde_json::Value;

use super::IGNORED_FIELDS;
use crate::json::fields::{self, Fields};
use crate::providers::{CompletionRequest, Failure};

/// The fields that say what an answer is made of.
const ESSENTIAL: [&str; 12] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "n",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "response_format",
    "modalities",
    "audio",
];

/// The only thing inside of messages that can be left out, and what it is called to the caller.
const IMAGE_DETAIL: &str = "image_url.detail";

/// More than any request has; each takes another look at the request.
const MAX_LEFT_OUT: usize = 16;

/// A request without what its model's format does not have.
#[derive(Debug)]
pub struct ReducedRequest {
    body: String,
    /// The names of what is left out.
    pub left_out: Vec<String>,
}

impl ReducedRequest {
    /// Leaves out of `whole` what `check` refuses, `refused` first.
    ///
    /// # Errors
    /// With the refusal of something that must not be left out.
    pub(in crate::providers) fn of(
        whole: &CompletionRequest<'_>,
        refused: Failure,
        check: impl Fn(&CompletionRequest<'_>) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let mut reduced = Self { body: String::new(), left_out: Vec::new() };
        let mut refused = refused;
        while let Some(name) = removable(whole, &refused, &reduced.left_out) {
            reduced.left_out.push(name);
            let Some(body) = without(&whole.fields, &reduced.left_out) else { break };
            reduced.body = body;
            match reduced.request(whole).map(|request| check(&request)) {
                Some(Ok(())) => return Ok(reduced),
                Some(Err(next)) => refused = next,
                None => break,
            }
        }
        Err(refused)
    }

    /// The request, of the one it was made of.
    pub fn request(&self, whole: &CompletionRequest<'_>) -> Option<CompletionRequest<'_>> {
        let CompletionRequest { stream, include_usage, choices, prompt_tokens, .. } = *whole;
        let fields = Fields::parse(&self.body).ok()?;
        Some(CompletionRequest { fields, stream, include_usage, choices, prompt_tokens, native: None })
    }
}

/// The fields of a request that are left out as they have no effect on the answer.
pub(in crate::providers) fn ignored(request: &CompletionRequest<'_>) -> Vec<String> {
    let given = request.fields.iter().filter(|(name, value)| {
        IGNORED_FIELDS.contains(name) && !super::is_empty(value.get()) && value.get() != "false"
    });
    given.map(|(name, _)| name.to_owned()).collect()
}

/// The name of what a failure refuses, if that can be left out and has not been yet.
fn removable(whole: &CompletionRequest<'_>, refused: &Failure, left_out: &[String]) -> Option<String> {
    let Failure::Unsupported { param, .. } = refused else { return None };
    let is_detail = param.starts_with("messages[") && param.ends_with(IMAGE_DETAIL);
    let name = if is_detail { IMAGE_DETAIL } else { param };
    let is_field = whole.fields.get(name).is_some() && !ESSENTIAL.contains(&name);
    let is_new = left_out.len() < MAX_LEFT_OUT && left_out.iter().all(|known| known != name);
    ((is_detail || is_field) && is_new).then(|| name.to_owned())
}

/// The body with all fields but those of these names.
fn without(whole: &Fields<'_>, left_out: &[String]) -> Option<String> {
    let is_left_out = |name: &str| left_out.iter().any(|known| known == name);
    let mut body = b"{".to_vec();
    for (name, value) in whole.iter().filter(|(name, _)| !is_left_out(name)) {
        if name == "messages" && is_left_out(IMAGE_DETAIL) {
            let messages = without_detail(value.read()?);
            fields::write_field_escaped(&mut body, name, &messages.to_string());
        } else {
            fields::write_field_escaped(&mut body, name, value.get());
        }
    }
    body.push(b'}');
    String::from_utf8(body).ok()
}

/// Messages whose images ask for no level of detail.
fn without_detail(mut messages: Value) -> Value {
    let list = messages.as_array_mut().into_iter().flatten();
    let parts = list.filter_map(|message| message.get_mut("content")?.as_array_mut()).flatten();
    for image in parts.filter_map(|part| part.get_mut("image_url")?.as_object_mut()) {
        image.shift_remove("detail");
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::request::unsupported;

    /// What is left of a request for a model that has none of these, and what is left out.
    fn reduced(body: &str, refused: &[&str]) -> Result<(String, Vec<String>), String> {
        let fields = Fields::parse(body).unwrap();
        let whole = CompletionRequest {
            fields,
            stream: false,
            include_usage: false,
            choices: 1,
            prompt_tokens: 1,
            native: None,
        };
        let check = |request: &CompletionRequest<'_>| {
            let body: Vec<String> =
                request.fields.iter().map(|(name, value)| format!("{name}{}", value.get())).collect();
            let body = body.concat();
            let found = refused.iter().find(|param| body.contains(param.rsplit('.').next().unwrap()));
            found.map_or(Ok(()), |param| Err(unsupported(*param, "no")))
        };
        let refused = check(&whole).unwrap_err();
        let reduced = ReducedRequest::of(&whole, refused, check);
        reduced.map(|reduced| (reduced.body, reduced.left_out)).map_err(|refused| refused.detail().unwrap())
    }

    #[test]
    fn what_only_tunes_is_left_out_and_named() {
        let body = r#"{"model":"m","seed": 7,"verbosity":"low","top_p":0.50}"#;
        let left_out = ["seed", "verbosity"].map(str::to_owned).to_vec();
        assert_eq!(
            reduced(body, &["seed", "verbosity"]),
            Ok((r#"{"model":"m","top_p":0.50}"#.to_owned(), left_out))
        );
        let image = r#"{"messages":[{"content":"a"},{"content":[{"image_url":{"url":"u","detail":"low"}},{"image_url":{"detail":"low"}}]}]}"#;
        let expected =
            r#"{"messages":[{"content":"a"},{"content":[{"image_url":{"url":"u"}},{"image_url":{}}]}]}"#;
        let reduced = reduced(image, &["messages[1].content[0].image_url.detail"]);
        assert_eq!(reduced, Ok((expected.to_owned(), vec!["image_url.detail".to_owned()])));
    }

    #[test]
    fn what_an_answer_is_made_of_stays_and_is_refused() {
        for param in ["tools", "n", "response_format", "messages[0].content[0].type", "absent"] {
            let body = r#"{"tools":[],"n":2,"response_format":{},"messages":[{"content":[{"type":"x"}]}],"seed":1,"absent ":1}"#;
            assert_eq!(reduced(body, &[param]), Err(format!("{param}: no")));
            assert_eq!(reduced(body, &["seed", param]), Err(format!("{param}: no")));
        }
    }
}
