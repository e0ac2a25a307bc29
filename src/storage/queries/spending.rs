//! What attempts add up to: the sums of days, and what keys, apps and end users have spent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rusqlite::params;

use super::rollup;
use super::values::{MAX_SUM, change, changed, count};
use crate::money::NanoUsd;
use crate::storage::db::Db;
use crate::storage::{AttemptRow, Error};

/// Adds attempts that are in the ledger to the sums of their days, keys, apps and end users.
pub(super) fn sum(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    rollup::add(db, rows)?;
    add_spending(db, rows)
}

fn add_spending(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let Some(cost) = row.cost.filter(|cost| cost.0 > 0) else { continue };
        for of in subjects(row, row) {
            let sum: &mut NanoUsd = sums.entry(of).or_default();
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

/// Who spends what an attempt costs, which is `of` the time, key and app of another, and in which month or day.
fn subjects<'r>(of: &'r AttemptRow, row: &'r AttemptRow) -> impl Iterator<Item = (Cow<'r, str>, i64)> {
    let ids = [&*of.key_id, &*of.app_id].into_iter().filter(|id| !id.is_empty());
    let ids = ids.map(|id| (Cow::Borrowed(id), of.at.utc_month()));
    let user = row.labels.iter().filter_map(|labels| labels.end_user.as_ref());
    ids.chain(
        user.flat_map(|user| user.spends_in(of.at)).map(|(subject, period)| (Cow::Owned(subject), period)),
    )
}

/// Corrects what keys, apps and end users have spent by the differences between attempts and what replaces them.
pub(super) fn replace_spending(db: &Db<'_>, replaced: &[(AttemptRow, AttemptRow)]) -> Result<(), Error> {
    let mut sums = BTreeMap::new();
    for (old, new) in replaced {
        for of in subjects(old, new) {
            let (before, after): &mut (NanoUsd, NanoUsd) = sums.entry(of).or_default();
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
