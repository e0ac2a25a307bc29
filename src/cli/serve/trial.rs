//! The throw-away key that `mk serve --sandbox` gives the person at a terminal: there while the server runs.

use std::time::Duration;

use crate::api::Service;
use crate::app::App;
use crate::cli::exit::{Failure, Kind};
use crate::cli::local::stored;
use crate::keys::{self, NewKey};
use crate::secret::SecretString;

/// How long the key lives, if the server does not end it before.
const LIFE: Duration = Duration::from_hours(24);

/// A throw-away key for the person who tries the sandbox; ends with the server.
pub(super) struct Trial {
    id: Option<String>,
    pub(super) key: Option<SecretString>,
}

impl Trial {
    pub(super) fn begin(is_wanted: bool, app: &App) -> Result<Self, Failure> {
        // Other servers on a database that is shared would take it as well, and ask real models for it.
        if !is_wanted || !app.store.is_local() {
            return Ok(Self { id: None, key: None });
        }
        let now = app.clock.now();
        let apps = app.store.apps().map_err(|cause| stored(cause, "app"))?;
        let Some(first) = apps.first() else { return Ok(Self { id: None, key: None }) };
        let mut wanted = NewKey::new(Service::Verify, &first.id);
        wanted.name = Some("sandbox trial".to_owned());
        wanted.expires_at = Some(now.plus(LIFE));
        let made = keys::create(&app.store, &wanted, now);
        let (key, row) =
            made.map_err(|cause| Failure::new(Kind::Other, cause.to_string()).caused_by(cause))?;
        Ok(Self { id: Some(row.id.to_string()), key: Some(key) })
    }

    pub(super) fn end(self, app: &App) {
        let Some(id) = self.id else { return };
        if let Err(cause) = app.store.revoke_key(&id, app.clock.now()) {
            tracing::warn!(%cause, "the key of the sandbox could not be revoked; it expires within a day");
        }
    }
}
