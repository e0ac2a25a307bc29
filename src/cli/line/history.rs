//! The texts sent before, to be recalled: those of this conversation, never written to a disk.
//!
//! Prompts may hold what is secret, and nobody expects a question to outlive its conversation.

use std::collections::VecDeque;

/// More than anybody recalls.
const MOST: usize = 500;

/// Texts in the order they were sent, and which of them is shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    sent: VecDeque<String>,
    /// How many texts back we are; 0 is what is being written.
    back: usize,
    /// What was being written when the first one was recalled.
    draft: String,
}

impl History {
    /// Adds a text that was sent, unless it is the last one again, and goes back to the end.
    pub(crate) fn add(&mut self, text: &str) {
        self.leave();
        if text.trim().is_empty() || self.sent.back().is_some_and(|last| last == text) {
            return;
        }
        if self.sent.len() == MOST {
            self.sent.pop_front();
        }
        self.sent.push_back(text.to_owned());
    }

    /// Goes back to the end, where nothing is being written.
    pub(crate) fn leave(&mut self) {
        self.back = 0;
        self.draft.clear();
    }

    /// The text before the one shown, which is `shown`; `None` at the first one.
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

    /// The text after the one shown: at the end what was being written; `None` behind that.
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
    fn texts_come_back_in_order_and_so_does_the_draft() {
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
    fn it_does_not_grow_without_bound() {
        let mut history = History::default();
        (0..2 * MOST).for_each(|n| history.add(&n.to_string()));
        assert_eq!(std::iter::from_fn(|| history.earlier("")).count(), MOST);
    }
}
