//! `mk backup` and `mk restore`: the databases in a single file, made while a server may be running.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::database::{DatabaseArgs, database_failure};
use crate::cli::terminal::humanize::thousands;
use crate::clock::Clock;
use crate::config::StorePlace;
use crate::storage::{self, Error, PostgresAddress};

/// Examples of `mk backup`, first in its help.
pub(crate) const BACKUP_EXAMPLES: &str = "\
Examples:
  mk backup /var/backups/mk.tar
  mk backup --force /var/backups/mk-$(date +%a).tar   one for each weekday";

/// The text below the options in `mk backup --help`.
pub(crate) const BACKUP_NOTES: &str = "\
The server may keep running: each database is copied as of one moment. The
backup is a tar archive of both, with checksums. It is verified before it gets
its name, and only its owner can read it. It holds hashes of API keys, and the
secret key that signs receipts. While it is written, twice the size of the
databases must be free in its directory.
`mk restore` restores it, also into PostgreSQL. To back up a PostgreSQL
database, use pg_dump.";

/// Examples of `mk restore`, first in its help.
pub(crate) const RESTORE_EXAMPLES: &str = "\
Examples:
  mk restore /var/backups/mk.tar
  mk restore /var/backups/mk.tar --data-dir /srv/mk
  MK_DATABASE_URL=postgres:///mk mk restore mk.tar   into PostgreSQL";

/// The text below the options in `mk restore --help`.
pub(crate) const RESTORE_NOTES: &str = "\
An existing database is never overwritten: first stop the server and move its
directory away, or name an empty PostgreSQL database. Changes after the backup
are lost: keys revoked since then work again until you revoke them again, and
today's request counts are those of the backup.
The databases need free space in their directory; for PostgreSQL, in the
directory of FILE.";

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
    database: DatabaseArgs,
}

/// The arguments of `mk restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The backup to read
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// Runs `mk backup`.
pub(crate) fn backup(args: &BackupArgs, session: &Session) -> Outcome {
    must_not_name_a_server(session)?;
    must_be_a_file(&args.file, "a backup is verified as a file, so it cannot go to standard output")?;
    if args.file.exists() && !args.file.is_file() {
        return Err(Failure::usage(format!(
            "{} exists and is not a regular file, so it is not replaced",
            args.file.display()
        ))
        .hint("name a file that does not exist yet"));
    }
    let dir = args.database.dir(
        session,
        "use `pg_dump --format=custom --file=mk.dump postgres://USER@HOST/DATABASE`, with the password in PGPASSWORD",
    )?;
    let stop = stop_cell();
    let may_continue = || stop.load(Ordering::Relaxed) == 0;
    let made = storage::backup(&dir, &args.file, args.force, Clock::system().now(), &may_continue);
    let file = args.file.display();
    let Some(packed) = made.map_err(|cause| backup_failure(&dir, &args.file, cause))? else {
        return Err(stopped(session, &stop));
    };
    let parts: Vec<_> = packed.iter().map(|(name, size)| format!("{name} ({})", kibibytes(*size))).collect();
    session
        .printer
        .sentence(&format!("backed up {} to {file}, and verified the backup", parts.join(" and ")));
    Ok(0)
}

/// Runs `mk restore`.
pub(crate) fn restore(args: &RestoreArgs, session: &Session) -> Outcome {
    must_not_name_a_server(session)?;
    must_be_a_file(
        &args.file,
        "a backup is verified before it is restored, so it cannot come from standard input",
    )?;
    if args.file.is_dir() {
        return Err(Failure::usage(format!("{} is a directory", args.file.display()))
            .hint("name the one file that `mk backup` wrote"));
    }
    let place = args.database.announced_place(session)?;
    let mut stop = None;
    let restored = match &place {
        StorePlace::Directory(dir) => storage::restore(&args.file, dir).map(Some),
        StorePlace::Postgres(address) => {
            restore_to_postgres(&args.file, address, session, stop.insert(stop_cell()))
        }
    };
    if restored.map_err(|cause| restore_failure(&place, &args.file, cause))?.is_none() {
        return Err(stopped(session, &stop.unwrap_or_default()));
    }
    session.printer.sentence(&format!("restored {} into {place}", args.file.display()));
    Ok(0)
}

/// Returns `None` if it was interrupted.
fn restore_to_postgres(
    file: &Path,
    address: &PostgresAddress,
    session: &Session,
    stop: &AtomicUsize,
) -> Result<Option<()>, Error> {
    let may_continue = || stop.load(Ordering::Relaxed) == 0;
    session.printer.notice(&format!("copying to {address}; millions of rows take minutes"));
    let Some(tables) = storage::restore_to_postgres(file, address, &may_continue)? else { return Ok(None) };
    for (table, rows) in tables {
        session.printer.detail(&format!("rows of {table}: {}", thousands(rows)));
    }
    Ok(Some(()))
}

fn stopped(session: &Session, by: &AtomicUsize) -> Failure {
    if by.load(Ordering::Relaxed) == number(runtime::SIGTERM) {
        return Failure::new(Kind::Terminated, "terminated; nothing was written");
    }
    session.printer.notice("interrupted; nothing was written");
    Failure::new(Kind::Interrupted, "interrupted")
}

/// For other commands these flags select a server; nobody must mistake a backup of another database for that server's.
fn must_not_name_a_server(session: &Session) -> Result<(), Failure> {
    let Some(flag) = session.globals.server_flag() else { return Ok(()) };
    let why = format!("{flag} selects a server, but backup and restore work on this machine's database");
    Err(Failure::usage(why)
        .hint("run this on the server's machine, or select a database with --data-dir or --config"))
}

/// For other commands `-` is standard input; here it would be a file of that name, which nobody means.
fn must_be_a_file(file: &Path, why: &str) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Err(Failure::usage(why).hint("name a file, then copy that file"));
    }
    Ok(())
}

/// Returns a cell that receives the number of the first Ctrl-C or SIGTERM, so that partial work is cleaned up; the
/// second one kills the process.
fn stop_cell() -> Arc<AtomicUsize> {
    let stop = Arc::new(AtomicUsize::new(0));
    let signals = [runtime::SIGINT, runtime::SIGTERM];
    runtime::exit_on_second(&signals);
    for signal in signals {
        // If this fails, the signal takes its default action.
        let _ = signal_hook::flag::register_usize(signal, Arc::clone(&stop), number(signal));
    }
    stop
}

/// A signal's number as stored in the cell; 0 means none.
fn number(signal: i32) -> usize {
    usize::try_from(signal).unwrap_or_default()
}

fn kibibytes(bytes: u64) -> String {
    format!("{} KiB", thousands(bytes.div_ceil(1024)))
}

fn backup_failure(dir: &Path, file: &Path, cause: Error) -> Failure {
    let into = file.parent().filter(|into| !into.as_os_str().is_empty());
    if let Some(into) = into.filter(|into| !into.exists()) {
        return Failure::usage(format!("cannot write {}: {} does not exist", file.display(), into.display()))
            .caused_by(cause);
    }
    let (dir, file) = (dir.display(), file.display());
    let failure = match kind(&cause) {
        Some(ErrorKind::AlreadyExists) => {
            Failure::new(Kind::Conflict, format!("cannot write {file}: {cause}"))
                .hint("choose another name, or add --force to replace the file")
        }
        Some(ErrorKind::NotFound) => {
            Failure::new(Kind::NotFound, format!("cannot back up {dir} to {file}: {cause}"))
                .hint("name the directory of the databases with --data-dir or MK_DATA_DIR")
        }
        _ => Failure::new(Kind::Other, format!("cannot back up {dir} to {file}: {cause}"))
            .hint("`mk doctor` checks the databases and the free disk space"),
    };
    failure.caused_by(cause)
}

fn restore_failure(place: &StorePlace, file: &Path, cause: Error) -> Failure {
    if matches!(cause, Error::Postgres(_)) {
        return database_failure(place, cause);
    }
    let file = file.display();
    let failure = match kind(&cause) {
        Some(ErrorKind::AlreadyExists) => {
            let hint = match place {
                StorePlace::Directory(_) => {
                    "stop the server and move that directory away, or name another with --data-dir"
                }
                StorePlace::Postgres(_) => {
                    "set `database_url` or MK_DATABASE_URL to an empty database; `CREATE DATABASE` creates one"
                }
            };
            Failure::new(Kind::Conflict, format!("cannot restore into {place}: {cause}")).hint(hint)
        }
        Some(ErrorKind::NotFound) => Failure::usage(format!("cannot read {file}: {cause}")),
        Some(ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            Failure::new(Kind::Other, format!("cannot restore {file} into {place}: {cause}"))
                .hint("use another backup, or copy this one again; nothing was restored")
        }
        _ => Failure::new(Kind::Other, format!("cannot restore {file} into {place}: {cause}"))
            .hint("nothing was restored"),
    };
    failure.caused_by(cause)
}

fn kind(cause: &Error) -> Option<ErrorKind> {
    match cause {
        Error::Io(cause) => Some(cause.kind()),
        _ => None,
    }
}
