//! Tells the panel about claims while the extraction still goes on.
//!
//! Both are parts of one task: whoever follows an extraction polls it, and then takes what it has told. A channel between
//! them would hold 1.5 KB for each verification that waits.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use crate::lock::Lock;
use crate::verify::claim::Claim;
use crate::verify::voting::ballot::PanelAnswer;

/// A change to the claims that are asked about.
#[derive(Debug)]
pub(in crate::verify) enum Change {
    /// The review found no fault: the panel may be asked.
    Ask(Arc<Claim>),
    /// The panel has answered this before.
    Known(Arc<Claim>, Vec<PanelAnswer>),
    /// The claim with this id is not asked about after all: its votes are discarded.
    Withdraw(String),
}

/// Changes that nobody has followed yet, in their order.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Changes(Arc<Mutex<Vec<Change>>>);

/// What an extraction does next.
pub(in crate::verify) enum Step<T> {
    /// It has told these.
    Changes(Vec<Change>),
    /// It has ended, perhaps with changes that are still to be taken.
    End(T),
}

impl Changes {
    pub(in crate::verify) fn tell(&self, change: Change) {
        self.0.locked().push(change);
    }

    pub(in crate::verify) fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.0.locked())
    }

    /// Waits until `extraction`, which tells these, has told some or has ended.
    pub(in crate::verify) async fn follow<T>(
        &self,
        mut extraction: Pin<&mut (impl Future<Output = T> + ?Sized)>,
    ) -> Step<T> {
        poll_fn(|context| match extraction.as_mut().poll(context) {
            Poll::Ready(end) => Poll::Ready(Step::End(end)),
            Poll::Pending => {
                let changes = self.take();
                if changes.is_empty() { Poll::Pending } else { Poll::Ready(Step::Changes(changes)) }
            }
        })
        .await
    }
}

/// The extraction's side.
#[derive(Debug)]
pub(in crate::verify) struct Feed {
    changes: Changes,
    /// How many claims may still be asked about early: no more than the statement may have in the end.
    left: AtomicUsize,
}

impl Feed {
    /// A feed for this many claims, which tells them to `changes`.
    pub(in crate::verify) const fn new(most: usize, changes: Changes) -> Self {
        Self { changes, left: AtomicUsize::new(most) }
    }

    /// Asks about a claim, if there is room. A claim that is kept in the end is asked about in any case.
    pub(super) fn ask(&self, claim: &Claim) {
        let next = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok() {
            self.changes.tell(Change::Ask(Arc::new(claim.clone())));
        }
    }

    /// Takes a claim back.
    pub(super) fn withdraw(&self, claim: &Claim) {
        self.changes.tell(Change::Withdraw(claim.id.clone()));
    }
}
