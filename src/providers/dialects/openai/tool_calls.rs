//! Numbers the tool calls of a streamed answer as clients expect: within each choice from 0, without gaps. Clients
//! assemble a call from its deltas by that number (`index`), but some servers leave it out, and some give every call
//! the same one, which would merge them into a single meaningless call.

use std::borrow::Cow;

use crate::json::reader::{Json, Reader};
use crate::providers::completion::MAX_TOOL_CALLS;

/// Only this much of a call's id is compared.
const MAX_ID_CHARS: usize = 64;

/// The tool calls so far.
#[derive(Debug, Default)]
pub(super) struct ToolCallNumbering(Vec<ToolCall>);

#[derive(Debug)]
struct ToolCall {
    /// The index of its choice.
    choice: u32,
    /// The provider's number.
    provider_number: Option<u32>,
    id: String,
    /// The number for the caller.
    number: u32,
}

/// The fields of a tool call delta that identify its call.
struct CallDelta<'a> {
    index: Option<u32>,
    id: Cow<'a, str>,
    /// The name of the tool.
    name: Cow<'a, str>,
}

impl<'a> CallDelta<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let [index, id, function] = reader.fields(["index", "id", "function"])?;
        let [name] = function.map_or(Some([None]), |function| function.fields(["name"]))?;
        let index = index.map(|index| index.get().parse()).transpose().ok()?;
        let text = |value: Option<Json<'a>>| value.map_or(Some(Cow::default()), Json::string);
        Some(Self { index, id: text(id)?, name: text(name)? })
    }
}

impl ToolCallNumbering {
    /// The correct numbers of the calls in `list`, the `tool_calls` of a delta; `None` if they are already correct, or
    /// if it is not a list of calls.
    pub(super) fn renumbered(&mut self, choice: u32, list: Json<'_>) -> Option<Vec<u32>> {
        let deltas = Reader::new(list.get()).list(MAX_TOOL_CALLS, CallDelta::read)?;
        let numbers: Vec<u32> = deltas.iter().map(|delta| self.number(choice, delta)).collect();
        let are_correct = deltas.iter().zip(&numbers).all(|(delta, number)| delta.index == Some(*number));
        (!are_correct).then_some(numbers)
    }

    /// Whether a choice has any calls.
    pub(super) fn is_begun(&self, choice: u32) -> bool {
        self.0.iter().any(|call| call.choice == choice)
    }

    fn number(&mut self, choice: u32, delta: &CallDelta<'_>) -> u32 {
        let id: String = delta.id.chars().take(MAX_ID_CHARS).collect();
        let mut calls = self.0.iter().rev().filter(|call| call.choice == choice);
        let next = calls.clone().next().map_or(0, |last| last.number + 1);
        let known = calls.find(|call| delta.index.is_none() || call.provider_number == delta.index);
        // A name begins a call. Some servers repeat it in every delta, so with a known number only a different id
        // begins one.
        let is_named = !delta.name.is_empty();
        let continues = |call: &ToolCall| {
            !is_named || call.id == id && !id.is_empty() || id.is_empty() && delta.index.is_some()
        };
        match known {
            Some(call) if continues(call) => call.number,
            _ if self.0.len() == MAX_TOOL_CALLS => delta.index.unwrap_or(next),
            _ => {
                self.0.push(ToolCall { choice, provider_number: delta.index, id, number: next });
                next
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of deltas that arrive one by one, given as `index`, `id` and `name`.
    fn numbered(deltas: &[(Option<u32>, &str, &str)]) -> Vec<u32> {
        let mut calls = ToolCallNumbering::default();
        let number = |(index, id, name): &(Option<u32>, &str, &str)| {
            let delta = CallDelta { index: *index, id: (*id).into(), name: (*name).into() };
            calls.number(0, &delta)
        };
        deltas.iter().map(number).collect()
    }

    #[test]
    fn deltas_belong_to_the_call_with_their_number_or_id() {
        let usual = [(Some(0), "a", "f"), (Some(0), "", ""), (Some(1), "b", "f"), (Some(1), "", "")];
        assert_eq!(numbered(&usual), [0, 0, 1, 1]);
        assert_eq!(numbered(&[(None, "a", "f"), (None, "b", "f"), (None, "", "")]), [0, 1, 1]);
        assert_eq!(numbered(&[(None, "", "f"), (None, "", "g")]), [0, 1]);
        assert_eq!(numbered(&[(Some(0), "a", "f"), (Some(0), "b", "f"), (Some(0), "", "")]), [0, 1, 1]);
        assert_eq!(numbered(&[(Some(1), "a", "f"), (Some(3), "b", "f"), (Some(1), "", "")]), [0, 1, 0]);
        assert_eq!(numbered(&[(None, "a", "f"), (None, "a", "f"), (Some(0), "", "")]), [0, 0, 1]);
        // In old versions of vLLM, every delta has an id of its own, and only the first one has a name.
        assert_eq!(numbered(&[(Some(0), "a", "f"), (Some(0), "b", ""), (Some(0), "c", "")]), [0, 0, 0]);
        assert_eq!(numbered(&[(Some(0), "", "f"), (Some(0), "", "f")]), [0, 0]);
    }

    #[test]
    fn choices_are_numbered_separately_and_memory_is_bounded() {
        let mut calls = ToolCallNumbering::default();
        let list = |text| Reader::new(text).value().unwrap();
        let named = list(r#"[{"function":{"name":"f"}},{"function":{"name":"g"}}]"#);
        assert_eq!(calls.renumbered(0, named), Some(vec![0, 1]));
        assert_eq!(calls.renumbered(1, named), Some(vec![0, 1]));
        assert_eq!(calls.renumbered(0, list(r#"[{"index":2,"id":"x","function":{"name":"f"}}]"#)), None);
        assert_eq!(calls.renumbered(0, list("7")), None);
        for _ in 0..MAX_TOOL_CALLS {
            calls.renumbered(0, named);
        }
        assert_eq!(calls.0.len(), MAX_TOOL_CALLS);
    }
}
