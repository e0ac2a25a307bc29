//! Reads a completion, or a chunk of one, for the doors that give it in the form of another protocol: in one pass, as an
//! event of a stream has little else than a few characters of text.
//!
//! Such a request asks for one choice. Texts stay the bytes they are.

use std::borrow::Cow;

use crate::inference::{Json, Reader};
use crate::json::raw;

/// The fields that are read.
const FIELDS: [&str; 5] = ["id", "created", "model", "choices", "usage"];
/// The fields of a choice that are read. The third and the fourth are those in which servers name the text that ended
/// the answer.
const CHOICE: [&str; 5] =
    ["finish_reason", "provider_finish_reason", "stop_reason", "matched_stop", "logprobs"];
/// The fields of its message, or of what a chunk adds to that.
const SAID: [&str; 7] =
    ["content", "reasoning_content", "reasoning", "refusal", "annotations", "images", "tool_calls"];

/// A completion, or a chunk of one.
#[derive(Debug)]
pub(in crate::server) struct Given<'a> {
    pub(in crate::server) id: Option<Json<'a>>,
    pub(in crate::server) created: Option<Json<'a>>,
    pub(in crate::server) model: Option<Json<'a>>,
    pub(in crate::server) usage: Option<Json<'a>>,
    pub(in crate::server) choice: Option<Choice<'a>>,
}

/// Its choice.
#[derive(Debug)]
pub(in crate::server) struct Choice<'a> {
    pub(in crate::server) finish: Option<Json<'a>>,
    /// The provider's own word for that.
    pub(in crate::server) word: Option<Json<'a>>,
    /// What may be the text that ended the answer.
    pub(in crate::server) matched: [Option<Json<'a>>; 2],
    pub(in crate::server) probabilities: Option<Json<'a>>,
    pub(in crate::server) said: Option<Said<'a>>,
}

/// A message, or what a chunk adds to it.
#[derive(Debug)]
pub(in crate::server) struct Said<'a> {
    pub(in crate::server) content: Option<Json<'a>>,
    /// Two names for the same thing; some providers send both.
    pub(in crate::server) thoughts: Option<Json<'a>>,
    pub(in crate::server) refusal: Option<Json<'a>>,
    pub(in crate::server) annotations: Option<Json<'a>>,
    pub(in crate::server) images: Option<Json<'a>>,
    pub(in crate::server) calls: Option<Json<'a>>,
}

impl<'a> Given<'a> {
    /// `None` if it is no completion.
    pub(in crate::server) fn read(text: &'a str) -> Option<Self> {
        let mut choice = None;
        let fields = Reader::new(text).fields_with(FIELDS, |name, reader| match name {
            "choices" => reader.array(|reader| {
                let read = Choice::read(reader)?;
                choice.get_or_insert(read);
                Some(())
            }),
            _ => reader.skip_value(),
        });
        let [id, created, model, choices, usage] = fields?;
        choices?;
        Some(Self { id, created, model, usage, choice })
    }
}

impl<'a> Choice<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut said = None;
        let fields = reader.fields_with(CHOICE, |name, reader| match (name, reader.peek()) {
            ("message" | "delta", Some(b'{')) => {
                said = Some(Said::read(reader)?);
                Some(())
            }
            _ => reader.skip_value(),
        });
        let [finish, word, matched, also_matched, probabilities] = fields?;
        Some(Self { finish, word, matched: [matched, also_matched], probabilities, said })
    }
}

impl<'a> Said<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let [content, thoughts, other_thoughts, refusal, annotations, images, calls] = reader.fields(SAID)?;
        Some(Self { content, thoughts: thoughts.or(other_thoughts), refusal, annotations, images, calls })
    }
}

/// The id of a call, as a JSON string: a new one where a server gives none or an empty one, as clients tell by it which
/// result belongs to which call.
pub(in crate::server) fn call_id(id: Option<Json<'_>>) -> Cow<'_, str> {
    let given = id.filter(|id| id.is_string() && id.get() != "\"\"");
    given.map_or_else(|| raw::string(&crate::id::new("call")).into(), |id| id.get().into())
}

/// The arguments of a call, or a piece of them, as the inside of a string. Some servers send the object itself.
pub(in crate::server) fn arguments(value: Option<Json<'_>>) -> Cow<'_, str> {
    match value {
        Some(object) if object.is_object() => {
            raw::value(&raw::string(object.get())).map_or("", raw::inside).to_owned().into()
        }
        text => text.map_or("", raw::inside).into(),
    }
}

/// The data of the chunks in a piece of a stream, line by line.
pub(in crate::server) fn chunks(sse: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(sse).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("data: "))
}
