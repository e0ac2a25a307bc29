//! `GET /anthropic/v1/models`: the models that a key may use, in the format of the Messages API, page by page; and
//! `GET /anthropic/v1/models/{id}`: one of them.

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::api::Service;
use crate::api::models::{Model, ModelKind};
use crate::server::endpoints::models::{find, usable};
use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::Incoming;
use crate::server::request::params::invalid;
use crate::server::{ServerState, gate};

/// The number of models on a page, unless the caller asks for another, and the maximum
/// (<https://docs.claude.com/en/api/models-list>).
const DEFAULT_PAGE: usize = 20;
const MAX_PAGE: usize = 1000;

/// When a model was made, which nobody here knows: the API's documentation has this for such models.
const UNKNOWN_TIME: &str = "1970-01-01T00:00:00Z";

/// Lists the models that the key may use.
pub(crate) async fn list(
    context: &ServerState,
    incoming: &Incoming,
    query: &str,
) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Inference).await?;
    let mut models = usable(context, &incoming.configured.gateway, &caller);
    models.retain(|model| model.kind == ModelKind::Chat);
    reply::within(caller.rate, page(&models, query).map(|page| reply::json(StatusCode::OK, &page)))
}

/// Shows one model.
pub(crate) async fn one(
    context: &ServerState,
    incoming: &Incoming,
    encoded: &str,
) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Inference).await?;
    let found = find(context, &incoming.configured.gateway, &caller, encoded);
    reply::within(caller.rate, found.map(|model| reply::json(StatusCode::OK, &info(&model))))
}

/// The page of a list that a query asks for: `limit`, and `after_id` or `before_id`. Clients add parameters of their own
/// (`beta`).
fn page(models: &[Model], query: &str) -> Result<Value, ApiError> {
    let parameter = |wanted: &str| {
        let mut all = form_urlencoded::parse(query.as_bytes());
        all.find_map(|(name, value)| (name == wanted && !value.is_empty()).then(|| value.into_owned()))
    };
    let limit = match parameter("limit") {
        None => DEFAULT_PAGE,
        Some(text) => {
            let limit = text.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
            limit.ok_or_else(|| {
                invalid("limit", format!("`limit` must be a whole number from 1 to {MAX_PAGE}"))
            })?
        }
    };
    let place = |name: &str| match parameter(name) {
        None => Ok(None),
        Some(id) => {
            let place = models.iter().position(|model| model.id == id);
            place.map(Some).ok_or_else(|| invalid(name, format!("`{name}` must be the id of a listed model")))
        }
    };
    let (page, has_more) = match (place("after_id")?, place("before_id")?) {
        (after, None) => {
            let rest = after.map_or(models, |place| &models[place + 1..]);
            (&rest[..limit.min(rest.len())], rest.len() > limit)
        }
        (_, Some(place)) => (&models[place.saturating_sub(limit)..place], place > limit),
    };
    Ok(json!({
        "data": page.iter().map(info).collect::<Vec<_>>(),
        "has_more": has_more,
        "first_id": page.first().map(|model| &model.id),
        "last_id": page.last().map(|model| &model.id),
    }))
}

fn info(model: &Model) -> Value {
    let mut info = json!({
        "type": "model",
        "id": model.id,
        "display_name": model.id,
        "created_at": UNKNOWN_TIME,
    });
    for (name, tokens) in
        [("max_input_tokens", model.context_window), ("max_tokens", model.max_output_tokens)]
    {
        if let Some(tokens) = tokens {
            info[name] = tokens.into();
        }
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_pages() {
        let model = |id: &str| Model { id: id.to_owned(), ..Model::default() };
        let models = ["a", "b", "c", "d"].map(model);
        let ids = |query: &str| {
            let page = page(&models, query).unwrap();
            let ids: Vec<String> =
                page["data"].as_array().unwrap().iter().map(|model| model["id"].to_string()).collect();
            assert_eq!(page["first_id"].to_string(), ids.first().map_or("null", String::as_str));
            (ids.concat().replace('"', ""), page["has_more"] == true)
        };
        for (query, expected, more) in [
            ("", "abcd", false),
            ("limit=1000&beta=true", "abcd", false),
            ("limit=3", "abc", true),
            ("limit=3&after_id=c", "d", false),
            ("limit=1&after_id=b", "c", true),
            ("limit=2&before_id=d", "bc", true),
            ("before_id=b", "a", false),
            ("after_id=d", "", false),
        ] {
            assert_eq!(ids(query), (expected.to_owned(), more), "{query}");
        }
        for query in ["limit=0", "limit=1001", "limit=x", "after_id=z"] {
            assert!(page(&models, query).is_err(), "{query}");
        }
    }
}
