//! The two places where apps and keys are administered: a local database and a remote server.

use std::path::PathBuf;
use std::sync::Arc;

use mk::api::Service;
use mk::clock::Clock;
use mk::keys::{self, NewKey};
use mk::money::NanoUsd;
use mk::storage::{AttemptRow, KeyFilter, KeyRow, Store};

use super::mk::Mk;
use super::panel::idle_setup;
use super::server::{Setup, TestServer};

/// A server, and a command configured with its address and a console key.
pub async fn remote() -> (TestServer, Mk) {
    let setup = Setup { clock: Clock::system(), ..idle_setup() };
    let server = setup.start().await;
    let key = server.key_with(Service::Console, |new| *new = operator()).0;
    let mk = Mk::new().env("MK_SERVER", &server.base).env("MK_CONSOLE_KEY", &key);
    (server, mk)
}

/// A local store with as many keys as the server of [`remote`] starts with, and a command that works on it.
pub fn local() -> (Arc<Store>, Mk) {
    let mk = Mk::new();
    let data: PathBuf = mk.home().join("data");
    let store = Arc::new(Store::open(&data, Clock::system().now()).unwrap());
    keys::create(&store, &operator(), Clock::system().now()).unwrap();
    (store, mk.env("MK_DATA_DIR", data.to_str().unwrap()))
}

/// A console key without a rate limit.
fn operator() -> NewKey {
    let mut new = NewKey::new(Service::Console, "default");
    (new.name, new.per_minute) = (Some("operator".to_owned()), Some(0));
    new
}

/// The row of the key with this name.
pub fn key_row(store: &Store, name: &str) -> KeyRow {
    let keys = store.keys(&KeyFilter { revoked_too: true, ..KeyFilter::default() }).unwrap();
    keys.into_iter().find(|row| row.name.as_deref() == Some(name)).unwrap()
}

/// Records a call of this cost for the key with this name.
pub fn book(store: &Store, key: &str, cost: NanoUsd) {
    let now = Clock::system().now();
    let row = key_row(store, key);
    let attempt = AttemptRow {
        at: now,
        request_id: "req_1".into(),
        app_id: row.app_id,
        key_id: row.id,
        service: Service::Inference,
        model: "a/b".into(),
        outcome: "ok".into(),
        prompt_tokens: 1,
        completion_tokens: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: false,
        cost: Some(cost),
        latency_ms: 1,
        is_first: true,
        is_first_of_model: true,
        labels: None,
        call: None,
    };
    store.add_attempts(&[attempt]).unwrap();
}
