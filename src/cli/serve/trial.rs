//! The temporary key that `mk serve --sandbox` gives to the person at the terminal, valid while the server runs.

use std::time::Duration;

use crate::api::Service;
use crate::app::App;
use crate::cli::database::store_failure;
use crate::cli::exit::{Failure, Kind};
use crate::keys::{self, NewKey};
use crate::secret::SecretString;

/// The expiry of the key, in case the server does not revoke it.
const LIFETIME: Duration = Duration::from_hours(24);

/// A temporary key for trying the sandbox; revoked when the server ends.
pub(super) struct TrialKey {
    id: Option<String>,
    pub(super) key: Option<SecretString>,
}

impl TrialKey {
    pub(super) fn begin(is_requested: bool, app: &App) -> Result<Self, Failure> {
        // On a shared database, other servers would accept the key as well, and call real models with it.
        if !is_requested || !app.store.is_local() {
            return Ok(Self { id: None, key: None });
        }
        let now = app.clock.now();
        let apps = app.store.apps().map_err(|cause| store_failure(cause, "app"))?;
        let Some(first) = apps.first() else { return Ok(Self { id: None, key: None }) };
        let mut request = NewKey::new(Service::Verify, &first.id);
        request.name = Some("sandbox trial".to_owned());
        request.expires_at = Some(now.plus(LIFETIME));
        let made = keys::create(&app.store, &request, now);
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
