//! Names of apps and keys, including deleted and revoked ones, for the ids in the ledger; and budgets.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;

use super::values::{read_count, read_money, read_optional_time, read_service};
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::db::{Db, Row};
use crate::storage::{BudgetHolder, BudgetRow, Error, KeyName, PossiblyDeletedApp, Store};

impl Store {
    /// The names of these apps, by id, including deleted ones.
    pub fn app_names(&self, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, Error> {
        self.main().read(|db| by_id(db, "SELECT name FROM apps WHERE id = ?1", ids, |row| row.get(0)))
    }

    /// The names of these keys, by id, including revoked ones.
    pub fn key_names(&self, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, KeyName>, Error> {
        let sql = "SELECT name, service, last4 FROM keys WHERE id = ?1";
        self.main().read(|db| by_id(db, sql, ids, |row| key_name(row, 0)))
    }

    /// The app with this id, even if it is deleted. [`Error::NotFound`] if there never was one.
    pub fn app_even_if_deleted(&self, id: &str) -> Result<PossiblyDeletedApp, Error> {
        self.main().read(|db| {
            let sql = "SELECT id, name, budget_nano_usd, deleted_at FROM apps WHERE id = ?1";
            let app = |row: &Row<'_>| {
                Ok(PossiblyDeletedApp {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    budget: read_money(row, 2)?,
                    deleted_at: read_optional_time(row, 3)?,
                })
            };
            db.query_row(sql, params![id], app)?.ok_or(Error::NotFound)
        })
    }

    /// The budgets of all apps and of all keys that are usable at `now`, in no order.
    pub fn budgets(&self, now: Time) -> Result<Vec<BudgetRow>, Error> {
        self.main().read(|db| {
            let of_app = |row: &Row<'_>| {
                let id: String = row.get(0)?;
                let budget = NanoUsd(read_count(row, 1)?);
                Ok(BudgetRow { holder: BudgetHolder::App(row.get(2)?), app_id: id.clone(), id, budget })
            };
            let mut budgets = db.query(
                "SELECT id, budget_nano_usd, name FROM apps
                 WHERE budget_nano_usd IS NOT NULL AND deleted_at IS NULL",
                &[],
                of_app,
            )?;
            let of_key = |row: &Row<'_>| {
                Ok(BudgetRow {
                    holder: BudgetHolder::Key(key_name(row, 3)?),
                    id: row.get(0)?,
                    app_id: row.get(2)?,
                    budget: NanoUsd(read_count(row, 1)?),
                })
            };
            budgets.extend(db.query(
                "SELECT id, budget_nano_usd, app_id, name, service, last4 FROM keys
                 WHERE budget_nano_usd IS NOT NULL AND revoked_at IS NULL
                     AND (expires_at IS NULL OR expires_at > ?1)",
                params![now.unix_ms()],
                of_key,
            )?);
            Ok(budgets)
        })
    }
}

/// The rows that exist for these ids, by id.
fn by_id<T>(
    db: &Db<'_>,
    sql: &str,
    ids: &BTreeSet<&str>,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<BTreeMap<String, T>, Error> {
    let found = db.query_each(sql, ids, |id, run| run(params![id]), read)?;
    Ok(ids.iter().zip(found).filter_map(|(id, found)| Some(((*id).to_owned(), found?))).collect())
}

/// A key's name from three columns: name, service and last four characters.
fn key_name(row: &Row<'_>, first: usize) -> rusqlite::Result<KeyName> {
    Ok(KeyName { name: row.get(first)?, service: read_service(row, first + 1)?, last4: row.get(first + 2)? })
}
