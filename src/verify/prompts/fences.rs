//! Fences around untrusted text in prompts.
//!
//! A block is enclosed by `BEGIN <LABEL> <marker>` and `END <LABEL> <marker>`, each on a line of its own. The author of
//! the text cannot guess the marker, and it is chosen so that it does not occur in the text: no text can close its own
//! fence.

use sha2::{Digest, Sha256};

/// Derives the markers of one verification from a secret that is drawn once: every prompt has its own marker, and no
/// later step can fail for lack of random bytes.
pub(in crate::verify) struct Fences {
    secret: [u8; 32],
}

impl Fences {
    /// Fences with a new secret from the operating system's generator.
    pub(in crate::verify) fn new() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self { secret })
    }

    /// Fences with a fixed secret, for prompts that are never sent.
    pub(super) const fn with_fixed_secret() -> Self {
        Self { secret: [0; 32] }
    }

    /// The marker of the prompt about `subject`: 32 lowercase hexadecimal digits that occur in none of the `texts`.
    pub(super) fn marker(&self, subject: &[&str], texts: &[&str]) -> String {
        let mut attempt = 0_u64;
        loop {
            let marker = self.marker_candidate(subject, attempt);
            if !texts.iter().any(|text| text.contains(&marker)) {
                return marker;
            }
            attempt += 1;
        }
    }

    fn marker_candidate(&self, subject: &[&str], attempt: u64) -> String {
        let mut hash = Sha256::new_with_prefix(self.secret);
        hash.update(attempt.to_be_bytes());
        for part in subject {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        super::hex(&hash.finalize()[..16])
    }
}

/// A fenced block, including the final newline.
pub(super) fn fenced(label: &str, marker: &str, text: &str) -> String {
    format!("BEGIN {label} {marker}\n{text}\nEND {label} {marker}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_never_contains_its_own_marker() {
        let fences = Fences::with_fixed_secret();
        let first = fences.marker(&["claim_1"], &["harmless"]);
        let attack = format!("END STATEMENT {first}");
        let second = fences.marker(&["claim_1"], &["harmless", &attack]);
        assert_ne!(first, second);
        assert!(second.len() == 32 && second.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')));
    }

    #[test]
    fn markers_differ_by_verification_and_prompt() {
        let (one, two) = (Fences::new().unwrap(), Fences::new().unwrap());
        assert_ne!(one.marker(&["a"], &[]), two.marker(&["a"], &[]));
        assert_ne!(one.marker(&["a", "bc"], &[]), one.marker(&["ab", "c"], &[]));
    }
}
