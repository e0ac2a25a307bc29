//! The server's own pages: metrics and the description itself.

use serde_json::{Value, json};

use super::operation::{Operation, json_with_example, path, text};
use crate::api::endpoint::Endpoint;

/// The paths of these pages.
pub(super) fn paths() -> Vec<(String, Value)> {
    let metrics = Operation::new(
        "Server",
        "metrics",
        "Metrics for Prometheus",
        "Open to callers on the same machine; others need a console key.",
    )
    .secured(&["consoleKey", ""])
    .response(
        200,
        "OpenMetrics text.",
        text(
            "application/openmetrics-text",
            "The metrics, in OpenMetrics 1.0 text format.",
            "# TYPE mk_streams_open gauge\nmk_streams_open 0\n# EOF\n",
        ),
        &[],
    )
    .errors(&[401, 403, 429, 500, 503]);
    let schema = json!({
        "type": "object",
        "required": ["openapi", "info", "paths"],
        "properties": {"openapi": {"type": "string"}, "info": {"type": "object"}, "paths": {"type": "object"}},
    });
    let example = json!({"openapi": "3.1.1", "info": {"title": "mk", "version": "0.1.0"}, "paths": {}});
    let description = Operation::new(
        "Server",
        "openapi",
        "This description",
        "OpenAPI 3.1, with the ranges that this server is configured for.",
    )
    .parameters(&["IfNoneMatch"])
    .response(200, "The description.", json_with_example(&schema, &example), &["ETag", "Cache-Control"])
    .response(304, "Your copy is up to date.", Value::Null, &["ETag", "Cache-Control"])
    .errors(&[429, 500]);
    vec![path(Endpoint::Metrics, [("get", metrics)]), path(Endpoint::OpenApi, [("get", description)])]
}
