//! Why a verification has no result, with messages for the caller.
//!
//! Status and code of the response are up to the server. Messages name models by their configured identifiers and never
//! quote a provider, whose text is untrusted.

use crate::inference::Failure;
use crate::model_id;

/// Why a verification has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub enum Error {
    /// No extractor is configured, or fewer than two panel models.
    Unconfigured,
    /// No model extracted claims.
    Extraction {
        /// The model that may answer a retry soonest.
        model: String,
        /// Why it has not answered.
        failure: Failure,
    },
    /// Claims were extracted, but no model answered any of them.
    NoAnswers {
        /// The most frequent failure.
        failure: Failure,
        /// The provider of all models that failed like this, if it is a single one.
        provider: Option<String>,
    },
    /// The caller has a budget that does not allow the call of a model.
    Unpaid {
        /// The model.
        model: String,
        /// Why the budget does not allow it.
        failure: Failure,
    },
    /// The deadline of the whole verification passed before there were claims.
    Deadline,
    /// The system provided no random bytes.
    Internal,
}

impl Error {
    /// What happened and what to do next.
    pub fn message(&self) -> String {
        match self {
            Self::Unconfigured => {
                "This server has no extractor or fewer than two panel models for this domain. \
                                   Its operator sets them under [verify] in the configuration"
                    .to_owned()
            }
            Self::Extraction { failure: Failure::Refused, model } => {
                format!("{model} declined to extract claims from this statement. Rephrase it")
            }
            Self::Extraction { failure: Failure::ContextOverflow { .. }, model } => {
                format!("The statement is too long for {model}. Send a shorter one, or less context")
            }
            Self::Extraction { failure: Failure::Timeout, model } => {
                let cause = cause(&Failure::Timeout);
                format!(
                    "No model could extract claims ({model}: {cause}). Try again, or send a shorter statement"
                )
            }
            Self::Extraction { failure, model } => {
                let (cause, advice) = (cause(failure), advice(failure));
                format!("No model could extract claims ({model}: {cause}). {advice}")
            }
            Self::NoAnswers { failure: Failure::Refused, .. } => {
                "The panel models declined to answer. Rephrase the statement".to_owned()
            }
            Self::NoAnswers { failure: Failure::ContextOverflow { .. }, .. } => {
                "The questions are too long for the panel models. Shorten the context".to_owned()
            }
            Self::NoAnswers { failure, .. } if failure.is_unpaid() => {
                budget_message("a panel model", failure)
            }
            Self::Unpaid { model, failure } => budget_message(model, failure),
            Self::NoAnswers { failure, .. } => {
                let (cause, advice) = (cause(failure), advice(failure));
                format!("No panel model answered any question (most often: {cause}). {advice}")
            }
            Self::Deadline => {
                "The verification timed out before its claims were extracted. Try again, or send \
                a shorter statement"
                    .to_owned()
            }
            Self::Internal => "The server could not run this verification. Try again".to_owned(),
        }
    }

    /// The failure of the model that caused this error, if one did.
    pub(crate) const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Extraction { failure, .. }
            | Self::NoAnswers { failure, .. }
            | Self::Unpaid { failure, .. } => Some(failure),
            Self::Unconfigured | Self::Deadline | Self::Internal => None,
        }
    }

    /// The provider at fault, if it is a single one.
    pub(crate) fn provider(&self) -> Option<&str> {
        match self {
            Self::Extraction { failure, .. } | Self::NoAnswers { failure, .. }
                if failure.is_unpaid() || *failure == Failure::NoDescriptors =>
            {
                None
            }
            Self::Extraction { model, .. } => model_id::split(model).map(|(provider, _)| provider),
            Self::NoAnswers { provider, .. } => provider.as_deref(),
            _ => None,
        }
    }
}

/// Why a budget does not allow the call of `model`, and what to do.
fn budget_message(model: &str, failure: &Failure) -> String {
    match failure {
        Failure::BudgetExceeded(shortage) => {
            let reset = shortage.renews_at.utc_date();
            format!("Calling {model}: {shortage}. Ask the operator to raise it; it resets on {reset} (UTC)")
        }
        Failure::PriceUnknown => format!(
            "There is a budget, but the price of {model} is unknown. The server's operator can set \
             input_usd_per_mtok and output_usd_per_mtok"
        ),
        _ => format!("Calling {model}: {}. {}", cause(failure), advice(failure)),
    }
}

/// The cause of a failure, to be put in brackets.
const fn cause(failure: &Failure) -> &'static str {
    match failure {
        Failure::Unauthorized => "the provider rejected the server's key",
        Failure::QuotaExhausted => "the provider's quota is used up",
        Failure::RateLimited { .. } => "the provider's rate limit is reached",
        Failure::Overloaded { .. } => "the provider is overloaded",
        Failure::UnknownModel => "the provider has no such model",
        Failure::ContextOverflow { .. } => "too long for the model",
        Failure::Rejected { .. } => "the provider rejected the request",
        Failure::Unsupported { .. } => "the model does not support this",
        Failure::Refused => "the model declined",
        Failure::Broken { .. } => "the provider failed",
        Failure::Malformed => "the answer has the wrong form",
        Failure::NoAnswer => "the answer is empty",
        Failure::TooLarge { .. } => "the answer is larger than 8 MiB",
        Failure::Unreachable => "the provider could not be reached",
        Failure::NoDescriptors => "the server cannot open more connections",
        Failure::Cut => "the connection broke",
        Failure::Timeout => "no answer in time",
        Failure::Paused { .. } => "paused after repeated failures",
        Failure::BudgetExceeded(_) => "the budget does not cover it",
        Failure::PriceUnknown => "its price is unknown",
        Failure::StoreUnavailable => "the server cannot read what is left of the budget",
    }
}

/// What the caller should do next, as a sentence.
const fn advice(failure: &Failure) -> &'static str {
    match failure {
        Failure::Unauthorized | Failure::QuotaExhausted => {
            "The server's operator has to check the provider's key and account"
        }
        Failure::UnknownModel
        | Failure::Rejected { .. }
        | Failure::Unsupported { .. }
        | Failure::ContextOverflow { .. }
        | Failure::TooLarge { .. }
        | Failure::PriceUnknown => "The server's operator has to check the configured models",
        Failure::BudgetExceeded(_) => "Ask the operator to raise the budget",
        Failure::Refused => "Rephrase the statement",
        Failure::RateLimited { .. }
        | Failure::Overloaded { .. }
        | Failure::Broken { .. }
        | Failure::Malformed
        | Failure::NoAnswer
        | Failure::Unreachable
        | Failure::NoDescriptors
        | Failure::Cut
        | Failure::Timeout
        | Failure::Paused { .. }
        | Failure::StoreUnavailable => "Try again in a moment",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_s_words_never_reach_the_caller() {
        let failure = Failure::rejected(Some("zzz"), "zzz secret");
        for error in [
            Error::Extraction { model: "a/b".to_owned(), failure: failure.clone() },
            Error::NoAnswers { failure, provider: None },
        ] {
            assert!(!error.message().contains("zzz"), "{error}");
        }
    }

    #[test]
    fn a_message_is_a_sentence_that_says_what_to_do() {
        let error = Error::Extraction { model: "a/b".to_owned(), failure: Failure::Timeout };
        assert_eq!(
            error.to_string(),
            "No model could extract claims (a/b: no answer in time). Try again, or send a shorter statement"
        );
        let error = Error::Extraction { model: "a/b".to_owned(), failure: Failure::Cut };
        assert!(error.to_string().ends_with("(a/b: the connection broke). Try again in a moment"));
    }
}
