//! The data among the candidates: what keys, apps, models and profiles there are.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;

use super::words::option;
use crate::api::Service;
use crate::cli::Cli;
use crate::cli::args::globals::{Globals, Session};
use crate::cli::process::runtime;
use crate::cli::target::database::DatabaseArgs;
use crate::cli::target::{admin, remote};
use crate::clock::Clock;
use crate::config::{Env, profile_names};
use crate::manual::TOPICS;
use crate::storage::{NamedKey, Names};
use crate::usage::Month;

/// What an argument names, by the name of its value in the help.
#[derive(Clone, Copy, Debug)]
enum Data {
    Apps,
    Keys,
    Models,
    Profiles,
    /// What `mk help` shows.
    Help,
    /// Months of which there may be a statement.
    Months,
    /// These words, and others.
    Words(&'static [&'static str]),
}

fn data(arg: &Arg) -> Option<Data> {
    let name = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
    Some(match (arg.get_id().as_str(), name) {
        ("profile", _) => Data::Profiles,
        ("key" | "keys", "" | "KEY") | (_, "KEY") => Data::Keys,
        ("app", "" | "APP") | (_, "APP") => Data::Apps,
        ("model" | "models", _) => Data::Models,
        ("words", "TOPIC|COMMAND") => Data::Help,
        ("month", _) => Data::Months,
        ("expires", _) => Data::Words(&["30d", "90d", "1y"]),
        (_, "SPAN") => Data::Words(&["24h", "7d", "30d", "90d"]),
        ("timeout" | "time_limit", _) => Data::Words(&["30s", "2m", "10m"]),
        ("grace", _) => Data::Words(&["1h", "24h", "7d"]),
        _ => return None,
    })
}

/// The command with its data. Paths are left to the shell, which knows `~` and variables.
pub(super) fn attach(command: Command, source: &Arc<Source>) -> Command {
    let with_data = |arg: Arg| match data(&arg) {
        Some(data) => {
            let source = Arc::clone(source);
            arg.add(ArgValueCompleter::new(move |typed: &OsStr| source.candidates(data, typed)))
        }
        None if arg.get_action().takes_values() => arg.value_hint(ValueHint::Other),
        None => arg,
    };
    command.mut_args(with_data).mut_subcommands(|sub| attach(sub, source))
}

/// Where the data is, as far as the words tell.
#[derive(Debug)]
pub(super) struct Source {
    /// The words behind `help`, but for the one that is being typed.
    help: Vec<String>,
    globals: Globals,
    database: DatabaseArgs,
}

impl Source {
    pub(super) fn new(words: &[String]) -> Arc<Self> {
        let text = |name| option(words, name).map(str::to_owned);
        let path = |name| text(name).map(PathBuf::from);
        let complete = words.split_last().map_or(&[][..], |(_, complete)| complete);
        let help = complete.iter().skip_while(|word| *word != "help").skip(1).cloned().collect();
        Arc::new(Self {
            help,
            globals: Globals {
                quiet: true,
                server: text("--server"),
                profile: text("--profile"),
                api_key_file: path("--api-key-file"),
                ca_cert: path("--ca-cert"),
                ..Globals::default()
            },
            database: DatabaseArgs { data_dir: path("--data-dir"), config: path("--config") },
        })
    }

    fn candidates(&self, data: Data, typed: &OsStr) -> Vec<CompletionCandidate> {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let mut found = match data {
            Data::Words(words) => words.iter().map(CompletionCandidate::new).collect(),
            Data::Help => self.helped(),
            Data::Months => months(),
            Data::Apps => self.names(false).apps.into_iter().map(CompletionCandidate::new).collect(),
            Data::Keys => keys(self.names(true).keys, typed),
            Data::Models => self.models().into_iter().map(CompletionCandidate::new).collect(),
            Data::Profiles => {
                profile_names(&self.session().env).into_iter().map(CompletionCandidate::new).collect()
            }
        };
        found.retain(|found| found.get_value().to_str().is_some_and(|value| value.starts_with(typed)));
        found
    }

    /// Commands at the place where `mk help` is, and topics at the first.
    fn helped(&self) -> Vec<CompletionCandidate> {
        let root = Cli::command();
        let Some(command) = self.help.iter().try_fold(&root, |at, word| at.find_subcommand(word)) else {
            return Vec::new();
        };
        let mut names: BTreeSet<&str> =
            command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
        if self.help.is_empty() {
            names.extend(TOPICS.iter().map(|topic| topic.name));
        }
        names.into_iter().map(CompletionCandidate::new).collect()
    }

    fn session(&self) -> Session {
        Session::begin(self.globals.clone(), Env::system())
    }

    fn names(&self, with_keys: bool) -> Names {
        admin::names(&self.database, &mut self.session(), with_keys).unwrap_or_default()
    }

    /// The models of the server. The configured one is known without it.
    fn models(&self) -> BTreeSet<String> {
        let mut session = self.session();
        let Ok(config) = session.quiet_client_config(None, None) else { return BTreeSet::new() };
        let mut models: BTreeSet<String> = config.chat_model.iter().cloned().collect();
        let key = config.key_for(Service::Inference).ok().flatten();
        let client = key.and_then(|key| remote::client(&config, Some(key)).ok());
        if let Some(client) = client {
            let listed =
                runtime::run(&session.printer, async { Ok(client.models().await.unwrap_or_default()) });
            models.extend(listed.unwrap_or_default().into_iter().map(|model| model.id));
        }
        models
    }
}

/// This month and those of the year before it.
fn months() -> Vec<CompletionCandidate> {
    let this = Month::of(Clock::system().now());
    let months = std::iter::successors(Some(this), |month| Some(month.previous())).take(12);
    months.map(|month| CompletionCandidate::new(month.to_string())).collect()
}

/// Keys by their names; by their ids where they have none, or where an id is begun.
fn keys(keys: Vec<NamedKey>, typed: &str) -> Vec<CompletionCandidate> {
    let mut seen = BTreeSet::new();
    let by_id = !typed.is_empty() && "key_".starts_with(typed.get(..4).unwrap_or(typed));
    let candidate = |key: NamedKey| {
        let about = format!("{}, ...{}", key.service, key.last4);
        let (value, about) = match key.name {
            Some(name) if by_id => (key.id, format!("{name}, {about}")),
            Some(name) => (name, about),
            None => (key.id, about),
        };
        CompletionCandidate::new(value).help(Some(about.into()))
    };
    keys.into_iter().map(candidate).filter(|found| seen.insert(found.get_value().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_name_and_begun_ids_by_id() {
        let key = |id: &str, name: Option<&str>| NamedKey {
            id: id.to_owned(),
            name: name.map(str::to_owned),
            last4: "abcd".to_owned(),
            service: "verify".to_owned(),
        };
        let all = || vec![key("key_1", Some("ci")), key("key_2", None), key("key_3", Some("ci"))];
        let shown = |typed| -> Vec<String> {
            keys(all(), typed).iter().map(|found| found.get_value().to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(shown(""), ["ci", "key_2"]);
        assert_eq!(shown("key_"), ["key_1", "key_2", "key_3"]);
        assert_eq!(shown("key_3"), ["key_1", "key_2", "key_3"], "the rest is up to whoever asked");
    }
}
