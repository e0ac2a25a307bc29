//! What is wrong with a drafted claim, and what follows from it.

use crate::verify::anchors::{self, Severity};

/// What becomes of a claim whose fault is still there after it went back once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// The claim is asked about as it is: it could only be better.
    Wish,
    /// Another model is asked whether the fault is one.
    Soft,
    /// The claim cannot be asked about: its part was not extracted.
    Form,
    /// The claim is not what the statement says: its part is unfaithful.
    Hard,
}

/// A fault of a drafted claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) weight: Weight,
    /// What is at fault and what to change, for the extractor: in words of our own.
    pub(super) advice: String,
}

impl Fault {
    pub(super) fn new(weight: Weight, advice: impl Into<String>) -> Self {
        Self { weight, advice: advice.into() }
    }
}

impl From<&anchors::Fault> for Fault {
    fn from(fault: &anchors::Fault) -> Self {
        let weight = match fault.severity {
            Severity::Hard => Weight::Hard,
            Severity::Soft => Weight::Soft,
        };
        Self { weight, advice: fault.advice() }
    }
}

/// The heaviest of some faults.
pub(super) fn heaviest(faults: &[Fault]) -> Option<Weight> {
    faults.iter().map(|fault| fault.weight).max()
}
