//! All prompts in one place: texts, fences and the schemas of answers.
//!
//! A prompt is a system message, the same for all requests of its kind, and one user message with everything that
//! varies: date, marker and the fenced blocks. Untrusted text (statement, context, and what a model made of them)
//! appears only inside fences, cleaned of invisible characters. Panel prompts contain question and options and nothing
//! else about the claim. [`hash`] is logged, so that a result can be traced to the wording of its prompts.

mod fences;
mod schemas;
mod texts;

pub(super) use fences::Fences;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use sha2::{Digest, Sha256};

use super::claims::{Claim, letter};
use super::{Job, text};
use crate::api::verify::Domain;
use crate::clock::Time;
use crate::inference::{Chat, Message, Role, Schema};
use fences::fenced;

/// Incremented with deliberate changes of wording; [`hash`] distinguishes all others.
pub const VERSION: u32 = 2;

/// Enough for an answer of a few tokens after the thinking of reasoning models. Nearly every model allows this much.
/// Extractions have no limit except the number of claims and the timeout: 30 claims take some 3,000 tokens plus the
/// thinking, while many models reject a limit above their own maximum, some of them anything above 4,096.
const ANSWER_TOKENS: u32 = 4_096;

/// The system messages, each built once: thousands of calls may wait for a model, and each holds its prompt.
static EXTRACTION: [OnceLock<String>; 4] = [const { OnceLock::new() }; 4];
static PANEL: [OnceLock<String>; 8] = [const { OnceLock::new() }; 8];

/// The first 12 hexadecimal digits of the SHA-256 of all prompts, as they are sent.
pub fn hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Sha256::new_with_prefix(VERSION.to_be_bytes());
        for chat in sample_prompts() {
            chat.messages.iter().for_each(|message| hash.update(&*message.content));
            hash.update(chat.schema.map(|schema| schema.schema.to_string()).unwrap_or_default());
        }
        hash.update(repair("?"));
        hex(&hash.finalize()[..6])
    });
    &HASH
}

/// One prompt of every kind, with placeholders as contents.
fn sample_prompts() -> Vec<Chat> {
    let fences = Fences::with_fixed_secret();
    let text = || String::from("?");
    let claim = Claim::new(0, text(), text(), text(), vec![text()]);
    let mut chats = Vec::new();
    for domain in [Domain::General, Domain::Legal] {
        for explain in [false, true] {
            for context in [None, Some(text())] {
                let job = Job {
                    id: text(),
                    fact: text(),
                    domain,
                    min_required: 2,
                    total_models: 2,
                    as_of: Time::from_unix_ms(0),
                    explain,
                    context,
                    model_progress: false,
                };
                chats.push(extraction(&job, 30, &fences));
                chats.push(panel(&job, &fences, &claim, "?", &[0, 1, 2, 3]));
            }
        }
    }
    chats
}

/// The message to a model whose answer could not be parsed because of this `problem`, which must not quote the answer.
pub(super) fn repair(problem: &str) -> String {
    [texts::REPAIR_PROBLEM, problem, texts::REPAIR].concat()
}

/// The prompt for the claims of a job's statement, no more than `max_claims`.
pub(super) fn extraction(job: &Job, max_claims: usize, fences: &Fences) -> Chat {
    let statement = text::block(&job.fact);
    let context = job.context.as_deref().map(text::block);
    let marker = fences.marker(&["extraction"], &[&statement, context.as_deref().unwrap_or_default()]);

    let (is_legal, has_context) = (job.domain == Domain::Legal, context.is_some());
    let system = EXTRACTION[variant([is_legal, has_context])].get_or_init(|| {
        let legal = if is_legal { texts::EXTRACTION_LEGAL } else { "" };
        let context = if has_context { texts::EXTRACTION_CONTEXT } else { "" };
        [texts::EXTRACTION, legal, context, texts::FENCES, texts::EXTRACTION_OUTPUT].concat()
    });

    let mut user = heading(job, &marker);
    if let Some(context) = &context {
        user.push_str(&fenced("CONTEXT", &marker, context));
    }
    user.push_str(&fenced("STATEMENT", &marker, &statement));
    user.push_str(&["Extract the claims of the statement, at most ", &max_claims.to_string(), "."].concat());
    chat(system, user, None, schemas::claims())
}

/// Like [`extraction`], to estimate its cost. Never to be sent, as its marker can be guessed.
pub(super) fn extraction_for_estimate(job: &Job, max_claims: usize) -> Chat {
    extraction(job, max_claims, &Fences::with_fixed_secret())
}

/// The prompt that asks `model` about a claim, with its options in this `order`: the one at `order[0]` is shown as `A`.
pub(super) fn panel(job: &Job, fences: &Fences, claim: &Claim, model: &str, order: &[usize]) -> Chat {
    let shown = order.iter().filter_map(|&original| claim.options().get(original));
    let lines: Vec<String> =
        shown.enumerate().map(|(at, option)| format!("{}) {option}", letter(at))).collect();
    let options = lines.join("\n");
    let context = job.context.as_deref().map(text::block);
    let untrusted = [claim.question.as_str(), &options, context.as_deref().unwrap_or_default()];
    let marker = fences.marker(&[&claim.id, model], &untrusted);

    let (is_legal, has_context) = (job.domain == Domain::Legal, context.is_some());
    let system = PANEL[variant([is_legal, has_context, job.explain])].get_or_init(|| {
        let panel = if has_context { texts::PANEL_CONTEXT } else { texts::PANEL };
        let legal = if is_legal { texts::PANEL_LEGAL } else { "" };
        let output = if job.explain { texts::PANEL_OUTPUT_EXPLAIN } else { texts::PANEL_OUTPUT };
        [panel, texts::PANEL_CHOICE, legal, texts::FENCES, output].concat()
    });

    let mut user = heading(job, &marker);
    if let Some(context) = &context {
        user.push_str(&fenced("CONTEXT", &marker, context));
    }
    user.push_str(&fenced("QUESTION", &marker, &claim.question));
    user.push_str(&fenced("OPTIONS", &marker, &options));
    user.push_str("Choose one option.");
    chat(system, user, Some(ANSWER_TOKENS), schemas::answer(lines.len(), job.explain))
}

fn heading(job: &Job, marker: &str) -> String {
    format!("Date: {} (UTC)\nMarker: {marker}\n\n", job.as_of.utc_date())
}

/// The index of a prompt variant: its flags as the digits of a binary number.
fn variant<const N: usize>(flags: [bool; N]) -> usize {
    flags.iter().fold(0, |number, &flag| number * 2 + usize::from(flag))
}

fn chat(system: &'static str, mut user: String, max_tokens: Option<u32>, schema: Schema) -> Chat {
    user.shrink_to_fit();
    Chat {
        messages: vec![
            Message { role: Role::System, content: Cow::Borrowed(system) },
            Message { role: Role::User, content: Cow::Owned(user) },
        ],
        temperature: Some(0.0),
        max_tokens,
        schema: Some(schema),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[cfg(test)]
mod tests;
