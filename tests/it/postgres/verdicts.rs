//! The verdict cache of servers that share a database: what one found, the other knows; nothing crosses apps, days or
//! settings; and a table that cannot be read costs a moment.

use std::time::Duration;

use mk::api::Service;
use mk::keys::apps;
use mk::storage::DatabaseUrl;
use serde_json::{Value, json};

use super::connect;
use crate::support::panel::config;
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::server::{Setup, TestServer, client};
use crate::verdict_cache::{Caller, DAY, script};

async fn server(postgres: &Postgres, provider: &FakeProvider) -> TestServer {
    let setup = Setup::new(config(&provider.base_url)).config(|config| {
        config.database = DatabaseUrl::parse(&postgres.url()).unwrap();
        config.verify.general.cache = Some(30 * DAY);
        config.limits.keys.per_minute = 0;
    });
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn what_one_server_found_the_other_knows_for_the_same_app_day_and_settings_alone() {
    let postgres = Postgres::start();
    let provider = FakeProvider::start(script).await;
    let (here, there) = (server(&postgres, &provider).await, server(&postgres, &provider).await);
    let key = here.key(Service::Verify);
    let caller = |server| Caller { server, provider: &provider, key: key.clone() };
    let body =
        json!({"fact": "The Eiffel Tower is in Paris. The Louvre opened in 1793.", "asOf": "2026-11-20"});
    assert_eq!(caller(&here).calls(&body).await, 7);
    let flush = async |server: &TestServer| {
        let app = server.app.clone();
        tokio::task::spawn_blocking(move || app.flush_verdicts()).await.unwrap();
    };
    flush(&here).await;
    let (hit, calls) = caller(&there).verify(&body).await;
    assert_eq!((calls, &hit["cached"]), (0, &json!(true)));
    assert_eq!(hit["results"][0]["assessment"], "TRUE");
    let changed = json!({"fact": "Nice is a port. The Louvre opened in 1793.", "asOf": "2026-11-20"});
    let (mixed, calls) = caller(&there).verify(&changed).await;
    assert_eq!((calls, &mixed["results"][1]["cached"]), (4, &json!(true)));
    let strict = json!({"fact": body["fact"], "asOf": "2026-11-20", "minRequired": 3});
    let (recounted, calls) = caller(&there).verify(&strict).await;
    assert_eq!((calls, &recounted["results"][0]["assessment"]), (0, &json!("NO CONSENSUS")));
    let other_day = json!({"fact": body["fact"], "asOf": "2026-11-19"});
    assert_eq!(caller(&there).calls(&other_day).await, 7);

    let store = here.app.store.clone();
    let now = here.clock.now();
    let made = tokio::task::spawn_blocking(move || apps::create(&store, "other", None, now));
    let other = made.await.unwrap().unwrap();
    let (foreign, _) = there.key_with(Service::Verify, |new| new.app = "other".to_owned());
    let foreign = Caller { server: &there, provider: &provider, key: foreign };
    assert_eq!((foreign.calls(&body).await, foreign.calls(&body).await), (7, 0));

    // A prompt or a setting that differs is another key; a row that was tampered with is none.
    flush(&there).await;
    let count = |of: &str| postgres.number("mk", &format!("SELECT count(*) FROM verdicts WHERE {of}"));
    assert_eq!(count("true"), 3 + 2 + 3 + 3);
    postgres.sql("mk", "UPDATE verdicts SET content = set_byte(content, 40, 0)");
    assert_eq!(caller(&here).calls(&body).await, 7);

    let (store, id) = (here.app.store.clone(), other.id.clone());
    tokio::task::spawn_blocking(move || store.delete_app(&id, now)).await.unwrap().unwrap();
    assert_eq!(count(&format!("app_id = '{}'", other.id)), 0);
    let tidy = async |server: &TestServer| {
        let app = server.app.clone();
        tokio::task::spawn_blocking(move || app.tidy_verdicts()).await.unwrap().unwrap();
    };
    postgres.sql(
        "mk",
        "INSERT INTO verdicts SELECT 'app_gone', key, domain, at, bytes, content FROM verdicts LIMIT 2",
    );
    tidy(&here).await;
    assert_eq!((count("app_id = 'app_gone'"), count("true")), (0, 8));
    here.clock.advance(30 * DAY + Duration::from_millis(1));
    tidy(&here).await;
    assert_eq!(count("true"), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_table_that_is_locked_delays_a_verification_by_a_moment() {
    let postgres = Postgres::start();
    let provider = FakeProvider::start(script).await;
    let server = server(&postgres, &provider).await;
    let caller = Caller::new(&server, &provider);
    let body = json!({"fact": "Nice is a port."});
    assert_eq!(caller.calls(&body).await, 4);
    let owner = connect(&postgres).await;
    let app = server.app.clone();
    tokio::task::spawn_blocking(move || app.flush_verdicts()).await.unwrap();
    owner.batch_execute("BEGIN; LOCK TABLE verdicts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let begun = std::time::Instant::now();
    let (result, calls) = caller.verify(&body).await;
    assert_eq!((calls, result.get("cached")), (4, None));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    owner.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(caller.calls(&body).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn an_answer_that_one_server_keeps_the_other_gives() {
    let postgres = Postgres::start();
    let provider = FakeProvider::start(|_| Reply::Text("Hi".to_owned())).await;
    let (here, there) = (server(&postgres, &provider).await, server(&postgres, &provider).await);
    let key = here.key(Service::Inference);
    let mark = async |server: &TestServer, question: &str| {
        let body = json!({"model": "fake/m", "messages": [{"role": "user", "content": question}]});
        let request = client().post(format!("{}/inference/v1/chat/completions", server.base)).json(&body);
        let answer = request.bearer_auth(&key).header("x-mk-cache", "1h").send().await.unwrap();
        let mark = answer.headers()["x-mk-cache"].to_str().unwrap().to_owned();
        assert_eq!(answer.json::<Value>().await.unwrap()["choices"][0]["message"]["content"], "Hi");
        mark
    };
    assert_eq!(mark(&here, "Hello").await, "miss");
    let app = here.app.clone();
    tokio::task::spawn_blocking(move || app.flush_verdicts()).await.unwrap();
    assert_eq!(mark(&there, "Hello").await, "hit");
    assert_eq!(mark(&there, "Good morning").await, "miss");
    // A row that cannot be read is none.
    postgres.sql("mk", "UPDATE verdicts SET content = set_byte(content, 40, 0)");
    let third = server(&postgres, &provider).await;
    assert_eq!(mark(&third, "Hello").await, "miss");
    assert_eq!(provider.requests().len(), 3);
}
