//! The output of an evaluation: each statement once its turn has come, then the figures.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Plan;
use super::dataset::Item;
use super::evaluation::{Done, Outcome, Task};
use super::figures::{Figures, PanelModel};
use super::gates::Judged;
use super::label::Label;
use super::reports::document::{self, fields};
use super::reports::text::{Text, id_text, shown, two_lines};
use super::score::{Rate, Score, said};
use super::target::PrecisionTarget;
use crate::api::verify::VerifyResponse;
use crate::cli;
use crate::cli::commands::verify::output::batch_display::BatchDisplay;
use crate::cli::commands::verify::output::json::milliseconds;
use crate::cli::commands::verify::verdict;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::humanize::{counted, dollars, seconds, thousands, time_left};
use crate::cli::terminal::tabular;
use crate::cli::terminal::term::Style;

/// Prints statements in the order in which they are asked, and sums them up.
pub(super) struct Report<'a> {
    plan: &'a Plan,
    /// The number of statements to report.
    all: usize,
    begun: Instant,
    score: Score,
    /// What of it was spent before.
    before: Score,
    /// How many verifications succeeded, and how many of these are known from before.
    succeeded: usize,
    known: usize,
    failed: usize,
    worst: u8,
    /// The first statement that failed, or the one that ended the rest, and why.
    failure: Option<(String, Failure)>,
    /// How many statements were not wholly asked without options, the first of them, and why.
    not_opened: usize,
    open_failure: Option<(String, Failure)>,
    entries: Vec<Value>,
    /// Outcomes that wait for an earlier one to be printed.
    waiting: BTreeMap<usize, Done<'a>>,
    printed: usize,
}

impl<'a> Report<'a> {
    /// An empty report for this many statements.
    pub(super) fn new(plan: &'a Plan, all: usize) -> Self {
        Self {
            plan,
            all,
            begun: Instant::now(),
            score: Score::new(),
            before: Score::new(),
            succeeded: 0,
            known: 0,
            failed: 0,
            worst: 0,
            failure: None,
            not_opened: 0,
            open_failure: None,
            entries: Vec::new(),
            waiting: BTreeMap::new(),
            printed: 0,
        }
    }

    /// How many verifications there are in all.
    pub(super) fn tasks(&self) -> usize {
        self.all.saturating_mul(usize::try_from(self.plan.repeat).unwrap_or(usize::MAX))
    }

    /// Adds a statement.
    pub(super) fn take(
        &mut self,
        mut done: Done<'a>,
        display: &RefCell<BatchDisplay<'_>>,
    ) -> Result<(), Failure> {
        match &done.outcome {
            None => {}
            Some(Ok((result, _))) => {
                self.succeeded += 1;
                self.known += usize::from(done.is_known);
                let opened = done.opened.as_ref().map(|(opened, _)| opened);
                self.score.add(done.task.item, done.task.run, result, opened);
                if done.is_known {
                    self.before.spend(result);
                }
                if let Some(opened) = opened.filter(|_| done.is_opened_known) {
                    self.before.spend_openly(opened);
                }
            }
            Some(Err(failure)) => {
                self.failed += 1;
                self.worst = verdict::worse(self.worst, failure.kind.code());
            }
        }
        if let Some((_, Some(failure))) = &mut done.opened {
            self.worst = verdict::worse(self.worst, failure.kind.code());
            self.not_opened += 1;
        }
        if let Some((_, failure)) = &mut done.opened
            && let Some(failure) = failure.take()
        {
            self.open_failure.get_or_insert_with(|| (done.task.item.at.name(), failure));
        }
        display.borrow_mut().count(self.succeeded, self.failed, self.so_far());
        self.waiting.insert(done.task.index, done);
        while let Some(next) = self.waiting.remove(&self.printed) {
            self.printed += 1;
            self.show(next, Some(display))?;
        }
        Ok(())
    }

    /// `82 % right · $0.0123 · 2 m 10 s left`: what is known so far.
    fn so_far(&self) -> String {
        let score = &self.score;
        let right = score.matrix.right().percent().map(|percent| format!("{percent:.0} % right"));
        let cost = self.cost_now().filter(|_| !score.is_sandbox).map(dollars);
        let done = self.succeeded + self.failed;
        let missing = self.tasks().saturating_sub(done);
        let left = time_left(self.begun.elapsed(), done - self.known, missing);
        let between = self.plan.printer.terminal.symbols.between;
        [right, cost, left].into_iter().flatten().collect::<Vec<_>>().join(between)
    }

    fn show(&mut self, done: Done<'a>, display: Option<&RefCell<BatchDisplay<'_>>>) -> Result<(), Failure> {
        let Some(outcome) = done.outcome else { return Ok(()) };
        let Task { item, run, .. } = done.task;
        let printer = &self.plan.printer;
        if self.plan.json || !self.plan.reports.is_empty() {
            let run = (self.plan.repeat > 1).then_some(run);
            let mut entry = entry(item, run, &outcome);
            if let Some((opened, _)) = &done.opened {
                entry["open"] = json!(opened);
            }
            self.entries.push(entry);
        }
        let is_repeated = run > 0
            && outcome.as_ref().is_ok_and(|(result, _)| {
                self.score.flips.first(item.number).is_none_or(|first| first == said(result))
            });
        let lines = if self.plan.json || is_repeated {
            Vec::new()
        } else if printer.terminal.out.is_terminal {
            self.for_people(done.task, &outcome)
        } else {
            vec![plain(done.task, &outcome)]
        };
        if let Err(failure) = outcome
            && (self.failure.is_none() || done.ends_evaluation)
        {
            self.failure = Some((item.at.name(), failure));
        }
        match display {
            Some(display) => display.borrow().live.print(&lines),
            None => lines.iter().try_for_each(|line| printer.line(line)),
        }
    }

    /// The lines on a statement, if it is wrong or failed; correct ones need no reading.
    fn for_people(&self, Task { item, run, .. }: Task<'_>, outcome: &Outcome) -> Vec<String> {
        let terminal = &self.plan.printer.terminal;
        let symbols = terminal.symbols;
        let (style, symbol, what) = match outcome {
            Ok((result, _)) if run > 0 => {
                (Style::Open, symbols.open, format!("run {} said {}", run + 1, said(result)))
            }
            Ok((result, _)) if said(result) == item.expected => return Vec::new(),
            Ok((result, _)) => {
                let what = format!("said {}, is {}", said(result), item.expected);
                match said(result) {
                    Label::NoConsensus | Label::Nothing | Label::Unchecked => {
                        (Style::Open, symbols.open, what)
                    }
                    Label::True | Label::False => (Style::False, symbols.no, what),
                }
            }
            Err(failure) => (Style::Open, symbols.skipped, format!("not verified: {}", failure.message)),
        };
        let headline = format!("{}: {what}", item.at.name());
        two_lines(terminal, (style, symbol), &headline, &item.fact).into()
    }

    /// Prints the figures. The exit code tells that a gate was missed, or else the worst of the failures. Where nothing
    /// was verified, the failures are the reason.
    pub(super) fn finish(mut self, elapsed: Duration) -> cli::exit::Outcome {
        let printer = &self.plan.printer;
        let judged = self.plan.gates.judge(&self.score.matrix);
        let missed: Vec<Failure> = judged.iter().filter_map(Judged::failure).collect();
        if !missed.is_empty() && (self.worst == 0 || self.score.verified() > 0) {
            self.worst = Kind::Other.code();
        }
        if self.plan.json {
            printer.document(&self.document(elapsed))?;
        } else {
            self.print_figures(elapsed)?;
        }
        self.write_reports(elapsed)?;
        let not_asked = self.not_asked();
        if let Some((name, failure)) = self.failure {
            let were = |count: usize| {
                format!("{} {}", counted(count, "statement"), if count == 1 { "was" } else { "were" })
            };
            let mut message = format!("{} not verified; {name}: {}", were(self.failed), failure.message);
            if not_asked > 0 {
                message = format!("{message}; {} not asked", were(not_asked));
            }
            printer.failure(&Failure { message, ..failure });
        }
        if let Some((name, failure)) = self.open_failure {
            let all = counted(self.not_opened, "statement");
            let message = format!("{all} not wholly asked without options; {name}: {}", failure.message);
            printer.failure(&Failure { message, ..failure });
        }
        for failure in &missed {
            printer.failure(failure);
        }
        Ok(self.worst)
    }

    /// Prints what was found before an interrupt, or attaches it to the failure for its JSON document.
    pub(super) fn break_off(mut self, interrupted: Failure, elapsed: Duration) -> Result<Failure, Failure> {
        for (_, done) in std::mem::take(&mut self.waiting) {
            self.show(done, None)?;
        }
        self.write_reports(elapsed)?;
        if self.plan.json {
            self.worst = interrupted.kind.code();
            return Ok(interrupted.with_partial(self.document(elapsed)));
        }
        self.print_figures(elapsed)?;
        if self.succeeded > 0 {
            self.plan.printer.notice(if self.plan.is_kept {
                "the answers are kept: run the same command again to continue"
            } else {
                "use --resume FILE to keep the answers and continue in the next run"
            });
        }
        Ok(interrupted)
    }

    fn write_reports(&self, elapsed: Duration) -> Result<(), Failure> {
        if self.plan.reports.is_empty() {
            return Ok(());
        }
        let document = self.document(elapsed);
        self.plan.reports.iter().try_for_each(|report| report.write(&document))
    }

    fn not_asked(&self) -> usize {
        self.tasks().saturating_sub(self.succeeded + self.failed)
    }

    fn print_figures(&self, elapsed: Duration) -> Result<(), Failure> {
        let mut text = Text::new(&self.plan.printer);
        if self.score.verified() > self.score.matrix.right().hits || self.failed > 0 {
            text.lines.push(String::new());
        }
        if self.score.verified() > 0 {
            let figures = Figures::of(&self.score);
            let target =
                self.plan.gates.target_precision.map(|percent| PrecisionTarget::new(&figures, percent));
            text.figures(&self.score.matrix, &figures, target.as_ref());
            text.labelled("From run to run", &self.flips(&figures));
        }
        text.sentence(&self.summary(elapsed));
        text.print()
    }

    /// Which verdicts changed, if there were several runs.
    fn flips(&self, figures: &Figures) -> Vec<(&str, String)> {
        let flips = &self.score.flips;
        if flips.verdicts().total == 0 {
            return Vec::new();
        }
        let changed = |rate: Rate| format!("changed on {}", shown(rate));
        let models =
            figures.panel.iter().map(|model| (model.short.as_str(), changed(flips.model(model.number))));
        let votes = models.map(|(name, text)| ("a vote", format!("{name} {text}")));
        [("the verdict", changed(flips.verdicts()))].into_iter().chain(votes).collect()
    }

    /// `40 statements: 35 right, 4 wrong, 1 failed · 1 m 02 s · 41,220 tokens · $0.0412`
    fn summary(&self, elapsed: Duration) -> String {
        let score = &self.score;
        let right = score.matrix.right();
        let some =
            |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
        let mut parts = vec![format!(
            "{}: {} right{}{}{}{}",
            counted(self.all, "statement"),
            right.hits,
            some(right.total - right.hits, "wrong"),
            some(self.failed, "failed"),
            some(self.known, "known before"),
            some(self.not_asked(), "not asked"),
        )];
        parts.push(seconds(elapsed));
        parts.push(format!("{} tokens", thousands(score.tokens.saturating_sub(self.before.tokens))));
        if !score.is_sandbox && right.total > 0 {
            parts.push(self.cost_now().map_or_else(|| "cost unknown".to_owned(), dollars));
        }
        if self.before.tokens > 0 {
            let cost = self.before.cost_usd.filter(|_| !score.is_sandbox).map(dollars);
            let cost = cost.map(|cost| format!(" and {cost}")).unwrap_or_default();
            parts.push(format!("before: {} tokens{cost}", thousands(self.before.tokens)));
        }
        parts.join(self.plan.printer.terminal.symbols.between)
    }

    /// What this run cost, in US dollars.
    fn cost_now(&self) -> Option<f64> {
        // Sums of the same numbers in another order differ in their last digits.
        self.score.cost_usd.zip(self.before.cost_usd).map(|(all, before)| (all - before).max(0.0))
    }

    fn document(&self, elapsed: Duration) -> Value {
        let score = &self.score;
        let judged = self.plan.gates.judge(&score.matrix);
        let figures = Figures::of(score);
        let target = self
            .plan
            .gates
            .target_precision
            .map(|percent| PrecisionTarget::new(&figures, percent).document());
        let mut document = fields(json!({
            "schema": "mk.eval/1",
            "exit": self.worst,
            "version": env!("CARGO_PKG_VERSION"),
            "date": self.plan.settings.date,
            "settings": self.plan.settings.document(&score.panels),
            "prompts": score.prompts,
            "elapsed_ms": milliseconds(elapsed),
            "statements": self.all,
            "verified": score.verified(),
            "failed": self.failed,
            "known_before": self.known,
            "not_asked": self.not_asked(),
            "min_accuracy": self.plan.gates.min_accuracy,
            "gates": judged.iter().map(Judged::document).collect::<Vec<_>>(),
            "target": target,
        }));
        document.extend(document::verdicts(&score.matrix));
        document.extend(document::figures(&figures));
        if self.plan.repeat > 1 {
            let flips = &score.flips;
            let model =
                |model: &PanelModel| json!({ "model": model.name, "flips": flips.model(model.number) });
            document.insert("flips".to_owned(), json!(flips.verdicts()));
            document.insert("model_flips".to_owned(), figures.panel.iter().map(model).collect());
        }
        document.extend(fields(json!({
            "tokens": score.tokens,
            "cost_usd": score.cost_usd,
            "tokens_before": self.before.tokens,
            "cost_usd_before": self.before.cost_usd,
            "results": self.entries,
        })));
        if let Some((_, failure)) = &self.failure {
            document.insert("error".to_owned(), failure.document()["error"].take());
        }
        if score.is_sandbox {
            document.insert("mode".to_owned(), json!("sandbox"));
        }
        Value::Object(document)
    }
}

/// `7<TAB>WRONG<TAB>FALSE<TAB>TRUE<TAB>id<TAB>text`
fn plain(Task { item, run, .. }: Task<'_>, outcome: &Outcome) -> String {
    let (verdict, second) = match outcome {
        Ok((result, _)) if run > 0 => ("FLIPPED", said(result).as_word()),
        Ok((result, _)) if said(result) == item.expected => ("RIGHT", said(result).as_word()),
        Ok((result, _)) => ("WRONG", said(result).as_word()),
        Err(failure) => ("ERROR", failure.kind.as_str()),
    };
    let id = id_text(item.id.as_ref().unwrap_or(&Value::Null));
    let fields = [&item.at.label(), verdict, item.expected.as_word(), second, &id, &item.fact];
    tabular::tab_separated(&fields)
}

/// The entry for a statement in `--json`.
fn entry(item: &Item, run: Option<u32>, outcome: &Outcome) -> Value {
    let mut entry = json!(item.at);
    if let Some(run) = run {
        entry["run"] = json!(run + 1);
    }
    entry["id"] = json!(item.id);
    entry["fact"] = json!(item.fact);
    entry["expected"] = json!(item.expected);
    entry["answer"] = json!(item.answer);
    entry["tags"] = json!(item.tags);
    let more = match outcome {
        Ok((result, elapsed)) => found(result, item.expected, *elapsed),
        Err(failure) => json!({ "error": failure.document()["error"].take() }),
    };
    if let (Value::Object(entry), Value::Object(more)) = (&mut entry, more) {
        entry.extend(more);
    }
    entry
}

fn found(result: &VerifyResponse, expected: Label, elapsed: Duration) -> Value {
    let label = said(result);
    json!({
        "said": label,
        "right": label == expected,
        "elapsed_ms": milliseconds(elapsed),
        "requestId": result.request_id,
        "claims": result.results,
        "skipped": result.skipped,
        "tokenUsage": result.token_usage,
    })
}
