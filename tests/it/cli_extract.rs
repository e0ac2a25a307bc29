//! `mk extract`: what a verification would ask, for people, pipes and programs.

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk, VERIFY_KEY};
use crate::support::panel::{config, with_panel};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::server::Setup;

const SYDNEY: &str = "The capital of Australia is Sydney.";

fn sandbox(arguments: &[&str]) -> CommandOutput {
    Mk::new().args([&["extract", "--sandbox"], arguments].concat()).run()
}

#[test]
fn a_pipe_gets_a_line_for_each_claim_and_part_and_true_is_not_asked() {
    let ran = sandbox(&[
        "The capital of Australia is Sydney. Paris is beautiful. Water boils at 100 degrees Celsius.",
    ]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert_eq!(lines[0], format!("1\tCLAIM\t0-35\t{SYDNEY}\tWhat is the capital of Australia?"));
    assert!(lines[1].starts_with("2\tCLAIM\t56-91\tWater boils"), "{ran:?}");
    assert_eq!(lines[2], "-\tSKIPPED\topinion\tParis is beautiful.");
    let summary = "SANDBOX: answers are simulated, not real\n2 claims · all 3 sentences accounted for · ";
    assert!(ran.stderr.starts_with(summary), "{ran:?}");
}

#[test]
fn programs_get_one_document_also_on_failure() {
    let document = sandbox(&["--json", SYDNEY]).json();
    assert_eq!((&document["schema"], &document["exit"]), (&json!("mk.extract/1"), &json!(0)));
    assert_eq!(document["claims"][0]["options"]["A"], "Sydney");
    assert_eq!((&document["audited"], &document["complete"]), (&json!(true), &json!(true)));
    assert_eq!(document["coverage"]["checked"], 1);
    assert_eq!(document["auditor"], "sandbox/auditor");
    assert!(document["prompts"].as_str().is_some_and(|hash| !hash.is_empty()), "{document}");
    assert_eq!(document["tokenUsage"]["verificationTokens"], 0);
    for arguments in [&["--json", "It rains. [sandbox:fail=extractor]"][..], &["--json", "-f", "nowhere"]] {
        let failed = sandbox(arguments);
        assert_eq!(failed.json()["schema"], "mk.error/1", "{failed:?}");
        assert_eq!(failed.json()["exit"], failed.code(), "{failed:?}");
    }
}

#[test]
fn json_lines_end_with_a_summary_for_each_statement() {
    let mk = Mk::new().args(["extract", "--sandbox", "--jsonl", "--lines", "facts.txt"]);
    std::fs::write(mk.home().join("facts.txt"), format!("{SYDNEY}\n\nHello!\n")).unwrap();
    let ran = mk.run();
    assert_eq!(ran.code(), 12, "{ran:?}");
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<(&str, Option<u64>)> =
        lines.iter().map(|line| (line["type"].as_str().unwrap(), line["line"].as_u64())).collect();
    assert_eq!(kinds, [("claim", Some(1)), ("summary", Some(1)), ("summary", Some(3)), ("total", None)]);
    assert_eq!(lines[0]["question"], "What is the capital of Australia?");
    assert_eq!(
        (&lines[1]["claims"], &lines[1]["exit"], &lines[2]["exit"]),
        (&json!(1), &json!(0), &json!(12))
    );
    assert_eq!((&lines[3]["extracted"], &lines[3]["totals"]["claims"]), (&json!(2), &json!(1)));
}

#[test]
fn a_part_that_nothing_accounts_for_is_exit_13_and_named_even_with_q() {
    for options in [&[][..], &["-q"], &["--json"], &["--jsonl", "-q"]] {
        let text = "The capital of Australia is Sydney. [sandbox:omit=always]";
        let ran = sandbox(&[options, &[text]].concat());
        assert_eq!(ran.code(), 13, "{ran:?}");
        assert!(ran.stderr.contains("UNCHECKED     not extracted: The capital of Australia"), "{ran:?}");
        assert!(ran.stderr.trim_end().ends_with("exit 13"), "{ran:?}");
    }
    let nothing = sandbox(&["-q", "What a lovely day!"]);
    assert_eq!(nothing.code(), 12, "{nothing:?}");
    assert!(
        nothing.stderr.starts_with("no claim · ") && nothing.stderr.ends_with(" · exit 12\n"),
        "{nothing:?}"
    );
}

#[test]
fn input_is_that_of_mk_verify() {
    let mk = |arguments: &[&'static str]| {
        let mk = Mk::new().args(["extract", "--sandbox"]).args(arguments.iter().copied());
        std::fs::write(mk.home().join("a.txt"), SYDNEY).unwrap();
        std::fs::write(mk.home().join("b.txt"), "Canberra is the capital of Australia.").unwrap();
        mk
    };
    let named = mk(&["a.txt"]).run();
    assert!(named.stdout.starts_with("1\tCLAIM\t0-35\t"), "{named:?}");
    assert!(named.stderr.contains("reading a.txt\n"), "{named:?}");
    assert_eq!(mk(&["-"]).stdin(SYDNEY).run().stdout, named.stdout);
    assert_eq!(mk(&[]).stdin(SYDNEY).run().stdout, named.stdout);
    let several = mk(&["-f", "a.txt", "-f", "nowhere.txt", "-f", "b.txt"]).run();
    assert_eq!(several.code(), 2, "{several:?}");
    let lines: Vec<&str> = several.stdout.lines().collect();
    assert!(lines[0].starts_with("a.txt\t1\tCLAIM\t"), "{several:?}");
    assert!(lines[1].starts_with("nowhere.txt\t-\tERROR\tusage\t"), "{several:?}");
    assert!(lines[2].starts_with("b.txt\t1\tCLAIM\t"), "{several:?}");
    let document = mk(&["-f", "a.txt", "-f", "nowhere.txt", "--json"]).run().json();
    assert_eq!(document["schema"], "mk.extract.batch/1");
    assert_eq!(document["statements"][0]["claims"][0]["id"], "claim_1");
    assert_eq!(document["statements"][1]["error"]["kind"], "usage");
    for wrong in
        [&["notes.md"][..], &["--json", "--jsonl", "x y"], &["--min-required", "2", "x y"], &["one", "two"]]
    {
        assert_eq!(mk(wrong).run().code(), 2, "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_asked_with_a_key_and_no_panel_behind_it() {
    let (server, provider) = with_panel(|_, ask| ask.choose("Paris")).await;
    let mk = Mk::new().args(["extract", "The Eiffel Tower is in Paris."]).env("MK_SERVER", &server.base);
    let without = mk.clone().run_beside().await;
    assert_eq!(without.code(), 4, "{without:?}");
    assert!(without.stderr.contains("mk extract --sandbox"), "{without:?}");
    let ran = mk.env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stdout.contains("\tIn which city is the Eiffel Tower?\n"), "{ran:?}");
    assert!(provider.requests().iter().all(|ask| ask.model == "extractor"));
}

#[tokio::test(flavor = "multi_thread")]
async fn once_the_key_is_refused_the_rest_is_not_asked() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let mk = Mk::new().args(["extract", "--jobs", "1", "--lines", "-"]).stdin("It rains.\nIt snows.\n");
    let ran = mk.env("MK_SERVER", &server.base).env("MK_API_KEY", VERIFY_KEY).run_beside().await;
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert!(
        ran.stdout.contains("2\t-\tERROR\tunauthorized\tnot asked, because another one was refused: "),
        "{ran:?}"
    );
}
