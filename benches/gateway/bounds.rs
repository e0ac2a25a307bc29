//! The rows of the table for each scenario, and their bounds.

use crate::figures::{Sample, Target};
use crate::plan::{LONGEST, Scenario};
use crate::protocols::{Other, Way};
use crate::table::Against::{Nothing, Plus, Times};
use crate::table::{Against, Bound, Limit, Row};

/// The rows of a scenario.
pub(crate) fn rows(scenario: Scenario) -> Vec<Row> {
    let relayed = at_least(0.5, Target::Nginx);
    match scenario {
        Scenario::Chat32 => vec![
            row("requests/s", Times, |sample| Some(sample.answers_per_s)).bound(relayed),
            row("median ms", Times, |sample| Some(sample.median_ms)),
            row("p99 ms", Times, |sample| Some(sample.p99_ms)),
            row("CPU us a request", Times, |sample| sample.cpu_us),
        ],
        Scenario::Chat128 => vec![
            row("requests/s", Times, |sample| Some(sample.answers_per_s)).bound(relayed),
            row("median ms", Times, |sample| Some(sample.median_ms)),
            row("p99 ms", Times, |sample| Some(sample.p99_ms)),
            row("CPU us a request", Times, |sample| sample.cpu_us),
            row("resident MB", Nothing, |sample| sample.resident_mb).bound(at_most(40.0, None)),
        ],
        Scenario::Paced => vec![
            row("median ms", Plus, |sample| Some(sample.median_ms))
                .bound(at_most(0.25, Some(Target::Direct))),
            row("p99 ms", Plus, |sample| Some(sample.p99_ms)),
            row("CPU us a request", Times, |sample| sample.cpu_us),
        ],
        Scenario::Streams => vec![
            row("events/s", Times, |sample| Some(sample.events_per_s)).bound(at_least(0.75, Target::Nginx)),
            row("first byte, median ms", Times, |sample| Some(sample.first_median_ms)),
            row("first byte, p99 ms", Times, |sample| Some(sample.first_p99_ms)),
            row("CPU us an event", Times, |sample| sample.cpu_us_event),
        ],
        Scenario::Slow => vec![
            row("median ms", Times, |sample| Some(sample.median_ms)),
            row("p99 ms", Times, |sample| Some(sample.p99_ms)),
            row("CPU us a request", Times, |sample| sample.cpu_us),
        ],
        Scenario::Protocols | Scenario::Bodies => Vec::new(),
        Scenario::Other(_, LONGEST) => vec![
            row("CPU us a request", Times, |sample| sample.cpu_us),
            row("resident MB", Nothing, |sample| sample.resident_mb).bound(at_most(512.0, None)),
        ],
        Scenario::Other(Other { way, .. }, _) => {
            let most = match way {
                Way::PassedOn => 1.25,
                Way::Translated => 1.6,
            };
            vec![
                row("CPU us a request", Times, |sample| sample.cpu_us)
                    .bound(at_most(most, Some(Target::Chat))),
                row("median ms", Times, |sample| Some(sample.median_ms)),
                row("resident MB", Nothing, |sample| sample.resident_mb),
            ]
        }
        Scenario::Unauthorized | Scenario::Limited | Scenario::Health => vec![
            row("requests/s", Times, |sample| Some(sample.answers_per_s)).bound(at_least(0.6, Target::Nginx)),
            row("p99 ms", Times, |sample| Some(sample.p99_ms)),
            row("CPU us a request", Times, |sample| sample.cpu_us),
        ],
    }
}

fn row(what: &'static str, against: Against, of: fn(&Sample) -> Option<f64>) -> Row {
    Row { what, of, against, bound: None }
}

impl Row {
    fn bound(self, bound: Bound) -> Self {
        Self { bound: Some(bound), ..self }
    }
}

fn at_least(limit: f64, to: Target) -> Bound {
    Bound { to: Some(to), limit: Limit::AtLeast(limit) }
}

fn at_most(limit: f64, to: Option<Target>) -> Bound {
    Bound { to, limit: Limit::AtMost(limit) }
}
