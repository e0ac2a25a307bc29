//! The writes that servers acknowledged, and checks that none of them was lost.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use futures_util::FutureExt;
use mk::api::Service;
use mk::clock::Clock;
use mk::keys::{Denied, authenticate};
use mk::storage::Store;
use reqwest::Client;
use serde_json::{Value, json};

use super::load;
use crate::support::database::assert_intact;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The acknowledged state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Created,
    /// Its revocation was requested, but perhaps not acknowledged.
    PerhapsRevoked,
    Revoked,
}

/// The apps and keys whose creation was acknowledged.
#[derive(Default)]
pub(super) struct Acknowledged {
    names: usize,
    /// Id and name.
    pub(super) apps: Vec<(String, String)>,
    keys: HashMap<String, (String, State)>,
}

impl Acknowledged {
    /// A name that no app has had yet.
    pub(super) fn next_name(&mut self) -> String {
        self.names += 1;
        format!("app {}", self.names)
    }

    pub(super) fn created(&mut self, id: &str, key: &str) {
        self.keys.insert(id.to_owned(), (key.to_owned(), State::Created));
    }

    /// Picks an active key that is to be revoked now.
    pub(super) fn begin_to_revoke(&mut self) -> Option<String> {
        let (id, (_, state)) = self.keys.iter_mut().find(|(_, (_, state))| *state == State::Created)?;
        *state = State::PerhapsRevoked;
        Some(id.clone())
    }

    pub(super) fn revoked(&mut self, id: &str) {
        self.keys.get_mut(id).unwrap().1 = State::Revoked;
    }

    /// Asserts that the databases that a killed server left are intact and hold everything acknowledged.
    pub(super) fn assert_stored_in(&self, data: &Path) {
        // Creates the tables if the server was killed before it could; it had not acknowledged anything then.
        let store = Store::open(data, Clock::system().now()).unwrap();
        for (id, name) in &self.apps {
            assert_eq!(store.app_by_id(id).unwrap().name, *name);
        }
        for (id, (key, state)) in &self.keys {
            let now = Clock::system().now();
            let found = authenticate(&store, Some(key), Service::Verify, HOME, now).now_or_never().unwrap();
            match (state, found) {
                (State::Created | State::PerhapsRevoked, Ok(row)) => assert_eq!(*row.id, **id),
                (State::PerhapsRevoked | State::Revoked, Err(Denied::Revoked)) => {}
                (state, found) => panic!("{id} was acknowledged as {state:?}, but is {found:?}"),
            }
        }
        drop(store);
        assert_intact(data);
        self.assert_audited(data);
    }

    /// Asserts that the audit log has exactly one entry for each acknowledged write, and that tables and audit log
    /// agree: no write is half done.
    fn assert_audited(&self, data: &Path) {
        let database = rusqlite::Connection::open(data.join("mk.db")).unwrap();
        let mut count =
            database.prepare("SELECT count(*) FROM audit WHERE object = ?1 AND action = ?2").unwrap();
        let mut times = |object: &str, action: &str| -> i64 {
            count.query_row([object, action], |row| row.get(0)).unwrap()
        };
        for (id, _) in &self.apps {
            assert_eq!(times(id, "app.created"), 1);
        }
        for (id, (_, state)) in &self.keys {
            assert_eq!(times(id, "key.created"), 1);
            let revoked = times(id, "key.revoked");
            assert!(
                *state == State::PerhapsRevoked || revoked == i64::from(*state == State::Revoked),
                "{id}"
            );
        }
        for (table, condition, action) in [
            ("apps", "true", "app.created"),
            ("keys", "true", "key.created"),
            ("keys", "revoked_at IS NOT NULL", "key.revoked"),
        ] {
            let mismatches = format!(
                "SELECT (SELECT count(*) FROM {table} WHERE {condition} AND id NOT IN
                             (SELECT object FROM audit WHERE action = '{action}'))
                      + (SELECT count(*) FROM audit WHERE action = '{action}' AND object NOT IN
                             (SELECT id FROM {table} WHERE {condition}))"
            );
            let mismatches: i64 = database.query_row(&mismatches, [], |row| row.get(0)).unwrap();
            assert_eq!(mismatches, 0, "{action}");
        }
    }

    /// Asserts that a server knows everything acknowledged.
    pub(super) async fn assert_known_to(&self, http: &Client, base: &str) {
        for (id, (key, state)) in &self.keys {
            let answer = load::verify(http, base, key, &json!({})).await.unwrap();
            let status = answer.status().as_u16();
            let code = answer.json::<Value>().await.unwrap()["code"].as_str().unwrap().to_owned();
            let is_right = match state {
                State::Created => status == 400,
                State::Revoked => code == "api_key_revoked",
                State::PerhapsRevoked => status == 400 || code == "api_key_revoked",
            };
            assert!(is_right, "{id} was acknowledged as {state:?}: {status} {code}");
        }
    }
}
