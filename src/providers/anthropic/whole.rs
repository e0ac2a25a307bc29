//! A whole message that came with a status of success, which does not mean that it is one: what a verification and what
//! a caller is told of it.

use serde_json::Value;

use super::complaint;
use crate::money::Tokens;
use crate::providers::written::{self, Said, Spent};
use crate::providers::{
    Answer, Completed, Completion, Failed, Failure, Finish, Incoming, Labels, status, tokens,
};

/// What a message holds.
pub(super) struct Whole {
    body: Value,
    /// In the words of chat completions.
    finish: &'static str,
    /// `None` for what is no list of blocks.
    said: Option<Said>,
    spent: Option<Spent>,
}

impl Whole {
    /// What a provider has sent.
    ///
    /// # Errors
    /// With the failure that status and body tell of.
    pub(super) fn of(incoming: &Incoming) -> Result<Self, Failed> {
        status::outcome(incoming, Self::read, complaint::read)
    }

    fn read(incoming: &Incoming) -> Result<Self, Failed> {
        let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
        let spent = spent(&body["usage"]);
        let failed = |failure| failed(failure, spent);
        // Gateways in between report a failure of theirs inside a 200.
        if body["type"] == "error" || !body["error"].is_null() {
            return Err(failed(complaint::inside_success(&body, incoming)));
        }
        // A whole message always says why it ended.
        let finish = finish(&body["stop_reason"]).ok_or_else(|| failed(Failure::Malformed))?;
        let said = said(&body["content"]);
        Ok(Self { body, finish, said, spent })
    }

    /// Its text, for a verification. A reason that is none of a text's means that something else was to come, such as a
    /// call of a tool, and none was offered.
    ///
    /// # Errors
    /// If there is no such end, or no text.
    pub(super) fn answer(self) -> Result<Answer, Failed> {
        let malformed = || failed(Failure::Malformed, self.spent);
        let finish = Finish::named(self.finish).ok_or_else(malformed)?;
        let is_readable = self.said.is_some();
        let text = self.said.and_then(|said| said.text);
        // A limit that thinking used up, or a refusal, leaves no text; the finish says so.
        if text.is_none() && finish == Finish::Stop {
            let failure = if is_readable { Failure::NoAnswer } else { Failure::Malformed };
            return Err(failed(failure, self.spent));
        }
        let usage = self.spent.map(|spent| spent.usage);
        Ok(Answer { text: text.unwrap_or_default(), finish, usage })
    }

    /// All of it, for a caller.
    ///
    /// # Errors
    /// If a block cannot be read, or the calls are missing for which it ended.
    pub(super) fn completed(self, asked: &Completion<'_>, labels: &Labels) -> Result<Completed, Failed> {
        let malformed = || failed(Failure::Malformed, self.spent);
        let said = self.said.ok_or_else(malformed)?;
        if self.finish == "tool_calls" && said.calls.is_empty() {
            return Err(malformed());
        }
        let choice = said.choice(0, self.finish);
        Ok(written::completed(self.body["id"].as_str(), &[choice], self.spent, asked, labels))
    }
}

fn failed(failure: Failure, spent: Option<Spent>) -> Failed {
    Failed { failure, usage: spent.map(|spent| spent.usage) }
}

/// Why a message ended, in the words of chat completions; `None` for reasons that belong to nothing a caller can ask
/// for here.
pub(super) fn finish(reason: &Value) -> Option<&'static str> {
    match reason.as_str()? {
        "end_turn" | "stop_sequence" | "pause_turn" => Some("stop"),
        "max_tokens" | "model_context_window_exceeded" => Some("length"),
        "tool_use" => Some("tool_calls"),
        "refusal" => Some("content_filter"),
        _ => None,
    }
}

/// Texts and calls; thoughts are left out. A message may well have no block at all, when there was nothing to say.
fn said(content: &Value) -> Option<Said> {
    let mut said = Said::default();
    for block in content.as_array()? {
        match block["type"].as_str() {
            Some("text") => said.add(block["text"].as_str()?),
            Some("tool_use") => {
                said.calls.push(written::call(
                    block["id"].as_str()?,
                    block["name"].as_str()?,
                    &block["input"],
                ));
            }
            _ => {}
        }
    }
    Some(said)
}

/// What a message took. The prompt is counted in three parts that do not overlap: new, written to the cache, read from it.
pub(super) fn spent(usage: &Value) -> Option<Spent> {
    let cached = |name: &str| tokens::count(&usage[name]);
    let (written, read) = (cached("cache_creation_input_tokens"), cached("cache_read_input_tokens"));
    Some(Spent {
        usage: Tokens {
            prompt: tokens::count(&usage["input_tokens"])?
                + written.unwrap_or_default()
                + read.unwrap_or_default(),
            completion: tokens::count(&usage["output_tokens"])?,
        },
        cached_tokens: read,
        reasoning_tokens: tokens::count(&usage["output_tokens_details"]["thinking_tokens"]),
    })
}
