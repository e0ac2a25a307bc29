//! `mk usage` and `mk apps statement` on the local database: tables with bars, lines, CSV and JSON.

use mk::api::Service;
use mk::clock::{Clock, Time};
use mk::keys::{self, NewKey, apps};
use mk::money::NanoUsd;
use mk::storage::{AttemptRow, Store};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::support::mk::{CommandOutput, Mk};
use crate::support::pty;

const NOVEMBER: [&str; 4] = ["--from", "2025-11-01", "--to", "2025-11-30"];

/// A database with an app `website` that has a key `till` with a budget, and commands on it.
struct Fixture {
    mk: Mk,
    store: Store,
    app_id: String,
    key_id: String,
}

impl Fixture {
    fn new() -> Self {
        let mk = Mk::new();
        let data = mk.home().join("data");
        let mk = mk.env("MK_DATA_DIR", data.to_str().unwrap());
        let now = Clock::system().now();
        let store = Store::open(&data, now).unwrap();
        let app = apps::create(&store, "website", Some(NanoUsd(10_000_000_000)), now).unwrap();
        let mut new = NewKey::new(Service::Inference, "website");
        (new.name, new.budget) = (Some("till".to_owned()), Some(NanoUsd(2_000_000_000)));
        let (_, key) = keys::create(&store, &new, now).unwrap();
        Self { mk, store, app_id: app.id, key_id: key.id.to_string() }
    }

    /// An attempt of the website's key with 1,000 prompt and 500 completion tokens.
    fn row(&self, at: &str, model: &str, cost: Option<u64>) -> AttemptRow {
        AttemptRow {
            at: Time::parse(at).unwrap(),
            request_id: "req_1".into(),
            app_id: self.app_id.clone().into(),
            key_id: self.key_id.clone().into(),
            service: Service::Inference,
            model: model.into(),
            outcome: "ok".into(),
            prompt_tokens: 1000,
            completion_tokens: 500,
            cached_tokens: 0,
            cache_write_tokens: 0,
            is_estimated: false,
            cost: cost.map(NanoUsd),
            latency_ms: 1,
            is_first: true,
            is_first_of_model: true,
            labels: None,
            call: None,
        }
    }

    /// Calls on two days in November with known and unknown prices, and some just outside the month.
    fn with_november() -> Self {
        let fixture = Self::new();
        let rows = [
            fixture.row("2025-10-31T23:59:59.999Z", "a/dear", Some(7_000_000_000)),
            fixture.row("2025-11-01", "a/dear", Some(1_000_000_000)),
            AttemptRow { outcome: "provider_error".into(), ..fixture.row("2025-11-01", "a/cheap", Some(1)) },
            fixture.row("2025-11-30T23:59:59.999Z", "a/dear", Some(500_000_000)),
            fixture.row("2025-11-30", "b/unknown", None),
            fixture.row("2025-12-01", "a/dear", Some(9_000_000_000)),
        ];
        fixture.store.add_attempts(&rows).unwrap();
        fixture
    }

    fn call(&self, arguments: &[&str]) -> Mk {
        self.mk.clone().args(arguments.iter().copied())
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let ran = self.call(arguments).run();
        assert_eq!(ran.code(), 0, "{ran:?}");
        ran
    }

    /// `mk usage` for November.
    fn november(&self, arguments: &[&str]) -> CommandOutput {
        let all: Vec<&str> = ["usage"].iter().chain(&NOVEMBER).chain(arguments).copied().collect();
        self.run(&all)
    }
}

#[test]
fn a_pipe_gets_one_line_per_group() {
    let fixture = Fixture::with_november();
    let by_day = fixture.november(&[]);
    let expected = "2025-11-01\t2\t2\t1\t2000\t1000\t3000\t1.000000001\t0\t0\t0\t0\n\
                    2025-11-30\t2\t2\t0\t2000\t1000\t3000\t0.50\t1\t0\t0\t0\n";
    assert_eq!((by_day.stdout.as_str(), by_day.stderr.as_str()), (expected, ""));
    let by_model = fixture.november(&["--by", "model"]).stdout;
    let first = |line: &str| line.split('\t').next().unwrap().to_owned();
    assert_eq!(by_model.lines().map(first).collect::<Vec<_>>(), ["a/dear", "a/cheap", "b/unknown"]);
    assert!(by_model.ends_with("\tunknown\t1\t0\t0\t0\n"), "{by_model}");
    let by_both = fixture.november(&["--by", "app", "--by", "key,service"]).stdout;
    let start = format!("{}\twebsite\t{}\ttill\tinference\t4\t", fixture.app_id, fixture.key_id);
    assert!(by_both.starts_with(&start) && by_both.lines().count() == 1, "{by_both}");
}

#[test]
fn csv_and_json_match_the_api() {
    let fixture = Fixture::with_november();
    let csv = fixture.november(&["--by", "model", "--model", "b/unknown", "--csv"]).stdout;
    let expected = "model,requests,attempts,errors,prompt_tokens,completion_tokens,total_tokens,cost_usd,\
                    unpriced_attempts,cached_tokens,cache_write_tokens,estimated_attempts\r\n\
                    b/unknown,1,1,0,1000,500,1500,,1,0,0,0\r\n";
    assert_eq!(csv, expected);
    let json = fixture.november(&["--by", "model,day", "--json"]).json();
    assert_eq!((&json["schema"], &json["from"]), (&json!("mk.usage/1"), &json!("2025-11-01")));
    assert_eq!((&json["by"], &json["totals"]["requests"]), (&json!(["model", "day"]), &json!(4)));
    assert_eq!(json["data"][0]["model"], "a/dear");
    assert_eq!(json["budgets"].as_array().unwrap().len(), 2);
}

#[test]
fn usage_is_filtered_by_name_or_id() {
    let fixture = Fixture::with_november();
    for (app, key) in [("website", "till"), (fixture.app_id.as_str(), fixture.key_id.as_str())] {
        let json = fixture.november(&["--app", app, "--key", key, "--service", "inference", "--json"]).json();
        assert_eq!(json["totals"]["attempts"], 4);
        assert_eq!(json["budgets"][0]["id"], fixture.key_id);
    }
    let none = fixture.november(&["--app", "default", "--json"]).json();
    assert_eq!(
        (&none["data"], &none["totals"]["cost_usd"], &none["budgets"]),
        (&json!([]), &json!(0.0), &json!([]))
    );
    for (flag, value, code) in [
        ("--app", "nowhere", 9),
        ("--key", "nowhere", 9),
        ("--by", "hour", 2),
        ("--since", "12h", 2),
        ("--from", "2025-13-01", 2),
        ("--from", "2999-01-01", 2),
        ("--service", "console", 2),
    ] {
        let refused = fixture.call(&["usage", flag, value]).run();
        assert_eq!(refused.code(), code, "{flag} {value}: {refused:?}");
        assert!(refused.stdout.is_empty() && refused.stderr.starts_with("error: "), "{refused:?}");
    }
    let both = fixture.call(&["usage", "--csv", "--json"]).run();
    assert_eq!(both.code(), 2, "{both:?}");
}

#[test]
fn a_key_itself_is_rejected_as_an_argument() {
    let fixture = Fixture::new();
    let made = fixture.run(&["keys", "create", "--service", "verify"]);
    let refused = fixture.call(&["usage", "--key", made.stdout.trim()]).run();
    assert_eq!(refused.code(), 2);
    assert!(!refused.stderr.contains(made.stdout.trim()), "{refused:?}");
}

#[test]
fn a_terminal_gets_fitting_bars_totals_and_budgets() {
    let fixture = Fixture::with_november();
    let today = Clock::system().now();
    fixture
        .store
        .add_attempts(&[AttemptRow { at: today, ..fixture.row("2025-11-01", "a/b", Some(1_700_000_000)) }])
        .unwrap();
    for (columns, by) in
        [(80, "day"), (44, "day"), (80, "model"), (44, "model"), (44, "app,key"), (30, "day,model")]
    {
        let arguments: Vec<&str> = ["usage", "--by", by].iter().chain(&NOVEMBER).copied().collect();
        let shown = pty::run(&fixture.call(&arguments), columns, 60);
        for line in shown.last.lines() {
            assert!(line.width() <= usize::from(columns), "{columns}: {line:?}");
        }
        let text = shown.last.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["2025-11-01 to 2025-11-30 (UTC)", "cost", "+ unknown", "failed call", "key till: $", "of $2.00"]
        {
            assert!(text.contains(words), "{words:?} at {columns} by {by}:\n{}", shown.last);
        }
        assert!(!text.contains(&fixture.key_id), "names are shown instead of ids");
        if by == "day" {
            assert!(
                text.contains("by cost") && text.contains('█') && text.contains("≥$0.5000"),
                "{}",
                shown.last
            );
        }
    }
}

#[test]
fn budget_thresholds_are_shown_in_words_and_symbols_besides_colour() {
    let fixture = Fixture::new();
    let today = Clock::system().now();
    fixture
        .store
        .add_attempts(&[AttemptRow { at: today, ..fixture.row("2025-11-01", "a/b", Some(1_700_000_000)) }])
        .unwrap();
    let shown = pty::run(&fixture.call(&["usage"]), 80, 40);
    assert!(shown.last.contains("! key till: $1.70 of $2.00, 85 % (80 % reached)"), "{}", shown.last);
    assert!(shown.last.contains("  app website: $1.70 of $10.00, 17 %"), "{}", shown.last);
    assert!(shown.raw.contains("\u{1b}[33m!\u{1b}[0m key till"), "{:?}", shown.raw);
    fixture
        .store
        .add_attempts(&[AttemptRow { at: today, ..fixture.row("2025-11-01", "a/b", Some(300_000_000)) }])
        .unwrap();
    let plain = pty::run(&fixture.call(&["usage"]).env("NO_COLOR", "1"), 80, 40);
    assert!(plain.last.contains("✗ key till: $2.00 of $2.00, 100 % (used up)"), "{}", plain.last);
    let ascii = pty::run(&fixture.call(&["usage"]).env("MK_ASCII", "1"), 80, 40);
    assert!(ascii.raw.is_ascii() && ascii.last.contains("####"), "{}", ascii.last);
}

#[test]
fn where_nothing_was_used_a_note_says_so() {
    let fixture = Fixture::new();
    for more in [&[][..], &["--csv"], &["--json"]] {
        let piped = fixture.november(more);
        assert_eq!(piped.stderr, "no usage from 2025-11-01 to 2025-11-30 (UTC)\n", "{piped:?}");
    }
    let nowhere = fixture.november(&["--model", "no/such"]);
    assert_eq!(nowhere.stderr, "no usage at no/such from 2025-11-01 to 2025-11-30 (UTC)\n");
    let statement = fixture.run(&["apps", "statement", "website", "--month", "2027-01"]);
    assert_eq!(
        (statement.stdout.as_str(), statement.stderr.as_str()),
        ("", "no usage by website in 2027-01 (UTC)\n")
    );
    let shown = pty::run(&fixture.call(&["usage", "--since", "1d", "--app", "default"]), 80, 10).last;
    assert!(shown.starts_with("no usage from "), "{shown}");
}

#[test]
fn a_statement_covers_one_month_and_survives_its_app() {
    let fixture = Fixture::with_november();
    let month = ["--month", "2025-11"];
    let statement = |app: &str, more: &[&str]| {
        let all: Vec<&str> = ["apps", "statement", app].iter().chain(&month).chain(more).copied().collect();
        fixture.run(&all)
    };
    let lines = statement("website", &[]).stdout;
    let of_key = format!("inference\t{}\ttill\t", fixture.key_id);
    let expected = format!(
        "{of_key}a/cheap\t1\t1\t1\t1000\t500\t1500\t0.000000001\t0\t0\t0\t0\n\
         {of_key}a/dear\t2\t2\t0\t2000\t1000\t3000\t1.50\t0\t0\t0\t0\n\
         {of_key}b/unknown\t1\t1\t0\t1000\t500\t1500\tunknown\t1\t0\t0\t0\n"
    );
    assert_eq!(lines, expected);
    fixture.run(&["apps", "delete", "website", "--yes"]);
    let by_name = fixture.call(&["apps", "statement", "website"]).run();
    assert!(by_name.code() == 9 && by_name.stderr.contains("use its id"), "{by_name:?}");
    let json = statement(&fixture.app_id, &["--json"]).json();
    assert_eq!(
        (&json["schema"], &json["app"], &json["month"]),
        (&json!("mk.statement/1"), &json!("website"), &json!("2025-11"))
    );
    assert_eq!((&json["totals"]["cost_usd"], &json["budget_usd"]), (&json!(1.500_000_001), &json!(10.0)));
    assert_eq!(json["lines"][2]["cost_usd"], Value::Null);
    let csv = statement(&fixture.app_id, &["--csv"]).stdout;
    assert_eq!(csv.split("\r\n").count(), 5, "{csv}");
    let wrong = fixture.call(&["apps", "statement", &fixture.app_id, "--month", "November"]).run();
    assert!(wrong.code() == 2 && wrong.stderr.contains("--month"), "{wrong:?}");
    for columns in [44, 80] {
        let shown = pty::run(
            &fixture.call(&["apps", "statement", &fixture.app_id, "--month", "2025-11"]),
            columns,
            60,
        )
        .last;
        assert!(shown.lines().all(|line| line.width() <= usize::from(columns)), "{shown}");
        for words in ["website in 2025-11 (UTC)", "a/dear", "unknown", "budget: $10.00 a month"] {
            assert!(shown.contains(words), "{words}:\n{shown}");
        }
    }
}

#[test]
fn model_names_cannot_harm_a_terminal_or_spreadsheet() {
    let fixture = Fixture::new();
    fixture.store.add_attempts(&[fixture.row("2025-11-05", "=cmd|' /C calc'!A0\u{1b}[2J", Some(1))]).unwrap();
    for format in [&["--by", "model"][..], &["--by", "model", "--csv"], &["--by", "model", "--json"]] {
        let ran = fixture.november(format);
        assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    }
    assert!(fixture.november(&["--by", "model", "--csv"]).stdout.contains("\r\n'=cmd|"));
}

/// Two keys called `till`: the second one replaced the first. Also the last four characters of both.
fn with_namesakes() -> (Fixture, [String; 2]) {
    let fixture = Fixture::new();
    let now = Clock::system().now();
    let first = fixture.store.key(&fixture.key_id).unwrap();
    let (_, second) = keys::rotate(&fixture.store, &fixture.key_id, std::time::Duration::ZERO, now).unwrap();
    let of_second = AttemptRow { key_id: second.id, ..fixture.row("2025-11-02", "a/dear", Some(1)) };
    fixture.store.add_attempts(&[fixture.row("2025-11-01", "a/dear", Some(2)), of_second]).unwrap();
    (fixture, [first.last4, second.last4])
}

#[test]
fn duplicate_key_names_are_distinguished_on_a_terminal_only() {
    let (fixture, endings) = with_namesakes();
    let on_terminal = |arguments: &[&str]| pty::run(&fixture.call(arguments), 80, 60).last;
    for text in [
        on_terminal(&[&["usage", "--by", "key"], &NOVEMBER[..]].concat()),
        on_terminal(&["apps", "statement", "website", "--month", "2025-11"]),
    ] {
        for last4 in &endings {
            assert!(text.contains(&format!("till …{last4}")), "{text}");
        }
    }
    for format in [&["--by", "key"][..], &["--by", "key", "--csv"], &["--by", "key", "--json"]] {
        let ran = fixture.november(format);
        assert!(ran.stdout.contains("till") && !ran.stdout.contains("till …"), "{ran:?}");
    }
    let of_one = on_terminal(&[&["usage", "--by", "key", "--to", "2025-11-01"], &NOVEMBER[..2]].concat());
    assert!(
        of_one.contains(" till ") && !of_one.contains("till …"),
        "a single key needs no distinction: {of_one}"
    );
}

#[test]
fn apps_and_keys_are_distinguished_from_deleted_namesakes() {
    let fixture = Fixture::new();
    let now = Clock::system().now();
    fixture.store.delete_app(&fixture.app_id, now).unwrap();
    let second = apps::create(&fixture.store, "website", None, now).unwrap();
    let mut new = NewKey::new(Service::Inference, "website");
    new.name = Some("till".to_owned());
    let (_, key) = keys::create(&fixture.store, &new, now).unwrap();
    let of_second = AttemptRow {
        app_id: second.id.clone().into(),
        key_id: key.id.clone(),
        ..fixture.row("2025-11-02", "a/dear", Some(1))
    };
    fixture.store.add_attempts(&[fixture.row("2025-11-01", "a/dear", Some(2)), of_second]).unwrap();
    let by = |what: &'static str| {
        pty::run(&fixture.call(&[&["usage", "--by", what], &NOVEMBER[..]].concat()), 80, 60).last
    };
    let ending = |id: &str| id[id.len() - 6..].to_owned();
    let shown = by("app");
    for id in [&fixture.app_id, &second.id] {
        assert!(shown.contains(&format!("website app_…{}", ending(id))), "{shown}");
    }
    let shown = by("key");
    // The last characters of a deleted app's key are not available; its id is shown instead.
    assert!(shown.contains(&format!("till …{}", key.last4)), "{shown}");
    assert!(shown.contains(&format!("till key_…{}", ending(&fixture.key_id))), "{shown}");
    let csv = fixture.november(&["--by", "app", "--csv"]).stdout;
    assert!(csv.contains(&format!("{},website,", second.id)), "{csv}");
}

#[test]
fn budgets_of_keys_with_the_same_name_are_distinguished() {
    let fixture = Fixture::new();
    let now = Clock::system().now();
    let mut new = NewKey::new(Service::Inference, "default");
    (new.name, new.budget) = (Some("till".to_owned()), Some(NanoUsd(3_000_000_000)));
    let (_, other) = keys::create(&fixture.store, &new, now).unwrap();
    let today = AttemptRow { at: now, ..fixture.row("2025-11-01", "a/b", Some(1_000_000_000)) };
    fixture.store.add_attempts(&[today]).unwrap();
    let shown = pty::run(&fixture.call(&["usage"]), 80, 40).last;
    assert!(shown.contains(&format!("key till …{}: $0.0000 of $3.00", other.last4)), "{shown}");
}
