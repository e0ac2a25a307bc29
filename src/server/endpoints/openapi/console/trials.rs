//! Trying out verifications and completions on the account of an app: bodies and answers are those of the areas.

use serde_json::{Value, json};

use super::super::operation::{either, json_with_example, path};
use super::super::schemas::{Schemas, reference};
use super::{READ_ONE, example, operation};
use crate::api::console::TryOffer;
use crate::api::endpoint::Endpoint;
use crate::server::endpoints::openapi::example as areas;

/// The errors of asking models.
const ASK: [u16; 13] = [400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504];

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let offer = operation(
        "Try",
        "getTryOffer",
        "List what can be tried",
        "The verification domains and chat models, for the dashboard.",
    )
    .parameters(&["AppId"])
    .response(
        200,
        "The offer.",
        json_with_example(&schemas.response::<TryOffer>(), &example::try_offer()),
        &["Cache-Control"],
    )
    .errors(&READ_ONE);
    let verify = operation(
        "Try",
        "tryVerify",
        "Verify a statement for an app",
        "Like `POST /verify/v1/stream`, but without a key of the app: for people in the dashboard. Counts \
         against the limits of the console key, and is recorded for it and for the app, whose budget applies.",
    )
    .parameters(&["AppId", "Progress", "Cache"])
    .body(
        &reference("VerifyRequest"),
        &[("plain", json!({"fact": "Canberra is the capital of Australia."}))],
    )
    .response(
        200,
        "The verification.",
        either(
            json_with_example(&reference("VerifyResponse"), &areas::verification()),
            stream("VerifyEvent", &areas::stream()),
        ),
        &["Cache-Control"],
    )
    .errors(&ASK);
    let chat = operation(
        "Try",
        "tryChat",
        "Answer a conversation for an app",
        "Like `POST /inference/v1/chat/completions`, but without a key of the app: for people in the dashboard. \
         Counts against the limits of the console key, and is recorded for it and for the app, whose budget applies.",
    )
    .parameters(&["AppId"])
    .body(
        &reference("ChatCompletionRequest"),
        &[(
            "plain",
            json!({
                "model": "openai/gpt-5.4-mini",
                "messages": [{"role": "user", "content": "What is the capital of Australia?"}],
            }),
        )],
    )
    .response(
        200,
        "The answer.",
        either(
            json_with_example(&reference("ChatCompletion"), &areas::completion()),
            stream("ChatCompletionEvent", &areas::chunks()),
        ),
        &["X-Mk-Attempts", "X-Mk-Model", "Cache-Control"],
    )
    .errors(&ASK);
    vec![
        path(Endpoint::Try, [("get", offer)]),
        path(Endpoint::TryVerify, [("post", verify)]),
        path(Endpoint::TryChat, [("post", chat)]),
    ]
}

fn stream(event: &str, example: &str) -> Value {
    json!({"text/event-stream": {"schema": reference(event), "example": example}})
}
