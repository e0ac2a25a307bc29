//! Models that do anything after any time, and a record of what they did that nobody else keeps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::super::support::{Call, extraction};
use crate::inference::{Answer, Chat, Failure, Finish};
use crate::money::{NanoUsd, Tokens};
use crate::usage::{Meter, Purpose};
use crate::verify::calls::Ask;

/// What a model does with one call, and what it says that took.
#[derive(Clone, Debug)]
pub(super) struct Habit {
    pub(super) act: Act,
    pub(super) after: Duration,
    pub(super) usage: Tokens,
}

/// What comes of a call. Whatever it is, the call ends at its deadline, as those of the gateway do.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// The option of this kind (the claimed answer, three rivals, none, undetermined), in one of some dresses; of an
    /// extraction, the claims.
    Answers {
        kind: usize,
        dress: usize,
    },
    /// A text that cannot be read.
    Babbles(String),
    /// An answer that its provider withholds.
    Withholds,
    Fails(Failure),
    Hangs,
}

/// One call as it ended, be it that it was given up.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) purpose: Purpose,
    pub(super) outcome: &'static str,
    pub(super) usage: Tokens,
}

/// A readable answer: whose, to which question, which option, and when it was given.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) model: String,
    pub(super) question: String,
    pub(super) option: String,
    pub(super) at: Instant,
}

/// All models.
pub(super) struct World {
    pub(super) habits: Vec<Habit>,
    pub(super) extractor_habits: Vec<Habit>,
    /// How many claims a statement has.
    pub(super) claims: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: HashMap<(String, String), usize>,
    open: usize,
    reports: Vec<Report>,
    choices: Vec<Choice>,
}

impl World {
    pub(super) fn new(habits: Vec<Habit>, extractor_habits: Vec<Habit>, claims: usize) -> Arc<Self> {
        Arc::new(Self { habits, extractor_habits, claims, state: Mutex::default() })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls under way.
    pub(super) fn open(&self) -> usize {
        self.state().open
    }

    /// All calls that have ended.
    pub(super) fn reports(&self) -> Vec<Report> {
        self.state().reports.clone()
    }

    /// All readable answers.
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.state().choices.clone()
    }

    /// What the next call of a model about a question does: the same in whatever order the calls come.
    fn habit(&self, model: &str, question: &str, purpose: Purpose) -> &Habit {
        let habits = if purpose == Purpose::Extraction { &self.extractor_habits } else { &self.habits };
        let mut state = self.state();
        let nth = state.calls.entry((model.to_owned(), question.to_owned())).or_default();
        let seed = format!("{model}/{question}/{nth}");
        *nth += 1;
        let hash = seed.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        &habits[hash % habits.len()]
    }
}

/// A call under way. However it ends, it is reported once.
struct UnderWay<'w> {
    world: &'w World,
    report: Report,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.world.state();
        state.open -= 1;
        state.reports.push(self.report.clone());
    }
}

impl Ask for World {
    fn ask<'a>(
        &'a self,
        model: &'a str,
        chat: &'a Chat,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let call = Call { model, purpose, chat, time: deadline.duration_since(Instant::now()) };
            let question = if call.is_extraction() { String::new() } else { call.question() };
            let habit = self.habit(model, &question, purpose);
            let mut attempt = meter.attempt(model, purpose, None, Instant::now().into_std(), || None)?;
            let prompt = Tokens::of_prompt(habit.usage.prompt);
            attempt.set_expected(prompt);
            let report = Report { model: model.to_owned(), purpose, outcome: "cancelled", usage: prompt };
            self.state().open += 1;
            let mut under_way = UnderWay { world: self, report };
            let end = |outcome, usage: Tokens| {
                under_way.report = Report { outcome, usage, ..under_way.report.clone() };
                attempt.finish(outcome, usage);
            };

            let after = if matches!(habit.act, Act::Hangs) { Duration::from_hours(1) } else { habit.after };
            if timeout_at(deadline, sleep(after)).await.is_err() {
                end("timeout", prompt);
                return Err(Failure::Timeout);
            }
            let (text, finish) = match &habit.act {
                Act::Answers { .. } if call.is_extraction() => (extraction(self.claims), Finish::Stop),
                Act::Answers { kind, dress } => {
                    let (letter, option) = option(&call, *kind);
                    let at = Instant::now();
                    let choice = Choice { model: model.to_owned(), question, option, at };
                    self.state().choices.push(choice);
                    (dressed(&letter, *dress), Finish::Stop)
                }
                Act::Babbles(text) => (text.clone(), Finish::Stop),
                Act::Withholds => ("{}".to_owned(), Finish::ContentFilter),
                Act::Fails(failure) => {
                    end(failure.code(), prompt);
                    return Err(failure.clone());
                }
                Act::Hangs => return Err(Failure::Timeout),
            };
            end("ok", habit.usage);
            Ok(Answer { text, finish, usage: None })
        })
    }

    fn most(&self, _: &str, _: &Chat) -> Option<NanoUsd> {
        None
    }

    fn is_sandbox(&self, model: &str) -> bool {
        model.starts_with("sandbox/")
    }

    fn concurrency(&self, _model: &str) -> Option<usize> {
        None
    }
}

/// The letter and the text of the option of a kind, as this call is shown it.
fn option(call: &Call<'_>, kind: usize) -> (String, String) {
    let question = call.question();
    let claim = question.trim_start_matches("Question ").trim_end_matches('?');
    let text = match kind {
        0 => format!("yes {claim}"),
        1 => format!("no {claim}"),
        2 => format!("maybe {claim}"),
        3 => format!("never {claim}"),
        4 => "None of these".to_owned(),
        _ => "Cannot be determined".to_owned(),
    };
    call.options().into_iter().find(|(_, option)| *option == text).expect("the option is shown")
}

/// The ways in which models write an answer that can be read.
fn dressed(letter: &str, dress: usize) -> String {
    let answer = json!({"answer": letter, "reason": "so it seems"});
    match dress {
        0 => answer.to_string(),
        1 => format!("```json\n{answer}\n```"),
        2 => format!("\n```\n{answer}```"),
        _ => format!("\u{feff}{{\"extra\": 1, \"answer\": \" {letter} \"}}\n"),
    }
}
