//! The doors of other protocols: `/openai/v1` and `/anthropic`. What they serve is described as in the inference area;
//! what differs is the form of errors.

use serde_json::{Value, json};

use super::{complete, embeddings, list, one, responses};
use crate::api::endpoint::{Door, Endpoint};
use crate::server::endpoints::openapi::operation::{Operation, json_with_example, path};
use crate::server::endpoints::openapi::schemas::{Schemas, reference};

/// The paths of both doors.
pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let door = Door::OpenAi;
    let complete = complete(schemas, "createChatCompletionAtOpenAi").errors_behind(
        door,
        schemas,
        &[400, 401, 402, 403, 404, 408, 413, 415, 422, 429, 500, 502, 503, 504],
    );
    let respond = responses::create(schemas).errors_behind(
        door,
        schemas,
        &[400, 401, 402, 403, 404, 408, 413, 415, 422, 429, 500, 502, 503, 504],
    );
    let embed = embeddings::create(schemas, "createEmbeddingsAtOpenAi").errors_behind(
        door,
        schemas,
        &[400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504],
    );
    let list = list(schemas, "listModelsAtOpenAi");
    let list = list.errors_behind(door, schemas, &[401, 403, 429, 500, 503]);
    let one = one(schemas, "getModelAtOpenAi");
    let one = one.errors_behind(door, schemas, &[401, 403, 404, 429, 500, 503]);
    vec![
        path(Endpoint::OpenAiChatCompletions, [("post", complete.tagged(TAG))]),
        path(Endpoint::Responses, [("post", respond.tagged(TAG))]),
        path(Endpoint::OpenAiEmbeddings, [("post", embed.tagged(TAG))]),
        path(Endpoint::OpenAiModels, [("get", list.tagged(TAG))]),
        path(Endpoint::OpenAiModel, [("get", one.tagged(TAG))]),
        path(Endpoint::OpenAiBase, [("get", base(schemas, door, "openAiBase"))]),
        path(Endpoint::AnthropicBase, [("get", base(schemas, Door::Anthropic, "anthropicBase"))]),
    ]
}

const TAG: &str = "Doors";

/// A door's own address, which clients look at to find out whether anybody is there.
fn base(schemas: &mut Schemas, door: Door, id: &str) -> Operation {
    let status = |status: &str| json!({"status": status, "service": "inference", "version": env!("CARGO_PKG_VERSION")});
    let health = reference("InferenceHealth");
    Operation::new(
        TAG,
        id,
        "Check the base URL",
        "Like the health of the inference service, for clients that check their configured base URL.",
    )
    .response(200, "Healthy.", json_with_example(&health, &status("ok")), &[])
    .response(503, "Not ready.", json_with_example(&health, &status("draining")), &[])
    .errors_behind(door, schemas, &[429, 500])
}
