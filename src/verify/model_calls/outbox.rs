//! Buffers outgoing events until the channel has room, so that emitting one never delays model calls.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use crate::verify::{Event, EventResult};

/// Outgoing events, in order. Bounded by what one verification can emit: a few events for each claim and model.
pub(in crate::verify) struct Outbox<'a> {
    events: &'a mpsc::Sender<Box<EventResult>>,
    waiting: VecDeque<EventResult>,
}

impl<'a> Outbox<'a> {
    /// An empty outbox.
    pub(in crate::verify) const fn new(events: &'a mpsc::Sender<Box<EventResult>>) -> Self {
        Self { events, waiting: VecDeque::new() }
    }

    /// Appends an event.
    pub(in crate::verify) fn push(&mut self, event: Event) {
        self.waiting.push_back(Ok(event));
    }

    /// Appends the outcome of the run, after all other events.
    pub(in crate::verify) fn push_end(&mut self, end: EventResult) {
        self.waiting.push_back(end);
    }

    /// Whether no event is waiting.
    pub(in crate::verify) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends all waiting events, as the channel gets room; cancel-safe. If the receiver is gone, discards them.
    pub(in crate::verify) async fn flush(&mut self) {
        while !self.waiting.is_empty() {
            let Ok(slot) = self.events.reserve().await else {
                self.waiting.clear();
                return;
            };
            if let Some(event) = self.waiting.pop_front() {
                slot.send(Box::new(event));
            }
        }
        // Frees the buffer, as the next event may be minutes away.
        self.waiting = VecDeque::new();
    }
}
