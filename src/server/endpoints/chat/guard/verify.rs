//! Verifies the texts of an answer, one after the other, with the panel for general statements.

use tokio::sync::mpsc;

use super::Finding;
use super::texts::Texts;
use crate::api::guard::{AnswerClaim, AnswerPart, AnswerVerification, Guard};
use crate::api::verify::{Assessment, Domain, Event, Format, VerifyResponse};
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::server::endpoints::verify::panel_size;
use crate::server::reply::{ApiError, ErrorCode};
use crate::usage::{Meter, Purpose};
use crate::verify::{self, Error, EventResult, Job, PanelSettings, Verifier, Work};

/// Events that wait to be read, of which only the last counts.
const EVENT_BUFFER: usize = 4;
/// How many models must agree, as in a verification that does not say.
const MIN_REQUIRED: u32 = 2;

/// The settings that answers are verified with.
pub(super) const fn settings(verifier: &Verifier) -> &PanelSettings {
    verifier.settings(Domain::General)
}

/// What is found about these texts. The first that cannot be verified ends it.
pub(super) async fn all(
    verifier: &Verifier,
    texts: Texts,
    meter: &Meter,
    (guard, now): (Guard, Time),
) -> Finding {
    let mut report = AnswerVerification::none(guard);
    report.mode = verifier.mode(Domain::General).map(str::to_owned);
    let mut failure = None;
    let Some(choices) = texts.into_choices() else {
        let most = settings(verifier).max_fact_chars;
        let message = format!("it is longer than the {most} characters that can be verified");
        return Finding::failed(report, ApiError::new(ErrorCode::AnswerBlocked, message));
    };
    for (choice, text) in choices {
        if verify::is_blank(&text) {
            continue;
        }
        match one(verifier, job(verifier, &text, now), meter).await {
            Ok(found) => add(&mut report, choice, *found),
            Err(error) => {
                failure = Some(ApiError::from(error));
                break;
            }
        }
    }
    report.cost_usd = cost(meter).map(NanoUsd::usd);
    match failure {
        None => Finding { report, failure: None },
        Some(failure) => Finding::failed(report, failure),
    }
}

/// Answers are mostly Markdown. A NUL, which no text has, counts as a character like any other.
fn job(verifier: &Verifier, text: &str, now: Time) -> Job {
    Job {
        id: crate::id::new("ver"),
        fact: text.replace('\0', "\u{fffd}"),
        format: Format::Markdown,
        domain: Domain::General,
        min_required: MIN_REQUIRED,
        total_models: panel_size(settings(verifier)).min(3),
        as_of: now,
        explain: false,
        context: None,
        work: Work::Verify,
        model_progress: false,
        fresh: false,
        receipt: None,
    }
}

/// Whether the account that `meter` books to can pay for the verification of a text, as far as can be told before there
/// is one.
pub(super) async fn check_budget(verifier: &Verifier, meter: &Meter, now: Time) -> Result<(), Error> {
    check_budget_for(verifier, &job(verifier, "", now), meter).await
}

async fn check_budget_for(verifier: &Verifier, job: &Job, meter: &Meter) -> Result<(), Error> {
    // If that fails, so does the check.
    let _ = meter.load_spending().await;
    verifier.check_budget(job, meter)
}

async fn one(verifier: &Verifier, job: Job, meter: &Meter) -> Result<Box<VerifyResponse>, Error> {
    if let Err(unpaid) = check_budget_for(verifier, &job, meter).await
        && !verifier.knows(&job, meter).await
    {
        return Err(unpaid);
    }
    let (sender, mut events) = mpsc::channel::<Box<EventResult>>(EVENT_BUFFER);
    let read = async {
        while let Some(event) = events.recv().await {
            match *event {
                Ok(Event::Completed(response)) => return Ok(response),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Internal)
    };
    let ((), end) = tokio::join!(verifier.run(&job, meter, sender), read);
    end
}

fn add(report: &mut AnswerVerification, choice: u64, found: VerifyResponse) {
    for result in found.results {
        let count = match result.assessment {
            Assessment::True => &mut report.counts.true_,
            Assessment::False => &mut report.counts.false_,
            Assessment::NoConsensus => &mut report.counts.no_consensus,
        };
        *count += 1;
        report.claims.push(AnswerClaim {
            choice,
            claim: result.claim,
            quote: result.quote,
            span: result.span,
            assessment: result.assessment,
            correction: result.correction.flatten(),
        });
    }
    for part in found.skipped {
        report.counts.unchecked += usize::from(part.reason.is_unchecked());
        report.skipped.push(AnswerPart { choice, text: part.text, reason: part.reason, span: part.span });
    }
}

/// What was spent on the verification: all of the request but the answer itself.
fn cost(meter: &Meter) -> Option<NanoUsd> {
    let totals = meter.totals();
    let paid = totals.iter().filter(|total| total.purpose != Purpose::Chat && !total.is_nothing());
    paid.map(|total| total.cost).try_fold(NanoUsd::default(), |sum, cost| Some(sum.plus(cost?)))
}
