//! Reads the requests to the provider from the connection.

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::token;

/// A format of model APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Chat completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Any text.
    Talk,
    /// The claims of a statement.
    Claims,
    /// The letter of an option; these are those of Paris and London.
    Answer([char; 2]),
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The caller's request that it belongs to.
    pub(crate) token: u64,
    /// Its format.
    pub(crate) dialect: Dialect,
    /// The provider's own model name.
    pub(crate) model: String,
    /// Whether the response is to be a stream.
    pub(crate) is_stream: bool,
    /// What it asks for.
    pub(crate) task: Task,
    /// The tokens of the prompt, as the server estimates them.
    pub(crate) estimated: u64,
}

/// Reads the next request of a connection; `None` when it ends, or sends something else.
pub(super) async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    loop {
        if let Some((path, body, end)) = whole(buffer) {
            let asked = Asked::new(&path, &serde_json::from_slice(body).ok()?);
            buffer.drain(..end);
            return asked;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

/// The path and the body of a complete request, and where it ends.
fn whole(bytes: &[u8]) -> Option<(String, &[u8], usize)> {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..head_end]).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let body = bytes.get(head_end..head_end + length)?;
    Some((path, body, head_end + length))
}

impl Asked {
    fn new(path: &str, body: &Value) -> Option<Self> {
        let path = path.split('?').next()?;
        let (dialect, model) = match path.rsplit('/').next()? {
            "completions" => (Dialect::Chat, body["model"].as_str()?.to_owned()),
            "messages" => (Dialect::Messages, body["model"].as_str()?.to_owned()),
            last => (Dialect::Gemini, last.split(':').next()?.to_owned()),
        };
        let is_stream = body["stream"] == true || path.ends_with(":streamGenerateContent");
        let texts = texts(dialect, body);
        let all = texts.join("\n");
        Some(Self {
            token: token::find(&all)?,
            dialect,
            model,
            is_stream,
            task: task(&all),
            estimated: texts.iter().map(|text| estimate(text) + 4).sum(),
        })
    }
}

/// The tokens of a text, as the server estimates them.
pub(super) fn estimate(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn task(text: &str) -> Task {
    let letter = |option: &str| {
        let line = text.lines().find(|line| line.get(1..) == Some(&format!(") {option}")))?;
        line.chars().next()
    };
    match (letter("Paris"), letter("London")) {
        (Some(paris), Some(london)) => Task::Answer([paris, london]),
        _ if text.contains("BEGIN SECTION") => Task::Claims,
        _ => Task::Talk,
    }
}

/// The text of each message, the system message first.
fn texts(dialect: Dialect, body: &Value) -> Vec<String> {
    let (system, messages, content) = match dialect {
        Dialect::Chat => (&Value::Null, &body["messages"], "content"),
        Dialect::Messages => (&body["system"], &body["messages"], "content"),
        Dialect::Gemini => (&body["systemInstruction"]["parts"], &body["contents"], "parts"),
    };
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let all = std::iter::once(system).chain(messages.iter().map(|message| &message[content]));
    all.filter(|content| !content.is_null()).map(text).collect()
}

/// The text of a content, which is a string or a list of parts.
fn text(content: &Value) -> String {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = parts.iter().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| parts.collect(), str::to_owned)
}
