//! `mk verify` as a gate: it never passes what it did not read, and never fails silently.

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk};
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, claim, claims};
use crate::support::server::{Setup, TestServer};

/// As many as the server of these tests checks at most.
const MAX_CLAIMS: usize = 30;

/// A statement of sixty sentences; the 46th is about a tower whose height the panel does not confirm.
fn sixty_sentences() -> String {
    (1..=60).map(sentence).collect::<Vec<_>>().join(" ")
}

fn sentence(n: usize) -> String {
    format!("Tower {n} is {} m high.", if n == 46 { 8 } else { 9 })
}

/// A server that finds a claim in each of these sentences, and checks thirty of them.
async fn towers() -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let statement = ask.block("SECTION");
            let mut found: Vec<usize> = (1..=60).filter(|n| statement.contains(&sentence(*n))).collect();
            found.sort_by_key(|n| statement.find(&sentence(*n)));
            let height = |n| if n == 46 { "8 m" } else { "9 m" };
            let claim = |n| claim(&sentence(n), &format!("How high is tower {n}?"), height(n), &["100 m"]);
            claims(&found.into_iter().map(claim).collect::<Vec<_>>())
        }
        _ if ask.options().values().any(|option| option == "9 m") => ask.choose("9 m"),
        _ => ask.choose("100 m"),
    })
    .await;
    let setup = Setup::new(config(&provider.base_url));
    let server = setup.config(|config| config.verify.general.max_claims = MAX_CLAIMS).start().await;
    (server, provider)
}

async fn verify(server: &TestServer, arguments: &[&str]) -> CommandOutput {
    let mk = Mk::new().args(["verify"]).args(arguments.iter().copied());
    mk.env("MK_SERVER", &server.base).env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await
}

#[test]
fn what_was_skipped_is_not_called_checked() {
    let text = "Paris is beautiful. Two plus two is four. Rome is beautiful. The capital of Australia is Canberra. \
        The capital of Japan is Tokyo. [sandbox:omit=always]";
    let ran = Mk::new().args(["verify", "--sandbox", text]).run();
    let summary = "2 of 5 sentences checked, 2 skipped: ✓ 2 true · 1 unchecked";
    assert!(ran.code() == 13 && ran.stderr.contains(summary), "{ran:?}");
    let several = |options: &[&str]| {
        let texts = [text, "Two plus two is four. Rome is beautiful."];
        Mk::new()
            .args(["verify", "--sandbox"])
            .args(options.iter().copied())
            .args(["--text"])
            .args(texts)
            .run()
    };
    let total =
        "2 statements: 2 verified · 3 of 7 sentences checked, 3 skipped · 3 claims: ✓ 3 true · 1 unchecked";
    assert!(several(&[]).stderr.contains(total), "{:?}", several(&[]));
    assert!(several(&["--view", "list"]).stdout.contains(total), "{:?}", several(&["--view", "list"]));
    let totals = &several(&["--json"]).json()["totals"];
    assert_eq!(totals["coverage"], json!({ "sentences": 7, "checked": 3, "skipped": 3, "unchecked": 1 }));
}

#[test]
fn a_run_that_passes_says_how_much_it_checked_unless_told_to_be_quiet() {
    let text = "The Eiffel Tower is in Paris.";
    for (command, said) in [("verify", "1 claim: ✓ 1 true"), ("extract", "its sentence is accounted for")] {
        let ran = Mk::new().args([command, "--sandbox", text]).run();
        assert!(ran.code() == 0 && ran.stderr.contains(said), "{ran:?}");
        assert_eq!(Mk::new().args([command, "--sandbox", "-q", text]).run().stderr, "");
    }
    let failed = "The capital of Japan is Tokyo. [sandbox:fail=auditor]";
    for command in ["verify", "extract"] {
        let ran = Mk::new().args([command, "--sandbox", failed]).run();
        let warning = "warning: the claims were not audited: the auditor (sandbox/auditor) failed";
        assert!(ran.code() == 0 && ran.stderr.contains(warning), "{ran:?}");
    }
}

#[test]
fn what_failed_is_named_with_its_line_wherever_the_text_comes_from() {
    let text = "Two plus two is four.\n\nThe moon is big. The capital of Australia is Sydney.\n";
    let ran = Mk::new().args(["verify", "--sandbox", "-q", "-"]).stdin(text).run();
    assert!(ran.code() == 10 && ran.stderr.contains("3:18  FALSE"), "{ran:?}");
    let one_line = Mk::new().args(["verify", "--sandbox", "-q", "The capital of Australia is Sydney."]).run();
    assert!(one_line.stderr.starts_with("FALSE"), "{one_line:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_the_limit_fails_the_gate_and_is_named_even_with_q() {
    let (server, _provider) = towers().await;
    let text = sixty_sentences();
    for options in [&[][..], &["-q"], &["--json"], &["--jsonl", "-q"], &["--view", "list"]] {
        let ran = verify(&server, &[options, &[&text]].concat()).await;
        assert_eq!(ran.code(), 13, "{ran:?}");
        let named = "UNCHECKED     over the limit, 30 parts from here on: Tower 31 is 9 m high.\n              \
            the limit is max_claims; the server's operator can change it under [verify] in server.toml\n30 of 60 sentences checked: ";
        assert!(ran.stderr.contains(named), "{ran:?}");
        assert!(ran.stderr.trim_end().ends_with("exit 13"), "{ran:?}");
    }
    let page = verify(&server, &["--view", "list", &text]).await.stdout;
    assert!(
        page.contains("\n30 of 60 sentences checked: ✓ 30 true · 30 unchecked · not audited · 3 models"),
        "{page}"
    );
    assert!(page.contains("!  not checked (over limit): Tower 31 is 9 m high."), "{page}");
    assert_eq!(page.matches("the limit is max_claims").count(), 1, "{page}");
    let document = verify(&server, &["--json", &text]).await.json();
    assert_eq!(document["exit"], 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worse_finding_decides_the_exit_code_and_both_are_named() {
    let (server, _provider) = towers().await;
    let text = format!("{} {}", sentence(46), sixty_sentences());
    let ran = verify(&server, &["-q", &text]).await;
    assert_eq!(ran.code(), 10, "{ran:?}");
    let first = "FALSE         Tower 46 is 8 m high.\n              models say 100 m (3/3)\nUNCHECKED  ";
    assert!(ran.stderr.starts_with(first), "{ran:?}");
    assert!(ran.stderr.contains("✗ 1 false · ") && ran.stderr.ends_with(" · exit 10\n"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fail_on_chooses_what_counts_in_any_letter_case() {
    let (server, _provider) = towers().await;
    let text = sixty_sentences();
    for (fail_on, code) in [
        ("false", 0),
        ("FALSE,No-Consensus", 0),
        ("unchecked", 13),
        ("UNCHECKED", 13),
        ("skipped", 13),
        ("Never", 0),
    ] {
        let ran = verify(&server, &["-q", "--fail-on", fail_on, &text]).await;
        assert_eq!(ran.code(), code, "{fail_on}: {ran:?}");
        assert_eq!(ran.stderr.is_empty(), code == 0, "{fail_on}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_statements_end_with_the_worst_and_name_their_sources() {
    let (server, _provider) = towers().await;
    let mk = Mk::new().args(["verify", "--lines", "facts.txt", "-q"]);
    let mk = mk.env("MK_SERVER", &server.base).env("MK_API_KEY", &server.key(Service::Verify));
    std::fs::write(mk.home().join("facts.txt"), format!("{}\n{}\n", sentence(1), sixty_sentences())).unwrap();
    let ran = mk.run_beside().await;
    assert_eq!(ran.code(), 13, "{ran:?}");
    assert!(
        ran.stderr.starts_with("line 2  UNCHECKED     over the limit, 30 parts from here on: Tower 31"),
        "{ran:?}"
    );
}

#[test]
fn nothing_to_verify_fails_whatever_counts_but_never() {
    let code = |fail_on: &str| {
        Mk::new().args(["verify", "--sandbox", "-q", "--fail-on", fail_on, "What a lovely day!"]).run().code()
    };
    let codes = ["false", "no-consensus", "unchecked", "false,unchecked", "never"].map(code);
    assert_eq!(codes, [12, 12, 12, 12, 0]);
    assert_eq!(code("skipped"), 13, "a skipped part is more than nothing");
}

#[test]
fn skipped_parts_fail_only_where_that_is_chosen() {
    let text = "The Eiffel Tower is in Paris. It is the most beautiful tower.";
    let ran = Mk::new().args(["verify", "--sandbox", "-q", "--fail-on", "skipped", text]).run();
    assert_eq!(ran.code(), 13, "{ran:?}");
    assert!(ran.stderr.contains("SKIPPED       opinion: It is the most beautiful tower."), "{ran:?}");
    assert_eq!(Mk::new().args(["verify", "--sandbox", text]).run().code(), 0);
}

#[test]
fn never_stands_alone() {
    for (arguments, files) in [
        (&["--fail-on", "false,never"][..], None),
        (&["--fail-on", "Never", "--fail-on", "FALSE"], None),
        (&[], Some("[verify]\nfail_on = [\"false\", \"never\"]\n")),
    ] {
        let mk = Mk::new().args(["verify", "--sandbox", "The Eiffel Tower is in Paris."]);
        let mk = mk.args(arguments.iter().copied());
        if let Some(file) = files {
            std::fs::write(mk.home().join(".mk.toml"), file).unwrap();
        }
        let ran = mk.run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("never") && ran.stdout.is_empty(), "{ran:?}");
    }
    let json: Value = Mk::new().args(["verify", "--json", "--fail-on", "never,false", "x"]).run().json();
    assert_eq!(json["exit"], 2);
}

#[test]
fn several_statements_end_in_totals() {
    let run = |options: &[&str], lines: &str| {
        let mk =
            Mk::new().args(["verify", "--sandbox", "--lines", "facts.txt"]).args(options.iter().copied());
        std::fs::write(mk.home().join("facts.txt"), lines).unwrap();
        mk.run()
    };
    let (right, wrong, unsure) = (
        "The Eiffel Tower is in Paris.",
        "The capital of Australia is Sydney.",
        "The Nile is the longest river in the world.",
    );
    let lines = format!("{right}\n{wrong}\n{unsure}\n");
    let piped = run(&[], &lines);
    assert_eq!(piped.code(), 10, "{piped:?}");
    let totals = "3 claims: ✓ 1 true, ✗ 1 false, ~ 1 no consensus · ";
    let failed = "line 2  FALSE         The capital of Australia is Sydney.\n";
    assert!(piped.stderr.contains(totals) && piped.stderr.contains(failed), "{piped:?}");
    assert!(piped.stderr.contains("line 3  NO CONSENSUS  The Nile"), "{piped:?}");

    let document = run(&["--json"], &lines).json();
    let totals = &document["totals"];
    assert_eq!(
        (&totals["true"], &totals["false"], &totals["no_consensus"]),
        (&1.into(), &1.into(), &1.into())
    );
    let last = run(&["--jsonl"], &lines).stdout.lines().last().unwrap().to_owned();
    let total: Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&total["type"], &total["totals"]["false"]), (&"total".into(), &1.into()));

    let all_right = run(&[], &format!("{right}\n"));
    assert!(
        all_right.stderr.contains("1 statement: 1 verified · 1 of 1 sentence checked · 1 claim: ✓ 1 true · "),
        "{all_right:?}"
    );
    assert!(!run(&["-q"], &format!("{right}\n")).stderr.contains("verified"));
}

#[test]
fn several_files_show_how_many_there_are_and_how_long_the_rest_takes() {
    for (command, found) in [("verify", "1 claim: ✓ 1 true · "), ("extract", "")] {
        let mk =
            Mk::new().args([command, "--sandbox", "--progress", "lines", "--jobs", "1", "a.txt", "b.txt"]);
        for name in ["a.txt", "b.txt"] {
            std::fs::write(mk.home().join(name), "The Eiffel Tower is in Paris.").unwrap();
        }
        let ran = mk.run();
        let line = ran.stderr.lines().find(|line| line.contains("  1 of 2 done")).unwrap_or_default();
        assert!(line.contains(found) && (command == "extract" || line.ends_with(" left")), "{ran:?}");
        assert!(ran.stderr.lines().any(|line| line.contains("  2 of 2 done") && !line.ends_with(" left")));
    }
}

#[test]
fn the_view_of_a_project_counts_as_on_the_command_line() {
    let view = |path: &str| {
        let mk = Mk::new().args(["verify", "--sandbox", "The Eiffel Tower is in Paris."]);
        let file = mk.home().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "[output]\nview = \"list\"\n").unwrap();
        mk.run().stdout
    };
    assert!(view(".mk.toml").contains("1 claim: ✓ 1 true"));
    assert!(view(".config/mk/config.toml").starts_with("1\tTRUE\t"), "a pipe stays a pipe everywhere else");
}
