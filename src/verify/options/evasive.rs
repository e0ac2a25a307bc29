//! Options that are no answer of their own, in the languages of most statements.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::verify::normal_form;

/// What an option without an answer stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    NoAnswer,
    Evasive,
}

static WORDINGS: LazyLock<HashMap<String, Class>> = LazyLock::new(|| {
    let lines = include_str!("data/evasive.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once('\t'));
    let wordings = rows.flat_map(|(class, wordings)| {
        let class = match class {
            "reserved" | "abstention" => Class::NoAnswer,
            _ => Class::Evasive,
        };
        wordings.split('|').map(move |wording| (form(wording), class))
    });
    let mut all = HashMap::new();
    for (wording, class) in wordings {
        // What stands in two lists is what the first says.
        all.entry(wording).or_insert(class);
    }
    all
});

/// The form in which wordings are compared: without an article or brackets around.
fn form(option: &str) -> String {
    let normal = normal_form::of(option).to_lowercase().replace('’', "'");
    let bare = normal.trim_matches(['(', ')', '（', '）', '[', ']', '!', '。', '-', '—']).trim();
    bare.to_owned()
}

fn class(option: &str) -> Option<Class> {
    WORDINGS.get(&form(option)).copied()
}

/// Whether an option is worded like one of the two that every question has, or stands for not knowing, whatever the
/// question: agreement on it would be no answer.
pub fn is_no_answer(option: &str) -> bool {
    class(option) == Some(Class::NoAnswer)
}

/// Whether an option stands for one of the fixed two, or for several. It may be an answer ("None" to "How many?"), so it is
/// dropped only beside another rival.
pub fn is_evasive(option: &str) -> bool {
    class(option) == Some(Class::Evasive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evasions_are_known_in_each_language() {
        for option in [
            "Other",
            "Unknown.",
            "Unbekannt",
            "etwas anderes",
            "Autre",
            "Desconocido",
            "Altro",
            "Outro",
            "Onbekend",
            "Другое",
            "Неизвестно",
            "不明",
            "其他",
            "その他",
            "기타",
            "غير معروف",
            "All of the above",
            "(unknown)",
        ] {
            assert!(is_evasive(option), "{option}");
        }
        for option in [
            "None of these",
            "NONE OF THE ABOVE.",
            "Can’t be determined",
            "keine davon",
            "无法确定",
            "どれでもない",
            "Невозможно определить",
        ] {
            assert!(is_no_answer(option), "{option}");
        }
        for option in ["Not sure", "N/A", "weiß nicht", "わからない", "Не знаю"] {
            assert!(is_no_answer(option), "{option}");
        }
        for option in ["Paris", "16", "Otherworld", "No", "東京", ""] {
            assert!(!is_evasive(option) && !is_no_answer(option), "{option}");
        }
    }
}
