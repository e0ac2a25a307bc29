//! `mk keys`: creating, showing, changing, revoking, rotating and checking keys, in the local database or on a server.
//!
//! A new key is printed alone on standard output, so that `KEY=$(mk keys create --service verify)` works; everything
//! about it goes to standard error. No command takes a key as an argument, where every process on the machine could
//! read it.

mod check;
mod create;
mod list;
mod revoke;
mod show;
mod update;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::apps::Common;
use crate::api::console::Key;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind, Outcome};

/// Examples of `mk keys`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  KEY=$(mk keys create --service verify --name ci --expires 90d)
  mk keys create --service inference --model 'openai/*' --budget-usd 20
  mk keys list
  mk keys revoke ci                by name, last four characters, id, or `-`
  mk keys update ci --per-minute 120 --no-expiry
  mk keys rotate ci --grace 24h    a new key; the old one works for a day
  mk keys check - < key.txt        is it mistyped, and what is it for?";

/// The arguments of `mk keys`.
#[derive(Args, Debug)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create a key; it is printed once, alone on standard output
    Create(create::CreateArgs),
    /// List keys
    #[command(after_help = list::NOTES)]
    List(list::ListArgs),
    /// Show one key's record
    Show(show::ShowArgs),
    /// Change a key; what you do not specify stays unchanged
    Update(update::UpdateArgs),
    /// Revoke keys, immediately and permanently
    Revoke(revoke::RevokeArgs),
    /// Replace a key with a new one that has the same rights
    Rotate(create::RotateArgs),
    /// Check whether a key is mistyped or known, from standard input, a file or the environment
    Check(check::CheckArgs),
}

/// Runs the command.
pub(crate) fn run(args: &KeysArgs, session: &mut Session) -> Outcome {
    match &args.command {
        Command::Create(args) => create::create(args, session)?,
        Command::List(args) => list::list(args, session)?,
        Command::Show(args) => show::run(args, session)?,
        Command::Update(args) => update::run(args, session)?,
        Command::Revoke(args) => revoke::run(args, session)?,
        Command::Rotate(args) => create::rotate(args, session)?,
        Command::Check(args) => check::run(args, session)?,
    }
    Ok(0)
}

/// How people tell a key from others: `verify key …wXyZ (ci)`.
fn describe(key: &Key) -> String {
    let name = key.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{} key …{}{name}", key.service, key.last4)
}

/// The JSON document of a key's record, including the key itself if `fields` has it.
fn key_document(fields: impl Serialize) -> Result<Value, Failure> {
    let mut document = serde_json::to_value(fields).map_err(|cause| {
        Failure::new(Kind::Other, "the record cannot be written as JSON").caused_by(cause)
    })?;
    document["schema"] = json!("mk.key/1");
    Ok(document)
}
