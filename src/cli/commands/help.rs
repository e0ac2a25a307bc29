//! `mk help`: the help of a command, or a topic of the manual.
//!
//! Some names are both a command and a topic, such as `keys`. The topic is shown then, as the command's help is what
//! `--help` is for; a longer path (`mk help keys create`) can only be a command's.

use std::ffi::OsString;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::cli::args::globals::Session;
use crate::cli::guide::usage_error;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::term::Style;
use crate::cli::terminal::wrap::{cells, wrap};
use crate::cli::terminal::{pager, tabular};
use crate::config;
use crate::manual::document::{Block, Inline};
use crate::manual::{self, TOPICS, Topic};

/// Examples of `mk help`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk help                            commands and topics
  mk help gateway                    a topic
  mk help keys create                a command, as with --help";

/// What a column of a table takes beside its text.
const PADDING: usize = 3;

/// The fewest cells for a column of sentences.
const READABLE: usize = 28;

/// How far lists and code are indented.
const INDENT: usize = 2;

/// The arguments of `mk help`.
#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// A topic or a command; without it, all of them are listed
    #[arg(value_name = "TOPIC|COMMAND")]
    words: Vec<String>,
}

/// Shows a topic or the help of a command.
pub(crate) fn run(args: &HelpArgs, session: &Session) -> Outcome {
    let printer = &session.printer;
    if let [name] = &*args.words
        && let Some(topic) = manual::find(name)
    {
        return pager::print(session, &lines_of(printer, topic)).map(|()| 0);
    }
    let root = Cli::command();
    if let Some(name) = args.words.first().filter(|name| root.find_subcommand(name).is_none()) {
        return Err(unknown(&root, name));
    }
    let words = args.words.iter().map(OsString::from);
    let line: Vec<OsString> = ["mk".into()].into_iter().chain(words).chain(["--help".into()]).collect();
    usage_error::help(&line, printer)
}

/// The topics, for the end of `mk --help`.
pub(crate) fn topics() -> String {
    let lines = TOPICS.iter().map(|topic| format!("  {:<14}{}", topic.name, topic.summary()));
    format!("Topics (mk help TOPIC):\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn unknown(root: &clap::Command, name: &str) -> Failure {
    let topics = TOPICS.iter().map(|topic| topic.name);
    let commands = root.get_subcommands().filter(|command| !command.is_hide_set());
    let names = topics.clone().chain(commands.map(clap::Command::get_name));
    let failure = Failure::usage(format!("there is no command or topic '{name}'"));
    let failure = match config::closest(name, names) {
        Some(close) => failure.hint(format!("did you mean `mk help {close}`?")),
        None => failure,
    };
    failure.hint(format!("topics: {}; `mk --help` lists the commands", topics.collect::<Vec<_>>().join(", ")))
}

/// A topic as it is shown.
fn lines_of(printer: &Printer, topic: &Topic) -> Vec<String> {
    let width = if printer.terminal.out.is_terminal { printer.terminal.width } else { usize::MAX };
    let page = Page { printer, width };
    let title = format!("{}({}): {}", topic.page(), topic.section, topic.summary());
    let mut lines = page.text(&[Inline::Strong(vec![Inline::Text(title)])], 0);
    lines.extend(page.blocks(&topic.blocks(), 0));
    lines.into_iter().map(|line| printer.terminal.symbols.adapt(line.into()).into_owned()).collect()
}

/// Lays out a topic as lines.
struct Page<'a> {
    printer: &'a Printer,
    width: usize,
}

impl Page<'_> {
    /// The lines of blocks, each behind an empty one.
    fn blocks(&self, blocks: &[Block], indent: usize) -> Vec<String> {
        blocks.iter().flat_map(|block| [vec![String::new()], self.block(block, indent)].concat()).collect()
    }

    fn block(&self, block: &Block, indent: usize) -> Vec<String> {
        match block {
            Block::Heading { level, text } => {
                let text = manual::plain(text);
                let text = if *level == 2 { text.to_uppercase() } else { text };
                self.text(&[Inline::Strong(vec![Inline::Text(text)])], indent)
            }
            Block::Paragraph(text) => self.text(text, indent),
            Block::List { is_numbered, items } => {
                let marks = (1..).map(|at| if *is_numbered { format!("{at}. ") } else { "- ".to_owned() });
                items.iter().zip(marks).flat_map(|(item, mark)| self.item(item, &mark, indent)).collect()
            }
            Block::Code(code) => self.code(code, indent),
            Block::Table { head, rows } => self.table(head, rows, indent),
            Block::Unknown => Vec::new(),
        }
    }

    /// Code as it is, as terminals break lines anywhere: a comment behind a line that has no room for it stands above
    /// it.
    fn code(&self, code: &str, indent: usize) -> Vec<String> {
        let room = self.width.saturating_sub(indent + INDENT);
        let split = |line: &str| match line.rsplit_once("  # ") {
            Some((before, comment)) if cells(line) > room => {
                let before = before.trim_end();
                let margin = before.len() - before.trim_start().len();
                vec![format!("{:margin$}# {comment}", ""), before.to_owned()]
            }
            _ => vec![line.to_owned()],
        };
        let lines: Vec<String> = code.lines().flat_map(split).collect();
        let widest = lines.iter().map(|line| cells(line)).max().unwrap_or(0);
        // The indent goes before a line is broken.
        let indent = indent + self.width.saturating_sub(indent + widest).min(INDENT);
        lines.into_iter().map(|line| format!("{:indent$}{line}", "")).collect()
    }

    fn item(&self, blocks: &[Block], mark: &str, indent: usize) -> Vec<String> {
        let inner = indent + cells(mark);
        let mut lines = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            // What is not text stands apart, but for a list in a list.
            if at > 0 && !matches!(block, Block::List { .. }) {
                lines.push(String::new());
            }
            lines.extend(self.block(block, inner));
        }
        if let Some(first) = lines.first_mut() {
            *first = format!("{:indent$}{mark}{}", "", first.trim_start());
        }
        lines
    }

    /// A table where there is room, else a block of lines for each row.
    fn table(&self, head: &[Vec<Inline>], rows: &[Vec<Vec<Inline>>], indent: usize) -> Vec<String> {
        let room = self.width.saturating_sub(indent);
        let texts = |row: &[Vec<Inline>]| row.iter().map(|cell| manual::plain(cell)).collect::<Vec<_>>();
        let (heads, texts) = (texts(head), rows.iter().map(|row| texts(row)).collect::<Vec<_>>());
        let least: Vec<usize> =
            (0..heads.len()).map(|at| least_width(at, &heads, &texts) + PADDING).collect();
        if least.iter().sum::<usize>() > room {
            return rows.iter().flat_map(|row| self.block_of(&heads, row, indent)).collect();
        }
        let table = tabular::grid(&self.printer.terminal, room, heads, texts, &least);
        table.lines().map(|line| format!("{:indent$}{}", "", line.trim_end())).collect()
    }

    /// A row as lines: its first cell, and below it the others behind their headings.
    fn block_of(&self, heads: &[String], row: &[Vec<Inline>], indent: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let label = heads.get(at).filter(|head| at > 0 && !head.is_empty());
            let label = label.map(|head| Inline::Text(format!("{head}: ")));
            let text: Vec<Inline> = label.into_iter().chain(cell.iter().cloned()).collect();
            lines.extend(self.text(&text, indent + if at == 0 { 0 } else { INDENT }));
        }
        lines
    }

    /// Wrapped text, of which each strong word is painted for itself, as lines end between them.
    fn text(&self, inlines: &[Inline], indent: usize) -> Vec<String> {
        let paint = self.printer.terminal.out.paint;
        let strong = |word: &str| match word {
            "" => String::new(),
            word => paint.apply(Style::Strong, word),
        };
        let painted = |inline: &Inline| {
            let text = inline.plain() + &target(inline);
            if !matches!(inline, Inline::Code(_) | Inline::Strong(_)) {
                return text;
            }
            text.split(' ').map(strong).collect::<Vec<_>>().join(" ")
        };
        let text: String = inlines.iter().map(painted).collect();
        let lines = wrap(&text, self.width.saturating_sub(indent)).into_iter();
        lines.map(|line| format!("{:indent$}{line}", "")).collect()
    }
}

/// The fewest cells for a column: its longest word, and enough to read a long text.
fn least_width(at: usize, heads: &[String], rows: &[Vec<String>]) -> usize {
    let texts = || rows.iter().filter_map(|row| row.get(at)).chain(heads.get(at));
    let longest_word = texts().flat_map(|text| text.split(' ')).map(cells).max().unwrap_or(0);
    let longest = texts().map(|text| cells(text)).max().unwrap_or(0);
    longest_word.max(longest.min(READABLE))
}

/// Where a link leads, behind its text: the command that shows the topic, or the address, unless the text says it.
fn target(inline: &Inline) -> String {
    let Inline::Link { text, to } = inline else { return String::new() };
    match manual::linked(to) {
        Some((topic, _)) => format!(" (mk help {})", topic.name),
        None if to.starts_with('#') || manual::plain(text) == *to => String::new(),
        None => format!(" ({to})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{Paint, Terminal};

    fn shown(markdown: &str, width: usize, paint: Paint) -> Vec<String> {
        let printer = Printer { terminal: Terminal::test(width, paint), quiet: false, verbose: false };
        Page { printer: &printer, width }.blocks(&manual::document::parse(markdown), 0)
    }

    #[test]
    fn text_is_wrapped_at_spaces_and_code_is_bold() {
        assert_eq!(
            shown("Say `mk help`, and\nit is **so** (`x`).", 12, Paint::Bold),
            [
                "",
                "Say \u{1b}[1mmk\u{1b}[0m \u{1b}[1mhelp\u{1b}[0m,",
                "and it is \u{1b}[1mso\u{1b}[0m",
                "(\u{1b}[1mx\u{1b}[0m)."
            ]
        );
    }

    #[test]
    fn a_comment_without_room_stands_above_its_line() {
        let code = "```\nmk models            # what can be asked\nmk chat  # one\n```";
        assert_eq!(
            shown(code, 40, Paint::Plain),
            ["", "  # what can be asked", "  mk models", "  mk chat  # one"]
        );
        assert_eq!(shown("```\n1234567890\n```", 11, Paint::Plain), ["", " 1234567890"]);
        for topic in TOPICS.iter().filter(|topic| topic.section == 7) {
            for line in shown(topic.source, 80, Paint::Plain) {
                assert!(cells(&line) <= 80 || !line.contains("  # "), "{}: {line}", topic.name);
            }
        }
    }

    #[test]
    fn a_link_says_where_it_leads() {
        assert_eq!(
            shown(
                "See [Keys](mk-keys.7.md), [x](https://x.example), [below](#y), <https://z.example>.",
                99,
                Paint::Plain
            ),
            ["", "See Keys (mk help keys), x (https://x.example), below, https://z.example."]
        );
    }

    #[test]
    fn lists_are_indented_below_their_marks() {
        assert_eq!(
            shown("1. one two three\n2. four\n   - five\n\n```\ncode  here\n```", 10, Paint::Plain),
            ["", "1. one two", "   three", "2. four", "   - five", "", "code  here"]
        );
    }

    #[test]
    fn a_table_becomes_blocks_of_lines_where_it_has_no_room() {
        let table = "| code | meaning |\n|---|---|\n| 0 | all went well |\n| 1 | it did not |\n";
        let wide = shown(table, 70, Paint::Plain);
        assert!(wide.iter().any(|line| line.contains("code") && line.contains("meaning")), "{wide:#?}");
        assert!(wide.iter().any(|line| line.contains("1 ") && line.contains("it did not")), "{wide:#?}");
        assert_eq!(
            shown(table, 16, Paint::Plain),
            ["", "0", "  meaning: all", "  went well", "1", "  meaning: it", "  did not"]
        );
    }

    #[test]
    fn every_topic_fits_the_terminal() {
        for topic in &TOPICS {
            for width in [44, 80] {
                let printer =
                    Printer { terminal: Terminal::test(width, Paint::Plain), quiet: false, verbose: false };
                let is_code = |block: &Block| matches!(block, Block::Code(_));
                let text: Vec<Block> = topic.blocks().into_iter().filter(|block| !is_code(block)).collect();
                for line in (Page { printer: &printer, width }).blocks(&text, 0) {
                    assert!(cells(&line) <= width || !line.trim().contains(' '), "{}: {line}", topic.name);
                }
            }
        }
    }
}
