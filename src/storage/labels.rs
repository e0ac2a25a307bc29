//! Whom a request was for and what its caller marked it with: dimensions of the ledger that callers make up.
//!
//! They are personal data. So they are in the daily sums and, while a call is under way, in its place in the journal,
//! and nowhere else: single attempts do not have them, and where an end user's requests or spending are counted, there
//! stands a hash in the place of the name. What must hold: a label is short and harmless on a terminal, whatever a caller
//! sends, and no caller's text decides the name of anything that is counted.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock::Time;
use crate::hex::hex;
use crate::unsafe_chars;

/// The longest text that is kept as it is, in characters: as long as `OpenAI`'s identifiers of end users may be.
pub const MAX_LABEL_CHARS: usize = 64;

/// How many tags of a request are counted: as many as `OpenAI`'s `metadata` has at most.
const MAX_TAGS: usize = 16;

/// Begins what the spending of an end user in a month is kept under.
const MONTH_PREFIX: &str = "um_";

/// Begins what the spending of an end user on a day is kept under.
const DAY_PREFIX: &str = "ud_";

/// The labels of a request.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Whom it is for, if its caller said so.
    pub end_user: Option<EndUser>,
    /// What its caller marked it with, as `name=value`.
    pub tags: Vec<String>,
}

/// Somebody whom an app's requests are for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndUser {
    /// As the ledger knows them.
    pub name: String,
    /// What they are counted by in the place of their name.
    pub id: String,
    /// Whether what they spend is counted against a budget.
    pub has_budget: bool,
}

impl Labels {
    /// The labels of a request of this app for this end user, with these tags, if there are any.
    pub fn new<'t>(
        app_id: &str,
        end_user: Option<&str>,
        has_budget: bool,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Option<Arc<Self>> {
        let end_user = end_user.filter(|name| !name.is_empty());
        let end_user = end_user.map(|name| EndUser { has_budget, ..EndUser::new(app_id, name) });
        let tags: Vec<_> = tags.take(MAX_TAGS).map(|(name, value)| tag(name, value)).collect();
        (end_user.is_some() || !tags.is_empty()).then(|| Arc::new(Self { end_user, tags }))
    }
}

impl EndUser {
    /// The end user of an app with this name, which is shortened where it must be.
    pub fn new(app_id: &str, name: &str) -> Self {
        let name = kept(name);
        let mut digest = hashed(&format!("{app_id}\n{name}"));
        digest.truncate(32);
        Self { name, id: format!("user_{digest}"), has_budget: false }
    }

    /// What their spending in a month is kept under.
    pub fn month_subject(&self) -> String {
        format!("{MONTH_PREFIX}{}", self.id)
    }

    /// What their spending on a day is kept under.
    pub fn day_subject(&self) -> String {
        format!("{DAY_PREFIX}{}", self.id)
    }

    /// What their spending at this time is kept under, with the month or day; nothing without a budget.
    pub(super) fn spends_in(&self, at: Time) -> impl Iterator<Item = (String, i64)> {
        let periods = self
            .has_budget
            .then(|| [(self.month_subject(), at.utc_month()), (self.day_subject(), at.utc_day())]);
        periods.into_iter().flatten()
    }
}

/// The ranges of what the spending of end users is kept under: of months, and of days.
pub(super) fn spending_ranges() -> [(&'static str, &'static str); 2] {
    [(MONTH_PREFIX, "um`"), (DAY_PREFIX, "ud`")]
}

/// A text as it is, or its SHA-256 where it is long or could play tricks on a terminal: that tells texts apart as well.
pub fn kept(text: &str) -> String {
    let is_short = text.chars().nth(MAX_LABEL_CHARS).is_none();
    if is_short && !text.chars().any(unsafe_chars::is_hazard) { text.to_owned() } else { hashed(text) }
}

fn tag(name: &str, value: &str) -> String {
    format!("{}={}", kept(name), kept(value))
}

fn hashed(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Names of people do not get into logs by way of what they are part of.
impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Labels").field("end_user", &self.end_user).field("tags", &self.tags.len()).finish()
    }
}

impl fmt::Debug for EndUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndUser")
            .field("id", &self.id)
            .field("has_budget", &self.has_budget)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_or_harmful_is_known_by_its_hash() {
        let long = "é".repeat(MAX_LABEL_CHARS);
        assert_eq!((kept("a b@c"), kept(&long)), ("a b@c".to_owned(), long.clone()));
        for odd in [long + "é", "a\nb".to_owned(), "\u{1b}[31m".to_owned(), "a\u{202e}b".to_owned()] {
            let kept = kept(&odd);
            assert!(kept.len() == 64 && kept.bytes().all(|byte| byte.is_ascii_hexdigit()), "{odd:?}: {kept}");
        }
        assert_ne!(kept("a\nb"), kept("a\rb"));
    }

    #[test]
    fn the_same_name_is_somebody_else_in_another_app() {
        let of = |app, name| EndUser::new(app, name).id;
        assert_eq!(of("app_1", "ann"), of("app_1", "ann"));
        assert_ne!(of("app_1", "ann"), of("app_2", "ann"));
        assert_ne!(of("app_1", "ann"), of("app_1", "bob"));
    }

    #[test]
    fn labels_are_bounded_and_do_not_show() {
        let many: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
        let tags = many.iter().map(|name| (name.as_str(), "v"));
        let labels = Labels::new("app_1", Some("ann"), true, tags).unwrap();
        assert_eq!((labels.tags.len(), labels.tags[15].as_str()), (MAX_TAGS, "n15=v"));
        let shown = format!("{labels:?}");
        assert!(!shown.contains("ann") && !shown.contains("n15"), "{shown}");
        assert_eq!(Labels::new("app_1", Some(""), true, std::iter::empty()), None);
    }
}
