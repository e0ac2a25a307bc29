//! Header names that the `http` crate does not define. A name given as text is validated and looked up each time it is
//! used; a response has eight of these, which was a fiftieth of the work of a short completion.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::inference::Protocol;

use crate::api::verify::CACHE_HEADER;

/// How many calls to providers it took.
pub(crate) static ATTEMPTS: HeaderName = HeaderName::from_static("x-mk-attempts");
/// The model that answers.
pub(crate) static MODEL: HeaderName = HeaderName::from_static("x-mk-model");
/// What was left out of the request, as the model's format has nothing like it.
pub(crate) static DROPPED: HeaderName = HeaderName::from_static("x-mk-dropped");
/// For how long a request may be answered from what is kept; and whether it was.
pub(crate) static CACHE: HeaderName = HeaderName::from_static(CACHE_HEADER);
/// The key, as clients of the Messages API send it.
pub(crate) static API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The request's id, as clients of the Messages API look for it.
pub(crate) static MESSAGES_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// The request's id.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The limit of the window with the fewest requests left.
pub(crate) static RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// The requests left in that window.
pub(crate) static RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// When that window resets, in Unix seconds.
pub(crate) static RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// The policies of all windows, in the format of the IETF draft.
pub(crate) static RATE_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of all windows, in the format of the IETF draft.
pub(crate) static RATE_STATE: HeaderName = HeaderName::from_static("ratelimit");

/// The headers of a protocol in which callers say how they speak it, but for credentials.
pub(crate) fn of_protocol(headers: &HeaderMap, protocol: Protocol) -> Vec<(HeaderName, HeaderValue)> {
    let names: &[HeaderName] = match protocol {
        Protocol::Messages => {
            &[HeaderName::from_static("anthropic-version"), HeaderName::from_static("anthropic-beta")]
        }
        Protocol::Responses => &[HeaderName::from_static("openai-beta")],
    };
    let given = names.iter().flat_map(|name| headers.get_all(name).iter().map(move |value| (name, value)));
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers in which clients name the session that a request belongs to, which is not the request's id: Claude Code
/// (from 2.1.86 on), Codex (today and formerly), several agents and gateways, `OpenCode`, clients of `LiteLLM`.
const SESSIONS: [&str; 7] = [
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
    "x-opencode-session",
    "x-litellm-session-id",
];

/// The session that a request names.
pub(crate) fn session(headers: &HeaderMap) -> Option<&[u8]> {
    SESSIONS.iter().find_map(|name| headers.get(*name)).map(http::HeaderValue::as_bytes)
}
