//! Asks for the list of models, to know whether a provider is there and takes our key.
//!
//! Some providers list their models for everybody. Where that may be so, the list is asked for once more without the
//! key: only a key that makes a difference has been tried.

use std::collections::BTreeSet;

use http::HeaderMap;
use http::header::DATE;
use serde_json::Value;
use tokio::time::Instant;

use super::{Provider, Wire};
use crate::clock::Time;
use crate::providers::opened::Opened;
use crate::providers::transport::Transport;
use crate::providers::{Dialect, Failure, KeyStanding, Standing};

/// The most models of a list that is read; the longest known has some hundreds.
const MOST_MODELS: usize = 10_000;
/// The longest name of a model that is looked at.
const MOST_NAME_BYTES: usize = 200;

impl Provider {
    /// How it stands towards us, at no cost.
    ///
    /// # Errors
    /// If it is not there by `deadline`, refuses the key ([`Failure::Unauthorized`]) or fails otherwise.
    pub async fn standing(&self, deadline: Instant) -> Result<Standing, Failure> {
        let Wire::Http { dialect, transport } = &self.wire else {
            return Ok(Standing { key: KeyStanding::Simulated, date: None, models: None });
        };
        let opened = self.list(dialect.as_ref(), transport, true, deadline).await?;
        let date = date(&opened.head.headers);
        let mut models = None;
        let key = match opened.head.status.as_u16() {
            200..=299 => {
                // A page for people is no list, and its server may be any.
                let reply = opened.whole().await?;
                let Ok(list) = serde_json::from_slice::<Value>(&reply.body) else {
                    return Ok(Standing { key: KeyStanding::NoList, date, models });
                };
                models = listed(&list);
                if !transport.has_key() {
                    return Ok(Standing { key: KeyStanding::NotNeeded, date, models });
                }
                let without = self.list(dialect.as_ref(), transport, false, deadline).await;
                let is_open = without.is_ok_and(|opened| opened.head.status.is_success());
                if is_open { KeyStanding::Untried } else { KeyStanding::Accepted }
            }
            404 | 405 | 501 => KeyStanding::NoList,
            _ => return Err(self.complaint(dialect.as_ref(), opened).await),
        };
        Ok(Standing { key, date, models })
    }

    async fn list(
        &self,
        dialect: &dyn Dialect,
        transport: &Transport,
        with_key: bool,
        deadline: Instant,
    ) -> Result<Opened, Failure> {
        transport.get(&dialect.listing(), with_key, &self.patience(""), deadline).await
    }

    /// What an answer with another status than those above means in the provider's format.
    async fn complaint(&self, dialect: &dyn Dialect, opened: Opened) -> Failure {
        let reply = match opened.whole().await {
            Ok(reply) => reply,
            Err(failure) => return failure,
        };
        match dialect.answer(&reply.with(self.clock.clone())) {
            Err(failed) => failed.failure.without(self.settings().api_key.as_ref()),
            Ok(_) => Failure::Malformed,
        }
    }
}

/// The models of a list, in any of the formats: `data` (`OpenAI`, Anthropic) or `models` (Gemini), or bare, as some
/// speakers of `OpenAI`'s format have it. `None` if it is none of these, or goes on on another page, or is longer than
/// any list is.
fn listed(list: &Value) -> Option<BTreeSet<String>> {
    let has_more =
        list["has_more"] == true || list["nextPageToken"].as_str().is_some_and(|token| !token.is_empty());
    let models = [list, &list["data"], &list["models"]].into_iter().find_map(Value::as_array)?;
    let names = |model: &Value| {
        let name = model["id"].as_str().or_else(|| model["name"].as_str())?;
        let aliases = model["aliases"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let own = name.strip_prefix("models/").unwrap_or(name);
        Some([own].into_iter().chain(aliases).map(str::to_owned).collect::<Vec<_>>())
    };
    if has_more || models.is_empty() || models.len() > MOST_MODELS {
        return None;
    }
    let names: Vec<_> = models.iter().map(names).collect::<Option<_>>()?;
    Some(names.into_iter().flatten().filter(|name| name.len() <= MOST_NAME_BYTES).collect())
}

fn date(headers: &HeaderMap) -> Option<Time> {
    Time::parse_http(headers.get(DATE)?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_all_formats_are_read_if_they_are_whole() {
        let both = Some(["a", "b"].map(str::to_owned).into_iter().collect());
        for list in [
            json!({"object": "list", "data": [{"id": "a"}, {"id": "b", "object": "model"}]}),
            json!({"data": [{"id": "a", "type": "model"}, {"id": "b"}], "has_more": false, "last_id": "b"}),
            json!({"models": [{"name": "models/a"}, {"name": "models/b"}], "nextPageToken": ""}),
            json!([{"id": "a", "aliases": ["b"]}]),
        ] {
            assert_eq!(listed(&list), both, "{list}");
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
            assert_eq!(listed(&other), None, "{other}");
        }
    }
}
