//! Every prompt, in one place: texts, fences and the shapes of answers.
//!
//! A prompt is a system message, the same for all requests of its kind, and one user message with everything that
//! changes: date, marker and the fenced blocks. Untrusted text (statement, context, and what a model made of them)
//! stands only inside fences, cleaned of invisible characters. Panel prompts hold question and options and nothing
//! else about the claim. [`hash`] goes into the logs, so that a result can be traced to the wording behind it.

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

/// Counts deliberate changes of wording; [`hash`] tells apart the rest.
pub const VERSION: u32 = 1;

/// What a model is told whose answer could not be read.
pub(super) const REPAIR: &str = texts::REPAIR;

/// Room for an answer of a few tokens, with the thinking of reasoning models before it. Nearly every model allows
/// that much. Extractions get no bound but that of time: 30 claims take about 6,000 tokens and the thinking comes
/// on top, while many models refuse a bound beyond their own maximum, some from 4,096 on.
const ANSWER_TOKENS: u32 = 4_096;

/// Instructions, each put together once: a call that waits for its model holds its prompt, and thousands may wait.
static EXTRACTION: [OnceLock<String>; 4] = [const { OnceLock::new() }; 4];
static PANEL: [OnceLock<String>; 8] = [const { OnceLock::new() }; 8];

/// The first 12 hexadecimal digits of the SHA-256 over all prompts, as they are sent.
pub fn hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Sha256::new_with_prefix(VERSION.to_be_bytes());
        for chat in samples() {
            chat.messages.iter().for_each(|message| hash.update(&*message.content));
            hash.update(chat.schema.map(|schema| schema.schema.to_string()).unwrap_or_default());
        }
        hash.update(REPAIR);
        hex(&hash.finalize()[..6])
    });
    &HASH
}

/// Every kind of prompt, about nothing.
fn samples() -> Vec<Chat> {
    let fences = Fences::known();
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
                chats.push(extraction(&job, &fences));
                chats.push(panel(&job, &fences, &claim, "?", &[0, 1, 2, 3]));
            }
        }
    }
    chats
}

/// Asks for the claims of a job's statement.
pub(super) fn extraction(job: &Job, fences: &Fences) -> Chat {
    let statement = text::block(&job.fact);
    let context = job.context.as_deref().map(text::block);
    let marker = fences.marker(&["extraction"], &[&statement, context.as_deref().unwrap_or_default()]);

    let (is_legal, has_context) = (job.domain == Domain::Legal, context.is_some());
    let system = EXTRACTION[choice([is_legal, has_context])].get_or_init(|| {
        let legal = if is_legal { texts::EXTRACTION_LEGAL } else { "" };
        let context = if has_context { texts::EXTRACTION_CONTEXT } else { "" };
        [texts::EXTRACTION, legal, context, texts::FENCES, texts::EXTRACTION_OUTPUT].concat()
    });

    let mut user = heading(job, &marker);
    if let Some(context) = &context {
        user.push_str(&fenced("CONTEXT", &marker, context));
    }
    user.push_str(&fenced("STATEMENT", &marker, &statement));
    user.push_str("Extract the claims of the statement.");
    chat(system, user, None, schemas::claims())
}

/// [`extraction`], to be measured but never sent: its marker is no secret.
pub(super) fn measured_extraction(job: &Job) -> Chat {
    extraction(job, &Fences::known())
}

/// Asks `model` about a claim, its options in this `order`: the option at `order[0]` is shown as `A`.
pub(super) fn panel(job: &Job, fences: &Fences, claim: &Claim, model: &str, order: &[usize]) -> Chat {
    let shown = order.iter().filter_map(|&original| claim.options().get(original));
    let lines: Vec<String> =
        shown.enumerate().map(|(at, option)| format!("{}) {option}", letter(at))).collect();
    let options = lines.join("\n");
    let context = job.context.as_deref().map(text::block);
    let untrusted = [claim.question.as_str(), &options, context.as_deref().unwrap_or_default()];
    let marker = fences.marker(&[&claim.id, model], &untrusted);

    let (is_legal, has_context) = (job.domain == Domain::Legal, context.is_some());
    let system = PANEL[choice([is_legal, has_context, job.explain])].get_or_init(|| {
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

/// A number for each choice of yes and no.
fn choice<const N: usize>(answers: [bool; N]) -> usize {
    answers.iter().fold(0, |number, &answer| number * 2 + usize::from(answer))
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
