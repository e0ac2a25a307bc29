//! Characters that make a text look like something else, above all those that change the direction of what stands beside
//! them. No text needs them to be read by people whose
//! script runs from right to left; foreign ones can make a text look like another.

/// Whether this is one of the bidirectional controls of Unicode Standard Annex 9 (section 2): marks, embeddings,
/// overrides, isolates.
pub const fn is_control(c: char) -> bool {
    matches!(
        c,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    )
}

/// Control characters (Unicode category Cc), line and paragraph separators, and those that turn a text's direction.
pub fn is_hazard(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_control(c)
}
