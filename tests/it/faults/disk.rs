//! A disk that takes no more writes: full, by a quota, or by a limit of file sizes.

use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use super::desk::{Desk, View, booked, must_be_unavailable, provider, tells, troubles};
use crate::support::database::{copy, must_be_whole};
use crate::support::eventually;
use crate::support::mk::operator;
use crate::support::serve;

/// Long enough for a line every time that writing fails to be a flood.
const A_WHILE: Duration = Duration::from_secs(4);

/// A server whose disk is filled by `fill` and emptied again by `empty`; `cause` is what the log has to name.
async fn survives(desk: Desk, cause: &str, fill: impl FnOnce(&Desk), empty: impl FnOnce(&Desk)) {
    let id = desk.created().await;
    desk.must_chat().await;
    fill(&desk);
    must_be_unavailable(desk.create().await).await;
    must_be_unavailable(desk.write(Method::DELETE, &format!("/{id}"), &Value::Null).await).await;
    // Keys can be read, and usage waits in memory.
    desk.must_chat().await;
    desk.must_verify().await;
    tokio::time::sleep(A_WHILE).await;
    must_be_unavailable(desk.create().await).await;
    let kept = desk.write(Method::GET, &format!("/{id}"), &Value::Null).await;
    assert_eq!(
        kept.json::<Value>().await.unwrap()["state"],
        "active",
        "a revocation that failed did nothing"
    );

    empty(&desk);
    assert_eq!(desk.create().await.status(), 201, "it goes on by itself");
    assert_eq!(desk.write(Method::DELETE, &format!("/{id}"), &Value::Null).await.status(), 200);
    desk.must_chat().await;
    eventually("all that was used is booked", || booked(&desk.data) == 3 + 4).await;
    // What is over is told a moment later.
    tokio::time::sleep(Duration::from_secs(3)).await;
    must_be_whole(copy(&desk.data).path());
    let log = desk.end().await;
    assert!(tells(&log, &["usage and counters cannot be written", cause]), "{:?}", troubles(&log));
    assert!(tells(&log, &["the store cannot be used", cause]), "{:?}", troubles(&log));
    assert!(troubles(&log).len() <= 4, "{:?}", troubles(&log));
    assert!(log.iter().any(|line| line["message"] == "usage and counters are written again"), "{log:?}");
}

fn limit_files(desk: &Desk, bytes: Option<u64>) {
    let process = Pid::from_raw(desk.server.process().try_into().unwrap());
    prlimit(process, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_file_sizes_ends_no_server_and_loses_nothing() {
    let provider = provider().await;
    let desk = Desk::start(&provider).await;
    survives(
        desk,
        "a limit of file sizes",
        |desk| limit_files(desk, Some(0)),
        |desk| limit_files(desk, None),
    )
    .await;
}

/// Whether this user may mount a file system of his own.
fn may_mount() -> bool {
    let mut mount = Command::new("unshare");
    mount.args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null());
    mount.status().is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_no_server_and_loses_nothing() {
    if !may_mount() {
        eprintln!("not tried: this user may not mount a file system; a limit of file sizes stands in for it");
        return;
    }
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let data = serve::data_dir(call.home());
    std::fs::create_dir(&data).unwrap();
    let mount = format!("mount -t tmpfs -o size=4m,mode=700 none {}", data.display());
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    let call = call.through(&["unshare", "-rm", "sh", "-c", &script]);
    let desk = Desk::of(call, View::Mounted).await;
    let filler = desk.data.join("filler");
    let fill = |_: &Desk| {
        let mut file = std::fs::File::create(&filler).unwrap();
        let mut size = 1 << 20;
        // Down to the last page.
        while size >= 512 {
            if std::io::Write::write_all(&mut file, &vec![0; size]).is_err() {
                size /= 2;
            }
        }
    };
    survives(desk, "disk is full", fill, |_| std::fs::remove_file(&filler).unwrap()).await;
}

#[test]
fn a_command_on_a_full_disk_says_so_and_makes_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let list = |arguments: &[&str]| operator(dir.path(), arguments).run();
    assert_eq!(list(&["keys", "list"]).code(), 0);
    let ran = operator(dir.path(), &["keys", "create", "--service", "verify"]).after("ulimit -f 0").run();
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("a limit of file sizes"), "{ran:?}");
    assert!(list(&["keys", "list", "--json"]).stdout.contains("[]"), "half a key is no key");
}
