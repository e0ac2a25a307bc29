//! Takes a command line apart, as far as completion needs it.

use clap::Command;

/// The value of `--fail-on` that makes no sense beside others.
const ALONE: &str = "never";

/// The words of a line up to the cursor, without their quotes, as POSIX shells have them. The last one is being typed,
/// and may be empty or open.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            (None | Some('"'), '\\') => word.get_or_insert_with(String::new).extend(chars.next()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            (Some(open), c) if open == c => quote = None,
            (_, c) => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.push(word.unwrap_or_default());
    words
}

/// The value that an option has among the words.
pub(super) fn option<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    // The last word is being typed.
    let complete = words.split_last()?.1;
    let words = complete.iter().take_while(|word| *word != "--").enumerate();
    words
        .filter_map(|(at, word)| match word.strip_prefix(name)? {
            "" => complete.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
        .last()
}

/// Whether the last value of a list, as in `--by=day,model`, may follow those before it: each stands in a list once,
/// and `never` alone.
pub(super) fn fits_in_its_list(candidate: &str) -> bool {
    let Some((before, last)) = candidate.rsplit_once(',') else { return true };
    let before = before.rsplit_once('=').map_or(before, |(_, list)| list);
    before.split(',').all(|value| value != last && value != ALONE) && last != ALONE
}

/// Whether the command among the words takes something that is no option.
pub(super) fn takes_argument(command: &Command, words: &[String]) -> bool {
    let mut found = command;
    for word in words.iter().skip(1).take(words.len().saturating_sub(2)) {
        found = found.find_subcommand(word).unwrap_or(found);
    }
    found.get_positionals().next().is_some() || found.has_subcommands()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_shells_do() {
        for (line, words) in [
            ("mk ", &["mk", ""][..]),
            ("mk  keys re", &["mk", "keys", "re"]),
            ("mk keys show CI\\ b", &["mk", "keys", "show", "CI b"]),
            ("mk keys show 'CI b", &["mk", "keys", "show", "CI b"]),
            ("mk a\"b \\\"c\"d ''", &["mk", "ab \"cd", ""]),
            ("", &[""]),
        ] {
            assert_eq!(split(line), words, "{line}");
        }
    }

    #[test]
    fn options_are_found_before_the_word_that_is_typed() {
        let words = split("mk --server one keys list --server=two --data-dir here ");
        assert_eq!((option(&words, "--server"), option(&words, "--data-dir")), (Some("two"), Some("here")));
        assert_eq!(option(&split("mk verify -- --server x "), "--server"), None);
        assert_eq!(option(&split("mk --server"), "--server"), None);
    }
}
