//! Parses single values from text, in the same way for files, variables and flags.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use ipnet::IpNet;
use reqwest::Url;

use crate::api::guard::{BlockOn, Guard};
use crate::api::verify::Domain;
use crate::config::client::choices;
use crate::config::{ColorMode, FailOn, ProgressMode, View};
use crate::inference::Effort;
use crate::money::NanoUsd;
use crate::net::loopback::is_loopback;
use crate::{duration_text, model_id};

/// What [`duration`] expects.
pub(in crate::config) const DURATION: &str = "a duration such as \"500ms\", \"30s\", \"1m30s\" or \"1h\"";

/// The longest duration; no timeout has reason to be longer.
const MAX_DURATION: Duration = Duration::from_hours(24);

/// The units of a duration.
const UNITS: [(&str, Duration); 4] = [
    ("h", Duration::from_hours(1)),
    ("m", Duration::from_mins(1)),
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
];

/// A duration above zero and of at most a day.
pub(in crate::config) fn duration(text: &str) -> Option<Duration> {
    duration_text::parse(text, &UNITS).filter(|span| !span.is_zero() && *span <= MAX_DURATION)
}

/// A duration in the syntax of [`duration`].
pub(in crate::config) fn duration_text(span: Duration) -> String {
    let ms = span.as_millis();
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

/// What a whole number within a range must be, for messages: `2 or 3`, `a whole number from 1 to 9`.
pub fn whole_numbers<T: Display>(range: &RangeInclusive<T>) -> String {
    let (low, high) = (range.start().to_string(), range.end().to_string());
    match (low.parse::<u64>(), high.parse::<u64>()) {
        (Ok(first), Ok(last)) if first == last => low,
        (Ok(first), Ok(last)) if first + 1 == last => format!("{low} or {high}"),
        _ => format!("a whole number from {low} to {high}"),
    }
}

/// What [`days`] expects.
pub(in crate::config) const DAYS: &str = "a number of days from 1 to 36500, such as \"400d\"";

/// A number of whole days, from one day to a hundred years.
pub(in crate::config) fn days(text: &str) -> Option<Duration> {
    let digits = text.strip_suffix('d').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let days: u64 = digits.parse().ok()?;
    (1..=36_500).contains(&days).then(|| Duration::from_hours(24 * days))
}

/// What [`days_or_off`] expects.
pub(in crate::config) const DAYS_OR_OFF: &str =
    "\"off\", or a number of days from 1 to 36500, such as \"30d\"";

/// The value that stands for no days at all.
pub(in crate::config) const OFF: &str = "off";

/// A number of whole days, or none.
#[expect(clippy::option_option, reason = "unreadable, off and a time are three things")]
pub(in crate::config) fn days_or_off(text: &str) -> Option<Option<Duration>> {
    if text == OFF { Some(None) } else { days(text).map(Some) }
}

/// A number of days in the syntax of [`days`]; nothing for none.
pub(in crate::config) fn written_days(span: Option<&Duration>) -> String {
    span.map(|span| quoted(&days_text(*span))).unwrap_or_default()
}

/// The same in the syntax of [`days_or_off`].
pub(in crate::config) fn written_days_or_off(span: Option<&Duration>) -> String {
    quoted(&span.map_or_else(|| OFF.to_owned(), |span| days_text(*span)))
}

/// What an amount of money expects.
pub(in crate::config) const DOLLARS: &str = "an amount in US dollars, such as 0.5";

/// A number of days in the syntax of [`days`].
pub(in crate::config) fn days_text(span: Duration) -> String {
    format!("{}d", span.as_secs() / 86_400)
}

/// What [`base_url`] expects.
pub(in crate::config) const BASE_URL: &str = "an http:// or https:// address without user name, password, query or fragment, such as \"http://127.0.0.1:8080\"";

/// A base address to which paths can be appended.
pub(in crate::config) fn base_url(text: &str) -> Option<Url> {
    address(text).filter(|url| url.query().is_none())
}

/// The base address probably meant by one without a scheme: plain HTTP only if that stays on this machine.
pub(in crate::config) fn base_url_meant(text: &str) -> Option<String> {
    let complete = |scheme: &str| base_url(&format!("{scheme}://{text}"));
    let url = complete("http").filter(|url| !text.contains("://") && !is_unencrypted_remote(url));
    url.or_else(|| complete("https").filter(|_| !text.contains("://"))).map(|url| url_text(&url))
}

/// What [`provider_url`] expects.
pub(in crate::config) const PROVIDER_URL: &str = "an http:// or https:// address without user name, password, key or fragment, such as \"http://127.0.0.1:8000/v1\"";

/// Substrings in the names of secret query parameters; Azure's are `sig` and `code`.
const SECRET_WORDS: [&str; 8] = ["key", "token", "secret", "sig", "code", "auth", "pass", "credential"];

/// The base address of a provider. Its query (such as `api-version`) is sent with every call; a key in it is refused,
/// as it would be shown wherever the address is.
pub(in crate::config) fn provider_url(text: &str) -> Option<Url> {
    let is_secret = |name: &str| SECRET_WORDS.iter().any(|word| name.contains(word));
    address(text).filter(|url| url.query_pairs().all(|(name, _)| !is_secret(&name.to_ascii_lowercase())))
}

fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let plain =
        url.username().is_empty() && url.password().is_none() && url.fragment().is_none() && url.has_host();
    (plain && matches!(url.scheme(), "http" | "https")).then_some(url)
}

/// The address as text, without a trailing slash.
pub(in crate::config) fn url_text(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Whether data sent there would leave this machine unencrypted.
pub(in crate::config) fn is_unencrypted_remote(url: &Url) -> bool {
    url.scheme() == "http" && !url.host_str().is_some_and(is_loopback)
}

/// A text as a basic string of TOML on one line: TOML escapes whatever JSON does, and one character more.
pub(in crate::config) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A list of strings in the file's notation.
pub(in crate::config) fn list_text(list: &[impl AsRef<str>]) -> String {
    format!("[{}]", list.iter().map(|text| quoted(text.as_ref())).collect::<Vec<_>>().join(", "))
}

/// A value in the file's notation.
pub(in crate::config) trait Written {
    /// The text; empty for what is not set.
    fn written(&self) -> String;
}

impl Written for Option<Guard> {
    fn written(&self) -> String {
        quoted(self.map_or(OFF, Guard::as_str))
    }
}

impl<T: Written> Written for Option<T> {
    fn written(&self) -> String {
        self.as_ref().map(T::written).unwrap_or_default()
    }
}

macro_rules! written {
    ($($T:ty: $written:expr;)+) => { $(impl Written for $T {
        fn written(&self) -> String {
            let written: fn(&Self) -> String = $written;
            written(self)
        }
    })+ };
}

written! {
    bool: ToString::to_string;
    u32: ToString::to_string;
    usize: ToString::to_string;
    String: |text| quoted(text);
    Duration: |span| quoted(&duration_text(*span));
    PathBuf: |path| quoted(&path.to_string_lossy());
    Vec<String>: |list| list_text(list);
    Vec<u32>: |list| if list.is_empty() { String::new() } else { format!("{list:?}") };
    Vec<IpNet>: |list| list_text(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
    Vec<FailOn>: |list| list_text(&list.iter().map(choices::word).collect::<Vec<_>>());
    HeaderName: |name| quoted(name.as_str());
    Vec<BlockOn>: |list| list_text(&list.iter().map(|reason| reason.as_str().to_owned()).collect::<Vec<_>>());
    Effort: |effort| quoted(effort.as_str());
    Domain: |domain| quoted(domain.as_str());
    NanoUsd: |amount| amount.usd().to_string();
    ColorMode: |choice| quoted(&choices::word(choice));
    ProgressMode: |choice| quoted(&choices::word(choice));
    View: |choice| quoted(&choices::word(choice));
}

/// What [`guard`] expects.
pub(in crate::config) const GUARD: &str = "\"off\", \"flag\" or \"block\"";

/// What is done with verdicts on answers.
#[expect(clippy::option_option, reason = "unreadable, off and a guard are three things")]
pub(in crate::config) fn guard(text: &str) -> Option<Option<Guard>> {
    if text == OFF { Some(None) } else { Guard::named(text).map(Some) }
}

/// What [`model`] expects.
pub(in crate::config) const MODEL: &str =
    "a model, written as provider/model_name, such as \"openai/gpt-5.4-mini\", or the name of a pool";

/// What a request may ask for.
pub(in crate::config) fn model(text: &str) -> Option<String> {
    (model_id::parse(text).is_some() || model_id::is_pool_name(text)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_quoted_on_one_line() {
        for text in ["", "a/b", "\"'\\", "a\nb\u{1b}\u{7f}\u{200b}\u{2028}ö"] {
            let line = quoted(text);
            let read: std::collections::BTreeMap<String, String> =
                toml::from_str(&format!("v = {line}")).unwrap();
            assert_eq!((read["v"].as_str(), line.contains('\n')), (text, false), "{line}");
            assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("5s"), Some(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Some(Duration::from_mins(2)));
        assert_eq!(duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Some(MAX_DURATION));
        for wrong in ["", "5", "s", "5 s", "-5s", "0s", "25h", "1.5s", "5sec", "99999999999999999999s", "５s"]
        {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
        assert_eq!(duration_text(Duration::from_millis(1500)), "1500ms");
        assert_eq!(duration(&duration_text(MAX_DURATION)), Some(MAX_DURATION));
    }

    #[test]
    fn whole_days() {
        for text in ["1d", "400d", "36500d"] {
            assert_eq!(days(text).map(days_text).as_deref(), Some(text));
        }
        for wrong in ["", "d", "0d", "400", "36501d", "-1d", "1.5d", "24h", "1 d", "99999999999999999999d"] {
            assert_eq!(days(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn base_addresses() {
        let text = |text| base_url(text).map(|url| url_text(&url));
        assert_eq!(text("https://api.openai.com/v1/").as_deref(), Some("https://api.openai.com/v1"));
        assert_eq!(text("http://127.0.0.1:8080").as_deref(), Some("http://127.0.0.1:8080"));
        for wrong in
            ["", "api.openai.com", "ftp://a", "https://user:pw@host", "https://k@host", "https://h?k=v"]
        {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_provider_s_address_may_have_a_query_but_no_key_in_it() {
        let text = |text| provider_url(text).map(|url| url_text(&url));
        let azure = "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21";
        assert_eq!(text(azure).as_deref(), Some(azure));
        for wrong in [
            "https://h?key=v",
            "https://h?a=b&API-Key=v",
            "https://h?access_token=v",
            "https://h?sig=v",
            "https://k@h?a=b",
        ] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn plain_http_is_only_fine_on_this_machine() {
        for (address, expected) in [
            ("http://127.0.0.1:8080", false),
            ("http://[::1]:8080", false),
            ("http://localhost", false),
            ("https://example.org", false),
            ("http://example.org", true),
            ("http://192.168.0.1", true),
        ] {
            assert_eq!(is_unencrypted_remote(&base_url(address).unwrap()), expected, "{address}");
        }
    }
}
