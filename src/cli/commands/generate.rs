//! `mk completions`, `mk man` and `mk version`: generated from the same definition as `--help`, and the topics of the
//! manual from their Markdown.
//!
//! The repository's `completions/` and `man/` are the output of these commands; tests keep them up to date.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use super::complete;
use crate::cli::Cli;
use crate::cli::args::globals::Session;
use crate::cli::guide::topic_tables;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::config::{self, Variable};
use crate::manual::{self, TOPICS};

/// Examples of `mk completions`, first in its help.
pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mk completions bash > ~/.local/share/bash-completion/completions/mk
  mk completions zsh > ~/.zfunc/_mk
  mk completions fish > ~/.config/fish/completions/mk.fish";

/// Examples of `mk man`, first in its help.
pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  mk man ~/.local/share/man/man1     write all pages to man1, man5 and man7
  mk man | man -l -                  read mk(1)";

/// The arguments of `mk completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The arguments of `mk man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Directory to write the pages to; without it, mk.1 goes to standard output
    dir: Option<PathBuf>,
}

/// The arguments of `mk version`.
#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints a shell's completions.
pub(crate) fn completions(args: &CompletionsArgs, session: &Session) -> Outcome {
    let text = completion_script(args.shell);
    session.printer.result(text.trim_end())?;
    Ok(0)
}

/// Scripts that ask `mk` for data; for shells without one, what can be known without it.
fn completion_script(shell: Shell) -> String {
    match shell {
        Shell::Bash => complete::script(complete::Asking::Bash).to_owned(),
        Shell::Zsh => complete::script(complete::Asking::Zsh).to_owned(),
        Shell::Fish => complete::script(complete::Asking::Fish).to_owned(),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut shown_commands(), "mk", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    }
}

/// The definition without what is hidden, which the generators would show.
fn shown_commands() -> Command {
    let all = Cli::command();
    let shown: Vec<Command> = all.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned().collect();
    let mut bare = Command::new("mk").args(all.get_arguments().cloned()).subcommands(shown);
    bare = bare.disable_help_subcommand(true); // `mk help` is a command of ours
    bare.build();
    bare
}

/// Writes the manual pages.
pub(crate) fn man(args: &ManArgs, session: &Session) -> Outcome {
    let pages = pages()
        .map_err(|cause| Failure::new(Kind::Other, "cannot write the manual pages").caused_by(cause))?;
    let Some(dir) = &args.dir else {
        let first = pages.first().map(|(_, text)| text.trim_end()).unwrap_or_default();
        session.printer.result(first)?;
        return Ok(0);
    };
    write(dir, &pages).map_err(|cause| {
        Failure::usage(format!("cannot write to {}: {cause}", dir.display())).caused_by(cause)
    })?;
    session.printer.notice(&format!("wrote {} pages to {}", pages.len(), dir.display()));
    Ok(0)
}

/// Writes the pages, and the tables of topics whose Markdown stands there, as in the repository.
fn write(dir: &Path, pages: &[(String, String)]) -> io::Result<()> {
    for (name, text) in pages {
        let dir = section_dir(dir, name);
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(name), text)?;
    }
    for topic in &TOPICS {
        let path = dir.join(format!("{}.md", topic.file()));
        if path.is_file() {
            fs::write(path, topic_tables::filled(topic.source))?;
        }
    }
    Ok(())
}

/// Where a page goes: where `man` looks for it, if this is the directory of a section, else this directory.
fn section_dir(dir: &Path, page: &str) -> PathBuf {
    let section = page.rsplit('.').next().unwrap_or_default();
    match (dir.parent(), dir.file_name()) {
        (Some(all), Some(name)) if name == "man1" => all.join(format!("man{section}")),
        _ => dir.to_owned(),
    }
}

/// What made the pages, for their footers.
const SOURCE: &str = concat!("mk ", env!("CARGO_PKG_VERSION"));

/// All manual pages with their file names: `mk.1` first, then one for each command, then the topics.
fn pages() -> io::Result<Vec<(String, String)>> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, &mut pages)?;
    pages.extend(
        TOPICS.iter().map(|topic| {
            (topic.file(), manual::roff::page(topic, &topic_tables::filled(topic.source), SOURCE))
        }),
    );
    Ok(pages)
}

fn add_pages(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let man = Man::new(command.clone()).date("\"\"").source(SOURCE).manual("mk");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    examples(command).to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    notes(command).to_writer(&mut page)?;
    if command.get_name() == "mk" {
        environment().to_writer(&mut page)?;
    }
    see_also(command).to_writer(&mut page)?;
    pages.push((man.get_filename(), String::from_utf8_lossy(&page).into_owned()));
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| add_pages(sub, pages))
}

/// The usage line of `--help`; clap's own synopsis would repeat every option.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([roman(usage.trim_start_matches("Usage: "))]);
    roff
}

fn examples(command: &Command) -> Roff {
    let Some(text) = command.get_before_help() else { return Roff::new() };
    verbatim_section("EXAMPLES", text.to_string().lines().skip(1).map(str::trim_start))
}

fn notes(command: &Command) -> Roff {
    let Some(text) = command.get_after_help() else { return Roff::new() };
    verbatim_section("NOTES", text.to_string().lines())
}

/// The variables that commands read, with their purpose.
fn environment() -> Roff {
    let lines = config::variables().into_iter();
    let lines: Vec<String> =
        lines.flat_map(|Variable { name, purpose }| [name.to_owned(), format!("    {purpose}")]).collect();
    verbatim_section("ENVIRONMENT", lines.iter().map(String::as_str))
}

/// The topics, and for all but the first page that one.
fn see_also(command: &Command) -> Roff {
    let topics = TOPICS.iter().map(|topic| format!("{}({})", topic.page(), topic.section));
    let first = (command.get_name() != "mk").then(|| "mk(1)".to_owned());
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(first.into_iter().chain(topics).collect::<Vec<_>>().join(", "))]);
    roff
}

/// A section whose line breaks are kept, as in tables and commands.
fn verbatim_section<'a>(heading: &str, lines: impl Iterator<Item = &'a str>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// Prints the version.
pub(crate) fn version(args: &VersionArgs, session: &Session) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    if args.json {
        session.printer.document(&json!({ "schema": "mk.version/1", "version": version }))?;
    } else {
        session.printer.line(&format!("mk {version}"))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn repository(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
    }

    #[test]
    fn completions_of_the_repository_are_fresh() {
        for shell in Shell::value_variants() {
            let path = repository("completions").join(completion_file(*shell));
            let store_failure = fs::read_to_string(&path).unwrap_or_default();
            let fresh = completion_script(*shell);
            assert!(
                store_failure.trim_end() == fresh.trim_end(),
                "stale: mk completions {shell} > {}",
                path.display()
            );
        }
    }

    fn completion_file(shell: Shell) -> &'static str {
        match shell {
            Shell::Bash => "mk.bash",
            Shell::Elvish => "mk.elv",
            Shell::Fish => "mk.fish",
            Shell::PowerShell => "_mk.ps1",
            Shell::Zsh => "_mk",
            _ => "unknown",
        }
    }

    #[test]
    fn the_first_page_lists_the_variables() {
        let (_, page) = pages().unwrap().remove(0);
        let section = page.split_once(".SH ENVIRONMENT").unwrap().1;
        assert!(
            section.contains("MK_SERVER\n    base address") && section.contains("OPENAI_API_KEY"),
            "{section}"
        );
    }

    #[test]
    fn manual_pages_of_the_repository_are_fresh() {
        let pages = pages().unwrap();
        for (name, fresh) in &pages {
            let store_failure = fs::read_to_string(repository("man").join(name)).unwrap_or_default();
            assert!(store_failure == *fresh, "man/{name} is stale: mk man man");
        }
        let names = fs::read_dir(repository("man")).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.filter(|name| !name.to_string_lossy().ends_with(".md")).collect();
        assert_eq!(names.len(), pages.len(), "pages of commands that are gone");
    }

    #[test]
    fn pages_go_where_man_looks_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let pages = [("mk.1".to_owned(), "one".to_owned()), ("mk-server.5".to_owned(), "five".to_owned())];
        write(&dir.path().join("man1"), &pages).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("man1/mk.1")).unwrap(), "one");
        assert_eq!(fs::read_to_string(dir.path().join("man5/mk-server.5")).unwrap(), "five");
        write(&dir.path().join("flat"), &pages).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("flat/mk-server.5")).unwrap(), "five");
    }
}
