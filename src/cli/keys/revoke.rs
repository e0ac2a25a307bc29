//! `mk keys revoke`: asks, naming the key, its last use and the consequence.

use clap::Args;
use serde_json::json;

use super::{Common, describe, named};
use crate::cli::confirm::confirm;
use crate::cli::exit::Failure;
use crate::cli::globals::Session;
use crate::cli::local::stored;
use crate::clock::{Clock, Time};

/// The arguments of `mk keys revoke`.
#[derive(Args, Debug)]
pub(super) struct RevokeArgs {
    /// The keys: their ids, names, or last four characters; `-` reads a key from standard input
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    pub(super) common: Common,
}

pub(super) fn run(args: &RevokeArgs, session: &Session) -> Result<(), Failure> {
    let local = args.common.database.open(session)?;
    let rows = args.keys.iter().map(|text| named(&local, text)).collect::<Result<Vec<_>, _>>()?;
    let alive = rows.iter().filter(|row| row.revoked_at.is_none());
    let named: Vec<String> = alive
        .map(|row| {
            let used = row.last_used_at.map_or_else(|| "never".to_owned(), Time::rfc3339);
            format!("the {} of the app `{}`, last used: {used}", describe(row), row.app_name)
        })
        .collect();
    if !args.yes && !named.is_empty() {
        let question = format!(
            "Revoke {}? Whoever uses it is refused from this moment on; it cannot be undone.",
            named.join("; and ")
        );
        confirm(&session.printer, &question, "--yes")?;
    }
    // A person may have taken a while to answer.
    let now = Clock::system().now();
    let mut revoked = Vec::new();
    for row in &rows {
        let at = local.store.revoke_key(&row.id, now).map_err(|cause| stored(cause, "key"))?;
        let what = describe(row);
        let when = if row.revoked_at.is_some() { "had been revoked already" } else { "is revoked" };
        session.printer.sentence(&format!("the {what} {when}"));
        revoked.push(json!({ "id": row.id, "revoked_at": at.rfc3339() }));
    }
    if args.common.json {
        session.printer.document(&json!({ "schema": "mk.keys.revoked/1", "revoked": revoked }))?;
    }
    Ok(())
}
