//! Is the database well: does it open, is it whole, is it the owner's alone, is there room to write?

use std::path::Path;
use std::time::Duration;

use super::check::Check;
use crate::cli::figures::thousands;
use crate::cli::local::{RESTORE, way_out};
use crate::storage::{self, Condition, Error, Examination};

const NAME: &str = "database";

/// For each file. A ledger of ten million rows takes a few seconds.
const LIMIT: Duration = Duration::from_secs(30);

/// Below this a busy server writes the disk full within a day.
const LITTLE_SPACE: u64 = 1024 * MIB;
/// Below this even the log of a large write may not fit.
const NO_SPACE: u64 = 64 * MIB;

const MIB: u64 = 1024 * 1024;

/// Looks at a data directory. Blocking.
pub(super) fn examine(dir: &Path) -> Vec<Check> {
    match storage::examine(dir, LIMIT) {
        Ok(None) => {
            vec![Check::note(NAME, format!("there is none yet in {}; `mk serve` makes it", dir.display()))]
        }
        Ok(Some(found)) => findings(dir, &found),
        Err(cause) => vec![unusable(&dir.display().to_string(), &cause)],
    }
}

fn findings(dir: &Path, found: &Examination) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, condition) in &found.databases {
        let path = dir.join(name).display().to_string();
        checks.push(match condition {
            Ok(condition) => told(&path, condition),
            Err(cause) => unusable(&path, cause),
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

fn told(path: &str, condition: &Condition) -> Check {
    let (taken, known) = condition.schema;
    if let Some(first) = condition.damage.first() {
        let more = condition.damage.len() - 1;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        return Check::failed(NAME, format!("{path} is damaged: {first}{more}")).hint(RESTORE);
    }
    if let Some(why) = &condition.unwritable {
        return Check::failed(NAME, format!("{path} cannot be written: {why}"))
            .hint("run mk as its owner; where it is locked, see which other program has it open");
    }
    if !condition.is_complete {
        return Check::warning(NAME, format!("{path} is large: not all of it was checked in {LIMIT:?}"));
    }
    if taken < known {
        return Check::note(
            NAME,
            format!(
                "{path} is whole; its tables are of an earlier version ({taken} of {known}), which the next start brings up to date"
            ),
        );
    }
    Check::ok(NAME, format!("{path} is whole (schema {taken})"))
}

fn unusable(path: &str, cause: &Error) -> Check {
    Check::failed(NAME, format!("{path}: {cause}")).hint(way_out(cause))
}

fn space(free: u64) -> Check {
    let left = format!("{} MiB free", thousands(free / MIB));
    match free {
        0..NO_SPACE => Check::failed("disk", left).hint("make room: nothing can be written without it"),
        NO_SPACE..LITTLE_SPACE => Check::warning("disk", left).hint("make room before it is used up"),
        _ => Check::ok("disk", left),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
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
        let check = told("mk.db", &damaged);
        assert_eq!(check.state, State::Failed);
        assert_eq!(check.message, "mk.db is damaged: page 3 is never used, and 1 more");
    }

    #[test]
    fn what_is_not_known_to_be_whole_is_not_called_whole() {
        let halfway = Condition { is_complete: false, ..condition() };
        assert_eq!(told("mk.db", &halfway).state, State::Warning);
        assert_eq!(told("mk.db", &condition()).state, State::Ok);
        assert_eq!(told("mk.db", &Condition { schema: (1, 2), ..condition() }).state, State::Note);
    }

    #[test]
    fn space_is_judged_before_it_is_gone() {
        assert_eq!(space(10 * MIB).state, State::Failed);
        assert_eq!(space(100 * MIB).state, State::Warning);
        assert_eq!(space(100 * 1024 * MIB).state, State::Ok);
    }
}
