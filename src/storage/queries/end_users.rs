//! What is kept of end users, and how it is forgotten.

use rusqlite::params;
use serde_json::json;

use super::audit::NewAuditEntry;
use super::rollup::USER;
use crate::clock::Time;
use crate::storage::db::Db;
use crate::storage::labels::spending_ranges;
use crate::storage::{EndUser, Error, Store, kept};

/// What an entry of the audit log is about if it is about the end users of all apps.
const ALL_APPS: &str = "usage";

impl Store {
    /// Forgets an end user of an app (by id, even of a deleted one), or of all apps; returns how many daily sums were
    /// theirs. What was used stays in all other sums. Their requests of this day and their spending start from zero.
    /// The entry in the audit log does not say who it was. [`Error::NotFound`] if there never was such an app.
    pub fn forget_end_user(&self, name: &str, app_id: Option<&str>, now: Time) -> Result<u64, Error> {
        let app = app_id.map(|id| self.app_even_if_deleted(id)).transpose()?;
        let apps = self.change(|db| {
            let (object, object_name) = match &app {
                Some(app) => (app.id.as_str(), Some(app.name.as_str())),
                None => (ALL_APPS, None),
            };
            let action = "user.forgotten";
            self.audit_entry(
                db,
                &NewAuditEntry { at: now, action, object, object_name, details: json!({}) },
            )?;
            db.query(
                "SELECT id FROM apps WHERE CAST(?1 AS TEXT) IS NULL OR id = ?1",
                params![app_id],
                |row| row.get::<String>(0),
            )
        })?;
        self.ledger().write(|db| {
            let sums = db.execute(
                "DELETE FROM usage_labels
                 WHERE kind = ?1 AND label = ?2 AND (CAST(?3 AS TEXT) IS NULL OR app_id = ?3)",
                params![USER, kept(name), app_id],
            )?;
            for app in apps {
                let user = EndUser::new(&app, name);
                let of_spending = params![user.month_subject(), user.day_subject()];
                db.execute("DELETE FROM spend WHERE subject IN (?1, ?2)", of_spending)?;
                db.execute("DELETE FROM day_counts WHERE key_id = ?1", params![user.id])?;
            }
            Ok(sums as u64)
        })
    }
}

/// Deletes what end users have spent in the months and days before this day.
pub(super) fn forget_spending(db: &Db<'_>, before_day: i64) -> Result<(), Error> {
    let periods = [Time::of_utc_day(before_day).utc_month(), before_day];
    for ((from, to), period) in spending_ranges().into_iter().zip(periods) {
        db.execute(
            "DELETE FROM spend WHERE subject >= ?1 AND subject < ?2 AND month < ?3",
            params![from, to, period],
        )?;
    }
    Ok(())
}
