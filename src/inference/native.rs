//! Requests in a protocol of their own: which models take them as they are, and what only such models can be asked.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::Gateway;
use crate::providers::{Failure, NativeRequest, Protocol, Speaks, TokenCount};

/// How the models that may answer a request take one in a protocol of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Native {
    /// Whether any may take it as it is.
    pub some: bool,
    /// Whether all do, so that nobody needs a chat completion in its place.
    pub all: bool,
    /// Whether the one that is asked first does.
    pub first: bool,
}

/// Why the tokens of a request were not counted.
#[derive(Debug)]
pub enum NotCounted {
    /// The model does not count, or cannot be asked now.
    Unable,
    /// There is something wrong with the request.
    Failed(Failure),
}

impl Gateway {
    /// How the models that may answer a request for `id` take one in this protocol.
    pub fn native(&self, id: &str, protocol: Protocol) -> Native {
        let speaks = |id: &str| self.find(id).and_then(|(provider, model)| provider.speaks(protocol, model));
        let chain = self.chain(id, None);
        let each: Vec<Option<Speaks>> = chain.iter().map(|id| speaks(id)).collect();
        let is_sure = |speaks: &Option<Speaks>| *speaks == Some(Speaks::Surely);
        Native {
            some: each.iter().any(Option::is_some),
            all: !each.is_empty() && each.iter().all(is_sure),
            first: each.first().is_some_and(is_sure),
        }
    }

    /// Has the model `id` count the tokens of a message for the holder of a key; returns what its provider says. It costs
    /// nothing, so it is not booked.
    ///
    /// # Errors
    /// If it does not count, or the request is at fault.
    pub async fn count_tokens(
        &self,
        id: &str,
        request: &NativeRequest,
        key_id: &Arc<str>,
    ) -> Result<Bytes, NotCounted> {
        let (entry, model) = self.find_entry(id).ok_or(NotCounted::Unable)?;
        let provider = &entry.provider;
        let now = Instant::now();
        if provider.speaks(request.protocol, model).is_none() || entry.breakers.paused(model, now).is_some() {
            return Err(NotCounted::Unable);
        }
        let deadline = now + provider.call_policy(model).first_byte_timeout;
        let counted = async {
            let (permit, _) = provider.admit(key_id, now, deadline).await?;
            provider
                .complete(permit, &TokenCount(request), model, deadline)
                .await
                .map_err(|failed| failed.failure)
        };
        counted.await.map_err(|failure| match failure {
            Failure::Rejected { .. } | Failure::ContextOverflow { .. } => NotCounted::Failed(failure),
            // Also a 404: servers that speak the protocol need not count.
            _ => NotCounted::Unable,
        })
    }
}
