//! The panel's task: a question with options, answered from the tables by what a given model believes.

use serde_json::json;

use super::knowledge::{self, Fact, Topic};
use super::reading::arithmetic::Sum;
use super::reading::{numbers, triggers};
use super::recognise::{self, WHICH};

const NONE_OF_THESE: &str = "None of these";
const UNKNOWN: &str = "My table of facts does not hold this.";
const CANNOT_TELL: &str = "Cannot be determined";

/// A question as a model of the panel sees it.
pub(super) struct Task<'a> {
    pub(super) model: &'a str,
    /// With or without trigger words.
    pub(super) question: &'a str,
    /// One per line, such as `A) text`.
    pub(super) options: &'a str,
    /// A text to answer from instead of the tables.
    pub(super) context: Option<&'a str>,
    /// Whether a reason is asked for.
    pub(super) explain: bool,
}

/// A model's verdict on a question.
enum Verdict {
    /// The key of the chosen option, and the reason.
    Option(String, String),
    /// Its answer, which is not among the options, and the reason.
    Other(String, String),
    /// It cannot tell.
    Unknown(&'static str),
}

/// The answer to a task, as a model would write it.
pub(super) fn answer(task: &Task) -> String {
    let options: Vec<(&str, &str)> = task
        .options
        .lines()
        .filter_map(|line| line.split_once(") "))
        .map(|(key, text)| (key, text.trim()))
        .collect();
    let (question, _) = triggers::split(task.question);
    let verdict = match task.context {
        Some(context) => from_context(context, &options),
        None => from_tables(task.model, &question, &options),
    };
    let key_of = |wanted: &str| {
        options
            .iter()
            .find(|(_, text)| text.eq_ignore_ascii_case(wanted))
            .map_or_else(String::new, |(key, _)| (*key).to_owned())
    };
    let (key, found, reason) = match verdict {
        Verdict::Option(key, reason) => {
            let found = options.iter().find(|(at, _)| *at == key).map_or("", |(_, text)| *text).to_owned();
            (key, found, reason)
        }
        Verdict::Other(found, reason) => (key_of(NONE_OF_THESE), found, reason),
        Verdict::Unknown(reason) => (key_of(CANNOT_TELL), String::new(), reason.to_owned()),
    };
    if task.explain {
        return json!({"found": found, "reason": reason, "answer": key}).to_string();
    }
    json!({"found": found, "answer": key}).to_string()
}

fn from_tables(model: &str, question: &str, options: &[(&str, &str)]) -> Verdict {
    if let Some(sum) = Sum::parse_question(question) {
        let Some(value) = sum.value() else {
            return Verdict::Unknown("There is no such number.");
        };
        let same = |text: &str| numbers::read(text).is_some_and(|number| numbers::same(number, value));
        return choice(options, same, &numbers::show(value));
    }
    if question == WHICH {
        let judged = options.iter().find_map(|(key, text)| {
            (recognise::is_right(text, |fact| belief(model, fact))?).then(|| (*key).to_owned())
        });
        let reason = "My table of facts says so.".to_owned();
        return judged.map_or(Verdict::Unknown(UNKNOWN), |key| Verdict::Option(key, reason));
    }
    let Some(fact) = knowledge::fact_for_question(question) else {
        return Verdict::Unknown(UNKNOWN);
    };
    let Some(belief) = belief(model, fact) else {
        return Verdict::Unknown("This is a matter I know nothing about.");
    };
    choice(options, |text| fact.same(text, belief), belief)
}

fn choice(options: &[(&str, &str)], is_it: impl Fn(&str) -> bool, belief: &str) -> Verdict {
    let reason = format!("My table of facts says: {belief}.");
    match options.iter().find(|(_, text)| is_it(text)) {
        Some((key, _)) => Verdict::Option((*key).to_owned(), reason),
        None => Verdict::Other(belief.to_owned(), reason),
    }
}

/// What a model believes; `None` if it abstains. The differences are deliberate: they make every outcome of a vote
/// possible.
pub(super) fn belief<'a>(model: &str, fact: &'a Fact) -> Option<&'a str> {
    match (model, fact.topic) {
        ("beta", _) => Some(fact.misconception.as_ref().unwrap_or(&fact.answer)),
        ("gamma", Topic::Chemistry | Topic::Disputed) | ("delta", Topic::History | Topic::Law) => None,
        _ => Some(&fact.answer),
    }
}

/// The only option that the context names; understanding more would take a real model.
fn from_context(context: &str, options: &[(&str, &str)]) -> Verdict {
    const NO_ANSWERS: [&str; 4] = ["yes", "no", "none of these", "cannot be determined"];
    let words = format!(" {} ", words(context));
    let mut named = options.iter().filter(|(_, text)| {
        let option = self::words(text);
        !option.is_empty() && !NO_ANSWERS.contains(&option.as_str()) && words.contains(&format!(" {option} "))
    });
    match (named.next(), named.next()) {
        (Some((key, text)), None) => Verdict::Option((*key).to_owned(), format!("The context names {text}.")),
        (Some(_), Some(_)) => Verdict::Unknown("The context names several of the options."),
        (None, _) => Verdict::Unknown("The context names none of the options."),
    }
}

/// The words of a text, in lower case.
pub(super) fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CITIES: &str =
        "A) Vienna\nB) Sydney\nC) Canberra\nD) Rome\nE) None of these\nF) Cannot be determined";

    fn answered(model: &str, question: &str, options: &str, context: Option<&str>) -> String {
        let text = answer(&Task { model, question, options, context, explain: false });
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["answer"].as_str().unwrap().to_owned()
    }

    #[test]
    fn models_differ_as_documented() {
        let capital = "What is the capital of Australia? [sandbox:slow]";
        assert_eq!(
            ["alpha", "beta", "gamma", "delta"].map(|model| answered(model, capital, CITIES, None)),
            ["C", "B", "C", "C"]
        );
        let symbol = "What is the chemical symbol of silver?";
        let symbols = "A) Si\nB) Ag\nC) None of these\nD) Cannot be determined";
        assert_eq!(
            ["alpha", "beta", "gamma"].map(|model| answered(model, symbol, symbols, None)),
            ["B", "A", "D"]
        );
        let year = "In which year did the Titanic sink?";
        let years = "A) 1912\nB) 1915\nC) None of these\nD) Cannot be determined";
        assert_eq!(["alpha", "delta"].map(|model| answered(model, year, years, None)), ["A", "D"]);
    }

    #[test]
    fn an_answer_that_is_not_offered_is_none_of_these() {
        assert_eq!(answered("alpha", "What is the capital of France?", CITIES, None), "E");
        assert_eq!(answered("alpha", "What is the capital of Atlantis?", CITIES, None), "F");
        assert_eq!(answered("alpha", "What is 1 ÷ 0?", CITIES, None), "F");
        assert_eq!(answered("alpha", "What is the capital of Atlantis?", "", None), "");
    }

    #[test]
    fn denials_are_confirmed_or_contradicted() {
        let options = "A) The capital of Australia is Sydney.\nB) The capital of Australia is not Sydney.\n\
                       C) None of these\nD) Cannot be determined";
        assert_eq!(["alpha", "beta"].map(|model| answered(model, WHICH, options, None)), ["B", "A"]);
    }

    #[test]
    fn a_context_takes_precedence_over_the_tables() {
        let question = "What is the capital of Australia?";
        assert_eq!(answered("alpha", question, CITIES, Some("They met in Vienna, in May.")), "A");
        assert_eq!(answered("alpha", question, CITIES, Some("From Vienna to Rome.")), "F");
        assert_eq!(answered("alpha", question, CITIES, Some("Romeo stayed home.")), "F");
    }
}
