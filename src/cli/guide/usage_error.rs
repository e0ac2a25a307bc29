//! What is printed instead of running a command: help, the version, or what is wrong with the arguments.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::short_help;
use crate::cli::Cli;
use crate::cli::args::globals::{self, Globals, Session};
use crate::cli::process::end::{self, End};
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::term::Paint;
use crate::config::{self, Env};
use crate::keys;

/// Prints help and version to standard output, and usage errors as errors with hints.
pub(crate) fn report(error: &clap::Error, args: &[OsString], env: Env, wants_json: bool) -> End {
    let session = Session::begin(Globals::default(), env);
    let printer = &session.printer;
    let short =
        (error.kind() == ErrorKind::DisplayHelp).then(|| short_help::asked_for(&Cli::command(), args));
    if let Some(command) = short.flatten() {
        let text = short_help::text(&command, &printer.terminal);
        let text = printer.terminal.symbols.adapt(text.into());
        return end::report(printer.result(&text).map(|()| 0), printer, false);
    }
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return end::report(print_asked_for(error, printer), printer, false);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let text = error.render().to_string();
        printer.notice(&printer.terminal.symbols.adapt(text.trim_end().into()));
        return End::Code(Kind::Usage.code());
    }
    end::report(Err(failure(error, args)), printer, wants_json)
}

/// A help with the options that are the same everywhere behind everything else.
fn globals_last(help: &str) -> String {
    let mut sections: Vec<&str> = help.split("\n\n").collect();
    let is_globals =
        |section: &&str| section.lines().next().is_some_and(|line| line.contains(globals::HEADING));
    if let Some(at) = sections.iter().position(is_globals) {
        let globals = sections.remove(at);
        sections.push(globals);
    }
    sections.join("\n\n")
}

/// Prints the help of the command that these arguments name; they end in `--help`.
pub(crate) fn help(args: &[OsString], printer: &Printer) -> Outcome {
    match Cli::try_parse_from(args) {
        Err(error) if error.kind() == ErrorKind::DisplayHelp => print_asked_for(&error, printer),
        Err(error) => Err(failure(&error, args)),
        Ok(_) => Ok(0),
    }
}

/// Prints help or version to standard output.
fn print_asked_for(error: &clap::Error, printer: &Printer) -> Outcome {
    let text = error.render();
    // Help is bold and underlined, and has no colour.
    let text = match printer.terminal.out.paint {
        Paint::Plain => text.to_string(),
        Paint::Bold | Paint::Full => text.ansi().to_string(),
    };
    let text = globals_last(text.trim_end());
    printer.result(&printer.terminal.symbols.adapt(text.into())).map(|()| 0)
}

fn failure(error: &clap::Error, args: &[OsString]) -> Failure {
    let rendered = error.render().to_string();
    let message: Vec<&str> = rendered.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = without_hidden(without_keys(message.join(" "), args));
    let mut failure = Failure::usage(message.trim_start_matches("error: ").to_owned());
    if let Some(place) = correct_position(error, args) {
        return failure.hint(format!("put it after the command: {place}"));
    }
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => Some(typed.as_str()),
        _ => None,
    };
    for (kind, value) in error.context() {
        if let Some(hint) = suggestion(kind, value, typed) {
            failure = failure.hint(hint);
        }
    }
    if let Some(name) = suggestion_for_help(error, args) {
        failure = failure.hint(format!("did you mean `{name}`?"));
    }
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return failure.hint("see --help");
    };
    let command_path = command_path(&usage.to_string());
    let mut root = Cli::command();
    root.build();
    let command = find(&root, &command_path);
    failure = missing_values(error, command).into_iter().fold(failure, Failure::hint);
    if is_text_that_begins_with_a_dash(error, args) {
        failure = failure.hint("put `--` before a text that begins with a dash");
    }
    if is_unquoted_text(error, &command_path) {
        failure = failure.hint(format!("put the whole text in quotes: mk {} \"…\"", command_path.join(" ")));
    }
    failure.hint(format!("{}; see --help", usage_of(command)))
}

/// The message without any keys that stand among the arguments in the wrong place, so that they are not shown again.
fn without_keys(message: String, args: &[OsString]) -> String {
    let values = args.iter().filter_map(|arg| arg.to_str()).map(|arg| arg.rsplit('=').next().unwrap_or(arg));
    let keys = values.filter_map(|value| Some((value, keys::service_of(value)?)));
    keys.fold(message, |message, (key, service)| message.replace(key, &format!("mk_{service}_...")))
}

/// The message without commands that are not for people, in clap's lists of all.
fn without_hidden(message: String) -> String {
    let root = Cli::command();
    let hidden = root.get_subcommands().filter(|sub| sub.is_hide_set());
    hidden.fold(message, |message, sub| {
        let name = sub.get_name();
        message.replace(&format!("{name}, "), "").replace(&format!(", {name}"), "")
    })
}

/// The failure for `update` of `keys` or `apps` without any change; lists the options that `show` lacks.
pub(crate) fn no_change(command: &str) -> Failure {
    let root = Cli::command();
    let options = |name: &str| -> Vec<String> {
        let found = root.find_subcommand(command).and_then(|command| command.find_subcommand(name));
        let arguments = found.into_iter().flat_map(clap::Command::get_arguments);
        arguments.filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect()
    };
    let (mut changes, others) = (options("update"), options("show"));
    changes.retain(|option| !others.contains(option));
    Failure::usage("there is nothing to change").hint(format!("one or more of {}", changes.join(", ")))
}

/// The command names in a usage line, without the program's.
fn command_path(usage: &str) -> Vec<String> {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    usage.split_whitespace().skip(2).take_while(is_name).map(str::to_owned).collect()
}

/// The command of this path, or the last one above it that exists.
fn find<'c>(root: &'c clap::Command, command_path: &[String]) -> &'c clap::Command {
    command_path.iter().fold(root, |command, name| command.find_subcommand(name).unwrap_or(command))
}

/// A command's full usage line. Clap's own line contains the very arguments that conflict.
fn usage_of(command: &clap::Command) -> String {
    // If a command has subcommands, the first line is its own.
    one_line(command.clone().render_usage().to_string().lines().next().unwrap_or_default())
}

/// How to write the command that takes the option which was given before it.
fn correct_position(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = argument.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let root = Cli::command();
    let (mut command, mut written) = (&root, "mk".to_owned());
    for word in args.iter().skip(1).filter_map(|arg| arg.to_str()) {
        if let Some(below) = command.find_subcommand(word) {
            command = below;
            written = format!("{written} {}", below.get_name());
        }
    }
    let found = command.get_arguments().find(|known| known.get_long() == Some(option))?;
    let value = if found.get_action().takes_values() { " …" } else { "" };
    Some(format!("{written} --{option}{value}"))
}

/// For each required argument that is missing, what it may be, if that is one of a list.
fn missing_values(error: &clap::Error, command: &clap::Command) -> Vec<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return Vec::new() };
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return Vec::new();
    }
    let values = |argument: &clap::Arg| -> Option<String> {
        let values = argument.get_possible_values();
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        let takes = missing.contains(&argument.to_string()) && !names.is_empty();
        takes.then(|| format!("{argument} is one of {}", names.join(", ")))
    };
    command.get_arguments().filter_map(values).collect()
}

/// Whether the words after the first one of a text were parsed as further arguments.
fn is_unquoted_text(error: &clap::Error, command_path: &[String]) -> bool {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return false };
    error.kind() == ErrorKind::UnknownArgument && command_path == ["chat"] && !argument.starts_with('-')
}

/// Whether what was parsed as options is a text: no option has a space in its name.
fn is_text_that_begins_with_a_dash(error: &clap::Error, args: &[OsString]) -> bool {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return false };
    let name = |arg: &OsString| arg.to_str().map(|arg| arg.split('=').next().unwrap_or(arg).to_owned());
    let is_text = |name: String| name.starts_with(argument.trim_end()) && name.contains(char::is_whitespace);
    error.kind() == ErrorKind::UnknownArgument
        && argument.starts_with('-')
        && args.iter().skip(1).take_while(|arg| *arg != "--").filter_map(name).any(is_text)
}

/// The command probably meant by a name that `mk help` does not know, for which clap has no suggestion.
fn suggestion_for_help(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let help = args.iter().position(|arg| arg == "help")?;
    let root = Cli::command();
    let known = args.iter().skip(help + 1).take_while(|arg| *arg != unknown.as_str());
    let command =
        known.into_iter().try_fold(&root, |command, name| command.find_subcommand(name.to_str()?))?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    config::closest(unknown, shown.map(clap::Command::get_name)).map(str::to_owned)
}

/// Of several names that clap suggests the one closest to what was typed, or all if none is close.
fn closest_of<'n>(names: &'n [String], typed: Option<&str>) -> Vec<&'n str> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let closest = typed.and_then(|typed| config::closest(typed, names.iter().copied()));
    closest.map_or(names, |name| vec![name])
}

/// What may be meant, by what clap knows of the error; `typed` is what it does not know.
fn suggestion(kind: ContextKind, value: &ContextValue, typed: Option<&str>) -> Option<String> {
    match (kind, value) {
        (
            ContextKind::SuggestedArg | ContextKind::SuggestedSubcommand | ContextKind::SuggestedValue,
            ContextValue::String(name),
        ) => Some(format!("did you mean `{name}`?")),
        (
            ContextKind::SuggestedArg | ContextKind::SuggestedSubcommand | ContextKind::SuggestedValue,
            ContextValue::Strings(names),
        ) if !names.is_empty() => {
            let names = closest_of(names, typed);
            Some(format!("did you mean `{}`?", names.join("` or `")))
        }
        // "To pass '--format' as a value" helps nobody who mistyped an option.
        (ContextKind::Suggested, ContextValue::StyledStrs(texts)) => {
            texts.first().map(|text| one_line(&text.to_string())).filter(|hint| !hint.starts_with("to pass "))
        }
        _ => None,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::secret::ExposeSecret;

    fn parse_failure(args: &[&str]) -> Failure {
        let given: Vec<OsString> = args.iter().map(OsString::from).collect();
        failure(&Cli::try_parse_from(args).unwrap_err(), &given)
    }

    #[test]
    fn a_service_must_be_one_of_those_listed() {
        for (command, services) in [
            (&["keys", "create"][..], "verify, inference, console"),
            (&["keys", "list"], "verify, inference, console"),
            (&["logout"], "verify, inference, console"),
            (&["usage"], "verify, inference"),
        ] {
            let args: Vec<&str> =
                ["mk"].iter().chain(command).chain(&["--service", "verfy"]).copied().collect();
            let failure = parse_failure(&args);
            assert!(
                failure.message.contains(&format!("[possible values: {services}]")),
                "{}",
                failure.message
            );
            assert_eq!(failure.hints[0], "did you mean `verify`?");
        }
    }

    #[test]
    fn a_missing_argument_is_told_with_its_possible_values() {
        for (args, hint) in [
            (&["mk", "keys", "create"][..], "--service <SERVICE> is one of verify, inference, console"),
            (&["mk", "completions"], "<SHELL> is one of bash, elvish, fish, powershell, zsh"),
        ] {
            let failure = parse_failure(args);
            assert_eq!(failure.hints[0], hint, "{}", failure.message);
        }
        assert_eq!(parse_failure(&["mk", "keys", "show"]).hints.len(), 1);
    }

    #[test]
    fn mistyped_commands_and_flags_get_a_suggestion() {
        let command = parse_failure(&["mk", "verfy", "x"]);
        assert_eq!(command.message, "unrecognized subcommand 'verfy'");
        assert_eq!(command.hints[0], "did you mean `verify`?");
        assert_eq!(parse_failure(&["mk", "server"]).hints[0], "did you mean `serve`?");
        let unknown = parse_failure(&["mk", "verify", "--format", "x"]);
        assert!(unknown.hints.iter().all(|hint| !hint.contains("as a value")), "{:?}", unknown.hints);
        let flag = parse_failure(&["mk", "verify", "--sandbx", "x"]);
        assert_eq!(flag.message, "unexpected argument '--sandbx' found");
        assert_eq!(flag.hints[0], "did you mean `--sandbox`?");
        assert_eq!(flag.kind.code(), 2);
    }

    #[test]
    fn wrong_values_name_the_flag() {
        let wrong = parse_failure(&["mk", "verify", "--min-required", "5", "x"]);
        assert!(wrong.message.contains("--min-required") && wrong.message.contains('5'), "{}", wrong.message);
    }

    #[test]
    fn a_text_that_begins_with_a_dash_gets_a_hint() {
        let dashes = "put `--` before a text that begins with a dash";
        for text in ["- Paris is in France.", "-5 degrees is cold.", "--- a rule", "--so it goes"] {
            let failure = parse_failure(&["mk", "verify", text]);
            assert!(failure.hints.iter().any(|hint| hint == dashes), "{text}: {failure:?}");
        }
        for option in ["--sandbx", "-z", "--nothing=a b"] {
            let failure = parse_failure(&["mk", "verify", option]);
            assert!(!failure.hints.iter().any(|hint| hint == dashes), "{option}: {failure:?}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_place_is_not_repeated() {
        let minted = keys::mint(crate::api::Service::Verify).unwrap();
        let key = minted.key.expose_secret();
        for args in [&["mk", key][..], &["mk", "verify", &format!("--jobs={key}")], &["mk", "whoami", key]] {
            let failure = parse_failure(args);
            assert!(failure.message.contains("mk_verify_..."), "{}", failure.message);
            assert!(!failure.message.contains(key));
            assert!(failure.hints.iter().all(|hint| !hint.contains(key)), "{:?}", failure.hints);
        }
    }

    #[test]
    fn an_option_before_its_command_gets_a_hint_to_move_it() {
        for early in [
            &["mk", "--data-dir", "/srv/mk", "apps", "list"][..],
            &["mk", "apps", "--data-dir", "/srv/mk", "list"],
        ] {
            let failure = parse_failure(early);
            assert_eq!(failure.hints, ["put it after the command: mk apps list --data-dir …"]);
        }
        assert_eq!(
            parse_failure(&["mk", "--sandbox", "verify", "x"]).hints,
            ["put it after the command: mk verify --sandbox"]
        );
        let nowhere = parse_failure(&["mk", "apps", "--lines", "list"]);
        assert!(nowhere.hints.iter().all(|hint| !hint.contains("behind")), "{:?}", nowhere.hints);
    }
}
