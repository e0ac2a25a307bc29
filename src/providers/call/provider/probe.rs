//! Probes a provider by requesting its list of models: whether it is reachable and accepts our key.
//!
//! Some providers list their models for everybody. So a list that was given is requested once more without the key:
//! only if that is refused has the key really been tested.

use http::HeaderMap;
use http::header::DATE;
use serde_json::Value;
use tokio::time::Instant;

use super::{Backend, Provider};
use crate::clock::Time;
use crate::providers::call::open_response::OpenResponse;
use crate::providers::call::transport::Transport;
use crate::providers::{CompletionRequest, Dialect, Failure, KeyStatus, ProbeReport, ResponseMeta};

/// The maximum number of models in a list; the longest known list has a few hundred.
const MAX_MODELS: usize = 10_000;
/// Longer model names are ignored.
const MAX_NAME_BYTES: usize = 200;

impl Provider {
    /// Checks that the provider is reachable and accepts our key, at no cost.
    ///
    /// # Errors
    /// If it does not respond by `deadline`, refuses the key ([`Failure::Unauthorized`]) or fails otherwise.
    pub async fn probe(&self, deadline: Instant) -> Result<ProbeReport, Failure> {
        let Backend::Http { dialect, transport } = &self.backend else {
            return Ok(ProbeReport { key: KeyStatus::Simulated, date: None, models: None });
        };
        let opened = self.list(dialect.as_ref(), transport, true, deadline).await?;
        let date = response_date(&opened.head.headers);
        let mut models = None;
        let key = match opened.head.status.as_u16() {
            200..=299 => {
                // A web page is no list of models; any server may send one.
                let response = opened.read_all().await.map_err(|failed| failed.failure)?;
                let Ok(list) = serde_json::from_slice::<Value>(&response.body) else {
                    return Ok(ProbeReport { key: KeyStatus::NoList, date, models });
                };
                models = model_names(&list);
                if !transport.has_key() {
                    return Ok(ProbeReport { key: KeyStatus::NotNeeded, date, models });
                }
                let without = self.list(dialect.as_ref(), transport, false, deadline).await;
                let is_open = without.is_ok_and(|opened| opened.head.status.is_success());
                if is_open { KeyStatus::Untried } else { KeyStatus::Accepted }
            }
            404 | 405 | 501 => KeyStatus::NoList,
            _ => return Err(self.failure_of(dialect.as_ref(), opened).await),
        };
        Ok(ProbeReport { key, date, models })
    }

    async fn list(
        &self,
        dialect: &dyn Dialect,
        transport: &Transport,
        with_key: bool,
        deadline: Instant,
    ) -> Result<OpenResponse, Failure> {
        transport.get(&dialect.listing(), with_key, &self.call_policy(""), deadline).await
    }

    /// The failure that a response with any other status describes in the provider's format.
    async fn failure_of(&self, dialect: &dyn Dialect, opened: OpenResponse) -> Failure {
        let response = match opened.read_all().await {
            Ok(response) => response,
            Err(failed) => return failed.failure,
        };
        let response = response.with_clock(self.clock.clone());
        match dialect.response(&response, &CompletionRequest::default(), &ResponseMeta::default()) {
            Err(failed) => self.redacted(failed).failure,
            Ok(_) => Failure::Malformed,
        }
    }
}

/// The names in a list of models, in any of the formats: under `data` (`OpenAI`, Anthropic) or `models` (Gemini), or a
/// bare array, as some providers of `OpenAI`'s format send it. `None` if it is none of these, continues on another
/// page, or is implausibly long.
fn model_names(list: &Value) -> Option<Vec<String>> {
    let has_more =
        list["has_more"] == true || list["nextPageToken"].as_str().is_some_and(|token| !token.is_empty());
    let models = [list, &list["data"], &list["models"]].into_iter().find_map(Value::as_array)?;
    let names = |model: &Value| {
        let name = model["id"].as_str().or_else(|| model["name"].as_str())?;
        let aliases = model["aliases"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let own = name.strip_prefix("models/").unwrap_or(name);
        Some([own].into_iter().chain(aliases).map(str::to_owned).collect::<Vec<_>>())
    };
    if has_more || models.is_empty() || models.len() > MAX_MODELS {
        return None;
    }
    let names: Vec<_> = models.iter().map(names).collect::<Option<_>>()?;
    Some(names.into_iter().flatten().filter(|name| name.len() <= MAX_NAME_BYTES).collect())
}

fn response_date(headers: &HeaderMap) -> Option<Time> {
    Time::parse_http(headers.get(DATE)?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn complete_lists_of_all_formats_are_read() {
        let both = Some(["a", "b"].map(str::to_owned).into_iter().collect());
        for list in [
            json!({"object": "list", "data": [{"id": "a"}, {"id": "b", "object": "model"}]}),
            json!({"data": [{"id": "a", "type": "model"}, {"id": "b"}], "has_more": false, "last_id": "b"}),
            json!({"models": [{"name": "models/a"}, {"name": "models/b"}], "nextPageToken": ""}),
            json!([{"id": "a", "aliases": ["b"]}]),
        ] {
            assert_eq!(model_names(&list), both, "{list}");
        }
        for other in [
            json!({"data": [{"id": "a"}], "has_more": true}),
            json!({"models": [{"name": "models/a"}], "nextPageToken": "next"}),
            json!({"data": [{"id": "a"}, {"x": 1}]}),
            json!({"data": []}),
            json!({"data": {"id": "a"}}),
            json!({}),
            json!("a"),
        ] {
            assert_eq!(model_names(&other), None, "{other}");
        }
    }
}
