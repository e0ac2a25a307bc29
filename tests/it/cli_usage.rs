//! `mk usage` and `mk apps statement` on the local database: tables with bars, lines, CSV, JSON.

use mk::api::Service;
use mk::clock::{Clock, Time};
use mk::keys::{self, NewKey, apps};
use mk::money::NanoUsd;
use mk::storage::{AttemptRow, Store};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::support::mk::{Mk, Ran};
use crate::support::pty;

const NOVEMBER: [&str; 4] = ["--from", "2025-11-01", "--to", "2025-11-30"];

/// Runs commands on one database, with an app `website` that has a key `till` with a budget.
struct Desk {
    mk: Mk,
    store: Store,
    app_id: String,
    key_id: String,
}

impl Desk {
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

    /// An attempt of the website's key, of 1,000 and 500 tokens.
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
            cost: cost.map(NanoUsd),
            latency_ms: 1,
            is_first: true,
            is_first_of_model: true,
            call: None,
        }
    }

    /// Two days of November, with calls at a known and at an unknown price.
    fn with_november() -> Self {
        let desk = Self::new();
        let rows = [
            desk.row("2025-10-31T23:59:59.999Z", "a/dear", Some(7_000_000_000)),
            desk.row("2025-11-01", "a/dear", Some(1_000_000_000)),
            AttemptRow { outcome: "provider_error".into(), ..desk.row("2025-11-01", "a/cheap", Some(1)) },
            desk.row("2025-11-30T23:59:59.999Z", "a/dear", Some(500_000_000)),
            desk.row("2025-11-30", "b/unknown", None),
            desk.row("2025-12-01", "a/dear", Some(9_000_000_000)),
        ];
        desk.store.add_attempts(&rows).unwrap();
        desk
    }

    fn call(&self, arguments: &[&str]) -> Mk {
        self.mk.clone().args(arguments.iter().copied())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let ran = self.call(arguments).run();
        assert_eq!(ran.code(), 0, "{ran:?}");
        ran
    }

    /// `mk usage` of November.
    fn november(&self, arguments: &[&str]) -> Ran {
        let all: Vec<&str> = ["usage"].iter().chain(&NOVEMBER).chain(arguments).copied().collect();
        self.run(&all)
    }
}

#[test]
fn in_a_pipe_there_is_a_line_for_each_sum_and_nothing_else() {
    let desk = Desk::with_november();
    let by_day = desk.november(&[]);
    let expected = "2025-11-01\t2\t2\t1\t2000\t1000\t3000\t1.000000001\t0\n\
                    2025-11-30\t2\t2\t0\t2000\t1000\t3000\t0.50\t1\n";
    assert_eq!((by_day.stdout.as_str(), by_day.stderr.as_str()), (expected, ""));
    let by_model = desk.november(&["--by", "model"]).stdout;
    let first = |line: &str| line.split('\t').next().unwrap().to_owned();
    assert_eq!(by_model.lines().map(first).collect::<Vec<_>>(), ["a/dear", "a/cheap", "b/unknown"]);
    assert!(by_model.ends_with("\tunknown\t1\n"), "{by_model}");
    let by_both = desk.november(&["--by", "app", "--by", "key,service"]).stdout;
    let start = format!("{}\twebsite\t{}\ttill\tinference\t4\t", desk.app_id, desk.key_id);
    assert!(by_both.starts_with(&start) && by_both.lines().count() == 1, "{by_both}");
}

#[test]
fn csv_and_json_are_what_the_api_answers() {
    let desk = Desk::with_november();
    let csv = desk.november(&["--by", "model", "--model", "b/unknown", "--csv"]).stdout;
    let expected = "model,requests,attempts,errors,prompt_tokens,completion_tokens,total_tokens,cost_usd,\
                    unpriced_attempts\r\nb/unknown,1,1,0,1000,500,1500,,1\r\n";
    assert_eq!(csv, expected);
    let json = desk.november(&["--by", "model,day", "--json"]).json();
    assert_eq!((&json["schema"], &json["from"]), (&json!("mk.usage/1"), &json!("2025-11-01")));
    assert_eq!((&json["by"], &json["totals"]["requests"]), (&json!(["model", "day"]), &json!(4)));
    assert_eq!(json["data"][0]["model"], "a/dear");
    assert_eq!(json["budgets"].as_array().unwrap().len(), 2);
}

#[test]
fn only_what_was_asked_for_is_summed_by_name_or_id() {
    let desk = Desk::with_november();
    for (app, key) in [("website", "till"), (desk.app_id.as_str(), desk.key_id.as_str())] {
        let json = desk.november(&["--app", app, "--key", key, "--service", "inference", "--json"]).json();
        assert_eq!(json["totals"]["attempts"], 4);
        assert_eq!(json["budgets"][0]["id"], desk.key_id);
    }
    let none = desk.november(&["--app", "default", "--json"]).json();
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
        let refused = desk.call(&["usage", flag, value]).run();
        assert_eq!(refused.code(), code, "{flag} {value}: {refused:?}");
        assert!(refused.stdout.is_empty() && refused.stderr.starts_with("error: "), "{refused:?}");
    }
    let both = desk.call(&["usage", "--csv", "--json"]).run();
    assert_eq!(both.code(), 2, "{both:?}");
}

#[test]
fn a_key_itself_is_never_an_argument() {
    let desk = Desk::new();
    let made = desk.run(&["keys", "create", "--service", "verify"]);
    let refused = desk.call(&["usage", "--key", made.stdout.trim()]).run();
    assert_eq!(refused.code(), 2);
    assert!(!refused.stderr.contains(made.stdout.trim()), "{refused:?}");
}

#[test]
fn a_terminal_gets_bars_totals_and_budgets_that_fit() {
    let desk = Desk::with_november();
    let today = Clock::system().now();
    desk.store
        .add_attempts(&[AttemptRow { at: today, ..desk.row("2025-11-01", "a/b", Some(1_700_000_000)) }])
        .unwrap();
    for (columns, by) in
        [(80, "day"), (44, "day"), (80, "model"), (44, "model"), (44, "app,key"), (30, "day,model")]
    {
        let arguments: Vec<&str> = ["usage", "--by", by].iter().chain(&NOVEMBER).copied().collect();
        let shown = pty::run(&desk.call(&arguments), columns, 60);
        for line in shown.last.lines() {
            assert!(line.width() <= usize::from(columns), "{columns}: {line:?}");
        }
        let text = shown.last.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["2025-11-01 to 2025-11-30 (UTC)", "cost", "+ unknown", "failed call", "key till: $", "of $2.00"]
        {
            assert!(text.contains(words), "{words:?} at {columns} by {by}:\n{}", shown.last);
        }
        assert!(!text.contains(&desk.key_id), "names, not ids");
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
fn thresholds_are_told_in_words_and_symbols_and_colour_is_only_on_top() {
    let desk = Desk::new();
    let today = Clock::system().now();
    desk.store
        .add_attempts(&[AttemptRow { at: today, ..desk.row("2025-11-01", "a/b", Some(1_700_000_000)) }])
        .unwrap();
    let shown = pty::run(&desk.call(&["usage"]), 80, 40);
    assert!(shown.last.contains("! key till: $1.70 of $2.00, 85 % (80 % reached)"), "{}", shown.last);
    assert!(shown.last.contains("  app website: $1.70 of $10.00, 17 %"), "{}", shown.last);
    assert!(shown.raw.contains("\u{1b}[33m!\u{1b}[0m key till"), "{:?}", shown.raw);
    desk.store
        .add_attempts(&[AttemptRow { at: today, ..desk.row("2025-11-01", "a/b", Some(300_000_000)) }])
        .unwrap();
    let plain = pty::run(&desk.call(&["usage"]).env("NO_COLOR", "1"), 80, 40);
    assert!(plain.last.contains("✗ key till: $2.00 of $2.00, 100 % (used up)"), "{}", plain.last);
    let ascii = pty::run(&desk.call(&["usage"]).env("MK_ASCII", "1"), 80, 40);
    assert!(ascii.raw.is_ascii() && ascii.last.contains("####"), "{}", ascii.last);
}

#[test]
fn nothing_used_is_said_and_a_pipe_stays_empty() {
    let desk = Desk::new();
    let piped = desk.november(&[]);
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("", ""));
    let shown = pty::run(&desk.call(&["usage", "--since", "1d", "--app", "default"]), 80, 10).last;
    assert!(shown.starts_with("nothing was used from "), "{shown}");
}

#[test]
fn a_statement_is_of_one_month_and_outlives_its_app() {
    let desk = Desk::with_november();
    let month = ["--month", "2025-11"];
    let statement = |app: &str, more: &[&str]| {
        let all: Vec<&str> = ["apps", "statement", app].iter().chain(&month).chain(more).copied().collect();
        desk.run(&all)
    };
    let lines = statement("website", &[]).stdout;
    let of_key = format!("inference\t{}\ttill\t", desk.key_id);
    let expected = format!(
        "{of_key}a/cheap\t1\t1\t1\t1000\t500\t1500\t0.000000001\t0\n\
         {of_key}a/dear\t2\t2\t0\t2000\t1000\t3000\t1.50\t0\n\
         {of_key}b/unknown\t1\t1\t0\t1000\t500\t1500\tunknown\t1\n"
    );
    assert_eq!(lines, expected);
    desk.run(&["apps", "delete", "website", "--yes"]);
    let by_name = desk.call(&["apps", "statement", "website"]).run();
    assert!(by_name.code() == 9 && by_name.stderr.contains("by its id"), "{by_name:?}");
    let json = statement(&desk.app_id, &["--json"]).json();
    assert_eq!(
        (&json["schema"], &json["app"], &json["month"]),
        (&json!("mk.statement/1"), &json!("website"), &json!("2025-11"))
    );
    assert_eq!((&json["totals"]["cost_usd"], &json["budget_usd"]), (&json!(1.500_000_001), &json!(10.0)));
    assert_eq!(json["lines"][2]["cost_usd"], Value::Null);
    let csv = statement(&desk.app_id, &["--csv"]).stdout;
    assert_eq!(csv.split("\r\n").count(), 5, "{csv}");
    let wrong = desk.call(&["apps", "statement", &desk.app_id, "--month", "November"]).run();
    assert!(wrong.code() == 2 && wrong.stderr.contains("--month"), "{wrong:?}");
    for columns in [44, 80] {
        let shown =
            pty::run(&desk.call(&["apps", "statement", &desk.app_id, "--month", "2025-11"]), columns, 60)
                .last;
        assert!(shown.lines().all(|line| line.width() <= usize::from(columns)), "{shown}");
        for words in ["website in 2025-11 (UTC)", "a/dear", "unknown", "budget: $10.00 a month"] {
            assert!(shown.contains(words), "{words}:\n{shown}");
        }
    }
}

#[test]
fn names_do_no_harm_to_a_terminal_or_a_spreadsheet() {
    let desk = Desk::new();
    desk.store.add_attempts(&[desk.row("2025-11-05", "=cmd|' /C calc'!A0\u{1b}[2J", Some(1))]).unwrap();
    for format in [&["--by", "model"][..], &["--by", "model", "--csv"], &["--by", "model", "--json"]] {
        let ran = desk.november(format);
        assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    }
    assert!(desk.november(&["--by", "model", "--csv"]).stdout.contains("\r\n'=cmd|"));
}

/// Two keys called `till` and two apps called `website`: the second ones came after the first had gone.
fn with_namesakes() -> (Desk, [String; 2]) {
    let desk = Desk::new();
    let now = Clock::system().now();
    let first = desk.store.key(&desk.key_id).unwrap();
    let (_, second) = keys::rotate(&desk.store, &desk.key_id, std::time::Duration::ZERO, now).unwrap();
    let of_second = AttemptRow { key_id: second.id, ..desk.row("2025-11-02", "a/dear", Some(1)) };
    desk.store.add_attempts(&[desk.row("2025-11-01", "a/dear", Some(2)), of_second]).unwrap();
    (desk, [first.last4, second.last4])
}

#[test]
fn keys_of_one_name_are_told_apart_for_people_and_not_changed_for_programs() {
    let (desk, endings) = with_namesakes();
    let on_terminal = |arguments: &[&str]| pty::run(&desk.call(arguments), 80, 60).last;
    for text in [
        on_terminal(&[&["usage", "--by", "key"], &NOVEMBER[..]].concat()),
        on_terminal(&["apps", "statement", "website", "--month", "2025-11"]),
    ] {
        for last4 in &endings {
            assert!(text.contains(&format!("till …{last4}")), "{text}");
        }
    }
    for format in [&["--by", "key"][..], &["--by", "key", "--csv"], &["--by", "key", "--json"]] {
        let ran = desk.november(format);
        assert!(ran.stdout.contains("till") && !ran.stdout.contains("till …"), "{ran:?}");
    }
    let of_one = on_terminal(&[&["usage", "--by", "key", "--to", "2025-11-01"], &NOVEMBER[..2]].concat());
    assert!(of_one.contains(" till ") && !of_one.contains("till …"), "alone it needs no more: {of_one}");
}

#[test]
fn an_app_is_told_apart_from_a_deleted_one_of_its_name_and_so_are_their_keys() {
    let desk = Desk::new();
    let now = Clock::system().now();
    desk.store.delete_app(&desk.app_id, now).unwrap();
    let second = apps::create(&desk.store, "website", None, now).unwrap();
    let new = NewKey { name: Some("till".to_owned()), ..NewKey::new(Service::Inference, "website") };
    let (_, key) = keys::create(&desk.store, &new, now).unwrap();
    let of_second = AttemptRow {
        app_id: second.id.clone().into(),
        key_id: key.id.clone(),
        ..desk.row("2025-11-02", "a/dear", Some(1))
    };
    desk.store.add_attempts(&[desk.row("2025-11-01", "a/dear", Some(2)), of_second]).unwrap();
    let by = |what: &'static str| {
        pty::run(&desk.call(&[&["usage", "--by", what], &NOVEMBER[..]].concat()), 80, 60).last
    };
    let ending = |id: &str| id[id.len() - 6..].to_owned();
    let shown = by("app");
    for id in [&desk.app_id, &second.id] {
        assert!(shown.contains(&format!("website app_…{}", ending(id))), "{shown}");
    }
    let shown = by("key");
    // What a key of a deleted app ends with is not asked for any more.
    assert!(shown.contains(&format!("till …{}", key.last4)), "{shown}");
    assert!(shown.contains(&format!("till key_…{}", ending(&desk.key_id))), "{shown}");
    let csv = desk.november(&["--by", "app", "--csv"]).stdout;
    assert!(csv.contains(&format!("{},website,", second.id)), "{csv}");
}

#[test]
fn budgets_of_keys_of_one_name_are_told_apart() {
    let desk = Desk::new();
    let now = Clock::system().now();
    let new = NewKey {
        name: Some("till".to_owned()),
        budget: Some(NanoUsd(3_000_000_000)),
        ..NewKey::new(Service::Inference, "default")
    };
    let (_, other) = keys::create(&desk.store, &new, now).unwrap();
    let today = AttemptRow { at: now, ..desk.row("2025-11-01", "a/b", Some(1_000_000_000)) };
    desk.store.add_attempts(&[today]).unwrap();
    let shown = pty::run(&desk.call(&["usage"]), 80, 40).last;
    assert!(shown.contains(&format!("key till …{}: $0.0000 of $3.00", other.last4)), "{shown}");
}
