//! `mk keys create` and `mk keys rotate`: the two commands that print a key, once.

use std::time::Duration;

use clap::Args;

use super::{Common, describe, key_document};
use crate::api::Service;
use crate::api::cache_time::CacheTime;
use crate::api::console::{App, CreatedKey, Key, KeySettings, KeyState, OwnEndUserLimits};
use crate::api::guard::Guard;
use crate::cli::args::choice::one_of;
use crate::cli::args::globals::Session;
use crate::cli::args::number::{dollars, within};
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::target::admin::Admin;
use crate::cli::target::setup_link;
use crate::clock::{Clock, Time};
use crate::keys::{NewKey, expiry};
use crate::money::NanoUsd;

/// The longest time for which a rotated key may remain valid, the same as on servers.
const MAX_GRACE: Duration = Duration::from_hours(366 * 24);

/// The arguments of `mk keys create`.
#[derive(Args, Debug)]
pub(super) struct CreateArgs {
    /// Service that the key is for: verify, inference or console
    #[arg(long, value_name = "SERVICE", value_parser = one_of(Service::ALL, Service::as_str), hide_possible_values = true)]
    service: Service,

    /// App that the key belongs to, by name or id [default: `default`, else the oldest]
    #[arg(long, value_name = "APP")]
    app: Option<String>,

    /// Name of the key
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// When it expires: 90d, 24h, or a date [default: never]
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,

    /// Limit of requests in any 60 seconds; 0 for unlimited [default: the server's limit]
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    per_minute: Option<u32>,

    /// Limit of requests per UTC day; 0 for unlimited [default: the server's limit]
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    per_day: Option<u32>,

    /// Network it may be used from, such as 10.0.0.0/8; can be repeated [default: all]
    #[arg(long = "address", value_name = "CIDR")]
    addresses: Vec<String>,

    /// Model or pool it may use: openai/gpt-5.4-mini, or openai/* for all of a provider; can be repeated
    /// [default: all]
    #[arg(long = "model", value_name = "PATTERN")]
    models: Vec<String>,

    /// Monthly budget, in US dollars per calendar month (UTC) [default: none]
    #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
    budget_usd: Option<NanoUsd>,

    /// How long to cache answers by default: 1h, 7d; up to 30d [default: no caching]
    #[arg(long, value_name = "TIME", value_parser = cache_time)]
    cache: Option<CacheTime>,

    /// Verify its answers: flag (adds verdicts) or block (withholds answers with a false claim) [default: as set for the server]
    #[arg(long, value_name = "HOW", value_parser = one_of(Guard::ALL, Guard::as_str), hide_possible_values = true)]
    verify: Option<Guard>,

    /// Limits for each end user, with commas between: `per_minute=N`, `per_day=N`, `budget_usd_per_day=N`,
    /// `budget_usd_per_month=N` [default: the server's limits]
    #[arg(long, value_name = "LIMITS", value_parser = end_users)]
    end_users: Option<OwnEndUserLimits>,

    #[command(flatten)]
    common: Common,
}

/// The arguments of `mk keys rotate`.
#[derive(Args, Debug)]
pub(super) struct RotateArgs {
    /// The key: its id, name, or last four characters
    key: String,

    /// How long the old key keeps working
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = grace)]
    grace: Duration,

    #[command(flatten)]
    common: Common,
}

pub(super) fn create(args: &CreateArgs, session: &mut Session) -> Result<(), Failure> {
    let now = Clock::system().now();
    let expires_at = args.expires.as_deref().map(|text| parse_expiry(text, now)).transpose()?;
    let settings = KeySettings {
        name: args.name.clone(),
        expires_at,
        per_minute: args.per_minute,
        per_day: args.per_day,
        addresses: args.addresses.clone(),
        models: args.models.clone(),
        budget: args.budget_usd,
        cache: args.cache,
        verify: args.verify,
        end_users: args.end_users,
    };
    // The app is passed separately when the key is created.
    let new = NewKey { settings, ..NewKey::new(args.service, "") };
    let app_of = |admin: &Admin| match &args.app {
        Some(app) => admin.app(app).map_err(with_app_hints),
        None => admin.default_app(),
    };
    let rehearse = |admin: &Admin| admin.records().create_key(&app_of(admin)?, &new).map(drop);
    let admin = Admin::open_or_create(&args.common.database, session, rehearse)?;
    let app = app_of(&admin)?;
    let namesake = args.name.as_ref().and_then(|name| namesake(&admin, &app, name));
    let made = admin.records().create_key(&app, &new)?;
    if let Some(dir) = admin.directory().filter(|_| args.service == Service::Console) {
        setup_link::remove_void(dir);
    }
    if let Some(other) = namesake {
        warn_of_namesake(session, &other, &made.record);
    }
    session.printer.sentence(&format!(
        "created {} in app `{}`; it is {}",
        describe(&made.record),
        made.record.app,
        where_shown(session)
    ));
    hand_over(session, &admin, made, args.common.json)
}

/// An active key in the same app that already has this name. If that cannot be determined, the key is created all the
/// same.
pub(super) fn namesake(admin: &Admin, app: &App, name: &str) -> Option<Key> {
    let keys = admin.keys(Some(app), None).ok()?;
    keys.into_iter().find(|key| key.state == KeyState::Active && key.name.as_deref() == Some(name))
}

/// Warns that two keys have the same name.
pub(super) fn warn_of_namesake(session: &Session, other: &Key, key: &Key) {
    let (other, id) = (describe(other), &key.id);
    session
        .printer
        .warning(&format!("the {other} has the same name; to tell them apart, use ids: this one is {id}"));
}

pub(super) fn rotate(args: &RotateArgs, session: &mut Session) -> Result<(), Failure> {
    let admin = Admin::open(&args.common.database, session)?;
    let old = admin.find_key(&args.key, &session.printer)?;
    let made = admin.records().rotate_key(&old, args.grace)?;
    let was = describe(&old);
    let end = if args.grace.is_zero() {
        "has ended".to_owned()
    } else {
        format!("ends at {}", end_of_old_key(&old, &made.record, args.grace))
    };
    let (new, shown) = (&made.record.last4, where_shown(session));
    session.printer.sentence(&format!("the {was} {end}; the new one, …{new}, is {shown}"));
    hand_over(session, &admin, made, args.common.json)
}

/// When the key that was replaced by `new` ends: after the grace period, but never past its own expiry.
fn end_of_old_key(old: &Key, new: &Key, grace: Duration) -> String {
    let own = old.expires_at.as_deref().and_then(Time::parse);
    let after_grace = Time::parse(&new.created_at).map(|made| made.plus(grace));
    own.into_iter().chain(after_grace).min().map_or_else(|| "the end of its grace".to_owned(), Time::rfc3339)
}

/// Where the new key is shown: below the sentence that announces it, or wherever standard output goes.
const fn where_shown(session: &Session) -> &'static str {
    if session.printer.terminal.out.is_terminal {
        "shown only once:"
    } else {
        "shown only once, on standard output"
    }
}

/// Prints a new key. If it cannot be shown to anybody, it is revoked.
fn hand_over(session: &Session, admin: &Admin, made: CreatedKey, is_json: bool) -> Result<(), Failure> {
    let record = made.record.clone();
    print(session, made, is_json).inspect_err(|_| {
        let outcome = match admin.records().revoke_key(&record) {
            Ok(_) => "is revoked",
            Err(_) => "could not be revoked; revoke it yourself",
        };
        let id = &record.id;
        session.printer.sentence(&format!("the new key {id} could not be printed and {outcome}"));
    })
}

/// Adds hints on how to find or create an app, if that is what was not found.
fn with_app_hints(failure: Failure) -> Failure {
    if failure.kind != Kind::NotFound {
        return failure;
    }
    failure.with_first_hint(
        "choose one with --app: `mk apps list` shows them, `mk apps create NAME` creates one",
    )
}

/// Parses `--expires`.
pub(super) fn parse_expiry(text: &str, now: Time) -> Result<Time, Failure> {
    expiry::parse(text, now).map_err(|why| Failure::usage(format!("--expires: {why}")))
}

/// Parses `--cache`.
pub(super) fn cache_time(text: &str) -> Result<CacheTime, String> {
    CacheTime::parse(text).ok_or_else(|| format!("it must be {}", CacheTime::FORM))
}

/// Parses `--end-users`.
pub(super) fn end_users(text: &str) -> Result<OwnEndUserLimits, String> {
    OwnEndUserLimits::parse(text).ok_or_else(|| format!("it must be {}", OwnEndUserLimits::FORM))
}

fn grace(text: &str) -> Result<Duration, String> {
    let grace = expiry::parse_span(text)?;
    if grace > MAX_GRACE { Err("it may be at most 366d".to_owned()) } else { Ok(grace) }
}

fn print(session: &Session, made: CreatedKey, is_json: bool) -> Result<(), Failure> {
    if is_json { session.printer.document(&key_document(made)?) } else { session.printer.result(&made.key) }
}
