//! Structured calls to models: within limits of number and time, with one repair, strictly read.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::turns::Turns;
use super::{json, prompts, text};
use crate::inference::{Answer, Chat, Failure, Finish, Gateway, Message, Role};
use crate::money::NanoUsd;
use crate::usage::{BudgetError, Meter, Purpose};

/// How much of a malformed answer the model is shown again, in characters.
const MAX_REPEATED_CHARS: usize = 4_000;

/// Somebody who asks models: the gateway, or a script in tests. Answers are boxed, so that a verification's own
/// future stays small while hundreds of calls are open.
pub(super) trait Ask: Send + Sync {
    /// As [`Gateway::ask`].
    fn ask<'a>(
        &'a self,
        model: &'a str,
        chat: &'a Chat,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// As [`Gateway::most`].
    fn most(&self, model: &str, chat: &Chat) -> Option<NanoUsd>;

    /// Whether this model's answers are simulated.
    fn is_sandbox(&self, model: &str) -> bool;

    /// How many calls the provider of this model takes at once; `None` for a model that nobody knows.
    fn concurrency(&self, model: &str) -> Option<usize>;
}

impl Ask for Gateway {
    fn ask<'a>(
        &'a self,
        model: &'a str,
        chat: &'a Chat,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(Self::ask(self, model, chat, purpose, meter, deadline))
    }

    fn most(&self, model: &str, chat: &Chat) -> Option<NanoUsd> {
        Self::most(self, model, chat)
    }

    fn is_sandbox(&self, model: &str) -> bool {
        self.target(model).is_some_and(|target| target.sandbox)
    }

    fn concurrency(&self, model: &str) -> Option<usize> {
        Self::concurrency(self, model)
    }
}

/// What all calls of one verification share.
#[derive(Clone, Copy)]
pub(super) struct Calls<'a> {
    /// Who asks.
    pub(super) asker: &'a dyn Ask,
    /// Those of all verifications.
    pub(super) turns: &'a Turns,
    /// Where the calls are booked.
    pub(super) meter: &'a Meter,
    /// For one call.
    pub(super) model_timeout: Duration,
    /// For all of them.
    pub(super) deadline: Instant,
}

impl Calls<'_> {
    /// Asks `model` and reads its answer; an answer that cannot be read is sent back once. The prompt for it is written
    /// only when the call may begin: waiting calls hold no copy of statement or context.
    ///
    /// What a budget does not cover only as long as other calls are under way, most of them the verification's own, is
    /// asked when some of them have ended, if that is as soon as an answer has to be.
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep its arguments twice while it waits")]
    pub(super) fn structured<T>(
        &self,
        model: &str,
        purpose: Purpose,
        prompt: impl Fn() -> Chat,
        read: impl Fn(&str) -> Option<T>,
    ) -> impl Future<Output = Result<T, Failure>> {
        async move {
            let (mut turn, mut until) = (None, None);
            // In a box, as few calls need it and all would keep room for it.
            let mut repair: Option<Box<[Message; 2]>> = None;
            loop {
                if turn.is_none() {
                    turn = Some(self.turns.next(model).await);
                }
                let mut chat = prompt();
                chat.messages.extend(repair.iter().flat_map(|repair| repair.iter().cloned()));
                match self.attempt(model, purpose, &chat, &read).await {
                    Ok(Reading::Read(value)) => return Ok(value),
                    Ok(Reading::Malformed(malformed)) if repair.is_none() => {
                        repair = Some(Box::new(repair_turn(&malformed)));
                    }
                    Ok(Reading::Malformed(_)) => return Err(Failure::Malformed),
                    Err(Failure::BudgetExceeded(shortage)) if shortage.is_temporary() => {
                        // Whoever waits for money is in nobody's way.
                        drop((turn.take(), chat));
                        let until =
                            *until.get_or_insert_with(|| self.deadline.min(after(self.model_timeout)));
                        // In a box, as few calls wait for money and all would keep room for it.
                        if !Box::pin(self.may_pay(shortage.max_cost, until)).await {
                            return Err(Failure::BudgetExceeded(shortage));
                        }
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
    }

    /// Waits until this much can be reserved, or it is clear that it cannot; false if it takes longer than `until`.
    async fn may_pay(&self, most: NanoUsd, until: Instant) -> bool {
        while let Some(freed) = self.meter.freed() {
            match self.meter.check(Some(most)) {
                Err(BudgetError::Exceeded(shortage)) if shortage.is_temporary() => {}
                _ => break,
            }
            if Instant::now() >= until || timeout_at(until, freed).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Asks once. No `async fn`, which would keep its arguments twice while it waits.
    fn attempt<'a, T>(
        &'a self,
        model: &'a str,
        purpose: Purpose,
        chat: &'a Chat,
        read: impl Fn(&str) -> Option<T> + 'a,
    ) -> impl Future<Output = Result<Reading<T>, Failure>> + 'a {
        let deadline = self.deadline.min(after(self.model_timeout));
        let asked = self.asker.ask(model, chat, purpose, self.meter, deadline);
        async move {
            let answer = asked.await?;
            if answer.finish == Finish::ContentFilter {
                return Err(Failure::Refused);
            }
            Ok(read(&answer.text).map_or(Reading::Malformed(answer.text), Reading::Read))
        }
    }
}

enum Reading<T> {
    Read(T),
    Malformed(String),
}

/// This long from now, or a year where that is more than the clock can hold.
pub(super) fn after(span: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(span).unwrap_or(now + Duration::from_hours(365 * 24))
}

/// The model is shown what it answered; thoughts before it could take all the room.
fn repair_turn(malformed: &str) -> [Message; 2] {
    let repeated = text::shortened(&text::block(json::behind_thoughts(malformed)), MAX_REPEATED_CHARS);
    // Some providers refuse an empty turn.
    let content = if repeated.trim().is_empty() { "(nothing)".to_owned() } else { repeated };
    [
        Message { role: Role::Assistant, content: content.into() },
        Message { role: Role::User, content: prompts::REPAIR.into() },
    ]
}
