//! What `mk verify` tells beside its results: a gate that a project weakens, what was not checked, an audit that failed,
//! and how many statements there were.

use std::fs;

use mk::api::Service;
use serde_json::json;

use crate::support::mk::{CommandOutput, Mk};
use crate::support::pty;
use crate::support::server::{Setup, sandbox};

const TRUE: &str = "The capital of France is Paris.";
const FALSE: &str = "The capital of Spain is Porto.";
const HALF_CHECKED: &str = "The capital of France is Paris. Two plus two is four. [sandbox:omit=always]";
const NOT_AUDITED: &str = "The capital of France is Paris. [sandbox:fail=auditor]";

fn verify(arguments: &[&str]) -> CommandOutput {
    Mk::new().args(["verify", "--sandbox"]).args(arguments.iter().copied()).run()
}

#[test]
fn a_project_that_weakens_the_gate_is_named_even_with_q() {
    let run = |file: &str, list: &str, options: &[&str]| {
        let mk = Mk::new().args(["verify", "--sandbox", FALSE]).args(options.iter().copied());
        let path = mk.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("[verify]\nfail_on = [{list}]\n")).unwrap();
        mk.run()
    };
    for options in [&[][..], &["-q"], &["--json"]] {
        let ran = run(".mk.toml", "\"never\"", options);
        assert_eq!(ran.code(), 0, "{ran:?}");
        let note = ran.stderr.lines().find(|line| line.starts_with("note: fail_on = never, from "));
        assert!(note.is_some_and(|note| note.ends_with(".mk.toml:2")), "{ran:?}");
    }
    let ran = run(".mk.toml", "\"false\", \"no-consensus\"", &[]);
    assert!(ran.stderr.contains("note: fail_on = false,no-consensus, from "), "{ran:?}");
    for (file, list, options) in [
        (".mk.toml", "\"false\", \"no-consensus\", \"skipped\"", &[][..]),
        (".mk.toml", "\"never\"", &["--fail-on", "false"]),
        (".config/mk/config.toml", "\"never\"", &[]),
    ] {
        let ran = run(file, list, options);
        assert!(!ran.stderr.contains("note: "), "{ran:?}");
    }
}

#[test]
fn what_was_not_checked_is_a_word_of_its_own_and_never_silent() {
    let gate = verify(&[HALF_CHECKED]);
    assert_eq!(gate.code(), 13, "{gate:?}");
    assert!(gate.stdout.contains("\n-\tUNCHECKED\tnot_extracted\tTwo plus two is four."), "{gate:?}");
    assert!(!gate.stderr.contains("warning: "), "the gate has named it: {gate:?}");
    for options in [&[][..], &["--json"], &["--view", "list"]] {
        let ran = verify(&[options, &["--fail-on", "false", HALF_CHECKED]].concat());
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert!(ran.stderr.contains("warning: not all of the text was checked (1 unchecked)"), "{ran:?}");
    }
    assert_eq!(verify(&["-q", "--fail-on", "false", HALF_CHECKED]).stderr, "");
    let skipped = verify(&["Paris is beautiful. The capital of France is Paris."]);
    assert!(
        skipped.stdout.contains("-\tSKIPPED\topinion\t") && !skipped.stderr.contains("warning"),
        "{skipped:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_that_failed_is_a_warning_and_one_that_is_turned_off_a_remark() {
    let ran = verify(&[NOT_AUDITED]);
    let told = "warning: the claims were not audited: the auditor (sandbox/auditor) failed";
    assert!(ran.code() == 0 && ran.stderr.contains(told), "{ran:?}");
    let json = verify(&["--json", NOT_AUDITED]).json();
    assert_eq!((&json["audited"], &json["auditor"]), (&json!(false), &json!("sandbox/auditor")));
    let lines = verify(&["--jsonl", NOT_AUDITED]).stdout;
    let summary: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["type"], &summary["audited"]), (&json!("summary"), &json!(false)));
    assert!(summary.get("cost_usd").is_some(), "{summary}");
    let audited = verify(&["--view", "list", TRUE]);
    assert!(!audited.stdout.contains("audited") && !audited.stderr.contains("audited"), "{audited:?}");

    let server = Setup::new(sandbox()).config(|config| config.verify.general.auditor = None).start().await;
    let mk = Mk::new().args(["verify", "--view", "list", TRUE]);
    let ran =
        mk.env("MK_SERVER", &server.base).env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await;
    assert!(ran.code() == 0 && ran.stdout.contains(" · not audited · "), "{ran:?}");
    assert!(!ran.stderr.contains("audited"), "{ran:?}");
}

#[test]
fn all_formats_count_statements_alike() {
    let run = |options: &[&str]| {
        let mk =
            Mk::new().args(["verify", "--sandbox", "--lines", "facts.txt"]).args(options.iter().copied());
        fs::write(mk.home().join("facts.txt"), format!("{TRUE}\nWhat a lovely day!\na\0b\n").as_bytes())
            .unwrap();
        mk.run()
    };
    let text = run(&["--view", "list"]);
    assert!(text.stdout.contains("3 statements: 1 verified, 1 with nothing to verify, 1 failed"), "{text:?}");
    let lines = run(&["--jsonl"]).stdout;
    let total: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&total["verified"], &total["failed"]), (&json!(1), &json!(1)), "{total}");
    for totals in [&total["totals"], &run(&["--json"]).json()["totals"]] {
        let counts = ["verified", "nothing_to_verify", "failed"].map(|count| totals[count].clone());
        assert_eq!(counts, [json!(1), json!(1), json!(1)], "{totals}");
    }
}

#[test]
fn files_are_headed_by_their_names_and_failures_told_once_where_they_fit() {
    let mk = Mk::new().args(["verify", "--sandbox", "a.md", "b.md"]);
    fs::write(mk.home().join("a.md"), format!("---\ntitle: Notes\n---\n\n{TRUE}\n")).unwrap();
    fs::write(mk.home().join("b.md"), format!("{FALSE}\n")).unwrap();
    let shown = pty::run(&mk, 80, 50).last;
    assert!(shown.lines().any(|line| line.trim_end() == "a.md") && !shown.contains("a.md: "), "{shown}");
    assert_eq!(shown.matches(FALSE).count(), 1, "{shown}");
    let short = pty::run(&mk, 80, 8).raw;
    assert_eq!(short.matches(FALSE).count(), 2, "it may have scrolled away: {short}");
}

#[test]
fn what_failed_in_one_long_text_is_told_again_where_it_may_have_scrolled_away() {
    let text = format!("{FALSE} {TRUE} Two plus two is four.");
    for view in ["list", "table"] {
        let mk = Mk::new().args(["verify", "--sandbox", "--view", view, &text]);
        let tall = pty::run(&mk, 80, 50).last;
        assert_eq!(tall.matches(FALSE).count(), 1, "{tall}");
        let short = pty::run(&mk, 80, 6).last;
        let last: Vec<&str> = short.lines().rev().take(4).map(str::trim_end).collect();
        assert!(last[0].starts_with("3 claims: ✓ 2 true, ✗ 1 false"), "{short}");
        assert_eq!(last[1], "", "{short}");
        assert_eq!(
            last[2..],
            ["              models say Madrid (3/3)", &format!("FALSE         {FALSE}")],
            "{short}"
        );
    }
}
