//! The verify area: request, events and result of `POST /verify/v1/stream` and `POST /verify/v1/extract`.
//!
//! The events of the streams are in `events`, the result of an extraction in `extraction`. The ranges of a request's
//! numbers are defined here once: for the server, which refuses anything else, and for flags and files, which refuse it
//! before anything is sent.

mod events;
mod extraction;

pub use events::{
    CACHE_HEADER, ClaimDetails, ClaimVerified, ClaimsExtracted, Event, ExtractingClaims, ModelAnswered,
    PROGRESS_HEADER, Starting, VerifyingClaim, VerifyingClaims,
};
pub use extraction::{ExtractResponse, ExtractedClaim};

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The values of `minRequired`: "2 or 3" (reference, fields of `VerifyRequest`).
pub const MIN_REQUIRED: RangeInclusive<u32> = 2..=3;
/// The largest panel of a domain, whatever is configured. The reference shows no limit to `totalModels`; the contract
/// sets this one ("from `minRequired` to the size of the domain's panel (at most 9)").
pub const MAX_MODELS: u32 = 9;
/// The longest `context`, in characters.
pub const MAX_CONTEXT_CHARS: usize = 100_000;
/// The values of `totalModels` where neither the panel nor `minRequired` is known.
pub const TOTAL_MODELS: RangeInclusive<u32> = *MIN_REQUIRED.start()..=MAX_MODELS;

/// The kind of statement, which decides prompts and panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    /// Anything.
    #[default]
    General,
    /// Law: jurisdiction and date matter, and a citation is a claim of its own.
    Legal,
}

impl Domain {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Legal => "legal",
        }
    }
}

/// How a statement is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain text.
    #[default]
    Text,
    /// Markdown: headings, code blocks, link targets and front matter are not statements.
    Markdown,
}

/// The body of `POST /verify/v1/stream` and `POST /verify/v1/extract`. The last five fields are additions to the
/// reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyRequest {
    /// The statement to verify.
    pub fact: String,
    /// Default: general.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// How many models must agree: 2 or 3; default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_required: Option<u32>,
    /// How many models are asked: from `minRequired` to the panel's size; default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_models: Option<u32>,
    /// The date as of which to judge the facts, RFC 3339 or `YYYY-MM-DD`; default today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Whether to add a reason to each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<bool>,
    /// A text that the models answer from instead of from their own knowledge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Default: text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Whether to add a signed receipt, with which the result can be recounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<bool>,
}

/// The panel's assessment of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Assessment {
    /// Consensus that the claim is true.
    #[serde(rename = "TRUE")]
    True,
    /// Consensus that the claim is false.
    #[serde(rename = "FALSE")]
    False,
    /// No consensus.
    #[serde(rename = "NO CONSENSUS")]
    NoConsensus,
}

impl Assessment {
    /// The words on the wire and for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "TRUE",
            Self::False => "FALSE",
            Self::NoConsensus => "NO CONSENSUS",
        }
    }
}

impl fmt::Display for Assessment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The reason for an assessment: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// At least `minRequired` models agreed, more than on any other answer.
    Consensus,
    /// Fewer than `minRequired` models answered; a refusal does not count as an answer.
    InsufficientAnswers,
    /// Every model that answered could not tell.
    Unconfirmed,
    /// Every model that answered could not tell from the `context`.
    NotInContext,
    /// Fewer than `minRequired` models chose an answer.
    Abstained,
    /// No other answer has a consensus, but no model chose the claimed one.
    Rejected,
    /// Two answers reached `minRequired` with equally many votes.
    Tie,
    /// Enough models chose an answer, but none reached `minRequired`.
    Split,
}

/// One model's answer to one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAnswer {
    /// The model, by its configured identifier.
    pub model: String,
    /// A key of `original_options`.
    pub answer: String,
    /// The answer in the model's own words, given before it chooses an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The model's reason, if the request had `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A model that gave no answer, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelError {
    /// The model, by its configured identifier.
    pub model: String,
    /// Such as `timeout`, `rate_limited`, `refused`, `malformed`.
    pub code: String,
}

/// Options of a question, by key (`A`, `B`, …), in order.
pub type Options = serde_json::Map<String, Value>;

/// The result for one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimResult {
    /// Unique within the request.
    pub id: String,
    /// The extracted claim.
    pub claim: String,
    /// The panel's assessment.
    pub assessment: Assessment,
    /// The neutral question that the panel was asked.
    pub original_question: String,
    /// Its options; the last two are always "None of these" and "Cannot be determined".
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub original_options: Options,
    /// The key of the option that the claim asserts.
    pub claimed_answer: String,
    /// The models that answered, in panel order.
    pub model_answers: Vec<ModelAnswer>,
    /// The winning key, or empty without consensus.
    pub consensus_answer: String,
    /// Why the assessment is what it is. An addition to the reference, as all that follows: another server may not
    /// tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub reason_code: Option<ReasonCode>,
    /// The models that gave no answer.
    #[serde(default)]
    pub model_errors: Vec<ModelError>,
    /// The passage of `original_fact` that makes the claim, verbatim.
    #[serde(default)]
    pub quote: String,
    /// Position of that passage.
    #[serde(default)]
    pub span: Span,
    /// With FALSE: the text of the winning option; `null` if that is "None of these".
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub correction: Option<Option<String>>,
    /// Whether a model doubted that the claim says what its quote says, and no other model confirmed the doubt.
    #[serde(default, skip_serializing_if = "is_false")]
    pub contested: bool,
    /// Whether the votes come from the server's cache of earlier verifications, so that no model was asked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// Not on the wire: all models that were asked in the order of the panel, which a client has from
    /// [`VerifyingClaims::models`]; empty where nobody told.
    #[serde(skip)]
    pub seats: Vec<String>,
}

impl ClaimResult {
    /// Notes the order of the panel, by that of all its models.
    pub fn seat(&mut self, models: &[String]) {
        let answered = self.model_answers.iter().map(|given| &given.model);
        let asked: HashSet<_> =
            answered.chain(self.model_errors.iter().map(|failed| &failed.model)).collect();
        self.seats = models.iter().filter(|model| asked.contains(model)).cloned().collect();
    }
}

/// A place in a text, in Unicode code points; `end` is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The first code point.
    pub start: usize,
    /// The one after the last.
    pub end: usize,
}

/// A part of the statement that was not verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// The part, verbatim.
    pub text: String,
    /// Why.
    pub reason: SkipReason,
    /// Its position; absent for a claim whose quote is not in the statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// Why a part of a statement was not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// A matter of taste or values.
    Opinion,
    /// About the future.
    Prediction,
    /// Asks rather than states.
    Question,
    /// Instructs somebody to do something.
    Instruction,
    /// Cannot be made self-contained from the text.
    Ambiguous,
    /// Only its author could know.
    Private,
    /// A greeting or a fragment, which claims nothing.
    NoClaim,
    /// Repeats an earlier claim.
    Duplicate,
    /// Beyond the maximum number of claims per request.
    OverLimit,
    /// The extractor found no claim in it.
    NotExtracted,
    /// The claim extracted from it differs from what it says.
    Unfaithful,
}

impl SkipReason {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opinion => "opinion",
            Self::Prediction => "prediction",
            Self::Question => "question",
            Self::Instruction => "instruction",
            Self::Ambiguous => "ambiguous",
            Self::Private => "private",
            Self::NoClaim => "no_claim",
            Self::Duplicate => "duplicate",
            Self::OverLimit => "over_limit",
            Self::NotExtracted => "not_extracted",
            Self::Unfaithful => "unfaithful",
        }
    }

    /// Whether the part may hold claims that nobody checked, so that a gate must not pass it; a part with any other
    /// reason was read, and found to have nothing to check.
    pub const fn is_unchecked(self) -> bool {
        matches!(self, Self::OverLimit | Self::NotExtracted | Self::Unfaithful)
    }
}

/// How much of a statement was checked, in sentences. Headings, code and the like do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// All sentences.
    pub sentences: usize,
    /// Of them, those of which all was put to the panel, or skipped with a reason.
    pub checked: usize,
    /// Of them, those with nothing to verify.
    pub skipped: usize,
    /// Of them, those of which a part should have been checked and was not.
    pub unchecked: usize,
}

/// Tokens that one model used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelTokenUsage {
    /// The model, by its configured identifier.
    pub model: String,
    /// Of prompts.
    pub prompt_tokens: u64,
    /// Of completions, reasoning included.
    pub completion_tokens: u64,
    /// Their sum.
    pub total_tokens: u64,
    /// In US dollars; `null` if the price is unknown.
    #[serde(rename = "cost_usd", default)]
    pub cost_usd: Option<f64>,
}

/// Everything spent on one verification, retries and failed attempts included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Of prompts.
    pub prompt_tokens: u64,
    /// Of completions.
    pub completion_tokens: u64,
    /// Their sum, and the sum over `modelUsage`.
    pub total_tokens: u64,
    /// Spent on extraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extraction_tokens: Option<u64>,
    /// Spent on the panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_tokens: Option<u64>,
    /// By model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_usage: Option<Vec<ModelTokenUsage>>,
}

impl TokenUsage {
    /// The cost in US dollars; `None` if the price of any model that used tokens is unknown, or nobody told.
    pub fn cost_usd(&self) -> Option<f64> {
        let is_free = |model: &ModelTokenUsage| model.total_tokens == 0 && model.cost_usd.is_none();
        let paid = self.model_usage.as_ref()?.iter().filter(|model| !is_free(model));
        // The sum of no numbers would be `-0.0`.
        paid.map(|model| model.cost_usd).try_fold(0.0, |sum, cost| Some(sum + cost?))
    }
}

/// The result of a verification; the data of the `completed` frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyResponse {
    /// `ver_…`.
    #[serde(rename = "requestId")]
    pub request_id: String,
    /// The statement as it was submitted.
    pub original_fact: String,
    /// In the order of the claims in the statement.
    pub results: Vec<ClaimResult>,
    /// When the verification was complete, RFC 3339.
    pub timestamp: String,
    /// Tokens used.
    #[serde(rename = "tokenUsage")]
    pub token_usage: TokenUsage,
    /// The threshold that was used.
    #[serde(rename = "minRequired", default = "usual_min_required")]
    pub min_required: u32,
    /// Parts that were not verified.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Whether everything that should have been checked was: false if any skipped part is unchecked. False, too, where
    /// a
    /// server does not tell.
    #[serde(default)]
    pub complete: bool,
    /// Whether a second model compared the claims with the statement.
    #[serde(default)]
    pub audited: bool,
    /// The model that compared them; `null` if the server has no auditor.
    #[serde(default)]
    pub auditor: Option<String>,
    /// How much of the statement was checked.
    #[serde(default)]
    pub coverage: Coverage,
    /// The domain of prompts and panel.
    #[serde(default)]
    pub domain: Domain,
    /// The date as of which the facts were judged, RFC 3339.
    #[serde(rename = "asOf", default)]
    pub as_of: String,
    /// How many models were asked about each claim.
    #[serde(rename = "totalModels", default)]
    pub total_models: u32,
    /// Total cost in US dollars; `null` if a price is unknown.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Hash of the prompts, to distinguish results of different prompt versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
    /// `sandbox` if simulated models took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether the whole result comes from the server's cache of earlier verifications, so that no model was called.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// The signed receipt, if requested: a JSON Web Signature with Ed25519. `mk receipt verify` checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// Not on the wire: the models in the order of the panel, then those that stand by, which a client has from
    /// [`VerifyingClaims::models`]; empty where nobody told.
    #[serde(skip)]
    pub models: Vec<String>,
}

/// The public key for checking receipts; the body of `GET /verify/v1/receipt-key`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptKey {
    /// The id by which receipts refer to it.
    pub key_id: String,
    /// Always `Ed25519`.
    pub algorithm: String,
    /// The key as PEM.
    pub public_key: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A field that is there, also as `null`.
#[expect(clippy::option_option, reason = "no field, `null` and a text are three things")]
fn present<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// The threshold where none was requested.
const fn usual_min_required() -> u32 {
    2
}
