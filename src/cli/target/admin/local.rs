//! Administration directly in the local database, returning the records of the API.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Records, conflicting_app};
use crate::api::Service;
use crate::api::console::{
    App, AuditEntry, Billing, CreatedKey, DeletedApp, ForgottenUser, Key, KeyChange, RevokedKey, Statement,
    UsageReport,
};
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::target::database::{OpenDatabase, manage_failure, store_failure};
use crate::clock::Clock;
use crate::keys::{self, ManageError, NewKey, apps};
use crate::money::NanoUsd;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::{AppChange, AppRow, AuditFilter, Error, KeyFilter, KeyRow, PageRequest};
use crate::usage::{self, Month, ReportError, ReportRequest};

impl Records for OpenDatabase {
    fn apps(&self) -> Result<Vec<App>, Failure> {
        // A new database begins with an app whose id cannot be known in advance.
        if self.is_placeholder {
            return Ok(Vec::new());
        }
        apps::records(&self.store, self.now).map_err(|cause| store_failure(cause, "app"))
    }

    fn create_app(&self, name: &str, budget: Option<NanoUsd>) -> Result<App, Failure> {
        let made = apps::create(self.writable_store()?, name, budget, self.now);
        self.app_record(&made.map_err(|cause| manage_failure(cause, &format!("app `{name}`")))?)
    }

    fn update_app(&self, app: &App, change: &AppChange) -> Result<App, Failure> {
        let changed = apps::update(self.writable_store()?, &app.id, change, self.now);
        let row = changed.map_err(|cause| {
            let is_taken = matches!(cause, ManageError::Storage(Error::Conflict(_)));
            manage_failure(cause, &conflicting_app(app, change, is_taken))
        })?;
        self.app_record(&row)
    }

    fn delete_app(&self, app: &App) -> Result<DeletedApp, Failure> {
        // The confirmation prompt may have taken a while.
        let deleted = self.writable_store()?.delete_app(&app.id, Clock::system().now());
        let deleted = deleted.map_err(|cause| store_failure(cause, &format!("app `{}`", app.name)))?;
        let (id, revoked_keys) = (app.id.clone(), deleted.revoked_keys);
        Ok(DeletedApp { id, deleted_at: deleted.at.rfc3339(), revoked_keys })
    }

    fn keys(&self, app: Option<&App>, service: Option<Service>) -> Result<Vec<Key>, Failure> {
        let failed = |cause| store_failure(cause, "key");
        let apps: BTreeSet<String> =
            self.store.apps().map_err(failed)?.into_iter().map(|app| app.id).collect();
        let filter = KeyFilter { app_id: app.map(|app| app.id.clone()), service, revoked_too: true };
        let mut rows = self.store.keys(&filter).map_err(failed)?;
        rows.retain(|row| apps.contains(&*row.app_id));
        keys::records(&self.store, &rows, self.now).map_err(failed)
    }

    fn key_by_secret(&self, key: &SecretString) -> Result<Option<Key>, Failure> {
        let row = keys::by_full_text(&self.store, key.expose_secret())
            .map_err(|cause| store_failure(cause, "key"))?;
        row.map(|row| self.key_record(&row)).transpose()
    }

    fn create_key(&self, app: &App, new: &NewKey) -> Result<CreatedKey, Failure> {
        let new = NewKey { app: app.id.clone(), ..new.clone() };
        let made = keys::create(self.writable_store()?, &new, self.now);
        let (key, row) = made.map_err(|cause| manage_failure(cause, &format!("app `{}`", app.name)))?;
        Ok(self.created_key(&key, &row))
    }

    fn update_key(&self, key: &Key, change: &KeyChange) -> Result<Key, Failure> {
        let changed = keys::update(self.writable_store()?, &key.id, change, self.now);
        self.key_record(&changed.map_err(|cause| manage_failure(cause, "key"))?)
    }

    fn revoke_key(&self, key: &Key) -> Result<RevokedKey, Failure> {
        // The confirmation prompt may have taken a while.
        let at = self.writable_store()?.revoke_key(&key.id, Clock::system().now());
        let at = at.map_err(|cause| store_failure(cause, "key"))?;
        Ok(RevokedKey { id: key.id.clone(), revoked_at: at.rfc3339() })
    }

    fn rotate_key(&self, key: &Key, grace: Duration) -> Result<CreatedKey, Failure> {
        let made = keys::rotate(self.writable_store()?, &key.id, grace, self.now);
        let (key, row) = made.map_err(|cause| manage_failure(cause, "key"))?;
        Ok(self.created_key(&key, &row))
    }

    fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        // A placeholder begins with an app that nobody created.
        if self.is_placeholder {
            return Ok(Vec::new());
        }
        let span = PageRequest { after: String::new(), limit };
        let rows = self.store.audit(filter, &span).map_err(|cause| store_failure(cause, "audit"))?;
        Ok(rows.into_iter().map(AuditEntry::from).collect())
    }

    fn report(&self, request: &ReportRequest) -> Result<UsageReport, Failure> {
        usage::report(&self.store, request).map_err(|cause| report_failure(cause, "usage"))
    }

    fn billing(&self) -> Result<Billing, Failure> {
        usage::billing(&self.store, self.now).map_err(|cause| store_failure(cause, "billing"))
    }

    fn statement(&self, app_id: &str, month: Month, what: &str) -> Result<Statement, Failure> {
        let made = usage::statement(&self.store, app_id, month, self.now);
        made.map_err(|cause| report_failure(cause, what))
    }

    fn forget_user(&self, user: &str, app_id: Option<&str>) -> Result<ForgottenUser, Failure> {
        // The confirmation prompt may have taken a while.
        let now = Clock::system().now();
        let forgotten = self.writable_store()?.forget_end_user(user, app_id, now);
        let forgotten_sums = forgotten.map_err(|cause| store_failure(cause, "usage"))?;
        Ok(ForgottenUser { forgotten_sums, forgotten_at: now.rfc3339() })
    }
}

impl OpenDatabase {
    fn app_record(&self, row: &AppRow) -> Result<App, Failure> {
        apps::record(&self.store, row, self.now).map_err(|cause| store_failure(cause, "app"))
    }

    fn key_record(&self, row: &KeyRow) -> Result<Key, Failure> {
        let spent =
            keys::spending(&self.store, &row.id, self.now).map_err(|cause| store_failure(cause, "key"))?;
        Ok(keys::record(row, spent, self.now))
    }

    fn created_key(&self, key: &SecretString, row: &KeyRow) -> CreatedKey {
        // A key that was just made has spent nothing.
        let record = keys::record(row, NanoUsd::default(), self.now);
        CreatedKey { key: key.expose_secret().to_owned(), record }
    }
}

fn report_failure(cause: ReportError, what: &str) -> Failure {
    match cause {
        ReportError::TooLong | ReportError::ByUserAndTag => Failure::new(Kind::Usage, cause.to_string()),
        ReportError::Storage(cause) => store_failure(cause, what),
    }
}
