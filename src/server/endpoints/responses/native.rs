//! Responses that models get as they came, and the events of their answers.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::frame::Frames;
use super::request;
use crate::inference::{Fields, Json, Reader};
use crate::json::fields::{write_field, write_field_escaped, write_string_field};
use crate::json::raw;
use crate::server::endpoints::chat::request::is_same_but_for_case;
use crate::server::endpoints::chat::stream::Transcoder;
use crate::server::reply::ApiError;

/// The fields that ask for nothing but tokens of the model that is named, at its usual price.
const PLAIN: [&str; 24] = [
    "model",
    "input",
    "background",
    "client_metadata",
    "conversation",
    "include",
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "user",
];

/// The types of tools that run at the caller.
const RUN_HERE: [&str; 5] = ["function", "custom", "namespace", "local_shell", "apply_patch"];

/// Whether a request may be passed on: nothing in it needs answers that were stored and, if its key has limits, nothing
/// is charged apart or may ask another model.
pub(super) fn may_pass(fields: &Fields<'_>, is_limited: bool) -> bool {
    request::refuse_state(fields).is_ok() && (!is_limited || is_plain(fields))
}

fn is_plain(fields: &Fields<'_>) -> bool {
    fields.iter().all(|(name, value)| value.is_null() || PLAIN.contains(&name))
        && fields.non_null("tools").is_none_or(run_here)
}

/// Whether all of these tools run at the caller.
fn run_here(tools: Json<'_>) -> bool {
    let all = tools.items().map(|tools| {
        tools.into_iter().all(|tool| {
            let Some([kind, inner]) = tool.fields(["type", "tools"]) else { return false };
            // A provider that reads names in any case may read another type, or other tools.
            let is_other = |name: &str| {
                ["type", "tools"].iter().any(|known| name != *known && is_same_but_for_case(name, known))
            };
            if Fields::parse(tool.get()).map_or(true, |fields| fields.iter().any(|(name, _)| is_other(name)))
            {
                return false;
            }
            let kind = kind.and_then(Json::string).unwrap_or_default();
            // A namespace has none of its own kind in it.
            let is_inner_here =
                inner.is_none_or(|inner| !inner.get().contains("\"namespace\"") && run_here(inner));
            RUN_HERE.contains(&&*kind) && is_inner_here
        })
    });
    all.unwrap_or_default()
}

/// What stands before the number of an event.
const NUMBER: &str = "\"sequence_number\":";
/// Finds it; made once, as that takes as long as to search an event. Searching backwards takes several times as long.
static NUMBERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NUMBER));

/// The events of an answer that are passed on; of it, what an end that is not the provider's has to repeat.
#[derive(Debug, Default)]
pub(super) struct NativeEvents {
    /// The answer as it began, as JSON.
    begun: Option<String>,
    /// The number of the next event.
    next: u64,
}

impl Transcoder for NativeEvents {
    fn chunks(&mut self, sse: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(sse);
        let Ok(text) = std::str::from_utf8(sse) else { return };
        if self.begun.is_none() {
            let data = text.lines().find_map(|line| line.strip_prefix("data: ")).and_then(raw::value);
            let response = data.and_then(|data| data.fields(["response"])).and_then(|[response]| response);
            self.begun = response.map(|response| response.get().to_owned());
        }
        if let Some(at) = NUMBERS.find_iter(sse).last() {
            let number = text.get(at + NUMBER.len()..).and_then(|rest| Reader::new(rest).value());
            self.next =
                number.and_then(Json::read::<u64>).map_or(self.next, |number| number.saturating_add(1));
        }
    }

    fn fail(&mut self, error: ApiError, out: &mut Vec<u8>) {
        let error = error.into_chunk_error();
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        let begun = self.begun.take().unwrap_or_default();
        let fields = Fields::parse(&begun).unwrap_or_default();
        Frames::from(self.next).event("response.failed", out, |out| {
            write_field(out, "response", "{");
            for (name, value) in fields.iter().filter(|(name, _)| !matches!(*name, "status" | "error")) {
                write_field_escaped(out, name, value.get());
            }
            write_field(out, "status", "\"failed\"");
            write_field(out, "error", "{");
            write_string_field(out, "code", text("code"));
            write_string_field(out, "message", text("message"));
            out.extend_from_slice(b"}}");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::reply::ErrorCode;

    #[test]
    fn keys_with_limits_pass_on_what_only_their_model_is_asked_for() {
        let passes = |body: &str, is_limited| may_pass(&Fields::parse(body).unwrap(), is_limited);
        for plain in [
            r#"{"model":"m","input":"x","store":false,"service_tier":null}"#,
            r#"{"input":"x","tools":[{"type":"function"},{"type":"namespace","tools":[{"type":"custom"}]}]}"#,
        ] {
            assert!(passes(plain, true), "{plain}");
        }
        for charged in [
            r#"{"service_tier":"priority"}"#,
            r#"{"prompt":{"id":"pmpt_1"}}"#,
            r#"{"tools":[{"type":"function"},{"type":"web_search"}]}"#,
            r#"{"tools":[{"type":"namespace","tools":[{"type":"image_generation"}]}]}"#,
            r#"{"tools":[{"type":"function","Type":"web_search"}]}"#,
            r#"{"tools":[{"type":"namespace","tool\u017f":[{"type":"web_search"}]}]}"#,
            r#"{"tools":{}}"#,
        ] {
            assert!(!passes(charged, true) && passes(charged, false), "{charged}");
        }
        for stored in [
            r#"{"previous_response_id":"resp_1"}"#,
            r#"{"store":true}"#,
            r#"{"STORE":true}"#,
            r#"{"Background":1}"#,
            r#"{"\u017ftore":true}"#,
        ] {
            assert!(!passes(stored, false), "{stored}");
        }
    }

    #[test]
    fn a_failure_ends_the_answer_that_has_begun() {
        let mut events = NativeEvents::default();
        let mut out = Vec::new();
        let begun = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\
                     \"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"error\":null,\"x\":1.0}}\n\n";
        events.chunks(begun.as_bytes(), &mut out);
        assert_eq!(out, begun.as_bytes());
        events.chunks(b"event: x\ndata: {\"type\":\"x\",\"sequence_number\":7}\n\n", &mut out);
        out.clear();
        events.fail(ErrorCode::ProviderError.into(), &mut out);
        let text = String::from_utf8(out).unwrap();
        let expected = "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":8,\"response\":\
                        {\"id\":\"resp_1\",\"x\":1.0,\"status\":\"failed\",\"error\":{\"code\":\"provider_error\",\"message\":";
        assert!(text.starts_with(expected), "{text}");
    }
}
