//! Answers that only say whether something is so: a panel could guess what is claimed (CONTRACT 4.12).

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::verify::normal_form;
use crate::verify::values::Choice;

/// What an answer says by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Yes,
    No,
    Right,
    Wrong,
    Between,
}

static ANSWERS: LazyLock<HashMap<String, Class>> = LazyLock::new(|| {
    let lines = include_str!("data/yes_no.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once('\t'));
    let answers = rows.flat_map(|(class, answers)| {
        let class = match class {
            "yes" => Class::Yes,
            "no" => Class::No,
            "right" => Class::Right,
            "wrong" => Class::Wrong,
            _ => Class::Between,
        };
        answers.split('|').map(move |answer| (bare(&normal_form::small(answer)).to_owned(), class))
    });
    answers.collect()
});

/// The form in which answers are compared, of a normal form in small letters.
fn bare(small: &str) -> &str {
    small.trim_matches(|c: char| !c.is_alphanumeric())
}

fn class(answer: &Choice<'_>) -> Option<Class> {
    ANSWERS.get(bare(answer.small())).copied()
}

/// Whether an answer only says that something is so, or is not, whatever was asked.
pub fn is_yes_or_no(answer: &Choice<'_>) -> bool {
    class(answer).is_some_and(|class| class != Class::Between)
}

/// Whether a claimed answer beside these rivals only says that something is so, or is not.
pub fn asks_yes_or_no(claimed: &Choice<'_>, rivals: &[Choice<'_>]) -> bool {
    let claimed = class(claimed);
    let mut rivals = rivals.iter().filter_map(class);
    match claimed {
        Some(Class::Yes | Class::No) => true,
        Some(Class::Right) => rivals.any(|rival| !matches!(rival, Class::Right | Class::Yes)),
        Some(Class::Wrong) => rivals.any(|rival| !matches!(rival, Class::Wrong | Class::No)),
        Some(Class::Between) | None => rivals.any(|rival| matches!(rival, Class::Yes | Class::No)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks_yes_or_no(options: [&str; 3]) -> bool {
        let [claimed, rivals @ ..] = options.map(Choice::new);
        super::asks_yes_or_no(&claimed, &rivals)
    }

    #[test]
    fn yes_and_no_are_known_beside_any_rivals() {
        for options in [
            ["Yes", "No", "Sometimes"],
            ["Correct", "Incorrect", ""],
            ["No", "Yes", "Partly"],
            ["Sometimes", "Yes", "No"],
            ["Right.", "Wrong", ""],
            ["Richtig", "Falsch", "Teilweise"],
            ["是", "否", "部分"],
            ["да", "нет", ""],
            ["Sí", "No", ""],
            ["yes", "never", "often"],
        ] {
            assert!(asks_yes_or_no(options), "{options:?}");
        }
        for options in [
            ["Right", "Left", "Both"],
            ["No", "Ne", "Na"],
            ["Paris", "Lyon", "Nice"],
            ["Penguins can fly.", "Penguins cannot fly.", ""],
            ["Sometimes", "Always", "Never"],
        ] {
            assert!(!asks_yes_or_no(options), "{options:?}");
        }
    }
}
