//! What a gate says: what failed it, named on standard error, even with `-q`. A command that fails because of what it
//! found, or did not read, never does so silently.

use std::collections::BTreeMap;

use super::input::place::Places;
use super::input::source::Source;
use super::output::page::{differing_quote, tally};
use super::output::votes;
use super::verdict::Fault;
use crate::api::verify::{ClaimResult, SkipReason, Span};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::Terminal;
use crate::cli::terminal::wrap::{cells, cut, wrap};

/// How many findings are named, the worst of all; the rest is counted by what it is.
const MAX_NAMED: usize = 50;

/// The width of the longest word, `NO CONSENSUS`.
const WORD_WIDTH: usize = 12;

/// What to do about a text with more claims than a server takes.
pub(crate) const HIGHER_LIMIT: &str =
    "the limit is max_claims; the server's operator can change it under [verify] in server.toml";

/// The least room for a text beside its place and word.
const LEAST_TEXT_WIDTH: usize = 30;

/// What failed the gate, bounded, as there may be any number of statements.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    named: Vec<Finding>,
    unnamed: BTreeMap<Word, usize>,
}

/// What a finding is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Error,
    False,
    NoConsensus,
    Unchecked,
    Skipped,
    Nothing,
}

impl Word {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::False => "FALSE",
            Self::NoConsensus => "NO CONSENSUS",
            Self::Unchecked => "UNCHECKED",
            Self::Skipped => "SKIPPED",
            Self::Nothing => "NOTHING",
        }
    }
}

/// One thing that failed the gate; texts are sanitized.
#[derive(Debug)]
struct Finding {
    /// The statement, one of several or a file, with line and column where a file is known.
    at: Option<String>,
    word: Word,
    text: String,
    /// What stands on a line of its own below.
    detail: String,
}

impl Gate {
    /// Adds what fails the gate in the result of a statement; one of several has a source.
    pub(crate) fn add(&mut self, source: Option<&Source>, faults: Vec<Fault<'_>>, places: &Places) {
        let is_over =
            |fault: &Fault<'_>| matches!(fault, Fault::Part(part) if part.reason == SkipReason::OverLimit);
        let over_limit = faults.iter().filter(|fault| is_over(fault)).count();
        let mut is_over_limit = false;
        for fault in faults {
            // Everything behind the first part over the limit is over it too.
            let repeats = is_over(&fault) && std::mem::replace(&mut is_over_limit, true);
            if !repeats {
                let at = |span: Option<Span>| places.shown(span).or_else(|| source.map(Source::name));
                self.name(fault, over_limit, &at);
            }
        }
    }

    /// Adds one of several statements that could not be verified.
    pub(crate) fn add_failure(&mut self, source: &Source, failure: &Failure) {
        self.push(Some(source.name()), Word::Error, &failure.message, String::new());
    }

    fn name(&mut self, fault: Fault<'_>, over_limit: usize, at: &dyn Fn(Option<Span>) -> Option<String>) {
        match fault {
            Fault::False(claim) => {
                let says = votes::consensus_text(claim);
                let says = (!says.is_empty()).then(|| format!("models say {says} ({})", tally(claim).0));
                self.push(at(Some(claim.span)), Word::False, &claim.claim, detail(says, claim));
            }
            Fault::NoConsensus(claim) => {
                self.push(at(Some(claim.span)), Word::NoConsensus, &claim.claim, detail(None, claim));
            }
            Fault::Part(part) => {
                let word = if part.reason.is_unchecked() { Word::Unchecked } else { Word::Skipped };
                let (reason, way_out) = match part.reason {
                    SkipReason::OverLimit => {
                        let parts = counted(over_limit, "part");
                        (format!("over the limit, {parts} from here on"), HIGHER_LIMIT)
                    }
                    other => (other.as_str().replace('_', " "), ""),
                };
                self.push(at(part.span), word, &format!("{reason}: {}", part.text), way_out.to_owned());
            }
            Fault::Unread | Fault::Untold => {
                self.push(at(None), Word::Unchecked, fault.words(), String::new());
            }
            // Of a single statement the summary says it.
            Fault::Nothing => {
                if let Some(statement) = at(None) {
                    self.push(Some(statement), Word::Nothing, fault.words(), String::new());
                }
            }
        }
    }

    /// Names a finding; where there are too many, in the place of one that is less bad.
    fn push(&mut self, at: Option<String>, word: Word, text: &str, detail: String) {
        if self.named.len() == MAX_NAMED {
            let least = self.named.iter().enumerate().max_by_key(|(_, finding)| finding.word);
            let given_up = match least.filter(|(_, finding)| finding.word > word).map(|(place, _)| place) {
                Some(place) => self.named.remove(place).word,
                None => word,
            };
            *self.unnamed.entry(given_up).or_default() += 1;
            if self.named.len() == MAX_NAMED {
                return;
            }
        }
        let at = at.map(|at| sanitize::line(&at).into_owned());
        self.named.push(Finding { at, word, text: sanitize::line(text).into_owned(), detail });
    }

    /// Prints the findings and a summary on standard error if the exit code is not 0, even with `-q`; not where the
    /// results themselves stand on the same terminal.
    pub(crate) fn tell(&self, printer: &Printer, is_for_people: bool, summary: &str, exit: u8) {
        if exit == 0 || is_read_on_one_terminal(printer, is_for_people) {
            return;
        }
        self.tell_findings(printer, &format!("{summary}{}exit {exit}", printer.terminal.symbols.between));
    }

    /// Prints the findings and a summary on standard error, even with `-q`.
    pub(crate) fn tell_findings(&self, printer: &Printer, summary: &str) {
        for line in self.lines(&printer.terminal) {
            printer.alert(&line);
        }
        printer.urgent_sentence(summary);
    }

    /// The findings once more, with an empty line behind them, for a person whose terminal is too short for all lines of
    /// the results themselves.
    pub(crate) fn again(&self, printer: &Printer, result_lines: usize) -> Vec<String> {
        if !is_read_on_one_terminal(printer, true) || result_lines < printer.terminal.height {
            return Vec::new();
        }
        let mut lines = self.lines(&printer.terminal);
        lines.extend((!lines.is_empty()).then(String::new));
        lines
    }

    /// Whether nothing fails the gate.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The findings, one a line, in columns; cut to the width of a terminal. On one too narrow for columns, texts stand
    /// below.
    pub(crate) fn lines(&self, terminal: &Terminal) -> Vec<String> {
        let places = self.named.iter().filter_map(|finding| finding.at.as_deref());
        let place_width = places.map(cells).max().map_or(0, |width| width.min(terminal.width / 3) + 2);
        let mut lines = Vec::new();
        let room = terminal.width.saturating_sub(place_width + WORD_WIDTH + 3);
        let is_narrow = terminal.err.is_terminal && room < LEAST_TEXT_WIDTH;
        for Finding { at, word, text, detail } in &self.named {
            if is_narrow {
                let head = at.iter().map(String::as_str).chain([word.as_str()]);
                lines.push(head.collect::<Vec<_>>().join("  "));
                let below = [text, detail]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .flat_map(|text| wrap(text, terminal.width - 3));
                lines.extend(below.map(|line| format!("  {line}")));
                continue;
            }
            let at = at.as_deref().unwrap_or_default();
            // A place that is longer than its column still ends before the word.
            let gap = place_width.saturating_sub(cells(at)).max(if at.is_empty() { 0 } else { 2 });
            let at = format!("{at}{:gap$}", "");
            let indent = cells(&at) + WORD_WIDTH + 2;
            lines.push(format!("{at}{:WORD_WIDTH$}  {text}", word.as_str()));
            if !detail.is_empty() {
                lines.push(format!("{:indent$}{detail}", ""));
            }
        }
        if !self.unnamed.is_empty() {
            let kinds = self.unnamed.iter().map(|(word, count)| format!("{count} {}", word.as_str()));
            let kinds: Vec<String> = kinds.collect();
            let more = counted(self.unnamed.values().sum::<usize>(), "more finding");
            lines.push(format!("and {more}: {}", kinds.join(", ")));
        }
        if terminal.err.is_terminal {
            let fits = |line: String| cut(&line, terminal.width - 1, terminal.symbols.cut);
            lines = lines.into_iter().map(fits).collect();
        }
        lines.into_iter().map(|line| terminal.symbols.adapt(line.into()).into_owned()).collect()
    }
}

/// What models say of a claim, and its words in the statement where the claim has others.
fn detail(says: Option<String>, claim: &ClaimResult) -> String {
    says.into_iter().chain(differing_quote(claim)).collect::<Vec<_>>().join(" · ")
}

/// Whether a person reads results, if they are laid out for people, and messages on the same terminal.
pub(crate) const fn is_read_on_one_terminal(printer: &Printer, is_for_people: bool) -> bool {
    let terminal = &printer.terminal;
    is_for_people && !printer.quiet && terminal.out.is_terminal && terminal.err.is_terminal
}

#[cfg(test)]
mod tests {
    use super::super::verdict::faults;
    use super::super::verdict::tests::result;
    use super::*;
    use crate::config::FailOn;

    #[test]
    fn a_narrow_terminal_has_texts_below_their_places() {
        use crate::cli::terminal::term::{Paint, Stream, Terminal};
        let found = result(&["FALSE"], &["unfaithful"]);
        let source = Source::File { file: "notes.md".to_owned() };
        let mut gate = Gate::default();
        gate.add(Some(&source), faults(&found, &FailOn::DEFAULT), &Places::new(Some(&source), ""));
        let lines = |width: usize| {
            let wide = Terminal::test(width, Paint::Plain);
            gate.lines(&Terminal { err: Stream { is_terminal: true, ..wide.err }, ..wide })
        };
        assert_eq!(lines(44)[..2], ["notes.md:1:1  FALSE", "  It was completed in 1925."]);
        assert_eq!(lines(80)[0], "notes.md:1:1  FALSE         It was completed in 1925.");
        assert!(lines(44).iter().all(|line| cells(line) < 44));
    }

    #[test]
    fn the_worst_findings_are_named_and_the_rest_is_counted_by_what_it_is() {
        let unsure = vec!["NO CONSENSUS"; 60];
        let found = result(&[unsure.as_slice(), &["FALSE", "FALSE"]].concat(), &["unfaithful"]);
        let mut gate = Gate::default();
        gate.add(None, faults(&found, &FailOn::DEFAULT), &Places::new(None, ""));
        let words: Vec<Word> = gate.named.iter().map(|finding| finding.word).collect();
        assert_eq!(words[..48], [Word::NoConsensus; 48]);
        assert_eq!(words[48..], [Word::False; 2], "in the order of the text");
        let unnamed: Vec<_> = gate.unnamed.into_iter().collect();
        assert_eq!(unnamed, [(Word::NoConsensus, 12), (Word::Unchecked, 1)]);
    }
}
