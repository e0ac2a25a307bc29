//! The token usage of a verification, converted from the meter's totals to the wire format.

use crate::api::verify::{ModelTokenUsage, TokenUsage};
use crate::money::NanoUsd;
use crate::usage::{ModelTotal, Purpose};

/// Sums up all attempts, by purpose and by model. Either way, the parts add up to the total.
pub(in crate::verify) fn from_totals(totals: &[ModelTotal]) -> TokenUsage {
    let tokens_for = |purpose: Purpose| {
        totals.iter().filter(|total| total.purpose == purpose).map(tokens).fold(0, u64::saturating_add)
    };
    let extraction = tokens_for(Purpose::Extraction);
    let verification = tokens_for(Purpose::Verification);
    TokenUsage {
        prompt_tokens: totals.iter().map(|total| total.prompt_tokens).fold(0, u64::saturating_add),
        completion_tokens: totals.iter().map(|total| total.completion_tokens).fold(0, u64::saturating_add),
        total_tokens: extraction.saturating_add(verification),
        extraction_tokens: Some(extraction),
        verification_tokens: Some(verification),
        model_usage: Some(usage_by_model(totals)),
    }
}

fn usage_by_model(totals: &[ModelTotal]) -> Vec<ModelTokenUsage> {
    let mut models: Vec<&str> = Vec::new();
    for total in totals {
        if !models.contains(&&*total.model) {
            models.push(&total.model);
        }
    }
    models.into_iter().map(|model| model_usage(model, totals)).collect()
}

fn model_usage(model: &str, totals: &[ModelTotal]) -> ModelTokenUsage {
    let mut usage = ModelTokenUsage { model: model.to_owned(), ..ModelTokenUsage::default() };
    let mut costs = Vec::new();
    for total in totals.iter().filter(|total| *total.model == *model && !total.is_nothing()) {
        usage.prompt_tokens = usage.prompt_tokens.saturating_add(total.prompt_tokens);
        usage.completion_tokens = usage.completion_tokens.saturating_add(total.completion_tokens);
        usage.total_tokens = usage.total_tokens.saturating_add(tokens(total));
        costs.push(total.cost);
    }
    let sum = |sum: NanoUsd, cost: Option<NanoUsd>| Some(sum.plus(cost?));
    let cost = costs.iter().copied().try_fold(NanoUsd(0), sum).filter(|_| !costs.is_empty());
    usage.cost_usd = cost.map(NanoUsd::usd);
    usage
}

fn tokens(total: &ModelTotal) -> u64 {
    total.prompt_tokens.saturating_add(total.completion_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(model: &str, purpose: Purpose, tokens: (u64, u64), cost: Option<u64>) -> ModelTotal {
        let (prompt_tokens, completion_tokens) = tokens;
        ModelTotal { model: model.into(), purpose, prompt_tokens, completion_tokens, cost: cost.map(NanoUsd) }
    }

    #[test]
    fn adds_up_by_purpose_and_by_model() {
        let usage = from_totals(&[
            total("a", Purpose::Extraction, (10, 5), Some(2_000_000_000)),
            total("a", Purpose::Verification, (20, 1), Some(500_000_000)),
            total("b", Purpose::Verification, (30, 2), None),
        ]);
        assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (60, 8, 68));
        assert_eq!((usage.extraction_tokens, usage.verification_tokens), (Some(15), Some(53)));
        let models = usage.model_usage.unwrap();
        assert_eq!(
            (models[0].model.as_str(), models[0].total_tokens, models[0].cost_usd),
            ("a", 36, Some(2.5))
        );
        assert_eq!((models[1].model.as_str(), models[1].total_tokens, models[1].cost_usd), ("b", 32, None));
        assert_eq!(models.len(), 2);
    }
}
