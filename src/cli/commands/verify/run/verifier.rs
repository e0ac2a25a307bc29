//! Verifies statements on a server, or extracts their claims, with the settings that flags and configuration files
//! give.

use std::path::Path;
use std::time::Duration;

use super::observe::{self, Update};
use super::rate_limit::{RateLimitWait, TimeWaited};
use crate::api::verify::{Event, ExtractResponse, Format, MAX_CONTEXT_CHARS, VerifyRequest, VerifyResponse};
use crate::cli::args::text;
use crate::cli::commands::verify::args::{FormatArg, How, Subject};
use crate::cli::commands::verify::input::markup;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::value_source::{MIN_REQUIRED, TOTAL_MODELS, ValueSources};
use crate::cli::process::exit::Failure;
use crate::cli::target::backend::Backend;
use crate::cli::target::remote;
use crate::client::{self, VerifyStream};
use crate::clock::Time;
use crate::config::ClientConfig;

/// How long a verification may take in all by default: more than servers allow themselves.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// Verifies the statements of a command, which all have these settings in common.
pub(crate) struct Verifier {
    /// The request, except for the statement.
    pub(crate) request: VerifyRequest,
    /// How statements are written, if that was said.
    markup: Option<Format>,
    /// How long a verification may take in all.
    pub(crate) limit: Duration,
    value_sources: ValueSources,
}

impl Verifier {
    /// Built from flags and configuration; `explain` asks for the models' reasons.
    pub(crate) fn new(how: &How, explain: bool, config: &ClientConfig) -> Result<Self, Failure> {
        let value_sources = ValueSources::new(how, config);
        let request = request(&how.subject, config)?;
        let min_required = how.min_required.or(config.verify.min_required);
        let total_models = how.total_models.or(config.verify.total_models);
        if let (Some(needed), Some(asked)) = (min_required, total_models)
            && asked < needed
        {
            let asks = value_sources.with_value(TOTAL_MODELS, asked);
            let needs = value_sources.with_value(MIN_REQUIRED, needed);
            let failure = Failure::usage(format!("{asks} asks fewer models than {needs} needs"));
            let hint = value_sources.hint(&[TOTAL_MODELS, MIN_REQUIRED]);
            return Err(hint.into_iter().fold(failure, Failure::hint));
        }
        let request = VerifyRequest {
            min_required,
            total_models,
            explain: explain.then_some(true),
            context: how.context.as_deref().map(context).transpose()?,
            ..request
        };
        Ok(Self { request, markup: None, limit: config.timeout.unwrap_or(DEFAULT_TIMEOUT), value_sources })
    }

    /// The verifier that asks for receipts as well, if they are wanted.
    pub(crate) fn with_receipts(mut self, wanted: bool) -> Self {
        self.request.receipt = wanted.then_some(true);
        self
    }

    /// One that only extracts: nothing is put to a panel.
    pub(crate) fn of_extractions(subject: &Subject, config: &ClientConfig) -> Result<Self, Failure> {
        let request = request(subject, config)?;
        let value_sources = ValueSources::of_subject(subject, config);
        Ok(Self { request, markup: None, limit: config.timeout.unwrap_or(DEFAULT_TIMEOUT), value_sources })
    }

    /// The verifier of statements that are written in this way, and not as their names or contents tell.
    pub(crate) fn with_markup(self, markup: Option<FormatArg>) -> Self {
        Self { markup: markup.map(Into::into), ..self }
    }

    /// The request for a statement from this source.
    pub(crate) fn request_for(&self, source: Option<&Source>, fact: String) -> VerifyRequest {
        let markup = self.markup.unwrap_or_else(|| markup::format_of(source, &fact));
        let format = (markup != Format::default()).then_some(markup);
        VerifyRequest { fact, format, ..self.request.clone() }
    }

    /// Runs one verification, again after each 429 that may be waited out. Also returns how long the last attempt took.
    pub(crate) async fn verify(
        &self,
        backend: &Backend,
        request: &VerifyRequest,
        rate_limit_wait: &RateLimitWait,
        announce: &dyn Fn(&str),
        observe: &mut (dyn FnMut(Update<'_>) -> Result<(), Failure> + '_),
    ) -> Result<(VerifyResponse, Duration), Failure> {
        let begin = || backend.client.verify(request);
        let result = |event| if let Event::Completed(result) = event { Some(*result) } else { None };
        self.run(backend, begin, result, rate_limit_wait, announce, observe).await
    }

    /// The same of an extraction.
    pub(crate) async fn extract(
        &self,
        backend: &Backend,
        request: &VerifyRequest,
        rate_limit_wait: &RateLimitWait,
        announce: &dyn Fn(&str),
        observe: &mut (dyn FnMut(Update<'_>) -> Result<(), Failure> + '_),
    ) -> Result<(ExtractResponse, Duration), Failure> {
        let begin = || backend.client.extract(request);
        let result = |event| if let Event::Extracted(result) = event { Some(*result) } else { None };
        self.run(backend, begin, result, rate_limit_wait, announce, observe).await
    }

    /// Runs to the event that ends it, which must hold a `result`.
    async fn run<T>(
        &self,
        backend: &Backend,
        begin: impl Fn() -> VerifyStream,
        result: impl FnOnce(Event) -> Option<T>,
        rate_limit_wait: &RateLimitWait,
        announce: &dyn Fn(&str),
        observe: &mut (dyn FnMut(Update<'_>) -> Result<(), Failure> + '_),
    ) -> Result<(T, Duration), Failure> {
        let mut waited = TimeWaited::default();
        loop {
            rate_limit_wait.pause().await;
            match observe::run(&backend.server, self.limit, begin(), observe).await {
                Ok((event, elapsed)) => {
                    let incomplete = || remote::failure(&backend.server, client::Error::Incomplete);
                    return Ok((result(event).ok_or_else(incomplete)?, elapsed));
                }
                Err(failure) if rate_limit_wait.may_retry(&failure, &mut waited, announce) => {}
                Err(mut failure) => {
                    failure.message = self.value_sources.attribute(failure.message);
                    return Err(failure);
                }
            }
        }
    }
}

/// What all requests of a command have in common.
fn request(subject: &Subject, config: &ClientConfig) -> Result<VerifyRequest, Failure> {
    if let Some(date) = &subject.as_of
        && Time::parse(date).is_none()
    {
        return Err(Failure::usage(format!("--as-of: `{date}` is not a date")).hint("write it as 2026-11-20"));
    }
    Ok(VerifyRequest {
        domain: subject.domain.map(Into::into).or(config.verify.domain),
        as_of: subject.as_of.clone(),
        ..VerifyRequest::default()
    })
}

fn context(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage("--context needs a file, not standard input"));
    }
    let text = text::of_file("--context", path).map_err(|cause| Failure { hints: Vec::new(), ..cause })?;
    if text.chars().count() > MAX_CONTEXT_CHARS {
        let path = path.display();
        return Err(Failure::usage(format!(
            "--context: {path} is longer than {MAX_CONTEXT_CHARS} characters"
        )));
    }
    Ok(text)
}
