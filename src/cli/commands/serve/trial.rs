//! The temporary keys that `mk serve --sandbox` gives to the person at the terminal, one for each service that asks
//! models, valid while the server runs.
//!
//! Beside the database stands a locked file named after each key. The system releases the lock when its process ends,
//! however it ends, so that the next server on the directory can tell a key whose server was killed, and revokes it:
//! real models must never answer to it. A key whose server still runs is left alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::Service;
use crate::app::AppState;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::target::database::store_failure;
use crate::keys::{self, NewKey};
use crate::private;
use crate::secret::SecretString;
use crate::storage::Error;

/// The expiry of a key, in case no server revokes it.
const LIFETIME: Duration = Duration::from_hours(24);

/// How the names of the files begin; the key's id follows.
const PREFIX: &str = "trial-";

/// Temporary keys for trying the sandbox; revoked when the server ends.
#[derive(Default)]
pub(super) struct TrialKeys(Vec<TrialKey>);

struct TrialKey {
    id: String,
    service: Service,
    key: SecretString,
    mark: Option<Mark>,
}

impl TrialKeys {
    pub(super) fn begin(is_requested: bool, app: &AppState, data_dir: &Path) -> Result<Self, Failure> {
        // On a shared database, other servers would accept the keys as well, and call real models with them.
        if !app.store.is_local() {
            return Ok(Self::default());
        }
        revoke_left_over(app, data_dir);
        if !is_requested {
            return Ok(Self::default());
        }
        let apps = app.store.apps().map_err(|cause| store_failure(cause, "app"))?;
        let Some(first) = apps.first() else { return Ok(Self::default()) };
        let make = |service| TrialKey::make(service, app, &first.id, data_dir);
        [Service::Verify, Service::Inference].into_iter().map(make).collect::<Result<_, _>>().map(Self)
    }

    /// The key for a service.
    pub(super) fn key(&self, service: Service) -> Option<&SecretString> {
        self.0.iter().find(|made| made.service == service).map(|made| &made.key)
    }

    pub(super) fn end(self, app: &AppState) {
        self.0.into_iter().for_each(|made| made.end(app));
    }
}

impl TrialKey {
    fn make(service: Service, app: &AppState, app_id: &str, data_dir: &Path) -> Result<Self, Failure> {
        let now = app.clock.now();
        let mut request = NewKey::new(service, app_id);
        request.name = Some("sandbox trial".to_owned());
        request.expires_at = Some(now.plus(LIFETIME));
        let made = keys::create(&app.store, &request, now);
        let (key, row) =
            made.map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        // Marked before anybody is shown the key; nobody knows one whose server is killed in between.
        let mark = Mark::write(data_dir, &row.id);
        Ok(Self { id: row.id.to_string(), service, key, mark })
    }

    fn end(self, app: &AppState) {
        match app.store.revoke_key(&self.id, app.clock.now()) {
            Ok(_) => {
                if let Some(mark) = self.mark {
                    mark.remove();
                }
            }
            // The file stays, for the next server.
            Err(cause) => {
                tracing::warn!(%cause, "a sandbox key could not be revoked; it expires within a day");
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
fn revoke_left_over(app: &AppState, data_dir: &Path) {
    let Ok(entries) = fs::read_dir(data_dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let path = entry.path();
        // Held until the key is revoked and the file gone.
        let Some(_lock) = unless_in_use(&path) else { continue };
        match app.store.revoke_key(id, app.clock.now()) {
            Ok(_) => {
                tracing::info!(key = id, "revoked the key of a killed sandbox");
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
