//! Administration of apps, keys and their usage, either in the server's database or on a server through `/v1`.
//!
//! Commands talk to an [`Admin`] and get API records from it, so that they print the same for both. What a person means
//! by a name is resolved here, among those records and by the same rules for both; keys of deleted apps are revoked for
//! good and not listed.
//!
//! Which one it is: the database if `--data-dir` or `--config` names it; the server if `--server` or `--profile` names
//! it; a server that the environment or the client's configuration names, if a console key for it is at hand or a flag
//! names the key; otherwise the database, with which a flag that names a key is refused.

mod find_keys;
mod local;
mod remote;
mod usage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::database::{DatabaseArgs, OpenDatabase, is_missing};
use crate::api::Service;
use crate::api::console::{
    App, AuditEntry, Billing, CreatedKey, DeletedApp, ForgottenUser, Key, KeyChange, KeyState, RevokedKey,
    Statement, UsageReport,
};
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::shell;
use crate::config::{ClientConfig, StorePlace};
use crate::keys::NewKey;
use crate::money::NanoUsd;
use crate::secret::SecretString;
use crate::storage::{self, AppChange, AuditFilter, NamedKey, Names};
use crate::usage::{Month, ReportRequest};
use find_keys::refuse_key;
use remote::Remote;
pub(crate) use usage::Unpriced;

/// The name of the app that a new database begins with.
const FIRST_APP: &str = "default";

/// How long a locked database is waited for while somebody waits for a completion.
const LOCK_PATIENCE: Duration = Duration::from_millis(50);

/// Where apps and keys are administered.
pub(crate) enum Admin {
    /// The local database.
    Local(OpenDatabase),
    /// A server.
    Remote(Remote),
}

/// What there is in a database or on a server, and what can be done with it.
pub(crate) trait Records {
    /// All apps, in any order.
    fn apps(&self) -> Result<Vec<App>, Failure>;
    /// Creates an app.
    fn create_app(&self, name: &str, budget: Option<NanoUsd>) -> Result<App, Failure>;
    /// Changes an app.
    fn update_app(&self, app: &App, change: &AppChange) -> Result<App, Failure>;
    /// Deletes an app and revokes its keys.
    fn delete_app(&self, app: &App) -> Result<DeletedApp, Failure>;
    /// Keys in any order, including revoked ones.
    fn keys(&self, app: Option<&App>, service: Option<Service>) -> Result<Vec<Key>, Failure>;
    /// The record of exactly this key; `None` if it is unknown. A server is asked with the key itself, once: its last
    /// four characters may also be those of another key.
    fn key_by_secret(&self, key: &SecretString) -> Result<Option<Key>, Failure>;
    /// Creates a key in an app.
    fn create_key(&self, app: &App, new: &NewKey) -> Result<CreatedKey, Failure>;
    /// Changes a key.
    fn update_key(&self, key: &Key, change: &KeyChange) -> Result<Key, Failure>;
    /// Revokes a key, for ever.
    fn revoke_key(&self, key: &Key) -> Result<RevokedKey, Failure>;
    /// Replaces a key by a new one; the old one keeps working for `grace`.
    fn rotate_key(&self, key: &Key, grace: Duration) -> Result<CreatedKey, Failure>;
    /// At most `limit` entries of the audit log, newest first.
    fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure>;
    /// The usage report.
    fn report(&self, request: &ReportRequest) -> Result<UsageReport, Failure>;
    /// The month so far, and the budgets.
    fn billing(&self) -> Result<Billing, Failure>;
    /// What the app with this id used in a month; `what` names it in errors.
    fn statement(&self, app_id: &str, month: Month, what: &str) -> Result<Statement, Failure>;
    /// Forgets an end user of the app with this id, or of all apps.
    fn forget_user(&self, user: &str, app_id: Option<&str>) -> Result<ForgottenUser, Failure>;
}

/// Which of the two a command works on.
enum AdminTarget {
    Local,
    Remote(Box<ClientConfig>),
}

impl Admin {
    /// Opens the chosen one. A missing database is reported and replaced by an empty one in memory, so that neither a
    /// mistyped directory nor tables in somebody else's database are created.
    pub(crate) fn open(database: &DatabaseArgs, session: &mut Session) -> Result<Self, Failure> {
        if let AdminTarget::Remote(config) = choose(database, session)? {
            return Ok(Self::Remote(Remote::connect(&config, session)?));
        }
        if !is_missing(&database.place(session)?)? {
            return Ok(Self::Local(database.open(session)?));
        }
        session.printer.warning(&match database.announced_place(session)? {
            StorePlace::Directory(dir) => format!("there is no database in {} yet", dir.display()),
            StorePlace::Postgres(address) => format!("{address} has no tables of mk yet"),
        });
        Ok(Self::Local(OpenDatabase::placeholder()?))
    }

    /// Opens the chosen one for a command that creates something first. A missing database is created and reported, as
    /// it may be another one than the server's. `rehearse` runs against a database in memory before that, so that none
    /// is created for a request that is refused anyway.
    pub(crate) fn open_or_create(
        database: &DatabaseArgs,
        session: &mut Session,
        rehearse: impl FnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        if let AdminTarget::Remote(config) = choose(database, session)? {
            return Ok(Self::Remote(Remote::connect(&config, session)?));
        }
        let place = database.place(session)?;
        let is_new = is_missing(&place)?;
        if is_new {
            rehearse(&Self::Local(OpenDatabase::in_memory()?))?;
        }
        let local = database.open(session)?;
        if is_new {
            session.printer.sentence(&match place {
                StorePlace::Directory(dir) => format!("created a database in {}", dir.display()),
                StorePlace::Postgres(address) => format!("created the tables of mk in {address}"),
            });
        }
        Ok(Self::Local(local))
    }

    /// Opens the chosen one; `None` if it is a database that does not exist.
    pub(crate) fn open_existing(
        database: &DatabaseArgs,
        session: &mut Session,
    ) -> Result<Option<Self>, Failure> {
        match choose(database, session)? {
            AdminTarget::Local => {
                let exists = database
                    .place(session)
                    .is_ok_and(|place| is_missing(&place).is_ok_and(|missing| !missing));
                exists.then(|| database.open(session).map(Self::Local)).transpose()
            }
            AdminTarget::Remote(config) => {
                Remote::connect(&config, session).map(|remote| Some(Self::Remote(remote)))
            }
        }
    }

    /// The records there.
    pub(crate) fn records(&self) -> &dyn Records {
        match self {
            Self::Local(local) => local,
            Self::Remote(remote) => remote,
        }
    }

    /// What a prompt adds where something remote would be destroyed: ` on https://…`; empty for a database of this
    /// machine alone.
    pub(crate) fn location_suffix(&self) -> String {
        match self {
            Self::Local(local) => match &local.place {
                Some(place @ StorePlace::Postgres(_)) => format!(" in {place}"),
                Some(StorePlace::Directory(_)) | None => String::new(),
            },
            Self::Remote(remote) => format!(" on {}", remote.server()),
        }
    }

    /// The failure for what was looked for in vain, with a hint where that was. A missing database is reported by
    /// itself.
    fn not_found(&self, failure: Failure) -> Failure {
        match self {
            Self::Local(OpenDatabase { place: Some(place), .. }) => {
                failure.hint(format!("mk looked in {place}"))
            }
            Self::Local(_) => failure,
            Self::Remote(remote) => failure.hint(format!("mk looked on {}", remote.server())),
        }
    }

    /// The data directory of the database, if it has one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Local(OpenDatabase { place: Some(StorePlace::Directory(dir)), .. }) => Some(dir),
            Self::Local(_) | Self::Remote(_) => None,
        }
    }

    /// All apps, oldest first.
    pub(crate) fn apps(&self) -> Result<Vec<App>, Failure> {
        let mut apps = self.records().apps()?;
        apps.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(apps)
    }

    /// The app with this id or name; an id wins over a name that looks like it.
    pub(crate) fn app(&self, id_or_name: &str) -> Result<App, Failure> {
        refuse_key(id_or_name, "use the app's id or name")?;
        let apps = self.apps()?;
        let by_id = apps.iter().find(|app| app.id == id_or_name);
        let found = by_id.or_else(|| apps.iter().find(|app| app.name == id_or_name));
        found.cloned().ok_or_else(|| {
            let failure = Failure::new(Kind::NotFound, format!("there is no app `{id_or_name}`"));
            self.not_found(failure.hint("`mk apps list` shows all apps"))
        })
    }

    /// The app for a command that names none: the one that every database begins with, or the oldest if that one was
    /// renamed or deleted. There always is one, as the last cannot be deleted.
    pub(crate) fn default_app(&self) -> Result<App, Failure> {
        let apps = self.apps()?;
        let first = apps.iter().find(|app| app.name == FIRST_APP).or_else(|| apps.first());
        first.cloned().ok_or_else(|| {
            Failure::new(Kind::NotFound, "there is no app").hint("`mk apps create NAME` creates one")
        })
    }

    /// Keys, oldest first and including revoked ones, optionally of one app or one service only.
    pub(crate) fn keys(&self, app: Option<&App>, service: Option<Service>) -> Result<Vec<Key>, Failure> {
        let mut keys = self.records().keys(app, service)?;
        keys.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(keys)
    }
}

/// The flags that chose where this command works, as typed after another command that should work there too: ` --server
/// https://…`; empty where no flag did.
pub(crate) fn location_flags(database: &DatabaseArgs, session: &Session) -> String {
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

/// What to name where a change of an app is refused: the app, or the other one that already has the new name.
fn conflicting_app(app: &App, change: &AppChange, is_taken: bool) -> String {
    let taken = change.name.as_deref().filter(|_| is_taken);
    format!("app `{}`", taken.map_or(app.name.as_str(), str::trim))
}

/// The names in the chosen one, for completion: nothing is created, changed or waited for. `with_keys` also on a
/// server, which takes a request for each app. Those in a PostgreSQL database are known to a server only.
pub(crate) fn names(
    database: &DatabaseArgs,
    session: &mut Session,
    with_keys: bool,
) -> Result<Names, Failure> {
    let remote = match choose(database, session)? {
        AdminTarget::Remote(config) => Remote::connect(&config, session)?,
        AdminTarget::Local => {
            return match database.place(session)? {
                StorePlace::Directory(dir) => storage::names(&dir, LOCK_PATIENCE)
                    .map_err(|cause| Failure::new(Kind::Other, cause.to_string())),
                StorePlace::Postgres(_) => Ok(Names::default()),
            };
        }
    };
    let keys = if with_keys { remote.keys(None, None)? } else { Vec::new() };
    let keys = keys.into_iter().filter(|key| key.state != KeyState::Revoked).map(|key| NamedKey {
        id: key.id,
        name: key.name,
        last4: key.last4,
        service: key.service.to_string(),
    });
    let apps = remote.apps()?.into_iter().map(|app| app.name);
    Ok(Names { apps: apps.collect(), keys: keys.collect() })
}

fn choose(database: &DatabaseArgs, session: &mut Session) -> Result<AdminTarget, Failure> {
    let by_flag = session.globals.server_flag();
    // A key that a flag names is meant for a server.
    let key_flag = session.globals.api_key_file.is_some().then_some("--api-key-file");
    if let Some(local_flag) = database.flag() {
        return match by_flag.or(key_flag) {
            None => Ok(AdminTarget::Local),
            Some(flag) => Err(Failure::usage(format!(
                "{flag} selects a server, but {local_flag} selects this machine's database"
            ))
            .hint("use only one of them")),
        };
    }
    let config = session.quiet_client_config(None, None)?;
    // No key is read where none is needed.
    if by_flag.is_none() && !config.server_origin.is_set() {
        if let Some(flag) = key_flag {
            return Err(Failure::usage(format!("{flag} needs a server, and none is named"))
                .hint("name it with --server, --profile or MK_SERVER")
                .hint(format!("omit {flag} to work on this machine's database")));
        }
        return Ok(AdminTarget::Local);
    }
    let has_key = config.key_for(Service::Console)?.is_some();
    if by_flag.is_none() && !has_key && key_flag.is_none() {
        return Ok(AdminTarget::Local);
    }
    session.warn(&config);
    if !has_key {
        return Err(super::server_key::no_key(&config, Service::Console, None));
    }
    Ok(AdminTarget::Remote(Box::new(config)))
}
