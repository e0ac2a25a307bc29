//! `mk eval`: runs that go on, are repeated, shuffled, compared and reported.

use serde_json::{Value, json};

use crate::cli_eval::{FACTS, against, dataset, in_sandbox, sandbox};
use crate::support::mk::{Mk, VERIFY_KEY};
use crate::support::panel::{agreeing_panel, config, failing_on_broken, finds_eiffel};
use crate::support::provider::{FakeProvider, ModelRequest};
use crate::support::scripted::{Scripted, Step, stream};
use crate::support::server::Setup;

const EIFFEL: &str = "The Eiffel Tower is in Paris.";

/// Different statements about which the panel agrees.
fn true_facts(count: usize) -> String {
    (0..count).map(|at| json!({ "fact": EIFFEL, "expected": true, "id": at }).to_string() + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_goes_on_without_paying_twice() {
    let (server, provider) = agreeing_panel().await;
    let call = against(&server, &true_facts(6)).args(["--resume", "answers.jsonl", "--jobs", "1", "--json"]);
    let first = call.clone().args(["--limit", "2"]).run_beside().await;
    assert_eq!((first.code(), first.json()["known_before"].as_u64()), (0, Some(0)), "{first:?}");
    let paid = provider.requests().len();
    let path = call.home().join("answers.jsonl");
    let mut kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept.lines().count(), 3, "a header and two answers: {kept}");
    // As after a crash in the middle of a write.
    kept.push_str("{\"statement\":2,\"run\":0,\"elapsed");
    std::fs::write(&path, &kept).unwrap();
    let all = call.run_beside().await;
    let document = all.json();
    assert_eq!(
        (document["known_before"].as_u64(), document["verified"].as_u64()),
        (Some(2), Some(6)),
        "{all:?}"
    );
    assert_eq!(provider.requests().len(), paid * 3, "each statement is paid for once");
    let again = call.run_beside().await;
    assert_eq!(again.json()["known_before"], 6, "{again:?}");
    assert_eq!(again.json()["accuracy"], document["accuracy"]);
    let spent = |document: &Value| (document["tokens"].clone(), document["tokens_before"].clone());
    assert_eq!(spent(&again.json()), (document["tokens"].clone(), document["tokens"].clone()));
    assert_eq!(document["tokens_before"], first.json()["tokens"]);
    let for_people = against(&server, &true_facts(6)).args(["--resume", "answers.jsonl"]);
    std::fs::copy(&path, for_people.home().join("answers.jsonl")).unwrap();
    let ran = for_people.run_beside().await;
    assert!(ran.stderr.contains(" · 0 tokens") && ran.stderr.contains(" · before: "), "{ran:?}");
    assert_eq!(provider.requests().len(), paid * 3, "nothing is asked again");
    let other = call.args(["--min-required", "3"]).run_beside().await;
    assert_eq!(other.code(), 2, "{other:?}");
    assert!(
        other.stderr.contains("answers.jsonl was made with min_required left out, and not 3"),
        "{other:?}"
    );
}

/// The stream of a verification on whose only claim these models agree.
fn agreed_by(models: &[&str]) -> Vec<u8> {
    let answers: Vec<Value> = models.iter().map(|model| json!({ "model": model, "answer": "A" })).collect();
    let claim = json!({
        "id": "1", "claim": EIFFEL, "assessment": "TRUE", "original_question": "Where is it?",
        "original_options": { "A": "Paris", "B": "Rome", "C": "None of these", "D": "Cannot be determined" },
        "claimed_answer": "A", "consensus_answer": "A", "model_answers": answers,
    });
    let completed = json!({
        "requestId": "ver_1", "original_fact": "x", "results": [claim], "timestamp": "t", "skipped": [],
        "tokenUsage": { "promptTokens": 1, "completionTokens": 1, "totalTokens": 2 }, "complete": true,
        "coverage": { "sentences": 1, "checked": 1, "skipped": 0, "unchecked": 0 }, "audited": true,
        "minRequired": 2, "totalModels": models.len(),
    });
    let begun = json!({ "totalClaims": 1, "models": models });
    stream(&format!("event: verifying_claims\ndata: {begun}\n\nevent: completed\ndata: {completed}\n\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_panel_behind_the_same_address_is_noticed() {
    let before = ["fake/a", "fake/b", "fake/c"];
    let after = &before[..2];
    let server =
        Scripted::start(move |number| vec![Step::Send(agreed_by(&before[..if number < 2 { 3 } else { 2 }]))])
            .await;
    let mk = Mk::new().env("MK_SERVER", &server.base).env("MK_API_KEY", VERIFY_KEY);
    std::fs::write(mk.home().join("facts.jsonl"), true_facts(4)).unwrap();
    let eval = |arguments: &[&str]| {
        let common = ["eval", "facts.jsonl", "--jobs", "1", "--json"];
        mk.clone().args(common).args(arguments.iter().copied())
    };
    let first = eval(&["--resume", "answers.jsonl", "--limit", "2"]).run_beside().await;
    assert_eq!(first.code(), 0, "{first:?}");
    let settings = &first.json()["settings"];
    assert_eq!((&settings["min_required"], &settings["total_models"]), (&json!(2), &json!(3)));
    assert_eq!(settings["panels"]["general"]["models"], json!(before));
    let kept = || std::fs::read_to_string(mk.home().join("answers.jsonl")).unwrap();
    let answers = kept();
    let goes_on = eval(&["--resume", "answers.jsonl"]).run_beside().await;
    assert_eq!(goes_on.code(), 2, "{goes_on:?}");
    let words = "--resume: answers.jsonl was made with the panel fake/a, fake/b, fake/c, and the server now has fake/a, fake/b";
    assert!(goes_on.stderr.contains(words), "{goes_on:?}");
    assert_eq!(kept(), answers, "an answer of another panel is not kept");
    let all_known = eval(&["--resume", "answers.jsonl", "--limit", "2"]).run_beside().await;
    assert_eq!((all_known.code(), all_known.json()["known_before"].as_u64()), (0, Some(2)));
    assert_eq!(all_known.json()["settings"]["panels"], settings["panels"]);

    std::fs::write(mk.home().join("a.json"), &first.stdout).unwrap();
    let other = eval(&["--limit", "2"]).run_beside().await;
    std::fs::write(mk.home().join("b.json"), &other.stdout).unwrap();
    let compared = mk.clone().args(["eval", "compare", "a.json", "b.json"]).run_beside().await;
    let panels = format!("panel (general): A {}, B {}", before.join(", "), after.join(", "));
    for words in [&panels, "total_models: A 3, B 2"] {
        assert!(compared.stderr.contains(words), "{words} is not in {compared:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_asked_again_when_an_evaluation_goes_on() {
    let (server, _provider) = failing_on_broken().await;
    let call = against(&server, &dataset(&[(EIFFEL, "TRUE"), ("broken", "TRUE")]));
    let call = call.args(["--resume", "answers.jsonl", "--json"]);
    for known in [0, 1] {
        let ran = call.run_beside().await;
        let document = ran.json();
        assert_eq!((ran.code(), document["known_before"].as_u64()), (5, Some(known)), "{ran:?}");
        assert_eq!(document["failed"], 1, "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_statements_show_what_changes_and_count_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    // The second time, nobody can tell.
    let asked = AtomicUsize::new(0);
    let provider = FakeProvider::start(move |ask: &ModelRequest| match ask.task.as_str() {
        "claims" => {
            asked.fetch_add(1, Ordering::SeqCst);
            finds_eiffel()
        }
        _ if asked.load(Ordering::SeqCst) > 1 => ask.choose("Cannot be determined"),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let call = against(&server, &dataset(&[(EIFFEL, "TRUE")])).args(["--repeat", "2", "--jobs", "1"]);
    let ran = call.run_beside().await;
    let starts: Vec<&str> = ran.stdout.lines().map(|line| line.split(EIFFEL).next().unwrap()).collect();
    assert_eq!(starts, ["1\tRIGHT\tTRUE\tTRUE\t-\t", "1\tFLIPPED\tTRUE\tNO_CONSENSUS\t-\t"], "{ran:?}");
    assert!(ran.stderr.contains("changed on 1 of 1"), "{ran:?}");
    assert!(ran.stderr.contains("1 statement: 1 right"), "figures are of the first run: {ran:?}");
}

#[test]
fn a_shuffled_sample_is_the_same_for_the_same_seed() {
    let facts: Vec<(String, &str)> =
        (0..30).map(|at| (format!("{at} plus one is {}.", at + 1), "TRUE")).collect();
    let facts: Vec<(&str, &str)> = facts.iter().map(|(fact, label)| (fact.as_str(), *label)).collect();
    let text = dataset(&facts);
    let lines = |arguments: &[&str]| -> Vec<String> {
        let ran = sandbox(&text, arguments);
        assert_eq!(ran.code(), 0, "{ran:?}");
        ran.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    let sample = lines(&["--shuffle", "--limit", "5"]);
    assert_eq!(sample.len(), 5);
    assert_ne!(sample, ["1", "2", "3", "4", "5"]);
    assert_eq!(lines(&["--shuffle", "--limit", "5", "--seed", "0"]), sample);
    assert_ne!(lines(&["--shuffle", "--limit", "5", "--seed", "1"]), sample);
    let alone = sandbox(&text, &["--seed", "1"]);
    assert!(alone.code() == 2 && alone.stderr.contains("--shuffle"), "{alone:?}");
}

/// The JSON of an evaluation in the sandbox.
fn evaluated(facts: &[(&str, &str)], arguments: &[&str]) -> String {
    let ran = sandbox(&dataset(facts), &[&["--json"], arguments].concat());
    ran.stdout
}

#[test]
fn two_evaluations_are_compared_in_pairs() {
    let mk = Mk::new();
    let more = [&FACTS[..], &[("Two plus two is four.", "TRUE")]].concat();
    std::fs::write(mk.home().join("a.json"), evaluated(&FACTS, &[])).unwrap();
    std::fs::write(mk.home().join("b.json"), evaluated(&more, &["--min-required", "3"])).unwrap();
    let mk = mk.args(["eval", "compare", "a.json", "b.json"]);
    let ran = mk.run();
    assert_eq!(ran.code(), 0, "{ran:?}");
    let first = ran.stdout.lines().next().unwrap();
    assert_eq!(
        first,
        format!("WORSE\tTRUE\tTRUE\tNO_CONSENSUS\t-\t{}", FACTS[0].0),
        "2 of 3 became a split: {ran:?}"
    );
    for words in
        ["4 statements in both (only in A: 0, only in B: 1)", "may be chance", "min_required: A 2, B 3"]
    {
        assert!(ran.stderr.contains(words), "{words} is not in {ran:?}");
    }
    let document = mk.args(["--json"]).run().json();
    assert_eq!(
        (document["schema"].as_str(), document["statements"].as_u64()),
        (Some("mk.eval.compare/1"), Some(4))
    );
    assert_eq!(
        (document["right"]["only_a"].as_u64(), document["right"]["only_b"].as_u64()),
        (Some(1), Some(0))
    );
    assert_eq!(document["right"]["p"], 1.0, "one statement proves nothing");
    assert_eq!(document["changed"].as_array().map(Vec::len), Some(2), "{document:#}");
}

#[test]
fn only_evaluations_can_be_compared() {
    let mk = Mk::new();
    std::fs::write(mk.home().join("a.json"), evaluated(&FACTS[..1], &[])).unwrap();
    std::fs::write(mk.home().join("b.json"), evaluated(&FACTS[1..2], &[])).unwrap();
    std::fs::write(mk.home().join("odd.json"), "{\"schema\": \"mk.verify/1\", \"results\": []}").unwrap();
    let compare = |other: &str| {
        let call = Mk::new().args(["eval", "compare", "a.json", other]);
        for name in ["a.json", "b.json", "odd.json"] {
            std::fs::copy(mk.home().join(name), call.home().join(name)).unwrap();
        }
        call.run()
    };
    for (other, words) in [
        ("nowhere.json", "cannot read nowhere.json"),
        ("odd.json", "odd.json is not an evaluation"),
        ("b.json", "no statement was verified in both"),
    ] {
        let ran = compare(other);
        assert!(ran.code() == 2 && ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn a_dataset_is_still_the_first_argument() {
    let mk = Mk::new().args(["eval", "--sandbox", "./compare"]);
    std::fs::write(mk.home().join("compare"), dataset(&FACTS[..1])).unwrap();
    assert_eq!(mk.run().code(), 0);
    let none = Mk::new().args(["eval"]).run();
    assert!(none.code() == 2 && none.stderr.contains("DATASET"), "{none:?}");
}

#[test]
fn reports_are_written_beside_the_output() {
    let facts = [("The capital of Australia is <b>Sydney</b>.", "TRUE"), FACTS[0]];
    let mk = in_sandbox(&dataset(&facts)).args(["--report", "html=eval.html", "--report", "csv=eval.csv"]);
    let ran = mk.run();
    assert_eq!((ran.code(), ran.stdout.lines().count()), (0, 2), "{ran:?}");
    let page = std::fs::read_to_string(mk.home().join("eval.html")).unwrap();
    assert!(page.contains("&lt;b&gt;Sydney&lt;/b&gt;") && !page.contains("<b>Sydney"), "{page}");
    assert!(page.contains("simulated"), "{page}");
    let rows = std::fs::read_to_string(mk.home().join("eval.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "{rows}");
    let nowhere = in_sandbox(&dataset(&facts)).args(["--report", "html=no/such/place.html"]).run();
    assert!(nowhere.code() == 2 && nowhere.stdout.is_empty(), "told before anything is spent: {nowhere:?}");
    let unknown = in_sandbox(&dataset(&facts)).args(["--report", "pdf=x"]).run();
    assert!(unknown.code() == 2 && unknown.stderr.contains("html= or csv="), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_tells_accuracy_and_time_left() {
    let (server, _provider) = agreeing_panel().await;
    let call = against(&server, &true_facts(3)).args(["--jobs", "1"]).env("MK_PROGRESS", "lines");
    let ran = call.run_beside().await;
    let progress: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("Verifying ")).collect();
    assert_eq!(progress.len(), 3, "{ran:?}");
    let first = progress[0];
    assert!(first.starts_with("Verifying statements  1 of 3 done") && first.ends_with(" left"), "{ran:?}");
    assert!(first.contains("100 % right · "), "{ran:?}");
    assert!(!progress[2].contains("left"), "{ran:?}");
}

#[test]
fn a_report_takes_the_place_of_nothing_that_is_read_or_paid_for() {
    let mk = in_sandbox(&dataset(&FACTS[..1])).args(["--resume", "answers.jsonl"]);
    let kept = || std::fs::read_to_string(mk.home().join("answers.jsonl")).unwrap_or_default();
    assert_eq!(mk.run().code(), 0);
    let answers = kept();
    for (reports, what) in [
        (&["--report", "csv=answers.jsonl"][..], "the file of --resume"),
        (&["--report", "html=./facts.jsonl"], "the dataset"),
        (&["--report", "html=new", "--report", "csv=new"], "another report"),
    ] {
        let ran = mk.clone().args(reports.iter().copied()).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(what), "{ran:?}");
    }
    assert_eq!(kept(), answers);
}
