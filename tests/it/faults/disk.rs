//! A disk that accepts no more writes, because it is full or because of a file size limit.

use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use super::fixture::{Fixture, View, assert_store_unavailable, problems, provider, recorded, reports};
use crate::support::database::{assert_intact, copy};
use crate::support::eventually;
use crate::support::mk::operator;
use crate::support::serve;

/// Long enough to flood the log if every failed write were logged.
const A_WHILE: Duration = Duration::from_secs(4);

/// Fills the disk of a server with `fill`, frees it again with `empty`, and checks that nothing is lost and that the
/// log names `cause`.
async fn assert_survives(
    fixture: Fixture,
    cause: &str,
    fill: impl FnOnce(&Fixture),
    empty: impl FnOnce(&Fixture),
) {
    let id = fixture.created().await;
    fixture.chat_must_succeed().await;
    fill(&fixture);
    assert_store_unavailable(fixture.create().await).await;
    assert_store_unavailable(fixture.write(Method::DELETE, &format!("/{id}"), &Value::Null).await).await;
    // Keys can still be read, and usage is buffered in memory.
    fixture.chat_must_succeed().await;
    fixture.verify_must_succeed().await;
    tokio::time::sleep(A_WHILE).await;
    assert_store_unavailable(fixture.create().await).await;
    let kept = fixture.write(Method::GET, &format!("/{id}"), &Value::Null).await;
    assert_eq!(
        kept.json::<Value>().await.unwrap()["state"],
        "active",
        "a revocation that failed has no effect"
    );

    empty(&fixture);
    assert_eq!(fixture.create().await.status(), 201, "the server recovers by itself");
    assert_eq!(fixture.write(Method::DELETE, &format!("/{id}"), &Value::Null).await.status(), 200);
    fixture.chat_must_succeed().await;
    eventually("all usage is recorded", || recorded(&fixture.data) == 3 + 4).await;
    // The recovery is logged a moment later.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_intact(copy(&fixture.data).path());
    let log = fixture.end().await;
    assert!(reports(&log, &["usage and counters cannot be written", cause]), "{:?}", problems(&log));
    assert!(reports(&log, &["the database is unavailable", cause]), "{:?}", problems(&log));
    assert!(problems(&log).len() <= 4, "{:?}", problems(&log));
    assert!(log.iter().any(|line| line["message"] == "usage and counters are written again"), "{log:?}");
}

fn limit_files(fixture: &Fixture, bytes: Option<u64>) {
    let process = Pid::from_raw(fixture.server.process().try_into().unwrap());
    prlimit(process, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_survives_a_file_size_limit_and_loses_nothing() {
    let provider = provider().await;
    let fixture = Fixture::start(&provider).await;
    assert_survives(
        fixture,
        "a file size limit",
        |fixture| limit_files(fixture, Some(0)),
        |fixture| limit_files(fixture, None),
    )
    .await;
}

/// Whether this user may mount a file system in a new namespace.
fn may_mount() -> bool {
    let mut mount = Command::new("unshare");
    mount.args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null());
    mount.status().is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_survives_a_full_disk_and_loses_nothing() {
    if !may_mount() {
        eprintln!(
            "skipped: this user may not mount a file system; the test with a file size limit stands in for it"
        );
        return;
    }
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let data = serve::data_dir(call.home());
    std::fs::create_dir(&data).unwrap();
    let mount = format!("mount -t tmpfs -o size=4m,mode=700 none {}", data.display());
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    let call = call.through(&["unshare", "-rm", "sh", "-c", &script]);
    let fixture = Fixture::of(call, View::Mounted).await;
    let filler = fixture.data.join("filler");
    let fill = |_: &Fixture| {
        let mut file = std::fs::File::create(&filler).unwrap();
        let mut size = 1 << 20;
        // Until the last page is full.
        while size >= 512 {
            if std::io::Write::write_all(&mut file, &vec![0; size]).is_err() {
                size /= 2;
            }
        }
    };
    assert_survives(fixture, "disk is full", fill, |_| std::fs::remove_file(&filler).unwrap()).await;
}

#[test]
fn a_command_on_a_full_disk_reports_it_and_creates_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let list = |arguments: &[&str]| operator(dir.path(), arguments).run();
    assert_eq!(list(&["keys", "list"]).code(), 0);
    let ran = operator(dir.path(), &["keys", "create", "--service", "verify"]).after("ulimit -f 0").run();
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("a file size limit"), "{ran:?}");
    assert!(list(&["keys", "list", "--json"]).stdout.contains("[]"), "no half-created key is left");
}
