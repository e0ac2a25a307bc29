//! What an operator can set about a provider. Read by `config`, used by [`super::transport`].

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderName;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};

use super::KeyHeader;
use super::patience::ModelPatience;
use crate::money::Price;
use crate::secret::{ExposeSecret, SecretString};

/// The format a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Chat completions, as many providers and local servers speak it.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// The Gemini API's `generateContent`.
    Google,
    /// Simulated, in-process.
    Sandbox,
}

impl Kind {
    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Sandbox => "sandbox",
        }
    }

    /// The provider, by its name in the catalogue, whose own format this is and nobody else's: it tells address
    /// and models where configuration does not. Chat completions are spoken by too many for that.
    pub const fn home(self) -> Option<&'static str> {
        match self {
            Self::Anthropic | Self::Google => Some(self.name()),
            Self::OpenAi | Self::Sandbox => None,
        }
    }
}

/// One provider.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its configured name, the prefix of model identifiers.
    pub name: String,
    /// Its format.
    pub kind: Kind,
    /// Such as `https://api.openai.com/v1`, without a slash at the end. Unused by the sandbox.
    pub base_url: String,
    /// Sent in `api_key_header`; `None` sends none.
    pub api_key: Option<SecretString>,
    /// The header that carries the key, as [`Settings::header_of_key`] reads it; `None` is the one of the format.
    pub api_key_header: Option<HeaderName>,
    /// The most calls at once.
    pub max_concurrent: usize,
    /// For the connection to stand.
    pub connect_timeout: Duration,
    /// From the request to the first byte of the answer.
    pub first_byte_timeout: Duration,
    /// Between two pieces of the answer.
    pub idle_timeout: Duration,
    /// For a whole call; for a caller's completion, all calls to the model included.
    pub total_timeout: Duration,
    /// How often a call is tried again, at most.
    pub retries: u32,
    /// To the first token, where another model could be asked; `None` leaves it to what is set for all providers.
    pub first_token_timeout: Option<Duration>,
    /// After how many failures in a row a model is paused; 0 for never.
    pub breaker_failures: u32,
    /// For how long at first.
    pub breaker_pause: Duration,
    /// What is set about single models, by the provider's own names.
    pub models: BTreeMap<String, ModelSettings>,
}

/// What an operator can set about one model; overrides the embedded catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// Its price.
    pub price: Option<Price>,
    /// Models to ask, in order, when this one fails. For chat completions; a verification has extractor fallbacks
    /// and standby models of its own.
    pub fallbacks: Vec<String>,
    /// Where calls to it are borne with otherwise than calls to the provider's other models.
    pub patience: ModelPatience,
}

impl Settings {
    /// A provider with the defaults of the contract. Simulated models are never paused: they fail when a caller tells
    /// them to, which is nothing that other callers should notice.
    pub fn new(name: &str, kind: Kind, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key: None,
            api_key_header: None,
            max_concurrent: 64,
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_mins(1),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_mins(10),
            retries: 2,
            first_token_timeout: None,
            breaker_failures: if matches!(kind, Kind::Sandbox) { 0 } else { 5 },
            breaker_pause: Duration::from_secs(10),
            models: BTreeMap::new(),
        }
    }

    /// Whether these are the same in all that they say, the key included.
    pub fn are_those_of(&self, other: &Self) -> bool {
        // Taken apart, so that a setting that is added cannot be forgotten here.
        let Self {
            name,
            kind,
            base_url,
            api_key: _,
            api_key_header,
            max_concurrent,
            connect_timeout,
            first_byte_timeout,
            idle_timeout,
            total_timeout,
            retries,
            first_token_timeout,
            breaker_failures,
            breaker_pause,
            models,
        } = self;
        self.ask_the_same(other)
            && *name == other.name
            && *kind == other.kind
            && *base_url == other.base_url
            && *api_key_header == other.api_key_header
            && *max_concurrent == other.max_concurrent
            && *connect_timeout == other.connect_timeout
            && *first_byte_timeout == other.first_byte_timeout
            && *idle_timeout == other.idle_timeout
            && *total_timeout == other.total_timeout
            && *retries == other.retries
            && *first_token_timeout == other.first_token_timeout
            && *breaker_failures == other.breaker_failures
            && *breaker_pause == other.breaker_pause
            && *models == other.models
    }

    /// Whether both ask the same server in the same name: what one has found out of it holds for the other.
    pub fn ask_the_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.base_url == other.base_url
            && self.api_key_header == other.api_key_header
            && self.has_key_of(other)
    }

    /// Whether both have the same key, or none.
    pub fn has_key_of(&self, other: &Self) -> bool {
        match (&self.api_key, &other.api_key) {
            (Some(one), Some(other)) => one.expose_secret() == other.expose_secret(),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// A header that can carry a key; `None` for what is no header's name, or one that means something else to HTTP.
    pub fn header_of_key(name: &str) -> Option<HeaderName> {
        const TAKEN: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];
        HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !TAKEN.contains(name))
    }

    /// Where the key goes, if the format has it in `usual`.
    pub(super) fn key_header(&self, usual: KeyHeader) -> KeyHeader {
        let Some(name) = self.api_key_header.clone() else { return usual };
        // A scheme belongs into this header, and into no other.
        let prefix = if name == AUTHORIZATION { "Bearer " } else { "" };
        KeyHeader { name, prefix }
    }
}
