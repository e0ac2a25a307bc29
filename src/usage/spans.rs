//! A call to a model as a span, in the names of OpenTelemetry's conventions for generative AI
//! (`semantic-conventions-genai`, `docs/gen-ai/gen-ai-spans.md`).
//!
//! Tokens are told of calls alone, never of what is around them: programs that show traces add them up.

use std::time::Instant;

use super::Purpose;
use super::request::CANCELLED;
use crate::metrics;
use crate::model_id;
use crate::money::NanoUsd;
use crate::traces::{Kind, Parent, Span};

/// The span of a call to `model` (its full identifier) that begins now, as a part of another.
pub(super) fn begin(place: &Parent, model: &str, purpose: Purpose, now: Instant) -> Span {
    if place.is_none() {
        return Span::default();
    }
    let (provider, name) = model_id::split(model).unwrap_or(("", model));
    let (operation, purpose) = match purpose {
        Purpose::Extraction => ("chat", "extraction"),
        Purpose::Verification => ("chat", "verification"),
        Purpose::Chat => ("chat", "chat"),
        Purpose::Embeddings => ("embeddings", "embeddings"),
    };
    let mut span = place.child(format!("{operation} {name}"), Kind::Client, now);
    span.set("gen_ai.operation.name", operation);
    span.set("gen_ai.provider.name", provider_name(provider).to_owned());
    span.set("gen_ai.request.model", name.to_owned());
    span.set("mk.model", model.to_owned());
    span.set("mk.purpose", purpose);
    span
}

/// Ends the span of a call with what was counted of it.
pub(super) fn end(mut span: Span, counted: &metrics::Attempt<'_>, is_estimated: bool) {
    span.set("gen_ai.usage.input_tokens", counted.prompt_tokens);
    span.set("gen_ai.usage.output_tokens", counted.completion_tokens);
    let known = |tokens: u64| Some(tokens).filter(|tokens| *tokens > 0);
    span.set_some("gen_ai.usage.cache_read.input_tokens", known(counted.cached_tokens));
    span.set_some("gen_ai.usage.cache_creation.input_tokens", known(counted.cache_write_tokens));
    span.set_some("gen_ai.response.time_to_first_chunk", counted.first_token.map(|span| span.as_secs_f64()));
    span.set_some("mk.cost_usd", counted.cost.map(NanoUsd::usd));
    span.set("mk.usage_estimated", is_estimated);
    match counted.outcome {
        "ok" => {}
        // Nothing went wrong, but there is a reason why it ended.
        CANCELLED => span.set("error.type", CANCELLED),
        failure => span.fail(failure.to_owned()),
    }
}

/// The name that the conventions have for a provider, if they have one.
fn provider_name(configured: &str) -> &str {
    match configured {
        "azure" => "azure.ai.openai",
        "google" | "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}
