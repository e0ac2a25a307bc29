//! Is the database healthy: can it be opened, is it intact, is it private, is there disk space?

use std::path::Path;
use std::time::Duration;

use super::check::Check;
use crate::cli::target::database::{RESTORE_HINT, recovery_hint};
use crate::cli::terminal::humanize::thousands;
use crate::config::StorePlace;
use crate::storage::{self, Condition, Error, Examination, PostgresAddress};

pub(super) const NAME: &str = "database";

/// Time limit per file. A ledger of ten million rows takes a few seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for PostgreSQL, where nothing examines each row.
const POSTGRES_TIMEOUT: Duration = Duration::from_secs(10);

/// Below this a busy server fills the disk within a day.
const LITTLE_SPACE: u64 = 1024 * MIB;
/// Below this not even the log of a large write may fit.
const NO_SPACE: u64 = 64 * MIB;

const MIB: u64 = 1024 * 1024;

/// Examines a database. Blocking.
pub(super) fn examine(place: &StorePlace) -> Vec<Check> {
    match place {
        StorePlace::Directory(dir) => directory(dir),
        StorePlace::Postgres(address) => vec![postgres(address)],
    }
}

fn postgres(address: &PostgresAddress) -> Check {
    match storage::examine_postgres(address, POSTGRES_TIMEOUT) {
        Ok(condition) => postgres_check(&address.to_string(), &condition),
        Err(cause) => {
            let place = StorePlace::Postgres(address.clone());
            Check::failed(NAME, format!("{address} cannot be used: {}", cause.reason()))
                .hint("until then, every request with a key gets 503")
                .hint(recovery_hint(&place, &cause))
        }
    }
}

fn postgres_check(shown: &str, condition: &Condition) -> Check {
    if let Some(damage) = damage(shown, condition) {
        return damage.hint("stop the servers and restore a backup into an empty database: pg_restore");
    }
    if let Some(why) = &condition.unwritable {
        return Check::failed(NAME, format!("{shown} cannot be written: {why}"))
            .hint("use the address of the server that accepts writes, and the user that owns the database");
    }
    if condition.schema.0 == 0 {
        let message = format!("{shown} has no tables of mk yet; `mk serve` creates them");
        return Check::note(NAME, message);
    }
    schema_check(shown, condition, POSTGRES_TIMEOUT)
}

fn directory(dir: &Path) -> Vec<Check> {
    match storage::examine(dir, TIMEOUT) {
        Ok(None) => {
            vec![Check::note(NAME, format!("there is none yet in {}; `mk serve` creates it", dir.display()))]
        }
        Ok(Some(found)) => findings(dir, &found),
        Err(cause) => vec![unusable(dir, dir, &cause)],
    }
}

fn findings(dir: &Path, found: &Examination) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, condition) in &found.databases {
        let path = dir.join(name);
        checks.push(match condition {
            Ok(condition) => sqlite_check(&path.display().to_string(), condition),
            Err(cause) => unusable(dir, &path, cause),
        });
    }
    for exposed in &found.exposed {
        let path = exposed.path.display();
        checks.push(
            Check::warning(NAME, format!("others have access to {path} (mode {:04o})", exposed.mode))
                .hint(format!("chmod {:03o} {path}", exposed.proper)),
        );
    }
    checks.extend(found.free_bytes.map(space));
    checks
}

fn sqlite_check(path: &str, condition: &Condition) -> Check {
    if let Some(damage) = damage(path, condition) {
        return damage.hint(RESTORE_HINT);
    }
    if let Some(why) = &condition.unwritable {
        return Check::failed(NAME, format!("{path} cannot be written: {why}"))
            .hint("run mk as its owner; if it is locked, find the program that has it open");
    }
    schema_check(path, condition, TIMEOUT)
}

fn damage(shown: &str, condition: &Condition) -> Option<Check> {
    let first = condition.damage.first()?;
    let more = condition.damage.len() - 1;
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(Check::failed(NAME, format!("{shown} is damaged: {first}{more}")))
}

/// Findings on a database without known damage.
fn schema_check(shown: &str, condition: &Condition, limit: Duration) -> Check {
    let (taken, known) = condition.schema;
    if !condition.is_complete {
        return Check::warning(
            NAME,
            format!("{shown} is large: not all of it could be checked in {limit:?}"),
        );
    }
    if taken < known {
        return Check::note(
            NAME,
            format!(
                "{shown} is intact; its schema is older ({taken} of {known}), and the next start migrates it"
            ),
        );
    }
    Check::ok(NAME, format!("{shown} is intact (schema {taken})"))
}

fn unusable(dir: &Path, path: &Path, cause: &Error) -> Check {
    let place = StorePlace::Directory(dir.to_owned());
    Check::failed(NAME, format!("{}: {cause}", path.display())).hint(recovery_hint(&place, cause))
}

fn space(free: u64) -> Check {
    let message = format!("{} MiB free", thousands(free / MIB));
    match free {
        0..NO_SPACE => {
            Check::failed("disk", message).hint("free some space: nothing can be written without it")
        }
        NO_SPACE..LITTLE_SPACE => {
            Check::warning("disk", message).hint("free some space before it is used up")
        }
        _ => Check::ok("disk", message),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    fn condition() -> Condition {
        Condition { schema: (2, 2), damage: Vec::new(), is_complete: true, unwritable: None }
    }

    #[test]
    fn damage_comes_before_everything_else() {
        let damaged = Condition {
            damage: vec!["page 3 is never used".to_owned(), "x".to_owned()],
            unwritable: Some("x".to_owned()),
            ..condition()
        };
        let check = sqlite_check("mk.db", &damaged);
        assert_eq!(check.state, Status::Failed);
        assert_eq!(check.message, "mk.db is damaged: page 3 is never used, and 1 more");
    }

    #[test]
    fn what_is_not_known_to_be_intact_is_not_called_intact() {
        let halfway = Condition { is_complete: false, ..condition() };
        assert_eq!(sqlite_check("mk.db", &halfway).state, Status::Warning);
        assert_eq!(sqlite_check("mk.db", &condition()).state, Status::Ok);
        assert_eq!(sqlite_check("mk.db", &Condition { schema: (1, 2), ..condition() }).state, Status::Note);
    }

    #[test]
    fn a_shared_database_is_named_by_its_address() {
        let found = |condition: &Condition| {
            let check = postgres_check("postgres://db:5432/mk", condition);
            (check.state, check.message)
        };
        let is_whole = "postgres://db:5432/mk is intact (schema 2)".to_owned();
        assert_eq!(found(&condition()), (Status::Ok, is_whole));
        assert_eq!(found(&Condition { schema: (1, 2), ..condition() }).0, Status::Note);
        let (state, message) = found(&Condition { schema: (0, 2), ..condition() });
        assert_eq!(state, Status::Note);
        assert!(message.starts_with("postgres://db:5432/mk has no tables of mk yet"), "{message}");
        let standby = Condition { unwritable: Some("it is a standby".to_owned()), ..condition() };
        let message = "postgres://db:5432/mk cannot be written: it is a standby".to_owned();
        assert_eq!(found(&standby), (Status::Failed, message));
    }

    #[test]
    fn low_space_is_reported_before_it_runs_out() {
        assert_eq!(space(10 * MIB).state, Status::Failed);
        assert_eq!(space(100 * MIB).state, Status::Warning);
        assert_eq!(space(100 * 1024 * MIB).state, Status::Ok);
    }
}
