//! Reading an answer that came with a status of success, which does not mean that it is one.

use serde_json::Value;

use super::{complaint, completion};
use crate::providers::{Answer, Failed, Failure, Finish, Incoming, Usage, tokens};

/// What a body of success holds: an answer, a blocked prompt, or a failure in disguise.
pub(super) fn read(incoming: &Incoming) -> Result<Answer, Failed> {
    let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
    let usage = usage(&body["usageMetadata"]);
    let failed = |failure| Failed { failure, usage };
    if !body["error"].is_null() {
        return Err(failed(complaint::inside_success(&body, incoming)));
    }
    let candidate = &body["candidates"][0];
    if candidate.is_null() {
        return Err(failed(completion::without_candidates(&body)));
    }
    let finish = finish(&candidate["finishReason"], incoming.status).map_err(failed)?;
    let text = texts(&candidate["content"]["parts"]);
    // A filter, or a limit that thinking used up, leaves no parts; the finish says so.
    if text.is_none() && finish == Finish::Stop {
        return Err(failed(Failure::Malformed));
    }
    Ok(Answer { text: text.unwrap_or_default(), finish, usage })
}

/// A whole answer always says why it ended; without a reason the model was not done.
pub(super) fn finish(reason: &Value, status: u16) -> Result<Finish, Failure> {
    match reason.as_str() {
        Some("STOP") => Ok(Finish::Stop),
        Some("MAX_TOKENS") => Ok(Finish::Length),
        Some("SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => {
            Ok(Finish::ContentFilter)
        }
        Some("OTHER") => Err(Failure::Broken { status }),
        _ => Err(Failure::Malformed),
    }
}

/// All parts of text as one, without the model's thoughts.
fn texts(parts: &Value) -> Option<String> {
    let parts = parts.as_array()?.iter().filter(|part| part["thought"] != true);
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// Counts of zero are left out. Thoughts are charged as answer and counted apart from it.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let answer = |name: &str| tokens::count(&usage[name]).unwrap_or(0);
    Some(Usage {
        prompt_tokens: tokens::count(&usage["promptTokenCount"])?,
        completion_tokens: answer("candidatesTokenCount") + answer("thoughtsTokenCount"),
    })
}
