//! `mk keys create` and `mk keys rotate`: the two commands that print a key, once.

use std::time::Duration;

use clap::Args;

use super::{Common, describe, key_document};
use crate::api::Service;
use crate::api::console::{App, CreatedKey, Key, KeyState};
use crate::cli::desk::Desk;
use crate::cli::exit::{Failure, Kind};
use crate::cli::globals::Session;
use crate::cli::number::{dollars, within};
use crate::cli::service::one_of;
use crate::clock::{Clock, Time};
use crate::keys::{NewKey, expiry};
use crate::money::NanoUsd;

/// The longest that a rotated key may live on, as at servers.
const MAX_GRACE: Duration = Duration::from_hours(366 * 24);

/// The arguments of `mk keys create`.
#[derive(Args, Debug)]
pub(super) struct CreateArgs {
    /// What it is for: verify, inference or console
    #[arg(long, value_name = "SERVICE", value_parser = one_of(Service::ALL), hide_possible_values = true)]
    service: Service,

    /// The app it belongs to, by name or id [default: `default`, else the oldest]
    #[arg(long, value_name = "APP")]
    app: Option<String>,

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
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = grace)]
    grace: Duration,

    #[command(flatten)]
    pub(super) common: Common,
}

pub(super) fn create(args: &CreateArgs, session: &mut Session) -> Result<(), Failure> {
    let now = Clock::system().now();
    let expires_at = args.expires.as_deref().map(|text| ends(text, now)).transpose()?;
    let new = NewKey {
        name: args.name.clone(),
        expires_at,
        per_minute: args.per_minute,
        per_day: args.per_day,
        addresses: args.addresses.clone(),
        models: args.models.clone(),
        budget: args.budget_usd,
        // Its app is named to the desk, which alone knows it.
        ..NewKey::new(args.service, "")
    };
    let app_of = |desk: &Desk| match &args.app {
        Some(app) => desk.app(app).map_err(no_app_or),
        None => desk.usual_app(),
    };
    let rehearse = |desk: &Desk| desk.create_key(&app_of(desk)?, &new).map(drop);
    let desk = Desk::open_or_make(&args.common.database, session, rehearse)?;
    let app = app_of(&desk)?;
    let namesake = args.name.as_ref().and_then(|name| namesake(&desk, &app, name));
    let made = desk.create_key(&app, &new)?;
    if let Some(other) = namesake {
        warn_of_namesake(session, &other, &made.record);
    }
    session.printer.sentence(&format!(
        "made the {} in the app `{}`; it is {}",
        describe(&made.record),
        made.record.app,
        this_once(session)
    ));
    hand_over(session, &desk, made, args.common.json)
}

/// A key of the same app that already has this name and works. Not to be told of it is no reason to make none.
pub(super) fn namesake(desk: &Desk, app: &App, name: &str) -> Option<Key> {
    let keys = desk.keys(Some(app), None).ok()?;
    keys.into_iter().find(|key| key.state == KeyState::Active && key.name.as_deref() == Some(name))
}

/// Says that a key has the name of another one.
pub(super) fn warn_of_namesake(session: &Session, other: &Key, key: &Key) {
    let (other, id) = (describe(other), &key.id);
    session.printer.warning(&format!("the {other} has this name too; ids tell them apart: this one is {id}"));
}

pub(super) fn rotate(args: &RotateArgs, session: &mut Session) -> Result<(), Failure> {
    let desk = Desk::open(&args.common.database, session)?;
    let old = desk.key_named(&args.key, &session.printer)?;
    let made = desk.rotate_key(&old, args.grace)?;
    let was = describe(&old);
    let end = if args.grace.is_zero() {
        "has ended".to_owned()
    } else {
        format!("ends at {}", end_of(&old, &made.record, args.grace))
    };
    session.printer.sentence(&format!("the {was} {end}; the new one is {}", this_once(session)));
    hand_over(session, &desk, made, args.common.json)
}

/// When a key ends that was replaced by `new`: after its grace, but never past its own expiry.
fn end_of(old: &Key, new: &Key, grace: Duration) -> String {
    let own = old.expires_at.as_deref().and_then(Time::parse);
    let after_grace = Time::parse(&new.created_at).map(|made| made.plus(grace));
    own.into_iter().chain(after_grace).min().map_or_else(|| "the end of its grace".to_owned(), Time::rfc3339)
}

/// Where the key is: beneath the sentence that says so, or somewhere that only the person knows.
const fn this_once(session: &Session) -> &'static str {
    if session.printer.terminal.out.is_terminal {
        "shown this once:"
    } else {
        "on standard output, this once"
    }
}

/// Prints a new key. One that nobody could see must not live on.
fn hand_over(session: &Session, desk: &Desk, made: CreatedKey, is_json: bool) -> Result<(), Failure> {
    let record = made.record.clone();
    print(session, made, is_json).inspect_err(|_| {
        let outcome = match desk.revoke_key(&record) {
            Ok(_) => "is revoked",
            Err(_) => "could not be revoked; revoke it yourself",
        };
        let id = &record.id;
        session.printer.sentence(&format!("the new key {id} could not be shown and {outcome}"));
    })
}

/// Where the app is what was not found, says how to come by one.
fn no_app_or(mut failure: Failure) -> Failure {
    if failure.kind == Kind::NotFound {
        failure.hints = vec![
            "`mk apps list` shows those there are, `mk apps create NAME` makes one; --app chooses".to_owned(),
        ];
    }
    failure
}

/// When a key is to end.
pub(super) fn ends(text: &str, now: Time) -> Result<Time, Failure> {
    expiry::parse(text, now).map_err(|why| Failure::usage(format!("--expires: {why}")))
}

fn grace(text: &str) -> Result<Duration, String> {
    let grace = expiry::parse_span(text)?;
    if grace > MAX_GRACE { Err("it may be at most 366d".to_owned()) } else { Ok(grace) }
}

fn print(session: &Session, made: CreatedKey, is_json: bool) -> Result<(), Failure> {
    if is_json { session.printer.document(&key_document(made)?) } else { session.printer.result(&made.key) }
}
