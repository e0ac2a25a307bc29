//! Every value with its origin, for `mk config list --origin`. Secrets are listed as `set` or `not set`.

use std::borrow::Cow;

use super::client::client_file::{self, ChatTable, NetworkTable, OutputTable};
use super::providers::models;
use super::providers::pool_file::{self, PoolTable};
use super::providers::provider_file::{self, ProviderTable};
use super::providers::resilience_file::{ModelPolicy, ProviderPolicy};
use super::server::server_file::{
    EndUsersTable, GeneralTable, InferenceTable, LimitsTable, PanelTable, UsageTable, VerifyTable,
};
use super::sources::origin::{Origin, Origins};
use super::sources::table::{Table, dotted};
use super::sources::values::{Written, quoted};
use super::{ClientConfig, FailOn, ServerConfig};
use crate::api::Service;
use crate::api::verify::Domain;
use crate::money::{NanoUsd, Price};
use crate::providers::{Kind, Settings};

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
        "verify.fail_on" => FailOn::DEFAULT.to_vec().written(),
        "chat.model" => "the cheapest chat model".to_owned(),
        _ => NOT_SET.to_owned(),
    }
}

/// The client's values, in the order of the file.
pub fn client_listing(config: &ClientConfig) -> Vec<Entry> {
    let mut values = vec![
        ("profile".to_owned(), config.profile.as_deref().map(quoted).unwrap_or_default()),
        ("server".to_owned(), quoted(&config.server)),
    ];
    for service in Service::ALL {
        let key = config.key_for(service).map(|key| set_or_not(key.is_some()));
        values.push((format!("keys.{service}"), key.unwrap_or_else(|_| "unreadable".to_owned())));
    }
    values.extend(OutputTable::list("output", config));
    values.extend(NetworkTable::list("network", config));
    values.extend(client_file::VerifyTable::list("verify", &config.verify));
    values.extend(ChatTable::list("chat", config));
    entries(values, &config.origins)
}

/// The server's values, in the order of the file.
pub fn server_listing(config: &ServerConfig) -> Vec<Entry> {
    let tls = config.tls.as_ref();
    let mut values: Vec<(String, String)> = [
        ("listen", quoted(&config.listen.to_string())),
        ("data_dir", config.data_dir.written()),
        ("database_url", quoted(&config.database.to_string())),
        ("limits_url", quoted(&config.limits_store.to_string())),
        ("tls_cert", tls.map(|tls| tls.cert.written()).unwrap_or_default()),
        ("tls_key", tls.map(|tls| tls.key.written()).unwrap_or_default()),
        ("otlp_endpoint", config.traces.endpoint.written()),
        ("otlp_headers", set_or_not(!config.traces.headers.is_empty())),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    values.extend(GeneralTable::list("", config));
    values.extend(LimitsTable::list("limits", &config.limits));
    values.extend(EndUsersTable::list("limits.end_users", &config.limits));
    values.extend(config.providers.iter().flat_map(provider));
    let pools = config.inference.pools.iter();
    values.extend(pools.flat_map(|(name, pool)| PoolTable::list(&pool_file::table(name), pool)));
    values.extend(PanelTable::list("verify", &config.verify.general));
    values.extend(VerifyTable::list("verify", &config.verify));
    let general = PanelTable::list(models::LEGAL, &config.verify.general);
    let legal = PanelTable::list(models::LEGAL, &config.verify.legal);
    values.extend(legal.into_iter().filter(|value| !general.contains(value)));
    values.extend(InferenceTable::list("inference", &config.inference));
    let fallbacks = config.inference.fallbacks.iter();
    values.extend(
        fallbacks.map(|(model, list)| (format!("inference.fallbacks.{}", quoted(model)), list.written())),
    );
    values.extend(UsageTable::list("usage", config));
    entries(values, &config.origins)
}

fn entries(values: Vec<(String, String)>, origins: &Origins) -> Vec<Entry> {
    let entry = |(key, value): (String, String)| Entry { origin: origins.get(&key), key, value };
    values.into_iter().map(entry).collect()
}

fn provider(settings: &Settings) -> Vec<(String, String)> {
    let table = format!("providers.{}", settings.name);
    let key_of = |field: &str| dotted(&table, field);
    let mut values = vec![(key_of("kind"), quoted(settings.kind.name()))];
    if settings.kind != Kind::Sandbox {
        values.push((key_of("base_url"), quoted(&settings.base_url)));
        let keys = match settings.api_keys().count() {
            count @ 2.. => format!("{count} set"),
            count => set_or_not(count == 1),
        };
        values.push((key_of("api_key"), keys));
    }
    values.extend(ProviderTable::list(&table, settings));
    values.extend(ProviderPolicy::list(&table, &settings.call_policy));
    for (name, model) in &settings.models {
        let table = provider_file::model_table(&settings.name, name);
        let price = |of: fn(Price) -> Option<NanoUsd>| {
            model.price.and_then(of).map(|price| price.usd().to_string()).unwrap_or_default()
        };
        let fallbacks = if model.fallbacks.is_empty() { String::new() } else { model.fallbacks.written() };
        let of_model = [
            ("input_usd_per_mtok", price(|price| Some(price.input_per_mtok))),
            ("output_usd_per_mtok", price(|price| Some(price.output_per_mtok))),
            ("cached_input_usd_per_mtok", price(|price| price.cached_input_per_mtok)),
            ("cache_write_usd_per_mtok", price(|price| price.cache_write_per_mtok)),
            ("fallbacks", fallbacks),
        ]
        .map(|(field, value)| (dotted(&table, field), value));
        let policy = ModelPolicy::list(&table, &model.call_policy);
        // All else is inherited from its provider.
        values.extend(of_model.into_iter().chain(policy).filter(|(_, value)| !value.is_empty()));
    }
    values
}

fn set_or_not(is_set: bool) -> String {
    if is_set { "set" } else { NOT_SET }.to_owned()
}
