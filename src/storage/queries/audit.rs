//! The audit log: an entry for every write, in the transaction of that write, so that neither exists without the other.

use std::borrow::Borrow;
use std::str::FromStr;

use rusqlite::params;
use serde_json::{Map, Value, json};

use super::values::{read_json, read_time, unreadable};
use crate::api::console::{AuditEntry, Channel};
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::db::{Db, Row};
use crate::storage::{AuditFilter, AuditRow, Error, PageRequest, Store};

/// What is recorded about a write.
pub(super) struct NewAuditEntry<'a> {
    /// When it was done.
    pub(super) at: Time,
    /// Such as `app.created`.
    pub(super) action: &'static str,
    /// The id of what it was done to.
    pub(super) object: &'a str,
    /// Its name.
    pub(super) object_name: Option<&'a str>,
    /// What was set: a JSON object without secrets.
    pub(super) details: Value,
}

/// An amount in the details of an entry.
pub(super) fn usd(amount: Option<NanoUsd>) -> Value {
    amount.map_or(Value::Null, |amount| json!(amount.usd()))
}

/// The fields (name, before, after) that differ, as the details of an update.
pub(super) fn differences(
    fields: impl IntoIterator<Item = (impl Into<String>, Value, Value)>,
) -> Map<String, Value> {
    let changed = fields.into_iter().filter(|(_, before, after)| before != after);
    changed.map(|(name, from, to)| (name.into(), json!({ "from": from, "to": to }))).collect()
}

impl Store {
    /// A page of the audit log, newest first; `span.after` is the id of the last entry of the previous page, empty for
    /// the first page.
    pub fn audit(&self, filter: &AuditFilter, span: &PageRequest) -> Result<Vec<AuditRow>, Error> {
        self.main().read(|db| {
            // An unset filter is left out of the statement, so that the planner can use an index for those that are
            // set.
            let only = |column: &str, at: u8, is_set: bool| {
                if is_set { format!("{column} = ?{at}") } else { format!("CAST(?{at} AS TEXT) IS NULL") }
            };
            // Plain text wherever it stands, without patterns, in both databases.
            let within = |column: &str, at: u8, is_set: bool| {
                let found = format!("replace(lower({column}), lower(?{at}), '') <> lower({column})");
                if is_set { found } else { format!("CAST(?{at} AS TEXT) IS NULL") }
            };
            let (object_name, actor_name) = (
                within("object_name", 7, filter.object_name.is_some()),
                within("actor_name", 8, filter.actor_name.is_some()),
            );
            let (before, object, actor, action, app) = (
                if span.after.is_empty() { "?1 = ''" } else { "id < ?1" },
                only("object", 2, filter.object.is_some()),
                only("actor", 3, filter.actor.is_some()),
                only("action", 4, filter.action.is_some()),
                match filter.app {
                    Some(_) => {
                        "object IN (SELECT CAST(?6 AS TEXT) UNION ALL SELECT id FROM keys WHERE app_id = ?6)"
                    }
                    None => "CAST(?6 AS TEXT) IS NULL",
                },
            );
            let sql = format!(
                "SELECT id, at, actor, actor_name, channel, action, object, object_name, details, address,
                     request_id
                 FROM audit WHERE {before} AND {object} AND {actor} AND {action} AND {app}
                     AND {object_name} AND {actor_name}
                 ORDER BY id DESC LIMIT ?5"
            );
            let bound = params![
                span.after,
                filter.object,
                filter.actor,
                filter.action,
                span.limit,
                filter.app,
                filter.object_name,
                filter.actor_name,
            ];
            db.query(&sql, bound, audit_row)
        })
    }

    /// Records a write within its transaction, in the name of the store's actor. Its id sorts after all others: there
    /// is one writer at a time, so the log's order is that of the writes.
    pub(super) fn audit_entry(&self, db: &Db<'_>, audit_entry: &NewAuditEntry<'_>) -> Result<(), Error> {
        self.audit_entries(db, [audit_entry])
    }

    /// Records several writes, in their order.
    pub(super) fn audit_entries<'a>(
        &self,
        db: &Db<'_>,
        notes: impl IntoIterator<Item: Borrow<NewAuditEntry<'a>>>,
    ) -> Result<(), Error> {
        let actor = &self.actor;
        let last = db.query_row("SELECT id FROM audit ORDER BY id DESC LIMIT 1", &[], |row| row.get(0))?;
        let mut last: String = last.unwrap_or_default();
        db.execute_each(
            "INSERT INTO audit (id, at, actor, actor_name, channel, action, object, object_name, details,
                 address, request_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            notes,
            |audit_entry, run| {
                let audit_entry = audit_entry.borrow();
                last = crate::id::new_after(&last, "aud");
                run(params![
                    last,
                    audit_entry.at.unix_ms(),
                    actor.id,
                    actor.name,
                    actor.channel.as_str(),
                    audit_entry.action,
                    audit_entry.object,
                    audit_entry.object_name,
                    audit_entry.details.to_string(),
                    actor.address.map(|address| address.to_string()),
                    actor.request_id,
                ])
            },
        )
    }
}

impl From<AuditRow> for AuditEntry {
    fn from(row: AuditRow) -> Self {
        Self {
            id: row.id,
            at: row.at.rfc3339(),
            actor: row.actor,
            actor_name: row.actor_name,
            channel: row.channel,
            action: row.action,
            object: row.object,
            object_name: row.object_name,
            details: row.details,
            address: row.address,
            request_id: row.request_id,
        }
    }
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    let channel = Channel::from_str(row.get_ref(4)?.as_str()?).map_err(|cause| unreadable(4, cause))?;
    Ok(AuditRow {
        id: row.get(0)?,
        at: read_time(row, 1)?,
        actor: row.get(2)?,
        actor_name: row.get(3)?,
        channel,
        action: row.get(5)?,
        object: row.get(6)?,
        object_name: row.get(7)?,
        details: read_json(row, 8)?,
        address: row.get(9)?,
        request_id: row.get(10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::AppChange;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    #[test]
    fn entries_are_in_the_order_of_the_writes_whoever_makes_them() {
        let store = Store::in_memory(NOW).unwrap();
        let app = store.app("default").unwrap().id;
        let rename = |writer: usize| {
            for number in 0..50 {
                let change = AppChange { name: Some(format!("{writer}-{number}")), budget: None };
                store.update_app(&app, &change, NOW).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let rename = &rename;
                scope.spawn(move || rename(writer));
            }
        });
        let span = PageRequest { after: String::new(), limit: 1000 };
        let entries = store.audit(&AuditFilter::default(), &span).unwrap();
        assert_eq!(entries.len(), 1 + 200);
        let (made, changes) = entries.split_last().unwrap();
        let mut name = json!("default");
        assert_eq!((made.action.as_str(), json!(made.object_name)), ("app.created", name.clone()));
        for entry in changes.iter().rev() {
            assert_eq!(entry.details["name"]["from"], name);
            name = entry.details["name"]["to"].clone();
        }
        assert_eq!(json!(store.app_by_id(&app).unwrap().name), name);
    }
}
