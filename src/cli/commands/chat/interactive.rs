//! A conversation on a terminal.
//!
//! A question becomes part of the conversation once its answer is complete: one that was interrupted or that failed is
//! forgotten, and `/retry` asks it again. Ctrl-C stops a running answer, and quits at the prompt.

use super::ask::{Answer, ask};
use super::commands::{self, Command};
use super::prompt::Prompt;
use super::transcript::{Transcript, Turn};
use super::{Conversation, PRICES_TIMEOUT};
use crate::api::chat::ChatMessage;
use crate::cli::commands::models;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::terminal::sanitize;
use crate::config::closest;
use crate::model_id;

/// Printed at the start.
const GREETING: &str = "Ctrl-C stops an answer; /help lists commands; /exit or Ctrl-D ends the conversation";

/// The most models that `/model` names.
const MAX_NAMED: usize = 20;

/// Typed behind `/system`, takes the instructions back.
const NOTHING: &str = "-";

/// Prompts for questions and answers them until the person quits.
pub(super) async fn run(conversation: Conversation<'_>) -> Outcome {
    let printer = &conversation.plan.printer;
    printer.sentence(GREETING);
    let names = conversation.output.models.iter().map(|model| model.id.clone());
    let names = names.filter(|name| matches!(sanitize::line(name), std::borrow::Cow::Borrowed(_))).collect();
    let mut prompt = Prompt::open(printer, names);
    let transcript = Transcript { system: conversation.plan.system.clone(), turns: Vec::new() };
    let mut talk = Talk { conversation, transcript, last_question: None };
    while let Some(text) = prompt.ask().await? {
        let outcome = match commands::parse(&text) {
            None if text.trim().is_empty() => Ok(()),
            None => talk.question(text.trim().to_owned(), &mut prompt).await,
            Some(Err(refusal)) => Err(Failure::usage(refusal.message).hint(refusal.hint)),
            Some(Ok(Command::Exit)) => return Ok(0),
            Some(Ok(Command::Retry)) => talk.retry(&mut prompt).await,
            Some(Ok(command)) => talk.obey(command).await,
        };
        match outcome {
            Err(failure) if matches!(failure.kind, Kind::ClosedPipe | Kind::Unauthorized) => {
                return Err(failure);
            }
            Err(failure) => printer.failure(&failure),
            Ok(()) => {}
        }
    }
    Ok(0)
}

/// A conversation with what was said in it.
struct Talk<'a> {
    conversation: Conversation<'a>,
    transcript: Transcript,
    /// The question that was asked last, whether or not it was answered.
    last_question: Option<String>,
}

impl<'a> Talk<'a> {
    fn printer(&self) -> &'a crate::cli::terminal::printer::Printer {
        &self.conversation.plan.printer
    }

    /// Asks a question.
    async fn question(&mut self, question: String, prompt: &mut Prompt<'_>) -> Result<(), Failure> {
        self.last_question = Some(question.clone());
        let mut messages = self.transcript.messages();
        messages.push(ChatMessage::new("user", question.as_str()));
        let mut answer = Answer::default();
        let conversation = &self.conversation;
        let mut writer = conversation.output.writer(&conversation.shown_model(), false);
        let request = conversation.request(messages);
        let outcome = tokio::select! {
            biased;
            () = prompt.interrupted() => None,
            outcome = ask(conversation, &request, &mut answer, &mut writer) => Some(outcome),
        };
        drop(writer);
        let Some(outcome) = outcome else {
            let told = "stopped; the question was removed from the conversation; /retry asks it again";
            self.printer().sentence(told);
            return Ok(());
        };
        outcome?;
        conversation.output.epilogue(&answer, conversation.plan.request.max_tokens);
        let model = conversation.model.clone();
        self.transcript.turns.push(Turn { question, answer: answer.text, model });
        Ok(())
    }

    /// Asks the last question again. Its answer stays if there is no other.
    async fn retry(&mut self, prompt: &mut Prompt<'_>) -> Result<(), Failure> {
        let Some(question) = self.last_question.clone() else {
            return Err(Failure::usage("there is no question yet").hint("type a question"));
        };
        let before = self.transcript.turns.pop_if(|turn| turn.question == question);
        let known = self.transcript.turns.len();
        let outcome = self.question(question, prompt).await;
        if self.transcript.turns.len() == known {
            self.transcript.turns.extend(before);
        }
        outcome
    }

    /// Does what needs no answer of a model.
    async fn obey(&mut self, command: Command<'_>) -> Result<(), Failure> {
        match command {
            Command::Help => self.list_commands(),
            Command::Model(None) => self.name_models().await,
            Command::Model(Some(name)) => self.choose_model(name).await?,
            Command::System(text) => self.instruct(text),
            Command::Save(file) => {
                let told = self.transcript.save(file, &self.conversation.model)?;
                self.printer().sentence(&told);
            }
            Command::Retry | Command::Exit => {}
        }
        Ok(())
    }

    fn list_commands(&self) {
        let widest = commands::LIST.iter().map(|listed| listed.usage().len()).max().unwrap_or(0);
        for listed in &commands::LIST {
            self.printer().labelled_notice(&listed.usage(), widest + 2, listed.does);
        }
    }

    /// Says which model is asked, and which others there are.
    async fn name_models(&mut self) {
        self.printer().sentence(&format!("asking {}", self.conversation.shown_model()));
        self.load_models().await;
        let others =
            self.conversation.output.models.iter().filter(|model| model.id != self.conversation.model);
        let mut others: Vec<_> = others.map(|model| sanitize::line(&model.id)).collect();
        let more = others.len().saturating_sub(MAX_NAMED);
        others.truncate(MAX_NAMED);
        if others.is_empty() {
            return;
        }
        let others = others.join(", ");
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let list = self.conversation.backend.list_command();
        self.printer().sentence(&format!("others: {others}{more}; `{list}` shows what they cost"));
    }

    /// Asks this model from here on. Servers also take models that they do not list, and say so if they do not.
    async fn choose_model(&mut self, name: &str) -> Result<(), Failure> {
        self.load_models().await;
        let shown = sanitize::line(name).into_owned();
        let known = || self.conversation.output.models.iter().map(|model| model.id.as_str());
        let meant = closest(name, known()).map(|meant| format!("did you mean {}? ", sanitize::line(meant)));
        let hint = || format!("{}/model lists them", meant.clone().unwrap_or_default());
        let Some(provider) = provider(name) else {
            return Err(Failure::usage(format!("{shown} is not a model: write PROVIDER/NAME")).hint(hint()));
        };
        let is_listed = known().any(|known| known == name);
        if known().next().is_some() && !known().any(|known| self::provider(known) == Some(provider)) {
            let message = format!("no provider of {shown} is configured");
            return Err(Failure::new(Kind::NotFound, message).hint(hint()));
        }
        let doubt = if is_listed { String::new() } else { format!("; it is not listed: {}", hint()) };
        name.clone_into(&mut self.conversation.model);
        "/model".clone_into(&mut self.conversation.model_source);
        self.printer().sentence(&format!("now asking {shown}{doubt}"));
        Ok(())
    }

    /// Gets the list of models, unless it is there. It is only for convenience: without it, nothing fails.
    async fn load_models(&mut self) {
        if self.conversation.output.models.is_empty() {
            let listed = models::list_within(&self.conversation.backend, PRICES_TIMEOUT).await;
            self.conversation.output.models = listed.unwrap_or_default();
        }
    }

    fn instruct(&mut self, text: Option<&str>) {
        let told = match (text, &self.transcript.system) {
            (None, Some(system)) => format!("system prompt: {}", sanitize::line(system)),
            (None, None) => "there is no system prompt".to_owned(),
            (Some(NOTHING), _) => {
                self.transcript.system = None;
                "the system prompt is removed".to_owned()
            }
            (Some(text), _) => {
                self.transcript.system = Some(text.to_owned());
                "the system prompt is set".to_owned()
            }
        };
        self.printer().sentence(&told);
    }
}

/// The provider in a model's identifier; `None` if it is none.
fn provider(model: &str) -> Option<&str> {
    model_id::parse(model).map(|(provider, _)| provider)
}
