//! `mk verify` in scripts: streams, formats, exit codes.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::PROMPT;
use crate::support::mk::{CommandOutput, Mk, VERIFY_KEY};
use crate::support::panel::{agreeing_panel, config, failing_on_broken, hanging_panel, with_panel};
use crate::support::provider::{FakeProvider, Reply, claim, claims};
use crate::support::scrape::scrape_until;
use crate::support::server::{Setup, TestServer};

/// Statements that the sandbox assesses as TRUE and FALSE, and one without a consensus.
const TRUE: &str = "The Eiffel Tower is in Paris.";
const FALSE: &str = "The capital of Australia is Sydney.";
const UNSURE: &str = "The Nile is the longest river in the world.";

fn sandbox(arguments: &[&str]) -> CommandOutput {
    Mk::new().args(["verify", "--sandbox"]).args(arguments.iter().copied()).run()
}

fn against(server: &TestServer, arguments: &[&str]) -> Mk {
    Mk::new()
        .args(["verify"])
        .args(arguments.iter().copied())
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &server.key(Service::Verify))
}

#[test]
fn the_exit_code_reflects_the_assessments() {
    assert_eq!(sandbox(&[TRUE]).code(), 0);
    assert_eq!(sandbox(&[&format!("{TRUE} {FALSE}")]).code(), 10);
    assert_eq!(sandbox(&[&format!("{TRUE} {UNSURE}")]).code(), 11);
    assert_eq!(sandbox(&["What a lovely day!"]).code(), 12);
    assert_eq!(sandbox(&["--fail-on", "false", UNSURE]).code(), 0);
    assert_eq!(sandbox(&["--fail-on", "false", FALSE]).code(), 10);
}

#[test]
fn a_pipe_gets_only_tab_separated_lines() {
    let ran = sandbox(&[&format!("{TRUE} {FALSE} {UNSURE}")]);
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert_eq!(lines[0], ["1", "TRUE", "TTT", TRUE]);
    assert_eq!((lines[1][1], lines[1][3]), ("FALSE", FALSE));
    assert_eq!((lines[2][1], lines[2][2]), ("NO_CONSENSUS", "TFU"));
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    assert!(ran.stderr.to_lowercase().contains("sandbox"), "simulated answers are marked");
}

#[test]
fn answer_letters_are_in_panel_order() {
    let statement = "The capital of Australia is Canberra. [sandbox:fail=alpha] [sandbox:fail=delta]";
    let ran = sandbox(&[statement]);
    assert!(ran.stdout.starts_with("1\tNO_CONSENSUS\t-FT-\t"), "{ran:?}");
}

#[test]
fn quiet_prints_nothing_on_stdout_but_keeps_the_exit_code_and_names_why() {
    let ran = sandbox(&["-q", FALSE]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (10, ""));
    assert!(ran.stderr.starts_with(&format!("FALSE         {FALSE}\n")), "{ran:?}");
    assert_eq!(sandbox(&["-q", TRUE]).stderr, "");
}

#[test]
fn json_output_is_one_document_with_a_schema() {
    let ran = sandbox(&["--json", &format!("{TRUE} {FALSE}")]);
    let document = ran.json();
    assert_eq!(document["schema"], "mk.verify/1");
    let text = document.to_string();
    assert!(text.contains("\"mode\":\"sandbox\""), "{text}");
    assert!(text.contains("\"assessment\":\"TRUE\"") && text.contains("\"assessment\":\"FALSE\""));
    assert_eq!(ran.code(), 10);
}

#[test]
fn jsonl_prints_one_object_per_line() {
    let ran = sandbox(&["--jsonl", &format!("{TRUE} {FALSE}")]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2, "{ran:?}");
    assert_eq!(lines.iter().filter(|line| line["assessment"] == "TRUE").count(), 1);
}

#[test]
fn the_summary_of_json_lines_has_all_that_the_document_has_beside_text_and_claims() {
    let document = sandbox(&["--json", TRUE]).json();
    let last = sandbox(&["--jsonl", TRUE]).stdout.lines().last().unwrap().to_owned();
    let summary: Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&summary["type"], &summary["claims"]), (&"summary".into(), &1.into()), "{summary}");
    for name in document.as_object().unwrap().keys() {
        let is_elsewhere = ["original_fact", "results"].contains(&name.as_str());
        assert_eq!(summary.get(name).is_none(), is_elsewhere, "{name}: {summary}");
    }
}

#[test]
fn colour_is_used_only_if_requested() {
    let ran = |arguments: &[&str], forced: bool| {
        let call = Mk::new().args([&["verify", "--sandbox", TRUE][..], arguments].concat());
        let ran = if forced { call.env("CLICOLOR_FORCE", "1").run() } else { call.run() };
        assert_eq!(ran.code(), 0, "{ran:?}");
        ran.stdout
    };
    let cyan = "\u{1b}[36m";
    for view in ["list", "table"] {
        assert!(ran(&["--view", view, "--color", "always"], false).contains(cyan), "{view}");
        assert!(ran(&["--view", view], true).contains(cyan), "{view}");
        assert!(!ran(&["--view", view], false).contains('\u{1b}'), "{view}");
        assert!(!ran(&["--view", view, "--color", "never"], true).contains('\u{1b}'), "{view}");
    }
    // Piped lines never have colour.
    assert!(!ran(&["--color", "always"], true).contains('\u{1b}'));
}

#[test]
fn statements_are_read_from_stdin_and_files() {
    let stdin = Mk::new().args(["verify", "--sandbox", "-"]).stdin(TRUE).run();
    assert_eq!(stdin.code(), 0, "{stdin:?}");
    let mk = Mk::new().args(["verify", "--sandbox", "-f", "fact.txt"]);
    std::fs::write(mk.home().join("fact.txt"), FALSE).unwrap();
    assert_eq!(mk.run().code(), 10);
    let binary = Mk::new().args(["verify", "--sandbox", "-"]).stdin(b"\xff\xfe\x00".to_vec()).run();
    assert_eq!(binary.code(), 2, "{binary:?}");
    assert!(binary.stderr.contains("UTF-8"), "{binary:?}");
    let empty = Mk::new().args(["verify", "--sandbox", "-"]).run();
    assert_eq!(empty.code(), 2, "{empty:?}");
    let missing = sandbox(&["-f", "nowhere.txt"]);
    assert_eq!(missing.code(), 2, "{missing:?}");
    assert!(missing.stderr.contains("nowhere.txt"));
}

#[test]
fn a_file_that_cannot_be_used_does_not_stop_the_others() {
    let mk = Mk::new().args(["verify", "--sandbox"]);
    let mk = mk.args(["-f", "true.txt", "-f", "nowhere.txt", "-f", "binary", "-f", "false.txt"]);
    std::fs::write(mk.home().join("true.txt"), TRUE).unwrap();
    std::fs::write(mk.home().join("false.txt"), FALSE).unwrap();
    std::fs::write(mk.home().join("binary"), b"\xff\xfe\x00").unwrap();
    let ran = mk.run();
    assert_eq!(ran.code(), 2, "the worst of all: {ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("true.txt\t1\tTRUE\t"), "{ran:?}");
    assert!(lines[1].starts_with("nowhere.txt\t-\tERROR\tusage\tcannot read nowhere.txt: "), "{ran:?}");
    assert_eq!(lines[2], "binary\t-\tERROR\tusage\tbinary holds binary data, not text", "{ran:?}");
    assert!(lines[3].starts_with("false.txt\t1\tFALSE\t"), "{ran:?}");

    let document = mk.args(["--json"]).run().json();
    assert_eq!(document["statements"][1]["error"]["kind"], "usage", "{document}");
    assert_eq!(document["statements"][3]["results"][0]["assessment"], "FALSE", "{document}");
}

#[test]
fn nothing_to_verify_is_said_in_a_pipe_too() {
    let ran = sandbox(&["What a lovely day!"]);
    assert_eq!(ran.code(), 12, "{ran:?}");
    assert!(ran.stderr.contains("\nnothing to verify · ") && ran.stderr.ends_with(" · exit 12\n"), "{ran:?}");
    assert!(sandbox(&["-q", "What a lovely day!"]).stderr.starts_with("nothing to verify · "));
    assert!(!sandbox(&[TRUE]).stderr.contains("nothing"));
}

#[test]
fn usage_errors_exit_with_2() {
    for arguments in [
        &["verify", "--sandbox"][..],
        &["verify", "--sandbox", "--min-required", "7", "x"],
        &["verify", "--sandbx", "x"],
        &["verfy", "x"],
        &["verify", "--sandbox", "--total-models", "many", "x"],
    ] {
        let ran = Mk::new().args(arguments.iter().copied()).run();
        assert_eq!(ran.code(), 2, "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicting_values_from_files_are_reported_by_key_and_location() {
    let ours = Mk::new().args(["verify", "--sandbox", "x"]);
    let project = ours.home().join(".mk.toml");
    std::fs::write(&project, "[verify]\nmin_required = 3\n").unwrap();
    let flag_and_file = ours.clone().args(["--total-models", "2"]).run();
    assert_eq!(
        (flag_and_file.code(), flag_and_file.stderr),
        (
            2,
            format!(
                "error: --total-models 2 asks fewer models than verify.min_required = 3 ({}:2) needs\n\
                 hint: change the file, or override it with --min-required\n",
                project.display()
            )
        )
    );
    let user = ours.home().join(".config/mk/config.toml");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, "[verify]\ndomain = \"general\"\ntotal_models = 2\n").unwrap();
    let files = ours.clone().run();
    let expected = format!(
        "error: verify.total_models = 2 ({}:3) asks fewer models than verify.min_required = 3 ({}:2) needs\n",
        user.display(),
        project.display()
    );
    assert!(files.code() == 2 && files.stderr.starts_with(&expected), "{files:?}");
    let flags = ours.clone().args(["--total-models", "2", "--min-required", "3"]).run();
    assert_eq!(flags.stderr, "error: --total-models 2 asks fewer models than --min-required 3 needs\n");
    assert_eq!(ours.args(["--total-models", "3", "-q"]).run().code(), 12);

    let (server, _provider) = agreeing_panel().await;
    let theirs = against(&server, &["The Eiffel Tower is in Paris."]);
    let project = theirs.home().join(".mk.toml");
    std::fs::write(&project, "[verify]\ntotal_models = 9\n").unwrap();
    let told = theirs.run_beside().await;
    let expected = format!("error: verify.total_models ({}:2) must be 2 or 3, not 9", project.display());
    assert!(told.code() == 2 && told.stderr.starts_with(&expected), "{told:?}");
    let told = theirs.args(["--total-models", "8"]).run_beside().await;
    assert!(told.stderr.starts_with("error: --total-models must be"), "{told:?}");
}

#[test]
fn a_blank_text_is_refused_before_a_key_is_asked_for() {
    for (command, name) in [("verify", "the statement"), ("chat", "the prompt")] {
        for blank in ["", " \n\t"] {
            let ran = Mk::new().args([command, blank]).run();
            assert_eq!(
                (ran.code(), ran.stderr.as_str()),
                (2, &*format!("error: {name} is empty\n")),
                "{ran:?}"
            );
        }
    }
}

#[test]
fn a_missing_or_unsuitable_key_is_reported_with_a_hint() {
    let ran = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", "http://127.0.0.1:0")
        .run();
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert!(ran.stderr.contains("error: no API key for http://127.0.0.1:0"), "{ran:?}");
    assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("--sandbox"), "{ran:?}");
    assert!(ran.stderr.contains("mk keys create --service verify"), "{ran:?}");
    let foreign = Mk::new().args(["keys", "create", "--service", "inference"]).run().stdout;
    let ran =
        Mk::new().args(["verify", "The Eiffel Tower is in Paris."]).env("MK_API_KEY", foreign.trim()).run();
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert!(
        ran.stderr.contains("error: MK_API_KEY holds an inference key; this command needs a verify key for"),
        "{ran:?}"
    );
    let beside = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_INFERENCE_KEY", foreign.trim())
        .run();
    assert!(
        beside.code() == 4 && !beside.stderr.contains("MK_INFERENCE_KEY"),
        "an inference key alone is no mistake: {beside:?}"
    );
    let json = Mk::new().args(["verify", "--json", "x"]).env("MK_SERVER", "http://127.0.0.1:0").run();
    assert_eq!(json.code(), 4);
    assert!(json.json()["error"].is_object(), "{json:?}");
}

#[test]
fn an_unreachable_server_exits_with_6() {
    let ran = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", "http://127.0.0.1:0")
        .env("MK_API_KEY", VERIFY_KEY)
        .run();
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert!(ran.stderr.contains("cannot reach http://127.0.0.1:0"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_key_exits_with_4_and_a_failed_provider_with_5() {
    let (server, _provider) = with_panel(|_, _| Reply::status(500, &json!({}))).await;
    let ran = against(&server, &["The Eiffel Tower is in Paris."]).run_beside().await;
    assert_eq!(ran.code(), 5, "{ran:?}");
    let wrong = against(&server, &["x"]).env("MK_API_KEY", &server.key(Service::Inference));
    let ran = wrong.env("MK_VERIFY_KEY", VERIFY_KEY).run_beside().await;
    assert_eq!(ran.code(), 4, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_exits_with_7_and_reports_the_wait() {
    let (server, _provider) = agreeing_panel().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(1));
    let call = against(&server, &["The Eiffel Tower is in Paris."]).env("MK_API_KEY", &key);
    assert_eq!(call.run_beside().await.code(), 0);
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 7, "{ran:?}");
    assert!(ran.stderr.contains("too many requests per minute; free again in"), "{ran:?}");
    assert_eq!(call.clone().args(["--json"]).run_beside().await.json()["exit"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_is_posted_once() {
    let (server, provider) = agreeing_panel().await;
    assert_eq!(against(&server, &["The Eiffel Tower is in Paris."]).run_beside().await.code(), 0);
    assert_eq!(provider.requests_for("extractor").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_exits_with_8() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let posts = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut posts = 0;
        // The first comes when the program has started, however long that takes on a busy machine.
        let mut patience = PROMPT * 6;
        while let Ok(Ok((mut stream, _))) = tokio::time::timeout(patience, listener.accept()).await {
            posts += 1;
            patience = Duration::from_secs(2);
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                          event: starting\ndata: {\"status\":\"starting\"}\n\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        posts
    });
    let call = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &base)
        .env("MK_API_KEY", VERIFY_KEY);
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 8, "{ran:?}");
    assert_eq!(posts.await.unwrap(), 1, "the request was sent again after the stream ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn model_output_cannot_control_the_terminal() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => claims(&[claim(
            "\u{1b}The Eiffel\tTower is in\u{9b}\u{202e} Paris.",
            "Where?",
            "Paris",
            &["Rome", "Oslo"],
        )]),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let ran = against(&server, &["The Eiffel Tower is in Paris."]).run_beside().await;
    let fields: Vec<&str> = ran.stdout.trim_end().split('\t').collect();
    assert_eq!(fields.len(), 4, "{ran:?}");
    assert!(!ran.stdout.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_is_verified_separately() {
    let (server, provider) = failing_on_broken().await;
    let call = against(&server, &["--lines", "facts.txt", "--jobs", "2", "--json"]);
    std::fs::write(
        call.home().join("facts.txt"),
        "The Eiffel Tower is in Paris.\nbroken\n\nThe Eiffel Tower is in Paris.\n",
    )
    .unwrap();
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 5, "{ran:?}");
    assert_eq!(provider.requests_for("extractor").len(), 3, "empty lines are skipped");
    let text = ran.json().to_string();
    assert_eq!(text.matches("\"assessment\":\"TRUE\"").count(), 2, "{text}");
    let lines = against(&server, &["--lines", "facts.txt", "--jsonl"]);
    std::fs::write(lines.home().join("facts.txt"), "The Eiffel Tower is in Paris.\nbroken\n").unwrap();
    let ran = lines.run_beside().await;
    let documents = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut types: Vec<_> = documents.map(|document| document["type"].as_str().unwrap().to_owned()).collect();
    types.sort();
    assert_eq!(types, ["claim", "error", "summary", "total"], "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_key_stops_further_statements() {
    let (server, _provider) = agreeing_panel().await;
    let call = against(&server, &["--lines", "facts.txt", "--jobs", "2"]);
    std::fs::write(call.home().join("facts.txt"), "a statement\n".repeat(40)).unwrap();
    let ran = call.env("MK_API_KEY", VERIFY_KEY).run_beside().await;
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 40, "each line is reported: {ran:?}");
    assert!(
        ran.stdout.lines().last().unwrap().contains("not asked, because another one was refused: "),
        "{ran:?}"
    );
    let refused = r#"mk_http_requests_total{route="/verify/v1/stream",method="POST",status="401"}"#;
    let page =
        scrape_until(&server, "the rejected requests are counted", |page| page.get(refused) > 0.0).await;
    assert!((1.0..=2.0).contains(&page.get(refused)), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_reach_the_server() {
    const EIFFEL: &str = "The Eiffel Tower is in Paris.";
    let (server, provider) = with_panel(|_, ask| {
        let letter = ask.letter("Paris");
        Reply::json(&json!({"reason": "because", "answer": letter}))
    })
    .await;
    let call = against(
        &server,
        &["--domain", "legal", "--min-required", "3", "--total-models", "3", "--explain", "--json", EIFFEL],
    );
    let ran = call.run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let text = ran.json().to_string();
    assert!(text.contains("\"minRequired\":3") && text.contains("\"reason\":\"because\""), "{text}");
    assert!(provider.requests_for("extractor")[0].text().to_lowercase().contains("jurisdiction"));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_stops_the_work_and_terminates_the_process() {
    use std::os::unix::process::ExitStatusExt;
    let (server, provider) = hanging_panel().await;
    let mut child = against(&server, &["The Eiffel Tower is in Paris."]).command().spawn().unwrap();
    crate::support::eventually("the panel is called", || provider.in_flight() == 3).await;
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    assert_eq!(status.signal(), Some(2), "{status}");
    crate::support::eventually("the provider calls stop", || provider.in_flight() == 0).await;
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let mk = format!("{} verify --sandbox --jsonl '{TRUE} {FALSE} {UNSURE}'", env!("CARGO_BIN_EXE_mk"));
    let script = format!("{mk} 2>err.txt | true; echo ${{PIPESTATUS[0]}}");
    let home = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(&home)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var("PATH").unwrap())
        .output()
        .unwrap();
    let code = String::from_utf8(output.stdout).unwrap();
    let errors = std::fs::read_to_string(home.path().join("err.txt")).unwrap();
    assert!(["141", "10"].contains(&code.trim()), "{code} {errors}");
    assert!(!errors.contains("panicked") && !errors.contains("Broken pipe"), "{errors}");
}

#[cfg(unix)]
#[test]
fn a_text_argument_leaves_stdin_unread() {
    let script = format!(
        "printf 'a\\nb\\nc\\n' | while read -r line; do {} verify --sandbox -q '{TRUE}'; echo \"$line\"; done",
        env!("CARGO_BIN_EXE_mk")
    );
    let home = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var("PATH").unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a\nb\nc\n");
}
