//! The `response` object: an answer, whole or as far as a stream has come.

use bytes::Bytes;

use super::echo::Echo;
use super::output::{self, Item, Status};
use super::tools::Names;
use crate::inference::Json;
use crate::json::fields::{write_field, write_string_field};
use crate::server::endpoints::chat::VERIFICATION as FIELD;
use crate::server::endpoints::chat::given::Given;

/// What is the same throughout an answer.
#[derive(Debug)]
pub(super) struct Response {
    id: String,
    /// In Unix seconds.
    created_at: i64,
    /// Who answers, as a JSON string.
    pub(super) model: String,
    echo: Echo,
    /// What was found about it, as JSON.
    pub(super) verification: Option<Box<str>>,
}

/// How an answer has ended.
#[derive(Debug)]
pub(super) enum End {
    /// With a finish reason of the chat-completion format, and the provider's own word for it, as JSON.
    Finished { reason: Reason, word: Option<String> },
    /// It broke off: code and message.
    Failed { code: String, message: String },
}

/// Why an answer is complete or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Done,
    Length,
    ContentFilter,
}

impl Reason {
    /// The meaning of a finish reason, which is JSON.
    pub(super) fn of(finish: Option<Json<'_>>) -> Self {
        match finish.map(Json::get) {
            Some("\"length\"") => Self::Length,
            Some("\"content_filter\"") => Self::ContentFilter,
            _ => Self::Done,
        }
    }

    pub(super) const fn status(self) -> Status {
        match self {
            Self::Done => Status::Completed,
            Self::Length | Self::ContentFilter => Status::Incomplete,
        }
    }
}

impl End {
    pub(super) const fn status(&self) -> Status {
        match self {
            Self::Finished { reason, .. } => reason.status(),
            Self::Failed { .. } => Status::Failed,
        }
    }
}

impl Response {
    pub(super) fn new(echo: Echo, model: &str, created_at: i64) -> Self {
        let model = serde_json::Value::from(model).to_string();
        Self { id: crate::id::new("resp"), created_at, model, echo, verification: None }
    }

    /// Writes an answer that has only begun.
    pub(super) fn write_begun(&self, out: &mut Vec<u8>) {
        self.write_head(Status::InProgress, out);
        for (name, value) in
            [("error", "null"), ("incomplete_details", "null"), ("output", "[]"), ("usage", "null")]
        {
            write_field(out, name, value);
        }
        self.echo.write_short(out);
        out.push(b'}');
    }

    /// Writes an answer that has ended. `usage` is that of a response.
    pub(super) fn write_ended(&self, end: &End, items: &[Item], usage: Option<&str>, out: &mut Vec<u8>) {
        self.write_head(end.status(), out);
        match end {
            End::Failed { code, message } => {
                write_field(out, "error", "{");
                write_string_field(out, "code", code);
                write_string_field(out, "message", message);
                out.push(b'}');
                write_field(out, "incomplete_details", "null");
            }
            End::Finished { reason, word } => {
                write_field(out, "error", "null");
                let details = match reason {
                    Reason::Done => "null",
                    Reason::Length => "{\"reason\":\"max_output_tokens\"}",
                    Reason::ContentFilter => "{\"reason\":\"content_filter\"}",
                };
                write_field(out, "incomplete_details", details);
                if let Some(word) = word {
                    write_field(out, "provider_finish_reason", word);
                }
            }
        }
        write_field(out, "output", "[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            item.write(out);
        }
        out.push(b']');
        write_field(out, "usage", usage.unwrap_or("null"));
        if let Some(verification) = &self.verification {
            write_field(out, FIELD, verification);
        }
        self.echo.write(out);
        out.push(b'}');
    }

    fn write_head(&self, status: Status, out: &mut Vec<u8>) {
        out.push(b'{');
        write_string_field(out, "id", &self.id);
        write_field(out, "object", "\"response\"");
        write_field(out, "created_at", &self.created_at.to_string());
        write_string_field(out, "status", status.as_str());
        write_field(out, "model", &self.model);
    }
}

/// A whole answer, of a `chat.completion` object.
pub(super) fn whole(completion: &Bytes, echo: Echo, names: &Names, model: &str) -> Option<Bytes> {
    let text = std::str::from_utf8(completion).ok()?;
    let Given { created, usage, choice, .. } = Given::read(text)?;
    let choice = choice?;
    let reason = Reason::of(choice.finish);
    let items = output::items(&choice.said?, choice.probabilities, names, reason.status());
    let response = Response::new(echo, model, created.and_then(Json::read)?);
    let end = End::Finished { reason, word: choice.word.map(|word| word.get().to_owned()) };
    let mut out = Vec::with_capacity(text.len() + 1024);
    response.write_ended(&end, &items, usage.and_then(output::usage).as_deref(), &mut out);
    Some(out.into())
}
