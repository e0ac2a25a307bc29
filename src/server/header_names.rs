//! Names of headers that the `http` crate does not know. As text, a name is checked and looked up each time it is used;
//! an answer has eight of these, and that was a fiftieth of the work of a short completion.

use http::HeaderName;

/// How many calls to providers an answer took.
pub(crate) static ATTEMPTS: HeaderName = HeaderName::from_static("x-mk-attempts");
/// The model that answers.
pub(crate) static MODEL: HeaderName = HeaderName::from_static("x-mk-model");
/// The request's id.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The limit of the window with the fewest requests left.
pub(crate) static RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// The requests left in it.
pub(crate) static RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// When it is whole again, in Unix seconds.
pub(crate) static RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// The windows there are, in the IETF draft's form.
pub(crate) static RATE_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of them, in the IETF draft's form.
pub(crate) static RATE_STATE: HeaderName = HeaderName::from_static("ratelimit");
