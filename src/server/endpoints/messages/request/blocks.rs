//! The blocks of a user's message, and of a tool's result, as parts of a message of a chat completion. Texts stay the
//! bytes they are.

use std::borrow::Cow;

use super::left_out::LeftOut;
use super::path::Path;
use crate::inference::{Fields, Json};
use crate::json::fields::{begin_element, write_field};
use crate::json::raw;
use crate::server::endpoints::chat::compose::{CACHE_MARK, text_part, write_given};
use crate::server::reply::ApiError;

/// The end of a line, inside of a string.
const LINE_END: &str = "\\n";

/// What a PDF is called that has no title.
const DOCUMENT_NAME: &str = "document.pdf";

/// A part of a message. Its strings are the insides of JSON strings.
#[derive(Debug)]
pub(super) struct Part<'a> {
    kind: Kind<'a>,
    /// Its mark for caches.
    pub(super) mark: Option<Json<'a>>,
}

#[derive(Debug)]
enum Kind<'a> {
    Text(Cow<'a, str>),
    /// By its address.
    Image(Cow<'a, str>),
    /// Its name, and its address.
    File(&'a str, Cow<'a, str>),
}

impl<'a> Part<'a> {
    pub(super) fn of_text(text: impl Into<Cow<'a, str>>, mark: Option<Json<'a>>) -> Self {
        Self { kind: Kind::Text(text.into()), mark }
    }

    /// Its text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Image(_) | Kind::File(..) => None,
        }
    }

    /// Writes it as an element of a list.
    fn write(&self, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Text(text) => return text_part(out, text, self.mark),
            Kind::Image(url) => {
                begin_element(out);
                out.extend_from_slice(b"{\"type\":\"image_url\",\"image_url\":{");
                raw::write_quoted(out, "url", url);
            }
            Kind::File(name, url) => {
                begin_element(out);
                out.extend_from_slice(b"{\"type\":\"file\",\"file\":{");
                raw::write_quoted(out, "filename", name);
                raw::write_quoted(out, "file_data", url);
            }
        }
        out.push(b'}');
        write_given(out, CACHE_MARK, self.mark);
        out.push(b'}');
    }
}

/// Writes the field of a message with its content: one text as a string, which every provider takes, and none as an
/// empty one. Several are parts, unless they may be joined, with `between` between them; so is what is marked.
pub(super) fn write_content(out: &mut Vec<u8>, parts: &[Part<'_>], between: Option<&str>) {
    let plain = parts.iter().map(|part| part.text().filter(|_| part.mark.is_none()));
    let texts: Option<Vec<&str>> = plain.collect();
    if let Some(texts) = texts.filter(|texts| between.is_some() || texts.len() < 2) {
        raw::write_quoted(out, "content", &raw::joined(&texts, between.unwrap_or_default()));
        return;
    }
    write_field(out, "content", "[");
    for part in parts {
        part.write(out);
    }
    out.push(b']');
}

/// Appends the parts of a block to `parts`.
pub(super) fn parts<'a>(
    block: &Fields<'a>,
    path: &Path<'_>,
    left_out: &mut LeftOut,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), ApiError> {
    let kind = path.word_of(block, "type")?;
    if kind != "text" {
        refuse_citations(block, path, left_out)?;
    }
    match &*kind {
        "text" => {
            let text = path.text_of(block, "text")?;
            if !text.is_empty() {
                parts.push(Part::of_text(text, None));
            }
        }
        "image" => parts.extend(image(block, path, left_out)?),
        "document" => document(block, path, left_out, parts)?,
        "search_result" => parts.push(Part::of_text(search_result(block, path)?, None)),
        "tool_reference" => {
            let name = path.text_of(block, "tool_name")?;
            parts.push(Part::of_text(format!("The tool {name} can be used."), None));
        }
        "container_upload" => {
            let why = "files in a container are available only to Anthropic's own models";
            left_out.refuse(&path.field("type"), "container_upload", why)?;
        }
        _ => {
            let allowed = "text, image, document, search_result or tool_result";
            return Err(path.field("type").must_be(allowed));
        }
    }
    Ok(())
}

/// Citations of what a request brings along exist only there.
fn refuse_citations(block: &Fields<'_>, path: &Path<'_>, left_out: &mut LeftOut) -> Result<(), ApiError> {
    let enabled = block.get("citations").and_then(|citations| citations.fields(["enabled"]));
    if enabled.is_some_and(|[enabled]| is_true(enabled)) {
        let why = "only Anthropic's own models support citations; leave it out";
        left_out.refuse(&path.field("citations"), "citations", why)?;
    }
    Ok(())
}

/// The source of a block: its type and its fields.
fn source<'a>(block: &Fields<'a>, path: &Path<'_>) -> Result<(Cow<'a, str>, Fields<'a>), ApiError> {
    let path = path.field("source");
    let source = path.object(block.get("source").ok_or_else(|| path.missing())?)?;
    Ok((path.word_of(&source, "type")?, source))
}

fn image<'a>(
    block: &Fields<'a>,
    path: &Path<'_>,
    left_out: &mut LeftOut,
) -> Result<Option<Part<'a>>, ApiError> {
    let (kind, source) = source(block, path)?;
    let path = path.field("source");
    let url = match &*kind {
        "base64" => data_url(&source, &path)?,
        "url" => path.text_of(&source, "url")?.into(),
        "file" => {
            uploaded(&path, left_out)?;
            return Ok(None);
        }
        _ => return Err(path.field("type").must_be("base64 or url")),
    };
    Ok(Some(Part { kind: Kind::Image(url), mark: None }))
}

fn document<'a>(
    block: &Fields<'a>,
    path: &Path<'_>,
    left_out: &mut LeftOut,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), ApiError> {
    let (kind, source) = source(block, path)?;
    let path = path.field("source");
    let (title, about) = (raw::said(block.get("title")), raw::said(block.get("context")));
    let heading: Vec<&str> = [title.filter(|_| kind != "base64"), about].into_iter().flatten().collect();
    if !heading.is_empty() {
        parts.push(Part::of_text(raw::joined(&heading, LINE_END), None));
    }
    match &*kind {
        "base64" => {
            let kind = Kind::File(title.unwrap_or(DOCUMENT_NAME), data_url(&source, &path)?);
            parts.push(Part { kind, mark: None });
        }
        "text" => parts.push(Part::of_text(path.text_of(&source, "data")?, None)),
        "content" => {
            let (path, content) = (path.field("content"), source.get("content"));
            match content {
                Some(text) if text.is_string() => parts.push(Part::of_text(raw::inside(text), None)),
                Some(blocks) if blocks.is_array() => blocks.each(|index, reader| {
                    let path = path.item(index);
                    let inner = path.next_object(reader)?;
                    if !matches!(inner.get("type").and_then(Json::string).as_deref(), Some("text" | "image"))
                    {
                        return Err(path.field("type").must_be("text or image"));
                    }
                    self::parts(&inner, &path, left_out, parts)
                })?,
                other => return Err(path.wrong_type("a string or an array", other)),
            }
        }
        "url" => {
            let why = "other models do not accept documents by URL; send it as base64";
            left_out.refuse(&path.field("type"), "document", why)?;
        }
        "file" => uploaded(&path, left_out)?,
        _ => return Err(path.field("type").must_be("base64, text or content")),
    }
    Ok(())
}

/// A result of a search of the caller's own, as text.
fn search_result<'a>(block: &Fields<'a>, path: &Path<'_>) -> Result<Cow<'a, str>, ApiError> {
    let mut lines = vec![path.text_of(block, "title")?, path.text_of(block, "source")?, ""];
    let (path, content) = (path.field("content"), block.get("content"));
    let list = content.filter(|content| content.is_array());
    let list = list.ok_or_else(|| path.wrong_type("an array of text blocks", content))?;
    list.each(|index, reader| {
        let path = path.item(index);
        lines.push(path.text_of(&path.next_object(reader)?, "text")?);
        Ok::<_, ApiError>(())
    })?;
    Ok(raw::joined(&lines, LINE_END))
}

fn data_url<'a>(source: &Fields<'a>, path: &Path<'_>) -> Result<Cow<'a, str>, ApiError> {
    let (kind, data) = (path.text_of(source, "media_type")?, path.text_of(source, "data")?);
    Ok(["data:", kind, ";base64,", data].concat().into())
}

/// Refuses a file that was uploaded to Anthropic.
fn uploaded(path: &Path<'_>, left_out: &mut LeftOut) -> Result<(), ApiError> {
    let why = "files uploaded to Anthropic are available only to its own models; send it as base64";
    left_out.refuse(&path.field("type"), "file", why)
}

/// Whether a value is true.
pub(super) fn is_true(value: Option<Json<'_>>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}
