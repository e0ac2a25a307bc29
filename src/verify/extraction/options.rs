//! Builds the options of a question from the drafted answers.
//!
//! What must hold for those that are shown: they are distinct by value, no two can be right together, none reads like one
//! of the two fixed ones, and neither question nor place tells which is claimed. A rival that breaks a rule is dropped by
//! itself; what is left must still make a question.

use sha2::{Digest, Sha256};

use super::fault::{Fault, Weight};
use crate::verify::options::{
    Evasion, asks_whether_true, asks_yes_or_no, choose, evasion, is_yes_or_no, names_claimed, sides,
};
use crate::verify::text;
use crate::verify::values::Choice;

/// The longest option, in characters.
pub(super) const MAX_CHARS: usize = 500;
/// The most rivals: with the claimed answer and the two fixed options that makes eight, `A` to `H`.
const MAX_RIVALS: usize = 5;
/// How many rivals a number or a date needs on each side of the claimed one.
const SIDE: usize = 3;
/// The most drafted rivals that are read.
const MAX_DRAFTED: usize = 12;

/// A question with its drafted answers, all cleaned but the rivals.
pub(super) struct AnswerDraft<'a> {
    pub(super) claim: &'a str,
    pub(super) question: &'a str,
    pub(super) claimed: &'a str,
    pub(super) rivals: &'a [String],
    /// What the extractor believes right.
    pub(super) best: Option<&'a str>,
    /// What random choices are derived from, so that they can be repeated.
    pub(super) seed: &'a str,
}

impl AnswerDraft<'_> {
    /// The rivals that are shown; `None` if there can be no question. Adds what is wrong.
    pub(super) fn shown_rivals(&self, faults: &mut Vec<Fault>) -> Option<Vec<String>> {
        let before = faults.len();
        let mut form = |advice: &str| faults.push(Fault::new(Weight::Form, advice));
        let claimed = Choice::new(self.claimed);
        if evasion(&claimed) == Some(Evasion::NoAnswer) {
            form("claimed_answer is no answer; give the one that the claim gives");
            return None;
        }
        let drafted: Vec<String> =
            self.rivals.iter().take(MAX_DRAFTED).map(|rival| text::one_line(rival)).collect();
        let rivals = distinct(&claimed, &drafted);
        if rivals.is_empty() {
            form(
                "no rival is another answer than the claimed one; give rivals that differ from it in what they mean",
            );
            return None;
        }
        let texts: Vec<&str> = rivals.iter().map(Choice::text).collect();
        if asks_whether_true(self.question) || asks_yes_or_no(&claimed, &rivals) {
            form("it asks whether something is true; write both answers as opposed statements");
        } else if is_yes_or_no(&claimed) && !contains(self.claim, self.claimed) {
            // Beside other rivals it may be an answer: right or left.
            form("claimed_answer does not stand in the claim; give the answer in the claim's own words");
        }
        if contains(self.question, self.claim) {
            form("the question repeats the claim; ask for its one detail");
        } else if names_claimed(self.question, self.claimed, &texts) {
            form("the question gives the claimed answer away; ask without it");
        }
        if faults.len() > before {
            return None;
        }
        let placed = self.placed(&claimed, &rivals, faults);
        Some(placed.into_iter().map(|at| texts[at].to_owned()).collect())
    }

    /// As many rivals as are shown, by their positions: for numbers and dates so that the claimed value's place tells
    /// nothing.
    fn placed(&self, claimed: &Choice<'_>, rivals: &[Choice<'_>], faults: &mut Vec<Fault>) -> Vec<usize> {
        if let Some((smaller, larger)) = sides(claimed, rivals).filter(|_| rivals.len() > 1) {
            if smaller >= SIDE && larger >= SIDE {
                let best = self.best.map(Choice::new);
                let best = best.and_then(|best| rivals.iter().position(|rival| rival.is_same(&best)));
                let mut draws = draws(self.seed);
                return choose(claimed, rivals, best, &mut |below| draws.next(below));
            }
            let advice = format!(
                "of its rivals {smaller} are smaller and {larger} larger than the claimed one; give three on each side"
            );
            faults.push(Fault::new(Weight::Wish, advice));
        }
        (0..rivals.len().min(MAX_RIVALS)).collect()
    }
}

/// The drafted rivals that differ from the claimed answer and from each other.
fn distinct<'d>(claimed: &Choice<'_>, drafted: &'d [String]) -> Vec<Choice<'d>> {
    let (mut answers, mut evasive): (Vec<Choice<'_>>, Vec<Choice<'_>>) = (Vec::new(), Vec::new());
    for text in drafted {
        if text.is_empty() || text::is_longer(text, MAX_CHARS) {
            continue;
        }
        let rival = Choice::new(text);
        let evasion = evasion(&rival);
        if evasion == Some(Evasion::NoAnswer) {
            continue;
        }
        let clashes = |other: &Choice<'_>| rival.is_same(other) || rival.overlaps(other);
        if !clashes(claimed) && !answers.iter().chain(&evasive).any(clashes) {
            if evasion.is_some() { &mut evasive } else { &mut answers }.push(rival);
        }
    }
    if answers.is_empty() { evasive } else { answers }
}

/// Numbers from a seed: 32 bits of a SHA-256 each.
struct Draws {
    seed: Vec<u8>,
    drawn: u32,
}

fn draws(seed: &str) -> Draws {
    Draws { seed: seed.as_bytes().to_vec(), drawn: 0 }
}

impl Draws {
    /// A number below `below`; the bias of the remainder is negligible for the few that are asked for.
    fn next(&mut self, below: usize) -> usize {
        let hash = Sha256::new_with_prefix(&self.seed).chain_update(self.drawn.to_be_bytes()).finalize();
        self.drawn += 1;
        let number = hash[..4].iter().fold(0_usize, |number, byte| (number << 8) | usize::from(*byte));
        number % below.max(1)
    }
}

/// Whether a text contains another word for word.
fn contains(text: &str, part: &str) -> bool {
    let part = words(part);
    part.len() > 1 && words(text).contains(&part)
}

/// The words of a text in lower case, without punctuation, each between spaces.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |joined, word| joined + word + " ")
}
