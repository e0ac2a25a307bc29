//! What attempts add up to: the sums of days, and what keys and apps have spent by month.

use std::collections::BTreeMap;

use rusqlite::params;

use super::rollup;
use super::values::{MAX_SUM, change, changed, count};
use crate::money::NanoUsd;
use crate::storage::db::Db;
use crate::storage::{AttemptRow, Error};

/// Adds attempts that are in the ledger to the sums of their days, keys and apps.
pub(super) fn sum(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    rollup::add(db, rows)?;
    add_spending(db, rows)
}

fn add_spending(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let Some(cost) = row.cost.filter(|cost| cost.0 > 0) else { continue };
        let month = row.at.utc_month();
        for subject in [&row.key_id, &row.app_id].into_iter().filter(|subject| !subject.is_empty()) {
            let sum: &mut NanoUsd = sums.entry((subject, month)).or_default();
            *sum = sum.plus(cost);
        }
    }
    db.upsert_each(
        "UPDATE spend SET nano_usd = CASE WHEN nano_usd < ?4 - ?3 THEN nano_usd + ?3 ELSE ?4 END
         WHERE subject = ?1 AND month = ?2",
        "INSERT INTO spend (subject, month, nano_usd) VALUES (?1, ?2, ?3)
         ON CONFLICT (subject, month) DO UPDATE SET nano_usd = CASE
             WHEN spend.nano_usd < ?4 - excluded.nano_usd THEN spend.nano_usd + excluded.nano_usd ELSE ?4 END",
        sums,
        |((subject, month), sum), run| run(params![subject, month, count(sum.0).min(MAX_SUM), MAX_SUM]),
    )
}

/// Corrects what keys and apps have spent by the differences between attempts and what replaces them.
pub(super) fn replace_spending(db: &Db<'_>, replaced: &[(AttemptRow, AttemptRow)]) -> Result<(), Error> {
    let mut sums = BTreeMap::new();
    for (old, new) in replaced {
        let month = old.at.utc_month();
        for subject in [&old.key_id, &old.app_id].into_iter().filter(|subject| !subject.is_empty()) {
            let (before, after): &mut (NanoUsd, NanoUsd) = sums.entry((subject, month)).or_default();
            *before = before.plus(old.cost.unwrap_or_default());
            *after = after.plus(new.cost.unwrap_or_default());
        }
    }
    let sql = format!(
        "INSERT INTO spend (subject, month, nano_usd) VALUES (?1, ?2, ?3)
         ON CONFLICT (subject, month) DO UPDATE SET nano_usd = {}",
        changed("spend.nano_usd", 4)
    );
    db.execute_each(&sql, sums, |((subject, month), (before, after)), run| {
        let change = change(before.0, after.0);
        run(params![subject, month, change.max(0), change])
    })
}
