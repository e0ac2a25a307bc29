//! `mk keys update` changes only the named fields.

use serde_json::json;

use crate::support::mk::Mk;

fn user_with_key() -> Mk {
    let user = Mk::new();
    let arguments = [
        "keys",
        "create",
        "--service",
        "inference",
        "--name",
        "ci",
        "--expires",
        "2099-01-01",
        "--per-minute",
        "7",
        "--per-day",
        "70",
        "--address",
        "10.0.0.0/8",
        "--model",
        "a/b",
        "--budget-usd",
        "5",
    ];
    let made = user.clone().args(arguments).run();
    assert_eq!(made.code(), 0, "{made:?}");
    user
}

#[test]
fn each_flag_changes_only_its_field() {
    let user = user_with_key();
    let mut record = user.clone().args(["keys", "show", "ci", "--json"]).run().json();
    let id = record["id"].as_str().unwrap().to_owned();
    for (flags, field, value) in [
        (&["--name", "nightly"][..], "/name", json!("nightly")),
        (&["--no-name"], "/name", json!(null)),
        (&["--expires", "2098-01-01"], "/expires_at", json!("2098-01-01T00:00:00.000Z")),
        (&["--no-expiry"], "/expires_at", json!(null)),
        (&["--per-minute", "0"], "/limits/per_minute", json!(0)),
        (&["--default-per-minute"], "/limits/per_minute", json!(null)),
        (&["--per-day", "9"], "/limits/per_day", json!(9)),
        (&["--default-per-day"], "/limits/per_day", json!(null)),
        (&["--address", "192.0.2.7", "--address", "::1"], "/addresses", json!(["192.0.2.7/32", "::1/128"])),
        (&["--all-addresses"], "/addresses", json!([])),
        (&["--model", "a/*", "--model", "c/d"], "/models", json!(["a/*", "c/d"])),
        (&["--all-models"], "/models", json!([])),
        (&["--cache", "90m"], "/cache", json!("1h30m")),
        (&["--no-cache"], "/cache", json!(null)),
        (&["--verify", "block"], "/verify", json!("block")),
        (&["--no-verify"], "/verify", json!(null)),
        (
            &["--end-users", "per_day=5,budget_usd_per_month=0.50"],
            "/end_users",
            json!({"per_minute": null, "per_day": 5, "budget_usd_per_day": null, "budget_usd_per_month": 0.5}),
        ),
        (&["--no-end-users"], "/end_users", json!(null)),
    ] {
        let ran = user.clone().args(["keys", "update", &id, "--json"]).args(flags.iter().copied()).run();
        *record.pointer_mut(field).unwrap() = value;
        assert_eq!(ran.json(), record, "{flags:?}: {ran:?}");
    }
    let ran = user.clone().args(["keys", "update", &id, "--budget-usd", "7.5", "--json"]).run().json();
    assert_eq!((&ran["budget_usd"], &ran["budget_used_percent"]), (&json!(7.5), &json!(0.0)));
    let ran = user.args(["keys", "update", &id, "--no-budget", "--json"]).run().json();
    assert_eq!((&ran["budget_usd"], &ran["budget_used_percent"]), (&json!(null), &json!(null)));
}

#[test]
fn empty_and_contradictory_updates_are_rejected_by_flag_name() {
    let user = user_with_key();
    let update =
        |flags: &[&str]| user.clone().args(["keys", "update", "ci"]).args(flags.iter().copied()).run();
    let nothing = update(&[]);
    assert!(nothing.code() == 2 && nothing.stderr.contains("--default-per-minute"), "{nothing:?}");
    for (flag, value, opposite) in [
        ("--name", "x", "--no-name"),
        ("--expires", "1d", "--no-expiry"),
        ("--per-minute", "1", "--default-per-minute"),
        ("--per-day", "1", "--default-per-day"),
        ("--address", "::1", "--all-addresses"),
        ("--model", "a/b", "--all-models"),
        ("--budget-usd", "1", "--no-budget"),
        ("--end-users", "per_day=1", "--no-end-users"),
    ] {
        let ran = update(&[flag, value, opposite]);
        assert!(ran.code() == 2 && ran.stderr.contains(opposite), "{ran:?}");
    }
    for wrong in ["5", "per_hour=1", "per_day=1,per_day=2"] {
        let ran = update(&["--end-users", wrong]);
        assert!(ran.code() == 2 && ran.stderr.contains("limits such as per_minute=20"), "{ran:?}");
    }
    let past = update(&["--expires", "2020-01-01"]);
    assert!(past.code() == 2 && past.stderr.starts_with("error: --expires: "), "{past:?}");
}

#[test]
fn duplicate_key_names_cause_a_warning_and_are_distinguished() {
    let user = Mk::new();
    let create =
        |name: &str| user.clone().args(["keys", "create", "--service", "verify", "--name", name]).run();
    assert!(!create("ci").stderr.contains("warning: "), "no other key has this name");
    assert!(!create("other").stderr.contains("warning: "), "a different name");
    let second = create("ci");
    assert_eq!(second.code(), 0, "{second:?}");
    assert!(second.stderr.contains("(ci) has the same name"), "{second:?}");
    let rename = |name: &str| user.clone().args(["keys", "update", "other", "--name", name]).run();
    assert!(!rename("other").stderr.contains("warning: "), "its own name is no duplicate");
    let which = user.clone().args(["keys", "show", "ci"]).run();
    assert_eq!(which.code(), 9, "{which:?}");
    let hints: Vec<&str> = which.stderr.lines().filter(|line| line.starts_with("hint: key_")).collect();
    assert!(hints.len() == 2 && hints.iter().all(|hint| hint.contains(" ci, made 2")), "{which:?}");
    let third = rename("ci");
    assert!(third.code() == 0 && third.stderr.contains("(ci) has the same name"), "{third:?}");
}
