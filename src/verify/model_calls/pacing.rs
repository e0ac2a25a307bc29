//! The pace of calls to models that limit their rate, shared by all verifications.
//!
//! ```text
//!         a call is refused with 429            its pause is over, one call is made
//!   free ───────────────────────────▶ refusing ────────────────────────────────────▶ it succeeds ──▶ spaced
//!    ▲                                   ▲  └──── it is refused: a longer pause ────────┘               │ │
//!    │                                   └─────────────────── a call is refused: wider spaces ◀─────────┘ │
//!    └───────────────────────────────────── after enough successes, the spaces have shrunk to nothing ◀───┘
//! ```
//!
//! While a model refuses, one call at a time finds out whether it still does: the others wait in line, and hold neither
//! a permit nor a breaker's ticket nor a budget. Once it answers, calls begin one by one, with spaces that every few
//! successes halve: neither would a burst that was refused be admitted if it came back as a burst, nor is a slow model
//! held up until each answer is complete. Each time they have become too short, it takes twice as many successes to
//! shorten them, so that a steady limit costs few refusals.
//!
//! The pace is that of a model, as most limits are. Where the limit is on a whole account, each of its models is paced.
//! Callers of chat completions are not: each has a single call, and is told at once.
//!
//! What must hold: no call before the time that a provider asks for, up to [`MAX_BREAKER_PAUSE`]; a call that is
//! dropped, whether it waits or is under way, holds up nobody; a limit of which nothing was seen for a minute is
//! forgotten.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::inference::{self, Failure, MAX_BREAKER_PAUSE};
use crate::lock::Lock;
use crate::net::semaphore::{Permit, Semaphore};

/// The first pause of a model that does not ask for one, and the space between its calls after that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the provider asks for a longer one, and the widest space.
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// Shorter spaces are none.
const MIN_SPACE: Duration = Duration::from_millis(20);
/// How many successes halve the spaces, at first and at most.
const STEADY: u32 = 4;
const MAX_STEADY: u32 = 64;
/// How long after a call would have been due a limit is remembered: the windows of most are a minute.
const MEMORY: Duration = Duration::from_mins(1);

/// The paces of all models that verifications call.
pub(in crate::verify) struct Pacing(BTreeMap<String, Arc<Pace>>);

impl Pacing {
    /// Nothing is known of the limits of these models.
    pub(in crate::verify) fn new<'a>(models: impl Iterator<Item = &'a str>) -> Self {
        Self(models.map(|model| (model.to_owned(), Arc::new(Pace::new()))).collect())
    }

    /// This pacing as the replacement of `previous`: models that both have keep their pace, if what was learnt about
    /// them still holds.
    #[must_use]
    pub(in crate::verify) fn replacing(self, previous: &Self, still_holds: impl Fn(&str) -> bool) -> Self {
        let kept = |(model, pace): (String, _)| {
            let learnt = previous.0.get(&model).filter(|_| still_holds(&model));
            let pace = learnt.cloned().unwrap_or(pace);
            (model, pace)
        };
        Self(self.0.into_iter().map(kept).collect())
    }

    /// A turn to call `model`, which has not begun.
    pub(in crate::verify) fn turn(&self, model: &str) -> ModelSlot<'_> {
        ModelSlot { pace: self.0.get(model).map(|pace| &**pace), place: None, epoch: 0 }
    }
}

/// The pace of one model.
struct Pace {
    state: Mutex<State>,
    /// The first place in the line of those that wait.
    line: Arc<Semaphore>,
    /// Told when a provider asks for a wait, which some in the line may not have the time for.
    postponed: Notify,
}

impl Pace {
    fn new() -> Self {
        Self { state: Mutex::default(), line: Arc::new(Semaphore::new(1)), postponed: Notify::new() }
    }
}

/// What is known of a model's limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    limit: Option<Limit>,
    /// How many refusals have changed the pace. What the outcome of a call says about the pace is only taken as such if
    /// the pace is still the one it began at: a burst that is refused counts once.
    epoch: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    /// No call before.
    next: Instant,
    space: Duration,
    /// Since the last success.
    refusals: u32,
    /// Since the spaces changed.
    successes: u32,
    /// How many successes halve the spaces.
    steady: u32,
}

impl State {
    /// The limit, unless it is to be forgotten.
    fn limit(&mut self, now: Instant) -> Option<&mut Limit> {
        if self.limit.as_ref().is_some_and(|limit| limit.next + MEMORY <= now) {
            self.limit = None;
        }
        self.limit.as_mut()
    }

    /// A call that began in `epoch` was refused; `asked` is the wait that the provider asks for, and `jitter` is drawn
    /// uniformly from `0.0..1.0`.
    fn refused(&mut self, epoch: u32, asked: Option<Duration>, now: Instant, jitter: f64) {
        let is_current = epoch == self.epoch;
        match self.limit(now) {
            Some(limit) if !is_current => {
                limit.next = limit.next.max(now + asked.unwrap_or_default());
                return;
            }
            Some(limit) => limit.refused(asked, now, jitter),
            None => {
                let space = asked.map_or(FIRST_PAUSE, |asked| asked.clamp(MIN_SPACE, FIRST_PAUSE));
                let pause = asked.unwrap_or_else(|| spread(space, jitter));
                let next = now + pause;
                self.limit = Some(Limit { next, space, refusals: 1, successes: 0, steady: STEADY });
            }
        }
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// A call that began in `epoch` was answered.
    fn succeeded(&mut self, epoch: u32) {
        if epoch != self.epoch {
            return;
        }
        let Some(limit) = &mut self.limit else { return };
        limit.refusals = 0;
        limit.successes += 1;
        if limit.successes >= limit.steady {
            limit.successes = 0;
            limit.space /= 2;
        }
        if limit.space < MIN_SPACE {
            self.limit = None;
        }
    }
}

impl Limit {
    fn refused(&mut self, asked: Option<Duration>, now: Instant, jitter: f64) {
        if self.refusals == 0 {
            // It has just answered at this pace, or at half of it.
            self.space = self.space.saturating_mul(2).min(MAX_PAUSE);
            self.steady = self.steady.saturating_mul(2).min(MAX_STEADY);
            self.successes = 0;
        }
        let grown = self.space.saturating_mul(2_u32.saturating_pow(self.refusals)).min(MAX_PAUSE);
        // A late refusal of an earlier burst may have asked for a longer wait.
        self.next = self.next.max(now + asked.unwrap_or_default().max(spread(grown, jitter)));
        self.refusals = self.refusals.saturating_add(1);
    }
}

/// A pause that is up to a quarter longer, so that servers that share a key do not stay in step.
fn spread(pause: Duration, jitter: f64) -> Duration {
    pause + pause.mul_f64(jitter.clamp(0.0, 1.0) / 4.0)
}

/// A turn to call a model. Dropping it leaves the line, or ends the call without an outcome.
pub(in crate::verify) struct ModelSlot<'a> {
    /// `None` for a model without a pace.
    pace: Option<&'a Pace>,
    /// The first place in the line.
    place: Option<Permit>,
    /// When the call began.
    epoch: u32,
}

impl ModelSlot<'_> {
    /// Begins the call if it may be made now.
    pub(in crate::verify) fn begin(&mut self) -> bool {
        let Some(pace) = self.pace else { return true };
        let now = Instant::now();
        let mut state = pace.state.locked();
        self.epoch = state.epoch;
        let Some(limit) = state.limit(now) else {
            drop(state);
            self.place = None;
            return true;
        };
        if limit.next > now {
            return false;
        }
        if self.place.is_none() {
            self.place = pace.line.acquire().now_or_never();
        }
        if self.place.is_none() {
            return false;
        }
        limit.next = now + limit.space;
        let is_spaced = limit.refusals == 0;
        drop(state);
        if is_spaced {
            self.place = None;
        }
        true
    }

    /// Waits in line, and then until the call may be made, unless something changes before it begins.
    ///
    /// # Errors
    /// At once if that will not be before `until`.
    pub(in crate::verify) async fn wait(&mut self, until: Instant) -> Result<(), Failure> {
        let Some(pace) = self.pace else { return Ok(()) };
        let mut first = pin!(pace.line.acquire());
        loop {
            let mut postponed = pin!(pace.postponed.notified());
            postponed.as_mut().enable();
            match (self.due(until)?, self.place.is_some()) {
                (None, true) => return Ok(()),
                (Some(due), true) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = postponed => {}
                },
                (_, false) => tokio::select! {
                    biased;
                    permit = &mut first => self.place = Some(permit),
                    () = postponed => {}
                },
            }
        }
    }

    /// When the call is due, if not now.
    fn due(&self, until: Instant) -> Result<Option<Instant>, Failure> {
        let now = Instant::now();
        let next = self.pace.and_then(|pace| pace.state.locked().limit(now).map(|limit| limit.next));
        match next.filter(|next| *next > now) {
            Some(next) if next >= until => Err(Failure::RateLimited { retry_after: Some(next - now) }),
            due => Ok(due),
        }
    }

    /// How long until a call could be made, as far as is known.
    pub(in crate::verify) fn time_left(&self) -> Option<Duration> {
        let now = Instant::now();
        let next = self.pace.and_then(|pace| pace.state.locked().limit(now).map(|limit| limit.next))?;
        next.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Takes note of the outcome of a call that has begun. A call that was refused keeps its place, to be made again.
    pub(in crate::verify) fn record(&mut self, failure: Option<&Failure>) {
        let Some(pace) = self.pace else { return };
        match failure {
            // A model that answers at all has admitted the call.
            None | Some(Failure::Refused | Failure::Malformed | Failure::NoAnswer) => {
                pace.state.locked().succeeded(self.epoch);
                self.place = None;
            }
            Some(failure) if is_rate_limit(failure) => {
                let asked = failure.retry_after().map(|asked| asked.min(MAX_BREAKER_PAUSE));
                pace.state.locked().refused(self.epoch, asked, Instant::now(), inference::jitter());
                if asked.is_some() {
                    pace.postponed.notify_waiters();
                }
            }
            Some(_) => self.place = None,
        }
    }
}

/// The code of a rate limit.
const RATE_LIMITED: &str = Failure::RateLimited { retry_after: None }.code();

/// Why a call to a model that limits its rate is not made.
pub(in crate::verify) const fn not_made(retry_after: Duration) -> Failure {
    Failure::Paused { whole_provider: false, because: RATE_LIMITED, retry_after }
}

/// Whether a model limits its rate: says so, or is not called because it has said so, by [`not_made`] or by its
/// breaker, which opens if the provider asks for long waits.
pub(in crate::verify) fn is_rate_limit(failure: &Failure) -> bool {
    match failure {
        Failure::RateLimited { .. } => true,
        Failure::Paused { because, .. } => *because == RATE_LIMITED,
        _ => false,
    }
}

/// A failure as it is reported: for a caller, a rate limit is one whether the last call was made or not.
pub(in crate::verify) fn reported(failure: Failure) -> Failure {
    if is_rate_limit(&failure) {
        Failure::RateLimited { retry_after: failure.retry_after() }
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The limit of a state that has one.
    fn limit(state: &State) -> &Limit {
        state.limit.as_ref().expect("a limit")
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_a_refused_burst_counts_once() {
        let (mut state, mut now) = (State::default(), Instant::now());
        for pause in [1, 2, 4, 8, 8, 8] {
            let began = state.epoch;
            for _ in 0..20 {
                state.refused(began, None, now, 0.0);
            }
            assert_eq!(limit(&state).next - now, seconds(pause));
            now = limit(&state).next;
        }
    }

    #[test]
    fn a_provider_s_wait_is_taken_at_its_word_until_it_proves_too_short() {
        let now = Instant::now();
        for (asked, pauses) in [(seconds(30), [30, 30]), (seconds(1), [1, 2])] {
            let mut state = State::default();
            for pause in pauses {
                state.refused(state.epoch, Some(asked), now, 0.0);
                assert_eq!(limit(&state).next - now, seconds(pause));
            }
        }
        let mut state = State::default();
        state.refused(0, Some(seconds(1)), now, 0.0);
        state.refused(0, Some(seconds(5)), now, 0.0);
        assert_eq!(limit(&state).next - now, seconds(5), "of the same burst");
    }

    #[test]
    fn a_provider_that_asks_for_no_wait_is_not_hammered() {
        let (mut state, mut now) = (State::default(), Instant::now());
        let began = now;
        let mut calls = 0;
        while now < began + seconds(60) {
            state.refused(state.epoch, Some(Duration::ZERO), now, 0.0);
            now = limit(&state).next;
            calls += 1;
        }
        assert!(calls < 20, "{calls}");
    }

    #[test]
    fn successes_shorten_the_spaces_and_then_lift_the_limit() {
        let (mut state, now) = (State::default(), Instant::now());
        state.refused(0, None, now, 0.0);
        state.succeeded(0);
        assert_eq!(limit(&state).refusals, 1, "a call from before the refusal");
        let mut spaces = Vec::new();
        while let Some(limit) = &state.limit {
            spaces.push(limit.space.as_millis());
            state.succeeded(1);
        }
        assert_eq!(spaces.len(), 24);
        assert_eq!(spaces[..9], [1000, 1000, 1000, 1000, 500, 500, 500, 500, 250]);
    }

    #[test]
    fn spaces_that_were_too_short_are_not_tried_again_soon() {
        let (mut state, now) = (State::default(), Instant::now());
        state.refused(0, None, now, 0.0);
        let mut refusals = 0;
        for _ in 0..60 {
            if limit(&state).space < FIRST_PAUSE {
                refusals += 1;
                state.refused(state.epoch, None, now, 0.0);
                assert_eq!(limit(&state).space, FIRST_PAUSE);
            }
            state.succeeded(state.epoch);
        }
        assert_eq!(refusals, 3);
    }

    #[test]
    fn a_longer_wait_that_another_call_was_told_is_not_cut_short() {
        let (mut state, now) = (State::default(), Instant::now());
        state.refused(0, None, now, 0.0);
        let probed = state.epoch;
        state.refused(0, Some(seconds(60)), now, 0.0);
        state.refused(probed, None, now + seconds(1), 0.0);
        assert_eq!(limit(&state).next - now, seconds(60));
    }

    #[tokio::test(start_paused = true)]
    async fn an_absurd_wait_is_cut_to_the_longest_pause() {
        for asked in [seconds(86_400), seconds(u64::MAX / 2), Duration::MAX] {
            let pacing = Pacing::new(["a/1"].into_iter());
            let mut turns = [pacing.turn("a/1"), pacing.turn("a/1")];
            assert!(turns.iter_mut().all(ModelSlot::begin));
            for turn in &mut turns {
                turn.record(Some(&Failure::RateLimited { retry_after: Some(asked) }));
            }
            assert_eq!(turns[0].time_left(), Some(MAX_BREAKER_PAUSE));
        }
    }

    #[test]
    fn a_limit_is_forgotten_after_a_minute() {
        let (mut state, now) = (State::default(), Instant::now());
        state.refused(0, Some(seconds(20)), now, 0.0);
        assert!(state.limit(now + seconds(79)).is_some());
        assert!(state.limit(now + seconds(80)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_replacement_keeps_the_pace_of_the_models_that_stay_as_they_are() {
        let before = Pacing::new(["a/1", "b/1", "d/1"].into_iter());
        for model in ["a/1", "d/1"] {
            let mut turn = before.turn(model);
            assert!(turn.begin());
            turn.record(Some(&Failure::RateLimited { retry_after: None }));
        }
        let still_holds = |model: &str| model != "d/1";
        let after = Pacing::new(["a/1", "c/1", "d/1"].into_iter()).replacing(&before, still_holds);
        assert!(!after.turn("a/1").begin());
        for model in ["c/1", "d/1", "unknown/1"] {
            assert!(after.turn(model).begin(), "{model}");
        }
        assert_eq!(after.0.len(), 3);
    }

    proptest! {
        #[test]
        fn no_call_before_its_time_and_never_more_than_one_until_one_succeeds(
            steps in prop::collection::vec((0_u8..5, 0_usize..6, 0_u64..3_000), 0..80),
        ) {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let pacing = Pacing::new(["a/1"].into_iter());
                let pace = pacing.0["a/1"].clone();
                let mut open: Vec<ModelSlot<'_>> = Vec::new();
                for (what, which, millis) in steps {
                    let is_refusing =
                        pace.state.locked().limit(Instant::now()).is_some_and(|limit| limit.refusals > 0);
                    let holds = |turn: &ModelSlot<'_>| turn.place.is_some();
                    match what {
                        0 | 1 => {
                            let due = pace.state.locked().limit(Instant::now()).map(|limit| limit.next);
                            let is_probed = open.iter().any(holds);
                            let mut turn = pacing.turn("a/1");
                            if turn.begin() {
                                prop_assert!(due.is_none_or(|due| due <= Instant::now()));
                                prop_assert!(due.is_none() || !is_probed);
                                prop_assert_eq!(turn.place.is_some(), is_refusing);
                                open.push(turn);
                            }
                        }
                        2 if which < open.len() => {
                            let mut turn = open.swap_remove(which);
                            let retry_after = (millis > 1_000).then(|| Duration::from_millis(millis));
                            turn.record(Some(&Failure::RateLimited { retry_after }));
                        }
                        3 if which < open.len() => open.swap_remove(which).record(None),
                        4 if which < open.len() => drop(open.swap_remove(which)),
                        _ => tokio::time::advance(Duration::from_millis(millis)).await,
                    }
                    prop_assert!(open.iter().filter(|turn| holds(turn)).count() <= 1);
                }
                // Whatever has happened, the next call gets its turn.
                drop(open);
                let mut turn = pacing.turn("a/1");
                let far = Instant::now() + seconds(1_000);
                prop_assert!(turn.wait(far).await.is_ok());
                prop_assert!(turn.begin());
                Ok(())
            })?;
        }
    }
}
