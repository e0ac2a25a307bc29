//! The run of a verification, from its first event to its last.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tracing::debug;

use super::ballot::Roster;
use super::call_queue::CallQueue;
use super::calls::{Calls, ModelClient, Task, from_now};
use super::claims::{self, Extraction};
use super::error::Error;
use super::outbox::Outbox;
use super::pacing::Pacing;
use super::panel::Panel;
use super::prompts::{self, Fences};
use super::token_usage;
use super::{Event, EventResult, Job, PanelSettings, Settings};
use crate::api::verify::{
    ClaimResult, ClaimsExtracted, Domain, ExtractingClaims, Skipped, Starting, VerifyResponse,
    VerifyingClaims,
};
use crate::clock::Clock;
use crate::inference::{Failure, Gateway};
use crate::model_id;
use crate::usage::Meter;

/// The `mode` of results in which simulated models took part.
const SANDBOX: &str = "sandbox";

/// Runs verifications.
pub struct Verifier {
    client: Arc<dyn ModelClient>,
    settings: Settings,
    clock: Clock,
    /// Shared by all verifications.
    queue: CallQueue,
    /// Shared by all verifications.
    pacing: Pacing,
    sandbox: UsesSandbox,
}

/// For each domain, whether simulated models take part.
struct UsesSandbox {
    general: bool,
    legal: bool,
}

impl Verifier {
    /// A verifier that calls models through `gateway`, which has to know all of them.
    pub fn new(gateway: Arc<Gateway>, settings: Settings, clock: Clock) -> Self {
        Self::with_client(gateway, settings, clock)
    }

    /// Like [`Verifier::new`], with any client.
    pub(super) fn with_client(client: Arc<dyn ModelClient>, settings: Settings, clock: Clock) -> Self {
        let limits = settings.models().filter_map(|model| {
            let (provider, _) = model_id::split(model)?;
            Some((provider.to_owned(), client.max_concurrent_calls(model)?))
        });
        let queue = CallQueue::new(settings.max_concurrent, limits);
        let pacing = Pacing::new(settings.models());
        let simulated = |settings: &PanelSettings| settings.models().any(|model| client.is_sandbox(model));
        let sandbox =
            UsesSandbox { general: simulated(&settings.general), legal: simulated(&settings.legal) };
        Self { client, settings, clock, queue, pacing, sandbox }
    }

    /// This verifier as the replacement of `previous`, whose open calls count as its own. A model keeps its pace if what
    /// was learnt about it still holds. The limit on open calls changes with [`Verifier::take_effect`].
    #[must_use]
    pub fn in_place_of(self, previous: &Self, still_holds: impl Fn(&str) -> bool) -> Self {
        Self {
            queue: self.queue.in_place_of(&previous.queue),
            pacing: self.pacing.in_place_of(&previous.pacing, still_holds),
            ..self
        }
    }

    /// Applies this verifier's limit on open calls, if it replaced another one.
    pub fn take_effect(&self) {
        self.queue.take_effect();
    }

    /// The settings of a domain.
    pub const fn settings(&self, domain: Domain) -> &PanelSettings {
        match domain {
            Domain::General => &self.settings.general,
            Domain::Legal => &self.settings.legal,
        }
    }

    /// `Some("sandbox")` when simulated models take part in a domain's panel or extraction.
    pub const fn mode(&self, domain: Domain) -> Option<&'static str> {
        let simulated = match domain {
            Domain::General => self.sandbox.general,
            Domain::Legal => self.sandbox.legal,
        };
        if simulated { Some(SANDBOX) } else { None }
    }

    /// Every model that a job may call.
    pub fn models(&self, job: &Job) -> Vec<&str> {
        let settings = self.settings(job.domain);
        let roster = Roster::new(&settings.panel, &settings.standby, panel_size(job));
        settings.extractors().chain(roster.models()).collect()
    }

    /// Checks whether the budget of the account, if it has one, allows this job to start: the prices of extractor and
    /// panel must be known, and the extraction must be affordable now. Later calls are checked one by one.
    pub fn check_budget(&self, job: &Job, meter: &Meter) -> Result<(), Error> {
        if !meter.has_budget() {
            return Ok(());
        }
        let settings = self.settings(job.domain);
        let prompt = prompts::extraction_for_estimate(job, settings.max_claims);
        let Some(extractor) = settings.extractors().next() else { return Err(Error::Unconfigured) };
        let roster = Roster::new(&settings.panel, &[], panel_size(job));
        let mut panel = (0..roster.panel_size()).filter_map(|seat| roster.model(seat));
        if let Some(model) = panel.find(|model| self.client.max_cost(model, &prompt).is_none()) {
            return Err(Error::Unpaid { model: model.to_owned(), failure: Failure::PriceUnknown });
        }
        let max_cost = self.client.max_cost(extractor, &prompt);
        meter
            .check(max_cost)
            .map_err(|unpaid| Error::Unpaid { model: extractor.to_owned(), failure: unpaid.into() })
    }

    /// Runs one verification and sends its events; the last one is [`Event::Completed`] or an error. A closed channel
    /// ends it; a full one delays events but no calls. Dropping the future cancels all its calls. Events are boxed, as
    /// the channel allocates space for dozens of them with the first.
    pub async fn run(&self, job: &Job, meter: &Meter, events: mpsc::Sender<Box<EventResult>>) {
        tokio::select! {
            biased;
            () = events.closed() => {}
            () = self.run_to_end(job, meter, &events) => {}
        }
    }

    async fn run_to_end(&self, job: &Job, meter: &Meter, events: &mpsc::Sender<Box<EventResult>>) {
        let mut outbox = Outbox::new(events);
        let end = self.verify(job, meter, &mut outbox).await.map(|(results, skipped)| {
            Event::Completed(Box::new(self.response(job, meter, results, skipped)))
        });
        let outcome = end.as_ref().map_or("error", Event::name);
        debug!(verification = %job.id, outcome, "verification ended");
        outbox.push_end(end);
        outbox.flush().await;
    }

    async fn verify(
        &self,
        job: &Job,
        meter: &Meter,
        outbox: &mut Outbox<'_>,
    ) -> Result<(Vec<ClaimResult>, Vec<Skipped>), Error> {
        let settings = self.settings(job.domain);
        let deadline = from_now(settings.deadline);
        debug!(verification = %job.id, domain = job.domain.as_str(), prompts = prompts::hash(), "verification begins");
        outbox.push(self.starting_event(job));
        outbox.push(Event::ExtractingClaims(ExtractingClaims { status: "extracting_claims".to_owned() }));
        outbox.flush().await;

        let roster = Roster::new(&settings.panel, &settings.standby, panel_size(job));
        if roster.panel_size() < super::settings::MIN_PANEL || settings.extractors().next().is_none() {
            return Err(Error::Unconfigured);
        }
        let fences = Fences::new().map_err(|_| Error::Internal)?;
        let calls = Calls {
            client: &*self.client,
            queue: &self.queue,
            pacing: &self.pacing,
            meter,
            model_timeout: settings.model_timeout,
            task: Task::Vote,
            deadline,
        };
        // Tells the meter before the open calls are dropped.
        let mut deadline_passed = std::pin::pin!(async {
            sleep_until(deadline).await;
            meter.abort_with(Failure::Timeout.code());
        });
        // Boxed, as the panel, for which most of a run waits, needs less memory.
        let extraction = Box::pin(claims::extract(&calls, settings, job, &fences));
        let Extraction { claims, skipped, .. } = tokio::select! {
            biased;
            () = &mut deadline_passed => return Err(Error::Deadline),
            extraction = extraction => extraction?,
        };

        outbox.push(Event::ClaimsExtracted(ClaimsExtracted {
            claims: claims.iter().map(|claim| claim.text.clone()).collect(),
            count: claims.len(),
            skipped: skipped.clone(),
        }));
        let models =
            if job.model_progress { roster.models().map(str::to_owned).collect() } else { Vec::new() };
        outbox.push(Event::VerifyingClaims(VerifyingClaims { total_claims: claims.len(), models }));
        let given_up = claims.iter().map(|_| AtomicBool::new(false)).collect();
        let panel = Panel { calls: &calls, job, fences: &fences, roster: &roster, claims: &claims, given_up };
        let results = panel.run(outbox, deadline_passed).await?;
        Ok((results, skipped))
    }

    fn starting_event(&self, job: &Job) -> Event {
        Event::Starting(Starting {
            status: "starting".to_owned(),
            request_id: job.id.clone(),
            mode: self.mode(job.domain).map(str::to_owned),
        })
    }

    fn response(
        &self,
        job: &Job,
        meter: &Meter,
        results: Vec<ClaimResult>,
        skipped: Vec<Skipped>,
    ) -> VerifyResponse {
        VerifyResponse {
            request_id: job.id.clone(),
            original_fact: job.fact.clone(),
            results,
            timestamp: self.clock.now().rfc3339(),
            token_usage: token_usage::from_totals(&meter.totals()),
            min_required: job.min_required,
            skipped,
            mode: self.mode(job.domain).map(str::to_owned),
        }
    }
}

/// How many models are asked about each claim.
fn panel_size(job: &Job) -> usize {
    usize::try_from(job.total_models).unwrap_or(usize::MAX)
}
