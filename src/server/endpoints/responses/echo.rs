//! What a response repeats of its request: the parameters that an SDK's models of a response have.

use memchr::memchr2;

use crate::inference::Fields;
use crate::json::fields::write_field;

/// The parameters, and what they are if the caller has not set them.
const SMALL: [(&str, &str); 17] = [
    ("background", "false"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("prompt_cache_key", "null"),
    ("reasoning", "{\"effort\":null,\"summary\":null}"),
    ("safety_identifier", "null"),
    ("service_tier", "\"default\""),
    ("store", "false"),
    ("temperature", "null"),
    ("text", "{\"format\":{\"type\":\"text\"}}"),
    ("tool_choice", "\"auto\""),
    ("top_logprobs", "0"),
    ("top_p", "null"),
    ("truncation", "\"disabled\""),
];

/// Those that may be long: the answer repeats them once, and the first events of a stream do not.
const LONG: [(&str, &str); 2] = [("instructions", "null"), ("tools", "[]")];

/// Parameters as fields of a response, with commas before each.
#[derive(Debug)]
pub(super) struct Echo {
    small: String,
    long: String,
}

impl Echo {
    pub(super) fn of(fields: &Fields<'_>) -> Self {
        let write = |known: &[(&'static str, &str)]| {
            let mut out = Vec::new();
            for (name, default) in known {
                // One of the two that cannot be had otherwise.
                let given = fields.non_null(name).filter(|_| !matches!(*name, "service_tier" | "truncation"));
                write_field(&mut out, name, given.map_or(*default, |value| value.get()));
            }
            // Between the parts of a value; they would end the line that an event's data are.
            if memchr2(b'\n', b'\r', &out).is_some() {
                out.retain(|byte| !matches!(byte, b'\n' | b'\r'));
            }
            String::from_utf8(out).unwrap_or_default()
        };
        Self { small: write(&SMALL), long: write(&LONG) }
    }

    /// All parameters.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.small.as_bytes());
        out.extend_from_slice(self.long.as_bytes());
    }

    /// All parameters, with nothing in place of the long ones.
    pub(super) fn write_short(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.small.as_bytes());
        for (name, default) in LONG {
            write_field(out, name, default);
        }
    }
}
