//! Dashboard sessions, and the first console key.

use serde_json::{Value, json};

use super::super::operation::{Operation, json_with_example, path};
use super::super::schemas::Schemas;
use super::example;
use crate::api::console::{NewSession, SessionInfo, SetUp, SetupRequest};
use crate::api::endpoint::Endpoint;

/// The errors of logging in.
const LOGIN: [u16; 9] = [400, 401, 403, 408, 413, 415, 429, 500, 503];

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let session = schemas.response::<SessionInfo>();
    let (new, setup, set_up) =
        (schemas.request::<NewSession>(), schemas.request::<SetupRequest>(), schemas.response::<SetUp>());
    let show = Operation::new(
        "Sessions",
        "getSession",
        "Show the session",
        "Needs the session's cookie; a key does not work.",
    )
    .secured(&["consoleSession"])
    .response(200, "The session.", json_with_example(&session, &example::session()), &["Cache-Control"])
    .errors(&[401, 403, 429, 500, 503]);
    let begin = Operation::new(
        "Sessions",
        "createSession",
        "Start a session",
        "Creates a session from a console key. It is sent only as a cookie, lasts at most 12 hours, or 30 \
         minutes without a request, and ends with its key. Attempts are limited by address.",
    )
    .body(&new, &[("key", json!({"key": "mk_console_4fJ0aQx7LmZp2VtYb8RnKcWdEs1GhU6i"}))])
    .response(
        201,
        "The session.",
        json_with_example(&session, &example::session()),
        &["Set-Cookie", "Cache-Control"],
    )
    .errors(&LOGIN);
    let end = Operation::new(
        "Sessions",
        "deleteSession",
        "End the session",
        "May be repeated, even without a session.",
    )
    .secured(&["consoleSession", ""])
    .response(204, "The session has ended.", Value::Null, &["Set-Cookie", "Cache-Control"])
    .errors(&[403, 429, 500, 503]);
    let first = Operation::new(
        "Sessions",
        "setUp",
        "Create the first console key",
        "Needs the token of the one-time link that `mk serve` shows while there is no console key.",
    )
    .body(&setup, &[("token", json!({"token": "Zp2VtYb8RnKcWdEs1GhU6i4fJ0aQx7Lm"}))])
    .response(
        201,
        "The key, shown only once, and a session created from it.",
        json_with_example(&set_up, &example::set_up()),
        &["Set-Cookie", "Cache-Control"],
    )
    .errors(&LOGIN)
    .errors(&[409]);
    vec![
        path(Endpoint::Session, [("get", show), ("post", begin), ("delete", end)]),
        path(Endpoint::Setup, [("post", first)]),
    ]
}
