//! Client settings that are a choice between words; the words are the same in flags, variables and files.

use std::fmt;

use clap::ValueEnum;

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorMode {
    /// On terminals, as the environment allows.
    #[default]
    Auto,
    /// Also into pipes and files.
    Always,
    /// Not at all.
    Never,
}

/// How progress is shown on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// Bars on a terminal, nothing elsewhere.
    #[default]
    Auto,
    /// Bars.
    Bars,
    /// One line a step, as logs and screen readers want it.
    Lines,
    /// Nothing.
    None,
}

/// How results are laid out for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Claims below each other.
    #[default]
    List,
    /// One claim a row.
    Table,
}

/// A verdict that makes `mk verify` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A claim is FALSE.
    False,
    /// A claim found NO CONSENSUS.
    NoConsensus,
    /// A part of the text was not checked, as it is over a limit.
    Unchecked,
    /// A part of the text was skipped, for whatever reason.
    Skipped,
    /// No verdict makes it fail; stands alone.
    Never,
}

impl FailOn {
    /// What makes it fail if nobody says otherwise.
    pub const DEFAULT: [Self; 3] = [Self::False, Self::NoConsensus, Self::Unchecked];

    /// Whether a list says both that nothing makes it fail and that something does.
    pub fn contradict(list: &[Self]) -> bool {
        list.contains(&Self::Never) && list.iter().any(|choice| *choice != Self::Never)
    }

    /// The list of these words, in any letter case, if that makes sense.
    pub(in crate::config) fn parse_list(words: &[String]) -> Option<Vec<Self>> {
        let list: Vec<Self> =
            words.iter().map(|word| Self::from_str(word, true).ok()).collect::<Option<_>>()?;
        (!Self::contradict(&list)).then_some(list)
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(self))
    }
}

/// The word for a value.
pub(in crate::config) fn word(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The value for a word.
pub(in crate::config) fn parse<T: ValueEnum>(word: &str) -> Option<T> {
    T::from_str(word, false).ok()
}

/// All words, for error messages: `"auto", "always" or "never"`.
pub(in crate::config) fn words<T: ValueEnum>() -> String {
    let words: Vec<_> = T::value_variants().iter().map(|choice| format!("{:?}", word(choice))).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.join(""),
    }
}
