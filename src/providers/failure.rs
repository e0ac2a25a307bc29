//! Why a call to a provider gave no answer, in the words of the gateway field rather than of HTTP.

use std::time::Duration;

use crate::money::{BudgetShortage, Tokens};
use crate::secret::{ExposeSecret, SecretString};
use crate::unsafe_chars::is_bidi_control;

/// The most characters kept of what a provider writes about a failure.
const MESSAGE_CHARS: usize = 300;
/// The most characters kept of a provider's own error code.
const CODE_CHARS: usize = 64;

/// In the place of a secret.
const MASK: &str = "...";
/// What is shorter is no secret, but a word that a server without keys was given.
const LEAST_SECRET_BYTES: usize = 8;
/// The longest name of a parameter that is kept.
const PARAM_BYTES: usize = 128;

/// A call that gave no answer, and what it took nevertheless: a model that declines has read the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub failure: Failure,
    /// What the provider says it took.
    pub usage: Option<Tokens>,
}

impl Failed {
    /// As [`Failure::without`].
    pub(super) fn without(self, secret: Option<&SecretString>) -> Self {
        Self { failure: self.failure.without(secret), ..self }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self { failure, usage: None }
    }
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider refuses our key, or there is none. Nothing a retry mends.
    Unauthorized,
    /// The account behind the key has nothing left.
    QuotaExhausted,
    /// Too many calls; free again after the time given, if the provider says.
    RateLimited {
        /// From the provider's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The provider has no capacity now.
    Overloaded {
        /// From the provider's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The provider does not know the model.
    UnknownModel,
    /// The request does not fit the model's context.
    ContextOverflow,
    /// The provider says the request is wrong.
    Rejected {
        /// Its own code, if it gives one.
        code: Option<String>,
        /// Its own words, shortened; foreign text.
        message: String,
        /// The parameter that it is about, by the provider's own path, if it names one.
        param: Option<String>,
    },
    /// The request asks for something that this provider's format, or this model, cannot express. Found before
    /// anything is sent.
    Unsupported {
        /// The JSON path of the parameter in the caller's request.
        param: String,
        /// What is wrong and what to do instead.
        message: String,
    },
    /// The model or its provider declines to answer this. Never retried, never routed around.
    Refused,
    /// The provider failed inside.
    Broken {
        /// The HTTP status it answered with.
        status: u16,
    },
    /// An answer that is not in the provider's format.
    Malformed,
    /// The model ended without a word, or with a call of a tool that its provider cannot read. Another try often gives an
    /// answer; it lies in what was asked, and says nothing of the model to others.
    NoAnswer,
    /// An answer larger than any may be. What makes it so is what was asked: many choices, or every token's odds.
    TooLarge {
        /// How much of it is known to have come.
        bytes: u64,
    },
    /// No connection: name, address, TLS.
    Unreachable,
    /// No connection, as this process may open no more files: the provider has no part in it.
    NoDescriptors,
    /// The connection ended before the answer did.
    Cut,
    /// One of our time limits passed.
    Timeout,
    /// Not asked, because of earlier failures.
    Paused {
        /// Whether all of the provider's models are paused.
        whole_provider: bool,
        /// The code of the last of these failures.
        because: &'static str,
        /// Until it can be asked again.
        retry_after: Duration,
    },
    /// Not called: a budget of the caller's does not cover what the call might have cost.
    BudgetExceeded(Box<BudgetShortage>),
    /// Not called: the caller has a budget, and the model's price is not known.
    PriceUnknown,
    /// Not called: the caller has a budget, and the store cannot say what has been spent of it.
    StoreUnavailable,
}

impl Failure {
    /// [`Failure::Rejected`] with foreign texts made safe to store and show: shortened, on one line, without
    /// control and direction characters.
    pub fn rejected(code: Option<&str>, message: &str) -> Self {
        let code = code.map(|code| tame(code, CODE_CHARS)).filter(|code| !code.is_empty());
        Self::Rejected { code, message: tame(message, MESSAGE_CHARS), param: None }
    }

    /// The same, about a parameter that the provider names. What is no path is left out.
    #[must_use]
    pub fn about(self, param: Option<&str>) -> Self {
        let is_path = |param: &&str| {
            (1..=PARAM_BYTES).contains(&param.len())
                && param.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]$/".contains(&byte))
        };
        match self {
            Self::Rejected { code, message, .. } => {
                Self::Rejected { code, message, param: param.filter(is_path).map(str::to_owned) }
            }
            other => other,
        }
    }

    /// The same without this secret in the provider's words: some repeat the key that they refuse, or the request.
    pub(super) fn without(self, secret: Option<&SecretString>) -> Self {
        let secret =
            secret.map(ExposeSecret::expose_secret).filter(|secret| secret.len() >= LEAST_SECRET_BYTES);
        match (self, secret) {
            (Self::Rejected { code, message, param }, Some(secret)) => Self::Rejected {
                code: code.map(|code| masked(&code, secret)),
                message: masked(&message, secret),
                param: param.map(|param| masked(&param, secret)),
            },
            (other, _) => other,
        }
    }

    /// The name in logs, the ledger and `model_errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "auth_failed",
            Self::QuotaExhausted => "quota_exhausted",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::UnknownModel => "unknown_model",
            Self::ContextOverflow => "context_overflow",
            Self::Rejected { .. } => "rejected",
            Self::Unsupported { .. } => "unsupported",
            Self::Refused => "refused",
            Self::Broken { .. } => "provider_error",
            Self::Malformed => "malformed",
            Self::NoAnswer => "no_answer",
            Self::TooLarge { .. } => "too_large",
            Self::Unreachable => "unreachable",
            Self::NoDescriptors => "no_descriptors",
            Self::Cut => "cut",
            Self::Timeout => "timeout",
            Self::Paused { .. } => "paused",
            Self::BudgetExceeded(_) => "budget_exceeded",
            Self::PriceUnknown => "price_unknown",
            Self::StoreUnavailable => "store_unavailable",
        }
    }

    /// What else is known of it, for logs: foreign text only as it was made safe.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::RateLimited { retry_after: Some(wait) } | Self::Overloaded { retry_after: Some(wait) } => {
                Some(format!("the provider asks to wait {} s", wait.as_secs_f64()))
            }
            Self::Rejected { code, message, param } => {
                let named = [param.as_deref(), code.as_deref()].into_iter().flatten();
                let named: String = named.flat_map(|name| [name, ": "]).collect();
                Some(format!("{named}{message}"))
            }
            Self::Unsupported { param, message } => Some(format!("{param}: {message}")),
            Self::Broken { status } => Some(format!("status {status}")),
            Self::TooLarge { bytes } => Some(format!("{bytes} bytes at least")),
            Self::Paused { because, .. } => Some(format!("after {because}")),
            _ => None,
        }
    }

    /// Whether it was the caller's budget that kept the call from being made.
    pub const fn is_unpaid(&self) -> bool {
        matches!(self, Self::BudgetExceeded(_) | Self::PriceUnknown | Self::StoreUnavailable)
    }

    /// Whether the same call may succeed a little later.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Overloaded { .. }
                | Self::Broken { .. }
                | Self::NoAnswer
                | Self::Unreachable
                | Self::NoDescriptors
                | Self::Cut
        )
    }

    /// How long to wait before it is worth another call: as the provider asks, or as long as it is paused.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } | Self::Overloaded { retry_after } => *retry_after,
            Self::Paused { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether the model may have worked on the call, so that its prompt is likely to be charged although no
    /// usage was reported.
    pub const fn may_have_cost(&self) -> bool {
        matches!(self, Self::Timeout | Self::Cut | Self::Malformed | Self::NoAnswer | Self::TooLarge { .. })
    }
}

/// A text in which a secret stands as three dots, also where only its beginning was kept.
fn masked(text: &str, secret: &str) -> String {
    let text = text.replace(secret, MASK);
    let Some(kept) = text.strip_suffix('…') else { return text };
    let begins = |length: &usize| secret.get(..*length).is_some_and(|begin| kept.ends_with(begin));
    match (LEAST_SECRET_BYTES..secret.len()).rev().find(begins) {
        Some(length) => format!("{}{MASK}…", &kept[..kept.len() - length]),
        None => text,
    }
}

/// Foreign text on one line and no longer than `limit` characters.
fn tame(text: &str, limit: usize) -> String {
    let visible: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_bidi_control(*c))
        .take(limit + 1)
        .collect();
    if visible.chars().count() <= limit {
        return visible.trim().to_owned();
    }
    let kept: String = visible.chars().take(limit - 1).collect();
    format!("{}…", kept.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_messages_are_shortened_and_made_safe() {
        let message = format!("bad\r\n\u{1b}[31mred\u{202e}{}", "ä".repeat(1000));
        let Failure::Rejected { code, message, .. } = Failure::rejected(Some("\u{7}"), &message) else {
            panic!("not a rejection");
        };
        assert_eq!(code, None);
        assert_eq!(message.chars().count(), MESSAGE_CHARS);
        assert!(message.starts_with("bad  [31mredä"), "{message}");
        assert!(message.ends_with('…'));
    }

    #[test]
    fn a_secret_in_foreign_words_is_masked_whole_or_cut() {
        let secret = SecretString::from("sk-0123456789abcdef");
        let told = |words: &str| match Failure::rejected(Some(words), words).without(Some(&secret)) {
            Failure::Rejected { code, message, .. } => (code.unwrap_or_default(), message),
            other => panic!("{other:?}"),
        };
        let (code, message) = told("bad key sk-0123456789abcdef, sk-0123456789abcdef!");
        assert_eq!((&*code, &*message), ("bad key ..., ...!", "bad key ..., ...!"));
        let (code, message) = told(&format!("{} sk-0123456789abcdef", "x".repeat(285)));
        assert!(message.ends_with("x ...…") && code.ends_with("xxx…"), "{message}");
        let short = Failure::rejected(None, "next").without(Some(&SecretString::from("x")));
        assert_eq!(short, Failure::rejected(None, "next"));
    }

    #[test]
    fn only_paths_of_parameters_are_kept() {
        let param = |param: &str| match Failure::rejected(None, "no").about(Some(param)) {
            Failure::Rejected { param, .. } => param,
            other => panic!("{other:?}"),
        };
        for path in ["top_k", "messages[2].content[0].image_url", "generation_config.top-p", "$.tools/0"] {
            assert_eq!(param(path).as_deref(), Some(path));
        }
        for other in ["", "top k", "sk\u{1b}[31m", "größe", "<b>", &"x".repeat(129)] {
            assert_eq!(param(other), None, "{other:?}");
        }
        assert_eq!(Failure::Cut.about(Some("x")), Failure::Cut);
    }

    #[test]
    fn details_are_words_and_not_notation() {
        let detail = |failure: Failure| failure.detail().unwrap_or_default();
        let wait = Duration::from_millis(1500);
        assert_eq!(
            detail(Failure::RateLimited { retry_after: Some(wait) }),
            "the provider asks to wait 1.5 s"
        );
        assert_eq!(detail(Failure::Broken { status: 502 }), "status 502");
        let rejected = Failure::rejected(Some("unsupported_value"), "no 0.3").about(Some("temperature"));
        assert_eq!(detail(rejected), "temperature: unsupported_value: no 0.3");
        assert_eq!(detail(Failure::rejected(None, "no")), "no");
        assert_eq!(detail(Failure::Cut), "");
    }

    #[test]
    fn only_what_a_wait_may_mend_is_transient() {
        assert!(Failure::Overloaded { retry_after: None }.is_transient());
        assert!(Failure::Unreachable.is_transient());
        assert!(Failure::NoAnswer.is_transient());
        for lasting in [Failure::Refused, Failure::Unauthorized, Failure::ContextOverflow, Failure::Timeout] {
            assert!(!lasting.is_transient(), "{lasting:?}");
        }
    }
}
