//! The head of the description: information about the API, its servers, tags and security schemes.

use serde_json::{Value, json};

/// The tags with their descriptions, in the order in which areas are shown.
const TAGS: [(&str, &str); 9] = [
    ("Verify", "From a statement to an assessment of each of its claims, by a panel of models."),
    ("Inference", "Chat completions of several providers, in the chat-completion format."),
    ("Doors", "The same for what speaks the protocols of other APIs, with errors in their form."),
    ("Apps", "Apps group keys, usage and a budget."),
    ("Keys", "A key works for one service. It is shown once, when it is made."),
    ("Usage", "What was asked of models and what it cost; budgets, statements, and who changed what."),
    ("Try", "Verifications and completions from the dashboard, on an app's account and without a key of it."),
    ("Sessions", "Sessions of the dashboard, and the first console key."),
    ("Server", "Health, metrics, and this description."),
];

const ABOUT: &str = "\
Fact verification and chat inference behind one API.

Every request needs a key, except those for health, the dashboard's files, `/docs`, `/llms.txt`, this description, and \
`/metrics` from the same machine. A key is sent as \
`Authorization: Bearer mk_SERVICE_…` and works for one service: `verify`, `inference` or `console`.

**Limits.** A key has 60 requests in any 60 seconds and 1,000 in a UTC day, unless set otherwise. Every answer, errors \
included, says in its headers what is left.

**Errors** have one shape, `ErrorBody`, and behind `/openai/v1` and `/anthropic` that of these protocols: `code` is for programs, `message` says what to do next. That also holds for \
what is answered before an operation is found: 404 `unknown_route`, 405 `method_not_allowed` (with `Allow`), and 400, \
414 or 431 for what is not HTTP that this server can read.

**Streams** are Server-Sent Events. A line `: keep-alive` may come between frames while there is nothing to say. \
The schema of a stream is that of each of its events, `{event, data}`. A stream is complete only if its last event has arrived.

Bodies and parameters that are unknown or wrong are refused by name. Answers may grow: expect fields that are not \
described here. HEAD works wherever GET does.";

/// Everything before the paths.
pub(super) fn head() -> Value {
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "mk",
            "summary": "Fact verification and chat inference",
            "description": ABOUT,
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": ".", "description": "Where this description was found, also below a path of a proxy"}],
        "tags": TAGS.map(|(name, description)| json!({"name": name, "description": description})),
    })
}

/// The security schemes.
pub(super) fn security() -> Value {
    let key = |service: &str, what: &str| {
        json!({
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": format!("mk_{service}_ and 32 characters"),
            "description": format!("A key of the service `{service}`: {what}."),
        })
    };
    json!({
        "verifyKey": key("verify", "verifications"),
        "inferenceKey": key("inference", "chat completions"),
        "consoleKey": key("console", "administration"),
        "messagesKey": {
            "type": "apiKey",
            "in": "header",
            "name": "x-api-key",
            "description": "A key of the service `inference`, as clients of the Messages API send it.",
        },
        "consoleSession": {
            "type": "apiKey",
            "in": "cookie",
            "name": "mk_session",
            "description": "A session of the dashboard, made by `POST /v1/auth/session`; behind https the cookie is called \
                `__Host-mk_session`. What writes also needs an `Origin` that is this server's own, which browsers add.",
        },
    })
}
