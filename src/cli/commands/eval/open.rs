//! `--open`: the questions of a verified statement, asked once more without their options, to see what the options
//! hide.
//!
//! ```text
//! result ─ each question ─ each model that answered it ─ its own words ─┬─ code: the option that says the same
//!                                                                      └─ judge (the auditor): which one is meant
//! ```
//!
//! The answers come from the inference endpoint of the same server, by a key of its own. A question with two options
//! only is not asked: it makes no sense without them. What a model or a judge did not answer is asked again when an
//! evaluation goes on, and nothing else. Answers are foreign text: kept short, and shown sanitized.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};

use crate::api::chat::{ChatMessage, ChatRequest};
use crate::api::models::Model;
use crate::api::verify::{ClaimResult, VerifyResponse};
use crate::cli::commands::verify::run::rate_limit::{RateLimitWait, TimeWaited};
use crate::cli::commands::verify::run::refusal::Refusal;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::target::backend::Backend;
use crate::cli::target::remote;
use crate::client::{Client, Piece};
use crate::verify::prompts::open::{self, Prompt, Reading};

/// How many questions of a statement are asked at a time.
const AT_A_TIME: usize = 4;

/// How long a check of the key may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// The options of a question before its two fixed ones.
const FIXED: usize = 2;

/// Who found the option that an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mapping {
    /// Code: it says the same.
    Code,
    /// The judge.
    Judge,
    /// Nobody: it means none of the options, or there is no judge.
    Nobody,
    /// The model does not know.
    Unknown,
    /// Model or judge failed.
    Failed,
}

/// What a model answered to a question without options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenAnswer {
    /// The claim, by its id.
    pub(crate) claim: String,
    pub(crate) model: String,
    /// In its own words; `None` if it failed.
    pub(crate) answer: Option<String>,
    /// The key of the option that it means.
    pub(crate) option: Option<String>,
    pub(crate) mapped_by: Mapping,
}

/// All answers about a statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// The hash of the prompts.
    pub(crate) prompts: String,
    pub(crate) judge: Option<String>,
    pub(crate) answers: Vec<OpenAnswer>,
    /// How many questions were not asked, as they have two options only.
    pub(crate) not_asked: usize,
    /// Tokens of all calls.
    pub(crate) tokens: u64,
    /// Their cost in US dollars; `None` if a price is unknown.
    pub(crate) cost_usd: Option<f64>,
}

impl Opened {
    /// Whether nothing in it is left to be asked.
    pub(crate) fn is_whole(&self) -> bool {
        self.prompts == open::hash() && self.answers.iter().all(|one| one.mapped_by != Mapping::Failed)
    }
}

/// The answer to one call.
struct Call {
    text: String,
    tokens: u64,
    cost_usd: Option<f64>,
}

/// Asks questions without options.
pub(super) struct Opening<'a> {
    client: &'a Client,
    server: &'a str,
    models: Vec<Model>,
    rate_limit_wait: RateLimitWait,
    refusal: Refusal,
    /// How long a call may take.
    limit: Duration,
}

/// One question to one model, with what is known of the answer.
struct Task<'a> {
    claim: &'a ClaimResult,
    model: &'a str,
    known: Option<&'a OpenAnswer>,
}

impl<'a> Opening<'a> {
    /// Checks the key before anything is paid for.
    ///
    /// # Errors
    /// If the server takes no key for inference, or not this one.
    pub(super) async fn begin(
        backend: &'a Backend,
        max_wait: Duration,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let server = &backend.server;
        let client = backend.inference.as_ref().ok_or_else(|| {
            Failure::new(Kind::Unauthorized, format!("--open needs an inference key for {server}"))
        })?;
        let listed = remote::within(CHECK_TIMEOUT, client.models()).await;
        let models = listed.map_err(|cause| named(remote::inference_failure(server, cause)))?;
        let rate_limit_wait = RateLimitWait::new(max_wait);
        Ok(Self { client, server, models, rate_limit_wait, refusal: Refusal::default(), limit })
    }

    /// Asks the questions of a result, except for what is known; also returns the first failure.
    pub(super) async fn ask(
        &self,
        result: &VerifyResponse,
        context: Option<&str>,
        known: Option<Opened>,
        announce: &dyn Fn(&str),
    ) -> (Opened, Option<Failure>) {
        let known = known.filter(|known| known.prompts == open::hash());
        let spent = known.as_ref().map_or((0, Some(0.0)), |known| (known.tokens, known.cost_usd));
        let known = known.map(|known| known.answers).unwrap_or_default();
        let has_options = |claim: &&ClaimResult| claim.original_options.len() > FIXED + 2;
        let mut opened = Opened {
            prompts: open::hash().to_owned(),
            judge: result.auditor.clone(),
            not_asked: result.results.iter().filter(|claim| !has_options(claim)).count(),
            tokens: spent.0,
            cost_usd: spent.1,
            answers: Vec::new(),
        };
        let mut tasks = Vec::new();
        for claim in result.results.iter().filter(has_options) {
            for given in &claim.model_answers {
                let is_it = |one: &&OpenAnswer| one.claim == claim.id && one.model == given.model;
                tasks.push(Task { claim, model: &given.model, known: known.iter().find(is_it) });
            }
        }
        let calls = tasks.into_iter().map(|task| self.ask_one(task, result, context, announce));
        let mut running = stream::iter(calls).buffered(AT_A_TIME);
        let mut first_failure = None;
        while let Some((answer, calls, failure)) = running.next().await {
            for call in calls {
                opened.tokens = opened.tokens.saturating_add(call.tokens);
                opened.cost_usd = opened.cost_usd.zip(call.cost_usd).map(|(sum, cost)| sum + cost);
            }
            opened.answers.push(answer);
            first_failure = first_failure.or(failure);
        }
        (opened, first_failure)
    }

    /// The answer to one task, the calls that it took, and why one failed.
    async fn ask_one(
        &self,
        task: Task<'_>,
        result: &VerifyResponse,
        context: Option<&str>,
        announce: &dyn Fn(&str),
    ) -> (OpenAnswer, Vec<Call>, Option<Failure>) {
        let Task { claim, model, known } = task;
        if let Some(known) = known.filter(|known| known.mapped_by != Mapping::Failed) {
            return (known.clone(), Vec::new(), None);
        }
        let mut calls = Vec::new();
        let mut one = OpenAnswer {
            claim: claim.id.clone(),
            model: model.to_owned(),
            answer: known.and_then(|known| known.answer.clone()),
            option: None,
            mapped_by: Mapping::Failed,
        };
        let question = &claim.original_question;
        if one.answer.is_none() {
            let prompt = open::question(question, &result.as_of, context, result.domain);
            match self.call(model, prompt, announce).await {
                Ok(call) => {
                    one.answer = Some(open::answer(&call.text));
                    calls.push(call);
                }
                Err(failure) => return (one, calls, Some(failure)),
            }
        }
        let answer = one.answer.as_deref().unwrap_or_default();
        let drafted = claim.original_options.len().saturating_sub(FIXED);
        let (keys, options): (Vec<&String>, Vec<&str>) = claim
            .original_options
            .iter()
            .take(drafted)
            .map(|(key, option)| (key, option.as_str().unwrap_or_default()))
            .unzip();
        let option = |at: usize| keys.get(at).map(|key| (*key).clone());
        let judge = result.auditor.as_deref().filter(|_| !answer.is_empty());
        match (open::read(answer, &options), judge) {
            (Reading::Unknown, _) => one.mapped_by = Mapping::Unknown,
            (Reading::Option(at), _) => (one.mapped_by, one.option) = (Mapping::Code, option(at)),
            (Reading::Words, None) => one.mapped_by = Mapping::Nobody,
            (Reading::Words, Some(judge)) => {
                let prompt = open::judgement(question, answer, &options);
                let judged = match self.call(judge, prompt, announce).await {
                    Ok(call) => {
                        let meant = open::read_judgement(&call.text, &options);
                        calls.push(call);
                        meant
                    }
                    Err(failure) => return (one, calls, Some(failure)),
                };
                match judged {
                    Ok(Some(at)) => (one.mapped_by, one.option) = (Mapping::Judge, option(at)),
                    // A judge that cannot keep to the form is not asked again for it.
                    Ok(None) | Err(_) => one.mapped_by = Mapping::Nobody,
                }
            }
        }
        (one, calls, None)
    }

    /// One call, again after each 429 that may be waited out.
    async fn call(
        &self,
        model: &str,
        prompt: Result<Prompt, getrandom::Error>,
        announce: &dyn Fn(&str),
    ) -> Result<Call, Failure> {
        let Prompt { system, user } = prompt.map_err(|cause| {
            Failure::new(Kind::Other, "the system's random number generator failed").caused_by(cause)
        })?;
        let request = ChatRequest {
            model: model.to_owned(),
            messages: vec![ChatMessage::new("system", system), ChatMessage::new("user", user)],
            temperature: None,
            max_tokens: None,
            stream: false,
            stream_options: None,
        };
        let failed = |failure: Failure| {
            let message = format!("{model}: {}", failure.message);
            named(Failure { message, ..failure })
        };
        self.refusal.unless_refused(self.send(&request, announce)).await.map_err(failed)
    }

    async fn send(&self, request: &ChatRequest, announce: &dyn Fn(&str)) -> Result<Call, Failure> {
        let mut waited = TimeWaited::default();
        loop {
            self.rate_limit_wait.pause().await;
            match remote::within(self.limit, self.client.chat(request)).await {
                Ok(piece) => return Ok(self.booked(piece, &request.model)),
                Err(cause) => {
                    let failure = remote::inference_failure(self.server, cause);
                    if !self.rate_limit_wait.may_retry(&failure, &mut waited, announce) {
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// What a call gave, at the list price of the model that answered. The server keeps the books.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    fn booked(&self, piece: Piece, asked: &str) -> Call {
        let usage = piece.usage.unwrap_or_default();
        let price = |name: &str| {
            let model = self.models.iter().find(|model| model.id == name)?;
            model.input_usd_per_mtok.zip(model.output_usd_per_mtok)
        };
        let price = price(&piece.model).or_else(|| price(asked)).filter(|_| piece.usage.is_some());
        let cost_usd = price.map(|(input, output)| {
            (usage.prompt_tokens as f64 * input + usage.completion_tokens as f64 * output) / 1_000_000.0
        });
        let cost_usd = if piece.is_sandbox { Some(0.0) } else { cost_usd };
        Call { text: piece.text, tokens: usage.total_tokens, cost_usd }
    }
}

/// A failure that is said to come from what `--open` asks for.
pub(super) fn named(failure: Failure) -> Failure {
    Failure { message: format!("--open: {}", failure.message), ..failure }
}
