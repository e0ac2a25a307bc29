//! `mk keys update`: changes what a key may do, from the next request on.

use clap::Args;

use super::create::{cache_time, end_users, namesake, parse_expiry, warn_of_namesake};
use super::{Common, show};
use crate::api::cache_time::CacheTime;
use crate::api::console::{KeyChange, LimitsChange, OwnEndUserLimits};
use crate::api::guard::Guard;
use crate::cli::args::choice::one_of;
use crate::cli::args::globals::Session;
use crate::cli::args::number::{dollars, within};
use crate::cli::guide::usage_error;
use crate::cli::process::exit::Failure;
use crate::cli::target::admin::Admin;
use crate::clock::Clock;
use crate::money::NanoUsd;

/// The arguments of `mk keys update`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each takes something else away")]
pub(super) struct UpdateArgs {
    /// The key: its id, name, or last four characters
    key: String,

    /// New name of the key
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Remove the name
    #[arg(long, conflicts_with = "name")]
    no_name: bool,

    /// When it expires: 90d or 24h from now, or a date
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,

    /// Remove the expiry
    #[arg(long, conflicts_with = "expires")]
    no_expiry: bool,

    /// Limit of requests in any 60 seconds; 0 for unlimited
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    per_minute: Option<u32>,

    /// Use the server's limit again
    #[arg(long, conflicts_with = "per_minute")]
    default_per_minute: bool,

    /// Limit of requests per UTC day; 0 for unlimited
    #[arg(long, value_name = "N", value_parser = within(0..=u32::MAX), allow_negative_numbers = true)]
    per_day: Option<u32>,

    /// Use the server's limit again
    #[arg(long, conflicts_with = "per_day")]
    default_per_day: bool,

    /// Network it may be used from, such as 10.0.0.0/8; can be repeated. Replaces the current ones
    #[arg(long = "address", value_name = "CIDR")]
    addresses: Vec<String>,

    /// Allow all networks
    #[arg(long, conflicts_with = "addresses")]
    all_addresses: bool,

    /// Model or pool it may use: openai/gpt-5.4-mini, or openai/* for all of a provider; can be repeated.
    /// Replaces the current ones
    #[arg(long = "model", value_name = "PATTERN")]
    models: Vec<String>,

    /// Allow all models
    #[arg(long, conflicts_with = "models")]
    all_models: bool,

    /// Monthly budget, in US dollars per calendar month (UTC)
    #[arg(long, value_name = "N", value_parser = dollars, allow_negative_numbers = true)]
    budget_usd: Option<NanoUsd>,

    /// Remove the budget
    #[arg(long, conflicts_with = "budget_usd")]
    no_budget: bool,

    /// How long to cache answers by default: 1h, 7d; up to 30d
    #[arg(long, value_name = "TIME", value_parser = cache_time)]
    cache: Option<CacheTime>,

    /// Cache no answers by default
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,

    /// Verify its answers: flag (adds verdicts) or block (withholds answers with a false claim)
    #[arg(long, value_name = "HOW", value_parser = one_of(Guard::ALL, Guard::as_str), hide_possible_values = true)]
    verify: Option<Guard>,

    /// Verify its answers only as set for the server
    #[arg(long, conflicts_with = "verify")]
    no_verify: bool,

    /// Limits for each end user, with commas between: `per_minute=N`, `per_day=N`, `budget_usd_per_day=N`,
    /// `budget_usd_per_month=N`. Replaces the current ones
    #[arg(long, value_name = "LIMITS", value_parser = end_users)]
    end_users: Option<OwnEndUserLimits>,

    /// Use the server's limits for each end user again
    #[arg(long, conflicts_with = "end_users")]
    no_end_users: bool,

    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &UpdateArgs, session: &mut Session) -> Result<(), Failure> {
    let now = Clock::system().now();
    let expires_at = args.expires.as_deref().map(|text| parse_expiry(text, now)).transpose()?;
    let change = KeyChange {
        name: change_to(args.name.clone(), args.no_name),
        expires_at: change_to(expires_at, args.no_expiry),
        limits: LimitsChange {
            per_minute: change_to(args.per_minute, args.default_per_minute),
            per_day: change_to(args.per_day, args.default_per_day),
        },
        models: change_list(&args.models, args.all_models),
        addresses: change_list(&args.addresses, args.all_addresses),
        budget: change_to(args.budget_usd, args.no_budget),
        cache: change_to(args.cache, args.no_cache),
        verify: change_to(args.verify, args.no_verify),
        end_users: change_to(args.end_users, args.no_end_users),
    };
    if change == KeyChange::default() {
        return Err(usage_error::no_change("keys"));
    }
    let admin = Admin::open(&args.common.database, session)?;
    let key = admin.find_key(&args.key, &session.printer)?;
    let namesake = args.name.as_ref().and_then(|name| namesake(&admin, &admin.app(&key.app_id).ok()?, name));
    let updated = admin.records().update_key(&key, &change)?;
    if let Some(other) = namesake.filter(|other| other.id != updated.id) {
        warn_of_namesake(session, &other, &updated);
    }
    show::print(session, &admin, updated, args.common.json)
}

/// A new value, removal, or no change.
#[expect(clippy::option_option, reason = "as a change has it")]
fn change_to<T>(new: Option<T>, is_removed: bool) -> Option<Option<T>> {
    if is_removed { Some(None) } else { new.map(Some) }
}

/// A new list, an empty one (which means all), or no change.
fn change_list(new: &[String], is_removed: bool) -> Option<Vec<String>> {
    (is_removed || !new.is_empty()).then(|| new.to_vec())
}
