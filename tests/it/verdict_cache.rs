//! The verdict cache: the same text and the same claims are not paid for again, and nothing is served that was found for
//! another app, under other settings, or on another day.

use std::time::Duration;

use mk::api::Service;
use mk::config::ServerConfig;
use mk::keys::apps;
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::mk::Mk;
use crate::support::panel::{config, eiffel};
use crate::support::provider::{FakeProvider, ModelRequest, Reply, claim, claims};
use crate::support::scrape::scrape;
use crate::support::server::{Setup, TestServer};

pub const DAY: Duration = Duration::from_hours(24);
const TOWER: &str = "The Eiffel Tower is in Paris.";

/// An extractor that knows three sentences and reports those that the section has, and a panel of which two of three are
/// right about the tower, and all about the rest.
pub fn script(ask: &ModelRequest) -> Reply {
    if ask.task == "claims" {
        let section = ask.block("SECTION");
        let known = [
            eiffel(),
            claim(
                "The Louvre opened in 1793.",
                "In which year did the Louvre open?",
                "1793",
                &["1780", "1785", "1789", "1799", "1803", "1810"],
            ),
            claim("Nice is a port.", "What is Nice?", "a port", &["a lake", "a hill", "a moor"]),
        ];
        let said = known.into_iter().filter(|claim| section.contains(claim["quote"].as_str().unwrap()));
        let greetings = section.matches("Hello!").map(|quote| json!({"quote": quote, "reason": "no_claim"}));
        return Reply::json(&json!({
            "claims": said.collect::<Vec<_>>(),
            "skipped": greetings.collect::<Vec<_>>(),
        }));
    }
    let options = ask.options();
    let known = ["Paris", "1793", "a port"];
    let right = known.into_iter().find(|known| options.values().any(|option| option == known)).unwrap();
    if ask.model == "three" && right == "Paris" { ask.choose("Rome") } else { ask.choose(right) }
}

/// A server with the cache on, in front of a provider with this script.
pub async fn server_with(
    script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(&mut ServerConfig),
) -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(script).await;
    let setup = Setup::new(config(&provider.base_url)).config(|config| {
        config.verify.general.cache = Some(30 * DAY);
        config.verify.legal.cache = Some(30 * DAY);
        change(config);
    });
    (setup.start().await, provider)
}

/// A caller who counts what its requests cost.
pub struct Caller<'a> {
    pub server: &'a TestServer,
    pub provider: &'a FakeProvider,
    pub key: String,
}

impl<'a> Caller<'a> {
    pub fn new(server: &'a TestServer, provider: &'a FakeProvider) -> Self {
        Self { server, provider, key: server.key(Service::Verify) }
    }

    /// The frames of a verification, and how many calls it took.
    pub async fn stream(&self, body: &Value, headers: &[(&str, &str)]) -> (Events, usize) {
        let before = self.provider.requests().len();
        let request = self.server.verify(&self.key, body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let events = Events::read(request.send().await.unwrap()).await;
        (events, self.provider.requests().len() - before)
    }

    /// The result of a verification, and how many calls it took.
    pub async fn verify(&self, body: &Value) -> (Value, usize) {
        let (events, calls) = self.stream(body, &[]).await;
        (events.end("completed").clone(), calls)
    }

    pub async fn calls(&self, body: &Value) -> usize {
        self.verify(body).await.1
    }
}

/// A result without what differs from one verification to the next.
fn lasting(completed: &Value) -> Value {
    let mut lasting = completed.clone();
    let fields = lasting.as_object_mut().unwrap();
    for own in ["requestId", "timestamp", "tokenUsage", "cost_usd", "cached", "minRequired", "asOf"] {
        fields.remove(own);
    }
    for result in fields["results"].as_array_mut().unwrap() {
        result.as_object_mut().unwrap().remove("cached");
    }
    lasting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_the_models_asked_again_with_a_flag() {
    let (server, provider) = server_with(script, |_| {}).await;
    let mk = Mk::new().args(["verify", TOWER]).env("MK_SERVER", &server.base);
    let mk = mk.env("MK_API_KEY", &server.key(Service::Verify));
    for (flags, calls) in [(&[][..], 4), (&[], 0), (&["--fresh"], 4)] {
        let before = provider.requests().len();
        let ran = mk.clone().args(flags.iter().copied()).run_beside().await;
        assert_eq!((ran.code(), provider.requests().len() - before), (0, calls), "{ran:?}");
    }
}

#[tokio::test]
async fn the_same_text_costs_nothing_and_its_stream_is_the_same_but_for_the_marks() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    let body = json!({"fact": format!("{TOWER} The Louvre opened in 1793. Hello!")});
    let (first, calls) = caller.stream(&body, &[]).await;
    assert_eq!(calls, 7, "{:?}", first.names());
    let fresh = first.end("completed");
    assert!(fresh.get("cached").is_none() && fresh["results"][0].get("cached").is_none(), "{fresh}");
    assert!(fresh["complete"].as_bool().unwrap(), "{fresh}");

    let (again, calls) = caller.stream(&body, &[]).await;
    assert_eq!(calls, 0);
    let ordered = |events: &Events| {
        let mut names: Vec<String> = events.names().into_iter().map(str::to_owned).collect();
        let from = names.iter().position(|name| name == "verifying_claims").unwrap() + 1;
        let to = names.len() - 1;
        names[from..to].sort();
        names
    };
    assert_eq!(ordered(&again), ordered(&first));
    for name in ["claims_extracted", "verifying_claims"] {
        let plain = |events: &Events| {
            let mut data = events.one(name).clone();
            if let Some(details) = data["details"].as_array_mut() {
                for detail in details {
                    detail.as_object_mut().unwrap().remove("id");
                }
            }
            data
        };
        assert_eq!(plain(&again), plain(&first));
    }
    let hit = again.end("completed");
    assert_eq!(hit["cached"], true);
    assert!(hit["results"].as_array().unwrap().iter().all(|result| result["cached"] == true), "{hit}");
    assert_eq!(lasting(hit), lasting(fresh));
    assert_ne!(hit["requestId"], fresh["requestId"]);
    assert_eq!(hit["tokenUsage"]["totalTokens"], 0);
    assert_eq!(hit["tokenUsage"]["modelUsage"], json!([]));
    assert!(again.raw.contains("\"cost_usd\":0.0,") || again.raw.contains("\"cost_usd\":0.0}"), "{hit}");
    server.app.flush().unwrap();
    let id = hit["requestId"].as_str().unwrap();
    assert_eq!(server.app.store.attempts_of(id).unwrap(), [], "nothing is booked");

    // With more votes required, they are counted again.
    let strict = json!({"fact": body["fact"], "minRequired": 3});
    let (hit, calls) = caller.verify(&strict).await;
    assert_eq!((calls, &hit["cached"]), (0, &json!(true)));
    let outcome = |at: usize| (&hit["results"][at]["assessment"], &hit["results"][at]["reason_code"]);
    assert_eq!(outcome(0), (&json!("NO CONSENSUS"), &json!("split")));
    assert_eq!(outcome(1), (&json!("TRUE"), &json!("consensus")));

    // No model answers, so none is said to.
    let (progress, calls) = caller.stream(&body, &[("x-mk-progress", "models")]).await;
    assert!(calls == 0 && !progress.names().contains(&"model_answered"), "{:?}", progress.names());

    let page = scrape(&server).await;
    let count = |series: &str| page.series[&format!("mk_verdict_cache_total{{{series}}}")];
    assert_eq!((count(r#"entry="text",outcome="hit""#), count(r#"entry="text",outcome="miss""#)), (3.0, 1.0));
    assert_eq!(
        (count(r#"entry="claim",outcome="hit""#), count(r#"entry="claim",outcome="miss""#)),
        (6.0, 2.0)
    );
}

#[tokio::test]
async fn hits_outlive_the_server() {
    let (server, provider) = server_with(script, |_| {}).await;
    let body = json!({"fact": TOWER});
    let caller = Caller::new(&server, &provider);
    assert_eq!(caller.calls(&body).await, 4);
    let (key, dir, clock) = (caller.key, server.dir.clone(), server.clock.clone());
    server.shutdown().await;
    let mut setup = Setup::new(config(&provider.base_url));
    setup.config.data_dir = dir.path().join("data");
    setup.config.verify.general.cache = Some(DAY);
    let server = Setup { clock, dir, ..setup }.start().await;
    let caller = Caller { server: &server, provider: &provider, key };
    let (hit, calls) = caller.verify(&body).await;
    assert_eq!((calls, &hit["cached"]), (0, &json!(true)));
    assert_eq!(hit["results"][0]["assessment"], "TRUE");
}

#[tokio::test]
async fn a_claim_that_stands_in_a_changed_text_is_not_asked_again() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    assert_eq!(caller.calls(&json!({"fact": format!("{TOWER} The Louvre opened in 1793.")})).await, 7);
    let changed = json!({"fact": format!("Now: The Louvre opened in 1793. Nice is a port. {TOWER}")});
    let (mixed, calls) = caller.verify(&changed).await;
    assert_eq!(calls, 4, "the text is extracted, and one claim is asked about");
    assert!(mixed.get("cached").is_none());
    let results = mixed["results"].as_array().unwrap();
    let marks: Vec<(&Value, bool)> =
        results.iter().map(|result| (&result["claimed_answer"], result["cached"] == true)).collect();
    assert_eq!(marks, [(&json!("A"), true), (&json!("A"), false), (&json!("A"), true)]);
    assert_eq!(results[2]["assessment"], "TRUE");
    let quote = |result: &Value| {
        let (start, end) = (&result["span"]["start"], &result["span"]["end"]);
        let at = |place: &Value| usize::try_from(place.as_u64().unwrap()).unwrap();
        changed["fact"].as_str().unwrap()[at(start)..at(end)].to_owned()
    };
    assert!(results.iter().all(|result| quote(result) == result["quote"].as_str().unwrap()), "{mixed}");
    // All claims of a text may be known without the text.
    let (known, calls) = caller.verify(&json!({"fact": format!("{TOWER} Nice is a port.")})).await;
    assert_eq!((calls, known.get("cached")), (1, None));
    assert!(known["results"].as_array().unwrap().iter().all(|result| result["cached"] == true));
    assert_eq!(known["tokenUsage"]["verificationTokens"], 0);
}

#[tokio::test]
async fn options_are_compared_by_what_they_mean_whatever_their_order() {
    let rivals = std::sync::Mutex::new(vec![
        vec!["USA", "Italy", "Spain"],
        vec!["Italy", "Spain", "United States"],
        vec!["Italy", "Spain", "Canada"],
    ]);
    let (server, provider) = server_with(
        move |ask| match ask.task.as_str() {
            "claims" => {
                let rivals = rivals.lock().unwrap().remove(0);
                claims(&[claim(
                    "It was built in France.",
                    "In which country was it built?",
                    "France",
                    &rivals,
                )])
            }
            _ => ask.choose("Italy"),
        },
        |_| {},
    )
    .await;
    let caller = Caller::new(&server, &provider);
    let fact = |before: &str| json!({"fact": format!("{before}: It was built in France.")});
    let (first, calls) = caller.verify(&fact("So")).await;
    assert_eq!((calls, &first["results"][0]["consensus_answer"]), (4, &json!("C")));
    let (moved, calls) = caller.verify(&fact("Indeed")).await;
    let result = &moved["results"][0];
    assert_eq!((calls, &result["cached"]), (1, &json!(true)), "{result}");
    assert_eq!((&result["consensus_answer"], &result["correction"]), (&json!("B"), &json!("Italy")));
    assert_eq!(result["model_answers"][0]["answer"], "B");
    let (other, calls) = caller.verify(&fact("Well")).await;
    assert_eq!((calls, other["results"][0].get("cached")), (4, None), "another option was shown");
}

#[tokio::test]
async fn nothing_is_served_for_another_request() {
    let (server, provider) = server_with(script, |_| {}).await;
    let caller = Caller::new(&server, &provider);
    let body = json!({"fact": TOWER, "asOf": "2026-11-20"});
    assert_eq!(caller.calls(&body).await, 4);
    for (change, calls) in [
        (json!({"asOf": "2026-11-20T23:59:59Z"}), 0),
        (json!({"minRequired": 3}), 0),
        (json!({"domain": "general"}), 0),
        (json!({"totalModels": 3}), 0),
        (json!({"asOf": "2026-11-21"}), 4),
        (json!({"asOf": "2026-11-19T23:59:59Z"}), 4),
        (json!({"totalModels": 2}), 3),
        (json!({"domain": "legal"}), 4),
        (json!({"explain": true}), 4),
        (json!({"context": "The Eiffel Tower stands in Paris."}), 4),
        (json!({"context": "The Eiffel Tower stands in Paris!"}), 4),
        (json!({"format": "markdown"}), 4),
        (json!({"fact": format!("{TOWER} ")}), 1),
    ] {
        let mut other = body.clone();
        other.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert_eq!(caller.calls(&other).await, calls, "{change}");
        assert_eq!(caller.calls(&other).await, 0, "{change}");
    }
    assert_eq!(caller.calls(&body).await, 0);
}

#[tokio::test]
async fn nothing_is_served_to_another_app_and_everything_to_another_key_of_the_same() {
    let (server, provider) = server_with(script, |_| {}).await;
    let (body, caller) = (json!({"fact": TOWER}), Caller::new(&server, &provider));
    assert_eq!(caller.calls(&body).await, 4);
    assert_eq!(Caller::new(&server, &provider).calls(&body).await, 0);
    let app = apps::create(&server.app.store, "other", None, server.clock.now()).unwrap();
    let (key, _) = server.key_with(Service::Verify, |new| new.app = app.name);
    let other = Caller { server: &server, provider: &provider, key };
    assert_eq!(other.calls(&body).await, 4);
    assert_eq!(other.calls(&body).await, 0);
    assert_eq!(caller.calls(&body).await, 0);
}

/// A change of the settings.
type Change = fn(&mut mk::verify::PanelSettings);

#[tokio::test]
async fn nothing_is_served_under_other_settings_or_from_a_provider_at_another_address() {
    let (server, provider) = server_with(script, |_| {}).await;
    let elsewhere = FakeProvider::start(script).await;
    let caller = Caller::new(&server, &provider);
    let body = json!({"fact": TOWER});
    let mut usual = config(&provider.base_url);
    usual.data_dir = server.dir.path().join("data");
    usual.verify.general.cache = Some(30 * DAY);
    let changes: [(&str, Change, usize); 8] = [
        ("panel", |set| set.panel = ["fake/one", "fake/two", "fake/four"].map(str::to_owned).into(), 4),
        ("order", |set| set.panel.reverse(), 4),
        ("standby", |set| set.standby = vec!["fake/five".to_owned()], 4),
        ("extractor", |set| set.extractor = "fake/other".to_owned(), 4),
        ("fallbacks", |set| set.extractor_fallbacks = vec!["fake/other".to_owned()], 4),
        ("max_claims", |set| set.max_claims = 7, 4),
        ("deadline", |set| set.deadline = Duration::from_mins(3), 0),
        ("model_timeout", |set| set.model_timeout = Duration::from_secs(20), 0),
    ];
    assert_eq!(caller.calls(&body).await, 4);
    for (name, change, calls) in changes {
        let mut config = usual.clone();
        change(&mut config.verify.general);
        server.app.reconfigure(&config).unwrap();
        assert_eq!(caller.calls(&body).await, calls, "{name}");
        server.app.reconfigure(&usual).unwrap();
        assert_eq!(caller.calls(&body).await, 0, "back from {name}");
    }
    let mut moved = usual.clone();
    moved.providers[0].base_url.clone_from(&elsewhere.base_url);
    server.app.reconfigure(&moved).unwrap();
    assert_eq!(caller.calls(&body).await, 0);
    assert_eq!(elsewhere.requests().len(), 4);
}
