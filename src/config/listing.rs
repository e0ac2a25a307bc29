//! Every value with its origin, for `mk config list --origin`. Secrets are listed as `set` or `not set`.

use std::borrow::Cow;
use std::time::Duration;

use super::client::choices;
use super::providers::{models, provider_file};
use super::sources::origin::Origin;
use super::sources::values::{self, quoted};
use super::{ClientConfig, FailOn, ServerConfig};
use crate::api::Service;
use crate::api::verify::Domain;
use crate::money::{NanoUsd, Price};
use crate::providers::{CallPolicyOverrides, Kind, Settings};
use crate::verify::PanelSettings;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, dotted as in the file.
    pub key: String,
    /// The value in the file's notation; empty if not set.
    pub value: String,
    /// Where it was set.
    pub origin: Origin,
}

/// Shown where neither a person nor a default sets anything.
const NOT_SET: &str = "not set";

impl Entry {
    /// The value for people: if nobody set one, what takes its place.
    pub fn shown(&self) -> Cow<'_, str> {
        if self.value.is_empty() { default_of(&self.key).into() } else { self.value.as_str().into() }
    }
}

/// What takes effect where nobody set the value; for the panel, what servers do.
fn default_of(key: &str) -> String {
    match key {
        "network.timeout" => "\"10m\" for verify".to_owned(),
        "verify.domain" => quoted(Domain::default().as_str()),
        "verify.min_required" => "2".to_owned(),
        "verify.total_models" => "3".to_owned(),
        "verify.jobs" => super::DEFAULT_JOBS.to_string(),
        "verify.fail_on" => fail_on_text(&FailOn::DEFAULT),
        "chat.model" => "the cheapest".to_owned(),
        _ => NOT_SET.to_owned(),
    }
}

fn fail_on_text(list: &[FailOn]) -> String {
    list_text(&list.iter().map(choices::word).collect::<Vec<_>>())
}

/// The client's values, in the order of the file.
pub fn client_listing(config: &ClientConfig) -> Vec<Entry> {
    let verify = &config.verify;
    let mut values = vec![
        ("profile".to_owned(), config.profile.as_deref().map(quoted).unwrap_or_default()),
        ("server".to_owned(), quoted(&config.server)),
    ];
    for service in Service::ALL {
        let key = config.key_for(service).map(|key| set_or_not(key.is_some()));
        values.push((format!("keys.{service}"), key.unwrap_or_else(|_| "unreadable".to_owned())));
    }
    let rest = [
        ("output.color", quoted(&choices::word(&config.color))),
        ("output.progress", quoted(&choices::word(&config.progress))),
        ("output.view", quoted(&choices::word(&config.view))),
        ("network.timeout", config.timeout.map(span).unwrap_or_default()),
        ("network.ca_cert", config.ca_cert.as_ref().map(|path| path_text(path)).unwrap_or_default()),
        ("verify.domain", verify.domain.map(|domain| quoted(domain.as_str())).unwrap_or_default()),
        ("verify.min_required", verify.min_required.map(|n| n.to_string()).unwrap_or_default()),
        ("verify.total_models", verify.total_models.map(|n| n.to_string()).unwrap_or_default()),
        ("verify.jobs", verify.jobs.map(|n| n.to_string()).unwrap_or_default()),
        ("verify.fail_on", verify.fail_on.as_deref().map(fail_on_text).unwrap_or_default()),
        ("chat.model", config.chat_model.as_deref().map(quoted).unwrap_or_default()),
    ];
    values.extend(rest.map(|(key, value)| (key.to_owned(), value)));
    let entry = |(key, value): (String, String)| Entry { origin: config.origins.get(&key), key, value };
    values.into_iter().map(entry).collect()
}

/// The server's values, in the order of the file.
pub fn server_listing(config: &ServerConfig) -> Vec<Entry> {
    let networks: Vec<_> = config.trusted_proxies.iter().map(ToString::to_string).collect();
    let tls = config.tls.as_ref();
    let limits = &config.limits;
    let mut values: Vec<(String, String)> = [
        ("listen", quoted(&config.listen.to_string())),
        ("data_dir", path_text(&config.data_dir)),
        ("database_url", quoted(&config.database.to_string())),
        ("limits_url", quoted(&config.limits_store.to_string())),
        ("trusted_proxies", list_text(&networks)),
        ("tls_cert", tls.map(|tls| path_text(&tls.cert)).unwrap_or_default()),
        ("tls_key", tls.map(|tls| path_text(&tls.key)).unwrap_or_default()),
        ("max_body_bytes", config.max_body_bytes.to_string()),
        ("limits.per_minute", limits.keys.per_minute.to_string()),
        ("limits.per_day", limits.keys.per_day.to_string()),
        ("limits.open_pages_per_minute", limits.open_pages_per_minute.to_string()),
        ("limits.failed_auth_per_minute", limits.failed_auth_per_minute.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    values.extend(config.providers.iter().flat_map(provider));
    values.extend(panel("verify", &config.verify.general));
    values.push(("verify.max_concurrent".to_owned(), config.verify.max_concurrent.to_string()));
    let general = panel(models::LEGAL, &config.verify.general);
    values.extend(
        panel(models::LEGAL, &config.verify.legal).into_iter().filter(|value| !general.contains(value)),
    );
    let timeout = config.inference.first_token_timeout_with_fallback;
    values.push(("inference.first_token_timeout_with_fallback".to_owned(), span(timeout)));
    values.push(("inference.drop_unsupported".to_owned(), config.inference.drop_unsupported.to_string()));
    let timeout = config.inference.whole_answer_timeout_with_fallback;
    values.push(("inference.whole_answer_timeout_with_fallback".to_owned(), span(timeout)));
    let fallbacks = config.inference.fallbacks.iter();
    values.extend(
        fallbacks.map(|(model, list)| (format!("inference.fallbacks.{}", quoted(model)), list_text(list))),
    );
    let retention = config.usage_retention.map(|span| quoted(&values::days_text(span)));
    values.push(("usage.retention".to_owned(), retention.unwrap_or_default()));
    let entry = |(key, value): (String, String)| Entry { origin: config.origins.get(&key), key, value };
    values.into_iter().map(entry).collect()
}

fn provider(settings: &Settings) -> Vec<(String, String)> {
    let kind = quoted(settings.kind.name());
    let mut fields = vec![("kind", kind)];
    if settings.kind != Kind::Sandbox {
        let header = settings.api_key_header.as_ref().map(|name| quoted(name.as_str()));
        fields.extend([
            ("base_url", quoted(&settings.base_url)),
            ("api_key", set_or_not(settings.api_key.is_some())),
            ("api_key_header", header.unwrap_or_default()),
            ("connect_timeout", span(settings.connect_timeout)),
        ]);
    }
    fields.extend([
        ("max_concurrent", settings.max_concurrent.to_string()),
        ("first_byte_timeout", span(settings.first_byte_timeout)),
        ("idle_timeout", span(settings.idle_timeout)),
        ("total_timeout", span(settings.total_timeout)),
        ("first_token_timeout", settings.first_token_timeout.map(span).unwrap_or_default()),
        ("whole_answer_timeout", settings.whole_answer_timeout.map(span).unwrap_or_default()),
        ("retries", settings.retries.to_string()),
        ("breaker_failures", settings.breaker_failures.to_string()),
        ("breaker_pause", span(settings.breaker_pause)),
        ("breaker_max_pause", span(settings.breaker_max_pause)),
    ]);
    let mut values: Vec<(String, String)> =
        fields.into_iter().map(|(field, value)| (key_of(settings, field), value)).collect();
    for (name, model) in &settings.models {
        let table = provider_file::model_table(&settings.name, name);
        let price =
            |of: fn(Price) -> Option<NanoUsd>| model.price.and_then(of).map(|price| price.usd().to_string());
        let set = [
            ("input_usd_per_mtok", price(|price| Some(price.input_per_mtok))),
            ("output_usd_per_mtok", price(|price| Some(price.output_per_mtok))),
            ("cached_input_usd_per_mtok", price(|price| price.cached_input_per_mtok)),
            ("cache_write_usd_per_mtok", price(|price| price.cache_write_per_mtok)),
            ("fallbacks", (!model.fallbacks.is_empty()).then(|| list_text(&model.fallbacks))),
        ];
        let set = set.into_iter().chain(resilience(&model.call_policy));
        values.extend(set.filter_map(|(field, value)| Some((format!("{table}.{field}"), value?))));
    }
    values
}

/// What is set for a model; all else is inherited from its provider.
fn resilience(call_policy: &CallPolicyOverrides) -> [(&'static str, Option<String>); 9] {
    let number = |value: Option<u32>| value.map(|number| number.to_string());
    [
        ("first_byte_timeout", call_policy.first_byte_timeout.map(span)),
        ("idle_timeout", call_policy.idle_timeout.map(span)),
        ("total_timeout", call_policy.total_timeout.map(span)),
        ("first_token_timeout", call_policy.first_token_timeout.map(span)),
        ("whole_answer_timeout", call_policy.whole_answer_timeout.map(span)),
        ("retries", number(call_policy.retries)),
        ("breaker_failures", number(call_policy.breaker_failures)),
        ("breaker_pause", call_policy.breaker_pause.map(span)),
        ("breaker_max_pause", call_policy.breaker_max_pause.map(span)),
    ]
}

fn key_of(settings: &Settings, field: &str) -> String {
    format!("providers.{}.{field}", settings.name)
}

fn panel(table: &str, settings: &PanelSettings) -> Vec<(String, String)> {
    [
        ("extractor", quoted(&settings.extractor)),
        ("extractor_fallbacks", list_text(&settings.extractor_fallbacks)),
        ("auditor", quoted(settings.auditor.as_deref().unwrap_or(models::NO_AUDITOR))),
        ("panel", list_text(&settings.panel)),
        ("standby", list_text(&settings.standby)),
        ("max_fact_chars", settings.max_fact_chars.to_string()),
        ("max_claims", settings.max_claims.to_string()),
        ("effort", quoted(settings.effort.as_str())),
        ("model_timeout", span(settings.model_timeout)),
        ("deadline", span(settings.deadline)),
        ("cache", quoted(&settings.cache.map_or_else(|| values::OFF.to_owned(), values::days_text))),
    ]
    .map(|(field, value)| (format!("{table}.{field}"), value))
    .into()
}

fn path_text(path: &std::path::Path) -> String {
    quoted(&path.to_string_lossy())
}

fn list_text(list: &[String]) -> String {
    format!("[{}]", list.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

fn span(span: Duration) -> String {
    quoted(&values::duration_text(span))
}

fn set_or_not(is_set: bool) -> String {
    if is_set { "set" } else { NOT_SET }.to_owned()
}
