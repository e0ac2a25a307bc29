//! The local database, for the commands that work on it beside a server: where it is, and what its refusals mean.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Failure, Kind};
use super::globals::Session;
use crate::api::console::Channel;
use crate::clock::{Clock, Time};
use crate::config::{Env, ServerArgs, load_data_dir};
use crate::keys::ManageError;
use crate::storage::{Actor, Error, Store};

/// Of a user's name, as the audit keeps it.
const MAX_USER_CHARS: usize = 64;

/// Which database.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Database")]
pub(crate) struct Database {
    /// Directory of the database [default: as the server's]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// The server's configuration file, which names that directory
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The database, and the present moment.
pub(crate) struct Local {
    /// The store.
    pub(crate) store: Store,
    /// The moment that everything of this command happens at.
    pub(crate) now: Time,
    /// Whether it stands in for one that is not there: nothing in it has an id that will be known later.
    pub(crate) is_stand_in: bool,
}

impl Local {
    /// One in which nothing has ever been done, in the place of one that is not there.
    pub(crate) fn stand_in() -> Result<Self, Failure> {
        let now = Clock::system().now();
        let store = Store::in_memory(now)
            .map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        Ok(Self { store, now, is_stand_in: true })
    }
}

impl Database {
    /// The flag that names it, if one does.
    pub(crate) const fn flag(&self) -> Option<&'static str> {
        match (&self.data_dir, &self.config) {
            (Some(_), _) => Some("--data-dir"),
            (None, Some(_)) => Some("--config"),
            (None, None) => None,
        }
    }

    /// Where it lies.
    pub(crate) fn dir(&self, session: &Session) -> Result<PathBuf, Failure> {
        let args = ServerArgs {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            ..ServerArgs::default()
        };
        Ok(load_data_dir(&args, &session.env)?)
    }

    /// Where it lies, told with `-v`.
    pub(crate) fn told_dir(&self, session: &Session) -> Result<PathBuf, Failure> {
        let dir = self.dir(session)?;
        session.printer.detail(&format!("database: {}", dir.display()));
        Ok(dir)
    }

    /// Opens it, making it if it is not there yet.
    pub(crate) fn open(&self, session: &Session) -> Result<Local, Failure> {
        let dir = self.told_dir(session)?;
        let now = Clock::system().now();
        let store = Store::open(&dir, now).map_err(|cause| unusable(&dir, cause))?;
        Ok(Local { store: store.acting(whoever(&session.env)), now, is_stand_in: false })
    }
}

/// Who sits at this command line, as far as the environment says.
fn whoever(env: &Env) -> Actor {
    let named = |variable| env.text(variable).ok().flatten().filter(|name| !name.is_empty());
    let name = named("USER").or_else(|| named("USERNAME"));
    let name = name.map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_USER_CHARS).collect());
    Actor { name, channel: Channel::Cli, ..Actor::default() }
}

/// Why a data directory cannot be used, and what to do.
pub(crate) fn unusable(dir: &Path, cause: Error) -> Failure {
    Failure::usage(format!("cannot use the data directory {}: {cause}", dir.display()))
        .hint(way_out(&cause))
        .caused_by(cause)
}

/// What to do about a data directory that cannot be used.
pub(crate) fn way_out(cause: &Error) -> &'static str {
    match cause {
        _ if cause.is_busy() => {
            "try again when the other program is done; `fuser` on the file tells which it is"
        }
        _ if cause.is_damage() => RESTORE,
        _ => "name another directory with --data-dir or MK_DATA_DIR, or run mk as its owner",
    }
}

/// What to do about a database that is damaged.
pub(crate) const RESTORE: &str =
    "stop the server, move the directory away, and put a backup back: `mk restore FILE`";

/// What a refusal of the store means; `what` names the thing that was asked for.
pub(crate) fn stored(cause: Error, what: &str) -> Failure {
    let failure = match &cause {
        Error::NotFound => Failure::new(Kind::NotFound, format!("there is no {what}")),
        Error::Conflict(_) => Failure::new(Kind::Conflict, format!("{what}: {cause}")),
        _ => Failure::new(Kind::Other, cause.to_string()),
    };
    failure.caused_by(cause)
}

/// Why an app or key was not made or changed; `what` as in [`stored`].
pub(crate) fn refused(cause: ManageError, what: &str) -> Failure {
    match cause {
        ManageError::Invalid(field, why) => Failure::usage(invalid(&field, &why)),
        ManageError::Storage(cause) => stored(cause, what),
        ManageError::Randomness(_) => Failure::new(Kind::Other, cause.to_string()).caused_by(cause),
    }
}

/// What is wrong with a field, by the name that the command line has for it.
fn invalid(field: &str, why: &str) -> String {
    // Of several, the sentence quotes the one that is meant.
    let name = match field.split('[').next().unwrap_or_default() {
        "addresses" => "--address",
        "expires_at" => "--expires",
        "models" => "--model",
        "budget_usd" => "--budget-usd",
        // Of the key as a whole: the sentence says so.
        "key" => return why.to_owned(),
        other => other,
    };
    let goes_on = why.starts_with("must ") || why.starts_with("may ");
    if goes_on { format!("{name} {why}") } else { format!("{name}: {why}") }
}
