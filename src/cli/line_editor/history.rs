//! The texts sent earlier in this conversation, for recall; never written to disk.
//!
//! Prompts may contain secrets, and nobody expects a question to outlive its conversation.

use std::collections::VecDeque;

/// More entries than anybody recalls.
const MAX_ENTRIES: usize = 500;

/// Sent texts in order, and which of them is shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    sent: VecDeque<String>,
    /// How many entries back the shown one is; 0 is the draft.
    back: usize,
    /// What was being written when the first entry was recalled.
    draft: String,
}

impl History {
    /// Adds a sent text, unless it repeats the last one, and returns to the end.
    pub(crate) fn add(&mut self, text: &str) {
        self.reset();
        if text.trim().is_empty() || self.sent.back().is_some_and(|last| last == text) {
            return;
        }
        if self.sent.len() == MAX_ENTRIES {
            self.sent.pop_front();
        }
        self.sent.push_back(text.to_owned());
    }

    /// Returns to the end, with an empty draft.
    pub(crate) fn reset(&mut self) {
        self.back = 0;
        self.draft.clear();
    }

    /// The entry before the shown one; saves `shown` as the draft first if it is the draft. `None` at the first entry.
    pub(crate) fn earlier(&mut self, shown: &str) -> Option<String> {
        if self.back == self.sent.len() {
            return None;
        }
        if self.back == 0 {
            shown.clone_into(&mut self.draft);
        }
        self.back += 1;
        self.sent.get(self.sent.len() - self.back).cloned()
    }

    /// The entry after the shown one, or the draft at the end; `None` beyond that.
    pub(crate) fn later(&mut self) -> Option<String> {
        self.back = self.back.checked_sub(1)?;
        if self.back == 0 {
            return Some(std::mem::take(&mut self.draft));
        }
        self.sent.get(self.sent.len() - self.back).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order_and_so_does_the_draft() {
        let mut history = History::default();
        assert_eq!((history.earlier("x"), history.later()), (None, None));
        for text in ["one", "two", "two", " ", "three"] {
            history.add(text);
        }
        let earlier: Vec<_> = std::iter::from_fn(|| history.earlier("draft")).collect();
        assert_eq!(earlier, ["three", "two", "one"]);
        let later: Vec<_> = std::iter::from_fn(|| history.later()).collect();
        assert_eq!(later, ["two", "three", "draft"]);
        history.earlier("draft");
        history.add("four");
        assert_eq!(history.later(), None, "a new text begins at the end");
        assert_eq!(history.earlier("").as_deref(), Some("four"));
    }

    #[test]
    fn the_history_does_not_grow_without_bound() {
        let mut history = History::default();
        (0..2 * MAX_ENTRIES).for_each(|n| history.add(&n.to_string()));
        assert_eq!(std::iter::from_fn(|| history.earlier("")).count(), MAX_ENTRIES);
    }
}
