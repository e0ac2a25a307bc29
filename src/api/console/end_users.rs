//! The limits that a key sets for each end user of its requests, where they differ from the server's
//! (`[limits.end_users]`). People write them as they stand there: `per_minute=20,budget_usd_per_month=5`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::money::NanoUsd;

/// A key's own limits for each end user. Null is the server's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OwnEndUserLimits {
    /// Requests in any 60 seconds; 0 is unlimited.
    pub per_minute: Option<u32>,
    /// Requests in a UTC day; 0 is unlimited.
    pub per_day: Option<u32>,
    /// What their requests may cost on a UTC day, in US dollars.
    #[serde(rename = "budget_usd_per_day", serialize_with = "to_usd", deserialize_with = "from_usd")]
    #[schemars(with = "Option<f64>")]
    pub budget_per_day: Option<NanoUsd>,
    /// What their requests may cost in a calendar month (UTC), in US dollars.
    #[serde(rename = "budget_usd_per_month", serialize_with = "to_usd", deserialize_with = "from_usd")]
    #[schemars(with = "Option<f64>")]
    pub budget_per_month: Option<NanoUsd>,
}

impl OwnEndUserLimits {
    /// The names of its fields.
    pub const NAMES: [&str; 4] = ["per_minute", "per_day", "budget_usd_per_day", "budget_usd_per_month"];

    /// What it must be, for people.
    pub const FORM: &str =
        "limits such as per_minute=20,per_day=500,budget_usd_per_day=0.5,budget_usd_per_month=5";

    /// Reads it as people write it; `None` if it is anything else, empty, or sets a limit twice.
    pub fn parse(text: &str) -> Option<Self> {
        let mut limits = Self::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            let is_new = match name {
                "per_minute" => limits.per_minute.replace(value.parse().ok()?).is_none(),
                "per_day" => limits.per_day.replace(value.parse().ok()?).is_none(),
                "budget_usd_per_day" => limits.budget_per_day.replace(NanoUsd::parse_usd(value)?).is_none(),
                "budget_usd_per_month" => {
                    limits.budget_per_month.replace(NanoUsd::parse_usd(value)?).is_none()
                }
                _ => return None,
            };
            if !is_new {
                return None;
            }
        }
        Some(limits)
    }

    /// Itself, if it sets anything.
    pub fn non_empty(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// As it is read.
impl fmt::Display for OwnEndUserLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |limit: Option<u32>| limit.map(|limit| limit.to_string());
        let amount = |budget: Option<NanoUsd>| budget.map(|budget| budget.to_string().replace('$', ""));
        let values = [
            count(self.per_minute),
            count(self.per_day),
            amount(self.budget_per_day),
            amount(self.budget_per_month),
        ];
        let set = Self::NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        for (place, (name, value)) in set.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

#[allow(clippy::ref_option, reason = "serde passes fields by reference")]
fn to_usd<S: Serializer>(budget: &Option<NanoUsd>, serializer: S) -> Result<S::Ok, S::Error> {
    budget.map(NanoUsd::usd).serialize(serializer)
}

fn from_usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NanoUsd>, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.and_then(NanoUsd::from_usd))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn they_are_written_as_they_are_read() {
        for text in [
            "per_minute=20",
            "per_day=0",
            "per_minute=1,per_day=2,budget_usd_per_day=0.50,budget_usd_per_month=5.00",
        ] {
            assert_eq!(OwnEndUserLimits::parse(text).unwrap().to_string(), text);
        }
        let limits = OwnEndUserLimits::parse(" per_day = 7 , budget_usd_per_month = 0.000000001 ").unwrap();
        let written = json!({"per_minute": null, "per_day": 7, "budget_usd_per_day": null, "budget_usd_per_month": 1e-9});
        assert_eq!(serde_json::to_value(limits).unwrap(), written);
        assert_eq!(serde_json::from_value::<OwnEndUserLimits>(written).unwrap(), limits);
        let of_a_later_server = json!({"per_day": 7, "budget_usd_per_month": 1e-9, "per_hour": 1});
        assert_eq!(serde_json::from_value::<OwnEndUserLimits>(of_a_later_server).unwrap(), limits);
    }

    #[test]
    fn nothing_else_is_a_limit() {
        for wrong in [
            "",
            "5",
            "per_minute",
            "per_minute=",
            "per_minute=-1",
            "per_minute=1,",
            "per_hour=1",
            "per_day=1,per_day=2",
            "budget_usd_per_day=$1",
            "PER_DAY=1",
        ] {
            assert_eq!(OwnEndUserLimits::parse(wrong), None, "{wrong}");
        }
    }
}
