//! The errors of the API: each code is stated here and nowhere else, with its status, its message, whether a retry
//! helps,
//! and what a person does about it. The server answers by this table and describes itself by it; the command line tells
//! its exit code and its hints from it, and never from the words of a message.
//!
//! What a provider refuses may have the provider's own code in place of [`ErrorCode::ProviderRejected`], and a later
//! server may have codes that this version does not know. So a code that was received stays a text until
//! [`ErrorCode::find`] knows it.

use std::time::Duration;

use http::StatusCode;

macro_rules! codes {
    ($($code:ident $status:literal $name:literal $message:literal;)*) => {
        /// What kind of error it is, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table says what each is")]
        pub enum ErrorCode { $($code),* }

        const TABLE: &[(ErrorCode, u16, &str, &str)] = &[$((ErrorCode::$code, $status, $name, $message)),*];
    };
}

// Each code with its status, its name, and its message: what happened and, where there is something to do, what to do
// next. Where that depends on the case, the message is an example. By status.
codes! {
    InvalidJson 400 "invalid_json" "the request body is empty; send a JSON object";
    MissingParameter 400 "missing_parameter" "`fact` is required";
    InvalidParameter 400 "invalid_parameter" "`minRequired` must be 2 or 3, not 4";
    UnsupportedParameter 400 "unsupported_parameter" "unknown parameter `facts`; allowed are fact, domain";
    ContextLengthExceeded 400 "context_length_exceeded"
        "the messages and the requested answer together are too long for openai/gpt-5.4-mini; send less, ask \
         for a shorter answer, or choose a model with a larger context";
    ContentFilter 400 "content_filter" "openai/gpt-5.4-mini declined to answer this; rephrase the messages";
    ProviderRejected 400 "provider_rejected" "the provider openai refused the request: too many tools";
    MalformedRequest 400 "malformed_request" "the request is not valid HTTP";
    MissingApiKey 401 "missing_api_key" "Invalid or missing API key";
    InvalidApiKey 401 "invalid_api_key" "Invalid or missing API key";
    WrongService 401 "wrong_service" "API key not authorized for this service";
    ApiKeyRevoked 401 "api_key_revoked" "API key has been revoked";
    ApiKeyExpired 401 "api_key_expired" "API key has expired";
    InvalidSession 401 "invalid_session" "there is no valid session; log in with a console key";
    InvalidSetupToken 401 "invalid_setup_token"
        "this setup link is invalid, used or expired; on the server's machine, restart `mk serve` for a new \
         link, or run `mk keys create --service console`";
    BudgetExceeded 402 "budget_exceeded"
        "the key's budget of $20.00 is used up; ask the operator to raise it; it resets on 2026-12-01 (UTC)";
    AddressNotAllowed 403 "address_not_allowed" "this API key may not be used from this address";
    OriginNotAllowed 403 "origin_not_allowed"
        "this request does not come from a page of this server; if it does, through a proxy, the proxy must \
         pass `Host` on as it is, or be trusted and send `X-Forwarded-Host`";
    PriceUnknown 403 "price_unknown"
        "there is a budget, but the price of local/llama is unknown; the server's operator can set \
         input_usd_per_mtok and output_usd_per_mtok";
    ModelNotAllowed 403 "model_not_allowed"
        "this API key cannot use openai/gpt-5.4; it is limited to openai/gpt-5.4-mini";
    NotFound 404 "not_found" "no such app or key; GET /v1/apps lists the apps";
    ModelNotFound 404 "model_not_found"
        "`model` names a provider that is not configured; configured providers: openai. GET \
         /inference/v1/models lists their models";
    UnknownRoute 404 "unknown_route" "no such endpoint; the API is under /verify/v1, /inference/v1, /openai/v1, \
         /anthropic/v1 and /v1";
    MethodNotAllowed 405 "method_not_allowed" "this endpoint accepts POST only";
    RequestTimeout 408 "request_timeout" "the request body did not arrive in time";
    Conflict 409 "conflict" "this name is already taken; choose another";
    BodyTooLarge 413 "body_too_large" "the request body is larger than 1048576 bytes";
    UriTooLong 414 "uri_too_long" "the request URI is longer than 65534 bytes; shorten it";
    UnsupportedMediaType 415 "unsupported_media_type"
        "send the body as JSON, with Content-Type: application/json";
    AnswerBlocked 422 "answer_blocked"
        "the answer is withheld: 1 FALSE, 0 NO CONSENSUS, 0 unchecked. \
         `mk_verification` has the verdicts; ask in another way";
    WebSocketUnsupported 426 "websocket_unsupported"
        "there are no WebSockets here; send this with POST, and with `stream: true` for events";
    RateLimitedMinute 429 "rate_limited_minute" "Too many requests per minute";
    RateLimitedDay 429 "rate_limited_day" "Too many requests per day";
    HeadersTooLarge 431 "headers_too_large"
        "the request headers are too large; send at most 100, of 64 KiB in all";
    Internal 500 "internal"
        "internal error; the server's log has details under this request_id";
    ProviderAuthFailed 502 "provider_auth_failed"
        "the provider openai rejected this server's key; its operator has to check it";
    ProviderQuotaExhausted 502 "provider_quota_exhausted"
        "this server's account at openai has no credit left; contact the operator of this server";
    ProviderError 502 "provider_error" "the provider openai failed; try again in a moment";
    ProviderRefused 502 "provider_refused" "The panel models declined to answer. Rephrase the statement";
    ProviderInvalidResponse 502 "provider_invalid_response"
        "the provider openai sent an unreadable answer; try again in a moment";
    ProviderUnreachable 502 "provider_unreachable"
        "the provider openai cannot be reached; try again in a moment";
    ProviderRateLimited 503 "provider_rate_limited"
        "the provider openai is rate-limiting this server; try again later";
    ProviderOverloaded 503 "provider_overloaded" "the provider openai is overloaded; try again later";
    ServerOverloaded 503 "server_overloaded"
        "this server is handling too many large requests; try again in a moment";
    NoProviderAvailable 503 "no_provider_available"
        "a panel needs at least two models, and this server has fewer; its operator can configure more";
    StoreUnavailable 503 "store_unavailable"
        "the server's database is unavailable; try again in a moment";
    ShuttingDown 503 "shutting_down" "the server is shutting down; try again in a moment";
    ProviderTimeout 504 "provider_timeout"
        "the provider openai did not answer in time; try again in a moment";
}

/// Whether it helps to send the same request again. Where neither is said, clients know by the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No: a person has to act first, or a day has to pass. The response says `x-should-retry: false`.
    Never,
    /// After this time, unless more is known. The response says `Retry-After`.
    After(Duration),
}

/// When to come back to what is busy, if nobody can tell.
pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(5);

impl ErrorCode {
    /// All of them, by status.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(code, ..)| *code)
    }

    /// The code of this name; `None` for a provider's own, and for one of a later version.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|code| code.as_str() == name)
    }

    /// Its name, as in `code`.
    pub const fn as_str(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        TABLE[self as usize].1
    }

    /// The status in words, as in `error`.
    pub fn title(self) -> &'static str {
        match self.status() {
            429 => "Rate Limit Exceeded",
            other => StatusCode::from_u16(other)
                .ok()
                .and_then(|status| status.canonical_reason())
                .unwrap_or("Error"),
        }
    }

    /// Whether it helps to send the same request again.
    pub const fn retry(self) -> Option<Retry> {
        match self {
            Self::RateLimitedDay | Self::ProviderAuthFailed | Self::ProviderQuotaExhausted => {
                Some(Retry::Never)
            }
            refused if matches!(refused.status(), 401..=403 | 426) => Some(Retry::Never),
            Self::ShuttingDown => Some(Retry::After(Duration::from_secs(1))),
            Self::NoProviderAvailable => Some(Retry::After(Duration::from_mins(1))),
            Self::ProviderRateLimited
            | Self::ProviderOverloaded
            | Self::ServerOverloaded
            | Self::StoreUnavailable => Some(Retry::After(DEFAULT_RETRY_AFTER)),
            _ => None,
        }
    }

    /// What happened and, where there is something to do, what to do next. Where that depends on the case, an example.
    pub const fn message(self) -> &'static str {
        TABLE[self as usize].3
    }

    /// What a person at a terminal does next, where the message does not say it; `{server}` and `{service}` stand for
    /// where the request went.
    pub const fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::MissingApiKey | Self::InvalidApiKey | Self::InvalidSession => {
                "`mk keys check` checks a key for typos; `mk login` stores one for {server}"
            }
            Self::WrongService => {
                "each key works for one service only; create another with `mk keys create --service {service}`"
            }
            Self::ApiKeyRevoked | Self::ApiKeyExpired => {
                "create a new key on the server's machine with `mk keys create`, then store it with `mk login`"
            }
            Self::AddressNotAllowed | Self::ModelNotAllowed => {
                "to change what the key may do, run `mk keys update` on the server's machine"
            }
            Self::NotFound => "`mk apps list` and `mk keys list` show all apps and keys",
            Self::ModelNotFound => "`mk models` lists the models",
            Self::UnknownRoute | Self::MethodNotAllowed => {
                "check that {server} is the base address of an mk server"
            }
            Self::RateLimitedDay => "the limit resets at midnight UTC; the server's operator can raise it",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_has_a_status() {
        let statuses: Vec<u16> = ErrorCode::all().map(ErrorCode::status).collect();
        assert!(statuses.is_sorted(), "{statuses:?}");
        for code in ErrorCode::all() {
            assert_eq!(ErrorCode::find(code.as_str()), Some(code));
            assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            assert!(code.title() != "Error" && !code.message().is_empty(), "{code:?}");
        }
        assert_eq!(ErrorCode::find("odd"), None);
    }

    #[test]
    fn whatever_is_unavailable_says_when_to_come_back() {
        for code in ErrorCode::all() {
            let is_later = matches!(code.retry(), Some(Retry::After(_)));
            assert_eq!(is_later, code.status() == 503, "{code:?}");
        }
    }
}
