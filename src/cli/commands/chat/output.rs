//! Prints an answer: its text as it arrives and then its usage and cost, or one document.

use std::cell::Cell;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::Answer;
use super::word_wrap::WordWrap;
use crate::api::guard::{AnswerVerification, VerdictCounts};
use crate::api::models::Model;
use crate::api::verify::Assessment;
use crate::cli::process::exit::Failure;
use crate::cli::target::embedded::SANDBOX_BANNER;
use crate::cli::terminal::humanize::{dollars, seconds, thousands};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::{Live, Mode};
use crate::cli::terminal::sanitize;
use crate::client::Piece;

const SCHEMA: &str = "mk.chat/1";

/// Output settings shared by all answers of a command.
pub(crate) struct Output<'a> {
    printer: &'a Printer,
    mode: Mode,
    /// The models with their prices, as far as known.
    pub(crate) models: Vec<Model>,
    has_announced_sandbox: Cell<bool>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(printer: &'a Printer, mode: Mode, has_announced_sandbox: bool) -> Self {
        Self { printer, mode, models: Vec::new(), has_announced_sandbox: Cell::new(has_announced_sandbox) }
    }

    /// Shows what (sanitized) is awaited, until the returned value is dropped.
    pub(crate) fn wait(&self, what: &str) -> Live<'a> {
        let live = Live::begin(self.printer, self.mode);
        live.line(what);
        live.draw(vec![format!("{what}{}", self.printer.terminal.symbols.cut)]);
        live
    }

    /// A writer for an answer that waits for `model` (sanitized); if `is_mute`, the text is not printed.
    pub(crate) fn writer(&self, model: &str, is_mute: bool) -> AnswerWriter<'_> {
        let waiting = self.wait(&format!("Waiting for {model}"));
        let terminal = &self.printer.terminal;
        let wrap = terminal.out.is_terminal.then(|| WordWrap::new(self.columns(), terminal.can_animate));
        AnswerWriter { output: self, waiting: Some(waiting), is_mute, wrap, is_in_line: false }
    }

    /// The columns for an answer: those of now, as the terminal may have become narrower during a conversation.
    fn columns(&self) -> usize {
        let now = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
        now.map_or(self.printer.terminal.width, |now| now.min(self.printer.terminal.width))
    }

    /// Reports what a person should know about an answer that has ended, asked for with this many tokens at most.
    pub(crate) fn epilogue(&self, answer: &Answer, max_tokens: Option<u32>) {
        match answer.finish_reason.as_deref() {
            Some("length") => self.printer.warning(&match max_tokens {
                Some(limit) => format!("the answer was cut off at --max-tokens {limit}"),
                None => "the answer was cut off at the model's own limit (finish_reason: length); a higher \
                    --max-tokens may help"
                    .to_owned(),
            }),
            Some("content_filter") => self
                .printer
                .warning("the provider withheld all or part of the answer (finish_reason: content_filter)"),
            _ => {}
        }
        let found = answer.verification.as_ref().map(AnswerVerification::deserialize);
        match found {
            None => {}
            Some(Ok(found)) => self.verification(&found),
            Some(Err(_)) => {
                self.printer.warning("the verdicts on this answer cannot be read; --json shows them");
            }
        }
        self.printer.notice(&self.usage_line(answer));
    }

    /// Reports what the server found about an answer that it verified.
    fn verification(&self, found: &AnswerVerification) {
        if let Some(error) = &found.error {
            let why = sanitize::line(&error.message);
            self.printer.warning(&format!("the answer could not be verified: {why}"));
            return;
        }
        for claim in &found.claims {
            let text = sanitize::line(&claim.claim);
            let instead = claim.correction.as_deref().map(sanitize::line);
            let instead = instead.map(|instead| format!("; the models say: {instead}")).unwrap_or_default();
            match claim.assessment {
                Assessment::True => {}
                verdict => self.printer.warning(&format!("{verdict}: {text}{instead}")),
            }
        }
        let VerdictCounts { true_, false_, no_consensus, unchecked } = found.counts;
        let counts =
            [(true_, "TRUE"), (false_, "FALSE"), (no_consensus, "NO CONSENSUS"), (unchecked, "not checked")];
        let counts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let counts = if counts.is_empty() { "no claims to check".to_owned() } else { counts.join(", ") };
        self.printer.notice(&format!("verified: {counts}"));
    }

    /// `openai/gpt-5.4-mini · 1,234 tokens · $0.0031 · 2.4 s`
    fn usage_line(&self, answer: &Answer) -> String {
        let mut parts = vec![sanitize::line(&answer.model).into_owned()];
        if let Some(usage) = answer.usage {
            let about = if usage.estimated { "about " } else { "" };
            parts.push(format!("{about}{} tokens", thousands(usage.total_tokens)));
        }
        parts.extend(self.cost(answer).map(dollars));
        parts.push(seconds(answer.elapsed));
        parts.join(self.printer.terminal.symbols.between)
    }

    /// The cost in dollars, if the model's price is known. Simulated answers cost nothing, which says nothing.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show; the server keeps the books")]
    fn cost(&self, answer: &Answer) -> Option<f64> {
        let usage = answer.usage.filter(|_| !answer.is_sandbox)?;
        let model = self.models.iter().find(|model| model.id == answer.model)?;
        let (input, output) = (model.input_usd_per_mtok?, model.output_usd_per_mtok?);
        let prompt = usage.prompt_tokens as f64 * input;
        Some((prompt + usage.completion_tokens as f64 * output) / 1_000_000.0)
    }
}

/// Prints one answer. Dropping it ends the line in which an answer broke off.
pub(crate) struct AnswerWriter<'a> {
    output: &'a Output<'a>,
    waiting: Option<Live<'a>>,
    is_mute: bool,
    /// Breaks lines for a terminal.
    wrap: Option<WordWrap>,
    is_in_line: bool,
}

impl AnswerWriter<'_> {
    /// Prints a piece.
    pub(crate) fn piece(&mut self, piece: &Piece) -> Result<(), Failure> {
        if piece.is_sandbox && !self.output.has_announced_sandbox.replace(true) {
            self.waiting = None;
            self.output.printer.notice(SANDBOX_BANNER);
        }
        if piece.text.is_empty() || self.is_mute {
            return Ok(());
        }
        self.waiting = None;
        let text = sanitize::lines(&piece.text);
        if text.is_empty() {
            return Ok(());
        }
        self.is_in_line = !text.ends_with('\n');
        match &mut self.wrap {
            Some(wrap) => self.output.printer.part(&wrap.push(&text)),
            None => self.output.printer.part(&text),
        }
    }

    /// Ends the last line, if the answer did not.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.waiting = None;
        if !std::mem::take(&mut self.is_in_line) {
            return Ok(());
        }
        let rest = self.wrap.as_mut().map(WordWrap::end).unwrap_or_default();
        self.output.printer.part(&format!("{rest}\n"))
    }
}

impl Drop for AnswerWriter<'_> {
    fn drop(&mut self) {
        // If nobody reads it, the failure that led here says so.
        let _ = self.end();
    }
}

/// The `--json` document: an answer, or with `failure` what arrived of one.
pub(crate) fn document(answer: &Answer, failure: Option<&Failure>) -> Value {
    let mut document = json!({
        "schema": SCHEMA,
        "exit": failure.map_or(0, |failure| failure.kind.code()),
        "model": answer.model,
        "message": { "role": "assistant", "content": answer.text },
        "finish_reason": answer.finish_reason,
        "usage": answer.usage,
        "elapsed_ms": u64::try_from(answer.elapsed.as_millis()).unwrap_or(u64::MAX),
    });
    if answer.is_sandbox {
        document["mode"] = json!("sandbox");
    }
    if let Some(found) = &answer.verification {
        document["mk_verification"] = found.clone();
    }
    if let Some(failure) = failure {
        document["error"] = failure.document()["error"].take();
    }
    document
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::chat::ChatUsage;
    use crate::cli::process::exit::Kind;
    use crate::cli::terminal::term::{Paint, Terminal};

    fn answer() -> Answer {
        Answer {
            model: "a/b".to_owned(),
            text: "Hi".to_owned(),
            finish_reason: Some("stop".to_owned()),
            usage: Some(ChatUsage {
                prompt_tokens: 1000,
                completion_tokens: 234,
                total_tokens: 1234,
                estimated: false,
            }),
            begun: None,
            elapsed: Duration::from_millis(2440),
            is_sandbox: false,
            verification: None,
        }
    }

    fn line(change: impl FnOnce(&mut Answer, &mut Model)) -> String {
        let printer = Printer { terminal: Terminal::test(80, Paint::Plain), quiet: false, verbose: false };
        let mut output = Output::new(&printer, Mode::None, false);
        let mut model = Model {
            id: "a/b".to_owned(),
            input_usd_per_mtok: Some(1.0),
            output_usd_per_mtok: Some(10.0),
            ..Model::default()
        };
        let mut answer = answer();
        change(&mut answer, &mut model);
        output.models = vec![model];
        output.usage_line(&answer)
    }

    #[test]
    fn the_usage_line_only_says_what_is_known() {
        assert_eq!(line(|_, _| {}), "a/b · 1,234 tokens · $0.0033 · 2.4 s");
        assert_eq!(line(|_, model| model.output_usd_per_mtok = None), "a/b · 1,234 tokens · 2.4 s");
        assert_eq!(line(|_, model| model.id = "a/c".to_owned()), "a/b · 1,234 tokens · 2.4 s");
        assert_eq!(line(|answer, _| answer.is_sandbox = true), "a/b · 1,234 tokens · 2.4 s");
        assert_eq!(line(|answer, _| answer.usage = None), "a/b · 2.4 s");
        let estimated = line(|answer, _| answer.usage.as_mut().unwrap().estimated = true);
        assert_eq!(estimated, "a/b · about 1,234 tokens · $0.0033 · 2.4 s");
    }

    #[test]
    fn a_document_shows_whether_the_answer_is_complete() {
        let whole = document(&answer(), None);
        assert_eq!((&whole["schema"], &whole["exit"]), (&json!(SCHEMA), &json!(0)));
        assert_eq!(whole["message"], json!({"role": "assistant", "content": "Hi"}));
        assert_eq!((whole.get("error"), whole.get("mode")), (None, None));
        let failure = Failure::new(Kind::Incomplete, "it broke off");
        let part = document(&Answer { finish_reason: None, is_sandbox: true, ..answer() }, Some(&failure));
        assert_eq!((&part["exit"], &part["error"]["kind"]), (&json!(8), &json!("incomplete")));
        assert_eq!((&part["finish_reason"], &part["mode"]), (&Value::Null, &json!("sandbox")));
    }
}
