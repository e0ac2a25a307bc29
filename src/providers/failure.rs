//! Why a call to a provider yielded no answer, in terms of a model gateway rather than of HTTP.

use std::time::Duration;

use crate::money::{BudgetShortage, Tokens};
use crate::net::outbound::SendError;
use crate::secret::{ExposeSecret, SecretString};
use crate::unsafe_chars::is_bidi_control;

/// The maximum number of characters kept of a provider's error message.
const MESSAGE_CHARS: usize = 300;
/// The maximum number of characters kept of a provider's error code.
const CODE_CHARS: usize = 64;

/// Replaces a secret.
const MASK: &str = "...";
/// Anything shorter is not a secret but a placeholder for a server that needs no key.
const MIN_SECRET_BYTES: usize = 8;
/// Groq's codes if what the model wrote does not match the schema, or is no call of a tool.
const MALFORMED_OUTPUT: [&str; 2] = ["json_validate_failed", "tool_use_failed"];
/// The maximum number of characters kept of what a provider could not use.
const GENERATION_CHARS: usize = 16 * 1024;
/// The maximum length of a parameter name that is kept.
const PARAM_BYTES: usize = 128;

/// A call that yielded no answer, and the tokens it used nevertheless: a model that declines has read the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// Why it failed.
    pub failure: Failure,
    /// The token usage, if the provider reported it.
    pub usage: Option<Tokens>,
}

impl FailedCall {
    /// As [`Failure::redacted`].
    pub(super) fn redacted(self, secret: Option<&SecretString>) -> Self {
        Self { failure: self.failure.redacted(secret), ..self }
    }
}

impl FailedCall {
    /// A call that failed before a byte of the answer came. If its connection ended, nothing was used.
    pub(super) fn before_answer(failure: impl Into<Failure>) -> Self {
        let failure = failure.into();
        let usage = (failure == Failure::Cut).then(Tokens::default);
        Self { failure, usage }
    }
}

impl From<Failure> for FailedCall {
    fn from(failure: Failure) -> Self {
        Self { failure, usage: None }
    }
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider refuses our key, or there is none. Retries do not help.
    Unauthorized,
    /// The account behind the key has no quota or credit left.
    QuotaExhausted,
    /// Too many calls.
    RateLimited {
        /// From the provider's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The provider has no capacity at the moment.
    Overloaded {
        /// From the provider's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The provider does not know the model.
    UnknownModel,
    /// The request does not fit into the model's context window.
    ContextOverflow {
        /// What the provider says about it, shortened; untrusted text.
        words: Option<Box<str>>,
    },
    /// The provider says that the request is invalid.
    Rejected {
        /// The provider's error code, if any.
        code: Option<String>,
        /// The provider's message, shortened; untrusted text.
        message: String,
        /// The path of the parameter at fault, if the provider names one.
        param: Option<String>,
        /// What the model wrote and the provider could not use, such as a call of a tool that does not fit its schema;
        /// shortened, untrusted text.
        generation: Option<Box<str>>,
    },
    /// The request asks for something that this provider's format, or this model, does not support. Detected before
    /// anything is sent.
    Unsupported {
        /// The JSON path of the parameter in the caller's request.
        param: String,
        /// What is wrong and what to do instead.
        message: String,
    },
    /// The model or its provider declines to answer. Never retried, and never sent to a fallback.
    Refused,
    /// The provider had an internal error.
    Broken {
        /// The HTTP status of the response.
        status: u16,
        /// From the provider's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The response is not in the provider's format.
    Malformed,
    /// The model ended without any output, or with a tool call that its provider cannot parse. A retry often yields an
    /// answer. The cause lies in the request, so it says nothing about the model for other callers.
    NoAnswer,
    /// The response is too large, which is due to the request: many choices, or log probabilities for every token; or a
    /// stream went far beyond its limit of tokens.
    TooLarge {
        /// The least size it is known to have.
        bytes: u64,
    },
    /// No connection could be made: name lookup, address or TLS.
    Unreachable,
    /// No connection could be made because this process may open no more files; not the provider's fault.
    NoDescriptors,
    /// The connection ended before the response did.
    Cut,
    /// One of our timeouts expired.
    Timeout,
    /// Not called: the circuit breaker is open after earlier failures, or the model limits its rate and it is not yet
    /// the turn of this call.
    Paused {
        /// Whether all of the provider's models are paused.
        whole_provider: bool,
        /// The code of the last of these failures.
        because: &'static str,
        /// The time until it can be called again.
        retry_after: Duration,
    },
    /// Not called: a budget of the caller does not cover the maximum cost of the call.
    BudgetExceeded(Box<BudgetShortage>),
    /// Not called: the caller has a budget, and the model's price is not known.
    PriceUnknown,
    /// Not called: the caller has a budget, and the store cannot tell how much of it has been spent.
    StoreUnavailable,
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Unreachable => Self::Unreachable,
            SendError::NoDescriptors => Self::NoDescriptors,
            SendError::Cut => Self::Cut,
        }
    }
}

impl Failure {
    /// [`Failure::Rejected`], with untrusted texts made safe to store and show: shortened, on one line, and without
    /// control and bidirectional formatting characters.
    pub fn rejected(code: Option<&str>, message: &str) -> Self {
        let code = code.map(safe_name).filter(|code| !code.is_empty());
        Self::Rejected { code, message: sanitized(message, MESSAGE_CHARS), param: None, generation: None }
    }

    /// The same for an error that no dialect knows more about; its message may be empty.
    pub fn unknown(code: Option<&str>, message: &str, status: u16) -> Self {
        if message.is_empty() {
            return Self::rejected(code, &format!("status {status} without a message"));
        }
        Self::rejected(code, message)
    }

    /// [`Failure::ContextOverflow`], with what the provider says about it.
    pub fn overflow(words: &str) -> Self {
        let words = sanitized(words, MESSAGE_CHARS);
        Self::ContextOverflow { words: (!words.is_empty()).then(|| words.into()) }
    }

    /// Adds the parameter that the provider names, if it looks like a path.
    #[must_use]
    pub fn about(self, param: Option<&str>) -> Self {
        let is_path = |param: &&str| {
            (1..=PARAM_BYTES).contains(&param.len())
                && param.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]$/".contains(&byte))
        };
        match self {
            Self::Rejected { code, message, generation, .. } => {
                let param = param.filter(is_path).map(str::to_owned);
                Self::Rejected { code, message, param, generation }
            }
            other => other,
        }
    }

    /// Adds what the model wrote and the provider could not use.
    #[must_use]
    pub fn with_generation(self, written: Option<&str>) -> Self {
        match self {
            Self::Rejected { code, message, param, .. } => {
                let generation = written.filter(|written| !written.is_empty()).map(generation);
                Self::Rejected { code, message, param, generation }
            }
            other => other,
        }
    }

    /// Masks the secret in the provider's texts: some repeat the key that they refuse, or the request.
    pub(super) fn redacted(self, secret: Option<&SecretString>) -> Self {
        let secret =
            secret.map(ExposeSecret::expose_secret).filter(|secret| secret.len() >= MIN_SECRET_BYTES);
        match (self, secret) {
            (Self::Rejected { code, message, param, generation }, Some(secret)) => Self::Rejected {
                code: code.map(|code| masked(&code, secret)),
                message: masked(&message, secret),
                param: param.map(|param| masked(&param, secret)),
                generation: generation.map(|text| masked(&text, secret).into()),
            },
            (Self::ContextOverflow { words: Some(words) }, Some(secret)) => {
                Self::ContextOverflow { words: Some(masked(&words, secret).into()) }
            }
            (other, _) => other,
        }
    }

    /// Its name in logs, the ledger and `model_errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "auth_failed",
            Self::QuotaExhausted => "quota_exhausted",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::UnknownModel => "unknown_model",
            Self::ContextOverflow { .. } => "context_overflow",
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

    /// Details for logs; untrusted text only in its safe form.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::RateLimited { retry_after: Some(wait) } | Self::Overloaded { retry_after: Some(wait) } => {
                Some(asked_wait(*wait))
            }
            Self::Rejected { code, message, param, .. } => {
                let named = [param.as_deref(), code.as_deref()].into_iter().flatten();
                let named: String = named.flat_map(|name| [name, ": "]).collect();
                Some(format!("{named}{message}"))
            }
            Self::Unsupported { param, message } => Some(format!("{param}: {message}")),
            Self::Broken { status, retry_after: None } => Some(format!("status {status}")),
            Self::Broken { status, retry_after: Some(wait) } => {
                Some(format!("status {status}; {}", asked_wait(*wait)))
            }
            Self::TooLarge { bytes } => Some(format!("{bytes} bytes at least")),
            Self::Paused { because, .. } => Some(format!("after {because}")),
            _ => None,
        }
    }

    /// Whether the call was not made because of the caller's budget.
    pub const fn is_unpaid(&self) -> bool {
        matches!(self, Self::BudgetExceeded(_) | Self::PriceUnknown | Self::StoreUnavailable)
    }

    /// Whether the same call may succeed if retried shortly after.
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

    /// How long to wait before calling again: as the provider asks, or until the pause is over.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after }
            | Self::Overloaded { retry_after }
            | Self::Broken { retry_after, .. } => *retry_after,
            Self::Paused { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether the model may have worked on the call, so that the prompt is likely to be charged although no usage was
    /// reported.
    pub fn may_have_cost(&self) -> bool {
        matches!(self, Self::Timeout | Self::Cut | Self::Malformed | Self::NoAnswer | Self::TooLarge { .. })
            || self.is_malformed_output()
    }

    /// Whether the provider rejects what its model wrote, with a status for what the caller wrote.
    pub fn is_malformed_output(&self) -> bool {
        matches!(self, Self::Rejected { code: Some(code), .. } if MALFORMED_OUTPUT.contains(&&**code))
    }
}

fn asked_wait(wait: Duration) -> String {
    format!("the provider asks to wait {} s", wait.as_secs_f64())
}

/// Replaces a secret in a text with three dots, even if the text was cut within it.
fn masked(text: &str, secret: &str) -> String {
    let text = text.replace(secret, MASK);
    let Some(kept) = text.strip_suffix('…') else { return text };
    let begins = |length: &usize| secret.get(..*length).is_some_and(|begin| kept.ends_with(begin));
    match (MIN_SECRET_BYTES..secret.len()).rev().find(begins) {
        Some(length) => format!("{}{MASK}…", &kept[..kept.len() - length]),
        None => text,
    }
}

/// A provider's own name for something, made safe to store and show, as in [`Failure::rejected`].
pub(super) fn safe_name(name: &str) -> String {
    sanitized(name, CODE_CHARS)
}

/// The beginning of what a model wrote, with its lines, but without what controls a terminal.
fn generation(written: &str) -> Box<str> {
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_bidi_control(*c));
    let mut shown = written.chars().filter(is_shown);
    let mut kept: String = shown.by_ref().take(GENERATION_CHARS).collect();
    if shown.next().is_some() {
        kept.push('…');
    }
    kept.into()
}

/// Puts untrusted text on one line of at most `limit` characters.
fn sanitized(text: &str, limit: usize) -> String {
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
    fn untrusted_messages_are_shortened_and_made_safe() {
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
    fn a_secret_in_a_message_is_masked_even_if_it_was_cut() {
        let secret = SecretString::from("sk-0123456789abcdef");
        let redacted = |words: &str| match Failure::rejected(Some(words), words).redacted(Some(&secret)) {
            Failure::Rejected { code, message, .. } => (code.unwrap_or_default(), message),
            other => panic!("{other:?}"),
        };
        let (code, message) = redacted("bad key sk-0123456789abcdef, sk-0123456789abcdef!");
        assert_eq!((&*code, &*message), ("bad key ..., ...!", "bad key ..., ...!"));
        let (code, message) = redacted(&format!("{} sk-0123456789abcdef", "x".repeat(285)));
        assert!(message.ends_with("x ...…") && code.ends_with("xxx…"), "{message}");
        let short = Failure::rejected(None, "next").redacted(Some(&SecretString::from("x")));
        assert_eq!(short, Failure::rejected(None, "next"));
    }

    #[test]
    fn only_parameters_that_look_like_paths_are_kept() {
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
    fn details_are_in_plain_words() {
        let detail = |failure: Failure| failure.detail().unwrap_or_default();
        let wait = Duration::from_millis(1500);
        assert_eq!(
            detail(Failure::RateLimited { retry_after: Some(wait) }),
            "the provider asks to wait 1.5 s"
        );
        assert_eq!(detail(Failure::Broken { status: 502, retry_after: None }), "status 502");
        assert_eq!(
            detail(Failure::Broken { status: 502, retry_after: Some(wait) }),
            "status 502; the provider asks to wait 1.5 s"
        );
        let rejected = Failure::rejected(Some("unsupported_value"), "no 0.3").about(Some("temperature"));
        assert_eq!(detail(rejected), "temperature: unsupported_value: no 0.3");
        assert_eq!(detail(Failure::rejected(None, "no")), "no");
        assert_eq!(detail(Failure::Cut), "");
    }

    #[test]
    fn only_failures_that_may_pass_are_transient() {
        assert!(Failure::Overloaded { retry_after: None }.is_transient());
        assert!(Failure::Unreachable.is_transient());
        assert!(Failure::NoAnswer.is_transient());
        for lasting in [Failure::Refused, Failure::Unauthorized, Failure::overflow(""), Failure::Timeout] {
            assert!(!lasting.is_transient(), "{lasting:?}");
        }
    }
}
