//! `-h`: what a command takes, on one screen; `--help` says everything.
//!
//! One row for each command or option, cut to the width of the terminal. What does not fit on the screen is named
//! without what it does. Global options, which are the same everywhere, are left to `--help`.

use std::ffi::OsString;

use clap::{Arg, Command};

use crate::cli::args::globals;
use crate::cli::terminal::term::{Style, Terminal};
use crate::cli::terminal::wrap::{cells, wrap};

/// The rows of the smallest screen that is common, without the one of the next prompt.
const ROWS: usize = 23;

/// The rows beside those of commands and options: what it is, its usage, where more is said, and lines between them.
const OTHER_ROWS: usize = 6;

/// The most rows of names that did not fit.
const MORE_ROWS: usize = 3;

/// The most rows of examples.
const EXAMPLES: usize = 3;

/// The command whose short help these arguments ask for; `None` if it is the long one.
pub(crate) fn asked_for(root: &Command, args: &[OsString]) -> Option<Command> {
    let mut command = root.clone();
    command.build();
    let mut words = args.iter().skip(1).map(|arg| arg.to_string_lossy());
    while let Some(word) = words.next() {
        match &*word {
            "--" | "--help" => return None,
            long if long.starts_with("--") => {
                let option = command.get_arguments().find(|arg| arg.get_long() == long.get(2..));
                if option.is_some_and(|option| option.get_action().takes_values()) {
                    words.next();
                }
            }
            short if short.starts_with('-') && short.contains('h') => return Some(command),
            name => {
                if let Some(sub) = command.find_subcommand(name) {
                    command = sub.clone();
                }
            }
        }
    }
    None
}

/// The short help of a command.
pub(crate) fn text(command: &Command, terminal: &Terminal) -> String {
    let width = terminal.width;
    let strong = |text: &str| terminal.out.paint.apply(Style::Strong, text);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let mut lines = vec![first_row(&about(command), width), String::new()];
    lines.push(format!("{} {usage}", strong("Usage:")));
    lines.push(String::new());

    let items: Vec<Item> = items(command);
    let (shown, more) =
        items.split_at(if fits(items.len()) { items.len() } else { ROWS - OTHER_ROWS - MORE_ROWS });
    let widest = shown.iter().map(|item| cells(&item.name)).max().unwrap_or(0).min(width / 2);
    for item in shown {
        let column = widest.max(cells(&item.name));
        let does = first_row(&item.does, width.saturating_sub(column + 4));
        let gap = " ".repeat(widest.saturating_sub(cells(&item.name)));
        lines.push(format!("  {}{gap}  {does}", strong(&item.name)).trim_end().to_owned());
    }
    if !more.is_empty() {
        let names: Vec<&str> = more.iter().map(|item| item.bare.as_str()).collect();
        let also = wrap(&format!("also: {}", names.join(", ")), width.saturating_sub(2));
        lines.extend(also.iter().map(|row| format!("  {row}")));
    }
    lines.push(String::new());
    let examples = examples(command, width);
    let room = ROWS.saturating_sub(lines.len() + 2);
    let count = examples.len().min(EXAMPLES).min(room);
    if count > 0 {
        lines.extend(examples.into_iter().take(count).map(|row| format!("  {row}")));
        lines.push(String::new());
    }
    lines.extend(wrap(&format!("{name} --help shows details and global options"), width));
    lines.join("\n")
}

const fn fits(items: usize) -> bool {
    items <= ROWS - OTHER_ROWS
}

/// A row: a command, an argument or an option.
struct Item {
    /// As it is written.
    name: String,
    /// The name alone.
    bare: String,
    does: String,
}

fn items(command: &Command) -> Vec<Item> {
    let does = |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string).unwrap_or_default();
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| Item {
        name: sub.get_name().to_owned(),
        bare: sub.get_name().to_owned(),
        does: about(sub),
    });
    let is_shown = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        !arg.is_hide_set()
            && arg.get_help_heading() != Some(globals::HEADING)
            && !matches!(id, "help" | "version")
    };
    let has_subs = command.has_subcommands();
    let args = command.get_arguments().filter(is_shown).map(|arg| Item {
        name: written(arg, has_subs),
        bare: arg.get_long().map_or_else(|| arg.to_string(), |long| format!("--{long}")),
        does: does(arg.get_help()),
    });
    subs.chain(args).collect()
}

/// `-f, --file <FILE>`; without a short name, indented to where the long ones begin, unless commands stand above.
fn written(arg: &Arg, has_subs: bool) -> String {
    let long = arg.to_string();
    match arg.get_short() {
        _ if arg.is_positional() => long,
        Some(short) if arg.get_long().is_some() => format!("-{short}, {long}"),
        Some(_) => long,
        None if has_subs => long,
        None => format!("    {long}"),
    }
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The examples that fit on a row each.
fn examples(command: &Command, width: usize) -> Vec<String> {
    let text = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let rows = text.lines().skip(1).map(|line| line.trim().to_owned());
    rows.filter(|row| !row.is_empty() && cells(row) + 2 <= width).collect()
}

/// The beginning of a sentence, on a row of this width: up to a default, a further clause, or a word that would not
/// fit.
fn first_row(text: &str, width: usize) -> String {
    let text = text.lines().next().unwrap_or_default();
    let clause = [" [default", "; ", ": ", " ("].into_iter().filter_map(|end| text.find(end)).min();
    if cells(text) <= width {
        return text.to_owned();
    }
    let clause = clause.map_or(text, |at| &text[..at]);
    if cells(clause) <= width {
        return clause.to_owned();
    }
    let row = wrap(clause, width.saturating_sub(1)).swap_remove(0);
    let row = if cells(&row) < width { row } else { row.chars().take(width.saturating_sub(1)).collect() };
    format!("{}…", row.trim_end_matches([',', ':', ' ']))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::terminal::term::Paint;

    fn each(command: &Command, check: &mut impl FnMut(&Command)) {
        check(command);
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).for_each(|sub| each(sub, check));
    }

    #[test]
    fn every_short_help_fits_one_screen_with_all_names_in_it() {
        let mut root = Cli::command();
        root.build();
        each(&root, &mut |command| {
            for width in [80, 44] {
                let text = text(command, &Terminal::test(width, Paint::Plain));
                let rows: Vec<&str> = text.lines().collect();
                assert!(rows.iter().all(|row| cells(row) <= width || row.contains("Usage:")), "{text}");
                assert!(width < 80 || rows.len() <= ROWS, "{} rows: {text}", rows.len());
                for item in items(command) {
                    assert!(text.contains(&item.bare), "no {}: {text}", item.bare);
                }
                assert!(!text.contains("--api-key-file"), "{text}");
            }
        });
    }

    #[test]
    fn only_the_short_option_asks_for_it() {
        let root = Cli::command();
        let asked = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            asked_for(&root, &args).map(|command| command.get_name().to_owned())
        };
        assert_eq!(asked("mk -h").as_deref(), Some("mk"));
        assert_eq!(asked("mk keys create -h").as_deref(), Some("create"));
        assert_eq!(asked("mk --profile keys verify -qh").as_deref(), Some("verify"));
        for long in ["mk --help", "mk keys --help", "mk help keys", "mk verify --help -h"] {
            assert_eq!(asked(long), None, "{long}");
        }
    }

    #[test]
    fn a_row_ends_where_a_clause_does() {
        assert_eq!(first_row("Print JSON", 20), "Print JSON");
        assert_eq!(first_row("Verify a file; repeat it for several", 20), "Verify a file");
        assert_eq!(first_row("How many models, out of all those asked", 20), "How many models…");
        assert_eq!(first_row("unbreakableunbreakable", 10), "unbreakab…");
    }
}
