//! Reading a message that came with a status of success, which does not mean that it is one.

use serde_json::Value;

use super::{complaint, completion};
use crate::providers::{Answer, Failed, Failure, Finish, Incoming, Usage, tokens};

/// What a body of success holds: an answer, a refusal, or a failure in disguise.
pub(super) fn read(incoming: &Incoming) -> Result<Answer, Failed> {
    let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
    let usage = usage(&body["usage"]);
    let failed = |failure| Failed { failure, usage };
    // Gateways in between report a failure of theirs inside a 200.
    if body["type"] == "error" || !body["error"].is_null() {
        return Err(failed(complaint::inside_success(&body, incoming)));
    }
    // A whole message always says why it ended. Any other reason means that something else than text was to come, such
    // as a call of a tool, and none was offered.
    let reason = completion::finish(&body["stop_reason"]);
    let finish = reason.and_then(Finish::named).ok_or_else(|| failed(Failure::Malformed))?;
    let text = texts(&body["content"]);
    // A limit that thinking used up, or a refusal, leaves no text; the finish says so.
    if text.is_none() && finish == Finish::Stop {
        return Err(failed(Failure::Malformed));
    }
    Ok(Answer { text: text.unwrap_or_default(), finish, usage })
}

/// All text blocks as one: an answer may come in several, with thinking between them.
fn texts(content: &Value) -> Option<String> {
    let blocks = content.as_array()?.iter().filter(|block| block["type"] == "text");
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// The prompt is counted in three parts that do not overlap: new, written to the cache, read from it.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let cached = |name: &str| tokens::count(&usage[name]).unwrap_or(0);
    Some(Usage {
        prompt_tokens: tokens::count(&usage["input_tokens"])?
            + cached("cache_creation_input_tokens")
            + cached("cache_read_input_tokens"),
        completion_tokens: tokens::count(&usage["output_tokens"])?,
    })
}
