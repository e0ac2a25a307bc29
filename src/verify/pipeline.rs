//! The run of a verification, from its first event to its last.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tracing::info;

use super::ballot::Roster;
use super::calls::{Ask, Calls, after};
use super::claims::{self, Extraction};
use super::error::Error;
use super::outbox::Outbox;
use super::panel::Panel;
use super::prompts::{self, Fences};
use super::tally;
use super::turns::Turns;
use super::{Event, Job, PanelSettings, Settings, Step};
use crate::api::verify::{
    ClaimResult, ClaimsExtracted, Domain, ExtractingClaims, Skipped, Starting, VerifyResponse,
    VerifyingClaims,
};
use crate::clock::Clock;
use crate::inference::{Failure, Gateway};
use crate::model_id;
use crate::usage::Meter;

/// Said of results in which simulated models took part.
const SANDBOX: &str = "sandbox";

/// Runs verifications against a panel.
pub struct Verifier {
    asker: Arc<dyn Ask>,
    settings: Settings,
    clock: Clock,
    /// Of all verifications.
    turns: Turns,
    sandbox: Simulated,
}

/// Whether simulated models take part, by domain.
struct Simulated {
    general: bool,
    legal: bool,
}

impl Verifier {
    /// A verifier whose models are all known to `gateway`.
    pub fn new(gateway: Arc<Gateway>, settings: Settings, clock: Clock) -> Self {
        Self::asking(gateway, settings, clock)
    }

    /// As [`Verifier::new`], with anybody who asks models.
    pub(super) fn asking(asker: Arc<dyn Ask>, settings: Settings, clock: Clock) -> Self {
        let all = settings.models();
        let limits = all.filter_map(|model| {
            let (provider, _) = model_id::split(model)?;
            Some((provider.to_owned(), asker.concurrency(model)?))
        });
        let turns = Turns::new(settings.max_concurrent, limits);
        let simulated = |settings: &PanelSettings| settings.models().any(|model| asker.is_sandbox(model));
        let sandbox = Simulated { general: simulated(&settings.general), legal: simulated(&settings.legal) };
        Self { asker, settings, clock, turns, sandbox }
    }

    /// This verifier in the place of `before`, whose calls under way count as its own. How many may be open at once
    /// changes with [`Verifier::take_effect`].
    #[must_use]
    pub fn in_place_of(self, before: &Self) -> Self {
        Self { turns: self.turns.in_place_of(&before.turns), ..self }
    }

    /// Holds calls to this verifier's own limit, where it took the place of another one.
    pub fn take_effect(&self) {
        self.turns.take_effect();
    }

    /// The settings for a domain.
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

    /// Every model that may be asked for a job.
    pub fn models(&self, job: &Job) -> Vec<&str> {
        let settings = self.settings(job.domain);
        let roster = Roster::new(&settings.panel, &settings.standby, total(job));
        settings.extractors().chain(roster.models()).collect()
    }

    /// Whether the budget of a verification's account, if it has one, allows to begin it: the prices of extractor and
    /// panel are known, and the extraction could be paid for now. What comes later is paid call by call.
    pub fn check_budget(&self, job: &Job, meter: &Meter) -> Result<(), Error> {
        if !meter.has_budget() {
            return Ok(());
        }
        let settings = self.settings(job.domain);
        let prompt = prompts::measured_extraction(job);
        let Some(extractor) = settings.extractors().next() else { return Err(Error::Unconfigured) };
        let roster = Roster::new(&settings.panel, &[], total(job));
        let mut panel = (0..roster.asked()).filter_map(|seat| roster.model(seat));
        if let Some(model) = panel.find(|model| self.asker.most(model, &prompt).is_none()) {
            return Err(Error::Unpaid { model: model.to_owned(), failure: Failure::PriceUnknown });
        }
        let most = self.asker.most(extractor, &prompt);
        meter
            .check(most)
            .map_err(|unpaid| Error::Unpaid { model: extractor.to_owned(), failure: unpaid.into() })
    }

    /// Runs one verification and emits its events; the last step is [`Event::Completed`] or an error. A closed channel
    /// ends it; a full one holds back events but no calls. Dropping the future stops every call made for it. Steps are
    /// boxed, because the channel makes room for dozens as soon as it has held one.
    pub async fn run(&self, job: Job, meter: &Meter, events: mpsc::Sender<Box<Step>>) {
        tokio::select! {
            biased;
            () = events.closed() => {}
            () = self.run_to_end(&job, meter, &events) => {}
        }
    }

    async fn run_to_end(&self, job: &Job, meter: &Meter, events: &mpsc::Sender<Box<Step>>) {
        let mut outbox = Outbox::new(events);
        let end = self.verify(job, meter, &mut outbox).await.map(|(results, skipped)| {
            Event::Completed(Box::new(self.response(job, meter, results, skipped)))
        });
        let outcome = end.as_ref().map_or("error", Event::name);
        info!(verification = %job.id, outcome, "verification ended");
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
        let deadline = after(settings.deadline);
        info!(verification = %job.id, domain = job.domain.as_str(), prompts = prompts::hash(), "verification begins");
        outbox.push(self.starting(job));
        outbox.push(Event::ExtractingClaims(ExtractingClaims { status: "extracting_claims".to_owned() }));
        outbox.flush().await;

        let roster = Roster::new(&settings.panel, &settings.standby, total(job));
        if roster.asked() < 2 || settings.extractors().next().is_none() {
            return Err(Error::Unconfigured);
        }
        let fences = Fences::new().map_err(|_| Error::Internal)?;
        let calls = Calls {
            asker: &*self.asker,
            turns: &self.turns,
            meter,
            model_timeout: settings.model_timeout,
            deadline,
        };
        // Told before the calls are dropped that are under way.
        let mut at_deadline = std::pin::pin!(async {
            sleep_until(deadline).await;
            meter.abort_with(Failure::Timeout.code());
        });
        let Extraction { claims, skipped, .. } = tokio::select! {
            biased;
            () = &mut at_deadline => return Err(Error::Deadline),
            extraction = claims::extract(&calls, settings, job, &fences) => extraction?,
        };

        outbox.push(Event::ClaimsExtracted(ClaimsExtracted {
            claims: claims.iter().map(|claim| claim.text.clone()).collect(),
            count: claims.len(),
            skipped: skipped.clone(),
        }));
        let models =
            if job.model_progress { roster.models().map(str::to_owned).collect() } else { Vec::new() };
        outbox.push(Event::VerifyingClaims(VerifyingClaims { total_claims: claims.len(), models }));
        let panel = Panel { calls, job, fences: &fences, roster: &roster, claims: &claims };
        let results = panel.judge(outbox, at_deadline).await?;
        Ok((results, skipped))
    }

    fn starting(&self, job: &Job) -> Event {
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
            token_usage: tally::token_usage(&meter.totals()),
            min_required: job.min_required,
            skipped,
            mode: self.mode(job.domain).map(str::to_owned),
        }
    }
}

/// How many models are asked about each claim.
fn total(job: &Job) -> usize {
    usize::try_from(job.total_models).unwrap_or(usize::MAX)
}
