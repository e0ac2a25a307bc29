//! `mk keys revoke`: prompts first, with the key, its last use and the consequence.

use clap::Args;
use serde_json::json;

use super::{Common, describe};
use crate::api::Service;
use crate::api::console::Key;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::Failure;
use crate::cli::target::admin::Admin;
use crate::cli::target::last_console_key;
use crate::cli::terminal::confirm::confirm;

/// The arguments of `mk keys revoke`.
#[derive(Args, Debug)]
pub(super) struct RevokeArgs {
    /// The keys: their ids, names, or last four characters; `-` reads a key from standard input
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,

    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &RevokeArgs, session: &mut Session) -> Result<(), Failure> {
    let admin = Admin::open(&args.common.database, session)?;
    let keys = admin.find_keys(&args.keys, &session.printer)?;
    let alive = keys.iter().filter(|key| key.revoked_at.is_none());
    let described: Vec<String> = alive
        .map(|key| {
            let used = key.last_used_at.as_deref().unwrap_or("never");
            format!("the {} of the app `{}`, last used: {used}", describe(key), key.app)
        })
        .collect();
    if !described.is_empty() {
        let question = format!(
            "Revoke{} {}? It stops working at once. This cannot be undone.",
            // Before the keys: after them it would read as the place of the last use.
            admin.location_suffix(),
            described.join("; and ")
        );
        let has_console_key = keys.iter().any(|key| key.service == Service::Console);
        let is_ending = |key: &Key| keys.iter().any(|ending| ending.id == key.id);
        let warning = if has_console_key { last_console_key::warning(&admin, is_ending) } else { None };
        confirm(&session.printer, &question, warning.as_deref(), args.yes)?;
    }
    let mut revoked = Vec::new();
    for key in &keys {
        let outcome = admin.records().revoke_key(key)?;
        let what = describe(key);
        let when = if key.revoked_at.is_some() { "was already revoked" } else { "is revoked" };
        session.printer.sentence(&format!("the {what} {when}"));
        revoked.push(outcome);
    }
    if args.common.json {
        session.printer.document(&json!({ "schema": "mk.keys.revoked/1", "revoked": revoked }))?;
    }
    Ok(())
}
