//! Tells the panel about claims while the extraction still goes on.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::verify::claim::Claim;
use crate::verify::voting::ballot::PanelAnswer;

/// A change to the claims that are asked about.
#[derive(Debug)]
pub(in crate::verify) enum Change {
    /// The review found no fault: the panel may be asked.
    Ask(Box<Claim>),
    /// The panel has answered this before.
    Known(Box<Claim>, Vec<PanelAnswer>),
    /// The claim with this id is not asked about after all: its votes are discarded.
    Withdraw(String),
}

/// The extraction's end of the channel.
#[derive(Debug)]
pub(in crate::verify) struct Feed {
    changes: mpsc::UnboundedSender<Change>,
    /// How many claims may still be asked about early: no more than the statement may have in the end.
    left: AtomicUsize,
}

impl Feed {
    /// A feed for this many claims, and its other end.
    pub(in crate::verify) fn new(most: usize) -> (Self, mpsc::UnboundedReceiver<Change>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        (Self { changes, left: AtomicUsize::new(most) }, receiver)
    }

    /// Asks about a claim, if there is room. A claim that is kept in the end is asked about in any case.
    pub(super) fn ask(&self, claim: &Claim) {
        let next = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok() {
            // Nobody listens any more once the verification has ended.
            let _ = self.changes.send(Change::Ask(Box::new(claim.clone())));
        }
    }

    /// Takes a claim back.
    pub(super) fn withdraw(&self, claim: &Claim) {
        let _ = self.changes.send(Change::Withdraw(claim.id.clone()));
    }
}
