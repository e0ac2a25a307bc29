//! Characters that make text look like something else, or hide in it: they change the direction of their neighbours,
//! break a line, control a terminal or are invisible.
//!
//! The classes overlap and are deliberately not merged. What is dropped from a model's words, escaped on a terminal or
//! refused in a name depends on what the place tolerates and what its text is for; each class says why.

/// How much of a name is shown in a message.
const NAME_CHARS: usize = 64;

/// Whether this is one of the bidirectional controls of Unicode Standard Annex 9 (section 2): marks, embeddings,
/// overrides, isolates. All of them, for text that is only read and loses nothing without them.
pub const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}') || overrides_direction(c)
}

/// Embeddings, overrides and isolates: with these a name makes the text beside it look like something else. Without the
/// marks (U+061C, U+200E, U+200F), which people type in names in right-to-left scripts and which order only their
/// neighbours.
pub const fn overrides_direction(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Control characters (Unicode category Cc), line and paragraph separators: a name on one line has no use for them in
/// any script. Direction controls are not included, as names are refused those with a reason of their own.
pub fn breaks_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// What can forge terminal output or log lines: what breaks a line or changes the direction of text. Merely invisible
/// characters are not included: they move nothing, and emoji and some scripts are joined with them.
pub fn is_hazard(c: char) -> bool {
    breaks_line(c) || is_bidi_control(c)
}

/// Joins or shapes its neighbours: invisible on its own. For checking that a name contains anything else, so it
/// includes characters that are legitimate among letters (joiners, marks, variation selectors, fillers).
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
            | '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
    )
}

/// Zero-width spaces and word joiners, which split words that are searched for, and the tag block, in which
/// instructions for models can be hidden from people. Zero-width joiners between letters are not included: some scripts
/// and emoji need them, and this class is removed from within text.
pub const fn is_smuggled(c: char) -> bool {
    matches!(c, '\u{200B}' | '\u{2060}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

/// A name that a caller made up, for use in a message: shortened, and free of anything that plays tricks on a terminal
/// or a log. Only known harmless characters are kept, as names of parameters are words; nobody misses the rest.
pub fn name_in_message(name: &str) -> String {
    let is_harmless = |c: char| c.is_alphanumeric() || c.is_ascii_graphic();
    let shown = |c: char| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER };
    name.chars().take(NAME_CHARS).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of a class, as ranges.
    fn members(class: impl Fn(char) -> bool) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for c in ('\0'..=char::MAX).filter(|c| class(*c)).map(u32::from) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == c => *last = c,
                _ => ranges.push((c, c)),
            }
        }
        ranges
    }

    #[test]
    fn each_class_has_its_own_members() {
        let overrides = [(0x202a, 0x202e), (0x2066, 0x2069)];
        let marks = [(0x61c, 0x61c), (0x200e, 0x200f)];
        let breaks = [(0, 0x1f), (0x7f, 0x9f), (0x2028, 0x2029)];
        let separators_and_overrides = [(0x2028, 0x202e), (0x2066, 0x2069)];
        assert_eq!(members(overrides_direction), overrides);
        assert_eq!(members(is_bidi_control), [&marks[..], &overrides].concat());
        assert_eq!(members(breaks_line), breaks);
        assert_eq!(members(is_hazard), [&breaks[..2], &marks, &separators_and_overrides].concat());
        assert_eq!(
            members(is_smuggled),
            [(0x200b, 0x200b), (0x2060, 0x2060), (0xfeff, 0xfeff), (0xe0000, 0xe007f)]
        );
        // Of these two neither takes in the other.
        assert!(is_invisible('\u{200d}') && !is_smuggled('\u{200d}'));
        assert!(is_smuggled('\u{e0041}') && !is_invisible('\u{e0041}'));
    }

    #[test]
    fn a_name_in_a_message_is_short_and_harmless() {
        assert_eq!(name_in_message("max_tokens[0].größe"), "max_tokens[0].größe");
        assert_eq!(name_in_message("a b\u{1b}[2J\u{202e}\u{200b}"), "a\u{fffd}b\u{fffd}[2J\u{fffd}\u{fffd}");
        assert_eq!(name_in_message(&"ä".repeat(1000)).chars().count(), NAME_CHARS);
    }
}
