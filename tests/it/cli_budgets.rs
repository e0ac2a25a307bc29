//! Budgets and model restrictions on the command line: set, changed, shown.

use mk::api::Service;
use mk::clock::{Clock, Time};
use mk::storage::{AttemptRow, Store};
use serde_json::json;

use crate::support::mk::{CommandOutput, Mk};
use crate::support::pty;

/// Runs commands on one database.
struct Fixture(Mk);

impl Fixture {
    fn new() -> Self {
        let mk = Mk::new();
        let data = mk.home().join("data");
        Self(mk.env("MK_DATA_DIR", data.to_str().unwrap()))
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.0.clone().args(arguments.iter().copied()).run()
    }

    fn done(&self, arguments: &[&str]) -> CommandOutput {
        let ran = self.run(arguments);
        assert_eq!(ran.code(), 0, "{ran:?}");
        ran
    }

    /// Records a call of this key that cost $0.25.
    fn book(&self, key_id: &str, at: Time) {
        self.book_at(key_id, at, Some(mk::money::NanoUsd(250_000_000)));
    }

    /// Records a call of this key at this cost, or at an unknown price.
    fn book_at(&self, key_id: &str, at: Time, cost: Option<mk::money::NanoUsd>) {
        let store = Store::open(&self.0.home().join("data"), at).unwrap();
        let row = AttemptRow {
            at,
            request_id: "req_1".into(),
            app_id: store.app("default").unwrap().id.into(),
            key_id: key_id.into(),
            service: Service::Inference,
            model: "a/b".into(),
            outcome: "ok".into(),
            prompt_tokens: 1,
            completion_tokens: 1,
            cached_tokens: 0,
            cache_write_tokens: 0,
            is_estimated: false,
            cost,
            latency_ms: 1,
            is_first: true,
            is_first_of_model: true,
            labels: None,
            call: None,
        };
        store.add_attempts(&[row]).unwrap();
    }
}

#[test]
fn what_was_spent_is_marked_where_a_price_is_unknown() {
    let fixture = Fixture::new();
    let made = ["keys", "create", "--service", "inference", "--name", "ci", "--json"];
    let id = fixture.done(&made).json()["id"].as_str().unwrap().to_owned();
    let now = Clock::system().now();
    fixture.book_at(&id, now, None);
    for (show, list) in
        [(["apps", "show", "default"], ["apps", "list"]), (["keys", "show", "ci"], ["keys", "list"])]
    {
        assert!(fixture.done(&show).stdout.contains("\tunknown this month\n"), "{show:?}");
        assert!(fixture.done(&list).stdout.ends_with("\tunknown\t-\t1\n"), "{list:?}");
    }
    fixture.book(&id, now);
    for (show, list) in
        [(["apps", "show", "default"], ["apps", "list"]), (["keys", "show", "ci"], ["keys", "list"])]
    {
        assert!(fixture.done(&show).stdout.contains("\t≥$0.25 this month\n"), "{show:?}");
        assert!(fixture.done(&list).stdout.ends_with("\t0.25\t-\t1\n"), "{list:?}");
    }
    let apps = pty::run(&fixture.0.clone().args(["apps", "list"]), 80, 24).last;
    assert!(apps.contains("≥$0.2500"), "{apps}");
}

#[test]
fn a_key_s_exact_budget_and_models_are_shown_with_its_spending() {
    let fixture = Fixture::new();
    let arguments = [
        "keys",
        "create",
        "--service",
        "inference",
        "--name",
        "ci",
        "--budget-usd",
        "12.000000001",
        "--model",
        "openai/*",
        "--model",
        "fake/m",
        "--json",
    ];
    let made = fixture.done(&arguments).json();
    assert_eq!((&made["models"], &made["spent_usd"]), (&json!(["openai/*", "fake/m"]), &json!(0.0)));
    fixture.book(made["id"].as_str().unwrap(), Clock::system().now());

    let shown = fixture.done(&["keys", "show", "ci"]).stdout;
    for line in [
        "models\topenai/*, fake/m\n",
        "budget\t$12.000000001 a month\n",
        "spent\t$0.25 this month (2 % of the budget)\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    assert_eq!(fixture.done(&["keys", "show", "ci", "--json"]).json()["spent_usd"], 0.25);
}

#[test]
fn an_app_s_budget_is_set_changed_and_removed() {
    let fixture = Fixture::new();
    let made = fixture.done(&["apps", "create", "news", "--budget-usd", "5", "--json"]).json();
    assert_eq!((&made["app"]["budget_usd"], &made["app"]["spent_usd"]), (&json!(5.0), &json!(0.0)));
    let budget = |flags: &[&str]| {
        let arguments: Vec<&str> = ["apps", "update", "news"].iter().chain(flags).copied().collect();
        fixture.done(&arguments).stdout
    };
    assert!(budget(&["--budget-usd", "7.5"]).contains("budget\t$7.50 a month\n"));
    assert!(budget(&["--name", "press"]).contains("budget\t$7.50 a month\n"), "only what is named changes");
    assert!(fixture.done(&["apps", "update", "press", "--no-budget"]).stdout.contains("budget\tnone\n"));
    fixture.book("key_1", Clock::system().now());
    let listed = fixture.done(&["apps", "list"]).stdout;
    let default = listed.lines().find(|line| line.contains("\tdefault\t")).unwrap();
    assert!(default.ends_with("\t-\t0.25\t-\t0"), "{default}");
    assert_eq!(fixture.done(&["apps", "show", "default", "--json"]).json()["app"]["spent_usd"], 0.25);
}

#[test]
fn a_terminal_shows_only_the_day_an_app_was_created() {
    let fixture = Fixture::new();
    fixture.done(&["apps", "create", "news"]);
    let listed = fixture.done(&["apps", "list"]).stdout;
    let moment = listed.split('\t').nth(3).unwrap();
    assert_eq!(moment.len(), "2026-11-20T09:30:00.000Z".len(), "{listed}");
    let shown = pty::run(&fixture.0.clone().args(["apps", "list"]), 80, 12).last;
    assert!(shown.contains(&moment[..10]) && !shown.contains(moment), "{shown}");
}

#[test]
fn invalid_amounts_are_rejected_by_flag_name() {
    let fixture = Fixture::new();
    for amount in ["-5", "NaN", "inf", "1e3", "five", "0.0000000001", "1000000001", "5,00", ""] {
        let ran = fixture.run(&["apps", "create", "news", "--budget-usd", amount]);
        assert_eq!(ran.code(), 2, "{amount}: {ran:?}");
        assert!(ran.stderr.contains("--budget-usd") && ran.stderr.contains("such as 25 or 0.50"), "{ran:?}");
    }
    let both = fixture.run(&["apps", "update", "default", "--budget-usd", "5", "--no-budget"]);
    assert_eq!(both.code(), 2, "{both:?}");
    let nothing = fixture.run(&["apps", "update", "default"]);
    assert_eq!(nothing.code(), 2, "{nothing:?}");
    for flag in ["--name", "--budget-usd", "--no-budget"] {
        assert!(nothing.stderr.contains(flag), "{flag}: {nothing:?}");
    }
    let pattern = fixture.run(&["keys", "create", "--service", "inference", "--model", "gpt-*"]);
    assert!(
        pattern.code() == 2 && pattern.stderr.contains("--model: \"gpt-*\" is not a model pattern"),
        "{pattern:?}"
    );
}
