//! What is measured: the scenarios, and the requests they send to each target.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;

use crate::caller::Expected;
use crate::completions::{SLOW, THINKING};
use crate::figures::Target;
use crate::load::Load;
use crate::mk::{MODEL, Mk, SLOW_MODEL};
use crate::nginx::CHEAP;
use crate::protocols::{Other, Shape};
use crate::requests::{
    CHAT, HEALTH, HEALTHY, STREAM, UNAUTHORIZED, WHOLE, completion, get, longer_completion, post,
};
use crate::targets::Targets;

/// One load, put on each target in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Whole responses, 32 callers
    Chat32,
    /// Whole responses, 128 callers
    Chat128,
    /// Whole responses, one caller, 100 requests per second
    Paced,
    /// Streams, 16 callers
    Streams,
    /// Whole responses of a provider that takes 200 ms, 512 callers
    Slow,
    /// Refusals of an unknown key
    Unauthorized,
    /// Refusals of a key whose limit is used up
    Limited,
    /// The health page
    Health,
    /// Messages and Responses beside chat completions of the same shape, 16 callers
    Protocols,
    /// Bodies of 32 MiB in all protocols, as many at once as the server takes
    Bodies,
    /// With its question so many times over.
    #[value(skip)]
    Other(Other, usize),
}

/// How often the question is asked in a body of 32 MiB, the most that one may have.
pub(crate) const LONGEST: usize = 107_000;
const AT_ONCE: Duration = Duration::ZERO;
/// The interval of one caller that sends 100 requests per second.
const PACE: Duration = Duration::from_millis(10);
/// The path of completions at the provider and at a proxy in front of it.
const COMPLETIONS: &str = "/v1/chat/completions";

const LIMITED: Expected = Expected { status: 429, text: "rate_limited_day", events: 0 };

impl Scenario {
    /// The scenarios that it is made of.
    pub(crate) fn parts(self) -> Vec<Self> {
        match self {
            Self::Protocols => Other::all().map(|other| Self::Other(other, other.shape.times())).collect(),
            Self::Bodies => {
                let whole = Other::all().filter(|other| other.shape == Shape::Whole);
                whole.map(|other| Self::Other(other, LONGEST)).collect()
            }
            single => vec![single],
        }
    }

    /// Its title in the table.
    pub(crate) fn title(self) -> Cow<'static, str> {
        let title = match self {
            Self::Chat32 => "chat, 32 connections",
            Self::Chat128 => "chat, 128 connections",
            Self::Paced => "chat, one connection, 100 requests a second",
            Self::Streams => "streams of 100 pieces, 16 connections",
            Self::Slow => "chat, 512 connections, provider takes 200 ms",
            Self::Unauthorized => "401 to an unknown key, 32 connections (nginx: return 200)",
            Self::Limited => "429 to a key without requests left, 32 connections (nginx: return 200)",
            Self::Health => "health, 32 connections (nginx: return 200)",
            Self::Protocols => "messages and responses, 16 connections",
            Self::Bodies => "bodies of 32 MiB, 4 connections",
            Self::Other(Other { protocol, way, .. }, LONGEST) => {
                return format!("{protocol:?}, {way:?}, bodies of 32 MiB, 4 connections").into();
            }
            Self::Other(Other { protocol, way, shape }, _) => {
                return format!("{protocol:?}, {way:?}, {shape:?}, 16 connections").into();
            }
        };
        title.into()
    }

    /// Whether it reaches the provider, so that the provider can be a target itself.
    pub(crate) const fn reaches_provider(self) -> bool {
        !matches!(
            self,
            Self::Unauthorized
                | Self::Limited
                | Self::Health
                | Self::Protocols
                | Self::Bodies
                | Self::Other(..)
        )
    }

    /// How many times as long as the others it runs: few requests give inaccurate percentiles.
    pub(crate) const fn share(self) -> u32 {
        match self {
            Self::Paced => 2,
            _ => 1,
        }
    }

    /// Its load on `target`; `None` if the target is not part of it.
    pub(crate) fn load(self, target: Target, targets: &Targets) -> Option<Load> {
        let address = match target {
            Target::Direct => targets.provider,
            Target::Nginx if self == Self::Streams => targets.nginx.as_ref()?.streams,
            Target::Nginx => targets.nginx.as_ref()?.whole,
            Target::Mk | Target::Chat => targets.mk.address,
        };
        let every = if self == Self::Paced { PACE } else { AT_ONCE };
        let spread = if self == Self::Slow { THINKING } else { AT_ONCE };
        let (request, expected) = match target {
            Target::Direct if !self.reaches_provider() => return None,
            Target::Direct | Target::Nginx => self.of_proxy(address, targets)?,
            Target::Mk => self.of_mk(address, &targets.mk)?,
            Target::Chat => self.of_chat(address, &targets.mk)?,
        };
        Some(Load { address, request, expected, connections: self.connections(), every, spread })
    }

    const fn connections(self) -> usize {
        match self {
            Self::Paced => 1,
            // More are refused, see `inference_max_body_bytes`.
            Self::Bodies | Self::Other(_, LONGEST) => 4,
            Self::Streams | Self::Protocols | Self::Other(..) => 16,
            Self::Chat32 | Self::Unauthorized | Self::Limited | Self::Health => 32,
            Self::Chat128 => 128,
            Self::Slow => 512,
        }
    }

    /// The request to a proxy that knows nothing of chat completions, and to the provider behind it.
    fn of_proxy(self, address: SocketAddr, targets: &Targets) -> Option<(Vec<u8>, Expected)> {
        // The same request as to `mk`, even in length.
        let post = |path: &str| post(address, path, &targets.mk.key, &self.body(MODEL));
        Some(match self {
            Self::Health => (get(address, CHEAP), HEALTHY),
            Self::Unauthorized | Self::Limited => (post(CHEAP), HEALTHY),
            Self::Slow => (post(&format!("{SLOW}{COMPLETIONS}")), WHOLE),
            Self::Streams => (post(COMPLETIONS), STREAM),
            Self::Chat32 | Self::Chat128 | Self::Paced => (post(COMPLETIONS), WHOLE),
            Self::Protocols | Self::Bodies | Self::Other(..) => return None,
        })
    }

    fn of_mk(self, address: SocketAddr, mk: &Mk) -> Option<(Vec<u8>, Expected)> {
        let post = |key: &str, model: &str| post(address, CHAT, key, &self.body(model));
        Some(match self {
            Self::Health => (get(address, HEALTH), HEALTHY),
            Self::Unauthorized => (post(&mk.foreign_key, MODEL), UNAUTHORIZED),
            Self::Limited => (post(&mk.scarce_key, MODEL), LIMITED),
            Self::Slow => (post(&mk.key, SLOW_MODEL), WHOLE),
            Self::Streams => (post(&mk.key, MODEL), STREAM),
            Self::Chat32 | Self::Chat128 | Self::Paced => (post(&mk.key, MODEL), WHOLE),
            Self::Other(other, times) => other.request(address, &mk.key, MODEL, times),
            Self::Protocols | Self::Bodies => return None,
        })
    }

    /// The chat completion that a request in another protocol is compared with.
    fn of_chat(self, address: SocketAddr, mk: &Mk) -> Option<(Vec<u8>, Expected)> {
        let Self::Other(Other { shape, .. }, times) = self else { return None };
        let body = longer_completion(MODEL, shape == Shape::Stream, times);
        let expected = if shape == Shape::Stream { STREAM } else { WHOLE };
        Some((post(address, CHAT, &mk.key, &body), expected))
    }

    fn body(self, model: &str) -> String {
        completion(model, self == Self::Streams)
    }
}

/// The only request that the scarce key may send; it uses up the key's limit and must succeed.
pub(crate) fn only_one(mk: &Mk) -> Load {
    let (address, every, spread) = (mk.address, AT_ONCE, AT_ONCE);
    let request = post(address, CHAT, &mk.scarce_key, &Scenario::Limited.body(MODEL));
    Load { address, request, expected: WHOLE, connections: 1, every, spread }
}
