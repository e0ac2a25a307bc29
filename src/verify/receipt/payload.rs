//! What a receipt says. Its form only ever grows.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::api::verify::{ClaimResult, Coverage, Domain, Format, Skipped, Span};
use crate::hex::hex;

/// The form of receipts.
pub const SCHEMA: &str = "mk.receipt/1";

/// All that a receipt says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// [`SCHEMA`].
    pub schema: String,
    /// `ver_…`.
    pub request_id: String,
    /// When the verification was complete, RFC 3339.
    pub timestamp: String,
    /// The version of `mk`.
    pub version: String,
    /// `sandbox` when simulated models took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What was asked for.
    pub request: Asked,
    /// The text that was verified.
    pub statement: Fingerprint,
    /// The text that the models answered from, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Fingerprint>,
    /// The prompts.
    pub prompts: Prompts,
    /// The configured extractor.
    pub extractor: String,
    /// The model that audits what the extractor makes, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auditor: Option<String>,
    /// Whether everything that should have been checked was.
    pub complete: bool,
    /// Whether an auditor has seen all of the text.
    pub audited: bool,
    /// How much of the text was checked.
    pub coverage: Coverage,
    /// What was not verified.
    pub skipped: Vec<Skipped>,
    /// What extractor and auditor wrote, in the order in which it came.
    pub outputs: Vec<Output>,
    /// The claims, in the order of the text.
    pub claims: Vec<ClaimRecord>,
}

/// The parameters of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The kind of statement.
    pub domain: Domain,
    /// How many models had to agree.
    pub min_required: u32,
    /// How many were asked.
    pub total_models: u32,
    /// The date that the facts were judged at, RFC 3339.
    pub as_of: String,
    /// Whether answers were to give a reason.
    pub explain: bool,
    /// How the statement is written.
    pub format: Format,
}

/// A text that a receipt does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The SHA-256 of its UTF-8 bytes, in hexadecimal digits.
    pub sha256: String,
    /// Its length in code points.
    pub chars: usize,
}

impl Fingerprint {
    /// That of a text.
    pub fn of(text: &str) -> Self {
        Self { sha256: sha256([text]), chars: text.chars().count() }
    }
}

/// The SHA-256 of each prompt as it was sent, but for what varies from call to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Their version.
    pub version: u32,
    /// For claims.
    pub extraction: String,
    /// For what an extraction did wrong.
    pub faults: String,
    /// For an audit.
    pub audit: String,
    /// For votes.
    pub panel: String,
    /// For another answer in place of a malformed one.
    pub repair: String,
}

/// The SHA-256 of texts, one after the other.
pub(in crate::verify) fn sha256<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hash = Sha256::new();
    texts.into_iter().for_each(|text| hash.update(text));
    hex(&hash.finalize())
}

/// What a model wrote about a section of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// What it was to do.
    pub task: Task,
    /// The section.
    pub section: Span,
    /// The model that was asked.
    pub model: String,
    /// The model that the provider says has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What it wrote.
    pub answer: Raw,
}

/// What a model is to do with a section of the text. Several outputs of one task, section and model: all but the last
/// were malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Find the claims.
    Extraction,
    /// Say what is at fault.
    Audit,
    /// Mend what is at fault.
    Mending,
    /// Decide what extractor and auditor differ about.
    Judging,
}

/// What a model wrote, as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw {
    /// All of it, or its beginning.
    pub text: String,
    /// Whether the model was stopped before its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut_off: bool,
    /// Whether this is the beginning alone, as it was too long to be kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shortened: bool,
}

/// A claim: what was reported of it, and all votes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// What the response said.
    pub result: ClaimResult,
    /// How many models had not answered at the deadline.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outstanding: usize,
    /// The votes, in the order of the panel.
    pub votes: Vec<VoteRecord>,
}

/// What one model said to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteRecord {
    /// The model that was asked.
    pub model: String,
    /// The model that the provider says has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The keys of the options in the order in which the model was shown them, where it answered: `CABDE` says that
    /// option `C` was shown as `A`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// What it wrote. All but the last were malformed, and the model was asked again.
    pub answers: Vec<Raw>,
    /// Why it gave no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(value: &usize) -> bool {
    *value == 0
}
