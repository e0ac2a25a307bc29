//! Apps in `mk.db`. Every change stands in the audit too.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value, json};

use super::audit::{Note, usd};
use super::values::{conflict_or, money, read_money, read_optional_time, read_time};
use super::{Store, keys};
use crate::clock::Time;
use crate::storage::{AppChange, AppRow, Deleted, Error, KeyFilter, Span};

const NAME_TAKEN: &str = "an app with this name exists already; choose another name";
/// Why the last app stays.
pub const LAST_APP: &str = "this is the last app, and keys need one; make another app before deleting it";

impl Store {
    /// Makes an app. [`Error::Conflict`] if the name is taken.
    pub fn create_app(&self, app: &AppRow) -> Result<(), Error> {
        self.main().write(|db| {
            insert(db, app).map_err(|cause| conflict_or(cause, NAME_TAKEN))?;
            self.note_new(db, app)
        })
    }

    fn note_new(&self, db: &Connection, app: &AppRow) -> Result<(), Error> {
        let details = match app.budget {
            Some(budget) => json!({ "budget_usd": usd(Some(budget)) }),
            None => json!({}),
        };
        let (object, object_name) = (&*app.id, Some(&*app.name));
        self.note(db, &Note { at: app.created_at, action: "app.created", object, object_name, details })
    }

    /// A page of the apps that are not deleted, by id and so oldest first.
    pub fn apps_page(&self, span: &Span) -> Result<Vec<AppRow>, Error> {
        self.main().read(|db| {
            let mut query = db.prepare_cached(
                "SELECT id, name, budget_nano_usd, created_at FROM apps
                 WHERE deleted_at IS NULL AND id > ?1 ORDER BY id LIMIT ?2",
            )?;
            let rows = query.query_map(params![span.after, span.limit], app_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The app with this id.
    pub fn app_by_id(&self, id: &str) -> Result<AppRow, Error> {
        self.main().read(|db| live(db, id))
    }

    /// All apps that are not deleted, oldest first.
    pub fn apps(&self) -> Result<Vec<AppRow>, Error> {
        self.main().read(|db| {
            let mut query = db.prepare_cached(
                "SELECT id, name, budget_nano_usd, created_at FROM apps
                 WHERE deleted_at IS NULL ORDER BY created_at, id",
            )?;
            let rows = query.query_map([], app_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The app with this id or name; an id wins over a name that looks like it.
    pub fn app(&self, id_or_name: &str) -> Result<AppRow, Error> {
        self.main().read(|db| {
            let mut query = db.prepare_cached(
                "SELECT id, name, budget_nano_usd, created_at FROM apps
                 WHERE (id = ?1 OR name = ?1) AND deleted_at IS NULL ORDER BY id = ?1 DESC LIMIT 1",
            )?;
            query.query_row([id_or_name], app_row).optional()?.ok_or(Error::NotFound)
        })
    }

    /// Changes an app. [`Error::Conflict`] if the new name is taken.
    pub fn update_app(&self, id: &str, change: &AppChange, now: Time) -> Result<AppRow, Error> {
        let new_budget = change.budget.is_some();
        let budget = money(change.budget.flatten());
        self.main().write(|db| {
            let old = live(db, id)?;
            let mut update = db.prepare_cached(
                "UPDATE apps SET name = coalesce(?2, name),
                     budget_nano_usd = CASE WHEN ?3 THEN ?4 ELSE budget_nano_usd END
                 WHERE id = ?1 AND deleted_at IS NULL
                 RETURNING id, name, budget_nano_usd, created_at",
            )?;
            let new = update
                .query_row(params![id, change.name, new_budget, budget], app_row)
                .map_err(|cause| conflict_or(cause, NAME_TAKEN))?;
            let details = differences(&old, &new);
            if !details.is_empty() {
                let (object, object_name) = (&*new.id, Some(&*new.name));
                let details = Value::Object(details);
                self.note(db, &Note { at: now, action: "app.updated", object, object_name, details })?;
            }
            Ok(new)
        })
    }

    /// Deletes an app and revokes its keys, in one transaction. Usage stays. Repeatable: of one that was deleted before
    /// it tells when that was. [`Error::Conflict`] if it is the last one.
    pub fn delete_app(&self, id: &str, now: Time) -> Result<Deleted, Error> {
        self.main().write(|db| {
            let (name, deleted_at) = db
                .prepare_cached("SELECT name, deleted_at FROM apps WHERE id = ?1")?
                .query_row([id], |row| Ok((row.get::<_, String>(0)?, read_optional_time(row, 1)?)))
                .optional()?
                .ok_or(Error::NotFound)?;
            if let Some(at) = deleted_at {
                return Ok(Deleted { at, revoked_keys: 0 });
            }
            db.prepare_cached("UPDATE apps SET deleted_at = ?2 WHERE id = ?1")?
                .execute(params![id, now.unix_ms()])?;
            let another_is_left: bool = db
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM apps WHERE deleted_at IS NULL)")?
                .query_row([], |row| row.get(0))?;
            if !another_is_left {
                return Err(Error::Conflict(LAST_APP));
            }
            let filter = KeyFilter { app_id: Some(id.to_owned()), ..KeyFilter::default() };
            let keys = keys::of(db, &filter)?;
            db.prepare_cached("UPDATE keys SET revoked_at = ?2 WHERE app_id = ?1 AND revoked_at IS NULL")?
                .execute(params![id, now.unix_ms()])?;
            for key in &keys {
                self.note_key(db, "key.revoked", now, key, json!({ "with_app": id }))?;
            }
            let (object_name, details) = (Some(&*name), json!({ "revoked_keys": keys.len() }));
            self.note(db, &Note { at: now, action: "app.deleted", object: id, object_name, details })?;
            Ok(Deleted { at: now, revoked_keys: keys.len() as u64 })
        })
    }

    /// Makes the `default` app in a new database. One that was deleted later stays deleted.
    pub(super) fn ensure_first_app(&self, now: Time) -> Result<(), Error> {
        if self.main().read(has_had_apps)? {
            return Ok(());
        }
        self.main().write(|db| {
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

fn has_had_apps(db: &Connection) -> Result<bool, Error> {
    Ok(db.query_row("SELECT EXISTS (SELECT 1 FROM apps)", [], |row| row.get(0))?)
}

fn insert(db: &Connection, app: &AppRow) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO apps (id, name, budget_nano_usd, created_at) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![app.id, app.name, money(app.budget), app.created_at.unix_ms()])?;
    Ok(())
}

fn live(db: &Connection, id: &str) -> Result<AppRow, Error> {
    let mut query = db.prepare_cached(
        "SELECT id, name, budget_nano_usd, created_at FROM apps WHERE id = ?1 AND deleted_at IS NULL",
    )?;
    query.query_row([id], app_row).optional()?.ok_or(Error::NotFound)
}

/// What an update has changed, each as it was and as it is.
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
