//! Buffers outgoing events until the channel has room, so that emitting one never delays model calls.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::{Event, EventResult};

/// Outgoing events, in order. Bounded by what one verification can emit: a few events for each claim and model.
pub(super) struct Outbox<'a> {
    events: &'a mpsc::Sender<Box<EventResult>>,
    waiting: VecDeque<EventResult>,
}

impl<'a> Outbox<'a> {
    /// An empty outbox.
    pub(super) const fn new(events: &'a mpsc::Sender<Box<EventResult>>) -> Self {
        Self { events, waiting: VecDeque::new() }
    }

    /// Appends an event.
    pub(super) fn push(&mut self, event: Event) {
        self.waiting.push_back(Ok(event));
    }

    /// Appends the outcome of the run, after all other events.
    pub(super) fn push_end(&mut self, end: EventResult) {
        self.waiting.push_back(end);
    }

    /// Whether no event is waiting.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends all waiting events, as the channel gets room; cancel-safe. If the receiver is gone, discards them.
    pub(super) async fn flush(&mut self) {
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
