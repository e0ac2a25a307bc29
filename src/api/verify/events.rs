//! The events of a verification.
//!
//! [`Event`] is both what the pipeline emits and what the client displays, except for [`Event::Error`], which the
//! server creates for a run without a result. [`Event::frame`] encodes events, [`Event::read`] decodes them.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Assessment, ClaimResult, ExtractResponse, ModelAnswer, Options, Skipped, Span, VerifyResponse};
use crate::api::error::ErrorEvent;
use crate::api::sse;

/// One frame of a verification stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// `starting`
    Starting(Starting),
    /// `extracting_claims`
    ExtractingClaims(ExtractingClaims),
    /// `claims_extracted`
    ClaimsExtracted(ClaimsExtracted),
    /// `verifying_claims`
    VerifyingClaims(VerifyingClaims),
    /// `verifying_claim`
    VerifyingClaim(VerifyingClaim),
    /// `model_answered`: only for callers that ask for it with [`PROGRESS_HEADER`].
    ModelAnswered(ModelAnswered),
    /// `claim_verified`
    ClaimVerified(ClaimVerified),
    /// `completed`: terminal.
    Completed(Box<VerifyResponse>),
    /// `completed`, of an extraction: terminal.
    Extracted(Box<ExtractResponse>),
    /// `error`: terminal.
    Error(ErrorEvent),
}

/// The request header that asks for `model_answered` frames (value `models`): without it, the stream is exactly that of
/// the reference.
pub const PROGRESS_HEADER: &str = "x-mk-progress";

/// The request header by which everything is found anew (value `fresh`), whatever the server's verdict cache holds. Not
/// `Cache-Control`: clients of event streams send `no-cache` or `no-store` by themselves.
pub const CACHE_HEADER: &str = "x-mk-cache";

/// Data of `starting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Starting {
    /// `starting`.
    pub status: String,
    /// `ver_…`.
    #[serde(rename = "requestId", default)]
    pub request_id: String,
    /// `sandbox` if simulated models will take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Data of `extracting_claims`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtractingClaims {
    /// `extracting_claims`.
    pub status: String,
}

/// Data of `claims_extracted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimsExtracted {
    /// The claims, in the order of the statement.
    pub claims: Vec<String>,
    /// Their number.
    pub count: usize,
    /// Parts that will not be verified.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// What will be asked about each claim, parallel to `claims`.
    #[serde(default)]
    pub details: Vec<ClaimDetails>,
}

/// What will be asked about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimDetails {
    /// Unique within the request.
    pub id: String,
    /// The passage of the statement that makes the claim, verbatim.
    pub quote: String,
    /// Position of that passage.
    pub span: Span,
    /// The neutral question that the panel is asked.
    pub question: String,
    /// Its options; the last two are always "None of these" and "Cannot be determined".
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub options: Options,
}

/// Data of `verifying_claims`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyingClaims {
    /// How many claims there are.
    pub total_claims: usize,
    /// The models in the order of the panel, then those that stand by: only for callers that ask with
    /// [`PROGRESS_HEADER`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
}

/// Data of `verifying_claim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyingClaim {
    /// Zero-based position in `claims`.
    pub claim_index: usize,
    /// The claim.
    pub claim: String,
}

/// Data of `model_answered`: another panel model is done with a claim, with or without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswered {
    /// Zero-based position in `claims`.
    pub claim_index: usize,
    /// The model, by its configured identifier.
    pub model: String,
    /// Number of models that are done with this claim.
    pub answered: usize,
    /// Number of models that are asked about this claim.
    pub asked: usize,
}

/// Data of `claim_verified`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimVerified {
    /// Zero-based position in `claims`.
    #[serde(rename = "claimIndex")]
    pub claim_index: usize,
    /// The panel's assessment.
    pub assessment: Assessment,
    /// The winning key, or empty.
    pub consensus_answer: String,
    /// The models that answered, in panel order.
    pub model_answers: Vec<ModelAnswer>,
    /// The claim's full result, as `completed` will list it: only for callers that ask with [`PROGRESS_HEADER`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<ClaimResult>>,
}

/// About how many bytes each claim of a list takes as JSON, with its question and options.
const LISTED_BYTES: usize = 1024;
/// The same of a result without its answers.
const RESULT_BYTES: usize = 1536;
/// The same of a model's answer.
const ANSWER_BYTES: usize = 256;

/// About how many bytes skipped parts take as JSON.
fn skipped_bytes(skipped: &[Skipped]) -> usize {
    skipped.iter().map(|part| part.text.len() + 128).sum()
}

impl ClaimsExtracted {
    /// About how many bytes this takes as JSON; rather too many, as what is not written to takes no memory.
    fn about_bytes(&self) -> usize {
        256 + skipped_bytes(&self.skipped) + self.claims.len() * LISTED_BYTES
    }
}

impl VerifyResponse {
    /// As [`ClaimsExtracted::about_bytes`].
    fn about_bytes(&self) -> usize {
        let answers: usize = self.results.iter().map(|result| result.model_answers.len()).sum();
        let receipt = self.receipt.as_ref().map_or(0, String::len);
        1024 + self.original_fact.len() * 9 / 8
            + skipped_bytes(&self.skipped)
            + self.results.len() * RESULT_BYTES
            + answers * ANSWER_BYTES
            + receipt
    }
}

impl Event {
    /// The frame's `event:` name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Starting(_) => "starting",
            Self::ExtractingClaims(_) => "extracting_claims",
            Self::ClaimsExtracted(_) => "claims_extracted",
            Self::VerifyingClaims(_) => "verifying_claims",
            Self::VerifyingClaim(_) => "verifying_claim",
            Self::ModelAnswered(_) => "model_answered",
            Self::ClaimVerified(_) => "claim_verified",
            Self::Completed(_) | Self::Extracted(_) => "completed",
            Self::Error(_) => "error",
        }
    }

    /// Whether the stream ends with this event.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Extracted(_) | Self::Error(_))
    }

    /// The event encoded as a frame of the stream.
    pub fn frame(&self) -> serde_json::Result<Bytes> {
        let name = self.name();
        match self {
            Self::Starting(data) => sse::frame(name, data),
            Self::ExtractingClaims(data) => sse::frame(name, data),
            Self::ClaimsExtracted(data) => sse::frame_of_about(data.about_bytes(), name, data),
            Self::VerifyingClaims(data) => sse::frame(name, data),
            Self::VerifyingClaim(data) => sse::frame(name, data),
            Self::ModelAnswered(data) => sse::frame(name, data),
            Self::ClaimVerified(data) => sse::frame(name, data),
            Self::Completed(data) => sse::frame_of_about(data.about_bytes(), name, data),
            Self::Extracted(data) => sse::frame(name, data),
            Self::Error(data) => sse::frame(name, data),
        }
    }

    /// Decodes a frame; `None` for an event name that this version does not know, which clients skip so that servers
    /// can add events.
    ///
    /// # Errors
    /// If the data is not what the name promises.
    pub fn read(name: &str, data: &str) -> serde_json::Result<Option<Self>> {
        Ok(Some(match name {
            "starting" => Self::Starting(serde_json::from_str(data)?),
            "extracting_claims" => Self::ExtractingClaims(serde_json::from_str(data)?),
            "claims_extracted" => Self::ClaimsExtracted(serde_json::from_str(data)?),
            "verifying_claims" => Self::VerifyingClaims(serde_json::from_str(data)?),
            "verifying_claim" => Self::VerifyingClaim(serde_json::from_str(data)?),
            "model_answered" => Self::ModelAnswered(serde_json::from_str(data)?),
            "claim_verified" => Self::ClaimVerified(serde_json::from_str(data)?),
            "completed" => Self::Completed(serde_json::from_str(data)?),
            "error" => Self::Error(serde_json::from_str(data)?),
            _ => return Ok(None),
        }))
    }

    /// Decodes a frame of an extraction, which ends with a result of its own.
    ///
    /// # Errors
    /// If the data is not what the name promises.
    pub fn read_of_extraction(name: &str, data: &str) -> serde_json::Result<Option<Self>> {
        match name {
            "completed" => Ok(Some(Self::Extracted(serde_json::from_str(data)?))),
            _ => Self::read(name, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads one frame as a naive client does: two lines, two prefixes.
    fn read_back(frame: &[u8]) -> Option<Event> {
        let text = std::str::from_utf8(frame).ok()?.strip_suffix("\n\n")?;
        let (event, data) = text.split_once('\n')?;
        Event::read(event.strip_prefix("event: ")?, data.strip_prefix("data: ")?).ok()?
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_whatever_the_text(
            claim in "(?s).{0,40}|\r\n\r\ndata: x|\u{2028}\u{85}event: completed",
            index in 0..1000_usize,
            answers in prop::collection::vec(("[a-z/]{1,9}", "[A-F]"), 0..4),
        ) {
            let answers = answers.into_iter().map(|(model, answer)| ModelAnswer {
                model,
                answer,
                found: None,
                reason: Some(claim.clone()),
            });
            let events = [
                Event::VerifyingClaim(VerifyingClaim { claim_index: index, claim: claim.clone() }),
                Event::ClaimVerified(ClaimVerified {
                    claim_index: index,
                    assessment: Assessment::NoConsensus,
                    consensus_answer: String::new(),
                    model_answers: answers.collect(),
                    result: None,
                }),
                Event::Error(ErrorEvent {
                    error: claim.clone(),
                    message: claim.clone(),
                    code: "internal".to_owned(),
                    request_id: "ver_1".to_owned(),
                }),
            ];
            for event in events {
                let frame = event.frame().unwrap();
                prop_assert_eq!(String::from_utf8_lossy(&frame).matches('\n').count(), 3);
                prop_assert_eq!(read_back(&frame), Some(event));
            }
        }

        #[test]
        fn foreign_frames_never_panic(name in "[a-z_]{0,20}", data in "(?s).{0,200}") {
            let _ = Event::read(&name, &data);
        }
    }
}
