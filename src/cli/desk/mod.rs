//! Apps, keys and their usage, wherever they are: in the server's database, or at a server by `/v1`.
//!
//! Commands talk to a [`Desk`] and get the records of the API from it, so that they print the same of either. What a
//! person means by a name is found out here, among those records, by the same rules for both; keys of deleted apps are
//! revoked for good and not listed.
//!
//! Which one it is: the database if `--data-dir` or `--config` names it; the server if `--server` or `--profile` names
//! it; a server that the environment or the client's configuration names, if a console key for it is at hand, or a flag
//! names the key; else the database, which a flag that names a key does not go with.

mod audit;
mod local;
mod named;
mod remote;
mod requests;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use super::exit::{Failure, Kind};
use super::globals::Session;
use super::local::{Database, Local, is_missing};
use super::shell;
use crate::api::Service;
use crate::api::console::{App, CreatedKey, DeletedApp, Key, RevokedKey};
use crate::config::{ClientConfig, StorePlace};
use crate::keys::NewKey;
use crate::money::NanoUsd;
use crate::secret::SecretString;
use crate::storage::{AppChange, KeyChange};
use remote::Remote;

/// The name of the app that a new database begins with.
const FIRST_APP: &str = "default";

/// Apps and keys to administer.
pub(crate) enum Desk {
    /// Of the local database.
    Local(Local),
    /// Of a server.
    Remote(Remote),
}

/// Where a command is to work.
enum Target {
    Local,
    Remote(Box<ClientConfig>),
}

impl Desk {
    /// Opens the one that is meant. A database that is not there is told of, and an empty one in memory stands in for it:
    /// a mistyped directory is not made, nor are tables in somebody else's database.
    pub(crate) fn open(database: &Database, session: &mut Session) -> Result<Self, Failure> {
        if let Target::Remote(config) = choose(database, session)? {
            return Ok(Self::Remote(Remote::at(&config, session)?));
        }
        if !is_missing(&database.place(session)?)? {
            return Ok(Self::Local(database.open(session)?));
        }
        session.printer.warning(&match database.told_place(session)? {
            StorePlace::Directory(dir) => format!("there is no database in {} yet", dir.display()),
            StorePlace::Postgres(address) => format!("{address} has no tables of mk yet"),
        });
        Ok(Self::Local(Local::stand_in()?))
    }

    /// Opens the one that is meant, for what is made first: a database that is not there yet is made, and told of, as it
    /// may be another one than the server's. None is made for what is refused anyway, which shows when it is rehearsed on
    /// one in memory.
    pub(crate) fn open_or_make(
        database: &Database,
        session: &mut Session,
        rehearse: impl FnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        if let Target::Remote(config) = choose(database, session)? {
            return Ok(Self::Remote(Remote::at(&config, session)?));
        }
        let place = database.place(session)?;
        let is_new = is_missing(&place)?;
        if is_new {
            rehearse(&Self::Local(Local::in_memory()?))?;
        }
        let local = database.open(session)?;
        if is_new {
            session.printer.sentence(&match place {
                StorePlace::Directory(dir) => format!("made a new database in {}", dir.display()),
                StorePlace::Postgres(address) => format!("made the tables of mk in {address}"),
            });
        }
        Ok(Self::Local(local))
    }

    /// Opens the one that is meant, unless it is a database that is not there.
    pub(crate) fn open_if_there(database: &Database, session: &mut Session) -> Result<Option<Self>, Failure> {
        match choose(database, session)? {
            Target::Local => {
                let is_there = database
                    .place(session)
                    .is_ok_and(|place| is_missing(&place).is_ok_and(|missing| !missing));
                is_there.then(|| database.open(session).map(Self::Local)).transpose()
            }
            Target::Remote(config) => Remote::at(&config, session).map(|remote| Some(Self::Remote(remote))),
        }
    }

    /// What a question adds where something far away would be destroyed: ` on https://…`; nothing for a database of this
    /// machine alone.
    pub(crate) fn whereabouts(&self) -> String {
        match self {
            Self::Local(local) => match &local.place {
                Some(place @ StorePlace::Postgres(_)) => format!(" in {place}"),
                Some(StorePlace::Directory(_)) | None => String::new(),
            },
            Self::Remote(remote) => format!(" on {}", remote.server()),
        }
    }

    /// All apps, oldest first.
    pub(crate) fn apps(&self) -> Result<Vec<App>, Failure> {
        let mut apps = match self {
            Self::Local(local) => local.app_records()?,
            Self::Remote(remote) => remote.apps()?,
        };
        apps.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(apps)
    }

    /// The app with this id or name; an id wins over a name that looks like it.
    pub(crate) fn app(&self, id_or_name: &str) -> Result<App, Failure> {
        let apps = self.apps()?;
        let by_id = apps.iter().find(|app| app.id == id_or_name);
        let found = by_id.or_else(|| apps.iter().find(|app| app.name == id_or_name));
        found.cloned().ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("there is no app `{id_or_name}`"))
                .hint("`mk apps list` shows those there are")
        })
    }

    /// The app of what names none: the one that every database begins with, or the oldest where that one was renamed or
    /// deleted. There is always one, as the last cannot be deleted.
    pub(crate) fn usual_app(&self) -> Result<App, Failure> {
        let apps = self.apps()?;
        let first = apps.iter().find(|app| app.name == FIRST_APP).or_else(|| apps.first());
        first.cloned().ok_or_else(|| {
            Failure::new(Kind::NotFound, "there is no app").hint("`mk apps create NAME` makes one")
        })
    }

    /// Makes an app.
    pub(crate) fn create_app(&self, name: &str, budget: Option<NanoUsd>) -> Result<App, Failure> {
        match self {
            Self::Local(local) => local.create_app(name, budget),
            Self::Remote(remote) => remote.create_app(name, budget),
        }
    }

    /// Changes an app.
    pub(crate) fn update_app(&self, app: &App, change: &AppChange) -> Result<App, Failure> {
        match self {
            Self::Local(local) => local.update_app(app, change),
            Self::Remote(remote) => remote.update_app(app, change),
        }
    }

    /// Deletes an app and revokes its keys.
    pub(crate) fn delete_app(&self, app: &App) -> Result<DeletedApp, Failure> {
        match self {
            Self::Local(local) => local.delete_app(app),
            Self::Remote(remote) => remote.delete_app(app),
        }
    }

    /// Keys, oldest first, revoked ones too: of one app or of all, for one service or for all.
    pub(crate) fn keys(&self, app: Option<&App>, service: Option<Service>) -> Result<Vec<Key>, Failure> {
        let mut keys = match self {
            Self::Local(local) => local.key_records(app, service)?,
            Self::Remote(remote) => remote.keys(app, service)?,
        };
        keys.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(keys)
    }

    /// The record of this very key; `None` if it is not known. A server is asked with the key itself, once: by the last
    /// four characters alone it might be another one.
    pub(crate) fn key_itself(&self, key: &SecretString) -> Result<Option<Key>, Failure> {
        match self {
            Self::Local(local) => local.key_itself(key),
            Self::Remote(remote) => remote.key_itself(key),
        }
    }

    /// Makes a key in an app.
    pub(crate) fn create_key(&self, app: &App, new: &NewKey) -> Result<CreatedKey, Failure> {
        match self {
            Self::Local(local) => local.create_key(app, new),
            Self::Remote(remote) => remote.create_key(app, new),
        }
    }

    /// Changes a key.
    pub(crate) fn update_key(&self, key: &Key, change: &KeyChange) -> Result<Key, Failure> {
        match self {
            Self::Local(local) => local.update_key(key, change),
            Self::Remote(remote) => remote.update_key(key, change),
        }
    }

    /// Revokes a key, for ever.
    pub(crate) fn revoke_key(&self, key: &Key) -> Result<RevokedKey, Failure> {
        match self {
            Self::Local(local) => local.revoke_key(key),
            Self::Remote(remote) => remote.revoke_key(key),
        }
    }

    /// Replaces a key by a new one; the old one goes on working for `grace`.
    pub(crate) fn rotate_key(&self, key: &Key, grace: Duration) -> Result<CreatedKey, Failure> {
        match self {
            Self::Local(local) => local.rotate_key(key, grace),
            Self::Remote(remote) => remote.rotate_key(key, grace),
        }
    }
}

/// The flags that chose the place of this command, as they are typed behind another one that is to work there: ` --server
/// https://…`; nothing where no flag did.
pub(crate) fn same_place(database: &Database, session: &Session) -> String {
    let globals = &session.globals;
    let path = |path: &PathBuf| path.display().to_string();
    let flags = [
        ("--data-dir", database.data_dir.as_ref().map(path)),
        ("--config", database.config.as_ref().map(path)),
        ("--profile", globals.profile.clone()),
        ("--server", globals.server.clone()),
    ];
    let typed = |(flag, value): (&str, Option<String>)| Some(format!(" {flag} {}", shell::word(&value?)));
    flags.into_iter().filter_map(typed).collect()
}

/// What is meant where a change of an app is refused: the app, or the other one that has the new name already.
fn in_the_way(app: &App, change: &AppChange, is_taken: bool) -> String {
    let taken = change.name.as_deref().filter(|_| is_taken);
    format!("app `{}`", taken.map_or(app.name.as_str(), str::trim))
}

fn choose(database: &Database, session: &mut Session) -> Result<Target, Failure> {
    let by_flag = session.globals.server_flag();
    // A key that a flag names is for a server.
    let key_flag = session.globals.api_key_file.is_some().then_some("--api-key-file");
    if let Some(local_flag) = database.flag() {
        return match by_flag.or(key_flag) {
            None => Ok(Target::Local),
            Some(flag) => Err(Failure::usage(format!(
                "{flag} is about a server and {local_flag} about the database of this machine; give one of them"
            ))),
        };
    }
    let config = session.quiet_client_config(None, None)?;
    // No key is looked at for what needs none.
    if by_flag.is_none() && !config.server_origin.is_set() {
        if let Some(flag) = key_flag {
            return Err(Failure::usage(format!("{flag} is about a server, and none is named"))
                .hint("name it by --server, --profile or MK_SERVER")
                .hint(format!("leave {flag} out to work on the database of this machine")));
        }
        return Ok(Target::Local);
    }
    let has_key = config.key_for(Service::Console)?.is_some();
    if by_flag.is_none() && !has_key && key_flag.is_none() {
        return Ok(Target::Local);
    }
    session.warn(&config);
    if !has_key {
        return Err(crate::cli::remote::no_key(&config, Service::Console, None));
    }
    Ok(Target::Remote(Box::new(config)))
}
