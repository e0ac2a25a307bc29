//! Messages that models get as they came, and the events of their answers.

use std::sync::Arc;

use bytes::Bytes;

use super::events::{PING, write_error};
use crate::inference::{Fields, Json};
use crate::server::endpoints::chat::request::is_same_but_for_case;
use crate::server::endpoints::chat::stream::Transcoder;
use crate::server::reply::ApiError;

/// The fields that ask for nothing but tokens of the model that is named, at its usual price.
const PLAIN: [&str; 17] = [
    "model",
    "messages",
    "max_tokens",
    "cache_control",
    "context_management",
    "metadata",
    "output_config",
    "output_format",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// What the types of tools begin with that run at the caller.
const RUN_HERE: [&str; 5] = ["custom", "bash_", "text_editor_", "computer_", "memory_"];

/// Whether a request may be passed on: if its key has limits, nothing in it is charged apart or may ask another model.
pub(super) fn may_pass(fields: &Fields<'_>, is_limited: bool) -> bool {
    !is_limited || is_plain(fields)
}

fn is_plain(fields: &Fields<'_>) -> bool {
    let edits = match fields.non_null("context_management").map(|management| management.fields(["edits"])) {
        Some(Some([edits])) => edits,
        Some(None) => return false,
        None => None,
    };
    fields.iter().all(|(name, value)| value.is_null() || PLAIN.contains(&name))
        && all_begin(fields.non_null("tools"), &RUN_HERE)
        // Summaries take tokens that the usage does not have.
        && all_begin(edits, &["clear_"])
}

/// Whether the types of all of these begin with one of `begins`, if they have one.
fn all_begin(list: Option<Json<'_>>, begins: &[&str]) -> bool {
    let begins = |item: Json<'_>| {
        let Ok(fields) = Fields::parse(item.get()) else { return false };
        // A provider that reads names in any case may read another type.
        if fields.iter().any(|(name, _)| name != "type" && is_same_but_for_case(name, "type")) {
            return false;
        }
        fields.non_null("type").is_none_or(|kind| {
            kind.string().is_some_and(|kind| begins.iter().any(|begin| kind.starts_with(begin)))
        })
    };
    list.is_none_or(|list| list.items().is_some_and(|items| items.into_iter().all(begins)))
}

/// The events of an answer that are passed on.
pub(super) struct NativeEvents {
    pub(super) request_id: Arc<str>,
}

impl Transcoder for NativeEvents {
    fn chunks(&mut self, sse: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(sse);
    }

    fn fail(&mut self, error: ApiError, out: &mut Vec<u8>) {
        write_error(error, &self.request_id, out);
    }

    fn keep_alive(&self) -> Bytes {
        Bytes::from_static(PING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_limits_pass_on_what_only_their_model_is_asked_for() {
        let passes = |body: &str, is_limited| may_pass(&Fields::parse(body).unwrap(), is_limited);
        for plain in [
            r#"{"model":"m","messages":[],"tools":[{"name":"a"},{"type":"bash_20250124"}],"service_tier":null}"#,
            r#"{"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"thinking":{"type":"adaptive"}}"#,
        ] {
            assert!(passes(plain, true), "{plain}");
        }
        for charged in [
            r#"{"speed":"fast"}"#,
            r#"{"mcp_servers":[]}"#,
            r#"{"tools":[{"name":"a"},{"type":"web_search_20250305"}]}"#,
            r#"{"tools":[{"type":7}]}"#,
            r#"{"tools":[{"type":"custom","name":"a","Type":"web_search_20250305"}]}"#,
            r#"{"tools":{}}"#,
            r#"{"context_management":{"edits":[{"type":"compact_20260112"}]}}"#,
            r#"{"context_management":[]}"#,
        ] {
            assert!(!passes(charged, true) && passes(charged, false), "{charged}");
        }
    }
}
