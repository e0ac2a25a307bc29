//! The models a key may use: patterns `*`, `provider/*`, `provider/model` and the name of a pool; an empty list allows
//! every model. Who may use a pool may use, through it, what the pool names.

use crate::storage::KeyRow;

/// Whether `key` may be used for the model with this identifier.
pub fn may_use(key: &KeyRow, model: &str) -> bool {
    key.models.is_empty() || key.models.iter().any(|pattern| matches(pattern, model))
}

/// Whether there are models that `key` may not be used for.
pub fn is_limited_to_models(key: &KeyRow) -> bool {
    !key.models.is_empty() && key.models.iter().all(|pattern| pattern != "*")
}

fn matches(pattern: &str, model: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(before) => model.starts_with(before),
        None => pattern == model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_everything_a_provider_or_a_model() {
        assert!(matches("*", "a/b"));
        assert!(matches("a/*", "a/b/c") && !matches("a/*", "ab/c"));
        assert!(matches("a/b", "a/b") && !matches("a/b", "a/bc") && !matches("a/b", "A/b"));
    }
}
