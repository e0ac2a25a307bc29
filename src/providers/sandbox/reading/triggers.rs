//! Trigger words in a statement that make simulated models misbehave, for testing what surrounds them.
//!
//! | word | effect |
//! |---|---|
//! | `[sandbox:fail]` | the provider fails, as with a status of 500 |
//! | `[sandbox:stall]` | no answer until the call's timeout |
//! | `[sandbox:refuse]` | the model declines |
//! | `[sandbox:garbage]` | an answer that is not the JSON asked for |
//! | `[sandbox:slow]` | the answer takes about a second, a different time for each model |
//! | `[sandbox:correct]` | the extractor corrects a claim that it knows to be wrong, and insists on that |
//! | `[sandbox:omit]` | the extractor leaves the sentence out at first; `[sandbox:omit=always]`: for good |
//! | `[sandbox:equal]` | one of the rivals means the same as the claimed answer |
//! | `[sandbox:doubt]` | auditors object to the claim |
//!
//! Without a target, a word affects every model of the panel. `[sandbox:fail=beta]` affects one of them, and
//! `[sandbox:fail=extractor]` the extraction, `[sandbox:fail=auditor]` the audit. A word belongs to the sentence that
//! it is in or follows.

use std::fmt;

/// What a trigger makes a model do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::providers::sandbox) enum Act {
    Fail,
    Stall,
    Refuse,
    Garbage,
    Slow,
    Correct,
    Omit,
    Equal,
    Doubt,
}

/// One trigger word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::providers::sandbox) struct Trigger {
    act: Act,
    /// `extractor` or a model of the panel; `None` for the whole panel.
    target: Option<String>,
}

const ACTS: [(&str, Act); 9] = [
    ("fail", Act::Fail),
    ("stall", Act::Stall),
    ("refuse", Act::Refuse),
    ("garbage", Act::Garbage),
    ("slow", Act::Slow),
    ("correct", Act::Correct),
    ("omit", Act::Omit),
    ("equal", Act::Equal),
    ("doubt", Act::Doubt),
];
const OPEN: &str = "[sandbox:";
/// The target for the extraction, whichever model does it.
const EXTRACTION: &str = "extractor";
/// The target for the audit, whichever model does it.
const AUDIT: &str = "auditor";
/// The target of [`Act::Omit`] for an extractor that does not do better when asked again.
const ALWAYS: &str = "always";

impl Trigger {
    fn parse(inside: &str) -> Option<Self> {
        let (word, target) = match inside.split_once('=') {
            Some((word, target)) => (word, Some(target.to_owned())),
            None => (inside, None),
        };
        let (_, act) = ACTS.iter().find(|(name, _)| *name == word)?;
        Some(Self { act: *act, target })
    }

    /// What this makes `model` do as a member of the panel.
    pub(in crate::providers::sandbox) fn for_panel(&self, model: &str) -> Option<Act> {
        let is_meant = self
            .target
            .as_deref()
            .is_none_or(|target| target == model && ![EXTRACTION, AUDIT].contains(&target));
        (is_meant && !self.is_of_extraction()).then_some(self.act)
    }

    /// Whether this is about what an extractor writes.
    pub(in crate::providers::sandbox) const fn is_of_extraction(&self) -> bool {
        matches!(self.act, Act::Correct | Act::Omit | Act::Equal | Act::Doubt)
    }

    /// Whether an extractor leaves the sentence out; `is_mending` when it was asked again.
    pub(in crate::providers::sandbox) fn omits(&self, is_mending: bool) -> bool {
        self.act == Act::Omit && (!is_mending || self.target.as_deref() == Some(ALWAYS))
    }

    /// Whether an extractor puts what it knows in the place of what is claimed.
    pub(in crate::providers::sandbox) fn corrects(&self) -> bool {
        self.act == Act::Correct
    }

    /// Whether an extractor writes a rival that means the same as the claimed answer.
    pub(in crate::providers::sandbox) fn equals(&self) -> bool {
        self.act == Act::Equal
    }

    /// Whether auditors object to the claim.
    pub(in crate::providers::sandbox) fn is_doubted(&self) -> bool {
        matches!(self.act, Act::Doubt | Act::Correct)
    }

    /// What this makes the audit do.
    pub(in crate::providers::sandbox) fn for_audit(&self) -> Option<Act> {
        (self.target.as_deref() == Some(AUDIT)).then_some(self.act)
    }

    /// What this makes the extraction do.
    pub(in crate::providers::sandbox) fn for_extraction(&self) -> Option<Act> {
        (self.target.as_deref() == Some(EXTRACTION)).then_some(self.act)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = ACTS.iter().find(|(_, act)| *act == self.act).map_or("", |(word, _)| word);
        match &self.target {
            Some(target) => write!(f, "{OPEN}{word}={target}]"),
            None => write!(f, "{OPEN}{word}]"),
        }
    }
}

/// A sentence without the trigger words that it begins with, and these: they follow the sentence before it.
pub(in crate::providers::sandbox) fn leading(sentence: &str) -> Option<(&str, &str)> {
    let mut rest = sentence;
    while let Some((inside, after)) = rest.strip_prefix(OPEN).and_then(|word| word.split_once(']')) {
        Trigger::parse(inside)?;
        rest = after.trim_start();
    }
    let words = sentence[..sentence.len() - rest.len()].trim_end();
    (!words.is_empty() && !rest.is_empty()).then_some((words, rest))
}

/// Splits a text into the text without trigger words, and the triggers.
pub(in crate::providers::sandbox) fn split(text: &str) -> (String, Vec<Trigger>) {
    let mut clean = String::new();
    let mut triggers = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        clean.push_str(before);
        let parsed = after.split_once(']').and_then(|(inside, rest)| Some((Trigger::parse(inside)?, rest)));
        let Some((trigger, following)) = parsed else {
            clean.push_str(OPEN);
            rest = after;
            continue;
        };
        triggers.push(trigger);
        rest = following;
        // Avoids leaving two spaces, or one before a full stop.
        clean.truncate(clean.trim_end_matches(' ').len());
    }
    clean.push_str(rest);
    (clean.trim().to_owned(), triggers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_words_are_removed_and_parsed() {
        let (clean, triggers) = split("Paris [sandbox:fail] is in France [sandbox:slow=beta].");
        assert_eq!(clean, "Paris is in France.");
        let words: Vec<String> = triggers.iter().map(Trigger::to_string).collect();
        assert_eq!(words, ["[sandbox:fail]", "[sandbox:slow=beta]"]);
    }

    #[test]
    fn each_affects_the_models_that_it_names() {
        let (_, all) = split("[sandbox:refuse]");
        assert_eq!((all[0].for_panel("beta"), all[0].for_extraction()), (Some(Act::Refuse), None));
        let (_, one) = split("[sandbox:stall=beta]");
        assert_eq!((one[0].for_panel("beta"), one[0].for_panel("alpha")), (Some(Act::Stall), None));
        let (_, extraction) = split("[sandbox:garbage=extractor]");
        assert_eq!(extraction[0].for_extraction(), Some(Act::Garbage));
        assert_eq!(extraction[0].for_panel("extractor"), None);
    }

    #[test]
    fn words_before_a_sentence_are_told_from_it() {
        let both = leading("[sandbox:fail] [sandbox:slow=beta] Paris [sandbox:omit] is big.");
        assert_eq!(both, Some(("[sandbox:fail] [sandbox:slow=beta]", "Paris [sandbox:omit] is big.")));
        for whole in ["Paris is big.", "[sandbox:fail]", "[sandbox:dance] Paris", "[sandbox:fail Paris", ""] {
            assert_eq!(leading(whole), None, "{whole}");
        }
    }

    #[test]
    fn other_brackets_are_kept() {
        for text in ["[sandbox:dance]", "[sandbox:", "[sandbox:fail", "a [b] c"] {
            assert_eq!(split(text), (text.to_owned(), Vec::new()));
        }
    }
}
