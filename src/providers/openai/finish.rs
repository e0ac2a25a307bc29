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
        // Mistral's and Anthropic's words, the latter behind some gateways.
        "model_length" | "max_tokens" => Ok(Some("length")),
        "tool_use" => Ok(Some("tool_calls")),
        "safety" | "SAFETY" | "refusal" => Ok(Some("content_filter")),
        // DeepSeek's word for an answer that it had no capacity to finish.
        "insufficient_system_resource" => Err(Failure::Overloaded { retry_after: None }),
        "error" => Err(Failure::Broken { status: 200 }),
        "abort" | "cancelled" | "canceled" => Err(Failure::Cut),
        // Local servers have names of their own for an ordinary end, such as `eos`.
        _ => Ok(Some("stop")),
    }
}
