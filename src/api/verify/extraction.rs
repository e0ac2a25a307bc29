//! The result of `POST /verify/v1/extract`: what a verification of the same body would put to the panel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClaimDetails, Coverage, Domain, Skipped, TokenUsage, is_false};

/// A claim, with what the panel would be asked about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtractedClaim {
    /// The claim, so that it can be understood without the rest of the statement.
    pub claim: String,
    /// Its position in the statement, and what would be asked.
    #[serde(flatten)]
    pub details: ClaimDetails,
    /// The key of the option that the statement asserts.
    pub claimed_answer: String,
    /// Whether a model doubted that the claim says what its quote says, and no other model confirmed the doubt;
    /// present only if true.
    #[serde(default, skip_serializing_if = "is_false")]
    pub contested: bool,
}

/// What was extracted; the data of the `completed` frame of such a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExtractResponse {
    /// `ver_…`.
    #[serde(rename = "requestId")]
    pub request_id: String,
    /// The statement as it was submitted.
    pub original_fact: String,
    /// In the order of the statement.
    pub claims: Vec<ExtractedClaim>,
    /// Parts that a verification would not put to the panel.
    pub skipped: Vec<Skipped>,
    /// Whether everything that should be checked is in a claim: false if any skipped part is unchecked.
    pub complete: bool,
    /// Whether a second model compared the claims with the statement.
    pub audited: bool,
    /// The model that compared them; `null` if the server has no auditor.
    #[serde(default)]
    pub auditor: Option<String>,
    /// How much of the statement the claims cover.
    pub coverage: Coverage,
    /// When the extraction was complete, RFC 3339.
    pub timestamp: String,
    /// Tokens used.
    #[serde(rename = "tokenUsage")]
    pub token_usage: TokenUsage,
    /// Total cost in US dollars; `null` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// The domain of the prompts.
    pub domain: Domain,
    /// The date that relative times are counted from, RFC 3339.
    #[serde(rename = "asOf")]
    pub as_of: String,
    /// Hash of the prompts, to distinguish results of different prompt versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
    /// `sandbox` if simulated models took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}
