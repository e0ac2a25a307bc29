//! How the provider responds to a call: mostly as it should, otherwise with one of the faults that providers have.

use std::time::Duration;

use super::asked::{Asked, Dialect, Task};
use crate::dice::Dice;

/// The longest wait of a response with a slow first token; far below the server's timeout.
const SLOW: Duration = Duration::from_millis(1500);
/// The longest wait of any other response.
const QUICK: Duration = Duration::from_millis(40);
/// The longest pause between two chunks of a stream.
const PACE: Duration = Duration::from_millis(25);

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A response with its usage.
    Answer,
    /// A response without its usage.
    NoUsage,
    /// A response in the right format with a useless text.
    Nonsense,
    /// A stream with a malformed chunk.
    Malformed,
    /// A stream without its end mark.
    NoEnd,
    /// 429, with a `Retry-After` in seconds or without one.
    RateLimited(Option<u32>),
    /// 500.
    Broken,
    /// The connection is reset before the head.
    Reset,
    /// The connection is closed before the head.
    Closed,
    /// No response at all.
    Silent,
    /// 200 with a body in no known format.
    Garbage,
    /// The connection is closed in the middle of the response.
    Cut,
    /// Nothing is sent any more from the middle of the response on.
    Stalled,
}

/// A turn with everything that is decided at random.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    /// How the call is answered.
    pub(crate) turn: Turn,
    /// The wait before the head.
    pub(crate) wait: Duration,
    /// The pause before each chunk of a stream except the first.
    pub(crate) pace: Duration,
    /// The reported tokens of prompt and completion.
    pub(crate) usage: (u64, u64),
    /// The text of the response, in the chunks of a stream.
    pub(crate) chunks: Vec<String>,
    /// How many of them are sent before a stream is cut or stalls; at least one, never all.
    pub(crate) middle: usize,
}

/// Each turn with its weight. Few limit the rate: verifications wait for such models, and the load would wait with them.
const TURNS: [(u64, Turn); 14] = [
    (869, Turn::Answer),
    (30, Turn::NoUsage),
    (15, Turn::Nonsense),
    (15, Turn::Malformed),
    (15, Turn::NoEnd),
    (2, Turn::RateLimited(None)),
    (1, Turn::RateLimited(Some(1))),
    (15, Turn::Broken),
    (8, Turn::Reset),
    (8, Turn::Closed),
    (3, Turn::Silent),
    (8, Turn::Garbage),
    (12, Turn::Cut),
    (3, Turn::Stalled),
];
/// How many of a thousand responses have a slow first token.
const LATE: u64 = 30;

/// Decides at random how to answer a call.
pub(super) fn decide(asked: &Asked, dice: &mut Dice) -> Decided {
    let turn = possible(dice.pick(&TURNS), asked);
    let chunks = match (&asked.task, turn) {
        (Task::Talk, _) => (0..2 + dice.below(40)).map(|number| format!("word {number} ")).collect(),
        (_, Turn::Nonsense) => vec!["I would ".to_owned(), "rather not.".to_owned()],
        (Task::Claims, _) => vec![claims(asked.token, 1 + dice.below(3))],
        (Task::Answer([paris, london]), _) => {
            let letter = if dice.chance(800) { paris } else { london };
            vec![format!("{{\"answer\":\"{letter}\"}}")]
        }
    };
    let middle = 1 + dice.below((chunks.len() as u64).saturating_sub(1));
    let slowest = if dice.chance(LATE) { SLOW } else { QUICK };
    Decided {
        turn,
        wait: dice.span(slowest),
        pace: dice.span(PACE),
        usage: (50 + dice.below(950), 1 + dice.below(500)),
        middle: usize::try_from(middle).unwrap_or(1),
        chunks,
    }
}

/// Replaces a turn that only streams have, or that is impossible in the dialect.
fn possible(turn: Turn, asked: &Asked) -> Turn {
    match turn {
        Turn::Malformed | Turn::NoEnd if !asked.is_stream => Turn::Answer,
        // Gemini has no end mark apart from its last event, and Anthropic always reports usage.
        Turn::NoEnd if asked.dialect == Dialect::Gemini => Turn::Answer,
        Turn::NoUsage if asked.dialect == Dialect::Messages => Turn::Answer,
        turn => turn,
    }
}

/// What the extractor finds in a statement: `count` claims, whose questions contain the request's number.
fn claims(token: u64, count: u64) -> String {
    let towers = format!("the towers of {}", crate::token::id(token));
    let said = [
        (format!("In Paris stand {towers}."), format!("In which city do {towers} stand?")),
        (format!("Paris is where {towers} stand."), format!("Where do {towers} stand?")),
        (format!("Paris has {towers}."), format!("Which city has {towers}?")),
    ];
    let claim = |(claim, question): (String, String)| {
        serde_json::json!({
            "quote": format!("The towers of {} stand in Paris.", crate::token::id(token)),
            "claim": claim,
            "question": question,
            "claimed_answer": "Paris",
            "rivals": ["London", "Rome", "Berlin"],
            "best": "Paris",
        })
    };
    let count = usize::try_from(count).unwrap_or(1);
    let claims: Vec<_> = said.into_iter().take(count).map(claim).collect();
    serde_json::json!({"claims": claims, "skipped": []}).to_string()
}
