//! What a verified statement tells about the panel, as numbers: the rest of a result is not kept.
//!
//! Which option of a question is the right one is known for a statement that is TRUE: the claimed one. For one that is
//! FALSE it is known only if the dataset gives the `answer`, and exactly one option other than the claimed one says the
//! same ([`values::same`]). Guessing it would count any other answer as right, and "None of these" as always right.

use serde::Serialize;
use serde_json::Value;

use super::open::Openly;
use super::statistics::Rate;
use crate::api::verify::{Assessment, ClaimResult, VerifyResponse};
use crate::cli::commands::eval::dataset::Item;
use crate::cli::commands::eval::label::Label;
use crate::cli::commands::eval::open::{OpenAnswer, Opened};
use crate::verify::{SpecialOptions, decide, values};

/// What a model made of a statement or question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// It voted, and is right.
    Right,
    /// It voted, and is wrong.
    Wrong,
    /// It answered "cannot be determined".
    CannotTell,
    /// It gave no answer.
    NoAnswer,
}

impl Mark {
    /// Whether it was a vote.
    pub(crate) const fn is_vote(self) -> bool {
        matches!(self, Self::Right | Self::Wrong)
    }
}

/// How often a model was right, and what it did otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Marks {
    pub(crate) right: usize,
    pub(crate) wrong: usize,
    pub(crate) cannot_tell: usize,
    pub(crate) no_answer: usize,
}

impl Marks {
    /// Counts one more.
    pub(crate) const fn add(&mut self, mark: Mark) {
        *match mark {
            Mark::Right => &mut self.right,
            Mark::Wrong => &mut self.wrong,
            Mark::CannotTell => &mut self.cannot_tell,
            Mark::NoAnswer => &mut self.no_answer,
        } += 1;
    }

    /// The share it got right of all that it was asked.
    pub(crate) const fn rate(self) -> Rate {
        Rate { hits: self.right, total: self.right + self.wrong + self.cannot_tell + self.no_answer }
    }
}

/// One question and its answers. Options are given by their positions, models by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) options: SpecialOptions,
    /// The right option, where it is known.
    pub(crate) right: Option<usize>,
    /// What each model that was asked chose; `None` for no answer.
    pub(crate) answers: Vec<(usize, Option<usize>)>,
    /// What models said without options.
    pub(crate) open: Vec<Openly>,
}

impl Question {
    /// What a model made of it, against the right option.
    pub(crate) fn mark(&self, right: usize, answer: Option<usize>) -> Mark {
        match answer {
            None => Mark::NoAnswer,
            Some(chosen) if chosen == self.options.undetermined => Mark::CannotTell,
            Some(chosen) if chosen == right => Mark::Right,
            Some(_) => Mark::Wrong,
        }
    }

    /// The model, if it was asked, and its answer.
    pub(super) fn asked(&self, model: usize) -> Option<(usize, Option<usize>)> {
        self.answers.iter().copied().find(|(asked, _)| *asked == model)
    }
}

/// A verified statement.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    pub(crate) expected: Label,
    /// What the panel said.
    pub(crate) said: Label,
    /// Whether all of it was checked.
    pub(crate) is_complete: bool,
    pub(crate) questions: Vec<Question>,
    /// How many models had to agree.
    pub(crate) min_required: usize,
    /// Whether the dataset's answer is none of the options.
    pub(crate) is_unmatched: bool,
    /// The domain and the tags, as (kind, name).
    pub(crate) groups: Vec<(&'static str, String)>,
}

impl Observation {
    /// What a result tells, and what models said without options; `number` gives each model its number.
    pub(crate) fn of(
        item: &Item,
        result: &VerifyResponse,
        opened: Option<&Opened>,
        mut number: impl FnMut(&str) -> usize,
    ) -> Self {
        let open = opened.map_or(&[][..], |opened| &opened.answers);
        let mut questions: Vec<Question> =
            result.results.iter().filter_map(|claim| question(claim, open, &mut number)).collect();
        let mut is_unmatched = false;
        match (item.expected, &item.answer) {
            (Label::True, _) => questions.iter_mut().for_each(|one| one.right = Some(one.options.claimed)),
            (Label::False, Some(answer)) => {
                let known: Vec<Option<usize>> =
                    result.results.iter().map(|claim| matching(claim, answer)).collect();
                is_unmatched = !known.is_empty() && known.iter().all(Option::is_none);
                // A claim without readable options has no question, so that positions would differ.
                if known.len() == questions.len() {
                    questions.iter_mut().zip(known).for_each(|(one, right)| one.right = right);
                }
            }
            _ => {}
        }
        let domain = ("domain", result.domain.as_str().to_owned());
        let tags = item.tags.iter().map(|tag| ("tag", tag.clone()));
        Self {
            expected: item.expected,
            said: said(result),
            is_complete: result.complete,
            questions,
            min_required: usize::try_from(result.min_required).unwrap_or(usize::MAX),
            is_unmatched,
            groups: [domain].into_iter().chain(tags).collect(),
        }
    }

    /// Whether models can be right or wrong about it.
    pub(crate) const fn is_decidable(&self) -> bool {
        self.expected.is_verdict()
    }

    /// What a model by itself made of the statement, if it was asked: false if one of its votes says so, and true only
    /// if all do.
    pub(crate) fn mark(&self, model: usize) -> Option<Mark> {
        let mut votes = self.questions.iter().filter_map(|one| Some((one, one.asked(model)?.1))).peekable();
        votes.peek()?;
        let mut all_claimed = true;
        let (mut is_missing, mut is_undecided) = (false, false);
        for (question, answer) in votes {
            match answer {
                None => is_missing = true,
                Some(chosen) if chosen == question.options.undetermined => is_undecided = true,
                Some(chosen) => all_claimed &= chosen == question.options.claimed,
            }
        }
        Some(match (all_claimed, is_missing, is_undecided) {
            (false, ..) => self.mark_of(Label::False),
            (_, true, _) => Mark::NoAnswer,
            (.., true) => Mark::CannotTell,
            _ => self.mark_of(Label::True),
        })
    }

    fn mark_of(&self, vote: Label) -> Mark {
        if vote == self.expected { Mark::Right } else { Mark::Wrong }
    }

    /// What would have been said if `min_required` models had to agree and `left_out` had not been asked.
    pub(crate) fn said_by(&self, min_required: usize, left_out: Option<usize>) -> Label {
        let decided = |question: &Question| {
            let counted = question.answers.iter().filter(|(model, _)| Some(*model) != left_out);
            let answers: Vec<usize> = counted.filter_map(|(_, answer)| *answer).collect();
            decide(&answers, question.options, min_required).assessment
        };
        label(self.questions.iter().map(decided), self.is_complete)
    }
}

/// What a verification says about its statement as a whole.
pub(crate) fn said(result: &VerifyResponse) -> Label {
    label(result.results.iter().map(|claim| claim.assessment), result.complete)
}

/// What the assessments of its claims say about a statement. One of which a part was not checked never passes as true.
fn label(assessments: impl Iterator<Item = Assessment>, is_complete: bool) -> Label {
    let worst = assessments.map(|assessment| match assessment {
        Assessment::False => (2, Label::False),
        Assessment::NoConsensus => (1, Label::NoConsensus),
        Assessment::True => (0, Label::True),
    });
    match worst.max_by_key(|(badness, _)| *badness).map(|(_, label)| label) {
        None | Some(Label::True) if !is_complete => Label::Unchecked,
        None => Label::Nothing,
        Some(label) => label,
    }
}

fn question(
    claim: &ClaimResult,
    open: &[OpenAnswer],
    number: &mut impl FnMut(&str) -> usize,
) -> Option<Question> {
    let position = |key: &str| claim.original_options.keys().position(|option| option == key);
    let options = SpecialOptions {
        claimed: position(&claim.claimed_answer)?,
        undetermined: claim.original_options.len().checked_sub(1)?,
    };
    let answered = claim.model_answers.iter().map(|given| (given.model.as_str(), position(&given.answer)));
    let failed = claim.model_errors.iter().map(|failed| (failed.model.as_str(), None));
    let answers = answered.chain(failed).map(|(model, answer)| (number(model), answer)).collect();
    let open = open.iter().filter(|one| one.claim == claim.id).map(|one| Openly {
        model: number(&one.model),
        option: one.option.as_deref().and_then(position),
        mapped_by: one.mapped_by,
    });
    Some(Question { options, right: None, answers, open: open.collect() })
}

/// The only option but the claimed and the two fixed ones that says the same as the dataset's answer.
fn matching(claim: &ClaimResult, answer: &str) -> Option<usize> {
    let drafted = claim.original_options.len().saturating_sub(2);
    let is_right = |(key, option): &(&String, &Value)| {
        **key != claim.claimed_answer && option.as_str().is_some_and(|option| values::same(option, answer))
    };
    let mut positions =
        claim.original_options.iter().enumerate().take(drafted).filter(|(_, pair)| is_right(pair));
    let (position, _) = positions.next()?;
    positions.next().is_none().then_some(position)
}
