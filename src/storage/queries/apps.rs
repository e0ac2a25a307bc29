//! Apps. Every change is recorded in the audit log.

use rusqlite::params;
use serde_json::{Map, Value, json};

use super::audit::{NewAuditEntry, usd};
use super::keys;
use super::values::{conflict_or, money, read_money, read_optional_time, read_time};
use crate::clock::Time;
use crate::storage::db::{Db, Row};
use crate::storage::{AppChange, AppDeletion, AppRow, Error, KeyFilter, Order, PageRequest, Store};

const NAME_TAKEN: &str = "this name is already taken; choose another";
/// Why the last app cannot be deleted.
pub const LAST_APP: &str = "this is the last app, and keys need one; create another app before deleting it";

impl Store {
    /// Creates an app. [`Error::Conflict`] if the name is taken.
    pub fn create_app(&self, app: &AppRow) -> Result<(), Error> {
        self.change(|db| {
            insert(db, app).map_err(|cause| conflict_or(cause, NAME_TAKEN))?;
            self.note_new(db, app)
        })
    }

    fn note_new(&self, db: &Db<'_>, app: &AppRow) -> Result<(), Error> {
        let details = match app.budget {
            Some(budget) => json!({ "budget_usd": usd(Some(budget)) }),
            None => json!({}),
        };
        let (object, object_name) = (&*app.id, Some(&*app.name));
        self.audit_entry(
            db,
            &NewAuditEntry { at: app.created_at, action: "app.created", object, object_name, details },
        )
    }

    /// A page of the apps that are not deleted, in the order of ids, hence oldest first.
    pub fn apps_page(&self, span: &PageRequest, order: Order) -> Result<Vec<AppRow>, Error> {
        let (beyond, sorted) = order.after("id", "?1");
        let sql = format!(
            "SELECT id, name, budget_nano_usd, created_at FROM apps
             WHERE deleted_at IS NULL AND {beyond} ORDER BY {sorted} LIMIT ?2"
        );
        self.main().read(|db| db.query(&sql, params![span.after, span.limit], app_row))
    }

    /// The app with this id.
    pub fn app_by_id(&self, id: &str) -> Result<AppRow, Error> {
        self.main().read(|db| live(db, id))
    }

    /// All apps that are not deleted, oldest first.
    pub fn apps(&self) -> Result<Vec<AppRow>, Error> {
        self.main().read(|db| {
            db.query(
                "SELECT id, name, budget_nano_usd, created_at FROM apps
                 WHERE deleted_at IS NULL ORDER BY created_at, id",
                &[],
                app_row,
            )
        })
    }

    /// The app with this id or name; an id takes precedence over a name that looks like one.
    pub fn app(&self, id_or_name: &str) -> Result<AppRow, Error> {
        self.main().read(|db| {
            let found = db.query_row(
                "SELECT id, name, budget_nano_usd, created_at FROM apps
                 WHERE (id = ?1 OR name = ?1) AND deleted_at IS NULL ORDER BY id = ?1 DESC LIMIT 1",
                params![id_or_name],
                app_row,
            )?;
            found.ok_or(Error::NotFound)
        })
    }

    /// Changes an app. [`Error::Conflict`] if the new name is taken.
    pub fn update_app(&self, id: &str, change: &AppChange, now: Time) -> Result<AppRow, Error> {
        let new_budget = change.budget.is_some();
        let budget = money(change.budget.flatten());
        self.change(|db| {
            let old = live(db, id)?;
            let new = db.query_row(
                "UPDATE apps SET name = coalesce(?2, name),
                     budget_nano_usd = CASE WHEN ?3 THEN ?4 ELSE budget_nano_usd END
                 WHERE id = ?1 AND deleted_at IS NULL
                 RETURNING id, name, budget_nano_usd, created_at",
                params![id, change.name, new_budget, budget],
                app_row,
            );
            let new = new.map_err(|cause| conflict_or(cause, NAME_TAKEN))?.ok_or(Error::NotFound)?;
            let details = differences(&old, &new);
            if !details.is_empty() {
                let (object, object_name) = (&*new.id, Some(&*new.name));
                let details = Value::Object(details);
                self.audit_entry(
                    db,
                    &NewAuditEntry { at: now, action: "app.updated", object, object_name, details },
                )?;
            }
            Ok(new)
        })
    }

    /// Deletes an app and revokes its keys, in one transaction, and then what the verdict cache holds of it. Usage
    /// stays. Idempotent: for an app that was deleted before, it returns when that was. [`Error::Conflict`] if it is
    /// the last one.
    pub fn delete_app(&self, id: &str, now: Time) -> Result<AppDeletion, Error> {
        let (deletion, keys) = self.change(|db| {
            let found =
                db.query_row("SELECT name, deleted_at FROM apps WHERE id = ?1", params![id], |row| {
                    Ok((row.get::<String>(0)?, read_optional_time(row, 1)?))
                })?;
            let (name, deleted_at) = found.ok_or(Error::NotFound)?;
            let filter = KeyFilter { app_id: Some(id.to_owned()), ..KeyFilter::default() };
            let keys = keys::list_keys(db, &filter)?;
            if let Some(at) = deleted_at {
                return Ok((AppDeletion { at, revoked_keys: 0 }, keys));
            }
            db.execute("UPDATE apps SET deleted_at = ?2 WHERE id = ?1", params![id, now.unix_ms()])?;
            let another_is_left =
                db.query_row("SELECT EXISTS (SELECT 1 FROM apps WHERE deleted_at IS NULL)", &[], |row| {
                    row.get(0)
                })?;
            if another_is_left != Some(true) {
                return Err(Error::Conflict(LAST_APP));
            }
            db.execute(
                "UPDATE keys SET revoked_at = ?2 WHERE app_id = ?1 AND revoked_at IS NULL",
                params![id, now.unix_ms()],
            )?;
            let revoked = keys.iter().map(|key| NewAuditEntry {
                at: now,
                action: "key.revoked",
                object: &key.id,
                object_name: key.name.as_deref(),
                details: json!({ "with_app": id }),
            });
            self.audit_entries(db, revoked)?;
            let (object_name, details) = (Some(&*name), json!({ "revoked_keys": keys.len() }));
            self.audit_entry(
                db,
                &NewAuditEntry { at: now, action: "app.deleted", object: id, object_name, details },
            )?;
            Ok((AppDeletion { at: now, revoked_keys: keys.len() as u64 }, keys))
        })?;
        let ids: Vec<&str> = keys.iter().map(|key| &*key.id).collect();
        self.ensure_ended(&ids)?;
        // Nobody can ask for them any more. What this leaves, as the ledger may not be written to, goes with the
        // regular deletion of entries.
        let _ = self.forget_verdicts_of(id);
        Ok(deletion)
    }

    /// Creates the `default` app in a new database. If it is deleted later, it stays deleted.
    pub(in crate::storage) fn ensure_first_app(&self, now: Time) -> Result<(), Error> {
        if self.main().read(has_had_apps)? {
            return Ok(());
        }
        self.change(|db| {
            if has_had_apps(db)? {
                return Ok(());
            }
            let app = AppRow {
                id: crate::id::new("app"),
                name: "default".to_owned(),
                budget: None,
                created_at: now,
            };
            insert(db, &app)?;
            self.note_new(db, &app)
        })
    }
}

fn has_had_apps(db: &Db<'_>) -> Result<bool, Error> {
    let found = db.query_row("SELECT EXISTS (SELECT 1 FROM apps)", &[], |row| row.get(0))?;
    Ok(found.unwrap_or(false))
}

fn insert(db: &Db<'_>, app: &AppRow) -> Result<(), Error> {
    db.execute(
        "INSERT INTO apps (id, name, budget_nano_usd, created_at) VALUES (?1, ?2, ?3, ?4)",
        params![app.id, app.name, money(app.budget), app.created_at.unix_ms()],
    )?;
    Ok(())
}

fn live(db: &Db<'_>, id: &str) -> Result<AppRow, Error> {
    let found = db.query_row(
        "SELECT id, name, budget_nano_usd, created_at FROM apps WHERE id = ?1 AND deleted_at IS NULL",
        params![id],
        app_row,
    )?;
    found.ok_or(Error::NotFound)
}

/// The fields that an update has changed, before and after.
fn differences(old: &AppRow, new: &AppRow) -> Map<String, Value> {
    let fields =
        [("name", json!(old.name), json!(new.name)), ("budget_usd", usd(old.budget), usd(new.budget))];
    super::audit::differences(fields)
}

fn app_row(row: &Row<'_>) -> rusqlite::Result<AppRow> {
    Ok(AppRow {
        id: row.get(0)?,
        name: row.get(1)?,
        budget: read_money(row, 2)?,
        created_at: read_time(row, 3)?,
    })
}
