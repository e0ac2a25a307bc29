//! What is printed of an evaluation: each statement as it is known, then the figures.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Value, json};

use super::dataset::Label;
use super::score::{ModelScore, Rate, Score, said};
use super::{Done, Plan};
use crate::api::verify::VerifyResponse;
use crate::cli::exit::{Failure, Kind, Outcome};
use crate::cli::figures::{counted, dollars, seconds, thousands};
use crate::cli::sanitize;
use crate::cli::sheet::{self, Column, column, number, whole};
use crate::cli::term::Look;
use crate::cli::verify::batch_display::BatchDisplay;
use crate::cli::verify::verdict;
use crate::cli::wrap::cut;

/// How far the text below a headline stands in.
const INDENT: &str = "   ";

/// Prints statements in their order, and sums them up.
pub(super) struct Report<'a, 'd> {
    plan: &'a Plan,
    display: &'a RefCell<BatchDisplay<'d>>,
    score: Score,
    entries: Vec<Value>,
    failed: usize,
    /// How many there are to take.
    all: usize,
    worst: u8,
    /// Why the others were not asked.
    stopped_by: Option<Failure>,
}

impl<'a, 'd> Report<'a, 'd> {
    /// Of nothing so far, and `all` statements to come.
    pub(super) fn new(plan: &'a Plan, display: &'a RefCell<BatchDisplay<'d>>, all: usize) -> Self {
        let (score, entries) = (Score::new(), Vec::new());
        Self { plan, display, score, entries, failed: 0, all, worst: 0, stopped_by: None }
    }

    /// Adds a statement. There is no point in the others once the key is refused, or its budget is used up.
    pub(super) fn take(&mut self, done: Done) -> Result<ControlFlow<()>, Failure> {
        self.count(&done);
        self.show(&done)?;
        match done.outcome {
            Err(failure) if failure.kind == Kind::Unauthorized => {
                self.stopped_by = Some(failure);
                Ok(ControlFlow::Break(()))
            }
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    fn count(&mut self, done: &Done) {
        match &done.outcome {
            Ok((result, _)) => self.score.add(done.item.expected, result),
            Err(failure) => {
                self.failed += 1;
                self.worst = verdict::worse(self.worst, failure.kind.code());
            }
        }
        self.display.borrow_mut().count(self.score.verified(), self.failed);
    }

    fn show(&mut self, done: &Done) -> Result<(), Failure> {
        if self.plan.json {
            self.entries.push(entry(done));
            return Ok(());
        }
        let lines = if self.plan.printer.terminal.out.is_terminal {
            self.for_people(done)
        } else {
            vec![plain(done)]
        };
        self.display.borrow_mut().make_way();
        let display = self.display.borrow();
        display.suspended(|| lines.iter().try_for_each(|line| self.plan.printer.line(line)))
    }

    /// What is not as it should be: those that are right need no reading.
    fn for_people(&self, done: &Done) -> Vec<String> {
        let terminal = &self.plan.printer.terminal;
        let (item, symbols) = (&done.item, terminal.symbols);
        let (look, symbol, what) = match &done.outcome {
            Ok((result, _)) if said(result) == item.expected => return Vec::new(),
            Ok((result, _)) => {
                let what = format!("said {}, is {}", said(result), item.expected);
                match said(result) {
                    Label::NoConsensus | Label::Nothing => (Look::Open, symbols.open, what),
                    Label::True | Label::False => (Look::False, symbols.no, what),
                }
            }
            Err(failure) => (Look::Open, symbols.skipped, format!("not verified: {}", failure.message)),
        };
        let fits = |text: &str| {
            let text = symbols.spelt(sanitize::line(text).into_owned().into());
            cut(&text, terminal.width.saturating_sub(INDENT.len() + 1), symbols.cut)
        };
        let headline = fits(&format!("{}: {what}", item.at.name()));
        vec![
            format!("{}  {headline}", terminal.out.paint.apply(look, symbol)),
            format!("{INDENT}{}", fits(&item.fact)),
        ]
    }

    /// Prints the figures. The exit code is the worst of what failed, or tells that too few were right.
    pub(super) fn finish(mut self, elapsed: Duration) -> Outcome {
        self.display.borrow_mut().end();
        let short = self.too_few_right();
        if self.worst == 0 && short.is_some() {
            self.worst = Kind::Other.code();
        }
        if self.plan.json {
            self.plan.printer.document(&self.document(elapsed))?;
        } else if self.plan.printer.terminal.out.is_terminal {
            self.figures(elapsed)?;
        } else {
            self.plan.printer.sentence(&self.summary(elapsed));
        }
        let not_asked = self.not_asked();
        if let Some(failure) = self.stopped_by.take() {
            let were = if not_asked == 1 { "was" } else { "were" };
            let rest = format!("{} {were} not asked", counted(not_asked, "statement"));
            let message =
                if not_asked > 0 { format!("{}; {rest}", failure.message) } else { failure.message };
            self.plan.printer.failure(&Failure { message, ..failure });
        }
        if let Some(failure) = short {
            self.plan.printer.failure(&failure);
        }
        Ok(self.worst)
    }

    fn not_asked(&self) -> usize {
        self.all.saturating_sub(self.score.verified() + self.failed)
    }

    fn too_few_right(&self) -> Option<Failure> {
        let least = self.plan.min_accuracy?;
        let right = self.score.right();
        let is_enough = right.percent().is_some_and(|percent| percent >= least);
        (!is_enough).then(|| {
            let right = shown(right);
            Failure::new(Kind::Other, format!("right were {right}; --min-accuracy asks for {least} %"))
        })
    }

    fn figures(&self, elapsed: Duration) -> Result<(), Failure> {
        let printer = &self.plan.printer;
        if self.score.verified() > self.score.right().hits || self.failed > 0 {
            printer.line("")?;
        }
        if self.score.verified() > 0 {
            let (columns, rows) = self.matrix();
            sheet::print(printer, &columns, &rows)?;
            sheet::end(printer, &columns, &rows)?;
            let (columns, rows) = self.models();
            if !rows.is_empty() {
                sheet::print(printer, &columns, &rows)?;
                sheet::end(printer, &columns, &rows)?;
            }
            sheet::record(printer, &self.rates())?;
            printer.line("")?;
        }
        let summary = self.summary(elapsed);
        crate::cli::wrap::wrap(&printer.terminal.symbols.spelt(summary.into()), printer.terminal.width)
            .iter()
            .try_for_each(|line| printer.line(line))
    }

    /// What statements are, by line, and what was said, by column; without columns and lines of nothing.
    fn matrix(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let score = &self.score;
        let is_said = |said: &Label| Label::ALL.iter().any(|expected| score.count(*expected, *said) > 0);
        let always = |label: &Label| *label != Label::Nothing;
        let said: Vec<Label> =
            Label::ALL.into_iter().filter(|label| always(label) || is_said(label)).collect();
        let columns =
            [whole("is")].into_iter().chain(said.iter().map(|label| number(heading(*label)))).collect();
        let row = |expected: Label| {
            let counts = said.iter().map(|said| score.count(expected, *said));
            let is_empty = counts.clone().sum::<usize>() == 0;
            let texts = counts.map(|count| count.to_string());
            (!is_empty).then(|| [expected.to_string()].into_iter().chain(texts).collect())
        };
        (columns, Label::ALL.into_iter().filter_map(row).collect())
    }

    fn models(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let columns = ["right", "wrong", "cannot tell", "no answer"].map(number);
        let columns = [column("model")].into_iter().chain(columns).chain([number("right, %")]).collect();
        let row = |(name, score): (&String, &ModelScore)| {
            let counts = [score.right, score.wrong, score.cannot_tell, score.no_answer];
            let texts = counts.map(|count| count.to_string());
            let percent = score.rate().percent().map_or_else(String::new, |percent| format!("{percent:.1}"));
            [name.clone()].into_iter().chain(texts).chain([percent]).collect()
        };
        (columns, self.score.models.iter().map(row).collect())
    }

    /// Each share by its name, where it is one of anything.
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
        rates.into_iter().filter(|(_, rate)| rate.of > 0).map(|(name, rate)| (name, shown(rate))).collect()
    }

    /// `40 statements: 35 right, 4 wrong, 1 failed · 3 models · 62 s · 41,220 tokens · $0.0412`
    fn summary(&self, elapsed: Duration) -> String {
        let score = &self.score;
        let right = score.right();
        let some =
            |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
        let mut parts = vec![format!(
            "{}: {} right{}{}{}",
            counted(self.all, "statement"),
            right.hits,
            some(right.of - right.hits, "not"),
            some(self.failed, "failed"),
            some(self.not_asked(), "not asked"),
        )];
        parts.push(seconds(elapsed));
        parts.push(format!("{} tokens", thousands(score.tokens)));
        if !score.is_sandbox && right.of > 0 {
            parts.push(score.cost_usd.map_or_else(|| "cost unknown".to_owned(), dollars));
        }
        parts.join(self.plan.printer.terminal.symbols.between)
    }

    fn document(&self, elapsed: Duration) -> Value {
        let score = &self.score;
        let said = |expected: Label| -> Value {
            let counts =
                Label::ALL.iter().map(|said| (said.to_string(), json!(score.count(expected, *said))));
            Value::Object(counts.collect())
        };
        let matrix = Label::ALL.iter().map(|expected| (expected.to_string(), said(*expected)));
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
        if score.is_sandbox {
            document["mode"] = json!("sandbox");
        }
        document
    }
}

/// A column's heading for what was said.
const fn heading(label: Label) -> &'static str {
    match label {
        Label::True => "said TRUE",
        Label::False => "said FALSE",
        Label::NoConsensus => "no consensus",
        Label::Nothing => "nothing",
    }
}

/// `35 of 40, 87.5 % (73.9 to 94.5)`
fn shown(rate: Rate) -> String {
    let count = format!("{} of {}", rate.hits, rate.of);
    match rate.percent().zip(rate.interval()) {
        Some((percent, (low, high))) => format!("{count}, {percent:.1} % ({low:.1} to {high:.1})"),
        None => count,
    }
}

/// `7<TAB>WRONG<TAB>FALSE<TAB>TRUE<TAB>id<TAB>text`
fn plain(done: &Done) -> String {
    let item = &done.item;
    let (outcome, second) = match &done.outcome {
        Ok((result, _)) if said(result) == item.expected => ("RIGHT", said(result).as_word()),
        Ok((result, _)) => ("WRONG", said(result).as_word()),
        Err(failure) => ("ERROR", failure.kind.as_str()),
    };
    let id = match &item.id {
        Some(Value::String(id)) => id.clone(),
        Some(id) => id.to_string(),
        None => "-".to_owned(),
    };
    let fields = [&item.at.label(), outcome, item.expected.as_word(), second, &id, &item.fact];
    fields.map(|field| sanitize::line(field).into_owned()).join("\t")
}

/// A statement of `--json`.
fn entry(done: &Done) -> Value {
    let item = &done.item;
    let mut entry = json!(item.at);
    entry["id"] = json!(item.id);
    entry["fact"] = json!(item.fact);
    entry["expected"] = json!(item.expected);
    let more = match &done.outcome {
        Ok((result, elapsed)) => found(result, item.expected, *elapsed),
        Err(failure) => failure.document(),
    };
    if let (Value::Object(entry), Value::Object(more)) = (&mut entry, more) {
        entry.extend(more);
    }
    entry
}

fn found(result: &VerifyResponse, expected: Label, elapsed: Duration) -> Value {
    let said = said(result);
    json!({
        "said": said,
        "right": said == expected,
        "elapsed_ms": milliseconds(elapsed),
        "requestId": result.request_id,
        "claims": result.results,
        "skipped": result.skipped,
        "tokenUsage": result.token_usage,
    })
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
