//! Simulated models that do anything after any delay, and an independent record of what they did.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::super::support::{Call, extraction};
use crate::inference::{Answer, Chat, Failure, Finish, Prompt};
use crate::lock::Lock;
use crate::money::{NanoUsd, Tokens};
use crate::usage::{Meter, Purpose};
use crate::verify::model_calls::calls::ModelClient;

/// What a model does with one call, after which delay, and the token usage that it reports.
#[derive(Clone, Debug)]
pub(super) struct Behaviour {
    pub(super) action: Action,
    pub(super) delay: Duration,
    pub(super) usage: Tokens,
}

/// The outcome of a call. Whatever it is, the call ends at its deadline, like those of the gateway.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// An answer with the option of this kind (the claimed answer, three rivals, none, undetermined), written in one of
    /// several formats; for an extraction, the claims.
    Answer {
        kind: usize,
        format: usize,
    },
    /// A text that cannot be parsed.
    Garbage(String),
    /// An answer that the provider withholds.
    ContentFilter,
    Fail(Failure),
    Hang,
}

/// A call that has ended, possibly by being cancelled.
#[derive(Clone, Debug)]
pub(super) struct CallReport {
    pub(super) model: String,
    pub(super) purpose: Purpose,
    pub(super) outcome: &'static str,
    pub(super) usage: Tokens,
}

/// A valid answer: by which model, to which question, which option, and when.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) model: String,
    pub(super) question: String,
    pub(super) option: String,
    pub(super) at: Instant,
}

/// All simulated models.
pub(super) struct SimulatedModels {
    pub(super) behaviours: Vec<Behaviour>,
    pub(super) extractor_behaviours: Vec<Behaviour>,
    /// How many claims a statement has.
    pub(super) claims: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: HashMap<(String, String), usize>,
    open: usize,
    reports: Vec<CallReport>,
    choices: Vec<Choice>,
}

impl SimulatedModels {
    pub(super) fn new(
        behaviours: Vec<Behaviour>,
        extractor_behaviours: Vec<Behaviour>,
        claims: usize,
    ) -> Arc<Self> {
        Arc::new(Self { behaviours, extractor_behaviours, claims, state: Mutex::default() })
    }

    /// The number of open calls.
    pub(super) fn open(&self) -> usize {
        self.state.locked().open
    }

    /// All calls that have ended.
    pub(super) fn reports(&self) -> Vec<CallReport> {
        self.state.locked().reports.clone()
    }

    /// All valid answers.
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.state.locked().choices.clone()
    }

    /// What the next call of a model about a question does, independent of the order of calls.
    fn behaviour(&self, model: &str, question: &str, purpose: Purpose) -> &Behaviour {
        let behaviours =
            if purpose == Purpose::Extraction { &self.extractor_behaviours } else { &self.behaviours };
        let mut state = self.state.locked();
        let nth = state.calls.entry((model.to_owned(), question.to_owned())).or_default();
        let seed = format!("{model}/{question}/{nth}");
        *nth += 1;
        let hash = seed.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        &behaviours[hash % behaviours.len()]
    }
}

/// An open call. However it ends, it is reported once.
struct OpenCall<'m> {
    models: &'m SimulatedModels,
    report: CallReport,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let mut state = self.models.state.locked();
        state.open -= 1;
        state.reports.push(self.report.clone());
    }
}

impl ModelClient for SimulatedModels {
    fn ask<'a>(
        &'a self,
        model: &'a str,
        prompt: &'a Prompt<'a>,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let chat = prompt.take();
            let call = Call { model, purpose, chat: &chat, time: deadline.duration_since(Instant::now()) };
            let question = if call.is_extraction() { String::new() } else { call.question() };
            let behaviour = self.behaviour(model, &question, purpose);
            let mut attempt = meter.attempt(model, purpose, None, Instant::now().into_std(), || None)?;
            let prompt = Tokens::of_prompt(behaviour.usage.prompt);
            attempt.set_expected(prompt);
            let report = CallReport { model: model.to_owned(), purpose, outcome: "cancelled", usage: prompt };
            self.state.locked().open += 1;
            let mut open_call = OpenCall { models: self, report };
            let end = |outcome, usage: Tokens| {
                open_call.report = CallReport { outcome, usage, ..open_call.report.clone() };
                attempt.finish(outcome, usage);
            };

            let delay = if matches!(behaviour.action, Action::Hang) {
                Duration::from_hours(1)
            } else {
                behaviour.delay
            };
            if timeout_at(deadline, sleep(delay)).await.is_err() {
                end("timeout", prompt);
                return Err(Failure::Timeout);
            }
            let (text, finish) = match &behaviour.action {
                Action::Answer { .. } if call.is_extraction() => (extraction(self.claims), Finish::Stop),
                Action::Answer { kind, format } => {
                    let (letter, option) = option(&call, *kind);
                    let at = Instant::now();
                    let choice = Choice { model: model.to_owned(), question, option, at };
                    self.state.locked().choices.push(choice);
                    (formatted(&letter, *format), Finish::Stop)
                }
                Action::Garbage(text) => (text.clone(), Finish::Stop),
                Action::ContentFilter => ("{}".to_owned(), Finish::ContentFilter),
                Action::Fail(failure) => {
                    end(failure.code(), prompt);
                    return Err(failure.clone());
                }
                Action::Hang => return Err(Failure::Timeout),
            };
            end("ok", behaviour.usage);
            Ok(Answer { text, finish, usage: None, model: None })
        })
    }

    fn max_cost(&self, _: &str, _: &Chat) -> Option<NanoUsd> {
        None
    }

    fn is_sandbox(&self, model: &str) -> bool {
        model.starts_with("sandbox/")
    }

    fn place(&self, _model: &str) -> Option<String> {
        None
    }

    fn max_concurrent_calls(&self, _model: &str) -> Option<usize> {
        None
    }
}

/// The letter and the text of the option of this kind, as shown in this call.
fn option(call: &Call<'_>, kind: usize) -> (String, String) {
    let question = call.question();
    let claim = question.trim_start_matches("What is claim ").trim_end_matches('?');
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

/// The formats in which models write a valid answer.
fn formatted(letter: &str, format: usize) -> String {
    let answer = json!({"answer": letter, "reason": "so it seems"});
    match format {
        0 => answer.to_string(),
        1 => format!("```json\n{answer}\n```"),
        2 => format!("\n```\n{answer}```"),
        3 => format!("My answer: {answer}<|im_end|>"),
        4 => format!("**{letter}**"),
        _ => format!("\u{feff}{{\"extra\": 1, \"answer\": \" {letter} \"}}\n"),
    }
}
