//! What stands of a call on the provider's list: what the ledger has to say of it, in the words of the contract.
//!
//! - What the provider told is booked as told; without its word, prompt and answer are estimated at four characters a
//!   token. A stream that ends early is booked with what came until then.
//! - Where the model surely did not work (429, 500), nothing is booked; where it may have (the connection broke, no
//!   answer came in time, or what came was in no format), the prompt is.

use super::asked::{Asked, Dialect, estimate};
use super::turn::{Decided, Turn};

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// The caller's request that it was made for.
    pub(crate) token: u64,
    /// Whom it went to, by the full identifier.
    pub(crate) model: String,
    /// What became of it.
    pub(crate) turn: Turn,
    /// What the ledger has to say, unless the server gave it up before.
    pub(crate) expected: Booked,
    /// Whether its stream breaks in the middle, so that the server asks again for an answer that goes on from there.
    pub(crate) breaks: bool,
    /// The most that the ledger may say if it was given up: the greater of told and estimated, of both.
    pub(crate) most: (u64, u64),
}

/// What a row of the ledger says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Booked {
    /// `ok` or the failure's code.
    pub(crate) outcome: &'static str,
    /// Tokens of prompt and completion.
    pub(crate) tokens: (u64, u64),
}

/// The call on the list.
pub(super) fn of(asked: &Asked, decided: &Decided) -> Called {
    let provider = match asked.dialect {
        Dialect::Chat => "plain",
        Dialect::Messages => "messages",
        Dialect::Gemini => "gemini",
    };
    let whole = estimate(&decided.pieces.concat());
    let (prompt, completion) = decided.told;
    let expected = expected(asked, decided);
    Called {
        token: asked.token,
        model: format!("{provider}/{}", asked.model),
        turn: decided.turn,
        breaks: asked.is_stream
            && expected.outcome != "ok"
            && matches!(decided.turn, Turn::Cut | Turn::Stalled),
        expected,
        most: (prompt.max(asked.estimated), completion.max(whole)),
    }
}

fn expected(asked: &Asked, decided: &Decided) -> Booked {
    let prompt_alone = (asked.estimated, 0);
    let (outcome, tokens) = match decided.turn {
        // An answer with its reason needs no mark of its end.
        Turn::Answer | Turn::Nonsense | Turn::Malformed | Turn::NoEnd => ("ok", decided.told),
        Turn::Untold => ("ok", (asked.estimated, estimate(&decided.pieces.concat()))),
        Turn::TooMany(_) => ("rate_limited", (0, 0)),
        Turn::Broken => ("provider_error", (0, 0)),
        Turn::Reset | Turn::Closed => ("cut", prompt_alone),
        Turn::Silent => ("timeout", prompt_alone),
        Turn::Garbage => ("malformed", prompt_alone),
        Turn::Cut => ("cut", until_middle(asked, decided)),
        Turn::Stalled => ("timeout", until_middle(asked, decided)),
    };
    Booked { outcome, tokens }
}

/// What an answer has taken in its middle. Of one that is no stream nothing has come; Anthropic's begin with what the
/// prompt took, and a first token.
fn until_middle(asked: &Asked, decided: &Decided) -> (u64, u64) {
    if !asked.is_stream {
        return (asked.estimated, 0);
    }
    let came = estimate(&decided.pieces[..decided.middle].concat());
    match asked.dialect {
        Dialect::Messages => (decided.told.0, came.max(1)),
        Dialect::Chat | Dialect::Gemini => (asked.estimated, came),
    }
}
