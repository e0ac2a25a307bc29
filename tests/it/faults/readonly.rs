//! Files and directories that are read-only.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::mk::{CommandOutput, Mk, operator};

/// Runs the command as an unprivileged user if the test runs as root, whom permissions do not restrict.
fn as_a_user(call: Mk) -> Mk {
    if !rustix::process::geteuid().is_root() {
        return call;
    }
    // That user can reach the binary only in its home directory.
    let home = call.home().to_owned();
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    let binary = home.join("mk");
    // By another process: while this one writes it, a process that another test starts has it open too, and what is
    // open for writing cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_mk")).arg(&binary).status().unwrap();
    assert!(copied.success());
    let run =
        format!("shift; exec setpriv --reuid=65534 --regid=65534 --clear-groups {} \"$@\"", binary.display());
    call.through(&["sh", "-c", &run, "sh"])
}

fn serve(data: &Path) -> CommandOutput {
    let mk = Mk::new()
        .args(["serve", "--sandbox", "--listen", "127.0.0.1:0"])
        .env("MK_DATA_DIR", data.to_str().unwrap());
    as_a_user(mk).run()
}

fn assert_refuses_to_start(data: &Path, words: &str) {
    let ran = serve(data);
    assert_eq!(ran.code(), 2, "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with('{')).collect();
    assert!(
        matches!(*lines, [error, hint] if error.starts_with("error: ") && hint.starts_with("hint: ")),
        "{ran:?}"
    );
    assert!(lines[0].contains(words) && lines[0].contains(data.to_str().unwrap()), "{words:?}: {ran:?}");
}

#[test]
fn a_server_that_cannot_write_its_databases_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let data = dir.path().join("data");
    let made = operator(&data, &["keys", "create", "--service", "verify"]).run();
    assert_eq!(made.code(), 0, "{made:?}");
    let set = |directory: u32, main: u32, ledger: u32| {
        for (path, mode) in [("mk.db", main), ("ledger.db", ledger), ("", directory)] {
            fs::set_permissions(data.join(path), Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o777, 0o444, 0o666);
    assert_refuses_to_start(&data, "mk.db: it may not be written to");
    set(0o777, 0o666, 0o444);
    assert_refuses_to_start(&data, "ledger.db: it may not be written to");
    set(0o555, 0o444, 0o444);
    assert_refuses_to_start(&data, "mk.db: ");
    set(0o700, 0o600, 0o600);
    let ran = operator(&data, &["keys", "list", "--json"]).run();
    assert!(ran.stdout.contains("key_"), "nothing is lost: {ran:?}");
}

#[test]
fn the_doctor_finds_a_data_directory_that_cannot_be_created() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o555)).unwrap();
    let data = dir.path().join("a/b");
    let mk = operator(&data, &["doctor"]);
    let ran = as_a_user(mk).run();
    let line = ran.stdout.lines().find(|line| line.contains("\tdatabase\t")).unwrap();
    let expected =
        format!("failed\tdatabase\t{}: {}: permission denied\t", data.display(), dir.path().display());
    assert!(line.starts_with(&expected) && ran.code() == 1, "{ran:?}");
    assert_refuses_to_start(&data, "permission denied");
}

#[test]
fn a_read_only_database_is_reported_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let data = dir.path().join("data");
    for name in ["ci", "old"] {
        let made = operator(&data, &["keys", "create", "--service", "verify", "--name", name]).run();
        assert_eq!(made.code(), 0, "{made:?}");
    }
    let set = |path: &str, mode| fs::set_permissions(data.join(path), Permissions::from_mode(mode)).unwrap();
    for (path, mode) in [("", 0o777), ("mk.db", 0o666), ("ledger.db", 0o444)] {
        set(path, mode);
    }
    let revoked = as_a_user(operator(&data, &["keys", "revoke", "old", "--yes"])).run();
    assert_eq!(revoked.code(), 0, "changes to keys do not write to the ledger: {revoked:?}");
    set("mk.db", 0o444);
    for line in ["keys create --service verify", "keys revoke ci --yes", "apps create web"] {
        let ran = as_a_user(operator(&data, &line.split(' ').collect::<Vec<_>>())).run();
        let expected =
            format!("error: cannot use the data directory {}: mk.db: it may not be written", data.display());
        assert!(
            ran.code() == 2 && ran.stderr.starts_with(&expected) && ran.stderr.contains("\nhint: "),
            "{ran:?}"
        );
    }
    let listed = as_a_user(operator(&data, &["keys", "list"])).run();
    assert!(listed.code() == 0 && listed.stdout.contains("\tactive\t"), "{listed:?}");
    let doctor = as_a_user(operator(&data, &["doctor"])).run().stdout;
    for name in ["mk.db", "ledger.db"] {
        let expected = format!(
            "failed\tdatabase\t{} cannot be written: the file is read-only",
            data.join(name).display()
        );
        assert!(doctor.contains(&expected), "{doctor}");
    }
}
