//! Query parameters of reports: dates, months, dimensions and services.

use super::Query;
use crate::api::Service;
use crate::api::console::Dimension;
use crate::clock::Time;
use crate::server::reply::ApiError;
use crate::server::request::params::invalid;
use crate::usage::{Days, Month, parse_date};

/// The number of days of a report without dates, today included.
const DEFAULT_DAYS: u32 = 30;

impl Query {
    /// `from` and `to`, both inclusive. A missing one is derived from the other.
    pub(in crate::server::endpoints::console) fn days(&mut self, now: Time) -> Result<Days, ApiError> {
        let default = Days::until_today(DEFAULT_DAYS, now);
        let days = match (self.date("from")?, self.date("to")?) {
            (None, None) => default,
            (Some(first), None) => Days { first, ..default },
            (None, Some(last)) => Days { first: last - (default.last - default.first), last },
            (Some(first), Some(last)) => Days { first, last },
        };
        if days.first > days.last {
            return Err(invalid("from", "`from` must not be after `to` (default: today)"));
        }
        Ok(days)
    }

    fn date(&mut self, name: &'static str) -> Result<Option<i64>, ApiError> {
        let date = |text: String| {
            parse_date(&text)
                .ok_or_else(|| invalid(name, format!("`{name}` must be a date such as 2026-11-20")))
        };
        self.text(name)?.map(date).transpose()
    }

    /// `month`, by default the current one.
    pub(in crate::server::endpoints::console) fn month(&mut self, now: Time) -> Result<Month, ApiError> {
        let Some(text) = self.text("month")? else { return Ok(Month::of(now)) };
        Month::parse(&text).ok_or_else(|| invalid("month", "`month` must be a month such as 2026-11"))
    }

    /// `by`: a comma-separated list, by default `day`.
    pub(in crate::server::endpoints::console) fn by(&mut self) -> Result<Vec<Dimension>, ApiError> {
        let Some(list) = self.text("by")? else { return Ok(vec![Dimension::Day]) };
        let by: Option<Vec<_>> = list.split(',').map(|name| Dimension::named(name.trim())).collect();
        by.ok_or_else(|| {
            invalid(
                "by",
                "`by` must be a list of `day`, `app`, `key`, `model`, `service`, and `user` or `tag`, such as day,model",
            )
        })
    }

    /// `service`: one whose keys use models.
    pub(in crate::server::endpoints::console) fn model_service(
        &mut self,
    ) -> Result<Option<Service>, ApiError> {
        let service = |text: String| {
            // Console keys use no models.
            let service = text.parse().ok().filter(|service| *service != Service::Console);
            service.ok_or_else(|| invalid("service", "`service` must be `verify` or `inference`"))
        };
        self.text("service")?.map(service).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_unix_ms(1_795_176_000_000);

    fn query(raw: &str) -> Query {
        Query::parse(raw).unwrap_or_else(|_| panic!("{raw}"))
    }

    fn days(raw: &str) -> Result<(i64, i64), ApiError> {
        let today = NOW.utc_day();
        query(raw).days(NOW).map(|days| (days.first - today, days.last - today))
    }

    #[test]
    fn a_missing_end_is_derived_from_the_other() {
        for (raw, expected) in [
            ("", (-29, 0)),
            ("from=2026-11-01", (-19, 0)),
            ("to=2026-11-19", (-30, -1)),
            ("from=2026-11-20&to=2026-11-20", (0, 0)),
        ] {
            assert_eq!(days(raw).ok(), Some(expected), "{raw}");
        }
        for wrong in [
            "from=2026-11-21",
            "from=2026-11-02&to=2026-11-01",
            "to=2026-11-31",
            "from=today",
            "to=",
            "from=",
        ] {
            assert_eq!(days(wrong).unwrap_err().code(), "invalid_parameter", "{wrong}");
        }
    }

    #[test]
    fn lists_are_read_and_unknown_names_rejected() {
        assert_eq!(query("by=model%2Cday").by().ok(), Some(vec![Dimension::Model, Dimension::Day]));
        assert_eq!(query("").by().ok(), Some(vec![Dimension::Day]));
        for wrong in ["by=day,,app", "by=month", "by=Day"] {
            assert!(query(wrong).by().is_err(), "{wrong}");
        }
        assert!(
            query("service=chat").model_service().is_err()
                && query("service=console").model_service().is_err()
        );
        assert!(query("month=2026-13").month(NOW).is_err());
        assert_eq!(query("").month(NOW).ok(), Some(Month::of(NOW)));
    }
}
