//! What the provider does with a call: mostly what it should, otherwise one of the faults that providers have.

use std::time::Duration;

use super::asked::{Asked, Dialect, Task};
use crate::dice::Dice;

/// The longest that an answer with a slow first token takes; far from the server's patience.
const SLOW: Duration = Duration::from_millis(1500);
/// The longest that any other takes.
const QUICK: Duration = Duration::from_millis(40);
/// Between two pieces of a stream, at most.
const PACE: Duration = Duration::from_millis(25);

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// An answer, with what it took.
    Answer,
    /// An answer that does not tell what it took.
    Untold,
    /// An answer in the right format with a text that is of no use.
    Nonsense,
    /// A stream with a chunk that is not in the format.
    Malformed,
    /// A stream without its end mark.
    NoEnd,
    /// 429, with a `Retry-After` of so many seconds or without any.
    TooMany(Option<u32>),
    /// 500.
    Broken,
    /// The connection is reset before the head.
    Reset,
    /// The connection ends before the head.
    Closed,
    /// No head, ever.
    Silent,
    /// 200 with what is in no format.
    Garbage,
    /// The connection ends in the middle of the answer.
    Cut,
    /// Nothing comes any more from the middle of the answer on.
    Stalled,
}

/// A turn with all that chance decides of it.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    /// What becomes of the call.
    pub(crate) turn: Turn,
    /// Before the head.
    pub(crate) wait: Duration,
    /// Before each piece of a stream but the first.
    pub(crate) pace: Duration,
    /// Tokens that are told, of prompt and completion.
    pub(crate) told: (u64, u64),
    /// The text of the answer, in the pieces of a stream.
    pub(crate) pieces: Vec<String>,
    /// Of these, how many go out before a stream is cut or stalls; at least one, never all.
    pub(crate) middle: usize,
}

/// Each turn with its weight.
const TURNS: [(u64, Turn); 14] = [
    (860, Turn::Answer),
    (30, Turn::Untold),
    (15, Turn::Nonsense),
    (15, Turn::Malformed),
    (15, Turn::NoEnd),
    (8, Turn::TooMany(None)),
    (4, Turn::TooMany(Some(1))),
    (15, Turn::Broken),
    (8, Turn::Reset),
    (8, Turn::Closed),
    (3, Turn::Silent),
    (8, Turn::Garbage),
    (12, Turn::Cut),
    (3, Turn::Stalled),
];
/// Of a thousand answers, so many have a slow first token.
const LATE: u64 = 30;

/// Decides.
pub(super) fn decide(asked: &Asked, dice: &mut Dice) -> Decided {
    let turn = possible(dice.pick(&TURNS), asked);
    let pieces = match (&asked.task, turn) {
        (Task::Talk, _) => (0..2 + dice.below(40)).map(|number| format!("word {number} ")).collect(),
        (_, Turn::Nonsense) => vec!["I would ".to_owned(), "rather not.".to_owned()],
        (Task::Claims, _) => vec![claims(asked.token, 1 + dice.below(3))],
        (Task::Answer([paris, london]), _) => {
            let letter = if dice.chance(800) { paris } else { london };
            vec![format!("{{\"answer\":\"{letter}\"}}")]
        }
    };
    let middle = 1 + dice.below((pieces.len() as u64).saturating_sub(1));
    let slowest = if dice.chance(LATE) { SLOW } else { QUICK };
    Decided {
        turn,
        wait: dice.span(slowest),
        pace: dice.span(PACE),
        told: (50 + dice.below(950), 1 + dice.below(500)),
        middle: usize::try_from(middle).unwrap_or(1),
        pieces,
    }
}

/// Some turns are those of streams alone, and some dialects have no way to do it.
fn possible(turn: Turn, asked: &Asked) -> Turn {
    match turn {
        Turn::Malformed | Turn::NoEnd if !asked.is_stream => Turn::Answer,
        // Its last event is its end mark, and it cannot but tell.
        Turn::NoEnd if asked.dialect == Dialect::Gemini => Turn::Answer,
        Turn::Untold if asked.dialect == Dialect::Messages => Turn::Answer,
        turn => turn,
    }
}

/// What an extractor finds in a statement: so many claims, whose questions have the request's number in them.
fn claims(token: u64, count: u64) -> String {
    let claim = |number: u64| {
        serde_json::json!({
            "claim": format!("Tower {number} of {} stands in Paris.", crate::token::id(token)),
            "question": format!("In which city is tower {number} of {}?", crate::token::id(token)),
            "claimed_answer": "Paris",
            "rivals": ["London", "Rome", "Berlin"],
        })
    };
    let claims: Vec<_> = (1..=count).map(claim).collect();
    serde_json::json!({"claims": claims, "skipped": []}).to_string()
}
