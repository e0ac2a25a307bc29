//! Keeps what models write while a verification runs, as long as somebody asked for a receipt.

use std::collections::HashMap;
use std::sync::Mutex;

use super::payload::{ClaimRecord, Output, Raw, Task, VoteRecord};
use crate::api::verify::{ClaimResult, Span};
use crate::inference::{Answer, Finish};
use crate::lock::Lock;
use crate::verify::claim::{Claim, letter};

/// How much of what models write is kept of one verification, in bytes of JSON: many times what the longest text needs.
const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;
/// How much of a single answer is kept: longer ones are reasoning without end.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// How much of what is shortened is kept.
const SHORTENED_BYTES: usize = 1024;

/// What models have written so far.
#[derive(Debug)]
pub(in crate::verify) struct Recorder {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    outputs: Vec<Output>,
    /// By the ids of claims.
    claims: HashMap<String, Votes>,
    room: usize,
}

/// The votes on one claim.
#[derive(Debug, Default)]
struct Votes {
    /// One for each model that has written anything.
    votes: Vec<VoteRecord>,
    outstanding: usize,
}

impl Recorder {
    /// Nothing is written yet.
    pub(in crate::verify) fn new() -> Self {
        let kept = Kept { outputs: Vec::new(), claims: HashMap::new(), room: MAX_KEPT_BYTES };
        Self { kept: Mutex::new(kept) }
    }

    /// Keeps what a model wrote about a section of the text.
    pub(in crate::verify) fn output(&self, task: Task, section: Span, model: &str, answer: &Answer) {
        let mut kept = self.kept.locked();
        let raw = kept.raw(answer);
        let model = model.to_owned();
        kept.outputs.push(Output { task, section, model, answered_by: answered_by(answer), answer: raw });
    }

    /// Keeps what a model wrote to a claim's question, whose options it was shown in this order.
    pub(in crate::verify) fn vote(&self, claim: &Claim, model: &str, order: &[usize], answer: &Answer) {
        let mut kept = self.kept.locked();
        let raw = kept.raw(answer);
        let votes = &mut kept.claims.entry(claim.id.clone()).or_default().votes;
        let known = votes.iter_mut().position(|vote| vote.model == model);
        let at = known.unwrap_or_else(|| {
            votes.push(VoteRecord {
                model: model.to_owned(),
                answered_by: None,
                shown: order.iter().map(|&option| letter(option)).collect(),
                answers: Vec::new(),
                error: None,
            });
            votes.len() - 1
        });
        votes[at].answered_by = answered_by(answer);
        votes[at].answers.push(raw);
    }

    /// Notes how many models had not answered a claim's question at the deadline.
    pub(in crate::verify) fn cut_off(&self, claim: &Claim, outstanding: usize) {
        self.kept.locked().claims.entry(claim.id.clone()).or_default().outstanding = outstanding;
    }

    /// What extractor and auditor wrote.
    pub(in crate::verify) fn take_outputs(&self) -> Vec<Output> {
        std::mem::take(&mut self.kept.locked().outputs)
    }

    /// The record of a claim with this result. The order of `models` is that of the panel.
    pub(in crate::verify) fn take_claim<'m>(
        &self,
        result: &ClaimResult,
        models: impl Iterator<Item = &'m str>,
    ) -> ClaimRecord {
        let mut kept = self.kept.locked().claims.remove(&result.id).unwrap_or_default();
        let votes = models.filter_map(|model| {
            let has_answered = result.model_answers.iter().any(|answer| answer.model == model);
            let failed = result.model_errors.iter().find(|error| error.model == model);
            let error = failed.map(|error| error.code.clone());
            if !has_answered && error.is_none() {
                return None;
            }
            let at = kept.votes.iter().position(|vote| vote.model == model);
            let mut vote = at.map_or_else(
                || VoteRecord {
                    model: model.to_owned(),
                    answered_by: None,
                    shown: String::new(),
                    answers: Vec::new(),
                    error: None,
                },
                |at| kept.votes.swap_remove(at),
            );
            vote.error = error;
            Some(vote)
        });
        let votes = votes.collect();
        ClaimRecord { result: result.clone(), outstanding: kept.outstanding, votes }
    }
}

impl Kept {
    fn raw(&mut self, answer: &Answer) -> Raw {
        let text = &answer.text;
        // As JSON, in which a hostile answer takes six times its length.
        let needed = text.len() + text.bytes().map(escape_bytes).sum::<usize>();
        let fits = text.len() <= MAX_ANSWER_BYTES && needed <= self.room;
        let beginning = SHORTENED_BYTES.min(self.room / MAX_ESCAPED);
        let kept = if fits { text } else { &text[..text.floor_char_boundary(beginning)] };
        self.room = self.room.saturating_sub(if fits { needed } else { kept.len() * MAX_ESCAPED });
        Raw { text: kept.to_owned(), cut_off: answer.finish == Finish::Length, shortened: !fits }
    }
}

/// The most bytes that a byte takes in JSON.
const MAX_ESCAPED: usize = 6;

/// How many bytes more than itself a byte takes in JSON, at most.
const fn escape_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' => 1,
        0..0x20 => 5,
        _ => 0,
    }
}

fn answered_by(answer: &Answer) -> Option<String> {
    answer.model.as_deref().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: String) -> Answer {
        Answer { text, finish: Finish::Stop, usage: None, model: Some("m-1".into()) }
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_shortened_says_so() {
        let recorder = Recorder::new();
        let add = |text: String| recorder.output(Task::Audit, Span::default(), "a/m", &answer(text));
        add("x".repeat(MAX_ANSWER_BYTES));
        add("é".repeat(MAX_ANSWER_BYTES));
        (0..1_000).for_each(|_| add("\u{1}".repeat(MAX_ANSWER_BYTES)));
        let outputs = recorder.take_outputs();
        assert!(!outputs[0].answer.shortened && outputs[0].answered_by.as_deref() == Some("m-1"));
        assert!(outputs[1].answer.shortened && outputs[1].answer.text.len() == SHORTENED_BYTES);
        let bytes = serde_json::to_string(&outputs).unwrap().len();
        assert!(bytes < MAX_KEPT_BYTES + 200 * outputs.len(), "{bytes}");
        let last = &outputs.last().unwrap().answer;
        assert!(last.shortened && last.text.is_empty());
    }
}
