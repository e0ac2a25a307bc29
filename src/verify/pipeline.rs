//! The run of a verification, from its first event to its last.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tracing::debug;

use super::cache::{self, Cache, Extraction, VerdictStore};
use super::error::Error;
use super::extraction::{self, Changes, Feed, Found, Statement};
use super::model_calls::call_queue::CallQueue;
use super::model_calls::calls::{Calls, ModelClient, Task, from_now};
use super::model_calls::outbox::Outbox;
use super::model_calls::pacing::Pacing;
use super::model_calls::token_usage;
use super::prompts::{self, Fences};
use super::receipt::{self, Fingerprint, Payload, Recorder};
use super::settings::SECTION_TIME;
use super::voting::ballot::Roster;
use super::voting::panel::{Panel, Source};
use super::{Event, EventResult, Job, PanelSettings, Settings, Work};
use crate::api::verify::{ClaimResult, Domain, ExtractResponse, ExtractingClaims, Starting, VerifyResponse};
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
    /// What was found before.
    cache: Option<Arc<dyn VerdictStore>>,
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
        Self { client, settings, clock, queue, pacing, sandbox, cache: None }
    }

    /// This verifier, with a place to keep what it finds, where the settings say so.
    #[must_use]
    pub fn with_cache(self, cache: Arc<dyn VerdictStore>) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// This verifier as the replacement of `previous`, whose open calls count as its own. A model keeps its pace if
    /// what was learnt about it still holds. The limit on open calls changes with [`Verifier::activate`].
    #[must_use]
    pub fn replacing(self, previous: &Self, still_holds: impl Fn(&str) -> bool) -> Self {
        Self {
            queue: self.queue.replacing(&previous.queue),
            pacing: self.pacing.replacing(&previous.pacing, still_holds),
            cache: previous.cache.clone(),
            ..self
        }
    }

    /// Applies this verifier's limit on open calls, if it replaced another one.
    pub fn activate(&self) {
        self.queue.activate();
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
        let mut models: Vec<&str> = settings.extraction_models().collect();
        if job.work == Work::Verify {
            models.extend(Roster::new(&settings.panel, &settings.standby, panel_size(job)).models());
        }
        models
    }

    /// Checks whether the budget of the account, if it has one, allows this job to start: the prices of extractor,
    /// auditor and panel must be known, and the extraction must be affordable now. Later calls are checked one by one.
    pub fn check_budget(&self, job: &Job, meter: &Meter) -> Result<(), Error> {
        if !meter.has_budget() {
            return Ok(());
        }
        let settings = self.settings(job.domain);
        let prompt = Statement::first_prompt(job);
        let Some(extractor) = settings.extractors().next() else { return Err(Error::Unconfigured) };
        let asked = match job.work {
            Work::Verify => panel_size(job),
            Work::Extract => 0,
        };
        let roster = Roster::new(&settings.panel, &[], asked);
        let panel = (0..roster.panel_size()).filter_map(|seat| roster.model(seat));
        // Without its auditor, a verification would be worth less than is asked for.
        let mut asked = panel.chain(settings.acting_auditor());
        if let Some(model) = asked.find(|model| self.client.max_cost(model, &prompt).is_none()) {
            return Err(Error::Unpaid { model: model.to_owned(), failure: Failure::PriceUnknown });
        }
        let max_cost = self.client.max_cost(extractor, &prompt);
        meter
            .check(max_cost)
            .map_err(|unpaid| Error::Unpaid { model: extractor.to_owned(), failure: unpaid.into() })
    }

    /// Whether all that a job asks for is in the cache, so that it costs nothing.
    pub async fn knows(&self, job: &Job, meter: &Meter) -> bool {
        let settings = self.settings(job.domain);
        let Some(cache) = self.cache(settings, job, meter) else { return false };
        let context = job.context.as_deref().unwrap_or_default();
        let Ok(fences) = Fences::new(&[&job.fact, context]) else { return false };
        cache.knows(&Statement::read(job, &fences)).await
    }

    /// The cache as a job may use it.
    fn cache<'a>(
        &'a self,
        settings: &'a PanelSettings,
        job: &'a Job,
        meter: &'a Meter,
    ) -> Option<Box<Cache<'a>>> {
        match job.work {
            Work::Verify => Cache::new(self.cache.as_deref(), &*self.client, settings, job, meter),
            Work::Extract => None,
        }
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
        let settings = self.settings(job.domain);
        let cache = self.cache(settings, job, meter);
        let end = self.work(job, meter, cache.as_deref(), &mut outbox).await;
        let outcome = end.as_ref().map_or("error", Event::name);
        debug!(verification = %job.id, outcome, "verification ended");
        outbox.push_end(end);
        outbox.flush().await;
    }

    /// Does what the job asks for, up to the event that ends it.
    async fn work(
        &self,
        job: &Job,
        meter: &Meter,
        cache: Option<&Cache<'_>>,
        outbox: &mut Outbox<'_>,
    ) -> EventResult {
        let settings = self.settings(job.domain);
        debug!(verification = %job.id, domain = job.domain.as_str(), prompts = prompts::hash(), "verification begins");
        outbox.push(self.starting_event(job));
        outbox.push(Event::ExtractingClaims(ExtractingClaims { status: "extracting_claims".to_owned() }));
        outbox.flush().await;

        let roster = Roster::new(&settings.panel, &settings.standby, panel_size(job));
        if roster.panel_size() < super::settings::MIN_PANEL || settings.extractors().next().is_none() {
            return Err(Error::Unconfigured);
        }
        let context = job.context.as_deref().unwrap_or_default();
        let fences = Fences::new(&[&job.fact, context]).map_err(|_| Error::Internal)?;
        let statement = Box::new(Statement::read(job, &fences).repeatable(cache.is_some()));
        // Boxed, as few verifications have one.
        let recorder = job.receipt.as_ref().map(|_| Box::new(Recorder::new()));
        let further = u32::try_from(statement.section_count().saturating_sub(1)).unwrap_or(u32::MAX);
        let deadline = from_now(settings.deadline.saturating_add(SECTION_TIME.saturating_mul(further)));
        let calls = Calls {
            client: &*self.client,
            queue: &self.queue,
            pacing: &self.pacing,
            meter,
            effort: settings.effort,
            model_timeout: settings.model_timeout,
            task: Task::Vote,
            deadline,
            recorder: recorder.as_deref(),
        };
        // Tells the meter before the open calls are dropped.
        let mut deadline_passed = std::pin::pin!(async {
            sleep_until(deadline).await;
            meter.abort_with(Failure::Timeout.code());
        });
        let asked_early = match job.work {
            Work::Verify => statement.max_claims(settings),
            Work::Extract => 0,
        };
        let changes = Changes::default();
        let feed = Feed::new(asked_early, changes.clone());
        let extraction_calls = calls;
        if job.work == Work::Extract {
            let extraction = extraction::extract(&extraction_calls, settings, &statement, &feed);
            let found = tokio::select! {
                biased;
                () = &mut deadline_passed => return Err(Error::Deadline),
                found = Box::pin(extraction) => found?,
            };
            outbox.push(Event::ClaimsExtracted(found.listed(job)));
            return Ok(Event::Extracted(Box::new(self.extraction(job, meter, found))));
        }
        let source = match cache {
            None => Source {
                extraction: Box::pin(async move {
                    extraction::extract(&extraction_calls, settings, &statement, &feed).await
                }),
                changes,
            },
            Some(cache) => {
                let known = Changes::default();
                let panel = known.clone();
                let extraction = Box::pin(async move {
                    let end = extraction::extract(&extraction_calls, settings, &statement, &feed);
                    cache::extract(cache, &statement, Extraction { end, changes }, &panel).await
                });
                Source { extraction, changes: known }
            }
        };
        let panel = Panel { calls: &calls, job, fences: &fences, roster: &roster };
        let (results, found) = panel.run(source, outbox, deadline_passed).await?;
        let known_text = found.cached;
        let response = self.response(job, meter, Verified { results, found, recorder });
        if let Some(cache) = cache {
            cache.keep(&response, known_text);
        }
        Ok(Event::Completed(Box::new(response)))
    }

    fn starting_event(&self, job: &Job) -> Event {
        Event::Starting(Starting {
            status: "starting".to_owned(),
            request_id: job.id.clone(),
            mode: self.mode(job.domain).map(str::to_owned),
        })
    }

    fn response(&self, job: &Job, meter: &Meter, verified: Verified) -> VerifyResponse {
        let Verified { results, found, recorder } = verified;
        let token_usage = token_usage::from_totals(&meter.totals());
        let cached = found.cached && results.iter().all(|result| result.cached);
        let mut response = VerifyResponse {
            request_id: job.id.clone(),
            original_fact: job.fact.clone(),
            results,
            timestamp: self.clock.now().rfc3339(),
            cost_usd: token_usage.cost_usd(),
            token_usage,
            min_required: job.min_required,
            complete: found.is_complete(),
            skipped: found.skipped,
            audited: found.audited,
            auditor: self.settings(job.domain).acting_auditor().map(str::to_owned),
            coverage: found.coverage,
            domain: job.domain,
            as_of: job.as_of.rfc3339(),
            total_models: job.total_models,
            prompts: Some(prompts::hash().to_owned()),
            mode: self.mode(job.domain).map(str::to_owned),
            cached,
            receipt: None,
            models: Vec::new(),
        };
        if let (Some(key), Some(recorder)) = (&job.receipt, recorder) {
            response.receipt = receipt::seal(&self.payload(job, &response, &recorder), key);
        }
        response
    }

    /// What the receipt of a verification says.
    fn payload(&self, job: &Job, response: &VerifyResponse, recorder: &Recorder) -> Payload {
        let settings = self.settings(job.domain);
        let roster = Roster::new(&settings.panel, &settings.standby, panel_size(job));
        let claims = response.results.iter().map(|result| recorder.take_claim(result, roster.models()));
        Payload {
            schema: receipt::SCHEMA.to_owned(),
            request_id: job.id.clone(),
            timestamp: response.timestamp.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: response.mode.clone(),
            request: receipt::Asked {
                domain: job.domain,
                min_required: job.min_required,
                total_models: job.total_models,
                as_of: response.as_of.clone(),
                explain: job.explain,
                format: job.format,
            },
            statement: Fingerprint::of(&job.fact),
            context: job.context.as_deref().map(Fingerprint::of),
            prompts: prompts::hashes(job),
            extractor: settings.extractor.clone(),
            auditor: settings.acting_auditor().map(str::to_owned),
            complete: response.complete,
            audited: response.audited,
            coverage: response.coverage,
            skipped: response.skipped.clone(),
            claims: claims.collect(),
            outputs: recorder.take_outputs(),
        }
    }

    fn extraction(&self, job: &Job, meter: &Meter, found: Found) -> ExtractResponse {
        let token_usage = token_usage::from_totals(&meter.totals());
        ExtractResponse {
            request_id: job.id.clone(),
            original_fact: job.fact.clone(),
            claims: found.claims.iter().map(|claim| claim.extracted(&job.fact)).collect(),
            complete: found.is_complete(),
            skipped: found.skipped,
            audited: found.audited,
            auditor: self.settings(job.domain).acting_auditor().map(str::to_owned),
            coverage: found.coverage,
            timestamp: self.clock.now().rfc3339(),
            cost_usd: token_usage.cost_usd(),
            token_usage,
            domain: job.domain,
            as_of: job.as_of.rfc3339(),
            prompts: Some(prompts::hash().to_owned()),
            mode: self.mode(job.domain).map(str::to_owned),
        }
    }
}

/// What a run has found.
struct Verified {
    results: Vec<ClaimResult>,
    found: Found,
    /// What the models wrote, if a receipt was asked for.
    recorder: Option<Box<Recorder>>,
}

/// How many models are asked about each claim.
fn panel_size(job: &Job) -> usize {
    usize::try_from(job.total_models).unwrap_or(usize::MAX)
}
