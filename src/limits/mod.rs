//! Rate limits: an exact sliding minute and a UTC day per key, a minute per client address.
//!
//! `window` holds the arithmetic, pure and with the time as a parameter; `memory` the state of one node, sharded and
//! bounded; `shared` that of several, in Redis or Valkey; [`Limiter`] is the one or the other. [`State`] and [`Decision`]
//! are what the response headers are made of. Both windows are taken or neither. A refused request takes nothing.

mod addresses;
mod limiter;
mod memory;
mod shared;
mod state;
mod window;

pub use limiter::{Limiter, StoreReading};
pub use shared::{LimitsStore, StoreAddress, StoreCondition, examine as examine_store};
pub use state::{Decision, State, Window, WindowState};

use std::net::IpAddr;
use std::sync::Arc;

/// How much a subject may do; `0` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// In any 60 seconds.
    pub per_minute: u32,
    /// In a UTC day.
    pub per_day: u32,
}

/// What an operator can set about limits.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// For keys without limits of their own.
    pub keys: Quota,
    /// For health and other open pages, per address and minute.
    pub open_pages_per_minute: u32,
    /// For failed authentication, per address and minute.
    pub failed_auth_per_minute: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keys: Quota { per_minute: 60, per_day: 1000 },
            open_pages_per_minute: 600,
            failed_auth_per_minute: 60,
        }
    }
}

/// How often an address may try to begin a session in any 60 seconds. A person needs a few; whoever guesses keys, or
/// makes the server write, is held up.
pub const LOGINS_PER_MINUTE: u32 = 10;

/// Who is counted; each kind in buckets of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A valid key, by its id.
    Key(Arc<str>),
    /// Whoever opens a page that needs no key, by address. Has no day window: a probe must not lock itself out.
    OpenPage(IpAddr),
    /// Whoever fails to authenticate, by address. Has no day window either.
    FailedAuth(IpAddr),
    /// Whoever tries to begin a session, by address, whatever comes of it. Has no day window either.
    Login(IpAddr),
    /// Sessions of the dashboard, by the id of their key, whose own limits they leave alone. Has no day window either.
    Session(Arc<str>),
}
