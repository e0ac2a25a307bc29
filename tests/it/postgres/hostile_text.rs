//! Text that could break a database: characters that no column accepts, quotes and patterns, locale-dependent sorting.
//! It is treated as data, and if one value is refused, the others are still written.

use reqwest::Method;
use serde_json::{Value, json};

use super::{CountingProvider, TwoServers, assert_recorded, complete, make_key, operator, status_and_code};
use crate::support::chat::hello;
use crate::support::console::{Console, ids, text};
use crate::support::postgres::Postgres;
use crate::support::server::client;

const HOSTILE: [&str; 12] = [
    "nul\0inside",
    "\0",
    "o'brien",
    "'; DROP TABLE attempts; --",
    "\" \\ \\x00 \\u0000 $1 $$ $q$",
    "100%_of%it",
    "{},{\"a\",NULL}",
    "\u{feff}\u{202e}\u{200d}\u{1f9d1}\u{fffd}\u{10ffff}",
    "tab\tline\nreturn\r",
    "NULL",
    "äöüßÄÖÜẞ",
    "\u{7f}\u{80}\u{9f}",
];

/// Long text that cannot be compressed, so that no index of PostgreSQL can hold it unchanged.
fn huge(length: usize) -> String {
    let mut number = 7_u64;
    let mut next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_digit(u32::try_from(number >> 60).unwrap(), 16).unwrap()
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn no_model_name_prevents_other_usage_from_being_recorded() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    let base = &two.servers[0].base;
    let mut names: Vec<String> = HOSTILE.map(str::to_owned).to_vec();
    names.extend([100, 190, 3000, 9000, 100_000].map(huge));
    let ask = async |name: &str, id: &str| {
        let mut body = hello();
        body["model"] = json!(format!("fake/{name}"));
        let asked = client().post(format!("{base}/inference/v1/chat/completions")).bearer_auth(&key);
        status_and_code(asked.header("x-request-id", id).json(&body).send().await.unwrap()).await
    };
    let mut passed = Vec::new();
    for (at, name) in names.iter().enumerate() {
        assert_eq!(complete(base, &key).await.0, 200);
        let (status, code) = ask(name, &format!("hostile-{at}")).await;
        assert!([200, 400, 404].contains(&status), "{name:?}: {status} {code}");
        if status == 200 {
            passed.push(name);
        }
        assert_eq!(complete(base, &key).await.0, 200);
    }
    assert!(passed.len() > 4, "{passed:?}");
    // Request ids that callers choose: repeated ones, all permitted characters, long ones.
    for id in ["same", "same", "..-_..", "0", &huge(64), &huge(4000), "a'b", "a%b"] {
        assert_eq!(ask("m", id).await.0, 200);
    }
    let ordinary = 2 * i64::try_from(names.len()).unwrap() + 8;
    let all = ordinary + i64::try_from(passed.len()).unwrap();
    assert_eq!(provider.calls(), all);

    let by_model = async || {
        let arguments = ["usage", "--since", "2d", "--by", "model", "--json"];
        operator(&postgres.url(), &arguments).run_beside().await.json()
    };
    let report =
        super::until("all attempts are recorded", by_model, |report| report["totals"]["attempts"] == all)
            .await;
    let of = |model: &str| {
        let rows = report["data"].as_array().unwrap().iter().filter(|row| row["model"] == model);
        rows.map(|row| row["attempts"].as_i64().unwrap()).sum::<i64>()
    };
    assert_eq!(of("fake/m"), ordinary);
    for name in passed {
        assert_eq!(of(&format!("fake/{name}")), 1, "{report}");
    }
    for console in &two.consoles {
        let (status, report) = console.get("/v1/usage?by=model").await;
        assert_eq!(status, 200, "{report}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn names_are_stored_unchanged_or_refused() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let [here, there] = &two.consoles;
    let list = format!("/v1/apps/{}/keys", two.app);
    let mut names: Vec<String> = HOSTILE.map(str::to_owned).to_vec();
    names.extend([huge(100), huge(5000)]);
    for name in &names {
        let (status, key) = here.post(&list, &json!({"service": "verify", "name": name})).await;
        assert!([201, 400].contains(&status), "{name:?}: {key}");
        if status == 201 {
            let path = format!("{list}/{}", text(&key["id"]));
            assert_eq!(there.get(&path).await.1["name"], json!(name.trim()));
        }
        let (status, app) = here.post("/v1/apps", &json!({"name": name})).await;
        assert!([201, 400].contains(&status), "{name:?}: {app}");
        if status == 201 {
            assert_eq!(there.post("/v1/apps", &json!({"name": name})).await.0, 409);
            let path = format!("/v1/apps/{}", text(&app["id"]));
            assert_eq!(there.get(&path).await.1["name"], json!(name.trim()));
        }
    }
    // Values in paths and queries are data as well.
    for strange in ["%00", "key_%00", "'", "%25", "key_%27%20OR%201=1--", "%F0%9F%A7%91"] {
        for path in [format!("/v1/apps/{strange}"), format!("{list}/{strange}")] {
            let (status, answer) = there.get(&path).await;
            assert!([400, 404].contains(&status), "{path}: {status} {answer}");
        }
        for query in ["object", "app", "actor", "action", "cursor"] {
            let (status, answer) = there.get(&format!("/v1/audit?{query}={strange}")).await;
            assert!([200, 400].contains(&status), "{query}={strange}: {status} {answer}");
        }
        for query in ["app", "key", "model"] {
            let (status, answer) = there.get(&format!("/v1/usage?{query}={strange}")).await;
            assert!([200, 400, 404].contains(&status), "{query}={strange}: {status} {answer}");
        }
    }
    assert!(there.walk("/v1/audit?", 7).await.len() > 10);
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn hostile_request_ids_and_keys_break_nothing() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let console = &two.consoles[0];
    for (at, id) in ["%00", "'--", "ä", &huge(3000)].into_iter().enumerate() {
        let name = format!("app {at}");
        let request = console.request(Method::POST, "/v1/apps").header("x-request-id", id.as_bytes());
        let made = Console::ask(request.json(&json!({"name": name}))).await;
        assert_eq!(made.status(), 201, "{id}");
    }
    for key in ["'", "\u{e4}", "%", &huge(5000)] {
        let asked = super::invalid_request(&console.base, key).send().await.unwrap();
        assert_eq!(asked.status(), 401, "{key}");
    }
}

/// Creates a database that does not sort by bytes but by a locale: the system's if it has one, else ICU's.
fn sorted_by_locale(postgres: &Postgres) -> String {
    let has = |locale: &str| {
        let query = format!("SELECT count(*) FROM pg_collation WHERE collname = '{locale}'");
        postgres.number("postgres", &query) > 0
    };
    let options = if has("en_US.utf8") {
        "TEMPLATE template0 LOCALE 'en_US.UTF-8'"
    } else {
        "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'"
    };
    postgres.new_database("localised", options);
    let sorts = "SELECT count(*) FROM (SELECT 1 WHERE 'a'::text < 'B'::text AND 'B'::text < 'c'::text) AS t";
    assert_eq!(postgres.number("localised", sorts), 1, "the database sorts by bytes");
    postgres.url_of("localised")
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn lists_are_ordered_by_bytes_whatever_the_locale_of_the_database() {
    let postgres = Postgres::start();
    let url = sorted_by_locale(&postgres);
    let two = TwoServers::start(&url, "http://127.0.0.1:0/v1").await;
    let [here, there] = &two.consoles;
    let mut made = ids(&here.walk("/v1/apps?", 100).await);
    for name in ["b", "B", "a", "A", "Ärzte", "ärzte", "arzte", "Zoë", "-b", "_b", " c", "z z"] {
        made.push(here.app(name).await);
    }
    let by_bytes = |ids: &[String]| ids.is_sorted();
    for limit in [1, 3, 100] {
        let walked = ids(&there.walk("/v1/apps?", limit).await);
        assert!(by_bytes(&walked), "{walked:?}");
        assert_eq!(walked.len(), made.len());
        assert!(made.iter().all(|id| walked.contains(id)));
    }
    assert_eq!(here.post("/v1/apps", &json!({"name": "ärzte"})).await.0, 409);
    let mut keys = Vec::new();
    for at in 0..23 {
        let body = json!({"service": "verify", "name": format!("Schlüssel {at}")});
        keys.push(here.key(&made[at % 2], &body).await.1);
    }
    for app in &made[..2] {
        let walked = ids(&there.walk(&format!("/v1/apps/{app}/keys?"), 2).await);
        assert!(by_bytes(&walked), "{walked:?}");
        let of_app = |path: &&String| path.contains(app.as_str());
        assert_eq!(walked.iter().filter(|id| keys.iter().any(|path| path.ends_with(*id))).count(), {
            keys.iter().filter(of_app).count()
        });
    }
    let mut entries = ids(&there.walk("/v1/audit?", 3).await);
    entries.reverse();
    assert!(by_bytes(&entries), "{entries:?}");

    // The command line finds them by their exact names.
    for name in ["Ärzte", "ärzte", "a", "A"] {
        let shown = operator(&url, &["apps", "show", name, "--json"]).run_beside().await;
        assert_eq!(shown.json()["app"]["name"], json!(name), "{shown:?}");
    }
    let (_, id) = make_key(&url, "verify", &["--app", "Zoë", "--name", "Grüße % _ '"]).await;
    let found = operator(&url, &["keys", "show", "Grüße % _ '", "--json"]).run_beside().await;
    assert_eq!(found.json()["id"], Value::from(id), "{found:?}");
    assert_recorded(&url, 0).await;
}
