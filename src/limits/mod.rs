//! Rate limits: an exact sliding minute and a UTC day per key and per end user, and a sliding minute per client address.
//!
//! `window` holds the arithmetic, pure and with the time as a parameter; `memory` holds the state of one server,
//! sharded and bounded; `shared` keeps the state of several servers in Redis or Valkey; [`Limiter`] uses the one or the
//! other. The response headers are made of [`LimitState`] and [`Decision`]. A request is counted in both windows or in
//! neither; a refused request is not counted.

mod addresses;
mod decision;
mod limiter;
mod memory;
mod shared;
mod window;

pub use decision::{Decision, LimitState, Window, WindowState};
pub use limiter::{Limiter, StoreReading};
pub use shared::{LimitsStore, StoreAddress, StoreCondition, examine as examine_store};

use std::net::IpAddr;
use std::sync::Arc;

use crate::money::NanoUsd;

/// The limits of a subject; `0` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests in any 60 seconds.
    pub per_minute: u32,
    /// Requests in a UTC day.
    pub per_day: u32,
}

/// The limits that an operator can configure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// For keys without limits of their own.
    pub keys: Quota,
    /// For health and other open pages, per address and minute.
    pub open_pages_per_minute: u32,
    /// For failed authentication, per address and minute.
    pub failed_auth_per_minute: u32,
    /// For each end user of an app.
    pub end_users: EndUserLimits,
}

/// The limits of each end user of an app, whichever of its keys the requests come with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndUserLimits {
    /// Requests.
    pub quota: Quota,
    /// What their requests may cost on a UTC day; `None` for any amount.
    pub budget_per_day: Option<NanoUsd>,
    /// What their requests may cost in a calendar month (UTC); `None` for any amount.
    pub budget_per_month: Option<NanoUsd>,
}

impl EndUserLimits {
    /// Whether what they spend is limited.
    pub const fn has_budget(&self) -> bool {
        self.budget_per_day.is_some() || self.budget_per_month.is_some()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keys: Quota { per_minute: 60, per_day: 1000 },
            open_pages_per_minute: 600,
            failed_auth_per_minute: 60,
            end_users: EndUserLimits {
                quota: Quota { per_minute: 0, per_day: 0 },
                budget_per_day: None,
                budget_per_month: None,
            },
        }
    }
}

/// How often an address may try to log in within 60 seconds. A person needs a few attempts; the limit slows down
/// anybody who guesses keys or makes the server write.
pub const LOGINS_PER_MINUTE: u32 = 10;

/// Whose requests are counted; each kind has buckets of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A valid key, by its id.
    Key(Arc<str>),
    /// A client of pages that need no key, by address. Has no day window: a health probe must not lock itself out.
    OpenPage(IpAddr),
    /// A client that fails to authenticate, by address. Has no day window either.
    FailedAuth(IpAddr),
    /// A client that tries to log in, by address, whatever the outcome. Has no day window either.
    Login(IpAddr),
    /// Dashboard sessions, by the id of their key, whose own limits they do not use up. Has no day window either.
    Session(Arc<str>),
    /// An end user of an app, by what they are counted by in the place of their name.
    EndUser(Arc<str>),
}

impl Subject {
    /// The id by which its days are counted; `None` for what has no day window.
    fn counted_id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Key(id) | Self::EndUser(id) => Some(id),
            Self::OpenPage(_) | Self::FailedAuth(_) | Self::Login(_) | Self::Session(_) => None,
        }
    }
}
