//! The memory that usage reports take: that of a single one, however many are requested at once.
#![cfg(target_os = "linux")]

use futures_util::future::join_all;
use mk::api::Service;
use mk::clock::{Clock, Time};
use mk::keys::{self, NewKey};
use mk::secret::ExposeSecret;
use mk::storage::{AttemptRow, Store};

use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

const KEYS: usize = 2_000;
const MODELS: [&str; 3] = ["fake/a", "fake/b", "fake/c"];
const CALLERS: usize = 6;
/// With both reports, this uses up the key's limit per minute.
const ROUNDS: usize = 4;
/// How much more memory many concurrent reports may leave in use than a single one, in KB. A report of this size takes
/// more than this.
const MORE_KB: u64 = 6_000;

/// Fills the ledger with a day of usage of many keys; returns a console key.
fn fill(store: &Store, now: Time) -> String {
    let app_id = store.app("default").unwrap().id;
    let attempt = |number: usize, model: &str| AttemptRow {
        at: now,
        request_id: format!("req_{number}").into(),
        app_id: app_id.clone().into(),
        key_id: format!("key_{number:032x}").into(),
        service: Service::Inference,
        model: model.into(),
        outcome: "ok".into(),
        prompt_tokens: 10,
        completion_tokens: 2,
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: false,
        cost: None,
        latency_ms: 3,
        is_first: true,
        is_first_of_model: true,
        labels: None,
        call: None,
    };
    let rows: Vec<_> = (0..KEYS).flat_map(|key| MODELS.map(|model| attempt(key, model))).collect();
    store.add_attempts(&rows).unwrap();
    let (key, _) = keys::create(store, &NewKey::new(Service::Console, &app_id), now).unwrap();
    key.expose_secret().to_owned()
}

async fn request_reports(base: &str, key: &str) {
    for report in ["by=key", "by=day,model"] {
        let asked = client().get(format!("{base}/v1/usage?{report}")).bearer_auth(key).send().await.unwrap();
        assert_eq!(asked.status(), 200);
        asked.bytes().await.unwrap();
    }
}

#[tokio::test]
async fn concurrent_reports_take_the_memory_of_one() {
    let mk = serve::call("http://127.0.0.1:0/v1", "");
    let key = {
        let now = Clock::system().now();
        fill(&Store::open(&data_dir(mk.home()), now).unwrap(), now)
    };
    let server = Serve::start(&mk);
    for _ in 0..2 {
        request_reports(&server.base, &key).await;
    }
    let before = server.resident_kb();
    for _ in 0..ROUNDS {
        join_all((0..CALLERS).map(|_| request_reports(&server.base, &key))).await;
    }
    let more = server.resident_kb().saturating_sub(before);
    println!("{before} KB after one, {more} KB more after {CALLERS} at once");
    assert!(more <= MORE_KB, "{more} KB");
}
