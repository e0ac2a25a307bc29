//! `mk chat`, with a single prompt and as a conversation, against a server in front of a fake provider.

use mk::api::Service;
use serde_json::json;

use crate::support::breaks::{broken, gateway_retrying};
use crate::support::chat::gateway;
use crate::support::eventually;
use crate::support::mk::{CommandOutput, INFERENCE_KEY, Mk};
use crate::support::provider::{
    ModelRequest, Reply, StreamStep, done, finish_chunk, role_chunk, stream, text_chunk, usage_chunk,
};
use crate::support::pty::{self, INTERRUPTED, Person};
use crate::support::scripted::{self, Scripted};

fn sandbox(arguments: &[&str]) -> CommandOutput {
    Mk::new().args(["chat", "--sandbox"]).args(arguments.iter().copied()).run()
}

/// A stream of `Hello` followed by these steps.
fn hello_and(ends: &[StreamStep]) -> Reply {
    let mut beats = vec![role_chunk(), text_chunk("Hello"), StreamStep::APART];
    beats.extend(ends.iter().cloned());
    Reply::Stream(beats)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_goes_to_stdout_and_its_usage_to_stderr() {
    let gateway = gateway(|_| stream(&["Hel", "lo", "\n  world"])).await;
    let ran = gateway.mk_chat(&["Say hello"]).run_beside().await;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "Hello\n  world\n"), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(lines[0].starts_with("asking fake/m;"), "{ran:?}");
    assert!(lines[1].starts_with("fake/m · 10 tokens · ") && !lines[1].contains('$'), "{ran:?}");
    let named = gateway.mk_chat(&["-m", "fake/m", "Say hello"]).run_beside().await;
    assert!(named.stderr.starts_with("fake/m · 10 tokens · ") && !named.stderr.contains('$'), "{named:?}");
    for arguments in [&["Say hello"][..], &["-m", "fake/m", "Say hello"]] {
        let call = gateway.mk_chat(arguments);
        let shown = tokio::task::spawn_blocking(move || pty::run(&call, 80, 24)).await.unwrap().last;
        assert!(shown.contains("fake/m · 10 tokens · <$0.0001 · "), "{shown}");
    }
    let quiet = gateway.mk_chat(&["-q", "Say hello"]).run_beside().await;
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("Hello\n  world\n", ""), "{quiet:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_reach_the_provider() {
    let gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let arguments =
        ["-m", "fake/n", "--system", "Be brief.", "--temperature", "0.5", "--max-tokens", "9", "Why?"];
    let ran = gateway.mk_chat(&arguments).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(!ran.stderr.contains("asking"), "no notice about a model that was named: {ran:?}");
    let body = &gateway.provider.requests()[0].body;
    assert_eq!((&body["model"], &body["temperature"]), (&json!("n"), &json!(0.5)));
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(9), &json!(true)));
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]);
    assert_eq!(body["messages"], messages);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_answer_keeps_its_text_and_exits_with_5_or_8() {
    let broken = gateway(|_| hello_and(&[StreamStep::Cut])).await;
    let ran = broken.mk_chat(&["The Eiffel Tower is in Paris."]).run_beside().await;
    assert_eq!((ran.code(), ran.stdout.as_str()), (5, "Hello\n"), "the server reported the break: {ran:?}");
    assert!(
        ran.stderr.contains("error: the connection to the provider fake broke during the answer"),
        "{ran:?}"
    );
    let json = broken.mk_chat(&["--json", "x"]).run_beside().await;
    assert_eq!(json.code(), 5);
    assert_eq!(json.json()["message"]["content"], "Hello");
    assert_eq!((&json.json()["exit"], &json.json()["finish_reason"]), (&json!(5), &json!(null)));
    let request_id = json.json()["error"]["request_id"].as_str().unwrap().to_owned();
    let told = broken.mk_chat(&["-v", "x"]).run_beside().await.stderr;
    assert_eq!(told.matches("broke during the answer").count(), 1, "reported once: {told}");
    assert!(request_id.starts_with("req_"), "the id to find it in the log: {json:?}");

    let chunk = r#"data: {"model":"fake/m","choices":[{"index":0,"delta":{"content":"Hello"}}]}"#;
    let finish = r#"data: {"model":"fake/m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    for (name, body) in [
        ("nothing more", format!("{chunk}\n\n")),
        ("no [DONE]", format!("{chunk}\n\n{finish}\n\n")),
        ("no reason", format!("{chunk}\n\ndata: [DONE]\n\n")),
    ] {
        let server = Scripted::answering(scripted::stream(&body)).await;
        let ran = Mk::new()
            .args(["chat", "-m", "fake/m", "x"])
            .env("MK_SERVER", &server.base)
            .env("MK_INFERENCE_KEY", INFERENCE_KEY)
            .run_beside()
            .await;
        assert_eq!((ran.code(), ran.stdout.as_str()), (8, "Hello\n"), "{name}: {ran:?}");
        assert!(ran.stderr.contains(" broke off\n"), "{name}: {ran:?}");
        assert_eq!(server.requests().len(), 1, "{name}: the request was sent again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_a_time_limit_and_a_size() {
    let gateway = gateway(|_| hello_and(&[StreamStep::Stall])).await;
    let ran = gateway.mk_chat(&["-m", "fake/m", "--timeout", "1s", "x"]).run_beside().await;
    assert_eq!((ran.code(), ran.stdout.as_str()), (6, "Hello\n"), "{ran:?}");
    assert!(ran.stderr.contains("no whole answer within 1 s"), "{ran:?}");
    let json = gateway.mk_chat(&["-m", "fake/m", "--timeout", "1s", "--json", "x"]).run_beside().await.json();
    assert_eq!((&json["message"]["content"], &json["exit"]), (&json!("Hello"), &json!(6)));
    eventually("the provider's calls stop", || gateway.provider.in_flight() == 0).await;

    let frame = format!("data: {}\n", "x".repeat(8000)).repeat(600) + "\n";
    let server = Scripted::answering(scripted::stream(&frame)).await;
    let huge = Mk::new().args(["chat", "-m", "fake/m", "x"]).env("MK_SERVER", &server.base);
    let ran = huge.env("MK_INFERENCE_KEY", INFERENCE_KEY).run_beside().await;
    assert_eq!(ran.code(), 5, "{ran:?}");
    assert!(ran.stderr.contains("too large"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_stream_looks_unbroken() {
    let gateway = gateway_retrying(1, "", |call, _| match call {
        0 => broken(&["Hel", "lo w"], vec![StreamStep::Cut]),
        _ => stream(&["Hello", " world"]),
    })
    .await;
    let ran = gateway.mk_chat(&["-m", "fake/m", "x"]).run_beside().await;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "Hello world\n"), "{ran:?}");
    assert_eq!(gateway.provider.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_failure_has_its_exit_code() {
    let gateway = gateway(|ask: &ModelRequest| match ask.text().as_str() {
        "busy" => Reply::status(503, &json!({})),
        _ => Reply::status(500, &json!({})),
    })
    .await;
    for (arguments, code, words) in [
        (&["-m", "fake/m", "x"][..], 5, "the provider fake failed"),
        (&["-m", "fake/m", "busy"], 7, "overloaded"),
        (&["-m", "nobody/m", "x"], 9, "mk models"),
        (&["-m", "fake/m", "--max-tokens", "0", "x"], 2, "--max-tokens"),
        (&["-m", "fake/m", "--temperature", "3", "x"], 2, "from 0 to 2"),
        (&["hello", "world"], 2, "mk chat \"…\""),
        (&[""], 2, "the prompt is empty"),
    ] {
        let ran = gateway.mk_chat(arguments).run_beside().await;
        assert_eq!((ran.code(), ran.stdout.as_str()), (code, ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {ran:?}");
    }
    let told = gateway.mk_chat(&["-v", "-m", "fake/m", "x"]).run_beside().await.stderr;
    assert!(told.contains("\ncode: provider_error\nrequest: req_"), "{told}");
    let proxy = Scripted::answering("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    let ran = gateway.mk_chat(&["-v", "-m", "fake/m", "x"]).env("MK_SERVER", &proxy.base).run_beside().await;
    assert_eq!(ran.code(), 5, "{ran:?}");
    assert!(
        !ran.stderr.contains("code:") && !ran.stderr.contains("request:"),
        "a proxy's response has neither: {ran:?}"
    );
    let wrong = gateway
        .mk_chat(&["The Eiffel Tower is in Paris."])
        .env("MK_INFERENCE_KEY", &gateway.server.key(Service::Verify));
    let ran = wrong.run_beside().await;
    assert_eq!(ran.code(), 4, "{ran:?}");
    assert!(ran.stderr.contains("--service inference"), "{ran:?}");
    let none = Mk::new().args(["chat", "x"]).env("MK_SERVER", "http://127.0.0.1:0");
    assert_eq!(none.run().code(), 4);
    let unreachable = none.env("MK_INFERENCE_KEY", INFERENCE_KEY).run();
    assert_eq!(unreachable.code(), 6, "{unreachable:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_output_is_one_document_streamed_or_not() {
    let gateway = gateway(|ask: &ModelRequest| match ask.body["stream"].as_bool() {
        Some(true) => stream(&["Hel", "lo"]),
        _ => Reply::Text("Hello".to_owned()),
    })
    .await;
    for (arguments, tokens) in [(&["--json", "x"][..], 10), (&["--json", "--no-stream", "x"], 110)] {
        let ran = gateway.mk_chat(arguments).run_beside().await;
        let document = ran.json();
        assert_eq!((&document["schema"], &document["exit"]), (&json!("mk.chat/1"), &json!(0)), "{ran:?}");
        assert_eq!((&document["model"], &document["finish_reason"]), (&json!("fake/m"), &json!("stop")));
        assert_eq!(document["message"], json!({"role": "assistant", "content": "Hello"}));
        assert_eq!(document["usage"]["total_tokens"], tokens);
    }
    let plain = gateway.mk_chat(&["--no-stream", "x"]).run_beside().await;
    assert_eq!(plain.stdout, "Hello\n");
    let failed = gateway.mk_chat(&["--json", "-m", "nobody/m", "x"]).run_beside().await;
    assert_eq!((failed.code(), &failed.json()["error"]["kind"]), (9, &json!("not_found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn model_output_cannot_control_the_terminal() {
    let gateway = gateway(|_| stream(&["a\u{1b}", "[2Jb\r", "\nc\u{9b}31m\u{202e}d"])).await;
    let ran = gateway.mk_chat(&["The Eiffel Tower is in Paris."]).run_beside().await;
    assert_eq!(ran.stdout, "a\u{fffd}[2Jb\nc\u{fffd}31m\u{fffd}d\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_gets_a_warning() {
    let gateway = gateway(|_| hello_and(&[finish_chunk("length"), usage_chunk(), done()])).await;
    let ran = gateway.mk_chat(&["The Eiffel Tower is in Paris."]).run_beside().await;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "Hello\n"));
    assert!(ran.stderr.contains("warning: the answer was cut off at the model's own limit"), "{ran:?}");
    let ran = gateway.mk_chat(&["--max-tokens", "2", "x"]).run_beside().await;
    assert!(ran.stderr.contains("warning: the answer was cut off at --max-tokens 2\n"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_was_chosen_in_the_conversation_is_blamed_as_that() {
    let (_, shown) = converse(Mk::new().args(["chat", "--sandbox"]), |person| {
        person.until("> ");
        person.types("/model sandbox/alhpa\n");
        person.until("did you mean sandbox/alpha?");
        person.types("What is 6 times 7?\n");
        person.until("/model: there is no model `sandbox/alhpa`");
        person.types("/exit\n");
    })
    .await;
    assert!(!shown.contains("-m: there is no model"), "{shown}");
}

#[test]
fn the_sandbox_needs_neither_server_nor_key() {
    let ran = sandbox(&["What is 6 times 7?"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stdout.contains("42"), "{ran:?}");
    assert!(ran.stderr.starts_with("SANDBOX: "), "{ran:?}");
    assert!(ran.stderr.contains("sandbox/alpha · ") && !ran.stderr.contains('$'), "{ran:?}");
    let json = sandbox(&["--json", "-m", "sandbox/beta", "x"]).json();
    assert_eq!((&json["mode"], &json["model"]), (&json!("sandbox"), &json!("sandbox/beta")));
    assert_eq!(sandbox(&["[sandbox:fail]"]).code(), 5);
    let garbage = sandbox(&["[sandbox:garbage]"]);
    assert_eq!(garbage.code(), 5, "{garbage:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_answers_from_a_server_are_marked() {
    let gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let ran = gateway.mk_chat(&["-m", "sandbox/alpha", "x"]).run_beside().await;
    assert_eq!(ran.stderr.matches("SANDBOX: ").count(), 1, "{ran:?}");
}

#[test]
fn stdin_is_read_only_for_a_dash() {
    let asked = Mk::new().args(["chat", "--sandbox", "-"]).stdin("What is 6 times 7?").run();
    assert!(asked.stdout.contains("42"), "{asked:?}");
    let script = format!(
        "printf '1\\n2\\n3\\n' | while read -r n; do '{}' chat --sandbox -q \"$n plus 1?\"; done",
        env!("CARGO_BIN_EXE_mk")
    );
    let home = tempfile::tempdir().unwrap();
    let output =
        std::process::Command::new("bash").args(["-c", &script]).env("HOME", home.path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3, "the loop runs to its end");
    for arguments in [&["chat", "--sandbox"][..], &["chat", "--sandbox", "--json"]] {
        let ran = Mk::new().args(arguments.iter().copied()).stdin("What is 6 times 7?").run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("no prompt was given"), "{ran:?}");
    }
    assert_eq!(Mk::new().args(["chat", "--sandbox", "-"]).stdin(" \n").run().code(), 2);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_streamed_and_an_interrupt_stops_it() {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    let gateway = gateway(|_| hello_and(&[StreamStep::Stall])).await;
    let mk = gateway.mk_chat(&["-m", "fake/m", "x"]);
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = mk.command().stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0; 5];
        stdout.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"Hello", "while the model is still answering");
        crate::support::serve::signal(&child, "INT");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        (child.wait().unwrap(), rest)
    });
    let (status, rest) = ended.await.unwrap();
    assert_eq!((status.signal(), rest.as_str()), (Some(2), "\n"), "the partial answer ends with a newline");
    eventually("the provider's call stops", || gateway.provider.in_flight() == 0).await;
}

/// Runs a conversation on a terminal; returns how it ended and its output.
async fn converse(mk: Mk, act: impl FnOnce(&mut Person) + Send + 'static) -> (String, String) {
    let ended = tokio::task::spawn_blocking(move || {
        let mut person = Person::at(&mk.command());
        act(&mut person);
        person.end()
    });
    ended.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_sends_its_history() {
    let gateway = gateway(|ask: &ModelRequest| {
        let count = ask.body["messages"].as_array().unwrap().len();
        stream(&[&format!("answer to {count}")])
    })
    .await;
    let (status, shown) = converse(gateway.mk_chat(&["--system", "Be brief."]), |person| {
        person.until("> ");
        person.types("first\n");
        person.until("answer to 2");
        person.until("tokens");
        person.types("\nsecond\n");
        person.until("answer to 4");
        person.types("/exit\n");
    })
    .await;
    assert_eq!(status, "code 0", "{shown}");
    assert!(shown.contains("asking fake/m") && shown.contains("/exit or Ctrl-D"), "{shown}");
    let last = gateway.provider.requests().pop().unwrap();
    let texts: Vec<&str> = last.body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Be brief.", "first", "answer to 2", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_commands_and_escape_sequences_are_not_sent() {
    let gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let (status, shown) = converse(gateway.mk_chat(&["-m", "fake/m"]), |person| {
        person.until("> ");
        person.types("/help\n");
        for command in ["/model [MODEL]", "/system [TEXT]", "/retry", "/save FILE", "/help", "/exit"] {
            person.until(&format!("{command} "));
        }
        person.types("/exot\n");
        person.until("there is no command /exot");
        person.until("did you mean /exit?");
        person.types("/modal fake/n\n");
        person.until("there is no command /modal");
        person.types("/exit now\n");
        person.until("/exit takes no argument");
        person.types("\x1b[A\x1b[B\n");
        person.types("/etc/hosts: what is it?\n");
        person.until("tokens");
        person.types("/exit\n");
    })
    .await;
    assert_eq!(status, "code 0", "{shown}");
    let asked: Vec<String> = gateway.provider.requests().iter().map(ModelRequest::text).collect();
    assert_eq!(asked, ["/etc/hosts: what is it?"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_change_the_model_and_its_instructions_ask_again_and_save() {
    let last = |ask: &ModelRequest| {
        let said = ask.body["messages"].as_array().unwrap();
        said.last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    let gateway = gateway(move |ask: &ModelRequest| match last(ask).as_str() {
        "broken" => Reply::status(500, &json!({})),
        text => stream(&[&format!("{} to {text}", ask.model)]),
    })
    .await;
    let mk = gateway.mk_chat(&["-m", "fake/m"]);
    let file = mk.home().join("talk.md");
    let (status, shown) = converse(mk.clone(), move |person| {
        person.until("> ");
        person.types("/retry\n");
        person.until("there is no question yet");
        person.types("/save talk.md\n");
        person.until("there is no answer yet");
        person.types("first\n");
        person.until("m to first");
        person.until("tokens");
        person.types("/model m\n");
        person.until("m is not a model: write PROVIDER/NAME");
        person.types("/model nobody/m\n");
        person.until("no provider of nobody/m is configured");
        person.types("/model fake/other\n");
        person.until("now asking fake/other");
        person.types("/system Be brief.\n");
        person.until("prompt is set");
        person.types("/retry\n");
        person.until("other to first");
        person.until_times("tokens", 2);
        person.types("broken\n");
        person.until("the provider fake failed");
        person.types("/system -\n");
        person.until("prompt is removed");
        person.types("second\n");
        person.until("other to second");
        person.until_times("tokens", 3);
        person.types("/save talk.md\n");
        person.until("saved 2 questions with their answers to talk.md");
        person.types("/save talk.md\n");
        person.until("talk.md already exists");
        person.types("/exit\n");
    })
    .await;
    assert_eq!(status, "code 0", "{shown}");
    let asked: Vec<String> = gateway
        .provider
        .requests()
        .iter()
        .filter(|ask| last(ask) != "broken")
        .map(|ask| {
            let said = ask.body["messages"].as_array().unwrap().iter();
            said.map(|one| one["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" | ")
        })
        .collect();
    assert_eq!(asked, ["first", "Be brief. | first", "first | other to first | second"], "{shown}");
    let saved = "# Question\n\nfirst\n\n# fake/other\n\nother to first\n\n\
                 # Question\n\nsecond\n\n# fake/other\n\nother to second\n";
    assert_eq!(std::fs::read_to_string(file).unwrap(), saved);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_wrapped_between_words_on_a_terminal_only() {
    let text = "The quick brown fox jumps over the lazy dog, and over the quick brown fox as well.";
    let gateway = gateway(move |_| stream(&[&text[..30], &text[30..33], &text[33..]])).await;
    let call = gateway.mk_chat(&["-m", "fake/m", "x"]);
    let at = call.clone();
    let shown = tokio::task::spawn_blocking(move || pty::run(&at, 44, 24)).await.unwrap().last;
    let wrapped = "The quick brown fox jumps over the lazy dog,\nand over the quick brown fox as well.\n";
    assert!(shown.starts_with(wrapped), "{shown}");
    let ran = call.run_beside().await;
    assert_eq!(ran.stdout, format!("{text}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_first_the_answer_and_then_the_conversation() {
    let gateway = gateway(|ask: &ModelRequest| match ask.text() {
        text if text.contains("long") => hello_and(&[StreamStep::Stall]),
        text if text.contains("bad") => Reply::status(500, &json!({})),
        _ => stream(&["short"]),
    })
    .await;
    let (status, shown) = converse(gateway.mk_chat(&["-m", "fake/m"]), |person| {
        person.until("> ");
        person.types("a long one\n");
        person.until("Hello");
        person.types("\x03");
        person.until("stopped");
        person.types("a bad one\n");
        person.until("the provider fake failed");
        person.types("again\n");
        person.until("short");
        person.until("tokens");
        person.until("> ");
        person.types("\x03");
    })
    .await;
    assert_eq!(status, INTERRUPTED, "{shown}");
    eventually("the provider's call stops", || gateway.provider.in_flight() == 0).await;
    let last = gateway.provider.requests().pop().unwrap();
    assert_eq!(last.text(), "again", "stopped and failed prompts are not in the history");
}

#[test]
fn ctrl_d_ends_a_conversation() {
    let mk = Mk::new().args(["chat", "--sandbox"]);
    let mut person = Person::at(&mk.command());
    person.until("> ");
    person.types("\x04");
    let (status, shown) = person.end();
    assert_eq!(status, "code 0", "{shown}");
    assert!(shown.contains("SANDBOX: "), "{shown}");
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let mk = Mk::new().args(["chat", "--sandbox", "What is 6 times 7?"]);
    let raw = pty::run(&mk.env("TERM", "dumb"), 80, 24).raw;
    assert!(raw.contains("42") && raw.contains("Waiting for") && !raw.contains('\u{1b}'), "{raw:?}");
}
