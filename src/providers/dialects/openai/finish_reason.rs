//! Finish reasons, for which providers of this format have many words.

use crate::providers::Failure;
use crate::providers::failure::safe_name;

/// Words for an ordinary end, in lowercase.
const ORDINARY: [&str; 10] = [
    "stop",
    "eos",
    "eos_token",
    "end_turn",
    "stop_sequence",
    "complete",
    "completed",
    "end",
    "done",
    "finished",
];

/// Maps a finish reason to one of the format's own; `None` while the answer goes on.
///
/// # Errors
/// For words that mean an interruption, which must not look like an end.
pub(super) fn read(reason: &str) -> Result<Option<&str>, Failure> {
    match reason {
        "" | "null" => Ok(None),
        "stop" | "length" | "content_filter" | "tool_calls" | "function_call" => Ok(Some(reason)),
        _ => unknown(&reason.to_ascii_lowercase()),
    }
}

/// The provider's word, made safe to show, if it means an end for lack of anything better.
pub(super) fn unheard_of(reason: &str) -> Option<String> {
    let lowercase = reason.to_ascii_lowercase();
    let is_ordinary = ORDINARY.contains(&&*lowercase);
    (!is_ordinary && read(reason) == Ok(Some("stop"))).then(|| safe_name(reason))
}

/// Interprets a non-standard reason by what it most likely means. Local servers have many for an ordinary end, such as
/// `eos`; an interruption must not be taken for one.
fn unknown(reason: &str) -> Result<Option<&'static str>, Failure> {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&[
        "filter",
        "safety",
        "sensitive",
        "refus",
        "policy",
        "prohibited",
        "moderat",
        "blocklist",
        "recitation",
    ]) {
        return Ok(Some("content_filter"));
    }
    // `insufficient_system_resource` is DeepSeek's reason for an answer that it had no capacity to finish.
    if says(&["overload", "capacity", "insufficient"]) {
        return Err(Failure::Overloaded { retry_after: None });
    }
    if says(&["abort", "cancel", "interrupt", "timeout", "timed_out", "disconnect"]) {
        return Err(Failure::Cut);
    }
    if says(&["error", "fail"]) {
        return Err(Failure::Broken { status: 200, retry_after: None });
    }
    // Such as Mistral's `model_length`, Anthropic's `max_tokens` and `model_context_window_exceeded`.
    if says(&["length", "max_", "limit", "exceeded", "incomplete", "truncated"]) {
        return Ok(Some("length"));
    }
    Ok(Some(if says(&["tool"]) { "tool_calls" } else { "stop" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_standard_reasons_are_interpreted() {
        for (words, expected) in [
            (&["stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE"][..], "stop"),
            (&["length", "MAX_TOKENS", "max_length", "model_length", "length_limit", "incomplete"], "length"),
            (&["model_context_window_exceeded"], "length"),
            (&["SAFETY", "sensitive", "refusal", "recitation", "PROHIBITED_CONTENT"], "content_filter"),
            (&["tool_calls", "tool_use", "TOOL_CALL"], "tool_calls"),
        ] {
            for word in words {
                assert_eq!(read(word), Ok(Some(expected)), "{word}");
            }
        }
        for word in ["", "null"] {
            assert_eq!(read(word), Ok(None), "the answer goes on");
        }
        for (word, shown) in [
            ("no_more_tokens", Some("no_more_tokens")),
            ("stop", None),
            ("EOS", None),
            ("length", None),
            ("SAFETY", None),
            ("error", None),
            ("", None),
        ] {
            assert_eq!(unheard_of(word).as_deref(), shown, "{word}");
        }
        for (word, failure) in [
            ("error", Failure::Broken { status: 200, retry_after: None }),
            ("network_error", Failure::Broken { status: 200, retry_after: None }),
            ("engine_overloaded", Failure::Overloaded { retry_after: None }),
            ("insufficient_system_resource", Failure::Overloaded { retry_after: None }),
            ("timeout", Failure::Cut),
            ("ABORTED", Failure::Cut),
        ] {
            assert_eq!(read(word), Err(failure), "{word}");
        }
    }
}
