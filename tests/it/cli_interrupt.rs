//! Ctrl-C as programs see it: one document where one was asked for, and death by the signal.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::eventually;
use crate::support::mk::{Mk, Ran};
use crate::support::scripted::{Scripted, Step};
use crate::support::serve::signal;

const SIGINT: Option<i32> = Some(2);

fn spawn(call: &Mk) -> Child {
    call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How a call ends that is interrupted now.
async fn interrupted(child: Child) -> Ran {
    signal(&child, "INT");
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    Ran {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn is_the_document_of_an_interrupt(document: &Value) -> bool {
    document["schema"] == "mk.error/1"
        && document["error"]["kind"] == "interrupted"
        && document["exit"] == 130
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asked_for_a_document_gets_one_before_the_death() {
    for arguments in [
        &["verify", "x", "--json"][..],
        &["verify", "x", "--jsonl"],
        &["verify", "--lines", "-", "--json"],
        &["chat", "hi", "-m", "a/b", "--json", "-q"],
        &["models", "--json"],
        &["apps", "list", "--json"],
    ] {
        let server = Scripted::start(|_| vec![Step::Hang]).await;
        let call = Mk::new().args(arguments.iter().copied()).env("MK_SERVER", &server.base);
        let call = ["MK_VERIFY_KEY", "MK_INFERENCE_KEY", "MK_CONSOLE_KEY"]
            .into_iter()
            .fold(call, |call, variable| call.env(variable, "x"));
        let mut child = spawn(&call);
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x\n").unwrap();
        eventually("the server is asked", || !server.requests().is_empty()).await;
        let ran = interrupted(child).await;
        assert_eq!(ran.status.signal(), SIGINT, "{arguments:?}: {ran:?}");
        assert!(is_the_document_of_an_interrupt(&ran.json()), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asked_for_none_gets_none() {
    let server = Scripted::start(|_| vec![Step::Hang]).await;
    let call = Mk::new().args(["verify", "x"]).env("MK_SERVER", &server.base).env("MK_VERIFY_KEY", "x");
    let child = spawn(&call);
    eventually("the server is asked", || !server.requests().is_empty()).await;
    let ran = interrupted(child).await;
    assert_eq!((ran.status.signal(), ran.stdout.as_str()), (SIGINT, ""), "{ran:?}");
    assert_eq!(ran.stderr, "interrupted\n");
}
