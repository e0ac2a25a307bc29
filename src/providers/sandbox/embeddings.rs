//! Simulated embeddings: the same text always has the same vector of length 1, and texts with words in common have
//! vectors that are close, so that a search over them finds something.
//!
//! Each word adds to a few places of the vector, which its hash chooses, with a sign (feature hashing; Weinberger and
//! others, 2009). Trigger words do nothing here.

use http::HeaderMap;
use sha2::{Digest, Sha256};

use super::THREAD;
use crate::clock::Clock;
use crate::json::reader::Json;
use crate::money::{Tokens, Usage};
use crate::providers::dialects::embeddings;
use crate::providers::{CompletionRequest, Failure, ProviderResponse, ResponseMeta};

/// The length of a vector if none is asked for.
const DIMENSIONS: u64 = 256;
/// The longest vector.
const MAX_DIMENSIONS: u64 = 3072;
/// To how many places a word adds.
const PLACES: usize = 8;

/// Checks that a request can be answered.
///
/// # Errors
/// [`Failure::Unsupported`] for what cannot be simulated.
pub(in crate::providers) fn check(request: &CompletionRequest<'_>) -> Result<(), Failure> {
    let (_, dimensions) = embeddings::texts(request)?;
    if dimensions.is_some_and(|dimensions| dimensions > MAX_DIMENSIONS) {
        let message = format!("simulated vectors have at most {MAX_DIMENSIONS} dimensions");
        return Err(Failure::Unsupported { param: "dimensions".to_owned(), message });
    }
    Ok(())
}

/// A complete response, as a provider would send it.
///
/// # Errors
/// As [`check`].
pub(in crate::providers) async fn respond(
    request: &CompletionRequest<'_>,
) -> Result<ProviderResponse, Failure> {
    check(request)?;
    let (texts, dimensions) = embeddings::texts(request)?;
    let length = usize::try_from(dimensions.unwrap_or(DIMENSIONS)).unwrap_or(1).max(1);
    let write = move || texts.iter().map(|text| json(&vector(text, length))).collect::<Vec<_>>();
    let vectors = THREAD.run(write).await;
    // No thread, or a defect in here: as from a real provider in trouble.
    let vectors = vectors.map_err(|_| Failure::Broken { status: 500, retry_after: None })?;
    let usage = Usage::estimated(Tokens::of_prompt(request.prompt_tokens));
    let raw = vectors.iter().map(|text| serde_json::from_str::<Json<'_>>(text));
    let raw = raw.collect::<Result<Vec<_>, _>>().map_err(|_| Failure::Malformed)?;
    let meta = ResponseMeta::default();
    let simulated = embeddings::response(request, &meta, raw.into_iter(), usage, &[("mode", "\"sandbox\"")])?;
    let (headers, clock) = (HeaderMap::new(), Clock::system());
    Ok(ProviderResponse { status: 200, headers, body: simulated.body, clock })
}

/// The vector of a text.
fn vector(text: &str, length: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; length];
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        let hash = Sha256::digest(word);
        for place in hash.chunks_exact(hash.len() / PLACES) {
            let at = u32::from_le_bytes([place[0], place[1], place[2], 0]) as usize % length;
            vector[at] += if place[3] & 1 == 0 { 1.0 } else { -1.0 };
        }
    }
    let norm = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if norm > 0.0 {
        for number in &mut vector {
            *number /= norm;
        }
    } else {
        // No words, or words that cancel each other out.
        vector[0] = 1.0;
    }
    vector
}

fn json(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn closeness(one: &str, other: &str) -> f32 {
        vector(one, 256).iter().zip(vector(other, 256)).map(|(one, other)| one * other).sum()
    }

    #[test]
    fn texts_with_words_in_common_are_close() {
        let close = closeness("The capital of France is Paris.", "Paris is the capital of France");
        let far = closeness("The capital of France is Paris.", "Water boils at 100 degrees");
        assert!(close > 0.99 && far < 0.4, "{close} {far}");
    }

    proptest! {
        #[test]
        fn every_vector_has_length_one(text: String, length in 1_usize..600) {
            let norm: f32 = vector(&text, length).iter().map(|number| number * number).sum();
            prop_assert!((norm - 1.0).abs() < 1e-3, "{}", norm);
        }
    }
}
