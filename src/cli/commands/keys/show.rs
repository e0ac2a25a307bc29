//! `mk keys show`: prints a key's record, never the key.

use clap::Args;

use super::{Common, key_document};
use crate::api::console::Key;
use crate::cli::args::globals::Session;
use crate::cli::commands::budget::Budget;
use crate::cli::process::exit::Failure;
use crate::cli::target::admin::Admin;
use crate::cli::terminal::tabular;

/// The arguments of `mk keys show`.
#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    /// The key: its id, name, or last four characters
    key: String,

    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &ShowArgs, session: &mut Session) -> Result<(), Failure> {
    let admin = Admin::open(&args.common.database, session)?;
    print(session, &admin, admin.find_key(&args.key, &session.printer)?, args.common.json)
}

/// Prints a key's record.
pub(super) fn print(session: &Session, admin: &Admin, record: Key, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return session.printer.document(&key_document(record)?);
    }
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let limit = |own: Option<u32>| match own {
        None => "the server's".to_owned(),
        Some(0) => "unlimited".to_owned(),
        Some(limit) => limit.to_string(),
    };
    let all_or = |list: &[String]| if list.is_empty() { "all".to_owned() } else { list.join(", ") };
    let unpriced = admin.unpriced_of_keys(Some(&record.id))?;
    let budget = Budget::of_key(&record, &unpriced);
    let fields = [
        ("id", record.id),
        ("key", format!("mk_{}_…{}", record.service, record.last4)),
        ("name", or_dash(record.name)),
        ("app", record.app),
        ("state", record.state.as_str().to_owned()),
        ("created", record.created_at),
        ("expires", or_dash(record.expires_at)),
        ("last used", or_dash(record.last_used_at)),
        ("revoked", or_dash(record.revoked_at)),
        ("per minute", limit(record.limits.per_minute)),
        ("per day", limit(record.limits.per_day)),
        ("models", all_or(&record.models)),
        ("addresses", all_or(&record.addresses)),
        ("budget", budget.monthly()),
        ("spent", budget.this_month(&session.printer)),
        (
            "verified",
            record.verify.map_or_else(|| "as the server says".to_owned(), |guard| guard.to_string()),
        ),
        ("answers kept", record.cache.unwrap_or_else(|| "no".to_owned())),
        (
            "end users",
            record.end_users.map_or_else(|| "the server's".to_owned(), |limits| limits.to_string()),
        ),
    ];
    tabular::record(&session.printer, &fields)
}
