//! `mk apps delete` and `mk keys revoke` of the last console key, without which nobody can administer the server.

use mk::api::Service;
use mk::keys::NewKey;

use crate::support::mk::Mk;
use crate::support::place::{key_row, local, remote};
use crate::support::pty::Person;

const WARNING: &str = "last console key";

fn call(mk: &Mk, arguments: &[&str]) -> Mk {
    mk.clone().args(arguments.iter().copied())
}

/// The confirmation that a user is asked for, and then declines.
fn question(mk: &Mk, arguments: &[&str]) -> String {
    let mut person = Person::at(&call(mk, arguments).command());
    person.until("[y/N]");
    person.types("n\n");
    let shown = person.end().1;
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_confirmation_warns_about_the_last_console_key() {
    let (store, mk) = local();
    call(&mk, &["apps", "create", "news"]).run();
    let of_app = question(&mk, &["apps", "delete", "default"]);
    assert!(of_app.contains(WARNING) && of_app.contains("mk keys create --service console"), "{of_app}");
    let id = key_row(&store, "operator").id;
    let of_key = question(&mk, &["keys", "revoke", &id]);
    assert!(of_key.contains(WARNING), "{of_key}");
    assert!(!question(&mk, &["apps", "delete", "news"]).contains(WARNING));

    call(&mk, &["keys", "create", "--service", "console", "--app", "news"]).run();
    assert!(!question(&mk, &["apps", "delete", "default"]).contains(WARNING), "there is another console key");
    assert!(!question(&mk, &["keys", "revoke", &id]).contains(WARNING));
}

#[test]
fn deleting_the_last_app_fails_without_a_confirmation() {
    let (_store, mk) = local();
    for more in [&[][..], &["--yes"]] {
        let ran = call(&mk, &["apps", "delete", "default"]).args(more.iter().copied()).run();
        assert_eq!(ran.code(), 9, "{ran:?}");
        assert!(ran.stderr.contains("this is the last app") && !ran.stderr.contains("[y/N]"), "{ran:?}");
        assert!(!ran.stderr.contains(WARNING), "nothing is taken away: {ran:?}");
    }
    call(&mk, &["apps", "create", "news"]).run();
    let ran = call(&mk, &["apps", "delete", "default"]).run();
    assert_eq!(ran.code(), 2, "nobody can confirm: {ran:?}");
}

#[test]
fn with_yes_the_last_console_key_is_a_warning() {
    let (_store, mk) = local();
    call(&mk, &["apps", "create", "news"]).run();
    let harmless = call(&mk, &["apps", "delete", "news", "--yes"]).run();
    assert!(harmless.code() == 0 && !harmless.stderr.contains("warning: "), "{harmless:?}");
    call(&mk, &["apps", "create", "news"]).run();
    let ran = call(&mk, &["apps", "delete", "default", "--yes", "--json"]).run();
    assert_eq!((ran.code(), ran.json()["revoked_keys"].as_u64()), (0, Some(1)), "{ran:?}");
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(WARNING), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_server_s_last_console_key_warns_too() {
    let (server, mk) = remote().await;
    let (_, id) = server.key_with(Service::Verify, |_| {});
    let other = call(&mk, &["keys", "revoke", &id, "--yes"]).run_beside().await;
    assert!(other.code() == 0 && !other.stderr.contains(WARNING), "{other:?}");
    let (_, second) =
        server.key_with(Service::Console, |new: &mut NewKey| new.name = Some("second".to_owned()));
    let first = key_row(&server.app.store, "operator").id;
    let one = call(&mk, &["keys", "revoke", &second, "--yes"]).run_beside().await;
    assert!(one.code() == 0 && !one.stderr.contains(WARNING), "{one:?}");
    let last = call(&mk, &["keys", "revoke", &first, "--yes"]).run_beside().await;
    assert!(last.code() == 0 && last.stderr.contains(WARNING), "{last:?}");
}
