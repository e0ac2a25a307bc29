//! The conditions, and whether they hold.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// How many examples of violations are shown.
const EXAMPLES: usize = 5;
/// How much of each is shown.
const SHOWN: usize = 600;

/// A condition and whether it holds.
#[derive(Debug)]
pub(crate) struct Condition {
    what: &'static str,
    /// What was found.
    found: String,
    /// How many violations there are, and examples; `None` if it could not be checked.
    wrong: Option<(usize, Vec<String>)>,
}

impl Condition {
    /// The condition that there are no violations.
    pub(crate) fn none(what: &'static str, found: String, wrong: Vec<String>) -> Self {
        let count = wrong.len();
        Self { what, found, wrong: Some((count, wrong.into_iter().take(EXAMPLES).collect())) }
    }

    /// The condition that `holds`.
    pub(crate) fn holds(what: &'static str, found: String, holds: bool) -> Self {
        let wrong = if holds { Vec::new() } else { vec![found.clone()] };
        Self::none(what, found, wrong)
    }

    /// The condition that two values are equal.
    pub(crate) fn equal<T: Debug + PartialEq>(what: &'static str, expected: &T, found: &T) -> Self {
        let wrong = if expected == found { Vec::new() } else { vec![format!("it had to be {expected:?}")] };
        Self::none(what, format!("{found:?}"), wrong)
    }

    /// The condition that two tables are equal, line by line.
    pub(crate) fn same<K: Ord + Debug>(
        what: &'static str,
        expected: BTreeMap<K, u64>,
        mut found: BTreeMap<K, u64>,
    ) -> Self {
        let count = format!("{} counts", found.len());
        let mut wrong = Vec::new();
        for (key, expected) in expected {
            let found = found.remove(&key).unwrap_or_default();
            if found != expected {
                wrong.push(format!("{key:?}: {found}, not {expected}"));
            }
        }
        wrong.extend(found.iter().map(|(key, found)| format!("{key:?}: {found}, not 0")));
        Self::none(what, count, wrong)
    }

    /// A condition that could not be checked.
    pub(crate) fn unchecked(what: &'static str, found: String) -> Self {
        Self { what, found, wrong: None }
    }

    /// Whether it was checked and holds.
    pub(crate) fn is_ok(&self) -> bool {
        matches!(self.wrong, Some((0, _)))
    }

    /// Its lines of the report.
    pub(crate) fn lines(&self) -> Vec<String> {
        let verdict = match self.wrong {
            Some((0, _)) => "ok",
            Some(_) => "MISSED",
            None => "not checked",
        };
        let mut lines = vec![format!("{verdict:<12}{:<42}{}", self.what, self.found)];
        if let Some((count @ 1.., examples)) = &self.wrong {
            lines.push(format!("{:12}wrong: {count}, such as", ""));
            let shown = |example: &String| {
                let end = example.floor_char_boundary(SHOWN);
                format!("{:14}{}", "", &example[..end])
            };
            lines.extend(examples.iter().map(shown));
        }
        lines
    }
}
