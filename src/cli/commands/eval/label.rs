//! What a statement can be: labels of datasets, and what is said about a statement as a whole.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// What a statement is, or was judged to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Label {
    /// Every claim is true.
    True,
    /// At least one claim is false.
    False,
    /// No claim is false, but at least one is without consensus.
    NoConsensus,
    /// It contains no claim.
    Nothing,
    /// Nothing in it is false or without consensus, but a part was not checked. No statement is expected to be this.
    Unchecked,
}

impl Label {
    /// All labels, in the order of tables.
    pub(crate) const ALL: [Self; 5] =
        [Self::True, Self::False, Self::NoConsensus, Self::Nothing, Self::Unchecked];

    /// Whether it is a verdict: true or false.
    pub(crate) const fn is_verdict(self) -> bool {
        matches!(self, Self::True | Self::False)
    }

    /// The label for people.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::True => "TRUE",
            Self::False => "FALSE",
            Self::NoConsensus => "NO CONSENSUS",
            Self::Nothing => "NOTHING",
            Self::Unchecked => "UNCHECKED",
        }
    }

    /// The label as one word, for programs that split at whitespace.
    pub(crate) const fn as_word(self) -> &'static str {
        match self {
            Self::NoConsensus => "NO_CONSENSUS",
            other => other.as_str(),
        }
    }

    /// The label that a dataset writes so.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let text = match value {
            Value::Bool(is_true) => return Some(if *is_true { Self::True } else { Self::False }),
            Value::String(text) => text.trim().to_ascii_uppercase().replace(['_', '-'], " "),
            _ => return None,
        };
        match text.as_str() {
            "TRUE" | "SUPPORTS" | "SUPPORTED" => Some(Self::True),
            "FALSE" | "REFUTES" | "REFUTED" => Some(Self::False),
            "NO CONSENSUS" | "NOT ENOUGH INFO" | "NOT ENOUGH EVIDENCE" => Some(Self::NoConsensus),
            "NOTHING" => Some(Self::Nothing),
            _ => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let label = Self::ALL.into_iter().find(|label| label.as_str() == text);
        label.ok_or_else(|| de::Error::custom("no label of a statement"))
    }
}
