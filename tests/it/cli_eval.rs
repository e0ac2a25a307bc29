//! `mk eval`: what it counts, what it prints, and that an unreadable dataset causes no requests.

use mk::api::Service;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::support::mk::{CommandOutput, Mk, VERIFY_KEY};
use crate::support::panel::{agreeing_panel, config, failing_on_broken, finds_eiffel};
use crate::support::provider::{FakeProvider, ModelRequest, Reply};
use crate::support::pty;
use crate::support::server::{Setup, TestServer};

/// The sandbox assesses the first as TRUE and the second as FALSE, reaches no consensus on the third, and finds nothing
/// to verify in the last.
pub const FACTS: [(&str, &str); 4] = [
    ("The capital of Australia is Canberra.", "TRUE"),
    ("The capital of Australia is Sydney.", "TRUE"),
    ("The Nile is the longest river in the world.", "FALSE"),
    ("Paris is beautiful.", "NOTHING"),
];

/// The lines of a dataset.
pub fn dataset(facts: &[(&str, &str)]) -> String {
    let line = |(fact, label): &(&str, &str)| json!({ "fact": fact, "expected": label }).to_string() + "\n";
    facts.iter().map(line).collect()
}

pub fn sandbox(text: &str, arguments: &[&str]) -> CommandOutput {
    in_sandbox(text).args(arguments.iter().copied()).run()
}

pub fn in_sandbox(text: &str) -> Mk {
    let mk = Mk::new().args(["eval", "--sandbox", "facts.jsonl"]);
    std::fs::write(mk.home().join("facts.jsonl"), text).unwrap();
    mk
}

pub fn against(server: &TestServer, text: &str) -> Mk {
    let mk = Mk::new()
        .args(["eval", "facts.jsonl"])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &server.key(Service::Verify));
    std::fs::write(mk.home().join("facts.jsonl"), text).unwrap();
    mk
}

#[test]
fn a_pipe_gets_one_line_per_statement_and_the_summary_goes_to_stderr() {
    let ran = sandbox(&dataset(&FACTS), &[]);
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split('\t').collect()).collect();
    let expected = [
        ["1", "RIGHT", "TRUE", "TRUE", "-", FACTS[0].0],
        ["2", "WRONG", "TRUE", "FALSE", "-", FACTS[1].0],
        ["3", "WRONG", "FALSE", "NO_CONSENSUS", "-", FACTS[2].0],
        ["4", "RIGHT", "NOTHING", "NOTHING", "-", FACTS[3].0],
    ];
    assert_eq!(lines, expected, "{ran:?}");
    assert_eq!(ran.code(), 0, "wrong results are no failure of the command: {ran:?}");
    assert!(ran.stderr.contains("4 statements: 2 right, 2 wrong"), "{ran:?}");
    assert!(ran.stderr.contains("SANDBOX"), "{ran:?}");
    assert!(
        ran.stderr.contains("FALSE passed as TRUE  0 of 1, 0.0 %"),
        "the summary is printed without a terminal, too: {ran:?}"
    );
}

#[test]
fn json_output_has_every_metric_with_its_denominator() {
    let ran = sandbox(&dataset(&FACTS), &["--json"]);
    let document = ran.json();
    assert_eq!(
        (document["schema"].as_str(), document["mode"].as_str()),
        (Some("mk.eval/1"), Some("sandbox"))
    );
    let share = |name: &str| (document[name]["count"].as_u64(), document[name]["of"].as_u64());
    assert_eq!(share("accuracy"), (Some(2), Some(4)));
    assert_eq!(share("decided"), (Some(2), Some(4)));
    assert_eq!(share("accuracy_when_decided"), (Some(1), Some(2)));
    assert_eq!(share("false_found"), (Some(0), Some(1)));
    assert_eq!(share("true_called_false"), (Some(1), Some(2)));
    assert_eq!(document["accuracy"]["percent"], 50.0);
    assert_eq!(document["matrix"]["TRUE"]["FALSE"], 1);
    assert_eq!(document["matrix"]["FALSE"]["NO CONSENSUS"], 1);
    let models = document["models"].as_array().unwrap();
    assert_eq!(models.len(), 3, "{document}");
    for model in models {
        assert_eq!(
            model["accuracy"]["of"], 3,
            "statements labelled NOTHING do not count for a model: {model}"
        );
    }
    let results = document["results"].as_array().unwrap();
    assert_eq!((results[1]["line"].as_u64(), results[1]["right"].as_bool()), (Some(2), Some(false)));
    let tokens: u64 = results.iter().map(|one| one["tokenUsage"]["totalTokens"].as_u64().unwrap()).sum();
    assert_eq!(document["tokens"].as_u64(), Some(tokens));
}

#[test]
fn datasets_are_read_from_stdin_and_several_files() {
    let text = dataset(&FACTS);
    let stdin = Mk::new().args(["eval", "--sandbox", "-", "--limit", "1"]).stdin(text.as_str()).run();
    assert_eq!((stdin.code(), stdin.stdout.lines().count()), (0, 1), "{stdin:?}");
    let enough =
        Mk::new().args(["eval", "--sandbox", "-", "nowhere.jsonl", "--limit", "4"]).stdin(text.as_str());
    assert_eq!(enough.run().code(), 0, "files beyond the limit are not opened");
    let mk = in_sandbox(&text);
    let fever = "\u{feff}{\"id\": 9, \"claim\": \"Two plus two is five.\", \"label\": \"REFUTES\"}\n";
    std::fs::write(mk.home().join("fever.jsonl"), fever).unwrap();
    let both = mk.args(["fever.jsonl"]).run();
    assert!(both.stdout.contains("facts.jsonl:2\tWRONG\t"), "{both:?}");
    assert!(both.stdout.contains("fever.jsonl:1\tRIGHT\tFALSE\tFALSE\t9\tTwo plus"), "{both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_before_every_line_is_parsed() {
    let (server, provider) = agreeing_panel().await;
    let call = against(&server, "{\"fact\": \"a\", \"expected\": true}\n{\"fact\": \"b\"}\n\nnone\n");
    let ran = call.run_beside().await;
    let told = "error: line 2: it has no `expected`; line 4: invalid JSON at column 2: expected ident\n";
    assert!(ran.code() == 2 && ran.stderr.starts_with(told), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert_eq!(provider.requests().len(), 0);
    let json = call.args(["--json"]).run_beside().await;
    assert_eq!((json.code(), json.json()["exit"].as_u64()), (2, Some(2)), "{json:?}");
}

#[test]
fn unreadable_datasets_are_reported_by_name_and_line() {
    let mk = in_sandbox("");
    std::fs::write(mk.home().join("facts.jsonl"), b"{\"fact\": \"\xff\"}\n").unwrap();
    let binary = mk.run();
    assert!(binary.code() == 2 && binary.stderr.contains("line 1 is not UTF-8"), "{binary:?}");
    let several = mk.args(["facts.jsonl"]).run();
    assert!(several.stderr.contains("facts.jsonl: line 1 is not UTF-8"), "{several:?}");
    let empty = in_sandbox(" \n\n").run();
    assert!(empty.code() == 2 && empty.stderr.contains("the dataset has no statements"), "{empty:?}");
    let missing = Mk::new().args(["eval", "--sandbox", "nowhere.jsonl"]).run();
    assert!(missing.code() == 2 && missing.stderr.contains("cannot read nowhere.jsonl"), "{missing:?}");
    let deep = in_sandbox(&format!("{}\n", "[".repeat(500_000))).run();
    assert!(deep.code() == 2 && deep.stderr.contains("line 1: invalid JSON at column"), "{deep:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_statements_count_neither_as_right_nor_as_wrong() {
    let (server, _provider) = failing_on_broken().await;
    let text = dataset(&[
        ("The Eiffel Tower is in Paris.", "TRUE"),
        ("broken", "TRUE"),
        ("The Eiffel Tower is in Paris: really.", "FALSE"),
    ]);
    let ran =
        against(&server, &text).args(["--jobs", "1", "--json", "--min-accuracy", "40"]).run_beside().await;
    let document = ran.json();
    assert_eq!(
        (ran.code(), document["exit"].as_u64()),
        (1, Some(1)),
        "a failure hides no missed gate: {ran:?}"
    );
    assert!(
        ran.stderr.contains("1 statement was not verified")
            && ran.stderr.contains("--min-accuracy asks for 40 %"),
        "{ran:?}"
    );
    assert_eq!(
        (document["accuracy"]["count"].as_u64(), document["accuracy"]["of"].as_u64()),
        (Some(1), Some(2))
    );
    assert_eq!(document["failed"], 1);
    let failed = &document["results"][1];
    assert_eq!((failed["line"].as_u64(), failed["error"]["kind"].as_str()), (Some(2), Some("server")));
    assert_eq!(document["cost_usd"], Value::Null, "the prices of these models are unknown");
    let quiet = against(&server, &text).args(["-q"]).run_beside().await;
    assert_eq!((quiet.code(), quiet.stdout.as_str()), (5, ""), "{quiet:?}");
    assert!(quiet.stderr.starts_with("error: 1 statement was not verified; line 2: "), "{quiet:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_in_a_line_override_flags() {
    let (server, provider) = agreeing_panel().await;
    let own = json!({ "fact": "The Eiffel Tower is in Paris.", "expected": true, "context": "of the line", "asOf": "2001-02-03" });
    let text = format!("{own}\n{}\n", json!({ "fact": "The Eiffel Tower is in Paris.", "expected": true }));
    let call = against(&server, &text).args(["--jobs", "1", "--context", "all.txt", "--as-of", "2004-05-06"]);
    std::fs::write(call.home().join("all.txt"), "of the flag").unwrap();
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let asks: Vec<String> = provider.requests_for("one").iter().map(ModelRequest::text).collect();
    let has = |ask: &str, words: &[&str]| words.iter().all(|word| ask.contains(word));
    assert!(has(&asks[0], &["of the line", "2001-02-03"]) && !asks[0].contains("of the flag"), "{asks:#?}");
    assert!(has(&asks[1], &["of the flag", "2004-05-06"]), "{asks:#?}");
}

#[test]
fn a_terminal_shows_the_wrong_statements_and_the_accuracy() {
    for columns in [44, 80] {
        let shown = pty::run(&in_sandbox(&dataset(&FACTS)), columns, 300).last;
        for words in
            ["✗  line 2: said FALSE, is TRUE", "~  line 3: said NO CONSENSUS, is FALSE", "2 of 4, 50.0 %"]
        {
            assert!(shown.contains(words), "{columns}: {words:?} is not in\n{shown}");
        }
        for words in ["sandbox/alpha", "FALSE found", "4 statements: 2 right, 2 wrong"] {
            assert!(shown.contains(words), "{columns}: {words:?} is not in\n{shown}");
        }
        assert!(!shown.contains("line 1:"), "right statements are not listed\n{shown}");
        let too_wide = shown.lines().find(|line| line.width() > usize::from(columns));
        assert_eq!(too_wide, None, "{columns}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_key_ends_the_evaluation_with_partial_results() {
    let (server, _provider) = agreeing_panel().await;
    let text = dataset(&[("one", "TRUE"), ("two", "TRUE"), ("three", "TRUE"), ("four", "TRUE")]);
    let wrong = against(&server, &text).env("MK_API_KEY", VERIFY_KEY);
    let ran = wrong.args(["--jobs", "1", "--json"]).run_beside().await;
    let document = ran.json();
    assert_eq!((ran.code(), document["exit"].as_u64()), (4, Some(4)), "{ran:?}");
    assert_eq!((document["failed"].as_u64(), document["not_asked"].as_u64()), (Some(1), Some(3)), "{ran:?}");
    assert_eq!(document["error"]["kind"], "unauthorized");
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("3 statements were not asked"), "{ran:?}");
}

/// A server that rejects the statement "refused" because the budget is used up, and answers all others only after that:
/// "broken" with an error.
async fn server_with_a_small_budget() -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (has_refused, _) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let has_refused = has_refused.clone();
            tokio::spawn(async move {
                let mut asked = Vec::new();
                while !asked.ends_with(b"}") {
                    assert!(stream.read_buf(&mut asked).await.unwrap() > 0);
                }
                let asked = String::from_utf8(asked).unwrap();
                let is_refused = asked.contains("\"refused\"");
                let fact = asked.split_once("\r\n\r\n").map(|(_, body)| body);
                let fact: Value = serde_json::from_str(fact.unwrap()).unwrap();
                let (status, kind, body) = if is_refused {
                    let error =
                        json!({ "error": "no budget", "message": "no budget", "code": "budget_exceeded" });
                    ("402 Payment Required", "application/json", error.to_string())
                } else {
                    has_refused.subscribe().wait_for(|is_so| *is_so).await.unwrap();
                    let result = json!({
                        "requestId": "ver_1", "original_fact": fact["fact"], "results": [], "timestamp": "t",
                        "tokenUsage": { "promptTokens": 1, "completionTokens": 0, "totalTokens": 1 },
                        "minRequired": 2, "complete": true, "skipped": [],
                        "coverage": { "sentences": 0, "checked": 0, "skipped": 0, "unchecked": 0 },
                    });
                    let status = if asked.contains("\"broken\"") { "500 Broken" } else { "200 OK" };
                    (status, "text/event-stream", format!("event: completed\ndata: {result}\n\n"))
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: \
                     close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
                if is_refused {
                    has_refused.send_replace(true);
                }
            });
        }
    });
    base
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_in_flight_when_the_budget_runs_out_still_count() {
    let base = server_with_a_small_budget().await;
    let facts = [
        ("one", "NOTHING"),
        ("refused", "TRUE"),
        ("broken", "NOTHING"),
        ("four", "NOTHING"),
        ("five", "TRUE"),
    ];
    let mk = Mk::new()
        .args(["eval", "facts.jsonl", "--jobs", "3"])
        .env("MK_SERVER", &base)
        .env("MK_API_KEY", VERIFY_KEY);
    std::fs::write(mk.home().join("facts.jsonl"), dataset(&facts)).unwrap();
    let ran = mk.run_beside().await;
    let starts: Vec<String> = ran.stdout.lines().map(|line| line[..7].to_owned()).collect();
    assert_eq!(starts[..3], ["1\tRIGHT", "2\tERROR", "3\tERROR"], "in dataset order: {ran:?}");
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert!(ran.stderr.contains("were not asked") || ran.stderr.contains("was not asked"), "{ran:?}");
    assert!(ran.stderr.contains("not verified; line 2: no budget"), "the cause is reported: {ran:?}");
}

#[test]
fn an_unreachable_server_is_given_up_after_a_few_statements() {
    let facts: Vec<(String, &str)> = (0..40).map(|at| (format!("{at}"), "TRUE")).collect();
    let facts: Vec<(&str, &str)> = facts.iter().map(|(fact, label)| (fact.as_str(), *label)).collect();
    let mk = Mk::new()
        .args(["eval", "facts.jsonl", "--jobs", "1"])
        .env("MK_SERVER", "http://127.0.0.1:0")
        .env("MK_API_KEY", VERIFY_KEY);
    std::fs::write(mk.home().join("facts.jsonl"), dataset(&facts)).unwrap();
    let ran = mk.run();
    assert_eq!((ran.code(), ran.stdout.lines().count()), (6, 5), "{ran:?}");
    assert!(
        ran.stderr.contains("cannot reach http://127.0.0.1:0") && ran.stderr.contains("hint: "),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("35 statements were not asked"), "{ran:?}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_keeps_partial_results() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    let provider = FakeProvider::start(|ask: &ModelRequest| match ask.task.as_str() {
        "claims" if ask.block("SECTION") == "stuck" => Reply::Hang,
        "claims" => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let text = dataset(&[("stuck", "TRUE"), ("The Eiffel Tower is in Paris.", "TRUE"), ("stuck", "TRUE")]);
    let call = against(&server, &text).args(["--jobs", "2", "--json"]);
    let child = call.command().stdout(Stdio::piped()).spawn().unwrap();
    crate::support::eventually("the second statement is done and the third sent", || {
        provider.requests_for("extractor").len() == 3 && provider.in_flight() == 2
    })
    .await;
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(ended.status.signal(), Some(2), "{ended:?}");
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(
        (document["error"]["kind"].as_str(), document["exit"].as_u64()),
        (Some("interrupted"), Some(130))
    );
    let partial = &document["partial"];
    assert_eq!(
        (partial["verified"].as_u64(), partial["not_asked"].as_u64()),
        (Some(1), Some(2)),
        "{document}"
    );
    assert_eq!(partial["results"][0]["line"], 2);
}
