//! What each shell tells and expects.

use clap::ValueEnum;

use super::{Found, words};

/// A shell whose script asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Asking {
    /// Tells the line, and the part of it that it will replace.
    Bash,
    /// Tells the words without their quotes.
    Zsh,
    /// Tells the words without their quotes, the last one as it is typed.
    Fish,
}

/// The script that asks.
pub(crate) const fn script(shell: Asking) -> &'static str {
    match shell {
        Asking::Bash => include_str!("script.bash"),
        Asking::Zsh => include_str!("script.zsh"),
        Asking::Fish => include_str!("script.fish"),
    }
}

/// The part of the last word that the shell keeps, and the quote that is open in the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Replaced {
    kept: String,
    quote: Option<char>,
}

/// The words up to the cursor, and what will be replaced.
pub(super) fn words(shell: Asking, line: Vec<String>) -> (Vec<String>, Replaced) {
    match (shell, line.as_slice()) {
        (Asking::Bash, [line, part]) => {
            let words = words::split(line);
            let word = words.last().cloned().unwrap_or_default();
            let part_word = words::split(part).join(" ");
            let kept = word.strip_suffix(&part_word).unwrap_or_default().to_owned();
            let quote = part.chars().next().filter(|c| matches!(c, '"' | '\''));
            (words, Replaced { kept, quote })
        }
        (Asking::Fish, [before @ .., last]) => {
            let last = words::split(last).join(" ");
            (before.iter().cloned().chain([last]).collect(), Replaced::default())
        }
        _ => (line, Replaced::default()),
    }
}

/// A candidate as a line for the shell; `None` if it cannot be told.
pub(super) fn line(shell: Asking, replaced: &Replaced, found: &Found) -> Option<String> {
    match shell {
        Asking::Bash => bash(replaced, &found.value),
        Asking::Zsh => {
            let value = found.value.replace('\\', "\\\\").replace(':', "\\:");
            Some(if found.about.is_empty() {
                value
            } else {
                format!("{value}:{}", found.about.replace('\\', "\\\\"))
            })
        }
        Asking::Fish => Some(format!("{}\t{}", found.value, found.about)),
    }
}

/// Bash puts the text into the line as it is: whatever it would read as code is escaped.
fn bash(replaced: &Replaced, value: &str) -> Option<String> {
    let rest = value.strip_prefix(&replaced.kept)?;
    if replaced.quote.is_some() {
        let is_plain = |c: char| !matches!(c, '"' | '\'' | '\\' | '$' | '`' | '!');
        return rest.chars().all(is_plain).then(|| rest.to_owned());
    }
    let mut escaped = String::with_capacity(rest.len());
    for c in rest.chars() {
        if !(c.is_alphanumeric() || "-_./:,=+@%".contains(c)) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str, part: &str, value: &str) -> Option<String> {
        let (_, replaced) = words(Asking::Bash, vec![line.to_owned(), part.to_owned()]);
        super::line(Asking::Bash, &replaced, &Found { value: value.to_owned(), about: String::new() })
    }

    #[test]
    fn bash_gets_the_part_that_it_replaces() {
        assert_eq!(asked("mk chat -m ollama/llama3:8", "8", "ollama/llama3:8b").as_deref(), Some("8b"));
        assert_eq!(asked("mk chat -m ollama/llama3:", "", "ollama/llama3:8b").as_deref(), Some("8b"));
        assert_eq!(asked("mk usage --by=d", "d", "--by=day").as_deref(), Some("day"));
        assert_eq!(asked("mk keys show CI\\ b", "CI\\ b", "CI bot").as_deref(), Some("CI\\ bot"));
        assert_eq!(asked("mk keys show 'CI b", "'CI b", "CI bot").as_deref(), Some("CI bot"));
    }

    #[test]
    fn a_name_is_never_code() {
        let evil = "a;$(touch x)`id`'\"&|<>*?[]{}~!#\\";
        let shown = asked("mk keys show ", "", evil).unwrap();
        let letters = shown.replace('\\', "");
        assert!(
            shown.starts_with("a\\;\\$\\(touch\\ x\\)\\`id\\`\\'\\\"\\&") && letters.starts_with("a;$(touch"),
            "{shown}"
        );
        assert_eq!(asked("mk keys show \"", "\"", evil), None);
    }

    #[test]
    fn zsh_and_fish_get_what_a_candidate_is() {
        let found = Found { value: "a:b".to_owned(), about: "verify, …abcd".to_owned() };
        let shown = |shell| line(shell, &Replaced::default(), &found).unwrap();
        assert_eq!(
            (shown(Asking::Zsh).as_str(), shown(Asking::Fish).as_str()),
            ("a\\:b:verify, …abcd", "a:b\tverify, …abcd")
        );
    }
}
