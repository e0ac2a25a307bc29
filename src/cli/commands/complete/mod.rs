//! Completion at a shell's prompt: the scripts of `mk completions` ask `mk __complete`, which knows the data.
//!
//! ```text
//! script of a shell ─ words ─ engine (clap's, from the definition of --help) ─ shells: what the shell expects
//!                                └─ values: names of keys, apps, models, profiles
//! ```
//!
//! Whoever presses Tab must not wait and gets no messages: what takes too long or fails completes nothing, and where
//! nothing is known, the shell completes files. Nothing is created, changed or migrated, and no secret is printed.

mod shells;
mod values;
mod words;

use std::ffi::OsString;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Args, CommandFactory};
use clap_complete::{CompletionCandidate, engine};

use crate::cli::Cli;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::Outcome;
use crate::unsafe_chars::is_hazard;
pub(crate) use shells::{Asking, script};
use values::Source;

/// How long a person waits at most. A database of this machine takes a hundredth of it; a far server may take all.
const PATIENCE: Duration = Duration::from_millis(300);

/// The most candidates that are of use.
const MAX_CANDIDATES: usize = 200;

/// The arguments of `mk __complete`.
#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {
    /// Which shell asks
    #[arg(value_enum)]
    shell: Asking,

    /// The command line up to the cursor, in the way of that shell
    #[arg(last = true)]
    line: Vec<OsString>,
}

/// Prints what completes a command line. Never fails.
pub(crate) fn run(args: &CompleteArgs, session: &Session) -> Outcome {
    let line: Vec<String> = args.line.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (words, replaced) = shells::words(args.shell, line);
    let (sender, receiver) = mpsc::channel();
    let asked = words.clone();
    // Left behind where it takes too long.
    thread::spawn(move || sender.send(candidates(&asked)));
    for found in receiver.recv_timeout(PATIENCE).unwrap_or_default() {
        if let Some(line) = shells::line(args.shell, &replaced, &found) {
            session.printer.result(&line)?;
        }
    }
    Ok(0)
}

/// What may stand in place of the last word.
fn candidates(words: &[String]) -> Vec<Found> {
    let Some(current) = words.last() else { return Vec::new() };
    let mut command = values::attach(Cli::command(), &Source::new(words));
    let given = words.iter().map(OsString::from).collect();
    let found = engine::complete(&mut command, given, words.len() - 1, None).unwrap_or_default();
    let mut found: Vec<Found> =
        found.iter().filter(|found| !found.is_hide_set()).filter_map(Found::new).collect();
    found.retain(|found| words::fits_in_its_list(&found.value));
    if current.is_empty() {
        // Options are offered where they are begun, or where nothing else can stand.
        let is_option = |found: &Found| found.value.starts_with('-');
        if words::takes_argument(&command, words) || !found.iter().all(is_option) {
            found.retain(|found| !is_option(found));
        }
    }
    found.truncate(MAX_CANDIDATES);
    found
}

/// A candidate, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    value: String,
    about: String,
}

impl Found {
    /// `None` if it cannot be typed.
    fn new(candidate: &CompletionCandidate) -> Option<Self> {
        let value = candidate.get_value().to_str().filter(|value| !value.chars().any(is_hazard))?.to_owned();
        let about = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let about =
            crate::cli::terminal::sanitize::line(about.lines().next().unwrap_or_default()).into_owned();
        Some(Self { value, about })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        candidates(&words).into_iter().map(|found| found.value).collect()
    }

    #[test]
    fn commands_options_and_their_values_are_completed() {
        assert_eq!(values("mk ke"), ["keys"]);
        assert_eq!(values("mk keys ro"), ["rotate"]);
        assert_eq!(values("mk usage --b"), ["--by"]);
        assert_eq!(values("mk usage --by d"), ["day"]);
        assert_eq!(values("mk usage --by day,mo"), ["day,model"]);
        assert_eq!(values("mk usage --by=day,mo"), ["--by=day,model"]);
        assert_eq!(values("mk keys create --service v"), ["verify"]);
        assert_eq!(values("mk --color ne"), ["never"]);
        assert!(values("mk usage --by day,").len() > 2);
        assert!(!values("mk usage --by day,").contains(&"day,day".to_owned()));
        assert_eq!(
            values("mk verify --fail-on false,"),
            ["false,no-consensus", "false,unchecked", "false,skipped"]
        );
        assert_eq!(values("mk verify --fail-on never,"), [""; 0]);
        assert_eq!(values("mk verify --fail-on=false,s"), ["--fail-on=false,skipped"]);
        assert!(!values("mk ").iter().any(|value| value.starts_with(['-', '_'])), "{:?}", values("mk "));
    }

    #[test]
    fn topics_commands_and_months_are_completed() {
        assert_eq!(values("mk help gate"), ["gateway"]);
        assert_eq!(values("mk help key"), ["keys"], "a topic and a command");
        assert_eq!(values("mk help keys ro"), ["rotate"]);
        assert!(values("mk help ").len() > 20, "{:?}", values("mk help "));
        let months = values("mk apps statement x --month 20");
        assert_eq!(months.len(), 12);
        assert!(months.iter().all(|month| crate::usage::Month::parse(month).is_some()), "{months:?}");
        assert!(months.is_sorted_by(|one, other| one > other), "{months:?}");
    }

    #[test]
    fn where_files_can_stand_nothing_is_offered() {
        for line in ["mk verify ", "mk verify -f ", "mk backup ", "mk keys list --config "] {
            assert_eq!(values(line), [""; 0], "{line}");
        }
        assert!(
            values("mk doctor ").iter().all(|value| value.starts_with("--")),
            "nothing else can stand there"
        );
    }
}
