//! The figures as text: first what a reader decides by, then what explains it.

use serde_json::Value;

use crate::cli::commands::eval::figures::{Figures, OpenFigures};
use crate::cli::commands::eval::label::Label;
use crate::cli::commands::eval::score::{Exact, Group, Marks, Matrix, OpenScore, Pairs, Rate, Recount};
use crate::cli::commands::eval::target::PrecisionTarget;
use crate::cli::process::exit::Failure;
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::tabular::{self, Column, column, names, number, unbroken};
use crate::cli::terminal::term::{Stream, Style, Terminal};
use crate::cli::terminal::wrap::{cut, wrap};

/// The text of figures, part by part.
pub(in crate::cli::commands::eval) struct Text {
    printer: Printer,
    stream: Stream,
    pub(in crate::cli::commands::eval) lines: Vec<String>,
}

/// The width where nothing is wrapped.
const UNWRAPPED: usize = u16::MAX as usize;

impl Text {
    /// An empty one, laid out for where it will be printed: with the results on a terminal, else on standard error.
    pub(in crate::cli::commands::eval) fn new(printer: &Printer) -> Self {
        let terminal = &printer.terminal;
        let stream = if terminal.out.is_terminal { terminal.out } else { terminal.err };
        let width = if stream.is_terminal { terminal.width } else { UNWRAPPED };
        let terminal = Terminal { width, ..terminal.clone() };
        Self { printer: Printer { terminal, ..printer.clone() }, stream, lines: Vec::new() }
    }

    /// All figures, with an empty line behind each part.
    pub(in crate::cli::commands::eval) fn figures(
        &mut self,
        matrix: &Matrix,
        figures: &Figures,
        target: Option<&PrecisionTarget<'_>>,
    ) {
        self.labelled("Verdicts", &rates(matrix));
        if let Some((sentences, settings)) = target.map(PrecisionTarget::lines) {
            for sentence in &sentences {
                self.sentence(sentence);
            }
            self.lines.extend(settings.iter().map(|line| sanitize::line(line).into_owned()));
            self.lines.push(String::new());
        }
        self.models(figures);
        if let Some(open) = &figures.open {
            self.open(open);
        }
        self.labelled("The models together", &together(figures));
        self.rules(figures);
        self.groups(&figures.groups);
        self.matrix(matrix);
    }

    /// Prints all of it.
    pub(in crate::cli::commands::eval) fn print(&self) -> Result<(), Failure> {
        if self.printer.terminal.out.is_terminal {
            return self.lines.iter().try_for_each(|line| self.printer.line(line));
        }
        self.lines.iter().for_each(|line| self.printer.notice(line));
        Ok(())
    }

    /// A heading.
    fn heading(&mut self, text: &str) {
        let paint = |line: String| self.stream.paint.apply(Style::Strong, &line);
        self.lines.extend(wrap(text, self.printer.terminal.width).into_iter().map(paint));
    }

    /// A sentence, wrapped.
    pub(in crate::cli::commands::eval) fn sentence(&mut self, text: &str) {
        let text = self.printer.terminal.symbols.adapt(sanitize::line(text));
        self.lines.extend(wrap(&text, self.printer.terminal.width));
    }

    /// Names with their figures under a heading, if there are any.
    pub(in crate::cli::commands::eval) fn labelled(&mut self, heading: &str, fields: &[(&str, String)]) {
        if !fields.is_empty() {
            self.heading(heading);
            self.lines.extend(tabular::labelled_lines(&self.printer, fields));
            self.lines.push(String::new());
        }
    }

    /// A table under a heading, without as many of the `droppable` columns as do not fit.
    fn table(&mut self, heading: &str, columns: &[Column], rows: &[Vec<String>], droppable: &[usize]) {
        if !rows.is_empty() {
            self.heading(heading);
            let columns = tabular::fit_columns(&self.printer, columns, rows, droppable);
            self.lines.extend(tabular::table(&self.printer, &columns, rows));
        }
        self.lines.push(String::new());
    }

    fn models(&mut self, figures: &Figures) {
        let columns = [
            names("model"),
            column("by"),
            number("right"),
            number("wrong"),
            number("cannot tell"),
            number("no answer"),
            number("right, %"),
            unbroken("95 %"),
        ];
        let row = |name: &str, by: &str, marks: Marks| {
            let rate = marks.rate();
            let (percent, interval) = percent_and_interval(rate);
            let counts = [marks.right, marks.wrong, marks.cannot_tell, marks.no_answer];
            let texts = counts.map(|count| count.to_string());
            [name.to_owned(), by.to_owned()].into_iter().chain(texts).chain([percent, interval]).collect()
        };
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (name, score) in &figures.models {
            rows.push(row(name, "verdict", score.verdict));
            if score.option.rate().total > 0 {
                rows.push(row(name, "option", score.option));
            }
        }
        if rows.is_empty() {
            return;
        }
        self.table("Each model by itself", &columns, &rows, &[7, 5]);
        let known = figures.known_options;
        let mut text = format!(
            "By verdict: told a TRUE statement from a FALSE one. By option: chose the right answer, of the {} of {} for \
             which it is known",
            known.hits,
            counted(known.total, "question")
        );
        if known.hits < known.total {
            text.push_str("; a FALSE statement needs an `answer` in the dataset");
        }
        let unmatched = match figures.unmatched_answers {
            0 => String::new(),
            1 => ", and one answer is no option beside the claimed one".to_owned(),
            some => format!(", and {some} answers are no option beside the claimed one"),
        };
        self.sentence(&format!("{text}{unmatched}."));
        self.lines.push(String::new());
    }

    fn open(&mut self, open: &OpenFigures) {
        let columns = [
            names("model"),
            number("right with"),
            number("right without"),
            number("only with"),
            number("only without"),
            unbroken("p"),
            number("by code"),
            number("by judge"),
            number("other"),
            number("unknown"),
            number("failed"),
        ];
        let row = |(name, score): &(String, OpenScore)| {
            let right = score.right;
            let counts = [right.only_first, right.only_second];
            let mapped = [score.by_code, score.by_judge, score.by_nobody, score.unknown, score.failed];
            let of = |hits| fraction(Rate { hits, total: right.total() });
            let p = if right.total() == 0 { String::new() } else { format!("{:.3}", right.mcnemar()) };
            let mut row =
                vec![name.clone(), of(right.both + right.only_first), of(right.both + right.only_second)];
            row.extend(counts.map(|count| count.to_string()));
            row.push(p);
            row.extend(mapped.map(|count| count.to_string()));
            row
        };
        let rows: Vec<Vec<String>> = open.models.iter().map(row).collect();
        self.table("The same questions without options", &columns, &rows, &[10, 9, 8, 7, 6, 3, 4]);
        let judge = match open.judges.as_slice() {
            [] => "there is no auditor to judge the rest".to_owned(),
            judges => format!("{} judged the rest", judges.join(", ")),
        };
        let not_asked = match open.not_asked {
            0 => String::new(),
            some => format!(" Not asked, because they have only two options: {}.", counted(some, "question")),
        };
        self.sentence(&format!(
            "Code mapped what says the same as an option; {judge}; what means none is other.{not_asked}"
        ));
        self.lines.push(String::new());
    }

    fn rules(&mut self, figures: &Figures) {
        if figures.recounts.len() < 2 {
            return;
        }
        let columns = [
            unbroken("rule"),
            number("said TRUE, right"),
            number("at least, %"),
            number("said FALSE, right"),
            number("at least, %"),
            number("TRUE found"),
            number("FALSE found"),
        ];
        let row = |recount: &Recount| {
            let matrix = &recount.matrix;
            let own = if recount.rule.is_own { " (as asked)" } else { "" };
            let mut row = vec![format!("{}{own}", figures.rule(recount.rule))];
            for label in [Label::True, Label::False] {
                let precision = matrix.precision(label);
                row.push(fraction(precision));
                row.push(precision.interval().map_or_else(String::new, |(lower, _)| format!("{lower:.1}")));
            }
            row.extend([Label::True, Label::False].map(|label| fraction(matrix.coverage(label))));
            row
        };
        let rows: Vec<Vec<String>> = figures.recounts.iter().map(row).collect();
        self.table("What other rules would have said, from the same votes", &columns, &rows, &[]);
    }

    fn groups(&mut self, groups: &[Group]) {
        let columns = [
            column("part"),
            number("statements"),
            number("right, %"),
            unbroken("95 %"),
            number("decided"),
            number("FALSE passed"),
        ];
        let row = |group: &Group| {
            let matrix = &group.matrix;
            let (percent, interval) = percent_and_interval(matrix.right());
            vec![
                format!("{} {}", group.kind, group.name),
                matrix.total().to_string(),
                percent,
                interval,
                fraction(matrix.decided()),
                fraction(matrix.false_passed()),
            ]
        };
        let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
        if !rows.is_empty() {
            self.table("Parts of the dataset", &columns, &rows, &[4]);
        }
    }

    /// What is expected by row, what was said by column, without empty rows and columns.
    fn matrix(&mut self, matrix: &Matrix) {
        let is_said = |said: &Label| Label::ALL.iter().any(|expected| matrix.count(*expected, *said) > 0);
        let always = |label: &Label| !matches!(label, Label::Nothing | Label::Unchecked);
        let said: Vec<Label> =
            Label::ALL.into_iter().filter(|label| always(label) || is_said(label)).collect();
        let columns: Vec<Column> = [unbroken("expected")]
            .into_iter()
            .chain(said.iter().map(|label| number(heading(*label))))
            .collect();
        let row = |expected: Label| {
            let counts = said.iter().map(|said| matrix.count(expected, *said));
            let is_empty = counts.clone().sum::<usize>() == 0;
            let texts = counts.map(|count| count.to_string());
            (!is_empty).then(|| [expected.to_string()].into_iter().chain(texts).collect())
        };
        let rows: Vec<Vec<String>> = Label::ALL.into_iter().filter_map(row).collect();
        self.table("What was expected, and what was said", &columns, &rows, &[]);
    }
}

/// Each rate of the verdicts with its name, if it is a share of anything.
pub(in crate::cli::commands::eval) fn rates(matrix: &Matrix) -> Vec<(&'static str, String)> {
    let rates = [
        ("right", matrix.right()),
        ("said TRUE, right", matrix.precision(Label::True)),
        ("said FALSE, right", matrix.precision(Label::False)),
        ("FALSE passed as TRUE", matrix.false_passed()),
        ("FALSE found", matrix.coverage(Label::False)),
        ("TRUE called FALSE", matrix.true_called_false()),
        ("decided", matrix.decided()),
        ("right when decided", matrix.right_when_decided()),
    ];
    rates.into_iter().filter(|(_, rate)| rate.total > 0).map(|(name, rate)| (name, shown(rate))).collect()
}

/// What the models of a panel have to do with each other.
fn together(figures: &Figures) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    if let Some(duel) = figures.duel.filter(|_| figures.panel.len() > 1) {
        let best = figures.short(duel.model);
        fields.push(("right", paired(duel.right, best, ", the best of them,")));
        fields.push(("said the opposite", paired(duel.wrong, best, "")));
    }
    let common = &figures.common;
    for pair in &common.pairs {
        let (first, second) = (figures.short(pair.models.0), figures.short(pair.models.1));
        let correlation = match pair.correlation() {
            // In full agreement it has no width, however few errors there are.
            Some(phi) if phi.interval.0 < phi.interval.1 => {
                format!("correlation {:.2} ({:.2} to {:.2})", phi.value, phi.interval.0, phi.interval.1)
            }
            Some(phi) => format!("correlation {:.2}", phi.value),
            None => "too few errors for a correlation,".to_owned(),
        };
        let same = match pair.same_wrong {
            Rate { total: 0, .. } => String::new(),
            Rate { hits, total } => {
                format!("; where both were wrong, the same wrong answer {hits} of {total}")
            }
        };
        let total = counted(pair.errors.total(), "statement");
        fields.push(("errors in common", format!("{first} and {second}: {correlation} on {total}{same}")));
    }
    if let Some(votes) = common.effective_votes {
        let asked = figures.panel.len();
        fields.push(("votes are worth", format!("{votes:.1} of {asked}, by the mean correlation of errors")));
    }
    if common.all_err.0.total > 0 {
        fields.push(("all wrong at once", shown_exact(common.all_err)));
    }
    if common.same_wrong.total > 0 {
        let text = format!("two or more models, on {}", shown_of(common.same_wrong, "question"));
        fields.push(("same wrong answer", text));
    }
    fields
}

/// `panel 35, alpha 33 of 40; only the panel 4, only alpha 2 (p = 0.69)`
fn paired(pairs: Pairs, name: &str, apposition: &str) -> String {
    let (panel, model) = (pairs.both + pairs.only_first, pairs.both + pairs.only_second);
    format!(
        "panel {panel}, {name}{apposition} {model} of {}; only the panel {}, only {name} {} ({})",
        pairs.total(),
        pairs.only_first,
        pairs.only_second,
        probability(pairs.mcnemar()),
    )
}

/// A statement in two lines for people: what is said about it behind a symbol, and its text, both cut to fit.
pub(in crate::cli::commands::eval) fn two_lines(
    terminal: &Terminal,
    (style, symbol): (Style, &str),
    headline: &str,
    fact: &str,
) -> [String; 2] {
    let fits = |text: &str| {
        let text = terminal.symbols.adapt(sanitize::line(text));
        cut(&text, terminal.width.saturating_sub(4), terminal.symbols.cut)
    };
    [format!("{}  {}", terminal.out.paint.apply(style, symbol), fits(headline)), format!("   {}", fits(fact))]
}

/// A statement's id in a line for programs.
pub(in crate::cli::commands::eval) fn id_text(id: &Value) -> String {
    match id {
        Value::Null => "-".to_owned(),
        Value::String(id) => id.clone(),
        other => other.to_string(),
    }
}

/// `p = 0.031`, or `p < 0.001`.
pub(in crate::cli::commands::eval) fn probability(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// The heading of the column for what was said.
const fn heading(label: Label) -> &'static str {
    match label {
        Label::True => "said TRUE",
        Label::False => "said FALSE",
        Label::NoConsensus => "no consensus",
        Label::Nothing => "nothing",
        Label::Unchecked => "unchecked",
    }
}

/// `35 of 40, 87.5 % (73.9 to 94.5)`: a share with its 95 % confidence interval.
pub(in crate::cli::commands::eval) fn shown(rate: Rate) -> String {
    with_interval(format!("{} of {}", rate.hits, rate.total), rate, rate.interval())
}

/// `1 of 40 statements, 2.5 % (0.1 to 13.2)`
fn shown_exact(rate: Exact) -> String {
    let Exact(rate) = rate;
    with_interval(
        format!("{} of {}", rate.hits, counted(rate.total, "statement")),
        rate,
        rate.exact_interval(),
    )
}

fn shown_of(rate: Rate, noun: &str) -> String {
    with_interval(format!("{} of {}", rate.hits, counted(rate.total, noun)), rate, rate.interval())
}

fn with_interval(count: String, rate: Rate, interval: Option<(f64, f64)>) -> String {
    match rate.percent().zip(interval) {
        Some((percent, (low, high))) => format!("{count}, {percent:.1} % ({low:.1} to {high:.1})"),
        None => count,
    }
}

/// `18/19`, or nothing where there is nothing.
fn fraction(rate: Rate) -> String {
    if rate.total == 0 { String::new() } else { format!("{}/{}", rate.hits, rate.total) }
}

/// The cells of a share and its interval.
fn percent_and_interval(rate: Rate) -> (String, String) {
    let percent = rate.percent().map_or_else(String::new, |percent| format!("{percent:.1}"));
    let interval = rate.interval().map_or_else(String::new, |(low, high)| format!("{low:.0} to {high:.0}"));
    (percent, interval)
}
