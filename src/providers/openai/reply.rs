//! Reading a chat completion that came with a status of success, which does not mean that it is one.

use serde_json::Value;

use super::{complaint, finish};
use crate::providers::{Answer, Failed, Failure, Finish, Incoming, Usage, tokens};

/// What a body of success holds: an answer, a refusal, or a failure in disguise.
pub(super) fn read(incoming: &Incoming) -> Result<Answer, Failed> {
    let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
    let usage = usage(&body["usage"]);
    let failed = |failure| Failed { failure, usage };
    let choice = &body["choices"][0];
    // Routers that have begun to answer report an upstream failure inside a 200.
    if [&body["error"], &choice["error"]].iter().any(|error| !error.is_null()) {
        let source = if body["error"].is_null() { choice } else { &body };
        return Err(failed(complaint::inside_success(source, incoming)));
    }
    let message = &choice["message"];
    if refusal(message) {
        return Err(failed(Failure::Refused));
    }
    // Some local servers leave it out: what came whole and gives no reason has stopped.
    let reason = finish::read(choice["finish_reason"].as_str().unwrap_or_default()).map_err(failed)?;
    let finish = reason.and_then(Finish::named).unwrap_or(Finish::Stop);
    let text = match text(&message["content"]) {
        Some(text) => text,
        // A filter, or a limit that reasoning used up, leaves no content; the finish says so.
        None if finish != Finish::Stop => String::new(),
        None => return Err(failed(Failure::Malformed)),
    };
    Ok(Answer { text, finish, usage })
}

/// Whether the model declined, in the field or the content part made for it.
fn refusal(message: &Value) -> bool {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    is_text(&message["refusal"]) || parts.iter().any(|part| is_text(&part["refusal"]))
}

/// The content, a string or an array of parts of which only those of type `text` are the answer.
fn text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let parts = content.as_array()?;
    let texts: Vec<&str> =
        parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// The tokens that a usage object tells; `None` if it does not, or tells what cannot be.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let prompt_tokens = tokens::count(&usage["prompt_tokens"])?;
    let completion_tokens = tokens::count(&usage["completion_tokens"])?;
    Some(charged(prompt_tokens, completion_tokens, tokens::count(&usage["total_tokens"])))
}

/// What is charged of these figures: some count reasoning in the total alone, and it is charged as completion.
pub(super) fn charged(prompt_tokens: u64, completion_tokens: u64, total: Option<u64>) -> Usage {
    let beyond_prompt = total.unwrap_or(0).saturating_sub(prompt_tokens);
    Usage { prompt_tokens, completion_tokens: completion_tokens.max(beyond_prompt) }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;

    const USAGE: Usage = Usage { prompt_tokens: 20, completion_tokens: 5 };

    /// What is made of an answer with this content that ended for this reason.
    fn ended(reason: &Value, content: &Value) -> Result<(String, Finish), Failed> {
        let choice = json!({"index": 0, "message": {"content": content}, "finish_reason": reason});
        let body =
            json!({"choices": [choice], "usage": {"prompt_tokens": 20, "completion_tokens": 5}}).to_string();
        let (headers, clock) = (HeaderMap::new(), Clock::system());
        read(&Incoming { status: 200, headers, body: body.into(), clock })
            .map(|answer| (answer.text, answer.finish))
    }

    #[test]
    fn what_was_withheld_is_so_in_any_words() {
        for reason in ["content_filter", "SAFETY", "sensitive", "refusal", "PROHIBITED_CONTENT"] {
            for (content, text) in [(json!(null), ""), (json!("I"), "I")] {
                let withheld = Ok((text.to_owned(), Finish::ContentFilter));
                assert_eq!(ended(&json!(reason), &content), withheld, "{reason}");
            }
        }
    }

    #[test]
    fn what_was_cut_at_a_limit_is_so_in_any_words() {
        for reason in ["length", "MAX_TOKENS", "model_length", "incomplete"] {
            assert_eq!(ended(&json!(reason), &json!(null)), Ok((String::new(), Finish::Length)), "{reason}");
        }
    }

    #[test]
    fn what_was_broken_off_is_no_answer_whatever_it_says() {
        for (reason, failure) in [
            ("error", Failure::Broken { status: 200 }),
            ("insufficient_system_resource", Failure::Overloaded { retry_after: None }),
            ("abort", Failure::Cut),
        ] {
            let failed = Err(Failed { failure, usage: Some(USAGE) });
            assert_eq!(ended(&json!(reason), &json!("{\"answer\":")), failed, "{reason}");
        }
    }

    #[test]
    fn an_end_without_a_reason_or_with_one_of_their_own_is_an_end() {
        for reason in
            [json!(null), json!(""), json!(7), json!("stop"), json!("eos_token"), json!("tool_calls")]
        {
            assert_eq!(ended(&reason, &json!("4")), Ok(("4".to_owned(), Finish::Stop)), "{reason}");
            let nothing = Err(Failed { failure: Failure::Malformed, usage: Some(USAGE) });
            assert_eq!(ended(&reason, &json!(null)), nothing, "{reason}");
        }
    }
}
