//! Apps in `mk.db`.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Store;
use super::values::{conflict_or, money, read_money, read_time};
use crate::clock::Time;
use crate::storage::{AppChange, AppRow, Error};

const NAME_TAKEN: &str = "an app with this name exists already; choose another name";
const LAST_APP: &str = "this is the last app, and keys need one; make another app before deleting it";

impl Store {
    /// Makes an app. [`Error::Conflict`] if the name is taken.
    pub fn create_app(&self, app: &AppRow) -> Result<(), Error> {
        self.main().write(|db| {
            insert(db, app).map_err(|cause| conflict_or(cause, NAME_TAKEN))?;
            Ok(())
        })
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
    pub fn update_app(&self, id: &str, change: &AppChange) -> Result<AppRow, Error> {
        let new_budget = change.budget.is_some();
        let budget = money(change.budget.flatten());
        self.main().write(|db| {
            let mut update = db.prepare_cached(
                "UPDATE apps SET name = coalesce(?2, name),
                     budget_nano_usd = CASE WHEN ?3 THEN ?4 ELSE budget_nano_usd END
                 WHERE id = ?1 AND deleted_at IS NULL
                 RETURNING id, name, budget_nano_usd, created_at",
            )?;
            update
                .query_row(params![id, change.name, new_budget, budget], app_row)
                .optional()
                .map_err(|cause| conflict_or(cause, NAME_TAKEN))?
                .ok_or(Error::NotFound)
        })
    }

    /// Deletes an app and revokes its keys, in one transaction; returns how many keys that were. Usage stays.
    /// [`Error::Conflict`] if it is the last one.
    pub fn delete_app(&self, id: &str, now: Time) -> Result<u64, Error> {
        self.main().write(|db| {
            let deleted = db
                .prepare_cached("UPDATE apps SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL")?
                .execute(params![id, now.unix_ms()])?;
            if deleted == 0 {
                return Err(Error::NotFound);
            }
            let another_is_left: bool = db
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM apps WHERE deleted_at IS NULL)")?
                .query_row([], |row| row.get(0))?;
            if !another_is_left {
                return Err(Error::Conflict(LAST_APP));
            }
            let revoked = db
                .prepare_cached("UPDATE keys SET revoked_at = ?2 WHERE app_id = ?1 AND revoked_at IS NULL")?
                .execute(params![id, now.unix_ms()])?;
            Ok(revoked as u64)
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
            Ok(insert(db, &app)?)
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

fn app_row(row: &Row<'_>) -> rusqlite::Result<AppRow> {
    Ok(AppRow {
        id: row.get(0)?,
        name: row.get(1)?,
        budget: read_money(row, 2)?,
        created_at: read_time(row, 3)?,
    })
}
