//! `mk eval`: what its figures are about, its gates, and the rules that it recounts.

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::cli_eval::{FACTS, dataset, in_sandbox, sandbox};
use crate::support::pty;

#[test]
fn a_gate_fails_unless_the_interval_proves_it() {
    let by_point = ["--min-accuracy", "50.1%", "--point", "--json"];
    let ran = sandbox(&dataset(&FACTS), &by_point);
    assert_eq!((ran.code(), ran.json()["exit"].as_u64()), (1, Some(1)), "{ran:?}");
    assert!(ran.stderr.contains("2 of 4, 50.0 %") && ran.stderr.contains("50.1 %"), "{ran:?}");
    assert_eq!(sandbox(&dataset(&FACTS), &["--min-accuracy", "50", "--point"]).code(), 0);
    let unproved = sandbox(&dataset(&FACTS), &["--min-accuracy", "40", "--max-false-pass", "5", "--json"]);
    assert_eq!(unproved.code(), 1, "2 of 4 proves no 40 %: {unproved:?}");
    assert!(
        unproved.stderr.contains("0 of 1, 0.0 % (0.0 to 79.3); --max-false-pass allows 5 %"),
        "{unproved:?}"
    );
    assert!(unproved.stderr.contains("73 FALSE statements"), "what it takes: {unproved:?}");
    let gates = unproved.json()["gates"].clone();
    assert_eq!((gates[0]["met"].as_bool(), gates[1]["met"].as_bool()), (Some(false), Some(false)), "{gates}");
    assert_eq!(gates[1]["held"], 79.3, "the upper end is held against it: {gates}");
    let quiet = sandbox(&dataset(&FACTS), &["--max-false-pass", "90", "--min-accuracy", "90", "-q"]);
    assert_eq!((quiet.code(), quiet.stdout.as_str()), (1, ""), "{quiet:?}");
    assert!(
        quiet.stderr.contains("--min-accuracy") && !quiet.stderr.contains("--max-false-pass"),
        "{quiet:?}"
    );
}

#[test]
fn models_are_judged_by_verdict_and_by_option() {
    let with_answer =
        json!({ "fact": "The capital of Australia is Sydney.", "expected": false, "answer": "canberra" });
    let without = json!({ "fact": "The capital of Australia is Sydney.", "expected": false });
    let unmatched =
        json!({ "fact": "The capital of Australia is Sydney.", "expected": false, "answer": "Timbuktu" });
    let text = format!("{with_answer}\n{without}\n{unmatched}\n");
    let document = sandbox(&text, &["--json"]).json();
    let known = &document["known_options"];
    assert_eq!((known["count"].as_u64(), known["of"].as_u64()), (Some(1), Some(3)), "{document:#}");
    assert_eq!(document["unmatched_answers"], 1);
    for model in document["models"].as_array().unwrap() {
        assert_eq!(model["accuracy"]["of"], 3, "by verdict, of all: {model}");
        assert_eq!(model["option_accuracy"]["of"], 1, "by option, of what is known: {model}");
    }
    let shown = sandbox(&text, &[]).stderr;
    assert!(shown.contains("of the 1 of 3 questions for which it is known"), "{shown}");
    assert!(shown.contains("one answer is no option beside the claimed one"), "{shown}");
}

#[test]
fn the_figures_tell_what_they_were_made_with() {
    let text = dataset(&FACTS);
    let document = sandbox(&text, &["--json", "--min-required", "3", "--domain", "legal"]).json();
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["settings"]["server"], "sandbox");
    assert_eq!(
        (document["settings"]["min_required"].as_u64(), document["settings"]["domain"].as_str()),
        (Some(3), Some("legal"))
    );
    assert_eq!(document["prompts"].as_array().map(Vec::len), Some(1), "{document:#}");
    assert_eq!(document["prompts"][0].as_str().map(str::len), Some(12));
    assert!(document["date"].as_str().unwrap().ends_with('Z'), "{document:#}");
}

#[test]
fn other_rules_are_recounted_and_one_is_recommended() {
    let text = dataset(&FACTS);
    let document = sandbox(&text, &["--json", "--target-precision", "95"]).json();
    let rules = document["rules"].as_array().unwrap();
    let names: Vec<&str> = rules.iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    let expected =
        ["2 of 3", "3 of 3", "2 of 2 without alpha", "2 of 2 without beta", "2 of 2 without gamma"];
    assert_eq!(names, expected);
    assert_eq!((rules[0]["as_asked"].as_bool(), rules[1]["as_asked"].as_bool()), (Some(true), Some(false)));
    for field in ["accuracy", "decided", "true_precision", "false_found"] {
        assert_eq!(rules[0][field], document[field], "what was asked is what was said: {field}");
    }
    assert_eq!(document["target"]["reached"], false, "{}", document["target"]);
    let loose = sandbox(&text, &["--target-precision", "0"]);
    for line in
        ["[verify]", "panel = [\"sandbox/alpha\", \"sandbox/beta\", \"sandbox/gamma\"]", "min_required = 2"]
    {
        assert!(loose.stderr.lines().any(|shown| shown.trim_start() == line), "{line} is not in {loose:?}");
    }
    for file in [
        "server.toml:\n  [verify]\n",
        "config.toml or .mk.toml (as --min-required 2 --total-models 3):\n  [verify]\n",
    ] {
        assert!(loose.stderr.contains(file), "each block says where it belongs: {loose:?}");
    }
}

#[test]
fn parts_of_a_dataset_have_rows() {
    let facts =
        [("The capital of Australia is Canberra.", "geography"), ("Two plus two is five.", "arithmetic")];
    let lines =
        facts.map(|(fact, tag)| json!({ "fact": fact, "expected": true, "tags": [tag, "all"] }).to_string());
    let ran = sandbox(&lines.join("\n"), &["--json"]);
    let groups = ran.json()["groups"].clone();
    let rows: Vec<(&str, u64, u64)> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            (
                group["name"].as_str().unwrap(),
                group["accuracy"]["count"].as_u64().unwrap(),
                group["statements"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(rows, [("all", 1, 2), ("arithmetic", 0, 1), ("geography", 1, 1)], "{ran:?}");
}

#[test]
fn figures_fit_the_terminal_and_begin_with_what_decides() {
    let lines: Vec<String> = (0..12)
        .map(|at| {
            let (fact, expected) = FACTS[at % 3];
            json!({ "fact": fact, "expected": expected, "tags": ["geography"] }).to_string()
        })
        .collect();
    for columns in [44, 80] {
        let call = in_sandbox(&lines.join("\n")).args(["--target-precision", "1", "--repeat", "2"]);
        let shown = pty::run(&call, columns, 400).last;
        let too_wide = shown.lines().find(|line| line.width() > usize::from(columns));
        assert_eq!(too_wide, None, "{columns}");
        let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words:?} is not in\n{shown}"));
        let headings = [
            "Verdicts",
            "Each model by itself",
            "The models together",
            "What other rules",
            "Parts of the",
            "What was expected",
        ];
        let places = headings.map(place);
        assert!(places.is_sorted(), "{shown}");
        for words in [
            "said TRUE, right",
            "FALSE passed as TRUE",
            "votes are worth",
            "From run to run",
            "12 statements: 4 right",
        ] {
            place(words);
        }
    }
}
