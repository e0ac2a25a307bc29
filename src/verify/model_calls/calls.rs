//! Structured calls to models: within concurrency limits and timeouts, strictly parsed, with one repair attempt.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::call_queue::CallQueue;
use super::pacing::{self, ModelSlot, Pacing};
use crate::inference::{Answer, Chat, Effort, Failure, Finish, Gateway, Message, Prompt, Role};
use crate::json::object;
use crate::money::NanoUsd;
use crate::usage::{BudgetError, Meter, Purpose};
use crate::verify::receipt::Recorder;
use crate::verify::{prompts, text};

/// How many characters of a malformed answer are quoted to the model.
const MAX_QUOTED_CHARS: usize = 4_000;

/// A client that calls models: the gateway, or a script in tests. Its futures are boxed, so that the future of a
/// verification stays small while hundreds of calls are open.
pub(in crate::verify) trait ModelClient: Send + Sync {
    /// See [`Gateway::ask`].
    fn ask<'a>(
        &'a self,
        model: &'a str,
        prompt: &'a Prompt<'a>,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// See [`Gateway::max_cost`].
    fn max_cost(&self, model: &str, chat: &Chat) -> Option<NanoUsd>;

    /// Whether this model's answers are simulated.
    fn is_sandbox(&self, model: &str) -> bool;

    /// See [`Gateway::max_concurrent_calls`].
    fn max_concurrent_calls(&self, model: &str) -> Option<usize>;

    /// See [`Gateway::place`].
    fn place(&self, model: &str) -> Option<String>;
}

impl ModelClient for Gateway {
    fn ask<'a>(
        &'a self,
        model: &'a str,
        prompt: &'a Prompt<'a>,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(Self::ask(self, model, prompt, purpose, meter, deadline))
    }

    fn max_cost(&self, model: &str, chat: &Chat) -> Option<NanoUsd> {
        Self::max_cost(self, model, chat)
    }

    fn is_sandbox(&self, model: &str) -> bool {
        self.target(model).is_some_and(|target| target.sandbox)
    }

    fn max_concurrent_calls(&self, model: &str) -> Option<usize> {
        Self::max_concurrent_calls(self, model)
    }

    fn place(&self, model: &str) -> Option<String> {
        Self::place(self, model)
    }
}

/// What all calls of one verification share.
#[derive(Clone, Copy)]
pub(in crate::verify) struct Calls<'a> {
    pub(in crate::verify) client: &'a dyn ModelClient,
    /// Shared by all verifications.
    pub(in crate::verify) queue: &'a CallQueue,
    /// Shared by all verifications.
    pub(in crate::verify) pacing: &'a Pacing,
    /// Where the calls are booked.
    pub(in crate::verify) meter: &'a Meter,
    /// How long models that reason may think.
    pub(in crate::verify) effort: Effort,
    /// The timeout of a single call.
    pub(in crate::verify) model_timeout: Duration,
    /// What the calls are for, as extractions have a timeout of their own.
    pub(in crate::verify) task: Task,
    /// The deadline of the whole verification.
    pub(in crate::verify) deadline: Instant,
    /// Keeps what models write, if somebody asked for a receipt.
    pub(in crate::verify) recorder: Option<&'a Recorder>,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Task {
    /// An answer of a few tokens.
    Vote,
    /// An answer of thousands of tokens.
    Extraction {
        /// Whether there is another extractor to be asked if this one fails.
        has_fallback: bool,
    },
}

/// What to do about a model that limits the rate of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum IfLimited {
    /// The call fails, as there is another model to be asked.
    Fail,
    /// The call waits and is made again.
    Wait {
        /// Whether it was made before.
        again: bool,
    },
}

impl IfLimited {
    /// Whether the call that begins now was made before; the next one is another call.
    const fn begins_again(&mut self) -> bool {
        match self {
            Self::Fail => false,
            Self::Wait { again } => std::mem::replace(again, false),
        }
    }
}

/// How many times the timeout of a vote an extraction may take: 30 claims are some 3,000 tokens, and many models write
/// less than 100 a second.
const EXTRACTION_FACTOR: u32 = 3;

impl Calls<'_> {
    /// Asks `model` and parses its answer with `read`; a malformed answer is sent back for repair once, with the
    /// problem that `read` describes. The `prompt` is written when it is sent, so that waiting calls hold no copy
    /// of statement or context.
    ///
    /// If a budget does not cover the call only because of reservations for open calls, most of them of the same
    /// verification, it is made when enough of those have ended, provided that is within the timeout of one call.
    ///
    /// If the model limits its rate, calls are made at its pace, and one that may not be made yet fails or waits. None
    /// is made once it is not needed any more.
    #[expect(clippy::manual_async_fn, reason = "an async fn would store its arguments twice while it waits")]
    pub(in crate::verify) fn structured<T>(
        &self,
        model: &str,
        purpose: Purpose,
        mut if_limited: IfLimited,
        is_needed: impl Fn() -> bool,
        prompt: impl Fn() -> Chat + Sync,
        read: impl Fn(&Answer) -> Result<T, String>,
    ) -> impl Future<Output = Result<T, Failure>> {
        async move {
            let mut permit = None;
            let mut turn = self.pacing.turn(model);
            // Boxed, as few calls need it and all would reserve memory for it.
            let mut setbacks: Option<Box<Setbacks>> = None;
            loop {
                if permit.is_none() {
                    // Boxed, as every open call would reserve memory for the wait before it.
                    permit = Some(Box::pin(self.queue.acquire(self.meter.key_id(), model)).await);
                }
                // A call that is not needed takes no slot of the pace, which another may wait for.
                if !is_needed() {
                    return Err(pacing::not_made(Duration::ZERO));
                }
                if !turn.begin() {
                    drop(permit.take());
                    if if_limited == IfLimited::Fail {
                        return Err(pacing::not_made(turn.time_left().unwrap_or_default()));
                    }
                    // Boxed, as few calls wait and all would reserve memory for it.
                    Box::pin(self.wait_for_turn(&mut turn)).await?;
                    continue;
                }
                if if_limited.begins_again() {
                    self.meter.count_retry(model);
                }
                let outcome = {
                    let write = || {
                        let mut chat = prompt();
                        chat.effort = self.effort;
                        let repair = setbacks.as_deref().and_then(|setbacks| setbacks.repair.as_deref());
                        chat.messages.extend(repair.into_iter().flatten().cloned());
                        chat
                    };
                    self.attempt(model, purpose, &Prompt::written(&write), &read).await
                };
                turn.record(outcome.as_ref().err());
                match outcome {
                    Ok(Reading::Read(value)) => return Ok(value),
                    Ok(Reading::Malformed(malformed)) => {
                        let repair = &mut setbacks.get_or_insert_default().repair;
                        if repair.replace(malformed).is_some() {
                            return Err(Failure::Malformed);
                        }
                    }
                    Err(Failure::BudgetExceeded(shortage)) if shortage.is_temporary() => {
                        // Whoever waits for budget does not block others in the queue.
                        drop(permit.take());
                        let until = &mut setbacks.get_or_insert_default().wait_for_budget_until;
                        let until = *until.get_or_insert_with(|| self.call_deadline());
                        // Boxed, as few calls wait for budget and all would reserve memory for it.
                        if !Box::pin(self.wait_for_budget(shortage.max_cost, until)).await {
                            return Err(Failure::BudgetExceeded(shortage));
                        }
                    }
                    Err(failure) if if_limited != IfLimited::Fail && pacing::is_rate_limit(&failure) => {
                        let again = matches!(failure, Failure::RateLimited { .. });
                        if_limited = IfLimited::Wait { again };
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
    }

    /// Waits for a turn, as long as the call would be of use.
    async fn wait_for_turn(&self, turn: &mut ModelSlot<'_>) -> Result<(), Failure> {
        let until = match self.task {
            Task::Vote => self.deadline,
            // The panel needs the time of one vote.
            Task::Extraction { .. } => self.deadline.checked_sub(self.model_timeout).unwrap_or(self.deadline),
        };
        let waited = timeout_at(until, turn.wait(until)).await;
        waited.unwrap_or(Err(Failure::RateLimited { retry_after: None }))
    }

    /// Waits until `max_cost` can be reserved, or certainly cannot; false if that takes longer than `until`.
    async fn wait_for_budget(&self, max_cost: NanoUsd, until: Instant) -> bool {
        while let Some(freed) = self.meter.freed() {
            match self.meter.check(Some(max_cost)) {
                Err(BudgetError::Exceeded(shortage)) if shortage.is_temporary() => {}
                _ => break,
            }
            if Instant::now() >= until || timeout_at(until, freed).await.is_err() {
                return false;
            }
        }
        true
    }

    /// When a call that begins now has to end.
    ///
    /// An extraction gets [`EXTRACTION_FACTOR`] times the timeout, if that leaves the panel the time of one vote before
    /// the deadline. While there is a fallback, it gets no more than half of what is left until then, so that the
    /// fallback has as much. But it never gets less than a vote.
    fn call_deadline(&self) -> Instant {
        let vote = self.model_timeout;
        let timeout = match self.task {
            Task::Vote => vote,
            Task::Extraction { has_fallback } => {
                let left = self.deadline.saturating_duration_since(Instant::now()).saturating_sub(vote);
                let share = if has_fallback { left / 2 } else { left };
                vote.saturating_mul(EXTRACTION_FACTOR).min(share).max(vote)
            }
        };
        self.deadline.min(from_now(timeout))
    }

    /// Makes one attempt. Not an `async fn`, which would store its arguments twice while it waits.
    fn attempt<'a, T>(
        &'a self,
        model: &'a str,
        purpose: Purpose,
        prompt: &'a Prompt<'a>,
        read: impl Fn(&Answer) -> Result<T, String> + 'a,
    ) -> impl Future<Output = Result<Reading<T>, Failure>> + 'a {
        let deadline = self.call_deadline();
        let call = self.client.ask(model, prompt, purpose, self.meter, deadline);
        async move {
            let answer = match call.await {
                Err(failure) if failure.is_malformed_output() => {
                    return Ok(Reading::Malformed(Box::new(repair_messages("", "not JSON of the schema"))));
                }
                outcome => outcome?,
            };
            if answer.finish == Finish::ContentFilter {
                return Err(Failure::Refused);
            }
            Ok(read(&answer).map_or_else(
                |problem| Reading::Malformed(Box::new(repair_messages(&answer.text, &problem))),
                Reading::Read,
            ))
        }
    }
}

/// What has delayed a call.
#[derive(Default)]
struct Setbacks {
    /// The messages that ask for another answer.
    repair: Option<Box<[Message; 2]>>,
    wait_for_budget_until: Option<Instant>,
}

/// A model's answer, if it could be parsed.
enum Reading<T> {
    Read(T),
    /// With the messages that ask for another.
    Malformed(Box<[Message; 2]>),
}

/// The instant after this time, or after a year if that is too far in the future for the clock.
pub(in crate::verify) fn from_now(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now + Duration::from_hours(365 * 24))
}

/// Quotes the malformed answer to the model, tells it the `problem` and asks for another. Reasoning is left out, as it
/// could fill the quote.
fn repair_messages(malformed: &str, problem: &str) -> [Message; 2] {
    let quoted = text::shortened(&text::block(object::skip_reasoning(malformed)), MAX_QUOTED_CHARS);
    // Some providers reject an empty message.
    let content = if quoted.trim().is_empty() { "(nothing)".to_owned() } else { quoted };
    [
        Message { role: Role::Assistant, content: content.into() },
        Message { role: Role::User, content: prompts::repair(problem).into() },
    ]
}
