//! A provider's settings. Read by `config`, used by [`crate::providers::call::transport`].

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderName;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};

use crate::money::{NanoUsd, Price};
use crate::providers::call::call_policy::{CallPolicy, CallPolicyOverrides};
use crate::providers::{KeyHeader, catalog};
use crate::secret::{ExposeSecret, SecretString};

/// What simulated answers cost unless the configuration gives them a price: known, and zero.
const FREE: Price = Price::new(NanoUsd(0), NanoUsd(0));

/// The format of a provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Chat completions, as offered by many providers and local servers.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// The Gemini API's `generateContent`.
    Google,
    /// Simulated, in-process.
    Sandbox,
}

impl Kind {
    /// Those with an API.
    pub const OF_APIS: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Google];

    /// Its name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Sandbox => "sandbox",
        }
    }

    /// The provider, by its name in the catalogue, that alone uses this format; it supplies address and models where
    /// the configuration does not. `None` for chat completions, which many providers use.
    pub const fn sole_provider(self) -> Option<&'static str> {
        match self {
            Self::Anthropic | Self::Google => Some(self.name()),
            Self::OpenAi | Self::Sandbox => None,
        }
    }
}

/// The settings of one provider.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its configured name, the prefix of model identifiers.
    pub name: String,
    /// Its format.
    pub kind: Kind,
    /// Such as `https://api.openai.com/v1`, without a trailing slash. Unused by the sandbox.
    pub base_url: String,
    /// Sent in `api_key_header`; `None` to send no key.
    pub api_key: Option<SecretString>,
    /// Further keys, sent in its place while it is refused or limited; at most [`MAX_KEYS`](crate::providers::MAX_KEYS) in all.
    pub further_api_keys: Vec<SecretString>,
    /// The header that carries the key, as [`Settings::parse_key_header`] parses it; `None` for the format's own.
    pub api_key_header: Option<HeaderName>,
    /// The maximum number of concurrent calls.
    pub max_concurrent: usize,
    /// For establishing a connection.
    pub connect_timeout: Duration,
    /// Retries, timeouts and circuit breaker, for models without settings of their own.
    pub call_policy: CallPolicy,
    /// Whether it has the Responses API; `None` to find out. For the kind `openai`.
    pub responses: Option<bool>,
    /// The settings of single models, by the provider's own names.
    pub models: BTreeMap<String, ModelSettings>,
}

/// The settings of one model; they override the embedded catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// Its price.
    pub price: Option<Price>,
    /// The models to ask, in order, when this one fails. For chat completions; verifications have extractor fallbacks
    /// and standby models of their own.
    pub fallbacks: Vec<String>,
    /// Retries, timeouts and circuit breaker settings that differ from the provider's.
    pub call_policy: CallPolicyOverrides,
}

impl Settings {
    /// A provider with the documented defaults. Simulated models are never paused: they fail when a caller tells them
    /// to, which other callers should not notice.
    pub fn new(name: &str, kind: Kind, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key: None,
            further_api_keys: Vec::new(),
            api_key_header: None,
            max_concurrent: 64,
            connect_timeout: Duration::from_secs(5),
            call_policy: CallPolicy {
                breaker_failures: if matches!(kind, Kind::Sandbox) {
                    0
                } else {
                    CallPolicy::default().breaker_failures
                },
                ..CallPolicy::default()
            },
            responses: None,
            models: BTreeMap::new(),
        }
    }

    /// The price of `model`, whose identifier is `id`: the configured one, otherwise that of the catalogue. Simulated
    /// models are free unless they are given a price, with which budgets can be tried.
    pub fn price(&self, id: &str, model: &str) -> Option<Price> {
        let configured = self.models.get(model).and_then(|settings| settings.price);
        let usual = || match self.kind {
            Kind::Sandbox => Some(FREE),
            _ => catalog::model(id).and_then(|facts| facts.price),
        };
        configured.or_else(usual)
    }

    /// Whether both are the same, including the key.
    pub fn is_same_as(&self, other: &Self) -> bool {
        // Destructured, so that a new setting cannot be forgotten here.
        let Self {
            name,
            kind,
            base_url,
            api_key: _,
            further_api_keys: _,
            api_key_header,
            max_concurrent,
            connect_timeout,
            call_policy,
            responses,
            models,
        } = self;
        self.has_same_target(other)
            && *name == other.name
            && *kind == other.kind
            && *base_url == other.base_url
            && *api_key_header == other.api_key_header
            && *max_concurrent == other.max_concurrent
            && *connect_timeout == other.connect_timeout
            && *call_policy == other.call_policy
            && *responses == other.responses
            && *models == other.models
    }

    /// Whether both call the same server with the same keys, so that what one has learned about it holds for the other.
    pub fn has_same_target(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.base_url == other.base_url
            && self.api_key_header == other.api_key_header
            && self.has_same_keys(other)
    }

    /// All keys, in the order in which they are preferred.
    pub fn api_keys(&self) -> impl Iterator<Item = &SecretString> {
        self.api_key.iter().chain(&self.further_api_keys)
    }

    /// Whether both have the same keys, or none.
    pub fn has_same_keys(&self, other: &Self) -> bool {
        self.api_keys().map(ExposeSecret::expose_secret).eq(other.api_keys().map(ExposeSecret::expose_secret))
    }

    /// Parses the name of a header that can carry a key; `None` if it is invalid, or has another meaning in HTTP.
    pub fn parse_key_header(name: &str) -> Option<HeaderName> {
        const RESERVED: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];
        HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !RESERVED.contains(name))
    }

    /// The header that carries the key; `default` is the format's own.
    pub(in crate::providers) fn key_header(&self, default: KeyHeader) -> KeyHeader {
        let Some(name) = self.api_key_header.clone() else { return default };
        // Only this header has an authentication scheme.
        let prefix = if name == AUTHORIZATION { "Bearer " } else { "" };
        KeyHeader { name, prefix }
    }
}
