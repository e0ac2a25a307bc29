//! A question without its options, as `mk eval --open` asks it, and the judge who finds the option that an answer means.
//!
//! Models believe what they believe on a panel. `gamma` answers in a sentence, so that there is something to judge.

use serde_json::json;

use super::{answer, chat};

/// What a model says that does not know.
const UNKNOWN: &str = "UNKNOWN";

/// The answer of a model to a question without options.
pub(super) fn answer(model: &str, question: &str) -> String {
    match chat::known(model, question) {
        Some(known) if model == "gamma" => format!("I am quite sure that it is {known}"),
        Some(known) => known,
        None => UNKNOWN.to_owned(),
    }
}

/// The judgement on an answer: the only option whose words it holds.
pub(super) fn judgement(given: &str, options: &str) -> String {
    let given = format!(" {} ", answer::words(given));
    let mut meant = options.lines().filter_map(|line| line.split_once(") ")).filter(|(_, option)| {
        let option = answer::words(option);
        !option.is_empty() && given.contains(&format!(" {option} "))
    });
    match (meant.next(), meant.next()) {
        (Some((key, _)), None) => json!({"meant": key}).to_string(),
        _ => json!({"meant": "none"}).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_answer_in_their_own_words_and_the_judge_finds_the_option() {
        let capital = "What is the capital of Australia?";
        assert_eq!(answer("alpha", capital), "Canberra");
        assert_eq!(answer("beta", capital), "Sydney");
        assert_eq!(answer("gamma", capital), "I am quite sure that it is Canberra");
        assert_eq!(answer("alpha", "Who made the first kite?"), "UNKNOWN");
        let options = "A) Canberra\nB) Sydney";
        assert_eq!(judgement(&answer("gamma", capital), options), "{\"meant\":\"A\"}");
        assert_eq!(judgement("Canberra, not Sydney", options), "{\"meant\":\"none\"}");
        assert_eq!(judgement("Perth", options), "{\"meant\":\"none\"}");
    }
}
