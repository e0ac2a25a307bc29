//! What callers sent and saw, request by request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::token;

/// How much of its response a caller has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It left before there was anything; whether the request reached the server is unknown.
    Nothing,
    /// It left during a response with this status.
    Partly(u16),
    /// The whole response.
    Whole(u16),
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// What was seen of the response.
    pub(crate) seen: Seen,
    /// Whether its key may have been revoked, so that its calls may have been cancelled.
    pub(crate) is_revoked: bool,
}

/// All requests.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By token.
    sent: Vec<Sent>,
    /// The statuses of malformed requests, by the ids that the server gave them.
    refused: BTreeMap<String, u16>,
    /// What was wrong, how often, and an example.
    wrong: BTreeMap<String, (u64, String)>,
}

impl Book {
    /// The token of a request that is about to be sent.
    pub(crate) fn open(&self) -> u64 {
        let sent = &mut self.lock().sent;
        sent.push(Sent { seen: Seen::Nothing, is_revoked: false });
        sent.len() as u64 - 1
    }

    /// Records what was seen.
    pub(crate) fn see(&self, token: u64, seen: Seen) {
        self.note(token, |sent| sent.seen = seen);
    }

    /// What was seen so far.
    pub(crate) fn seen(&self, token: u64) -> Seen {
        let place = usize::try_from(token).unwrap_or(usize::MAX);
        self.lock().sent.get(place).map_or(Seen::Nothing, |sent| sent.seen)
    }

    /// Records that its key is about to be revoked.
    pub(crate) fn revoke(&self, token: u64) {
        self.note(token, |sent| sent.is_revoked = true);
    }

    /// Records that a malformed request was refused.
    pub(crate) fn refused(&self, id: &str, status: u16) {
        self.lock().refused.insert(id.to_owned(), status);
    }

    /// All malformed requests that were refused, by id.
    pub(crate) fn all_refused(&self) -> BTreeMap<String, u16> {
        self.lock().refused.clone()
    }

    /// Records a response that was not as expected.
    pub(crate) fn report_wrong(&self, token: u64, what: &str, example: impl FnOnce() -> String) {
        let mut inner = self.lock();
        let known = inner.wrong.entry(what.to_owned());
        known.or_insert_with(|| (0, format!("{}: {}", token::id(token), example()))).0 += 1;
    }

    /// All requests, by token.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.lock().sent.clone()
    }

    /// What was wrong, in sentences.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let sentence = |(what, (times, example)): (&String, &(u64, String))| {
            format!("{what}, {times} times; the first: {example}")
        };
        self.lock().wrong.iter().map(sentence).collect()
    }

    fn note(&self, token: u64, what: impl FnOnce(&mut Sent)) {
        let place = usize::try_from(token).unwrap_or(usize::MAX);
        if let Some(sent) = self.lock().sent.get_mut(place) {
            what(sent);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
