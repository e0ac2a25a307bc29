//! The calls of tools in a streamed answer, numbered as clients rely on it: those of one choice from 0, without gaps.
//! Clients put the pieces of a call together by that number; some servers leave it out, and some give every call the
//! same one, which would make a single, senseless call of them.

use std::borrow::Cow;

use crate::providers::completion::MOST_TOOL_CALLS;
use crate::providers::json::{Json, Reader};

/// As much of a call's id as is compared.
const MOST_ID_CHARS: usize = 64;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    /// The choice that it is part of.
    choice: u32,
    /// What the provider numbers it.
    given: Option<u32>,
    id: String,
    /// What it is numbered for the caller.
    number: u32,
}

/// A piece of a call, as far as it tells whose it is.
struct Piece<'a> {
    index: Option<u32>,
    id: Cow<'a, str>,
    /// Of the tool.
    name: Cow<'a, str>,
}

impl<'a> Piece<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let [index, id, function] = reader.known(["index", "id", "function"])?;
        let [name] = function.map_or(Some([None]), |function| function.known(["name"]))?;
        let index = index.map(|index| index.get().parse()).transpose().ok()?;
        let text = |value: Option<Json<'a>>| value.map_or(Some(Cow::default()), Json::text);
        Some(Self { index, id: text(id)?, name: text(name)? })
    }
}

impl Calls {
    /// The right numbers of the pieces in `list`, the `tool_calls` of a delta; `None` if they have them, or if it is
    /// no list of calls.
    pub(super) fn renumbered(&mut self, choice: u32, list: Json<'_>) -> Option<Vec<u32>> {
        let pieces = Reader::new(list.get()).list(MOST_TOOL_CALLS, Piece::read)?;
        let numbers: Vec<u32> = pieces.iter().map(|piece| self.number(choice, piece)).collect();
        let are_right = pieces.iter().zip(&numbers).all(|(piece, number)| piece.index == Some(*number));
        (!are_right).then_some(numbers)
    }

    fn number(&mut self, choice: u32, piece: &Piece<'_>) -> u32 {
        let id: String = piece.id.chars().take(MOST_ID_CHARS).collect();
        let mut calls = self.0.iter().rev().filter(|call| call.choice == choice);
        let next = calls.clone().next().map_or(0, |last| last.number + 1);
        let known = calls.find(|call| piece.index.is_none() || call.given == piece.index);
        // A name begins a call. Some repeat it with every piece, so beside a known number only another id tells.
        let is_named = !piece.name.is_empty();
        let goes_on = |call: &Call| {
            !is_named || call.id == id && !id.is_empty() || id.is_empty() && piece.index.is_some()
        };
        match known {
            Some(call) if goes_on(call) => call.number,
            _ if self.0.len() == MOST_TOOL_CALLS => piece.index.unwrap_or(next),
            _ => {
                self.0.push(Call { choice, given: piece.index, id, number: next });
                next
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of pieces that come one by one, as `index`, `id` and `name`.
    fn numbered(pieces: &[(Option<u32>, &str, &str)]) -> Vec<u32> {
        let mut calls = Calls::default();
        let number = |(index, id, name): &(Option<u32>, &str, &str)| {
            let piece = Piece { index: *index, id: (*id).into(), name: (*name).into() };
            calls.number(0, &piece)
        };
        pieces.iter().map(number).collect()
    }

    #[test]
    fn pieces_belong_to_the_call_that_their_number_or_id_tells() {
        let usual = [(Some(0), "a", "f"), (Some(0), "", ""), (Some(1), "b", "f"), (Some(1), "", "")];
        assert_eq!(numbered(&usual), [0, 0, 1, 1]);
        assert_eq!(numbered(&[(None, "a", "f"), (None, "b", "f"), (None, "", "")]), [0, 1, 1]);
        assert_eq!(numbered(&[(None, "", "f"), (None, "", "g")]), [0, 1]);
        assert_eq!(numbered(&[(Some(0), "a", "f"), (Some(0), "b", "f"), (Some(0), "", "")]), [0, 1, 1]);
        assert_eq!(numbered(&[(Some(1), "a", "f"), (Some(3), "b", "f"), (Some(1), "", "")]), [0, 1, 0]);
        assert_eq!(numbered(&[(None, "a", "f"), (None, "a", "f"), (Some(0), "", "")]), [0, 0, 1]);
        // Of old versions of vLLM, every piece has an id of its own, and only the first a name.
        assert_eq!(numbered(&[(Some(0), "a", "f"), (Some(0), "b", ""), (Some(0), "c", "")]), [0, 0, 0]);
        assert_eq!(numbered(&[(Some(0), "", "f"), (Some(0), "", "f")]), [0, 0]);
    }

    #[test]
    fn choices_are_numbered_apart_and_nothing_grows_for_ever() {
        let mut calls = Calls::default();
        let list = |text| Reader::new(text).value().unwrap();
        let named = list(r#"[{"function":{"name":"f"}},{"function":{"name":"g"}}]"#);
        assert_eq!(calls.renumbered(0, named), Some(vec![0, 1]));
        assert_eq!(calls.renumbered(1, named), Some(vec![0, 1]));
        assert_eq!(calls.renumbered(0, list(r#"[{"index":2,"id":"x","function":{"name":"f"}}]"#)), None);
        assert_eq!(calls.renumbered(0, list("7")), None);
        for _ in 0..MOST_TOOL_CALLS {
            calls.renumbered(0, named);
        }
        assert_eq!(calls.0.len(), MOST_TOOL_CALLS);
    }
}
