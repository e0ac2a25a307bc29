//! What the verdict cache keeps, and how it goes: only what is whole, for as long as the settings say, and nothing of an
//! app that is gone. What is read is never trusted, and a store that fails costs only what the cache would have saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mk::api::Service;
use mk::keys::apps;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::mk::Mk;
use crate::support::provider::{ModelRequest, Reply};
use crate::support::server::{TestServer, client};
use crate::verdict_cache::{Caller, DAY, script, server_with};

const BOTH: &str = "The Eiffel Tower is in Paris. Nice is a port.";
const DATED: &str = "2026-11-20";

fn body(fact: &str) -> Value {
    json!({"fact": fact, "asOf": DATED})
}

/// The ledger's file, after all that waits has been written to it.
fn ledger(server: &TestServer) -> Connection {
    server.app.flush_verdicts();
    Connection::open(server.dir.path().join("data/ledger.db")).unwrap()
}

fn rows(server: &TestServer) -> i64 {
    ledger(server).query_row("SELECT count(*) FROM verdicts", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn nothing_is_kept_where_the_cache_is_off() {
    let (server, provider) = server_with(script, |config| config.verify.general.cache = None).await;
    let caller = Caller::new(&server, &provider);
    assert_eq!((caller.calls(&body(BOTH)).await, caller.calls(&body(BOTH)).await), (7, 7));
    assert_eq!(rows(&server), 0);
    let legal = json!({"fact": BOTH, "domain": "legal"});
    assert_eq!((caller.calls(&legal).await, caller.calls(&legal).await), (7, 0));
    assert_eq!(rows(&server), 3);
}

/// A script in which the first call that `fails` picks goes wrong.
fn once(
    fails: impl Fn(&ModelRequest) -> bool + Send + Sync + 'static,
) -> impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static {
    let failed = AtomicUsize::new(0);
    move |ask| {
        if fails(ask) && failed.fetch_add(1, Ordering::SeqCst) == 0 {
            return Reply::status(500, &json!({}));
        }
        script(ask)
    }
}

#[tokio::test]
async fn a_claim_that_a_model_gave_no_answer_to_is_asked_again() {
    let fails = |ask: &ModelRequest| ask.model == "two" && ask.block("QUESTION").contains("Nice");
    let (server, provider) = server_with(once(fails), |_| {}).await;
    let caller = Caller::new(&server, &provider);
    let (first, calls) = caller.verify(&body(BOTH)).await;
    assert_eq!((calls, first["results"][1]["model_errors"].as_array().unwrap().len()), (7, 1));
    let (second, calls) = caller.verify(&body(BOTH)).await;
    assert_eq!((calls, second.get("cached")), (3, None), "the text and the other claim are known");
    assert_eq!(second["results"][0]["cached"], true);
    assert_eq!(second["results"][1]["model_errors"], json!([]));
    let (third, calls) = caller.verify(&body(BOTH)).await;
    assert_eq!((calls, &third["cached"]), (0, &json!(true)));
}

#[tokio::test]
async fn votes_of_a_standby_model_are_not_kept() {
    let fails = |ask: &ModelRequest| ask.model == "two";
    let with_standby = |config: &mut mk::config::ServerConfig| {
        config.verify.general.standby = vec!["fake/four".to_owned()];
    };
    let (server, provider) = server_with(once(fails), with_standby).await;
    let caller = Caller::new(&server, &provider);
    let fact = body("Nice is a port.");
    assert_eq!(caller.calls(&fact).await, 5);
    assert_eq!((caller.calls(&fact).await, caller.calls(&fact).await), (3, 0));
}

#[tokio::test]
async fn a_text_that_was_not_checked_in_whole_is_read_again() {
    // A sentence that the extractor leaves out, twice.
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    let fact = body("Nice is a port. Lyon has many rivers and bridges.");
    let (first, calls) = caller.verify(&fact).await;
    assert_eq!((&first["complete"], calls), (&json!(false), 5));
    let (again, calls) = caller.verify(&fact).await;
    assert_eq!((calls, again.get("cached"), &again["results"][0]["cached"]), (2, None, &json!(true)));
}

#[tokio::test]
async fn a_text_whose_auditor_failed_is_read_again() {
    let audits = Arc::<AtomicUsize>::default();
    let counted = audits.clone();
    let audited = move |ask: &ModelRequest| match ask.model.as_str() {
        "auditor" if counted.fetch_add(1, Ordering::SeqCst) == 0 => Reply::status(500, &json!({})),
        "auditor" => Reply::json(&json!({"claims": [], "missing": []})),
        _ => script(ask),
    };
    let with_auditor = |config: &mut mk::config::ServerConfig| {
        config.verify.general.auditor = Some("fake/auditor".to_owned());
    };
    let (server, provider) = server_with(audited, with_auditor).await;
    let caller = Caller::new(&server, &provider);
    let (first, calls) = caller.verify(&body(BOTH)).await;
    assert_eq!((&first["audited"], calls), (&json!(false), 8));
    let (second, calls) = caller.verify(&body(BOTH)).await;
    assert_eq!((&second["audited"], calls, second.get("cached")), (&json!(true), 2, None));
    let (third, calls) = caller.verify(&body(BOTH)).await;
    assert_eq!((&third["audited"], calls, &third["cached"]), (&json!(true), 0, &json!(true)));
}

#[tokio::test]
async fn a_request_may_have_all_found_anew() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    let ask = async |headers: &[(&str, &str)]| {
        let (events, calls) = caller.stream(&body(BOTH), headers).await;
        (calls, events.end("completed")["cached"] == true)
    };
    assert_eq!(ask(&[("x-mk-cache", "fresh")]).await, (7, false));
    assert_eq!(ask(&[]).await, (0, true), "it is kept");
    server.clock.advance(DAY);
    assert_eq!(ask(&[("x-mk-cache", "fresh")]).await, (7, false));
    server.clock.advance(30 * DAY);
    assert_eq!(ask(&[]).await, (0, true), "and in the place of what was there");
    for other in ["Fresh", "no-store", "refresh", ""] {
        let request = server.verify(&caller.key, &body(BOTH)).header("x-mk-cache", other);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400, "{other}");
        assert!(response.text().await.unwrap().contains("x-mk-cache"), "{other}");
    }
    // Clients of event streams send these by themselves.
    for usual in ["no-cache", "no-store"] {
        assert_eq!(ask(&[("cache-control", usual), ("pragma", "no-cache")]).await, (0, true));
    }
    assert_eq!(rows(&server), 3);
}

#[tokio::test]
async fn what_is_known_is_served_to_a_key_without_money() {
    let (server, provider) = server_with(script, crate::budgets_verify::price_all).await;
    let caller = Caller::new(&server, &provider);
    assert_eq!(caller.calls(&body(BOTH)).await, 7);
    server.app.flush_verdicts();
    let (key, _) = server.key_with(Service::Verify, |new| new.budget = Some(mk::money::NanoUsd(1)));
    let poor = Caller { server: &server, provider: &provider, key };
    let (known, calls) = poor.verify(&body(BOTH)).await;
    assert_eq!((calls, &known["cached"], &known["cost_usd"]), (0, &json!(true), &json!(0.0)));
    // Of a text that is known in part, models would be called.
    for fact in ["Nice is a port.", "Lyon is old."] {
        let refused = server.verify(&poor.key, &body(fact)).send().await.unwrap();
        assert_eq!(refused.status(), 402, "{fact}");
    }
}

#[tokio::test]
async fn entries_go_with_age_with_the_setting_and_with_their_app() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    assert_eq!(caller.calls(&body(BOTH)).await, 7);
    server.clock.advance(30 * DAY);
    assert_eq!(caller.calls(&body(BOTH)).await, 0, "hits do not renew an entry");
    server.clock.advance(Duration::from_millis(1));
    server.app.flush_verdicts();
    assert_eq!(caller.calls(&body(BOTH)).await, 7);
    assert_eq!(caller.calls(&body("Nice is a port.")).await, 1);
    server.clock.advance(30 * DAY);
    assert_eq!(caller.calls(&json!({"fact": BOTH, "domain": "legal"})).await, 7);
    assert_eq!(rows(&server), 7);
    server.app.tidy_verdicts().unwrap();
    assert_eq!(rows(&server), 7);
    server.clock.advance(Duration::from_millis(1));
    server.app.tidy_verdicts().unwrap();
    assert_eq!(rows(&server), 3, "those of the other domain are younger");

    // An app that is gone, also if its last verification ends after it.
    let store = &server.app.store;
    let other = apps::create(store, "other", None, server.clock.now()).unwrap();
    let (key, _) = server.key_with(Service::Verify, |new| new.app = "other".to_owned());
    let of_other = Caller { server: &server, provider: &provider, key };
    assert_eq!((of_other.calls(&body(BOTH)).await, rows(&server)), (7, 6));
    store.delete_app(&other.id, server.clock.now()).unwrap();
    assert_eq!(rows(&server), 3);

    let mut off = crate::support::panel::config(&provider.base_url);
    off.data_dir = server.dir.path().join("data");
    server.app.reconfigure(&off).unwrap();
    server.app.tidy_verdicts().unwrap();
    assert_eq!(rows(&server), 0);
}

/// Rewrites each entry; returns how many there are.
fn rewrite(ledger: &Connection, change: impl Fn(&[u8], &[u8]) -> Vec<u8>) -> usize {
    let mut read = ledger.prepare("SELECT key, content FROM verdicts").unwrap();
    let rows: Vec<(Vec<u8>, Vec<u8>)> =
        read.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    for (key, content) in &rows {
        let content = change(key, content);
        ledger.execute("UPDATE verdicts SET content = ?2 WHERE key = ?1", (key, content)).unwrap();
    }
    rows.len()
}

/// An entry whose checksum is right, whatever it says.
fn sealed(key: &[u8], json: &[u8]) -> Vec<u8> {
    [&Sha256::new_with_prefix(key).chain_update(json).finalize()[..], json].concat()
}

/// What becomes of an entry's content, with its key.
type Damage = fn(&[u8], &[u8]) -> Vec<u8>;

#[tokio::test]
async fn what_is_damaged_or_foreign_is_missing() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    let changes: [(&str, Damage); 12] = [
        ("empty", |_, _| Vec::new()),
        ("cut", |_, content| content[..content.len() - 1].to_vec()),
        ("a flipped bit", |_, content| {
            let mut content = content.to_vec();
            let last = content.len() - 9;
            content[last] ^= 1;
            content
        }),
        ("no checksum", |_, content| content[32..].to_vec()),
        ("another key's", |key, content| {
            let mut other = key.to_vec();
            other[0] ^= 1;
            sealed(&other, &content[32..])
        }),
        ("no JSON", |key, _| sealed(key, b"\xff\x00")),
        ("another form", |key, _| sealed(key, b"{}")),
        ("more than known", |key, content| edited(key, content, "{\"", "{\"more\":1,\"")),
        ("an option that is none", |key, content| {
            let content = edited(key, content, "\"option\":0", "\"option\":6");
            edited(key, &content, "\"end\":", "\"end\":9")
        }),
        ("a vote less", |key, content| {
            let content = edited(
                key,
                content,
                "\"votes\":[{\"option\":0,\"found\":null,\"reason\":null},",
                "\"votes\":[",
            );
            edited(key, &content, "\"start\":30", "\"start\":99")
        }),
        ("another option", |key, content| {
            let content = edited(key, content, "None of these", "All of these");
            edited(key, &content, "\"audited\":false", "\"audited\":0")
        }),
        ("an unchecked part", |key, content| {
            let content = edited(key, content, "\"unchecked\":0", "\"unchecked\":1");
            edited(key, &content, "\"Cannot be determined\"]", "\"Cannot be determined\",\"x\"]")
        }),
    ];
    assert_eq!(caller.calls(&body(BOTH)).await, 7);
    for (name, change) in changes {
        assert_eq!(caller.calls(&body(BOTH)).await, 0, "before {name}");
        assert_eq!(rewrite(&ledger(&server), change), 3);
        assert_eq!(caller.calls(&body(BOTH)).await, 7, "{name}");
    }
    // From the future, as the clock was wrong, or from long ago.
    let ledger = ledger(&server);
    for at in [i64::MIN, -1, 0, i64::MAX] {
        ledger.execute("UPDATE verdicts SET at = ?1", [at]).unwrap();
        assert_eq!(caller.calls(&body(BOTH)).await, 7, "{at}");
        server.app.flush_verdicts();
    }
}

fn edited(key: &[u8], content: &[u8], from: &str, to: &str) -> Vec<u8> {
    sealed(key, std::str::from_utf8(&content[32..]).unwrap().replace(from, to).as_bytes())
}

#[tokio::test]
async fn without_its_table_verifications_go_on() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    assert_eq!(caller.calls(&body(BOTH)).await, 7);
    ledger(&server).execute_batch("DROP TABLE verdicts").unwrap();
    for _ in 0..2 {
        let (result, calls) = caller.verify(&body(BOTH)).await;
        assert_eq!((calls, result.get("cached")), (7, None));
        // What cannot be written is dropped, and takes nothing else with it.
        server.app.flush_verdicts();
    }
    let health = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert_eq!(health.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_says_what_was_cached_and_an_evaluation_never_is() {
    let (server, provider) = server_with(script, |_| {}).await;
    let key = server.key(Service::Verify);
    let mk = async |arguments: &[&str]| {
        let before = provider.requests().len();
        let mk =
            Mk::new().args(arguments.iter().copied()).env("MK_SERVER", &server.base).env("MK_API_KEY", &key);
        let file = mk.home().join("facts.jsonl");
        std::fs::write(file, json!({"fact": BOTH, "expected": "TRUE"}).to_string()).unwrap();
        let ran = mk.run_beside().await;
        assert_eq!(ran.code(), 0, "{ran:?}");
        (ran, provider.requests().len() - before)
    };
    let (first, calls) = mk(&["verify", BOTH]).await;
    assert!(calls == 7, "{first:?}");
    let (again, calls) = mk(&["verify", BOTH]).await;
    assert!(calls == 0 && again.stdout == first.stdout, "{again:?}");
    let (list, _) = mk(&["verify", "--view", "list", BOTH]).await;
    assert!(list.stdout.contains("TRUE  2/3 (cached)"), "{list:?}");
    assert!(
        list.stdout.contains(" true · not audited · cached · ") && !list.stdout.contains("tokens"),
        "{list:?}"
    );
    let (table, _) = mk(&["verify", "--view", "table", BOTH]).await;
    assert!(table.stdout.contains("cached"), "{table:?}");
    let (lines, _) = mk(&["verify", "--jsonl", BOTH]).await;
    assert_eq!(lines.stdout.matches("\"cached\":true").count(), 3, "{lines:?}");
    for _ in 0..2 {
        let (evaluated, calls) = mk(&["eval", "facts.jsonl"]).await;
        assert_eq!(calls, 7, "{evaluated:?}");
    }
    assert_eq!(mk(&["verify", BOTH]).await.1, 0);
}
