//! Options that are no answer of their own, in the languages of most statements.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::verify::normal_form;
use crate::verify::values::Choice;

/// What an option without an answer of its own stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evasion {
    /// It is worded like one of the two that every question has, or stands for not knowing, whatever the question:
    /// agreement on it would be no answer.
    NoAnswer,
    /// It stands for one of the fixed two, or for several. It may be an answer ("None" to "How many?"), so it is dropped
    /// only beside another rival.
    Perhaps,
}

static WORDINGS: LazyLock<HashMap<String, Evasion>> = LazyLock::new(|| {
    let lines = include_str!("data/evasive.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once('\t'));
    let wordings = rows.flat_map(|(class, wordings)| {
        let evasion = match class {
            "reserved" | "abstention" => Evasion::NoAnswer,
            _ => Evasion::Perhaps,
        };
        wordings.split('|').map(move |wording| (bare(&normal_form::small(wording)).into_owned(), evasion))
    });
    let mut all = HashMap::new();
    for (wording, evasion) in wordings {
        // What stands in two lists is what the first says.
        all.entry(wording).or_insert(evasion);
    }
    all
});

/// The form in which wordings are compared, of a normal form in small letters: without brackets around.
fn bare(small: &str) -> Cow<'_, str> {
    let bare = small.trim_matches(['(', ')', '（', '）', '[', ']', '!', '。', '-', '—']).trim();
    if bare.contains('’') { Cow::Owned(bare.replace('’', "'")) } else { Cow::Borrowed(bare) }
}

/// What an option without an answer of its own stands for; `None` for any other.
pub fn evasion(option: &Choice<'_>) -> Option<Evasion> {
    WORDINGS.get(&*bare(option.small())).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evasion(option: &str) -> Option<Evasion> {
        super::evasion(&Choice::new(option))
    }

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
            assert_eq!(evasion(option), Some(Evasion::Perhaps), "{option}");
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
            assert_eq!(evasion(option), Some(Evasion::NoAnswer), "{option}");
        }
        for option in ["Not sure", "N/A", "weiß nicht", "わからない", "Не знаю"] {
            assert_eq!(evasion(option), Some(Evasion::NoAnswer), "{option}");
        }
        for option in ["Paris", "16", "Otherworld", "No", "東京", ""] {
            assert_eq!(evasion(option), None, "{option}");
        }
    }
}
