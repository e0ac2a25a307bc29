//! What the parameters of requests are called on the command line, where people know them as flags.

/// Parameters of the API, and what people give them by.
const FLAGS: [(&str, &str); 18] = [
    ("fact", "the text"),
    ("domain", "--domain"),
    ("minRequired", "--min-required"),
    ("totalModels", "--total-models"),
    ("asOf", "--as-of"),
    ("explain", "--explain"),
    ("context", "--context"),
    ("receipt", "--receipt"),
    ("model", "-m"),
    ("temperature", "--temperature"),
    ("max_tokens", "--max-tokens"),
    ("name", "name"),
    ("expires_at", "--expires"),
    ("models", "--model"),
    ("addresses", "--address"),
    ("budget_usd", "--budget-usd"),
    ("cache", "--cache"),
    ("verify", "--verify"),
];

/// What a parameter is given by. An entry of a list, such as `models[1]`, is given by the list's flag, which can be
/// repeated; what is wrong with it quotes the one that is meant.
fn flag(param: &str) -> Option<&'static str> {
    let name =
        param.strip_suffix(']').and_then(|entry| entry.split_once('[')).map_or(param, |(list, _)| list);
    FLAGS.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag)
}

/// What is wrong with a parameter, as [`crate::keys::ManageError::Invalid`] has it, under its flag.
pub(crate) fn under_flag(param: &str, what: &str) -> String {
    format!("{}{what}", flag(param).unwrap_or(param))
}

/// A server's message about a parameter, under its flag. Most begin with the parameter's name; `model_flag` is what gave
/// the model, if not `-m`.
pub(crate) fn in_flags(param: &str, message: &str, model_flag: Option<&str>) -> String {
    let flag = model_flag.filter(|_| param == "model").or_else(|| flag(param));
    match (flag, message.strip_prefix(&format!("`{param}`"))) {
        (Some(flag), Some(what)) => format!("{flag}{what}"),
        (None, Some(_)) => message.to_owned(),
        (flag, None) => format!("{}: {message}", flag.unwrap_or(param)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_named_by_their_flags_and_entries_by_their_list_s() {
        for (param, message, expected) in [
            ("budget_usd", "`budget_usd` must be", "--budget-usd must be"),
            ("models[1]", "`models[1]`: \"x\" is no", "--model: \"x\" is no"),
            ("temperature", "the provider a refused it: 9", "--temperature: the provider a refused it: 9"),
            ("messages[2].role", "`messages[2].role` must be", "`messages[2].role` must be"),
            ("stop[0]", "the provider a refused it: 9", "stop[0]: the provider a refused it: 9"),
            ("model", "`model` names no provider", "-m names no provider"),
        ] {
            assert_eq!(in_flags(param, message, None), expected);
        }
        assert_eq!(
            in_flags("model", "`model` names no provider", Some("MK_MODEL")),
            "MK_MODEL names no provider"
        );
        assert_eq!(under_flag("addresses[0]", ": \"x\" is no network"), "--address: \"x\" is no network");
    }
}
