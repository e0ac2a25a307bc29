//! What is measured: the scenarios, and what each of them asks of whom.

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;

use crate::caller::Expected;
use crate::completions::{SLOW, THINKING};
use crate::figures::Target;
use crate::load::Load;
use crate::mk::{MODEL, Mk, SLOW_MODEL};
use crate::nginx::CHEAP;
use crate::requests::{CHAT, HEALTH, HEALTHY, STREAM, UNAUTHORIZED, WHOLE, completion, get, post};
use crate::stand::Stand;

/// One load, put on each target in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Whole answers, 32 callers
    Chat32,
    /// Whole answers, 128 callers
    Chat128,
    /// Whole answers, one caller, 100 requests a second
    Paced,
    /// Streams, 16 callers
    Streams,
    /// Whole answers of a provider that takes 200 ms, 512 callers
    Slow,
    /// Refusals of a key that is not known
    Unauthorized,
    /// Refusals of a key whose limit is used up
    Limited,
    /// The health page
    Health,
}

const AT_ONCE: Duration = Duration::ZERO;
/// Of one caller: 100 requests a second.
const PACE: Duration = Duration::from_millis(10);
/// Where the provider completes chats, and a proxy in front of it.
const COMPLETIONS: &str = "/v1/chat/completions";

const LIMITED: Expected = Expected { status: 429, text: "rate_limited_day", events: 0 };

impl Scenario {
    /// Its headline.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Chat32 => "chat, 32 connections",
            Self::Chat128 => "chat, 128 connections",
            Self::Paced => "chat, one connection, 100 requests a second",
            Self::Streams => "streams of 100 pieces, 16 connections",
            Self::Slow => "chat, 512 connections, provider takes 200 ms",
            Self::Unauthorized => "401 to an unknown key, 32 connections (nginx: return 200)",
            Self::Limited => "429 to a key without requests left, 32 connections (nginx: return 200)",
            Self::Health => "health, 32 connections (nginx: return 200)",
        }
    }

    /// Whether the provider has a part in it, so that it can be asked directly.
    pub(crate) const fn reaches_provider(self) -> bool {
        !matches!(self, Self::Unauthorized | Self::Limited | Self::Health)
    }

    /// How many times as long as others it takes, as few requests give rough percentiles.
    pub(crate) const fn share(self) -> u32 {
        match self {
            Self::Paced => 2,
            _ => 1,
        }
    }

    /// Its load on `target`; nothing where the target has no part in it.
    pub(crate) fn load(self, target: Target, stand: &Stand) -> Option<Load> {
        let address = match target {
            Target::Direct => stand.provider,
            Target::Nginx if self == Self::Streams => stand.nginx.as_ref()?.streams,
            Target::Nginx => stand.nginx.as_ref()?.whole,
            Target::Mk => stand.mk.address,
        };
        let (connections, every, spread) = match self {
            Self::Chat128 => (128, AT_ONCE, AT_ONCE),
            Self::Paced => (1, PACE, AT_ONCE),
            Self::Streams => (16, AT_ONCE, AT_ONCE),
            Self::Slow => (512, AT_ONCE, THINKING),
            Self::Chat32 | Self::Unauthorized | Self::Limited | Self::Health => (32, AT_ONCE, AT_ONCE),
        };
        let (request, expected) = match target {
            Target::Direct if !self.reaches_provider() => return None,
            Target::Direct | Target::Nginx => self.of_proxy(address, stand),
            Target::Mk => self.of_mk(address, &stand.mk),
        };
        Some(Load { address, request, expected, connections, every, spread })
    }

    /// What a proxy is asked that knows nothing of chat completions, and the provider behind it.
    fn of_proxy(self, address: SocketAddr, stand: &Stand) -> (Vec<u8>, Expected) {
        // The same request, down to its length, as for `mk`.
        let post = |path: &str| post(address, path, &stand.mk.key, &self.body(MODEL));
        match self {
            Self::Health => (get(address, CHEAP), HEALTHY),
            Self::Unauthorized | Self::Limited => (post(CHEAP), HEALTHY),
            Self::Slow => (post(&format!("{SLOW}{COMPLETIONS}")), WHOLE),
            Self::Streams => (post(COMPLETIONS), STREAM),
            Self::Chat32 | Self::Chat128 | Self::Paced => (post(COMPLETIONS), WHOLE),
        }
    }

    fn of_mk(self, address: SocketAddr, mk: &Mk) -> (Vec<u8>, Expected) {
        let post = |key: &str, model: &str| post(address, CHAT, key, &self.body(model));
        match self {
            Self::Health => (get(address, HEALTH), HEALTHY),
            Self::Unauthorized => (post(&mk.foreign_key, MODEL), UNAUTHORIZED),
            Self::Limited => (post(&mk.scarce_key, MODEL), LIMITED),
            Self::Slow => (post(&mk.key, SLOW_MODEL), WHOLE),
            Self::Streams => (post(&mk.key, MODEL), STREAM),
            Self::Chat32 | Self::Chat128 | Self::Paced => (post(&mk.key, MODEL), WHOLE),
        }
    }

    fn body(self, model: &str) -> String {
        completion(model, self == Self::Streams)
    }
}

/// A request that uses the one that a key has; it must be answered.
pub(crate) fn only_one(mk: &Mk) -> Load {
    let (address, every, spread) = (mk.address, AT_ONCE, AT_ONCE);
    let request = post(address, CHAT, &mk.scarce_key, &Scenario::Limited.body(MODEL));
    Load { address, request, expected: WHOLE, connections: 1, every, spread }
}
