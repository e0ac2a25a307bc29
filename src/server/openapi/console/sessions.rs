//! Sessions of the dashboard, and the first console key.

use serde_json::{Value, json};

use super::super::operation::{Operation, at, json_like};
use super::super::schemas::Schemas;
use super::example;
use crate::api::console::{NewSession, SessionInfo, SetUp, SetupRequest};

/// What may come of showing who one is.
const LOGIN: [u16; 9] = [400, 401, 403, 408, 413, 415, 429, 500, 503];

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let session = schemas.answer::<SessionInfo>();
    let (new, setup, set_up) =
        (schemas.request::<NewSession>(), schemas.request::<SetupRequest>(), schemas.answer::<SetUp>());
    let show = Operation::new(
        "Sessions",
        "getSession",
        "Show the session",
        "Takes the session's cookie alone, no key.",
    )
    .secured(&["consoleSession"])
    .answers(200, "The session.", json_like(&session, &example::session()), &["Cache-Control"])
    .fails(&[401, 403, 429, 500, 503]);
    let begin = Operation::new(
        "Sessions",
        "createSession",
        "Begin a session",
        "Makes a session from a console key. It travels in a cookie alone, lasts 12 hours at most and 30 minutes without a \
         request, and ends with its key. Attempts are limited by address.",
    )
    .body(&new, &[("key", json!({"key": "mk_console_4fJ0aQx7LmZp2VtYb8RnKcWdEs1GhU6i"}))])
    .answers(201, "The session.", json_like(&session, &example::session()), &["Set-Cookie", "Cache-Control"])
    .fails(&LOGIN);
    let end = Operation::new(
        "Sessions",
        "deleteSession",
        "End the session",
        "May be repeated, also without a session.",
    )
    .secured(&["consoleSession", ""])
    .answers(204, "There is no session any more.", Value::Null, &["Set-Cookie", "Cache-Control"])
    .fails(&[403, 429, 500, 503]);
    let first = Operation::new(
        "Sessions",
        "setUp",
        "Make the first console key",
        "With the token of the one-time link that `mk serve` prints while there is no console key.",
    )
    .body(&setup, &[("token", json!({"token": "Zp2VtYb8RnKcWdEs1GhU6i4fJ0aQx7Lm"}))])
    .answers(
        201,
        "The key, shown this once, and a session made from it.",
        json_like(&set_up, &example::set_up()),
        &["Set-Cookie", "Cache-Control"],
    )
    .fails(&LOGIN)
    .fails(&[409]);
    vec![
        at("/v1/auth/session", [("get", show), ("post", begin), ("delete", end)]),
        at("/v1/auth/setup", [("post", first)]),
    ]
}
