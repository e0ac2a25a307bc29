//! Asks for the list of models, to know whether a provider is there and takes our key.
//!
//! Some providers list their models for everybody. Where that may be so, the list is asked for once more without the
//! key: only a key that makes a difference has been tried.

use http::HeaderMap;
use http::header::DATE;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::{Provider, Wire};
use crate::clock::Time;
use crate::providers::opened::Opened;
use crate::providers::transport::Transport;
use crate::providers::{Dialect, Failure, Incoming, KeyStanding, Standing};

impl Provider {
    /// How it stands towards us, at no cost.
    ///
    /// # Errors
    /// If it is not there by `deadline`, refuses the key ([`Failure::Unauthorized`]) or fails otherwise.
    pub async fn standing(&self, deadline: Instant) -> Result<Standing, Failure> {
        let Wire::Http { dialect, transport } = &self.wire else {
            return Ok(Standing { key: KeyStanding::Simulated, date: None });
        };
        let opened = self.list(dialect.as_ref(), transport, true, deadline).await?;
        let date = date(&opened.head.headers);
        let key = match opened.head.status.as_u16() {
            200..=299 => {
                // A page for people is no list, and its server may be any.
                let reply = opened.whole().await?;
                if serde_json::from_slice::<IgnoredAny>(&reply.body).is_err() {
                    return Ok(Standing { key: KeyStanding::NoList, date });
                }
                if !transport.has_key() {
                    return Ok(Standing { key: KeyStanding::NotNeeded, date });
                }
                let without = self.list(dialect.as_ref(), transport, false, deadline).await;
                let is_open = without.is_ok_and(|opened| opened.head.status.is_success());
                if is_open { KeyStanding::Untried } else { KeyStanding::Accepted }
            }
            404 | 405 | 501 => KeyStanding::NoList,
            _ => return Err(self.complaint(dialect.as_ref(), opened).await),
        };
        Ok(Standing { key, date })
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
        let (status, headers, body) = (reply.status, reply.headers, reply.body);
        match dialect.answer(&Incoming { status, headers, body, at: self.clock.now() }) {
            Err(failed) => failed.failure,
            Ok(_) => Failure::Malformed,
        }
    }
}

fn date(headers: &HeaderMap) -> Option<Time> {
    Time::parse_http(headers.get(DATE)?.to_str().ok()?)
}
