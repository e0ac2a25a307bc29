//! Fences around untrusted text in prompts.
//!
//! A block is enclosed by `BEGIN <LABEL> <marker>` and `END <LABEL> <marker>`, each on a line of its own. The author of
//! a statement cannot guess the marker, and it is chosen so that it occurs in no text of the request: no text can close
//! its own fence. There is one for a whole verification, so that all its votes begin with the same words, which
//! providers' prompt caches need. An extractor sees it, though, and a statement might talk it into writing it: a claim
//! with the marker in it is refused ([`Fences::occurs_in`]).

use crate::hex::hex;
use memchr::memchr2_iter;

/// The marker of one verification: eight lowercase hexadecimal digits.
pub(in crate::verify) struct Fences {
    marker: String,
}

impl Fences {
    /// Draws a marker that occurs in none of these `texts`.
    ///
    /// # Errors
    /// If the operating system's generator fails.
    pub(in crate::verify) fn new(texts: &[&str]) -> Result<Self, getrandom::Error> {
        loop {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes)?;
            let fences = Self { marker: hex(&bytes) };
            if !texts.iter().any(|text| fences.occurs_in(text)) {
                return Ok(fences);
            }
        }
    }

    /// A fixed marker, for prompts that are never sent.
    pub(super) fn fixed() -> Self {
        Self { marker: "00000000".to_owned() }
    }

    /// Whether a text contains the marker, in either case.
    pub(in crate::verify) fn occurs_in(&self, text: &str) -> bool {
        let (marker, text) = (self.marker.as_bytes(), text.as_bytes());
        let Some(first) = marker.first() else { return false };
        let begins = memchr2_iter(*first, first.to_ascii_uppercase(), text);
        begins
            .filter_map(|at| text.get(at..at + marker.len()))
            .any(|window| window.eq_ignore_ascii_case(marker))
    }

    /// A fenced block, including the final newline.
    pub(super) fn block(&self, label: &str, text: &str) -> String {
        let marker = &self.marker;
        ["BEGIN ", label, " ", marker, "\n", text, "\nEND ", label, " ", marker, "\n"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_random_and_in_no_text_of_the_request() {
        let (one, two) = (Fences::new(&[]).unwrap(), Fences::new(&[]).unwrap());
        assert_ne!(one.marker, two.marker);
        assert!(one.marker.len() == 8 && one.marker.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')));
        assert!(one.occurs_in(&format!("x{}y", one.marker.to_uppercase())) && !one.occurs_in(&two.marker));
        // Many markers are in this text: a new one is drawn until one is not.
        let crowded: Vec<String> =
            (0..200_000_u32).map(|n| format!("{:08x}", n.wrapping_mul(21_474))).collect();
        let crowded = crowded.concat();
        assert!((0..20).all(|_| !Fences::new(&[&crowded]).unwrap().occurs_in(&crowded)));
    }
}
