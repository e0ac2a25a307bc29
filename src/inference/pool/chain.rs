//! The models to call for a request, in order.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::Instant;

use super::{Conversation, Pool, order};
use crate::inference::{Gateway, fallbacks, retry};

impl Gateway {
    /// The pool of this name.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.settings().pools.get(name)
    }

    /// Whether there are pools at all.
    pub fn has_pools(&self) -> bool {
        !self.settings().pools.is_empty()
    }

    /// The models to call for a request for `id`, in order: the model itself or the targets of the pool, the pool's own
    /// fallbacks, the fallbacks in the models' own settings, then those in the settings for chat completions. Fallbacks
    /// of fallbacks are not followed.
    pub fn chain(&self, id: &str, conversation: Option<Conversation>) -> Vec<Arc<str>> {
        let pool = self.pool(id);
        let asked = pool.map_or_else(|| vec![id], |pool| self.targets_of(pool, conversation));
        let mut chain: Vec<Arc<str>> = Vec::with_capacity(asked.len());
        let mut push = |id: Cow<'_, str>| {
            if chain.iter().all(|known| **known != *id) {
                chain.push(id.into());
            }
        };
        for id in &asked {
            push(Cow::Borrowed(id));
        }
        pool.iter().flat_map(|pool| &pool.fallbacks).for_each(|id| push(Cow::Borrowed(id)));
        for id in asked {
            let own = self.find(id).and_then(|(provider, model)| provider.model_settings(model));
            let own = own.map(|settings| settings.fallbacks.as_slice()).unwrap_or_default();
            let general = fallbacks::of(&self.settings().fallbacks, id);
            own.iter().map(|fallback| Cow::Borrowed(fallback.as_str())).chain(general).for_each(&mut push);
        }
        chain
    }

    /// The targets in the order in which they are to be called, those that are paused last.
    fn targets_of<'p>(&self, pool: &'p Pool, conversation: Option<Conversation>) -> Vec<&'p str> {
        let conversation = conversation.filter(|_| pool.affinity);
        let chance = |id: &str| conversation.map_or_else(retry::jitter, |home| home.chance(id));
        let mut targets = order::targets(pool, conversation.is_some(), chance, |id| self.loads().of(id));
        let now = Instant::now();
        let is_paused = |id: &&str| {
            let found = self.find_entry(id);
            found.is_some_and(|(entry, model)| entry.breakers.paused(model, now).is_some())
        };
        // The sort is stable, so that apart from this the order stays.
        targets.sort_by_cached_key(is_paused);
        targets
    }
}
