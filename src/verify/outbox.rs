//! Events on their way out: kept until the reader has room, so that writing one never holds up the calls.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::{Event, Step};

/// Events in order. Bounded by what one verification can say: a few for each claim and model.
pub(super) struct Outbox<'a> {
    events: &'a mpsc::Sender<Box<Step>>,
    waiting: VecDeque<Step>,
}

impl<'a> Outbox<'a> {
    /// An empty one.
    pub(super) const fn new(events: &'a mpsc::Sender<Box<Step>>) -> Self {
        Self { events, waiting: VecDeque::new() }
    }

    /// Adds an event behind the others.
    pub(super) fn push(&mut self, event: Event) {
        self.waiting.push_back(Ok(event));
    }

    /// Adds how the run has ended, behind all events.
    pub(super) fn push_end(&mut self, end: Step) {
        self.waiting.push_back(end);
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Hands over all that waits, as the reader makes room; nothing is lost if this is dropped half way. With
    /// nobody to read any more, everything is thrown away.
    pub(super) async fn flush(&mut self) {
        while !self.waiting.is_empty() {
            let Ok(place) = self.events.reserve().await else {
                self.waiting.clear();
                return;
            };
            if let Some(step) = self.waiting.pop_front() {
                place.send(Box::new(step));
            }
        }
        // The room for them is given back, as what comes next may be minutes away.
        self.waiting = VecDeque::new();
    }
}
