//! `mk eval compare`: two evaluations of the same statements, paired, so that the statements themselves cannot make the
//! difference.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::label::Label;
use super::reports::text::{Text, id_text, probability, shown, two_lines};
use super::score::{Matrix, Pairs};
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::terminal::humanize::{counted, dollars, thousands};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::tabular;
use crate::cli::terminal::term::Style;

/// Examples of `mk eval compare`, first in its help.
pub(super) const EXAMPLES: &str = "\
Examples:
  mk eval facts.jsonl --json > before.json
  mk eval facts.jsonl --json --min-required 3 > after.json
  mk eval compare before.json after.json";

/// The text below its options.
pub(super) const NOTES: &str = "\
Compares the verdicts on statements that both have (same text, expected verdict
and id), and tests whether the difference may be chance (exact McNemar test).

In a pipe, each statement whose verdict differs is a line of tab-separated
fields: BETTER, WORSE or OTHER, expected verdict, that of A, that of B, id,
text.";

/// The arguments of `mk eval compare`.
#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The JSON of an evaluation, as printed by `mk eval --json`
    #[arg(value_name = "A.json")]
    before: PathBuf,

    /// The JSON of another evaluation
    #[arg(value_name = "B.json")]
    after: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An evaluation, as far as it is compared.
#[derive(Deserialize)]
struct Evaluation {
    schema: String,
    version: Option<String>,
    date: Option<String>,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default)]
    prompts: Value,
    #[serde(default)]
    tokens: u64,
    cost_usd: Option<f64>,
    #[serde(default)]
    models: Vec<Voter>,
    results: Vec<Entry>,
}

/// A model that voted.
#[derive(Deserialize)]
struct Voter {
    model: String,
}

#[derive(Deserialize)]
struct Entry {
    fact: String,
    expected: Label,
    #[serde(default)]
    said: Option<Label>,
    #[serde(default)]
    id: Value,
    line: Option<u64>,
    /// Which repetition, from 1.
    run: Option<u32>,
}

impl Evaluation {
    fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read(path)
            .map_err(|cause| Failure::usage(format!("cannot read {name}: {cause}")).caused_by(cause))?;
        let wrong = || {
            Failure::usage(format!("{name} is not an evaluation"))
                .hint("use the output of `mk eval DATASET --json`")
        };
        let mut document: Value = serde_json::from_slice(&text).map_err(|cause| wrong().caused_by(cause))?;
        // What was found before an interrupt.
        if document["partial"].is_object() {
            document = document["partial"].take();
        }
        let evaluation: Self = serde_json::from_value(document).map_err(|cause| wrong().caused_by(cause))?;
        if evaluation.schema == "mk.eval/1" { Ok(evaluation) } else { Err(wrong()) }
    }

    /// The verified statements of the first run; equal ones are numbered.
    fn statements(&self) -> Vec<(Key<'_>, &Entry, Label)> {
        let mut seen: HashMap<(&str, Label, String), usize> = HashMap::new();
        let first = self.results.iter().filter(|entry| entry.run.is_none_or(|run| run == 1));
        first
            .filter_map(|entry| {
                let key = (entry.fact.as_str(), entry.expected, entry.id.to_string());
                let number = seen.entry(key.clone()).or_default();
                *number += 1;
                Some(((key, *number), entry, entry.said?))
            })
            .collect()
    }

    fn tells_panels(&self) -> bool {
        self.settings.get("panels").is_some_and(Value::is_object)
    }

    /// The settings, with the models of each domain's panel as settings of their own; where another evaluation does not
    /// tell them, with the models that voted.
    fn settings_in_effect(&self, are_panels_told: bool) -> Map<String, Value> {
        let mut settings = self.settings.clone();
        let panels = settings.remove("panels");
        if !are_panels_told {
            let models: BTreeSet<&str> = self.models.iter().map(|model| model.model.as_str()).collect();
            settings.insert("models".to_owned(), json!(models));
            return settings;
        }
        for (domain, panel) in panels.iter().filter_map(Value::as_object).flatten() {
            settings.insert(format!("panel ({domain})"), panel["models"].clone());
        }
        settings
    }

    fn about(&self, path: &Path) -> Value {
        json!({
            "file": path.display().to_string(),
            "version": self.version,
            "date": self.date,
            "settings": self.settings,
            "prompts": self.prompts,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        })
    }
}

/// What a statement is recognised by: text, expectation and id, and which of several equal ones it is.
type Key<'a> = ((&'a str, Label, String), usize);

/// Two evaluations, side by side.
struct Comparison<'a> {
    before: &'a Evaluation,
    after: &'a Evaluation,
    only_before: usize,
    only_after: usize,
    matrices: (Matrix, Matrix),
    /// Which of both are right, and which say the wrong thing.
    right: Pairs,
    wrong: Pairs,
    changed: Vec<(&'a Entry, Label, Label)>,
}

impl<'a> Comparison<'a> {
    fn of(before: &'a Evaluation, after: &'a Evaluation) -> Self {
        let mut others: HashMap<Key<'_>, Label> =
            after.statements().into_iter().map(|(key, _, said)| (key, said)).collect();
        let mut comparison = Self {
            before,
            after,
            only_before: 0,
            only_after: 0,
            matrices: (Matrix::default(), Matrix::default()),
            right: Pairs::default(),
            wrong: Pairs::default(),
            changed: Vec::new(),
        };
        for (key, entry, said) in before.statements() {
            let Some(other) = others.remove(&key) else {
                comparison.only_before += 1;
                continue;
            };
            let expected = entry.expected;
            comparison.matrices.0.add(expected, said);
            comparison.matrices.1.add(expected, other);
            comparison.right.add(said == expected, other == expected);
            let is_wrong = |said: Label| said.is_verdict() && said != expected;
            comparison.wrong.add(is_wrong(said), is_wrong(other));
            if said != other {
                comparison.changed.push((entry, said, other));
            }
        }
        comparison.only_after = others.len();
        comparison
    }

    /// Settings that are not the same, by name.
    fn differences(&self) -> Vec<(String, Value, Value)> {
        let are_panels_told = [self.before, self.after].map(Evaluation::tells_panels) == [true; 2];
        let [before, after] =
            [self.before, self.after].map(|evaluation| evaluation.settings_in_effect(are_panels_told));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value =
            |settings: &Map<String, Value>, name: &str| settings.get(name).cloned().unwrap_or_default();
        let settings =
            names.into_iter().map(|name| (name.clone(), value(&before, name), value(&after, name)));
        let version = ("version".to_owned(), json!(self.before.version), json!(self.after.version));
        let prompts = ("prompts".to_owned(), self.before.prompts.clone(), self.after.prompts.clone());
        [version, prompts].into_iter().chain(settings).filter(|(_, before, after)| before != after).collect()
    }

    fn document(&self, args: &CompareArgs) -> Value {
        let pairs = |pairs: Pairs| {
            json!({
                "a": pairs.both + pairs.only_first,
                "b": pairs.both + pairs.only_second,
                "only_a": pairs.only_first,
                "only_b": pairs.only_second,
                "p": pairs.mcnemar(),
            })
        };
        let changed = |(entry, said, other): &(&Entry, Label, Label)| json!({ "line": entry.line, "id": entry.id, "fact": entry.fact, "expected": entry.expected, "a": said, "b": other });
        let rates = |rate: fn(&Matrix) -> super::score::Rate| json!({ "a": rate(&self.matrices.0), "b": rate(&self.matrices.1) });
        json!({
            "schema": "mk.eval.compare/1",
            "a": self.before.about(&args.before),
            "b": self.after.about(&args.after),
            "statements": self.right.total(),
            "only_a": self.only_before,
            "only_b": self.only_after,
            "accuracy": rates(Matrix::right),
            "false_passed_as_true": rates(Matrix::false_passed),
            "right": pairs(self.right),
            "wrong": pairs(self.wrong),
            "changed": self.changed.iter().map(changed).collect::<Vec<_>>(),
        })
    }

    /// The figures for people.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let paired = |pairs: Pairs| {
            format!(
                "A {}, B {} of {}; only A {}, only B {} ({})",
                pairs.both + pairs.only_first,
                pairs.both + pairs.only_second,
                counted(pairs.total(), "statement"),
                pairs.only_first,
                pairs.only_second,
                probability(pairs.mcnemar()),
            )
        };
        let mut fields = vec![("right", paired(self.right)), ("said the opposite", paired(self.wrong))];
        let passed = (self.matrices.0.false_passed(), self.matrices.1.false_passed());
        if passed.0.total > 0 {
            fields.push(("FALSE passed as TRUE", format!("A {}; B {}", shown(passed.0), shown(passed.1))));
        }
        let cost =
            |evaluation: &Evaluation| evaluation.cost_usd.map_or_else(|| "unknown".to_owned(), dollars);
        let spent = |evaluation: &Evaluation| {
            format!("{}, {} tokens", cost(evaluation), thousands(evaluation.tokens))
        };
        fields.push(("cost of all", format!("A {}; B {}", spent(self.before), spent(self.after))));
        for (name, before, after) in self.differences() {
            let text = format!("{name}: A {}, B {}", setting(&before), setting(&after));
            fields.push(("not the same", sanitize::line(&text).into_owned()));
        }
        fields
    }

    /// What the figures amount to.
    fn conclusion(&self) -> String {
        let p = self.right.mcnemar();
        let shared = counted(self.right.total(), "statement");
        let alone = match (self.only_before, self.only_after) {
            (0, 0) => String::new(),
            (a, b) => format!(" (only in A: {a}, only in B: {b})"),
        };
        let verdict = match self.right.only_first.cmp(&self.right.only_second) {
            _ if p >= 0.05 => "the difference may be chance",
            std::cmp::Ordering::Less => "B is right more often",
            _ => "A is right more often",
        };
        format!("{shared} in both{alone}: {verdict}, {}", probability(p))
    }
}

/// A setting in words.
fn setting(value: &Value) -> String {
    match value {
        Value::Null => "left out".to_owned(),
        Value::Array(list) => list.iter().map(setting).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Runs the command.
pub(super) fn run(args: &CompareArgs, session: &Session) -> Outcome {
    let printer = &session.printer;
    let (before, after) = (Evaluation::read(&args.before)?, Evaluation::read(&args.after)?);
    let comparison = Comparison::of(&before, &after);
    if comparison.right.total() == 0 {
        return Err(Failure::usage("no statement was verified in both evaluations")
            .hint("compare evaluations of the same statements, with the same expected verdicts and ids"));
    }
    if args.json {
        printer.document(&comparison.document(args))?;
        return Ok(0);
    }
    for (entry, said, other) in &comparison.changed {
        for line in changed_lines(printer, entry, *said, *other) {
            printer.line(&line)?;
        }
    }
    let mut text = Text::new(printer);
    if !comparison.changed.is_empty() {
        text.lines.push(String::new());
    }
    text.labelled("A and B", &comparison.fields());
    text.sentence(&comparison.conclusion());
    text.print()?;
    Ok(0)
}

/// A statement with another verdict: two lines for people, one for programs.
fn changed_lines(printer: &Printer, entry: &Entry, said: Label, other: Label) -> Vec<String> {
    let terminal = &printer.terminal;
    let symbols = terminal.symbols;
    let (word, style, symbol) = match (said == entry.expected, other == entry.expected) {
        (false, true) => ("BETTER", Style::True, symbols.yes),
        (true, false) => ("WORSE", Style::False, symbols.no),
        _ => ("OTHER", Style::Open, symbols.open),
    };
    if !terminal.out.is_terminal {
        let id = id_text(&entry.id);
        let fields = [word, entry.expected.as_word(), said.as_word(), other.as_word(), &id, &entry.fact];
        return vec![tabular::tab_separated(&fields)];
    }
    let line = entry.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let headline = format!("{line}A said {said}, B {other}, is {}", entry.expected);
    two_lines(terminal, (style, symbol), &headline, &entry.fact).into()
}
