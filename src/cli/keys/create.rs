//! `mk keys create` and `mk keys rotate`: the two commands that print a key, once.

use std::time::Duration;

use clap::Args;

use super::{Common, describe, key_document, named};
use crate::api::Service;
use crate::api::console::{CreatedKey, Key};
use crate::cli::exit::{Failure, Kind};
use crate::cli::globals::Session;
use crate::cli::local::{Local, refused};
use crate::cli::number::{dollars, within};
use crate::clock::Time;
use crate::keys::{self, NewKey, expiry};
use crate::money::NanoUsd;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::KeyRow;

/// The arguments of `mk keys create`.
#[derive(Args, Debug)]
pub(super) struct CreateArgs {
    /// What it is for: verify, inference or console
    #[arg(long, value_name = "SERVICE")]
    service: Service,

    /// The app it belongs to, by name or id
    #[arg(long, value_name = "APP", default_value = "default")]
    app: String,

    /// A name to remember it by
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// When it ends: 90d, 24h, or a date [default: never]
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,

    /// Requests in any 60 seconds; 0 is unlimited [default: the server's limit]
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    per_minute: Option<u32>,

    /// Requests in a UTC day; 0 is unlimited [default: the server's limit]
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    per_day: Option<u32>,

    /// A network it may be used from, such as 10.0.0.0/8; repeat it for several [default: all]
    #[arg(long = "address", value_name = "CIDR")]
    addresses: Vec<String>,

    /// A model it may use: openai/gpt-5.4-mini, or openai/* for a provider's; repeat it for several [default: all]
    #[arg(long = "model", value_name = "PATTERN")]
    models: Vec<String>,

    /// What it may spend in a calendar month (UTC), in US dollars [default: any amount]
    #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
    budget_usd: Option<NanoUsd>,

    #[command(flatten)]
    pub(super) common: Common,
}

/// The arguments of `mk keys rotate`.
#[derive(Args, Debug)]
pub(super) struct RotateArgs {
    /// The key: its id, name, or last four characters
    key: String,

    /// How long the old key goes on working
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = expiry::parse_span)]
    grace: Duration,

    #[command(flatten)]
    pub(super) common: Common,
}

pub(super) fn create(args: &CreateArgs, session: &Session) -> Result<(), Failure> {
    let local = args.common.database.open(session)?;
    let new = NewKey {
        name: args.name.clone(),
        expires_at: args.expires.as_deref().map(|text| ends(text, local.now)).transpose()?,
        per_minute: args.per_minute,
        per_day: args.per_day,
        addresses: args.addresses.clone(),
        models: args.models.clone(),
        budget: args.budget_usd,
        ..NewKey::of(args.service, &args.app)
    };
    let made = keys::create(&local.store, &new, local.now);
    let (key, row) = made.map_err(|cause| no_app_or(refused(cause, &format!("app `{}`", args.app))))?;
    session.printer.sentence(&format!(
        "made the {} in the app `{}`; it is shown this once:",
        describe(&row),
        row.app_name
    ));
    hand_over(session, &local, &key, &row, args.common.json)
}

pub(super) fn rotate(args: &RotateArgs, session: &Session) -> Result<(), Failure> {
    let local = args.common.database.open(session)?;
    let old = named(&local, &args.key)?;
    let made = keys::rotate(&local.store, &old.id, args.grace, local.now);
    let (key, row) = made.map_err(|cause| refused(cause, "key"))?;
    let was = describe(&old);
    let end = if args.grace.is_zero() {
        "has ended".to_owned()
    } else {
        format!("ends at {}", local.now.plus(args.grace).rfc3339())
    };
    session.printer.sentence(&format!("the {was} {end}; the new one is shown this once:"));
    hand_over(session, &local, &key, &row, args.common.json)
}

/// Prints a new key. One that nobody could see must not live on.
fn hand_over(
    session: &Session,
    local: &Local,
    key: &SecretString,
    row: &KeyRow,
    is_json: bool,
) -> Result<(), Failure> {
    let id = &row.id;
    // Nobody has used it yet.
    let record = keys::record(row, NanoUsd::default(), local.now);
    print(session, key, record, is_json).inspect_err(|_| {
        let outcome = match local.store.revoke_key(id, local.now) {
            Ok(_) => "is revoked",
            Err(_) => "could not be revoked; revoke it yourself",
        };
        session.printer.sentence(&format!("the new key {id} could not be shown and {outcome}"));
    })
}

/// Where the app is what was not found, says how to come by one.
fn no_app_or(failure: Failure) -> Failure {
    if failure.kind != Kind::NotFound {
        return failure;
    }
    failure.hint("`mk apps list` shows those there are, `mk apps create NAME` makes one; --app chooses")
}

fn ends(text: &str, now: Time) -> Result<Time, Failure> {
    expiry::parse(text, now).map_err(|why| Failure::usage(format!("--expires: {why}")))
}

fn print(session: &Session, key: &SecretString, record: Key, is_json: bool) -> Result<(), Failure> {
    if !is_json {
        return session.printer.result(key.expose_secret());
    }
    let created = CreatedKey { key: key.expose_secret().to_owned(), record };
    session.printer.document(&key_document(created)?)
}
