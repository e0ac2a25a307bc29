//! Verification as a guard: what is found about the answer of a model before or after it is given (`mk_verification`).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verify::{Assessment, SkipReason, Span};

/// What is done with the verdicts on an answer. The later one is the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// The answer carries them.
    Flag,
    /// They decide whether it is given at all, and it carries them.
    Block,
}

impl Guard {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Flag, Self::Block];

    /// What it must be, for people.
    pub const FORM: &str = "`flag` or `block`";

    /// Its name in JSON, files and flags.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Block => "block",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.as_str() == name)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What blocks an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOn {
    /// A claim is FALSE.
    False,
    /// A claim found NO CONSENSUS.
    NoConsensus,
    /// A part was not checked.
    Unchecked,
    /// The verification itself failed.
    Failed,
}

impl BlockOn {
    /// All of them, with their names in files.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("false", Self::False),
        ("no-consensus", Self::NoConsensus),
        ("unchecked", Self::Unchecked),
        ("failed", Self::Failed),
    ];

    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, reason)| *reason == self).map_or("", |(name, _)| name)
    }

    /// What blocks an answer if nobody says otherwise.
    pub const DEFAULT: [Self; 2] = [Self::False, Self::Failed];
}

/// Whether an answer could be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GuardStatus {
    /// It was; what of it was not checked is in `skipped`.
    Verified,
    /// It was not: `error` says why. Nothing is known about it.
    Failed,
}

/// What was found about an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerVerification {
    /// What is done with the verdicts.
    pub guard: Guard,
    /// Whether there are any.
    pub status: GuardStatus,
    /// How many there are of each.
    pub counts: VerdictCounts,
    /// The claims of the answer, in its order.
    pub claims: Vec<AnswerClaim>,
    /// Parts of it that were not verified.
    pub skipped: Vec<AnswerPart>,
    /// What it cost, in US dollars, beside the answer; null where a price is unknown.
    pub cost_usd: Option<f64>,
    /// `sandbox` when simulated models took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<GuardError>,
}

/// How many claims have each verdict, and how many parts have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictCounts {
    /// Claims that are TRUE.
    #[serde(rename = "true")]
    pub true_: usize,
    /// Claims that are FALSE.
    #[serde(rename = "false")]
    pub false_: usize,
    /// Claims without consensus.
    pub no_consensus: usize,
    /// Parts that should have been checked and were not.
    pub unchecked: usize,
}

/// A claim of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerClaim {
    /// The number of the choice that makes it.
    pub choice: u64,
    /// The claim, self-contained.
    pub claim: String,
    /// The passage of the choice's text that makes it, verbatim.
    pub quote: String,
    /// Where that passage stands in the text.
    pub span: Span,
    /// What the panel made of it.
    pub assessment: Assessment,
    /// With FALSE, what the panel says instead, if it agrees on something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
}

/// A part of an answer that was not verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerPart {
    /// The number of its choice.
    pub choice: u64,
    /// The part, as it stands in the text.
    pub text: String,
    /// Why.
    pub reason: SkipReason,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// Why an answer could not be verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardError {
    /// The kind of error, as in the errors of the API.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl AnswerVerification {
    /// Nothing found so far.
    pub const fn none(guard: Guard) -> Self {
        let counts = VerdictCounts { true_: 0, false_: 0, no_consensus: 0, unchecked: 0 };
        Self {
            guard,
            status: GuardStatus::Verified,
            counts,
            claims: Vec::new(),
            skipped: Vec::new(),
            cost_usd: Some(0.0),
            mode: None,
            error: None,
        }
    }

    /// Whether one of these is the case.
    pub fn is_blocked_by(&self, reasons: &[BlockOn]) -> bool {
        reasons.iter().any(|reason| match reason {
            BlockOn::False => self.counts.false_ > 0,
            BlockOn::NoConsensus => self.counts.no_consensus > 0,
            BlockOn::Unchecked => self.counts.unchecked > 0,
            BlockOn::Failed => self.status == GuardStatus::Failed,
        })
    }
}
