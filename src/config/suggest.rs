//! "Did you mean …?"

/// The candidate most likely meant by a misspelt name, if one is close.
pub fn closest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (typed.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(typed, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The question whether the closest candidate is meant, as a hint.
pub(super) fn did_you_mean<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(typed, candidates).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_close_and_nothing_else() {
        assert_eq!(closest("per_minut", ["per_day", "per_minute"]), Some("per_minute"));
        assert_eq!(closest("pannel", ["panel", "standby"]), Some("panel"));
        assert_eq!(closest("colour", ["color", "view"]), Some("color"));
        assert_eq!(closest("zzz", ["panel", "standby"]), None);
        assert_eq!(did_you_mean("x", ["y"]).as_deref(), Some("did you mean `y`?"));
        assert_eq!(did_you_mean("password", ["panel"]), None);
    }
}
