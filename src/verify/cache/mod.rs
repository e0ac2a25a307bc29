//! The verdict cache: what was found about the same text, or the same claim, is not paid for again (CONTRACT 4.22).
//!
//! ```text
//! text ─┬─ found ─────────── claims ─┬─ found ── votes ─┬─ recounted ─ result
//!       └─ else: extraction ─ claim ─┴─ else: panel ────┘
//! ```
//!
//! There are two kinds of entries: what a text says (claims with their questions and options, skipped parts), and how
//! the panel voted on a claim. A whole hit is one in which the text and each of its claims are found.
//!
//! What must hold: an entry depends on everything in its key ([`keys`]), the app first of all; votes are recounted, so
//! that `minRequired` is not in it. Only what is whole is kept: a text that was audited, if there is an auditor, and of
//! which nothing is unchecked; votes of a whole panel, none of which failed or was replaced. What is read is as foreign
//! as anything ([`entries`]), and counts as missing if a bit of it is wrong. A store that fails costs nothing but the
//! calls that it would have saved.

mod entries;
mod keys;
mod replay;

pub(super) use replay::{Extraction, extract};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::claim::Claim;
use super::extraction::{Found, Statement};
use super::model_calls::calls::ModelClient;
use super::voting::ballot::{PanelAnswer, Roster};
use super::{Job, PanelSettings};
use crate::api::verify::{ClaimResult, Domain, ReasonCode, VerifyResponse};
use crate::cache_entry::CacheKey;
use crate::usage::Meter;
use keys::Keys;

/// The largest entry, in bytes: what a text of 200,000 characters says takes less than half of it.
const MAX_ENTRY_BYTES: usize = 4 << 20;

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheEntry {
    /// What a text says.
    Text,
    /// How a panel voted on a claim.
    Claim,
}

/// Where entries are kept.
pub trait VerdictStore: Send + Sync {
    /// The contents of an app's entries under these keys that were made no longer ago than `max_age`, in the order of
    /// the keys; `None` if they cannot be read, or not soon.
    fn find<'a>(
        &'a self,
        app_id: &'a str,
        keys: Vec<CacheKey>,
        max_age: Duration,
    ) -> BoxFuture<'a, Option<Vec<Option<Vec<u8>>>>>;

    /// Keeps entries, from now on and without waiting.
    fn keep(&self, app_id: &Arc<str>, domain: Domain, entries: Vec<(CacheKey, Vec<u8>)>);

    /// Counts entries that were found and could be used, and those that were not.
    fn count(&self, entry: CacheEntry, hits: usize, misses: usize);
}

/// The cache, as one verification uses it.
pub(super) struct Cache<'a> {
    store: &'a dyn VerdictStore,
    app_id: &'a Arc<str>,
    job: &'a Job,
    settings: &'a PanelSettings,
    max_age: Duration,
    keys: Keys,
    /// How many models a whole panel has.
    panel_size: usize,
    /// Whether the store failed: it is not asked again.
    failed: AtomicBool,
}

impl<'a> Cache<'a> {
    /// `None` where the cache is off, or the request is of no app. Boxed, as few verifications have one.
    pub(super) fn new(
        store: Option<&'a dyn VerdictStore>,
        client: &dyn ModelClient,
        settings: &'a PanelSettings,
        job: &'a Job,
        meter: &'a Meter,
    ) -> Option<Box<Self>> {
        let (store, max_age) = (store?, settings.cache?);
        // A receipt tells what models wrote now.
        if meter.app_id().is_empty() || job.receipt.is_some() {
            return None;
        }
        let total = usize::try_from(job.total_models).unwrap_or(usize::MAX);
        let roster = Roster::new(&settings.panel, &settings.standby, total);
        Some(Box::new(Self {
            store,
            app_id: meter.app_id(),
            job,
            settings,
            max_age,
            keys: Keys::new(client, settings, &roster, job, meter.app_id()),
            panel_size: roster.panel_size(),
            failed: AtomicBool::new(false),
        }))
    }

    async fn find(&self, keys: Vec<CacheKey>) -> Vec<Option<Vec<u8>>> {
        let count = keys.len();
        if self.job.fresh || self.failed.load(Ordering::Relaxed) {
            return vec![None; count];
        }
        let found = self.store.find(self.app_id, keys, self.max_age).await;
        found.filter(|found| found.len() == count).unwrap_or_else(|| {
            self.failed.store(true, Ordering::Relaxed);
            vec![None; count]
        })
    }

    /// What the statement says, if that is known.
    async fn found(&self, statement: &Statement<'_>) -> Option<Found> {
        let found = self.look_up(statement).await;
        self.count(CacheEntry::Text, usize::from(found.is_some()), 1);
        found
    }

    async fn look_up(&self, statement: &Statement<'_>) -> Option<Found> {
        let key = self.keys.text(&self.job.fact);
        let content = self.find(vec![key]).await.pop().flatten()?;
        entries::read_text(&key, &content, statement, self.settings)
    }

    /// How the panel voted on these claims, where that is known.
    async fn votes(&self, claims: &[&Claim]) -> Vec<Option<Vec<PanelAnswer>>> {
        let votes = self.look_up_votes(claims).await;
        self.count(CacheEntry::Claim, votes.iter().flatten().count(), votes.len());
        votes
    }

    async fn look_up_votes(&self, claims: &[&Claim]) -> Vec<Option<Vec<PanelAnswer>>> {
        let keys: Vec<CacheKey> = claims
            .iter()
            .map(|claim| self.keys.claim(&claim.text, &claim.question, claim.claimed()))
            .collect();
        let contents = self.find(keys.clone()).await;
        let read = contents.into_iter().zip(keys).zip(claims);
        read.map(|((content, key), claim)| entries::read_votes(&key, &content?, claim, self.panel_size))
            .collect()
    }

    /// Whether a statement is a whole hit, for which no model is called. Counts as no use of the cache.
    pub(super) async fn knows(&self, statement: &Statement<'_>) -> bool {
        let Some(found) = self.look_up(statement).await else { return false };
        let claims: Vec<&Claim> = found.claims.iter().collect();
        self.look_up_votes(&claims).await.iter().all(Option::is_some)
    }

    fn count(&self, entry: CacheEntry, hits: usize, all: usize) {
        if !self.job.fresh {
            self.store.count(entry, hits, all - hits);
        }
    }

    /// Keeps what is whole and new of a result; `known_text` says that what the text says is not new.
    pub(super) fn keep(&self, response: &VerifyResponse, known_text: bool) {
        let is_audited = response.audited || self.settings.auditor.is_none();
        let text = (response.complete && is_audited && !known_text).then(|| {
            let key = self.keys.text(&self.job.fact);
            (key, entries::text(&key, response))
        });
        // That nobody could tell is no finding: the next time somebody may.
        let is_open = |result: &&ClaimResult| {
            matches!(result.reason_code, Some(ReasonCode::Unconfirmed | ReasonCode::NotInContext))
        };
        let fresh = response.results.iter().filter(|result| !result.cached && !is_open(result));
        let votes = fresh.map(|result| {
            let claimed = result.original_options.get(&result.claimed_answer).and_then(|text| text.as_str());
            let key = self.keys.claim(&result.claim, &result.original_question, claimed.unwrap_or_default());
            (key, entries::votes(&key, result, self.panel_size))
        });
        let kept: Vec<(CacheKey, Vec<u8>)> = text
            .into_iter()
            .chain(votes)
            .filter_map(|(key, content)| Some((key, content?)))
            .filter(|(_, content)| content.len() <= MAX_ENTRY_BYTES)
            .collect();
        if !kept.is_empty() {
            self.store.keep(self.app_id, self.job.domain, kept);
        }
    }
}
