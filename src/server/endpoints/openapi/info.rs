//! The head of the description: information about the API, its servers, tags and security schemes.

use serde_json::{Value, json};

/// The tags with their descriptions, in the order in which areas are shown.
const TAGS: [(&str, &str); 9] = [
    ("Verify", "Assess each claim of a statement with a panel of models."),
    ("Inference", "Chat completions from several providers, in the chat-completion format."),
    ("Doors", "The same for clients of other APIs, with errors in their format."),
    ("Apps", "Apps group keys, usage and a budget."),
    ("Keys", "A key works for one service. It is shown once, when it is created."),
    ("Usage", "Usage, costs, budgets, statements, and the audit log."),
    ("Try", "Verifications and completions from the dashboard, charged to an app, without one of its keys."),
    ("Sessions", "Sessions of the dashboard, and the first console key."),
    ("Server", "Health, metrics, and this description."),
];

const ABOUT: &str = "\
Fact verification and chat inference behind one API.

Every request needs a key, except for health, the dashboard's files, `/docs`, `/llms.txt`, this description, and `/metrics` from the same machine. Send the key as `Authorization: Bearer mk_SERVICE_…`. It works for one service: `verify`, `inference` or `console`.

**Limits.** By default, a key allows 60 requests in any 60 seconds and 1,000 per UTC day. The headers of every answer, including errors, say what is left.

**Errors** have one shape, `ErrorBody`; under `/openai/v1` and `/anthropic`, that of these APIs. `code` is for programs; `message` says what to do next. This includes errors before an operation is found: 404 `unknown_route`, 405 `method_not_allowed` (with `Allow`), 426 `websocket_unsupported`, and 400, 414 or 431 for invalid HTTP.

**Streams** are Server-Sent Events. A line `: keep-alive` may come between frames during silence. The schema of a stream is that of each of its events, `{event, data}`. A stream is complete only if its last event has arrived.

Unknown or invalid parameters are refused by name. Answers may gain fields: expect ones that are not described here. HEAD works wherever GET does.";

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
        "servers": [{"url": ".", "description": "The server of this description, also under a proxy's path"}],
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
            "description": "A dashboard session, created by `POST /v1/auth/session`; over https, the cookie is \
             named `__Host-mk_session`. Writes also need this server's own `Origin`, which browsers add.",
        },
    })
}
