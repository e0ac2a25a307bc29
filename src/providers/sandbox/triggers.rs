//! Words in a statement that make simulated models misbehave, for tests of what stands around them.
//!
//! | word | effect |
//! |---|---|
//! | `[sandbox:fail]` | the provider fails, as with a status of 500 |
//! | `[sandbox:stall]` | no answer until the call's time limit |
//! | `[sandbox:refuse]` | the model declines |
//! | `[sandbox:garbage]` | an answer that is not the JSON asked for |
//! | `[sandbox:slow]` | the answer takes about a second, a different time for each model |
//!
//! Alone, a word concerns every model of the panel. `[sandbox:fail=beta]` concerns one of them, and
//! `[sandbox:fail=extractor]` the extraction. A word belongs to the sentence it stands in or behind.

use std::fmt;

/// What a trigger makes a model do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Fail,
    Stall,
    Refuse,
    Garbage,
    Slow,
}

/// One trigger word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trigger {
    act: Act,
    /// `extractor` or a model of the panel; `None` is the whole panel.
    target: Option<String>,
}

const ACTS: [(&str, Act); 5] = [
    ("fail", Act::Fail),
    ("stall", Act::Stall),
    ("refuse", Act::Refuse),
    ("garbage", Act::Garbage),
    ("slow", Act::Slow),
];
const OPEN: &str = "[sandbox:";
/// The target that stands for the extraction, whichever model makes it.
const EXTRACTION: &str = "extractor";

impl Trigger {
    fn read(inside: &str) -> Option<Self> {
        let (word, target) = match inside.split_once('=') {
            Some((word, target)) => (word, Some(target.to_owned())),
            None => (inside, None),
        };
        let (_, act) = ACTS.iter().find(|(name, _)| *name == word)?;
        Some(Self { act: *act, target })
    }

    /// What this makes a panel's `model` do.
    pub(super) fn for_panel(&self, model: &str) -> Option<Act> {
        self.target
            .as_deref()
            .is_none_or(|target| target == model && target != EXTRACTION)
            .then_some(self.act)
    }

    /// What this makes the extraction do.
    pub(super) fn for_extraction(&self) -> Option<Act> {
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

/// A text without its trigger words, and these.
pub(super) fn split(text: &str) -> (String, Vec<Trigger>) {
    let mut clean = String::new();
    let mut triggers = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        clean.push_str(before);
        let read = after.split_once(']').and_then(|(inside, behind)| Some((Trigger::read(inside)?, behind)));
        let Some((trigger, behind)) = read else {
            clean.push_str(OPEN);
            rest = after;
            continue;
        };
        triggers.push(trigger);
        rest = behind;
        // Not to leave two spaces, or one before a full stop.
        clean.truncate(clean.trim_end_matches(' ').len());
    }
    clean.push_str(rest);
    (clean.trim().to_owned(), triggers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_out_and_read() {
        let (clean, triggers) = split("Paris [sandbox:fail] is in France [sandbox:slow=beta].");
        assert_eq!(clean, "Paris is in France.");
        let words: Vec<String> = triggers.iter().map(Trigger::to_string).collect();
        assert_eq!(words, ["[sandbox:fail]", "[sandbox:slow=beta]"]);
    }

    #[test]
    fn each_concerns_whom_it_names() {
        let (_, all) = split("[sandbox:refuse]");
        assert_eq!((all[0].for_panel("beta"), all[0].for_extraction()), (Some(Act::Refuse), None));
        let (_, one) = split("[sandbox:stall=beta]");
        assert_eq!((one[0].for_panel("beta"), one[0].for_panel("alpha")), (Some(Act::Stall), None));
        let (_, extraction) = split("[sandbox:garbage=extractor]");
        assert_eq!(extraction[0].for_extraction(), Some(Act::Garbage));
        assert_eq!(extraction[0].for_panel("extractor"), None);
    }

    #[test]
    fn other_brackets_stay() {
        for text in ["[sandbox:dance]", "[sandbox:", "[sandbox:fail", "a [b] c"] {
            assert_eq!(split(text), (text.to_owned(), Vec::new()));
        }
    }
}
