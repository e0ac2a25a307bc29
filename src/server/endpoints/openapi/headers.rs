//! Response headers, by name: those of every response, and those that only some have.

use serde_json::{Map, Value, json};

/// Headers that every response has, whatever its status.
const COMMON: [&str; 6] = [
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit",
];

/// References to the headers of a response: the common ones, and its own.
pub(super) fn references(own: &[&str]) -> Value {
    let all: Map<String, Value> = COMMON
        .iter()
        .chain(own)
        .map(|name| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")})))
        .collect();
    Value::Object(all)
}

/// All headers, by name.
pub(super) fn all() -> Value {
    let whole = |description: &str, minimum: u32, example: u64| json!({"description": description, "schema": {"type": "integer", "minimum": minimum}, "example": example});
    let text = |description: &str, example: &str| json!({"description": description, "schema": {"type": "string"}, "example": example});
    let mut all = json!({
        "X-Request-Id": text("The request's identifier: the caller's own, if it sent a well-formed one.", "req_019aa0e7c2f47b1c8d3e5f60718293a4"),
        "X-RateLimit-Limit": whole("The limit of the window with the fewest requests left; 2147483647 if \
         nothing is limited.", 0, 60),
        "X-RateLimit-Remaining": whole("Requests left in that window.", 0, 59),
        "X-RateLimit-Reset": whole("When that window allows another request, in Unix seconds.", 0, 1_795_202_820),
        "RateLimit-Policy": text("All windows with a limit, in the format of the IETF draft; absent if nothing \
         is limited.", "\"minute\";q=60;w=60, \"day\";q=1000;w=86400"),
        "RateLimit": text("Requests left in them, and seconds until there are more, in the format of the IETF \
         draft.", "\"minute\";r=59;t=60, \"day\";r=999;t=41000"),
        "Retry-After": whole("Seconds to wait before the next try; never earlier than the reset.", 1, 12),
        "WWW-Authenticate": text("Always `Bearer`.", "Bearer"),
        "Allow": text("The methods that this path supports.", "GET, HEAD"),
        "X-Should-Retry": text("`false` if a retry cannot help; chat-completion clients obey it.", "false"),
        "X-Mk-Attempts": whole("Number of model calls made, including retries and fallbacks.", 0, 1),
        "X-Mk-Model": text("The model that answered, by its configured identifier.", "openai/gpt-5.4-mini"),
        "X-Mk-Dropped": text("Parameters left out because the model's API does not support them: those that do \
         not change the answer and, with `[inference] drop_unsupported = true`, those that do.", "seed, verbosity"),
        "X-Mk-Cache": text("Whether the answer came from the cache, if caching was requested: `hit` (`Age` is then its age), `miss`, or `bypass` if the cache was not used, as for streams.", "hit"),
        "Age": whole("Age of a cached answer in seconds.", 0, 12),
        "Location": text("Where the new record is, relative to the requested URL.", "apps/app_019aa0e7c2f47b1c8d3e5f60718293a4"),
        "Cache-Control": text("The answer must not be cached.", "no-store"),
        "ETag": text("Changes with the content; send it back as `If-None-Match`.", "\"0f3c9a\""),
        "Set-Cookie": text("The session, `HttpOnly; SameSite=Strict; Path=/`, and `Secure` behind https.", "mk_session=…; HttpOnly; SameSite=Strict; Path=/"),
    });
    // These are in every response that refers to them; the others may be missing.
    for name in [
        "X-Request-Id",
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "WWW-Authenticate",
        "Allow",
    ] {
        all[name]["required"] = true.into();
    }
    all
}
