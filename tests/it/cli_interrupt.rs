//! SIGINT and SIGTERM: one JSON document if requested, then termination by the signal.
#![cfg(unix)]

use std::io::{BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mk::api::Service;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::eventually;
use crate::support::mk::{CONSOLE_KEY, CommandOutput, INFERENCE_KEY, Mk, VERIFY_KEY};
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{FakeProvider, Reply, claim, claims};
use crate::support::pty::{INTERRUPTED, Person};
use crate::support::scripted::{self, Scripted, Step};
use crate::support::serve::signal;
use crate::support::server::{Setup, TestServer};

const SIGINT: Option<i32> = Some(2);
const SIGTERM: Option<i32> = Some(15);

fn spawn(call: &Mk) -> Child {
    call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Interrupts a command and waits for its end.
async fn interrupted(child: Child) -> CommandOutput {
    signalled(child, "INT").await
}

async fn signalled(mut child: Child, name: &str) -> CommandOutput {
    let open = child.stdin.take();
    signal(&child, name);
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    drop(open);
    CommandOutput {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn is_interrupt_document(document: &Value) -> bool {
    document["schema"] == "mk.error/1"
        && document["error"]["kind"] == "interrupted"
        && document["exit"] == 130
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_json_command_still_prints_its_document() {
    for arguments in [
        &["verify", "The Eiffel Tower is in Paris.", "--json"][..],
        &["verify", "The Eiffel Tower is in Paris.", "--jsonl"],
        &["verify", "--lines", "-", "--json"],
        &["chat", "hi", "-m", "a/b", "--json", "-q"],
        &["models", "--json"],
        &["apps", "list", "--json"],
    ] {
        let server = Scripted::start(|_| vec![Step::Hang]).await;
        let call = Mk::new().args(arguments.iter().copied()).env("MK_SERVER", &server.base);
        let call = [
            ("MK_VERIFY_KEY", VERIFY_KEY),
            ("MK_INFERENCE_KEY", INFERENCE_KEY),
            ("MK_CONSOLE_KEY", CONSOLE_KEY),
        ]
        .into_iter()
        .fold(call, |call, (variable, key)| call.env(variable, key));
        let mut child = spawn(&call);
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x\n").unwrap();
        eventually("the request has arrived", || !server.requests().is_empty()).await;
        let ran = interrupted(child).await;
        assert_eq!(ran.status.signal(), SIGINT, "{arguments:?}: {ran:?}");
        assert!(is_interrupt_document(&ran.json()), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_keeps_the_verified_statements() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" if ask.block("SECTION").contains("endless") => Reply::Hang,
        "claims" => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let call = Mk::new()
        .args(["verify", "--lines", "facts.txt", "--jobs", "1", "--json"])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &server.key(Service::Verify));
    std::fs::write(call.home().join("facts.txt"), "The Eiffel Tower is in Paris.\nendless\n").unwrap();
    let child = spawn(&call);
    eventually("the second statement is sent", || provider.requests_for("extractor").len() == 2).await;
    let ran = interrupted(child).await;
    assert_eq!(ran.status.signal(), SIGINT, "{ran:?}");
    let document = ran.json();
    assert!(is_interrupt_document(&document), "{ran:?}");
    let found = &document["partial"];
    assert_eq!((&found["schema"], &found["exit"]), (&"mk.verify.batch/1".into(), &130.into()), "{ran:?}");
    assert_eq!(found["statements"].as_array().unwrap().len(), 1, "{ran:?}");
    assert_eq!(found["statements"][0]["results"][0]["assessment"], "TRUE", "{ran:?}");

    let call = Mk::new()
        .args(["verify", "--lines", "facts.txt", "--jobs", "1", "--receipt", "receipts"])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", &server.key(Service::Verify));
    std::fs::write(call.home().join("facts.txt"), "The Eiffel Tower is in Paris.\nendless\n").unwrap();
    let child = spawn(&call);
    eventually("the second statement is sent", || provider.requests_for("extractor").len() == 4).await;
    let ran = interrupted(child).await;
    assert!(
        ran.stderr.contains("1 statement: 1 verified · 1 of 1 sentence checked · 1 claim: ✓ 1 true · "),
        "{ran:?}"
    );
    let receipts = std::fs::read_to_string(call.home().join("receipts")).unwrap();
    assert_eq!(receipts.lines().count(), 1, "it was paid for");
}

/// A text whose first claim no model answers.
const HALF_STALLED: &str =
    "The capital of Australia is Sydney [sandbox:stall]. The Eiffel Tower is in Paris.";

#[test]
fn an_interrupt_leaves_the_verified_claims_on_the_terminal() {
    for view in ["list", "table"] {
        let call = Mk::new().args(["verify", "--sandbox", "--view", view, HALF_STALLED]);
        let mut person = Person::at(&call.command());
        person.until_on_screen("TRUE");
        person.types("\x03");
        person.until_on_screen("interrupted");
        let screen = person.screen();
        assert!(
            screen.contains("TRUE") && screen.contains("Eiffel") && !screen.contains("Sydney"),
            "{screen}"
        );
        assert!(screen.contains("only 1 of 2 claims was verified"), "{screen}");
        assert!(screen.ends_with("interrupted"), "{screen}");
        assert_eq!(person.end().0, INTERRUPTED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_keeps_the_verified_claims_of_one_statement() {
    for (format, is_json) in [(&["--json"][..], true), (&[], false)] {
        let call = Mk::new()
            .args(["verify", "--sandbox", "--progress", "lines", HALF_STALLED])
            .args(format.iter().copied());
        let mut child = spawn(&call);
        let mut progress = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(progress.any(|line| line.unwrap().contains("1/2 TRUE")));
        let ran = interrupted(child).await;
        assert_eq!(ran.status.signal(), SIGINT, "{ran:?}");
        if is_json {
            let document = ran.json();
            let found = &document["partial"];
            assert!(is_interrupt_document(&document), "{ran:?}");
            assert_eq!((&found["schema"], &found["exit"]), (&"mk.verify/1".into(), &130.into()), "{ran:?}");
            assert_eq!((&found["claims"], found["results"].as_array().unwrap().len()), (&2.into(), 1));
            let claim = &found["results"][0];
            assert_eq!(claim["assessment"], "TRUE", "{ran:?}");
            assert_eq!((&claim["line"], &claim["column"]), (&1.into(), &53.into()), "{ran:?}");
        } else {
            assert_eq!(ran.stdout, "2\tTRUE\tTTT\tThe Eiffel Tower is in Paris.\n", "{ran:?}");
        }
    }
}

/// A server whose extractor and panel do what these tests need: a false tower, and a third that no model answers.
async fn towers() -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let section = ask.block("SECTION");
            let heights = [(1, "9 m"), (2, "8 m"), (3, "7 m")];
            let found = heights.map(|(n, height)| (format!("Tower {n} is {height} high."), n, height));
            let found = found.iter().filter(|(text, ..)| section.contains(text));
            let found = found
                .map(|(text, n, height)| claim(text, &format!("How high is tower {n}?"), height, &["100 m"]));
            claims(&found.collect::<Vec<_>>())
        }
        _ if ask.text().contains("tower 3") => Reply::Hang,
        _ if ask.options().values().any(|option| option == "9 m") => ask.choose("9 m"),
        _ => ask.choose("100 m"),
    })
    .await;
    (Setup::new(config(&provider.base_url)).start().await, provider)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_extraction_says_how_far_it_came() {
    let call = Mk::new().args(["extract", "--sandbox", "--jobs", "1", "--lines", "facts.txt"]);
    let lines = "Two plus two is four.\nThe capital of Japan is Tokyo. [sandbox:stall=extractor]\n";
    std::fs::write(call.home().join("facts.txt"), lines).unwrap();
    let mut child = spawn(&call);
    let mut results = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(results.next().unwrap().unwrap().contains("CLAIM"));
    let ran = interrupted(child).await;
    assert_eq!(ran.status.signal(), SIGINT, "{ran:?}");
    assert!(ran.stderr.contains("1 statement · 1 claim · its sentence is accounted for · "), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_says_what_was_found_and_names_what_is_false_even_with_q() {
    let (server, _provider) = towers().await;
    let text = "Tower 1 is 9 m high. Tower 2 is 8 m high. Tower 3 is 7 m high.";
    let lines = "Tower 1 is 9 m high.\nTower 2 is 8 m high.\nTower 3 is 7 m high.\n";
    let so_far = "only 2 of 3 claims were verified: ✓ 1 true, ✗ 1 false\n";
    let of_lines = "2 statements: 2 verified · 2 of 2 sentences checked · 2 claims: ✓ 1 true, ✗ 1 false · ";
    for (arguments, told, total) in [
        (&[text][..], 2, so_far),
        (&["-q", "--jsonl", text], 2, so_far),
        (&["-q", "--jsonl", "--lines", "facts.txt"], 4, of_lines),
    ] {
        let call = Mk::new()
            .args(["verify", "--jobs", "1"])
            .args(arguments.iter().copied())
            .env("MK_SERVER", &server.base)
            .env("MK_API_KEY", &server.key(Service::Verify));
        std::fs::write(call.home().join("facts.txt"), lines).unwrap();
        let mut child = spawn(&call);
        let results = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(results.take(told).filter_map(Result::ok).count(), told, "{arguments:?}");
        let ran = interrupted(child).await;
        assert_eq!(ran.status.signal(), SIGINT, "{ran:?}");
        assert!(ran.stderr.contains("FALSE         Tower 2 is 8 m high."), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(total), "{arguments:?}: {ran:?}");
    }
}

/// A server that never answers `endless`, and records when a client has closed the connection of another response.
async fn server_with_an_endless_one() -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let has_closed = Arc::new(AtomicBool::new(false));
    let noted = has_closed.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let noted = noted.clone();
            tokio::spawn(async move {
                let request = scripted::read_request(&mut stream).await;
                if request.contains("endless") {
                    std::future::pending::<()>().await;
                }
                let answer = scripted::about(&request, scripted::stream(scripted::COMPLETED));
                stream.write_all(&answer).await.unwrap();
                while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                noted.store(true, Ordering::Relaxed);
            });
        }
    });
    (base, has_closed)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_keeps_statements_waiting_for_an_earlier_one() {
    for (format, expected) in [(&["--json"][..], "\"line\":2"), (&[], "2\t-\tNOTHING\t")] {
        let (base, has_closed) = server_with_an_endless_one().await;
        let call = Mk::new()
            .args(["verify", "--lines", "facts.txt", "--jobs", "2"])
            .args(format.iter().copied())
            .env("MK_SERVER", &base)
            .env("MK_VERIFY_KEY", VERIFY_KEY);
        std::fs::write(call.home().join("facts.txt"), "endless\nquick\n").unwrap();
        let child = spawn(&call);
        eventually("the second statement is done", || has_closed.load(Ordering::Relaxed)).await;
        let ran = interrupted(child).await;
        assert_eq!(ran.status.signal(), SIGINT, "{ran:?}");
        assert!(ran.stdout.contains(expected), "{ran:?}");
    }
}

/// Interrupts a command while it waits for stdin.
#[cfg(target_os = "linux")]
async fn interrupted_at_stdin(arguments: &[&str]) -> CommandOutput {
    let child = spawn(&Mk::new().args(arguments.iter().copied()));
    eventually("a thread reads", || threads(&child) > 1).await;
    interrupted(child).await
}

#[cfg(target_os = "linux")]
fn threads(child: &Child) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_is_reported_while_waiting_for_stdin() {
    for arguments in [
        &["verify", "--sandbox", "-"][..],
        &["verify", "--sandbox", "-f", "-"],
        &["chat", "--sandbox", "-"],
        &["keys", "check", "-"],
        &["keys", "show", "-"],
        &["login", "--server", "http://127.0.0.1:0"],
    ] {
        let ran = interrupted_at_stdin(arguments).await;
        assert_eq!(ran.status.signal(), SIGINT, "{arguments:?}: {ran:?}");
        assert!(ran.stdout.is_empty() && ran.stderr.ends_with("interrupted\n"), "{arguments:?}: {ran:?}");
    }
    for arguments in [&["verify", "--sandbox", "-", "--json"][..], &["keys", "check", "-", "--json"]] {
        let ran = interrupted_at_stdin(arguments).await;
        assert_eq!(ran.status.signal(), SIGINT, "{arguments:?}: {ran:?}");
        assert!(is_interrupt_document(&ran.json()), "{arguments:?}: {ran:?}");
    }
}

/// As in `cat | mk verify -`, where Ctrl-C ends both: a text cut off by it must not be verified.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_is_not_mistaken_for_the_end_of_stdin() {
    for _ in 0..20 {
        let mut child = spawn(&Mk::new().args(["verify", "--sandbox", "-"]));
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"Two plus two is").unwrap();
        eventually("a thread reads", || threads(&child) > 1).await;
        signal(&child, "STOP");
        signal(&child, "INT");
        drop(child.stdin.take());
        signal(&child, "CONT");
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
        assert_eq!(output.status.signal(), SIGINT, "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "interrupted\n");
    }
}

#[test]
fn an_interrupt_while_typing_a_text_is_reported_immediately() {
    let mut person = Person::at(&Mk::new().args(["verify", "--sandbox", "-"]).command());
    person.until("waiting for text on standard input");
    person.types("The Eiffel");
    person.types("\x03");
    person.until("interrupted");
    assert_eq!(person.end().0, INTERRUPTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_json_an_interrupt_prints_no_document() {
    let server = Scripted::start(|_| vec![Step::Hang]).await;
    let call = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &server.base)
        .env("MK_VERIFY_KEY", VERIFY_KEY);
    let child = spawn(&call);
    eventually("the request has arrived", || !server.requests().is_empty()).await;
    let ran = interrupted(child).await;
    assert_eq!((ran.status.signal(), ran.stdout.as_str()), (SIGINT, ""), "{ran:?}");
    assert_eq!(ran.stderr, "interrupted\n");
}

/// `timeout` sends only one SIGTERM, so the first one must suffice.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_signal_terminates_a_command_whose_reader_has_stalled() {
    for (name, expected) in [("TERM", SIGTERM), ("INT", SIGINT)] {
        let (reader, mut full) = UnixStream::pair().unwrap();
        full.set_nonblocking(true).unwrap();
        while full.write(&[b'x'; 4096]).is_ok() {}
        full.set_nonblocking(false).unwrap();
        let call = Mk::new().args(["verify", "--sandbox", "Two plus two is five."]);
        let mut command = call.command();
        let child = command.stdin(Stdio::null()).stdout(OwnedFd::from(full)).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        drop(command);
        // Long enough to block on its output; before that, the signal is handled as usual.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let ran = tokio::time::timeout(Duration::from_secs(20), signalled(child, name)).await.unwrap();
        assert_eq!(ran.status.signal(), expected, "{ran:?}");
        drop(reader);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_a_command_like_an_interrupt() {
    let server = Scripted::start(|_| vec![Step::Hang]).await;
    let call = Mk::new()
        .env("MK_SERVER", &server.base)
        .env("MK_VERIFY_KEY", VERIFY_KEY)
        .env("MK_INFERENCE_KEY", INFERENCE_KEY);
    for (asked, line) in ["verify x --json", "models --json", "verify x"].into_iter().enumerate() {
        let child = spawn(&call.clone().args(line.split(' ')));
        eventually("the request has arrived", || server.requests().len() > asked).await;
        let ran = signalled(child, "TERM").await;
        assert_eq!((ran.status.signal(), ran.stderr.as_str()), (SIGTERM, "terminated\n"), "{line}: {ran:?}");
        if line.ends_with("--json") {
            let document = ran.json();
            assert_eq!((&document["error"]["kind"], &document["exit"]), (&"terminated".into(), &143.into()));
        } else {
            assert_eq!(ran.stdout, "");
        }
    }
}
