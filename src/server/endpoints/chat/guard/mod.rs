//! Verification as a guard: the text of an answer is verified before (`block`) or after (`flag`) it is given, where the
//! operator says so for all requests, for a name of their own or for a key. The strictest of these holds.
//!
//! Whatever the door, it is the chat completion that is verified, before it is translated, so that no request under
//! guard is passed on in a protocol of its own; what was found goes with it,
//! `mk_verification` ([`AnswerVerification`]). A flagged stream goes out as it comes, and what was found stands before
//! its end. A blocking guard gives nothing of an answer before all of it is verified: a stream is held until then, and
//! what is refused is an error with a status.
//!
//! What must hold: nothing that was not verified looks verified, so a verification that fails is told as such and, unless
//! the operator says otherwise, blocks; it is booked to the request that it is for, and a budget bounds it; models that
//! verify are asked as such, and no answer of theirs comes here.

mod texts;
mod verify;
mod ward;

pub(in crate::server) use ward::{DONE, Piece, Ward};

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::task::AbortOnDropHandle;

use super::{Answer, Answered, stream};
use crate::api::guard::{AnswerVerification, Guard, GuardStatus, VerdictCounts};
use crate::app::Configured;
use crate::inference::CompletionRequest;
use crate::json::fields::write_field;
use crate::log_scope::LogScope;
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::in_flight::Registration;
use crate::server::reply::{ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::server::request::record::Record;
use crate::usage::Meter;
use texts::Texts;

/// The name of what was found, in answers and errors.
pub(in crate::server) const FIELD: &str = "mk_verification";

/// What is done with the verdicts on the answer to a request for a model or a name of the operator's; `None` if it is
/// not verified.
pub(super) fn wanted(caller: &Caller, incoming: &Incoming, requested: &str) -> Option<Guard> {
    caller.key.verify.max(incoming.configured.gateway.guard(requested))
}

/// A guard at work on one answer.
pub(super) struct Watch {
    guard: Guard,
    context: Arc<ServerState>,
    configured: Arc<Configured>,
    meter: Meter,
    record: Arc<Record>,
}

/// What came of a verification.
struct Finding {
    report: AnswerVerification,
    /// Why it failed, if it did.
    failure: Option<ApiError>,
}

impl Watch {
    /// The guard of a request for `requested`; `None` if nobody wants one. Vectors say nothing.
    pub(super) fn of(
        context: &Arc<ServerState>,
        caller: &Caller,
        incoming: &Incoming,
        (requested, completion): (&str, &CompletionRequest<'_>),
        meter: &Meter,
    ) -> Option<Box<Self>> {
        let wanted = wanted(caller, incoming, requested);
        let guard = wanted.filter(|_| completion.fields.get("messages").is_some())?;
        let (context, configured) = (context.clone(), incoming.configured.clone());
        let (meter, record) = (meter.clone(), caller.record.clone());
        Some(Box::new(Self { guard, context, configured, meter, record }))
    }

    /// Checks before a model is asked that its answer will not be withheld because nobody pays for its verification.
    pub(super) async fn check_budget(&self) -> Result<(), ApiError> {
        if self.guard != Guard::Block {
            return Ok(());
        }
        let now = self.context.app.clock.now();
        match verify::check_budget(&self.configured.verifier, &self.meter, now).await {
            Ok(()) => Ok(()),
            Err(unpaid) => {
                self.passed(Finding::failed(AnswerVerification::none(self.guard), unpaid.into())).map(drop)
            }
        }
    }

    /// Has an answer verified, or the rest of a stream.
    ///
    /// # Errors
    /// If the answer may not be given, or its key ends meanwhile.
    pub(super) async fn over(self, caller: &Caller, answered: Answered) -> Result<Answered, ApiError> {
        let Answered { mut about, answer } = answered;
        let answer = match answer {
            Answer::Whole(completion) => {
                let mut registration = gate::register(&self.context, caller).await?;
                let texts = Texts::of_whole(&completion, self.most_chars());
                about.verification = Some(self.judged(texts, &mut registration).await?);
                Answer::Whole(completion)
            }
            Answer::Stream(mut stream) => {
                stream.ward = Some(Box::new(match self.guard {
                    Guard::Flag => Ward::new(self),
                    Guard::Block => self.held(&mut stream).await.inspect_err(|refused| {
                        stream.record.end_stream(refused.code().to_owned());
                    })?,
                }));
                Answer::Stream(stream)
            }
            // Not under guard: it would have been translated.
            Answer::Native(_) => return Err(ErrorCode::Internal.into()),
        };
        Ok(Answered { about, answer })
    }

    /// Reads a stream to its end and has it verified.
    async fn held(self, stream: &mut stream::Stream) -> Result<Ward, ApiError> {
        let mut ward = Ward::new(self);
        let stream::Stream { relay, registration, .. } = stream;
        let texts = loop {
            let read = tokio::select! {
                biased;
                reason = registration.aborted() => return Err(reason.into()),
                read = ward.hold(relay) => read,
            };
            match read {
                Some(Ok(None)) => {}
                Some(Ok(Some(texts))) => break texts,
                Some(Err(failure)) => return Err(ApiError::broken_stream(relay.model(), failure)),
                None => return Err(ErrorCode::Internal.into()),
            }
        };
        let verification = ward.watch().judged(texts, registration).await?;
        ward.release(verification);
        Ok(ward)
    }

    /// What was found about these texts, as JSON.
    ///
    /// # Errors
    /// If the answer may not be given.
    async fn judged(&self, texts: Texts, registration: &mut Registration) -> Result<Box<str>, ApiError> {
        let mut work = self.begin(texts);
        let finding = tokio::select! {
            biased;
            reason = registration.aborted() => return Err(reason.into()),
            finding = &mut work => self.finding(finding),
        };
        Ok(json(&self.passed(finding)?))
    }

    /// What was found, if the answer may be given.
    fn passed(&self, finding: Finding) -> Result<AnswerVerification, ApiError> {
        let reasons = &self.configured.gateway.block_on();
        if self.guard == Guard::Block && finding.report.is_blocked_by(reasons) {
            return Err(refusal(finding));
        }
        Ok(finding.report)
    }

    /// Starts to verify these texts. It ends when the handle is dropped.
    fn begin(&self, texts: Texts) -> AbortOnDropHandle<Finding> {
        let (configured, meter, guard) = (self.configured.clone(), self.meter.clone(), self.guard);
        // When aborted, it books its usage after the response is dropped.
        let record = self.record.clone();
        let now = self.context.app.clock.now();
        let work = async move {
            let _record = record;
            verify::all(&configured.verifier, texts, &meter, (guard, now)).await
        };
        AbortOnDropHandle::new(self.context.runs.spawn(LogScope::current().around(work)))
    }

    /// What a task found, unless that was a fault of ours.
    fn finding(&self, ended: Result<Finding, tokio::task::JoinError>) -> Finding {
        ended.unwrap_or_else(|cause| {
            tracing::error!(%cause, "the verification of an answer ended without a result");
            Finding::failed(AnswerVerification::none(self.guard), ErrorCode::Internal.into())
        })
    }

    /// The longest text that is verified, in characters.
    fn most_chars(&self) -> usize {
        verify::settings(&self.configured.verifier).max_fact_chars
    }
}

impl Finding {
    fn failed(report: AnswerVerification, failure: ApiError) -> Self {
        let report = AnswerVerification {
            status: GuardStatus::Failed,
            error: Some(failure.as_guard_error()),
            ..report
        };
        Self { report, failure: Some(failure) }
    }
}

/// Why an answer is not given.
fn refusal(Finding { report, failure }: Finding) -> ApiError {
    let error = failure.map_or_else(
        || blocked(report.counts),
        |failure| failure.with_prefix("the answer could not be verified, and is not given: "),
    );
    error.with_verification(report)
}

fn blocked(counts: VerdictCounts) -> ApiError {
    let message = format!(
        "the answer is withheld: {} FALSE, {} NO CONSENSUS, {} unchecked. \
         `{FIELD}` has the verdicts; ask in another way",
        counts.false_, counts.no_consensus, counts.unchecked
    );
    ApiError::new(ErrorCode::AnswerBlocked, message)
}

/// As JSON. A struct of texts and numbers always serializes.
fn json(report: &AnswerVerification) -> Box<str> {
    serde_json::to_string(report).unwrap_or_default().into()
}

/// A completion with what was found about it.
pub(in crate::server) fn with_verification(completion: Bytes, verification: Option<&str>) -> Bytes {
    let Some(verification) = verification else { return completion };
    let Some(open) = completion.trim_ascii_end().strip_suffix(b"}") else { return completion };
    let mut whole = Vec::with_capacity(completion.len() + verification.len() + FIELD.len() + 8);
    whole.extend_from_slice(open);
    write_field(&mut whole, FIELD, verification);
    whole.push(b'}');
    whole.into()
}
