//! Reads a query string parameter by parameter, so that every error names the parameter and what is allowed.

pub(super) mod report_query;

use std::collections::BTreeMap;

use crate::server::reply::{ApiError, ErrorCode};
use crate::server::request::params::invalid;
use crate::storage::{Order, PageRequest};
use crate::unsafe_chars::name_in_message;

/// The number of records on a page, unless the caller asks for another.
pub(in crate::server) const DEFAULT_PAGE_SIZE: u32 = 50;
/// The maximum number of records on a page.
pub(in crate::server) const MAX_PAGE_SIZE: u32 = 200;
/// The number of hexadecimal digits of an id, after its prefix.
const ID_DIGITS: usize = 32;

/// The parameters of a query string that have not been read yet.
pub(in crate::server) struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses a query string, without its question mark.
    pub(in crate::server) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if parameters.insert(name.to_string(), value.into_owned()).is_some() {
                let name = name_in_message(&name);
                return Err(invalid(&name, format!("`{name}` appears twice; send it once")));
            }
        }
        Ok(Self(parameters))
    }

    /// An optional string, which must not be empty.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.remove(name) {
            Some(value) if value.is_empty() => {
                Err(invalid(name, format!("`{name}` is empty; give it a value or leave it out")))
            }
            value => Ok(value),
        }
    }

    /// An optional id with this prefix.
    pub(super) fn id(&mut self, name: &str, prefix: &str) -> Result<Option<String>, ApiError> {
        match self.text(name)? {
            Some(text) if !is_id(&text, prefix) => Err(invalid(
                name,
                format!("`{name}` must be an id: `{prefix}_` and {ID_DIGITS} hexadecimal digits"),
            )),
            id => Ok(id),
        }
    }

    /// An optional keyword, parsed by `read`; `allowed` lists the keywords for the error.
    pub(super) fn keyword<T>(
        &mut self,
        name: &str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let value = read(&text);
        value.map(Some).ok_or_else(|| invalid(name, format!("`{name}` must be {allowed}")))
    }

    /// The page of a list whose ids have this prefix: `limit` and `cursor`.
    pub(super) fn page(&mut self, prefix: &str) -> Result<PageRequest, ApiError> {
        let limit = match self.text("limit")? {
            None => DEFAULT_PAGE_SIZE,
            Some(text) => {
                text.parse().ok().filter(|limit| (1..=MAX_PAGE_SIZE).contains(limit)).ok_or_else(|| {
                    invalid("limit", format!("`limit` must be a whole number from 1 to {MAX_PAGE_SIZE}"))
                })?
            }
        };
        let after = self.text("cursor")?.unwrap_or_default();
        if !after.is_empty() && !is_id(&after, prefix) {
            return Err(invalid("cursor", "`cursor` must be the `next_cursor` of the previous page"));
        }
        Ok(PageRequest { after, limit })
    }

    /// The order of a list: `order`.
    pub(super) fn order(&mut self) -> Result<Order, ApiError> {
        let order = self.keyword("order", "oldest or newest", |text| match text {
            "oldest" => Some(Order::OldestFirst),
            "newest" => Some(Order::NewestFirst),
            _ => None,
        })?;
        Ok(order.unwrap_or_default())
    }

    /// Rejects parameters that were not read: a misspelt one must not be ignored.
    pub(super) fn finish(self, known: &[&str]) -> Result<(), ApiError> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        let name = name_in_message(name);
        let known = if known.is_empty() {
            "there are none".to_owned()
        } else {
            format!("allowed are {}", known.join(", "))
        };
        let message = format!("unknown query parameter `{name}`; {known}");
        Err(ApiError::parameter(ErrorCode::UnsupportedParameter, name, message))
    }
}

fn is_id(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|digits| {
        digits.len() == ID_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Service;

    #[test]
    fn parameters_are_read_once_and_the_rest_is_rejected() {
        let mut query = Query::parse("service=verify&x%20y=1&limit=7").unwrap();
        assert_eq!(
            query.keyword("service", "", |text| text.parse::<Service>().ok()).unwrap(),
            Some(Service::Verify)
        );
        assert_eq!(query.page("key").unwrap(), PageRequest { after: String::new(), limit: 7 });
        let error = query.finish(&["service"]).unwrap_err();
        assert_eq!(error.code(), "unsupported_parameter");
        assert!(Query::parse("").unwrap().finish(&[]).is_ok());
        assert!(Query::parse("a=1&a=2").is_err());
    }

    #[test]
    fn pages_are_within_bounds_and_cursors_are_ids() {
        let id = crate::id::new("key");
        let page = |text: &str| Query::parse(text).unwrap().page("key");
        assert_eq!(page("").unwrap().limit, DEFAULT_PAGE_SIZE);
        assert_eq!(
            page(&format!("cursor={id}&limit=200")).unwrap(),
            PageRequest { after: id.clone(), limit: 200 }
        );
        for wrong in [
            "limit=0",
            "limit=201",
            "limit=x",
            "limit=-1",
            "cursor=key_1",
            "cursor=%27%20OR%201=1",
            "cursor=",
        ] {
            assert!(page(wrong).is_err(), "{wrong}");
        }
        assert!(page(&format!("cursor={}", id.replace("key", "app"))).is_err());
    }
}
