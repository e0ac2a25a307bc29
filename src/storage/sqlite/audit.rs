//! The audit in `mk.db`: an entry for every write, in the transaction of that write, so that there is none without
//! the other.

use rusqlite::{Connection, params};
use serde_json::Value;

use super::Store;
use crate::clock::Time;
use crate::storage::Error;

/// What is noted of a write.
pub(super) struct Note<'a> {
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

impl Store {
    /// Notes a write in its own transaction, in the name of the store's actor.
    pub(super) fn note(&self, db: &Connection, note: &Note<'_>) -> Result<(), Error> {
        let actor = &self.actor;
        db.prepare_cached(
            "INSERT INTO audit (id, at, actor, actor_name, channel, action, object, object_name, details,
                 address, request_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            crate::id::new("aud"),
            note.at.unix_ms(),
            actor.id,
            actor.name,
            actor.channel.as_str(),
            note.action,
            note.object,
            note.object_name,
            note.details.to_string(),
            actor.address.map(|address| address.to_string()),
            actor.request_id,
        ])?;
        Ok(())
    }
}
