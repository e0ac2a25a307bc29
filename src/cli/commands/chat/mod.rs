//! `mk chat`: asks a model once, or in a conversation.
//!
//! ```text
//! args + configuration ─ Plan ─┬─ one_shot ────┐
//!                              └─ interactive ─┴─ ask ─ output  (answer to stdout, the rest to stderr)
//!                                      └─ prompt: edited, or plain; commands; transcript
//! ```
//!
//! Standard input is only read for `-` and in a conversation. An answer is only requested once. If it breaks off, what
//! arrived is printed, and never with the exit code of a complete answer.

mod args;
mod ask;
mod commands;
#[cfg(unix)]
mod edited_prompt;
mod interactive;
mod one_shot;
mod output;
mod plain_prompt;
mod prompt;
mod transcript;
mod word_wrap;

pub(crate) use args::{ChatArgs, EXAMPLES, NOTES};

use std::time::Duration;

use super::models;
use crate::api::Service;
use crate::api::chat::{ChatMessage, ChatRequest, StreamOptions};
use crate::api::models::{Model, ModelKind};
use crate::cli::args::globals::Session;
use crate::cli::args::text;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::backend::{self, Backend, Chosen, Need};
use crate::cli::target::remote;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::Mode;
use crate::cli::terminal::sanitize;
use crate::client;
use crate::config::{ClientConfig, Origin};
use ask::Answer;
use output::Output;

/// How long a complete answer may take by default: more than servers allow themselves.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(11);

/// How long a question waits for the models' prices, which are shown with its answer.
const PRICES_TIMEOUT: Duration = Duration::from_secs(3);

/// Everything that is decided before anything is sent.
struct Plan {
    printer: Printer,
    progress: Mode,
    /// The request without the model and the conversation.
    request: ChatRequest,
    model: Option<String>,
    /// Where the model was set, as named in messages.
    model_source: String,
    system: Option<String>,
    json: bool,
    limit: Duration,
}

/// Runs the command.
pub(crate) fn run(args: &ChatArgs, session: &mut Session) -> Outcome {
    check_given(args, session)?;
    let config = session.client_config(args.timeout.as_deref(), None)?;
    let limit = config.timeout.unwrap_or(DEFAULT_TIMEOUT);
    // A server is silent until its model begins, however many it has to try; so only the limit on the whole applies.
    let need =
        Need { service: Service::Inference, idle_timeout: limit, keyless_command: "mk chat --sandbox" };
    let chosen = backend::choose(args.backend, &config, session, need)?;
    let plan = Plan {
        printer: session.printer.clone(),
        progress: session.progress(&config),
        request: request(args),
        model: args.model.clone().or_else(|| default_model(args, &config)),
        model_source: model_source(args, &config.chat_model_origin()),
        system: args.system.clone(),
        json: args.json,
        limit,
    };
    let prompt = match args.prompt.as_deref() {
        Some("-") => Some(text::stdin(&plan.printer)?),
        given => given.map(str::to_owned),
    };
    match prompt {
        Some(prompt) => {
            let mut answer = Answer::default();
            let work = async { one_shot::run(&begin(&plan, chosen).await?, prompt, &mut answer).await };
            let outcome = runtime::run(&plan.printer, work);
            outcome.map_err(
                |failure| if plan.json { one_shot::with_partial_answer(failure, &answer) } else { failure },
            )
        }
        None => runtime::run_handling_ctrl_c(async { interactive::run(begin(&plan, chosen).await?).await }),
    }
}

/// The configured model. With the sandbox it is ignored, unless it is a simulated one itself.
fn default_model(args: &ChatArgs, config: &ClientConfig) -> Option<String> {
    config.chat_model.clone().filter(|model| !args.backend.sandbox || is_simulated(model))
}

fn model_source(args: &ChatArgs, origin: &Origin) -> String {
    match origin {
        Origin::Variable(name) if args.model.is_none() => (*name).to_owned(),
        Origin::File { .. } if args.model.is_none() => format!("chat.model ({origin})"),
        _ => "-m".to_owned(),
    }
}

fn is_simulated(model: &str) -> bool {
    model.starts_with("sandbox/")
}

/// Fails at once if there is nothing to ask, and nobody who could type it.
fn check_given(args: &ChatArgs, session: &Session) -> Result<(), Failure> {
    if let Some(prompt) = &args.prompt {
        return text::not_empty(prompt.clone(), "the prompt").map(drop);
    }
    let terminal = &session.printer.terminal;
    if !args.json && terminal.input_is_tty && terminal.err.is_terminal {
        return Ok(());
    }
    let why = if args.json { "--json answers one prompt" } else { "there is no terminal for a conversation" };
    Err(Failure::usage(format!("no prompt was given, and {why}"))
        .hint("give one: mk chat \"Why is the sky blue?\"; or use `-` to read standard input"))
}

fn request(args: &ChatArgs) -> ChatRequest {
    let stream = !args.no_stream;
    ChatRequest {
        temperature: args.temperature,
        max_tokens: args.max_tokens,
        stream,
        stream_options: stream.then_some(StreamOptions { include_usage: true }),
        ..ChatRequest::default()
    }
}

/// A plan with a server to ask.
struct Conversation<'a> {
    plan: &'a Plan,
    backend: Backend,
    model: String,
    /// Where the model was set, as named in messages.
    model_source: String,
    output: Output<'a>,
}

async fn begin(plan: &Plan, chosen: Chosen) -> Result<Conversation<'_>, Failure> {
    let backend = chosen.open(&plan.printer).await?;
    let model_source = plan.model_source.clone();
    let mut output = Output::new(&plan.printer, plan.progress, backend.is_sandbox);
    // The cost is only for people: elsewhere a request for the prices would be one too many.
    let shows_cost = plan.printer.terminal.err.is_terminal && !plan.printer.quiet && !plan.json;
    if let Some(model) = &plan.model {
        // Failures here happen again below, or do not matter.
        if shows_cost {
            let waiting = output.wait("Connecting");
            output.models =
                models::list_within(&backend, plan.limit.min(PRICES_TIMEOUT)).await.unwrap_or_default();
            drop(waiting);
        }
        return Ok(Conversation { plan, backend, model: model.clone(), model_source, output });
    }
    let waiting = output.wait("Connecting");
    let models = models::list_within(&backend, plan.limit).await?;
    drop(waiting);
    let model = cheapest(&models)?;
    if shows_cost {
        output.models = models;
    }
    let shown = sanitize::line(&model);
    let list = backend.list_command();
    plan.printer.sentence(&format!("asking {shown}; choose another model with -m (`{list}` lists them)"));
    Ok(Conversation { plan, backend, model, model_source, output })
}

/// The model to use if none is named: the cheapest one, so that nobody is surprised by a bill. Models with an unknown
/// price come after those with a known one, and simulated ones are used only if there is no other.
fn cheapest(models: &[Model]) -> Result<String, Failure> {
    let price = |model: &Model| match (model.input_usd_per_mtok, model.output_usd_per_mtok) {
        (Some(input), Some(output)) => input + output,
        _ => f64::INFINITY,
    };
    let rank = |model: &Model| (is_simulated(&model.id), price(model));
    let cheapest = models.iter().filter(|model| model.kind == ModelKind::Chat).min_by(|one, other| {
        let ((one_simulated, one_price), (other_simulated, other_price)) = (rank(one), rank(other));
        one_simulated.cmp(&other_simulated).then(one_price.total_cmp(&other_price))
    });
    let none = || {
        Failure::new(Kind::NotFound, "this key may not use any of the server's chat models")
            .hint("name one with -m")
    };
    cheapest.map(|model| model.id.clone()).ok_or_else(none)
}

impl Conversation<'_> {
    fn request(&self, messages: Vec<ChatMessage>) -> ChatRequest {
        ChatRequest { model: self.model.clone(), messages, ..self.plan.request.clone() }
    }

    /// The failure for an error of the client; one about the model names where that was set.
    fn failure(&self, cause: client::Error) -> Failure {
        remote::failure_for(Service::Inference, &self.backend.server, Some(&self.model_source), cause)
    }

    /// The model's name, sanitized.
    fn shown_model(&self) -> String {
        sanitize::line(&self.model).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_model_is_asked_and_a_simulated_one_only_if_there_is_no_other() {
        let priced = |id: &str, price: Option<f64>| Model {
            id: id.to_owned(),
            input_usd_per_mtok: price,
            output_usd_per_mtok: price,
            ..Model::default()
        };
        let mut models = vec![
            priced("sandbox/alpha", Some(0.0)),
            priced("sandbox/beta", Some(0.0)),
            Model { kind: ModelKind::Embeddings, ..priced("openai/text-embedding-3-small", Some(0.1)) },
            priced("anthropic/dear", Some(5.0)),
            priced("local/unknown", None),
            priced("openai/cheap", Some(0.5)),
            priced("openai/equal", Some(0.5)),
        ];
        assert_eq!(cheapest(&models).unwrap(), "openai/cheap");
        models.truncate(5);
        assert_eq!(cheapest(&models).unwrap(), "anthropic/dear");
        models.remove(3);
        assert_eq!(cheapest(&models).unwrap(), "local/unknown");
        assert_eq!(cheapest(&models[..2]).unwrap(), "sandbox/alpha");
        assert_eq!(cheapest(&[]).unwrap_err().kind, Kind::NotFound);
    }
}
