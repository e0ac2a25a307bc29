//! All prompts in one place: texts, fences and the schemas of answers.
//!
//! A prompt is a system message, the same for all requests of its kind, and one user message with everything that
//! varies: date and the fenced blocks. Untrusted text (statement, context, and what a model made of them)
//! appears only inside fences, cleaned of invisible characters. Panel prompts contain question and options and nothing
//! else about the claim. [`hash`] is logged, so that a result can be traced to the wording of its prompts.

mod fences;
pub mod open;
mod schemas;
mod texts;

pub(super) use fences::Fences;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{LazyLock, OnceLock};

use sha2::{Digest, Sha256};

use super::claim::{Claim, letter};
use super::receipt::{Prompts, sha256};
use super::{Job, text};
use crate::api::verify::{Domain, Span};
use crate::hex::hex;
use crate::inference::{Chat, Effort, Message, Role, Schema};

/// Incremented with deliberate changes of wording; [`hash`] distinguishes all others.
pub const VERSION: u32 = 7;

/// Enough for an answer of a few tokens after the thinking of reasoning models. Nearly every model allows this much.
/// Extractions and audits have no limit except the length of a section and the timeout, as many models reject a limit
/// above their own maximum.
const ANSWER_TOKENS: u32 = 4_096;

/// The system messages, each built once: a verification writes hundreds of prompts.
static EXTRACTION: [OnceLock<String>; 4] = [const { OnceLock::new() }; 4];
static PANEL: [OnceLock<String>; 8] = [const { OnceLock::new() }; 8];
static AUDIT: OnceLock<String> = OnceLock::new();

/// The first 12 hexadecimal digits of the SHA-256 of all prompts, as they are sent.
pub fn hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Sha256::new_with_prefix(VERSION.to_be_bytes());
        for chat in sample_prompts() {
            chat.messages.iter().for_each(|message| hash.update(&*message.content));
            hash.update(chat.schema.as_ref().map_or("", |schema| schema.json().get()));
        }
        hash.update(repair("?"));
        hex(&hash.finalize()[..6])
    });
    &HASH
}

/// The hashes of the prompts of a job, with placeholders for all that varies from job to job and from call to call.
pub(super) fn hashes(job: &Job) -> Prompts {
    let [extraction, panel, audit] = samples(&sample_job(job.domain, job.explain, job.context.is_some()));
    let of_chat = |chat: Chat| {
        let schema = chat.schema.as_ref().map_or("", |schema| schema.json().get());
        sha256(chat.messages.iter().map(|message| &*message.content).chain([schema]))
    };
    let faults =
        faults(&Fences::fixed(), [("?".to_owned(), "?".to_owned())].into_iter(), &["?".to_owned()], &["?"]);
    Prompts {
        version: VERSION,
        extraction: of_chat(extraction),
        faults: sha256([faults.as_str()]),
        audit: of_chat(audit),
        panel: of_chat(panel),
        repair: sha256([repair("?").as_str()]),
    }
}

/// One prompt of every kind, with placeholders as contents.
fn sample_prompts() -> Vec<Chat> {
    let mut chats = Vec::new();
    for domain in [Domain::General, Domain::Legal] {
        for explain in [false, true] {
            for has_context in [false, true] {
                chats.extend(samples(&sample_job(domain, explain, has_context)));
            }
        }
    }
    chats
}

fn sample_job(domain: Domain, explain: bool, has_context: bool) -> Job {
    let text = || String::from("?");
    Job { id: text(), fact: text(), domain, explain, context: has_context.then(text), ..Job::blank() }
}

/// The prompts of a job for extraction, panel and audit.
fn samples(job: &Job) -> [Chat; 3] {
    let fences = Fences::fixed();
    let text = || String::from("?");
    let claim = Claim::new(0, text(), text(), text(), vec![text()], (0..0, Span::default()));
    let passage = Passage { before: "?", section: "?" };
    [
        extraction(job, &fences, passage),
        panel(job, &fences, &claim, &[0, 1, 2, 3]),
        audit(job, &fences, passage, &[&claim], &[("?", "?")]),
    ]
}

/// The message to a model whose answer could not be parsed because of this `problem`, which must not quote the answer.
pub(super) fn repair(problem: &str) -> String {
    [texts::REPAIR_PROBLEM, problem, texts::REPAIR].concat()
}

/// A section of the statement, and what comes before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage<'a> {
    /// What references may lead to; empty for the first section.
    pub(super) before: &'a str,
    /// The section, verbatim.
    pub(super) section: &'a str,
}

impl Passage<'_> {
    fn blocks(self, fences: &Fences) -> String {
        let section = fences.block("SECTION", &text::block(self.section));
        if self.before.is_empty() {
            return section;
        }
        fences.block("BEFORE", &text::block(self.before)) + &section
    }
}

/// The prompt for the claims of a section.
pub(super) fn extraction(job: &Job, fences: &Fences, passage: Passage<'_>) -> Chat {
    let (is_legal, has_context) = (job.domain == Domain::Legal, job.context.is_some());
    let system = EXTRACTION[variant([is_legal, has_context])].get_or_init(|| {
        let legal = if is_legal { texts::EXTRACTION_LEGAL } else { "" };
        let context = if has_context { texts::EXTRACTION_CONTEXT } else { "" };
        [texts::EXTRACTION, legal, context, texts::FENCES, texts::EXTRACTION_OUTPUT].concat()
    });
    let mut user = heading(job, fences);
    user.push_str(&passage.blocks(fences));
    user.push_str(texts::EXTRACTION_REQUEST);
    chat(system, user, None, schemas::claims())
}

/// Like [`extraction`], to estimate its cost. Never to be sent, as its marker can be guessed.
pub(super) fn extraction_for_estimate(job: &Job, passage: Passage<'_>) -> Chat {
    extraction(job, &Fences::fixed(), passage)
}

/// The message that sends faults back to an extractor: claims with what to change about each, the `remarks` of an
/// auditor, and the passages that are `missing`.
pub(super) fn faults(
    fences: &Fences,
    faults: impl Iterator<Item = (String, String)>,
    remarks: &[String],
    missing: &[&str],
) -> String {
    let faults: Vec<String> =
        faults.map(|(claim, fault)| format!("claim: {claim}\nfault: {fault}")).collect();
    let blocks =
        [("FAULTS", faults.join("\n")), ("REMARKS", remarks.join("\n")), ("MISSING", missing.join("\n"))];
    let blocks = blocks.into_iter().filter(|(_, text)| !text.is_empty());
    texts::FAULTS.to_owned() + &blocks.map(|(label, text)| fences.block(label, &text)).collect::<String>()
}

/// The longest quote of a claim that an auditor is shown, in characters: the section stands there in full.
const MAX_AUDITED_QUOTE_CHARS: usize = 600;
/// What a part is set aside for whose claim has faults that go back in any case.
pub(super) const AT_FAULT: &str = "at fault";

/// The prompt that compares a section with the claims taken from it, and with the parts that were set aside, each behind
/// what for.
pub(super) fn audit(
    job: &Job,
    fences: &Fences,
    passage: Passage<'_>,
    claims: &[&Claim],
    parts: &[(&str, &str)],
) -> Chat {
    let system = AUDIT.get_or_init(|| [texts::AUDIT, texts::FENCES, texts::AUDIT_OUTPUT].concat());
    let mut list = String::new();
    for (at, claim) in claims.iter().enumerate() {
        let quote = text::shortened(&text::one_line(passage_of(job, claim)), MAX_AUDITED_QUOTE_CHARS);
        let options: Vec<String> = (0..=claim.rivals().len())
            .filter_map(|at| claim.options().get(at).map(|option| format!("{}) {option}", letter(at))))
            .collect();
        let _ = writeln!(
            list,
            "{}. quote: {quote}\n   claim: {}\n   question: {} | {}\n   claimed answer: {}",
            at + 1,
            claim.text,
            claim.question,
            options.join(" | "),
            claim.claimed(),
        );
    }
    let mut user = heading(job, fences);
    user.push_str(&passage.blocks(fences));
    user.push_str(&fences.block("CLAIMS", list.trim_end()));
    if !parts.is_empty() {
        let line = |(reason, part): &(&str, &str)| format!("- {reason}: {}", text::one_line(part));
        let parts: Vec<String> = parts.iter().map(line).collect();
        user.push_str(&fences.block("ASIDE", &parts.join("\n")));
    }
    user.push_str(texts::AUDIT_REQUEST);
    chat(system, user, None, schemas::audit())
}

fn passage_of<'a>(job: &'a Job, claim: &Claim) -> &'a str {
    job.fact.get(claim.quote.clone()).unwrap_or_default()
}

/// The prompt that asks about a claim, with its options in this `order`: the one at `order[0]` is shown as `A`. What all
/// votes of a verification share stands first, so that providers can cache it.
pub(super) fn panel(job: &Job, fences: &Fences, claim: &Claim, order: &[usize]) -> Chat {
    let shown = order.iter().filter_map(|&original| claim.options().get(original));
    let (mut lines, mut count) = (String::new(), 0);
    for option in shown {
        lines.push_str(if count == 0 { "" } else { "\n" });
        lines.push(letter(count));
        lines.extend([") ", option]);
        count += 1;
    }

    let (is_legal, has_context) = (job.domain == Domain::Legal, job.context.is_some());
    let system = PANEL[variant([is_legal, has_context, job.explain])].get_or_init(|| {
        let panel = if has_context { texts::PANEL_CONTEXT } else { texts::PANEL };
        let legal = if is_legal { texts::PANEL_LEGAL } else { "" };
        let output = if job.explain { texts::PANEL_OUTPUT_EXPLAIN } else { texts::PANEL_OUTPUT };
        [panel, texts::PANEL_CHOICE, legal, texts::PANEL_FENCES, output].concat()
    });

    let mut user = heading(job, fences);
    user.push_str(&fences.block("QUESTION", &claim.question));
    user.push_str(&fences.block("OPTIONS", &lines));
    chat(system, user, Some(ANSWER_TOKENS), schemas::answer(count, job.explain))
}

/// What the prompts of a verification begin with.
fn heading(job: &Job, fences: &Fences) -> String {
    let mut heading = format!("Date: {} (UTC)\n", job.as_of.utc_date());
    if let Some(context) = &job.context {
        heading.push_str(&fences.block("CONTEXT", &text::block(context)));
    }
    heading
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
        effort: Effort::Lowest,
    }
}

#[cfg(test)]
mod tests;
