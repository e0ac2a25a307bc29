//! Why an answer ended, in the many words that speakers of this format have for it.

use crate::providers::Failure;

/// What a finish reason means: one of the format's own reasons, `None` while the answer goes on.
///
/// # Errors
/// For words that say the answer was broken off, which must not look like an end.
pub(super) fn read(reason: &str) -> Result<Option<&str>, Failure> {
    match reason {
        "" | "null" => Ok(None),
        "stop" | "length" | "content_filter" | "tool_calls" | "function_call" => Ok(Some(reason)),
        _ => foreign(&reason.to_ascii_lowercase()),
    }
}

/// A word of somebody's own, by what it is likely to say. Local servers have many for an ordinary end, such as `eos`; an
/// answer that was broken off must not be taken for one.
fn foreign(reason: &str) -> Result<Option<&'static str>, Failure> {
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
    // `insufficient_system_resource` is DeepSeek's for an answer that it had no capacity to finish.
    if says(&["overload", "capacity", "insufficient"]) {
        return Err(Failure::Overloaded { retry_after: None });
    }
    if says(&["abort", "cancel", "interrupt", "timeout", "timed_out", "disconnect"]) {
        return Err(Failure::Cut);
    }
    if says(&["error", "fail"]) {
        return Err(Failure::Broken { status: 200 });
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
    fn words_of_their_own_are_taken_for_what_they_say() {
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
        for (word, failure) in [
            ("error", Failure::Broken { status: 200 }),
            ("network_error", Failure::Broken { status: 200 }),
            ("engine_overloaded", Failure::Overloaded { retry_after: None }),
            ("insufficient_system_resource", Failure::Overloaded { retry_after: None }),
            ("timeout", Failure::Cut),
            ("ABORTED", Failure::Cut),
        ] {
            assert_eq!(read(word), Err(failure), "{word}");
        }
    }
}
