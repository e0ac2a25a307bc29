//! The content of a message, or a tool's result: a string, or parts of many types.

use std::borrow::Cow;

use crate::inference::{Json, Reader};
use crate::json::fields::{begin_element, write_field};
use crate::json::raw;
use crate::server::endpoints::chat::compose::{text_part, write_given};
use crate::server::endpoints::chat::{invalid, missing};
use crate::server::reply::{ApiError, ErrorCode};

const PART: [&str; 10] = [
    "type",
    "text",
    "refusal",
    "image_url",
    "detail",
    "file_id",
    "file_data",
    "file_url",
    "filename",
    "input_audio",
];

/// The values of [`PART`].
type Part<'a> = [Option<Json<'a>>; PART.len()];

/// What a message or a result says, without texts being copied.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    /// The insides of its texts.
    texts: Vec<&'a str>,
    refusal: Option<&'a str>,
    /// All parts in the chat-completion format; only filled from the first part that is no text. Of a result, those
    /// that are no text.
    parts: Vec<u8>,
    is_result: bool,
}

/// What a model has said before: the insides of its text and of its refusal.
pub(super) struct Said<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) refusal: Option<&'a str>,
}

impl<'a> Content<'a> {
    /// Reads a content at `path`, which may be the result of a tool; `None` if it is no valid JSON.
    pub(super) fn read(
        reader: &mut Reader<'a>,
        is_result: bool,
        path: impl Fn() -> String,
    ) -> Option<Result<Self, ApiError>> {
        let mut content = Self { is_result, ..Self::default() };
        let (mut index, mut read) = (0_usize, Ok(()));
        let begin = reader.position();
        let list = reader.try_read(|reader| {
            reader.array(|reader| {
                let begin = reader.position();
                let part = reader.try_read(|reader| reader.fields(PART))?;
                let value = reader.value_since(begin)?;
                if read.is_ok() {
                    let path = || format!("{}[{index}]", path());
                    read = match part {
                        Some(part) => content.add(part, path),
                        None => Err(invalid(path(), "an object with each field once", value)),
                    };
                }
                index += 1;
                Some(())
            })
        })?;
        let value = reader.value_since(begin)?;
        Some(match list {
            Some(()) => read.map(|()| content),
            None if value.is_string() => Ok(Self { texts: vec![raw::inside(value)], ..Self::default() }),
            None => Err(invalid(path(), "a string or an array of parts", value)),
        })
    }

    /// Whether it is text alone.
    pub(super) const fn is_text(&self) -> bool {
        self.parts.is_empty()
    }

    /// Writes it as the field `content`. Texts alone become one, since many servers take no parts.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        if self.is_text() {
            raw::write_quoted(out, "content", &self.into_result(raw::EMPTY_LINE).0);
        } else {
            raw::write_list(out, "content", &self.parts);
        }
    }

    /// The text of a result, with `separator` between its parts; and its other parts.
    pub(super) fn into_result(self, separator: &str) -> (Cow<'a, str>, Vec<u8>) {
        let said: Vec<&str> = self.texts.into_iter().chain(self.refusal).collect();
        (raw::joined(&said, separator), self.parts)
    }

    /// What a model has said before; `None` if that is more than text.
    pub(super) fn into_said(self) -> Option<Said<'a>> {
        let is_text = self.is_text();
        let text = match *self.texts {
            [] if self.refusal.is_some() => None,
            _ => Some(raw::joined(&self.texts, "")),
        };
        is_text.then_some(Said { text, refusal: self.refusal })
    }

    fn add(&mut self, part: Part<'a>, path: impl Fn() -> String) -> Result<(), ApiError> {
        let at = |name: &str| format!("{}.{name}", path());
        let [kind, text, refusal, ..] = part;
        let kind = string(kind, || at("type"))?;
        match raw::inside(kind) {
            "input_text" | "output_text" | "text" => {
                let text = string(text, || at("text"))?;
                if self.is_text() || self.is_result {
                    self.texts.push(raw::inside(text));
                } else {
                    text_part(&mut self.parts, raw::inside(text), None);
                }
            }
            "refusal" => self.refusal = Some(raw::inside(string(refusal, || at("refusal"))?)),
            _ => {
                if !self.is_result {
                    for text in std::mem::take(&mut self.texts) {
                        text_part(&mut self.parts, text, None);
                    }
                }
                write_part(part, at, &mut self.parts)?;
            }
        }
        Ok(())
    }
}

/// Writes a part that is no text in the chat-completion format. `at` is the path of a field.
fn write_part(part: Part<'_>, at: impl Fn(&str) -> String, out: &mut Vec<u8>) -> Result<(), ApiError> {
    let [kind, .., audio] = part;
    let [_, _, _, image, detail, file_id, file_data, file_url, filename, _] = part;
    let refuse = |name: &str, message: &str| {
        let message = format!("`{}`: {message}", at(name));
        Err(ApiError::parameter(ErrorCode::UnsupportedParameter, at(name), message))
    };
    begin_element(out);
    match kind.map_or("", raw::inside) {
        "input_image" if image.is_none() && file_id.is_some() => {
            return refuse("file_id", "files are not stored here; send the image itself as `image_url`");
        }
        "input_image" => {
            out.extend_from_slice(b"{\"type\":\"image_url\",\"image_url\":{");
            write_field(out, "url", string(image, || at("image_url"))?.get());
            match detail.map(Json::get) {
                None | Some("\"auto\"") => {}
                // The format has no word for more than this.
                Some("\"original\"") => write_field(out, "detail", "\"high\""),
                Some(detail) => write_field(out, "detail", detail),
            }
        }
        "input_file" if file_url.is_some() && file_data.is_none() => {
            return refuse("file_url", "files are not fetched; send the file itself as `file_data`");
        }
        "input_file" => {
            out.extend_from_slice(b"{\"type\":\"file\",\"file\":{");
            for (name, value) in [("file_id", file_id), ("filename", filename), ("file_data", file_data)] {
                write_given(out, name, value);
            }
        }
        "input_audio" => {
            let audio = audio.filter(|audio| audio.is_object()).ok_or_else(|| missing(at("input_audio")))?;
            out.extend_from_slice(b"{\"type\":\"input_audio\",\"input_audio\":");
            out.extend_from_slice(audio.get().as_bytes());
            out.push(b'}');
            return Ok(());
        }
        _ => return Err(unsupported(at("type"), kind)),
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

/// A value that must be a string.
pub(super) fn string(value: Option<Json<'_>>, path: impl Fn() -> String) -> Result<Json<'_>, ApiError> {
    let value = value.ok_or_else(|| missing(path()))?;
    if value.is_string() { Ok(value) } else { Err(invalid(path(), "a string", value)) }
}

/// What is of a type that the chat-completion format has nothing like.
pub(super) fn unsupported(path: String, kind: Option<Json<'_>>) -> ApiError {
    let kind = kind.and_then(Json::string).unwrap_or_default();
    let kind: String = kind.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
    let message = format!("`{path}`: `{kind}` cannot be passed to this model; leave it out");
    ApiError::parameter(ErrorCode::UnsupportedParameter, path, message)
}
