//! The provider's list of calls, with what the ledger has to record for each according to the contract.
//!
//! - Usage that the provider reports is recorded as reported; otherwise prompt and response are estimated at four
//!   characters per token. A stream that ends early is recorded with what arrived until then.
//! - If the model certainly did no work (429, 500), no tokens are recorded; if it may have (the connection broke, no
//!   response came in time, or it was in no format), those of the prompt are.

use super::asked::{Asked, Dialect, Task, estimate};
use super::turn::{Decided, Turn};

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// The caller's request that it belongs to.
    pub(crate) token: u64,
    /// The full identifier of its model.
    pub(crate) model: String,
    /// What the provider did.
    pub(crate) turn: Turn,
    /// What the ledger has to record, unless the server cancelled the call before.
    pub(crate) expected: Recorded,
    /// Whether it asks for a vote on a claim.
    pub(crate) is_vote: bool,
    /// Whether its stream breaks, so that the server requests a response that resumes it.
    pub(crate) breaks: bool,
    /// The most tokens that the ledger may record if it was cancelled: the larger of reported and estimated, for both.
    pub(crate) most: (u64, u64),
}

/// What a row of the ledger records of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Recorded {
    /// `ok` or the failure's code.
    pub(crate) outcome: &'static str,
    /// Tokens of prompt and completion.
    pub(crate) tokens: (u64, u64),
}

/// The entry of a call on the list.
pub(super) fn of(asked: &Asked, decided: &Decided) -> Called {
    let provider = match asked.dialect {
        Dialect::Chat => "plain",
        Dialect::Messages => "messages",
        Dialect::Gemini => "gemini",
    };
    let whole = estimate(&decided.chunks.concat());
    let (prompt, completion) = decided.usage;
    let expected = expected(asked, decided);
    Called {
        token: asked.token,
        model: format!("{provider}/{}", asked.model),
        turn: decided.turn,
        is_vote: matches!(asked.task, Task::Answer(_)),
        breaks: asked.is_stream
            && expected.outcome != "ok"
            && matches!(decided.turn, Turn::Cut | Turn::Stalled),
        expected,
        most: (prompt.max(asked.estimated), completion.max(whole)),
    }
}

fn expected(asked: &Asked, decided: &Decided) -> Recorded {
    let prompt_alone = (asked.estimated, 0);
    let (outcome, tokens) = match decided.turn {
        // A response with a finish reason needs no end mark.
        Turn::Answer | Turn::Nonsense | Turn::Malformed | Turn::NoEnd => ("ok", decided.usage),
        Turn::NoUsage => ("ok", (asked.estimated, estimate(&decided.chunks.concat()))),
        Turn::RateLimited(_) => ("rate_limited", (0, 0)),
        Turn::Broken => ("provider_error", (0, 0)),
        Turn::Reset | Turn::Closed => ("cut", prompt_alone),
        Turn::Silent => ("timeout", prompt_alone),
        Turn::Garbage => ("malformed", prompt_alone),
        Turn::Cut => ("cut", until_middle(asked, decided)),
        Turn::Stalled => ("timeout", until_middle(asked, decided)),
    };
    Recorded { outcome, tokens }
}

/// The tokens of a response that ends in the middle. If it is not a stream, nothing has arrived; Anthropic's start with
/// the usage of the prompt, and a first token.
fn until_middle(asked: &Asked, decided: &Decided) -> (u64, u64) {
    if !asked.is_stream {
        return (asked.estimated, 0);
    }
    let came = estimate(&decided.chunks[..decided.middle].concat());
    match asked.dialect {
        Dialect::Messages => (decided.usage.0, came.max(1)),
        Dialect::Chat | Dialect::Gemini => (asked.estimated, came),
    }
}
