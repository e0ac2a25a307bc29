//! `mk backup` and `mk restore`: the databases in one file, made beside a running server.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;

use super::exit::{Failure, Kind, Outcome};
use super::figures::thousands;
use super::globals::Session;
use super::local::Database;
use super::runtime;
use crate::clock::Clock;
use crate::storage::{self, Error};

/// Examples of `mk backup`, first in its help.
pub(crate) const BACKUP_EXAMPLES: &str = "\
Examples:
  mk backup /var/backups/mk.tar
  mk backup --force /var/backups/mk-$(date +%a).tar     one for each day of the week";

/// What stands below the options of `mk backup --help`.
pub(crate) const BACKUP_NOTES: &str = "\
A server may run meanwhile; the backup is of one moment. It is a tar archive of
both databases with their checksums, is checked before it gets its name, and can
be read by its owner only. It holds no keys, only their hashes. Twice the size
of the databases is needed beside it meanwhile.
`mk restore` puts it back. A PostgreSQL database is backed up by pg_dump.";

/// Examples of `mk restore`, first in its help.
pub(crate) const RESTORE_EXAMPLES: &str = "\
Examples:
  mk restore /var/backups/mk.tar
  mk restore /var/backups/mk.tar --data-dir /srv/mk";

/// What stands below the options of `mk restore --help`.
pub(crate) const RESTORE_NOTES: &str = "\
Nothing is put over a database that is there: stop the server and move its
directory away first. What happened after the backup is not in it: keys revoked
since then work again until they are revoked again, and today's requests are
counted from what the backup knows.";

/// The arguments of `mk backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    database: Database,
}

/// The arguments of `mk restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The backup to read
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    database: Database,
}

/// Runs `mk backup`.
pub(crate) fn backup(args: &BackupArgs, session: &Session) -> Outcome {
    must_be_a_file(
        &args.file,
        "a backup is checked before it gets its name, so it cannot go to standard output",
    )?;
    if args.file.exists() && !args.file.is_file() {
        return Err(Failure::usage(format!(
            "{} is there, and is no file to write over",
            args.file.display()
        ))
        .hint("name a file that is not there yet"));
    }
    let dir = args.database.dir(
        session,
        "use `pg_dump --format=custom --file=mk.dump postgres://USER@HOST/DATABASE`, with the password in PGPASSWORD",
    )?;
    let stop = stop_at_first();
    let go_on = || !stop.load(Ordering::Relaxed);
    let made = storage::backup(&dir, &args.file, args.force, Clock::system().now(), &go_on);
    let file = args.file.display();
    let Some(packed) = made.map_err(|cause| not_made(&dir, &args.file, cause))? else {
        session.printer.notice("interrupted; nothing was written");
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    };
    let parts: Vec<_> = packed.iter().map(|(name, size)| format!("{name} ({})", kibibytes(*size))).collect();
    session.printer.sentence(&format!("backed up {} to {file}, and checked it", parts.join(" and ")));
    Ok(0)
}

/// Runs `mk restore`.
pub(crate) fn restore(args: &RestoreArgs, session: &Session) -> Outcome {
    must_be_a_file(
        &args.file,
        "a backup is checked before it is put back, so it cannot come from standard input",
    )?;
    if args.file.is_dir() {
        return Err(Failure::usage(format!("{} is a directory", args.file.display()))
            .hint("name the one file that `mk backup` wrote"));
    }
    let dir = args
        .database
        .dir(session, "use `pg_restore --no-owner --dbname=postgres://USER@HOST/DATABASE mk.dump` on an empty database, with the password in PGPASSWORD")?;
    storage::restore(&args.file, &dir).map_err(|cause| not_restored(&dir, &args.file, cause))?;
    session.printer.sentence(&format!("restored {} into {}", args.file.display(), dir.display()));
    Ok(0)
}

/// Elsewhere `-` is standard input: here it would be a file of that name, which nobody means.
fn must_be_a_file(file: &Path, why: &str) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Err(Failure::usage(why).hint("name a file, and copy that"));
    }
    Ok(())
}

/// Set by the first Ctrl-C, so that what is half done is cleaned up; the second one ends the process at once.
fn stop_at_first() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    runtime::end_at_second(&[runtime::SIGINT]);
    // Without it Ctrl-C does what it always does.
    let _ = signal_hook::flag::register(runtime::SIGINT, Arc::clone(&stop));
    stop
}

fn kibibytes(bytes: u64) -> String {
    format!("{} KiB", thousands(bytes.div_ceil(1024)))
}

fn not_made(dir: &Path, file: &Path, cause: Error) -> Failure {
    let into = file.parent().filter(|into| !into.as_os_str().is_empty());
    if let Some(into) = into.filter(|into| !into.exists()) {
        return Failure::usage(format!("cannot write {}: {} is not there", file.display(), into.display()))
            .caused_by(cause);
    }
    let (dir, file) = (dir.display(), file.display());
    let failure = match kind(&cause) {
        Some(ErrorKind::AlreadyExists) => {
            Failure::new(Kind::Conflict, format!("cannot write {file}: {cause}"))
                .hint("give another name, or --force to replace a file")
        }
        Some(ErrorKind::NotFound) => {
            Failure::new(Kind::NotFound, format!("cannot back up {dir} to {file}: {cause}"))
                .hint("name the directory of the databases with --data-dir or MK_DATA_DIR")
        }
        _ => Failure::new(Kind::Other, format!("cannot back up {dir} to {file}: {cause}"))
            .hint("`mk doctor` checks the databases and the room on their disk"),
    };
    failure.caused_by(cause)
}

fn not_restored(dir: &Path, file: &Path, cause: Error) -> Failure {
    let (dir, file) = (dir.display(), file.display());
    let failure = match kind(&cause) {
        Some(ErrorKind::AlreadyExists) => {
            Failure::new(Kind::Conflict, format!("cannot restore into {dir}: {cause}"))
                .hint("stop the server and move that directory away, or name another with --data-dir")
        }
        Some(ErrorKind::NotFound) => Failure::usage(format!("cannot read {file}: {cause}")),
        Some(ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            Failure::new(Kind::Other, format!("cannot restore {file} into {dir}: {cause}"))
                .hint("take another backup, or the whole of this one; nothing was put there")
        }
        _ => Failure::new(Kind::Other, format!("cannot restore {file} into {dir}: {cause}"))
            .hint("nothing was put there"),
    };
    failure.caused_by(cause)
}

fn kind(cause: &Error) -> Option<ErrorKind> {
    match cause {
        Error::Io(cause) => Some(cause.kind()),
        _ => None,
    }
}
