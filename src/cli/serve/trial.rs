//! The temporary key that `mk serve --sandbox` gives to the person at the terminal, valid while the server runs.
//!
//! Beside the database stands a locked file named after the key. The system releases the lock when its process ends,
//! however it ends, so that the next server on the directory can tell a key whose server was killed, and revokes it:
//! real models must never answer to it. A key whose server still runs is left alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::Service;
use crate::app::App;
use crate::cli::database::store_failure;
use crate::cli::exit::{Failure, Kind};
use crate::keys::{self, NewKey};
use crate::private;
use crate::secret::SecretString;
use crate::storage::Error;

/// The expiry of the key, in case no server revokes it.
const LIFETIME: Duration = Duration::from_hours(24);

/// How the names of the files begin; the key's id follows.
const PREFIX: &str = "trial-";

/// A temporary key for trying the sandbox; revoked when the server ends.
pub(super) struct TrialKey {
    id: Option<String>,
    pub(super) key: Option<SecretString>,
    mark: Option<Mark>,
}

impl TrialKey {
    pub(super) fn begin(is_requested: bool, app: &App, data_dir: &Path) -> Result<Self, Failure> {
        let none = Self { id: None, key: None, mark: None };
        // On a shared database, other servers would accept the key as well, and call real models with it.
        if !app.store.is_local() {
            return Ok(none);
        }
        revoke_left_over(app, data_dir);
        if !is_requested {
            return Ok(none);
        }
        let now = app.clock.now();
        let apps = app.store.apps().map_err(|cause| store_failure(cause, "app"))?;
        let Some(first) = apps.first() else { return Ok(none) };
        let mut request = NewKey::new(Service::Verify, &first.id);
        request.name = Some("sandbox trial".to_owned());
        request.expires_at = Some(now.plus(LIFETIME));
        let made = keys::create(&app.store, &request, now);
        let (key, row) =
            made.map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        // Marked before anybody is shown the key; nobody knows one whose server is killed in between.
        let mark = Mark::write(data_dir, &row.id);
        Ok(Self { id: Some(row.id.to_string()), key: Some(key), mark })
    }

    pub(super) fn end(self, app: &App) {
        let Some(id) = self.id else { return };
        match app.store.revoke_key(&id, app.clock.now()) {
            Ok(_) => {
                if let Some(mark) = self.mark {
                    mark.remove();
                }
            }
            // The file stays, for the next server.
            Err(cause) => {
                tracing::warn!(%cause, "the key of the sandbox could not be revoked; it expires within a day");
            }
        }
    }
}

/// The file of a key, locked while the key's server runs.
struct Mark {
    path: PathBuf,
    /// Closing it releases the lock.
    _locked: File,
}

impl Mark {
    /// Writes the file. Without it the key still ends with its server, unless that is killed.
    fn write(data_dir: &Path, id: &str) -> Option<Self> {
        let path = data_dir.join(format!("{PREFIX}{id}"));
        match locked(&path) {
            Ok(file) => Some(Self { path, _locked: file }),
            Err(cause) => {
                let path = path.display();
                tracing::warn!(%cause, %path, "if this server is killed, its key stays valid for up to a day");
                None
            }
        }
    }

    fn remove(self) {
        let _ = fs::remove_file(self.path);
    }
}

/// Creates a locked file. It gets its name only once it is locked, or another server could take it for a left-over.
fn locked(path: &Path) -> io::Result<File> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unnamed = path.with_file_name(format!(".{name}"));
    let file = private::create_new(&unnamed)?;
    let named = file.lock().and_then(|()| fs::rename(&unnamed, path));
    if named.is_err() {
        let _ = fs::remove_file(&unnamed);
    }
    named.map(|()| file)
}

/// Revokes the keys of sandbox servers on this directory that were killed.
fn revoke_left_over(app: &App, data_dir: &Path) {
    let Ok(entries) = fs::read_dir(data_dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let path = entry.path();
        // Held until the key is revoked and the file gone.
        let Some(_lock) = unless_in_use(&path) else { continue };
        match app.store.revoke_key(id, app.clock.now()) {
            Ok(_) => {
                tracing::info!(key = id, "revoked the key of a sandbox that was killed");
                let _ = fs::remove_file(&path);
            }
            Err(Error::NotFound) => {
                let _ = fs::remove_file(&path);
            }
            Err(cause) => tracing::warn!(%cause, key = id, "the key of a killed sandbox cannot be revoked"),
        }
    }
}

/// The locked file, unless its server runs or the file system has no locks.
fn unless_in_use(path: &Path) -> Option<File> {
    let file = File::options().write(true).open(path).ok()?;
    file.try_lock().ok().map(|()| file)
}
