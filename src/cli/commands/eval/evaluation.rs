//! An evaluation in progress: which statement is asked when, and when to give up.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::Plan;
use super::answers::Answers;
use super::dataset::Item;
use super::open::{Opened, Opening};
use super::report::Report;
use crate::api::verify::{Event, VerifyRequest, VerifyResponse};
use crate::cli::commands::verify::output::batch_display::{BatchDisplay, VERIFYING};
use crate::cli::commands::verify::run::observe::Update;
use crate::cli::commands::verify::run::rate_limit::RateLimitWait;
use crate::cli::commands::verify::run::refusal::MAX_UNREACHED;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::target::backend::{Backend, Chosen};

/// A statement to verify.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    /// Its place in the order of output.
    pub(super) index: usize,
    /// Which repetition, from 0.
    pub(super) run: u32,
    pub(super) item: &'a Item,
}

/// The result for a statement and how long it took, or why it failed.
pub(super) type Outcome = Result<(VerifyResponse, Duration), Failure>;

/// What became of a task.
pub(super) struct Done<'a> {
    pub(super) task: Task<'a>,
    /// `None` for a statement that was no longer asked.
    pub(super) outcome: Option<Outcome>,
    /// What models answered without options, if they were asked, and why one was not.
    pub(super) opened: Option<(Opened, Option<Failure>)>,
    /// Whether it was answered before this evaluation.
    pub(super) is_known: bool,
    /// The same of all that models answered without options.
    pub(super) is_opened_known: bool,
    /// Whether it is the reason why the rest is not asked.
    pub(super) ends_evaluation: bool,
}

/// Verifies all statements, several at a time, each as often as is asked.
pub(super) async fn run<'a>(
    plan: &Plan,
    chosen: Chosen,
    items: &'a [Item],
    answers: Option<Answers>,
    report: &mut Report<'a>,
) -> Result<(), Failure> {
    let mut backend = chosen.open(&plan.printer).await?;
    // Votes of yesterday's run would measure nothing.
    backend.client = backend.client.asking_afresh();
    let opening = if plan.open {
        Some(Opening::begin(&backend, plan.max_wait, plan.verifier.limit).await?)
    } else {
        None
    };
    let all = report.tasks();
    let display = BatchDisplay::begin(VERIFYING, &plan.printer, plan.progress, Some(all), backend.is_sandbox);
    let evaluation = Evaluation {
        plan,
        backend: &backend,
        answers: RefCell::new(answers),
        opening,
        rate_limit_wait: RateLimitWait::new(plan.max_wait),
        display: RefCell::new(display),
        futile_in_a_row: Cell::new(0),
        is_over: Cell::new(false),
    };
    let tasks = (0..plan.repeat).flat_map(|run| items.iter().map(move |item| (run, item)));
    let tasks = tasks.enumerate().map(|(index, (run, item))| Task { index, run, item });
    let mut running =
        std::pin::pin!(stream::iter(tasks).map(|task| evaluation.run_one(task)).buffer_unordered(plan.jobs));
    while let Some(done) = running.next().await {
        report.take(done?, &evaluation.display)?;
    }
    evaluation.display.borrow().live.end();
    Ok(())
}

struct Evaluation<'a> {
    plan: &'a Plan,
    backend: &'a Backend,
    answers: RefCell<Option<Answers>>,
    opening: Option<Opening<'a>>,
    rate_limit_wait: RateLimitWait,
    display: RefCell<BatchDisplay<'a>>,
    /// How many statements in a row failed to reach the server.
    futile_in_a_row: Cell<usize>,
    /// Whether further statements are pointless. Those already running continue, as they may be paid for.
    is_over: Cell<bool>,
}

impl Evaluation<'_> {
    /// Verifies a statement and asks its questions openly; each is kept as soon as it is there, as it is paid for.
    async fn run_one<'a>(&self, task: Task<'a>) -> Result<Done<'a>, Failure> {
        let mut done = self.verify(task).await?;
        if let (Some(answers), Some(Ok(answer)), false) =
            (&mut *self.answers.borrow_mut(), &done.outcome, done.is_known)
        {
            answers.keep(task.item.number, task.run, answer)?;
        }
        self.ask_openly(&mut done).await?;
        Ok(done)
    }

    /// Once a statement, as the figures are those of the first run.
    async fn ask_openly(&self, done: &mut Done<'_>) -> Result<(), Failure> {
        let (Some(opening), Some(Ok((result, _))), 0) = (&self.opening, &done.outcome, done.task.run) else {
            return Ok(());
        };
        let item = done.task.item;
        let known = self.answers.borrow_mut().as_mut().and_then(|answers| answers.take_open(item.number));
        if let Some(known) = known.as_ref().filter(|known| known.is_whole()) {
            done.is_opened_known = true;
            done.opened = Some((known.clone(), None));
            return Ok(());
        }
        let context = item.context.as_deref().or(self.plan.verifier.request.context.as_deref());
        let announce = |text: &str| self.display.borrow().live.notice(text);
        let (opened, failure) = opening.ask(result, context, known, &announce).await;
        let has_answers = opened.answers.iter().any(|one| one.answer.is_some());
        if let Some(answers) = self.answers.borrow_mut().as_mut().filter(|_| has_answers) {
            answers.keep_open(item.number, &opened)?;
        }
        done.opened = Some((opened, failure));
        Ok(())
    }

    /// Fails only where another panel than that of the answers so far is asked, before that costs much.
    async fn verify<'a>(&self, task: Task<'a>) -> Result<Done<'a>, Failure> {
        let done = |outcome| Done {
            task,
            outcome,
            opened: None,
            is_known: false,
            is_opened_known: false,
            ends_evaluation: false,
        };
        let known =
            self.answers.borrow_mut().as_mut().and_then(|answers| answers.take(task.item.number, task.run));
        if let Some(known) = known {
            return Ok(Done { is_known: true, ..done(Some(Ok(known))) });
        }
        if self.is_over.get() {
            return Ok(done(None));
        }
        let (item, general) = (task.item, &self.plan.verifier.request);
        let request = VerifyRequest {
            fact: item.fact.clone(),
            domain: item.domain.or(general.domain),
            as_of: item.as_of.clone().or_else(|| general.as_of.clone()),
            context: item.context.clone().or_else(|| general.context.clone()),
            ..general.clone()
        };
        let announce = |text: &str| self.display.borrow().live.notice(text);
        let mut is_other_panel = false;
        let mut observe = |update: Update<'_>| {
            self.display.borrow_mut().observe(&update);
            if let (Update::Event(Event::VerifyingClaims(begun)), Some(answers)) =
                (update, &*self.answers.borrow())
            {
                let checked = answers.check_panel(request.domain.unwrap_or_default(), &begun.models);
                is_other_panel = checked.is_err();
                return checked;
            }
            Ok(())
        };
        let verifier = &self.plan.verifier;
        let outcome =
            verifier.verify(self.backend, &request, &self.rate_limit_wait, &announce, &mut observe).await;
        if is_other_panel {
            return outcome.map(|outcome| done(Some(Ok(outcome))));
        }
        let ends_evaluation = self.is_futile(&outcome) && !self.is_over.replace(true);
        Ok(Done { ends_evaluation, ..done(Some(outcome)) })
    }

    /// Whether further statements are pointless.
    fn is_futile<T>(&self, outcome: &Result<T, Failure>) -> bool {
        let kind = outcome.as_ref().err().map(|failure| failure.kind);
        // The server is unreachable, or a limit is reached that would take too long to wait out.
        let has_not_begun = matches!(kind, Some(Kind::Unreachable | Kind::Busy));
        self.futile_in_a_row.set(if has_not_begun { self.futile_in_a_row.get() + 1 } else { 0 });
        // The key is refused, or its budget is used up.
        kind == Some(Kind::Unauthorized) || self.futile_in_a_row.get() >= MAX_UNREACHED
    }
}
