//! The output of an evaluation: each statement once its turn has come, then the figures.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::dataset::{Item, Label};
use super::score::{ModelScore, Rate, Score, judged};
use super::{Plan, StatementOutcome};
use crate::api::verify::VerifyResponse;
use crate::cli;
use crate::cli::exit::{Failure, Kind};
use crate::cli::humanize::{counted, dollars, seconds, thousands};
use crate::cli::sanitize;
use crate::cli::tabular::{self, Column, column, number, unbroken};
use crate::cli::term::Style;
use crate::cli::verify::batch_display::BatchDisplay;
use crate::cli::verify::json::milliseconds;
use crate::cli::verify::verdict;
use crate::cli::wrap::{cut, wrap};

/// The result for a statement and how long it took, or why it failed.
type Outcome = Result<(VerifyResponse, Duration), Failure>;

/// The indent of the text below a headline.
const INDENT: &str = "   ";

/// Prints statements in dataset order, and sums them up.
pub(super) struct Report<'a> {
    plan: &'a Plan,
    /// The number of statements to report.
    all: usize,
    score: Score,
    failed: usize,
    worst: u8,
    /// The first statement that failed, or the one that ended the rest, and why.
    failure: Option<(String, Failure)>,
    entries: Vec<Value>,
    /// Outcomes that wait for an earlier one to be printed.
    waiting: BTreeMap<usize, StatementOutcome>,
    printed: usize,
}

impl<'a> Report<'a> {
    /// An empty report for this many statements.
    pub(super) fn new(plan: &'a Plan, all: usize) -> Self {
        Self {
            plan,
            all,
            score: Score::new(),
            failed: 0,
            worst: 0,
            failure: None,
            entries: Vec::new(),
            waiting: BTreeMap::new(),
            printed: 0,
        }
    }

    /// Adds a statement.
    pub(super) fn take(
        &mut self,
        done: StatementOutcome,
        display: &RefCell<BatchDisplay<'_>>,
    ) -> Result<(), Failure> {
        match &done.outcome {
            None => {}
            Some(Ok((result, _))) => self.score.add(done.item.expected, result),
            Some(Err(failure)) => {
                self.failed += 1;
                self.worst = verdict::worse(self.worst, failure.kind.code());
            }
        }
        display.borrow_mut().count(self.score.verified(), self.failed, String::new());
        self.waiting.insert(done.index, done);
        while let Some(next) = self.waiting.remove(&self.printed) {
            self.printed += 1;
            self.show(next, Some(display))?;
        }
        Ok(())
    }

    fn show(
        &mut self,
        done: StatementOutcome,
        display: Option<&RefCell<BatchDisplay<'_>>>,
    ) -> Result<(), Failure> {
        let Some(outcome) = done.outcome else { return Ok(()) };
        let printer = &self.plan.printer;
        let lines = if self.plan.json {
            self.entries.push(entry(&done.item, &outcome));
            Vec::new()
        } else if printer.terminal.out.is_terminal {
            self.for_people(&done.item, &outcome)
        } else {
            vec![plain(&done.item, &outcome)]
        };
        if let Err(failure) = outcome
            && (self.failure.is_none() || done.ends_evaluation)
        {
            self.failure = Some((done.item.at.name(), failure));
        }
        let print = || lines.iter().try_for_each(|line| printer.line(line));
        match display {
            Some(display) => {
                display.borrow_mut().make_way();
                display.borrow().suspended(print)
            }
            None => print(),
        }
    }

    /// The lines on a statement, if it is wrong or failed; correct ones need no reading.
    fn for_people(&self, item: &Item, outcome: &Outcome) -> Vec<String> {
        let terminal = &self.plan.printer.terminal;
        let symbols = terminal.symbols;
        let (style, symbol, what) = match outcome {
            Ok((result, _)) if judged(result) == item.expected => return Vec::new(),
            Ok((result, _)) => {
                let what = format!("said {}, is {}", judged(result), item.expected);
                match judged(result) {
                    Label::NoConsensus | Label::Nothing => (Style::Open, symbols.open, what),
                    Label::True | Label::False => (Style::False, symbols.no, what),
                }
            }
            Err(failure) => (Style::Open, symbols.skipped, format!("not verified: {}", failure.message)),
        };
        let fits = |text: &str| {
            let text = symbols.adapt(sanitize::line(text).into_owned().into());
            cut(&text, terminal.width.saturating_sub(INDENT.len() + 1), symbols.cut)
        };
        let headline = fits(&format!("{}: {what}", item.at.name()));
        vec![
            format!("{}  {headline}", terminal.out.paint.apply(style, symbol)),
            format!("{INDENT}{}", fits(&item.fact)),
        ]
    }

    /// Prints the figures. The exit code is the worst of the failures, or tells that too few were right.
    pub(super) fn finish(mut self, elapsed: Duration) -> cli::exit::Outcome {
        let printer = &self.plan.printer;
        let short = self.too_few_right();
        if self.worst == 0 && short.is_some() {
            self.worst = Kind::Other.code();
        }
        if self.plan.json {
            printer.document(&self.document(elapsed))?;
        } else {
            self.print_figures(elapsed)?;
        }
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
        if let Some(failure) = short {
            printer.failure(&failure);
        }
        Ok(self.worst)
    }

    /// Prints what was found before an interrupt, or attaches it to the failure for its JSON document.
    pub(super) fn break_off(mut self, interrupted: Failure, elapsed: Duration) -> Result<Failure, Failure> {
        for (_, done) in std::mem::take(&mut self.waiting) {
            self.show(done, None)?;
        }
        if self.plan.json {
            self.worst = interrupted.kind.code();
            return Ok(interrupted.with_partial(self.document(elapsed)));
        }
        self.print_figures(elapsed)?;
        Ok(interrupted)
    }

    fn not_asked(&self) -> usize {
        self.all.saturating_sub(self.score.verified() + self.failed)
    }

    fn too_few_right(&self) -> Option<Failure> {
        let min_accuracy = self.plan.min_accuracy?;
        let right = self.score.right();
        let found = match right.total {
            0 => "nothing was verified".to_owned(),
            _ => format!("right were {}", shown(right)),
        };
        let message = format!("{found}; --min-accuracy asks for {min_accuracy} %");
        (!right.reaches(min_accuracy)).then(|| Failure::new(Kind::Other, message))
    }

    /// Prints the figures: with the results on a terminal, to standard error otherwise.
    fn print_figures(&self, elapsed: Duration) -> Result<(), Failure> {
        let printer = &self.plan.printer;
        let lines = self.figures(elapsed);
        if printer.terminal.out.is_terminal {
            return lines.iter().try_for_each(|line| printer.line(line));
        }
        for line in &lines {
            printer.notice(line);
        }
        Ok(())
    }

    fn figures(&self, elapsed: Duration) -> Vec<String> {
        let printer = &self.plan.printer;
        let mut lines = Vec::new();
        if self.score.verified() > self.score.right().hits || self.failed > 0 {
            lines.push(String::new());
        }
        if self.score.verified() > 0 {
            for (columns, rows) in [self.matrix(), self.models()] {
                if !rows.is_empty() {
                    lines.extend(tabular::table(printer, &columns, &rows));
                    lines.push(String::new());
                }
            }
            lines.extend(tabular::labelled_lines(printer, &self.rates()));
            lines.push(String::new());
        }
        let summary = self.summary(elapsed);
        lines.extend(wrap(&printer.terminal.symbols.adapt(summary.into()), printer.terminal.width));
        lines
    }

    /// The confusion matrix: what is expected by row, what was said by column, without empty rows and columns.
    fn matrix(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let score = &self.score;
        let is_said = |judged: &Label| Label::ALL.iter().any(|expected| score.count(*expected, *judged) > 0);
        let always = |label: &Label| *label != Label::Nothing;
        let judged: Vec<Label> =
            Label::ALL.into_iter().filter(|label| always(label) || is_said(label)).collect();
        let columns = [unbroken("expected")]
            .into_iter()
            .chain(judged.iter().map(|label| number(heading(*label))))
            .collect();
        let row = |expected: Label| {
            let counts = judged.iter().map(|judged| score.count(expected, *judged));
            let is_empty = counts.clone().sum::<usize>() == 0;
            let texts = counts.map(|count| count.to_string());
            (!is_empty).then(|| [expected.to_string()].into_iter().chain(texts).collect())
        };
        (columns, Label::ALL.into_iter().filter_map(row).collect())
    }

    fn models(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let columns = ["asked", "right", "wrong", "cannot tell", "no answer"].map(number);
        let columns = [column("model")].into_iter().chain(columns).chain([number("right, %")]).collect();
        let row = |(name, score): (&String, &ModelScore)| {
            let counts = [score.rate().total, score.right, score.wrong, score.cannot_tell, score.no_answer];
            let texts = counts.map(|count| count.to_string());
            let percent = score.rate().percent().map_or_else(String::new, |percent| format!("{percent:.1}"));
            [name.clone()].into_iter().chain(texts).chain([percent]).collect()
        };
        (columns, self.score.models.iter().map(row).collect())
    }

    /// Each rate with its name, if it is a share of anything.
    fn rates(&self) -> Vec<(&'static str, String)> {
        let score = &self.score;
        let rates = [
            ("right", score.right()),
            ("decided", score.decided()),
            ("right when decided", score.right_when_decided()),
            ("FALSE found", score.false_found()),
            ("FALSE passed as TRUE", score.false_passed()),
            ("TRUE called FALSE", score.true_called_false()),
        ];
        rates.into_iter().filter(|(_, rate)| rate.total > 0).map(|(name, rate)| (name, shown(rate))).collect()
    }

    /// `40 statements: 35 right, 4 wrong, 1 failed · 1 m 02 s · 41,220 tokens · $0.0412`
    fn summary(&self, elapsed: Duration) -> String {
        let score = &self.score;
        let right = score.right();
        let some =
            |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
        let mut parts = vec![format!(
            "{}: {} right{}{}{}",
            counted(self.all, "statement"),
            right.hits,
            some(right.total - right.hits, "wrong"),
            some(self.failed, "failed"),
            some(self.not_asked(), "not asked"),
        )];
        parts.push(seconds(elapsed));
        parts.push(format!("{} tokens", thousands(score.tokens)));
        if !score.is_sandbox && right.total > 0 {
            parts.push(score.cost_usd.map_or_else(|| "cost unknown".to_owned(), dollars));
        }
        parts.join(self.plan.printer.terminal.symbols.between)
    }

    fn document(&self, elapsed: Duration) -> Value {
        let score = &self.score;
        let judged = |expected: Label| -> Value {
            let counts =
                Label::ALL.iter().map(|judged| (judged.to_string(), json!(score.count(expected, *judged))));
            Value::Object(counts.collect())
        };
        let matrix = Label::ALL.iter().map(|expected| (expected.to_string(), judged(*expected)));
        let model = |(name, score): (&String, &ModelScore)| {
            json!({
                "model": name,
                "right": score.right,
                "wrong": score.wrong,
                "cannot_tell": score.cannot_tell,
                "no_answer": score.no_answer,
                "accuracy": score.rate(),
            })
        };
        let mut document = json!({
            "schema": "mk.eval/1",
            "exit": self.worst,
            "elapsed_ms": milliseconds(elapsed),
            "statements": self.all,
            "verified": score.verified(),
            "failed": self.failed,
            "not_asked": self.not_asked(),
            "min_accuracy": self.plan.min_accuracy,
            "accuracy": score.right(),
            "decided": score.decided(),
            "accuracy_when_decided": score.right_when_decided(),
            "false_found": score.false_found(),
            "false_passed_as_true": score.false_passed(),
            "true_called_false": score.true_called_false(),
            "matrix": matrix.collect::<serde_json::Map<_, _>>(),
            "models": score.models.iter().map(model).collect::<Vec<_>>(),
            "tokens": score.tokens,
            "cost_usd": score.cost_usd,
            "results": self.entries,
        });
        if let Some((_, failure)) = &self.failure {
            document["error"] = failure.document()["error"].take();
        }
        if score.is_sandbox {
            document["mode"] = json!("sandbox");
        }
        document
    }
}

/// The heading of the column for what was said.
const fn heading(label: Label) -> &'static str {
    match label {
        Label::True => "said TRUE",
        Label::False => "said FALSE",
        Label::NoConsensus => "no consensus",
        Label::Nothing => "nothing",
    }
}

/// `35 total 40, 87.5 % (73.9 to 94.5)`: a share with its 95 % confidence interval.
fn shown(rate: Rate) -> String {
    let count = format!("{} of {}", rate.hits, rate.total);
    match rate.percent().zip(rate.interval()) {
        Some((percent, (low, high))) => format!("{count}, {percent:.1} % ({low:.1} to {high:.1})"),
        None => count,
    }
}

/// `7<TAB>WRONG<TAB>FALSE<TAB>TRUE<TAB>id<TAB>text`
fn plain(item: &Item, outcome: &Outcome) -> String {
    let (verdict, second) = match outcome {
        Ok((result, _)) if judged(result) == item.expected => ("RIGHT", judged(result).as_word()),
        Ok((result, _)) => ("WRONG", judged(result).as_word()),
        Err(failure) => ("ERROR", failure.kind.as_str()),
    };
    let id = match &item.id {
        Some(Value::String(id)) => id.clone(),
        Some(id) => id.to_string(),
        None => "-".to_owned(),
    };
    let fields = [&item.at.label(), verdict, item.expected.as_word(), second, &id, &item.fact];
    fields.map(|field| sanitize::line(field).into_owned()).join("\t")
}

/// The entry for a statement in `--json`.
fn entry(item: &Item, outcome: &Outcome) -> Value {
    let mut entry = json!(item.at);
    entry["id"] = json!(item.id);
    entry["fact"] = json!(item.fact);
    entry["expected"] = json!(item.expected);
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
    let judged = judged(result);
    json!({
        "said": judged,
        "right": judged == expected,
        "elapsed_ms": milliseconds(elapsed),
        "requestId": result.request_id,
        "claims": result.results,
        "skipped": result.skipped,
        "tokenUsage": result.token_usage,
    })
}
